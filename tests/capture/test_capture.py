"""Capture: what goes in and out is named, free sizes keep the user's names, wrong input is refused."""

from __future__ import annotations

import collections
import dataclasses

import pytest
import torch
from torch import nn
from torch.export import Dim

from fx2onnx import dims
from fx2onnx.capture import capture
from fx2onnx.errors import CaptureError, ExportInputError, PinnedDimError
from fx2onnx.graph import TypedGraph
from fx2onnx.types import type_of


def input_types(graph: TypedGraph) -> dict[str, str]:
    """`{"x": "f32[batch, 3]"}`."""
    nodes = graph.placeholders()
    return {i.name: str(type_of(nodes[i.placeholder])) for i in graph.inputs}


def output_types(graph: TypedGraph) -> dict[str, str]:
    """The types of the outputs by name."""
    (results,) = graph.module.graph.output_node().args
    names = [o.name for o in graph.outputs if o.name is not None]
    return {n: str(type_of(v)) for n, v in zip(names, results, strict=True)}


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor


Point = collections.namedtuple("Point", "p q")


class Nested(nn.Module):
    def forward(self, pair, point, items, *rest, scale=1.0, tag="t"):
        y = pair.left + pair.right + point.p * scale + items["a"][0]
        for r in rest:
            y = y + r
        return Pair(y, y * 2), {"n": y.shape[0], "tag": tag, "none": None}


# -- names and pytrees -----------------------------------------------------------------------------


def test_leaves_are_named_by_their_path():
    x = torch.randn(3, 4)
    graph = capture(
        Nested(),
        (Pair(x, x), Point(x, torch.randn(2)), {"a": [x]}, x, x),
        {"scale": 2.0},
        dynamic_shapes={
            "pair": {"left": {0: "b"}, "right": {0: "b"}},
            "point": ({0: "b"}, None),
            "items": {"a": [{0: "b"}]},
            "rest": [{0: "b"}, {0: "b"}],
        },
    )
    names = ["pair.left", "pair.right", "point.p", "point.q", "items.a.0", "rest.0", "rest.1"]
    assert list(input_types(graph)) == names
    assert input_types(graph)["point.p"] == "f32[b, 4]"
    assert output_types(graph) == {"output_0.left": "f32[b, 4]", "output_0.right": "f32[b, 4]"}
    assert [o.constant for o in graph.outputs[2:]] == [dims.symbol("b"), "t", None]
    assert graph.relations == ()


def test_given_names_win():
    graph = capture(double, (torch.randn(2),), input_names=["wave"], output_names=["twice"])
    assert input_types(graph) == {"wave": "f32[2]"}
    assert output_types(graph) == {"twice": "f32[2]"}


def test_a_builtin_function_comes_in():
    graph = capture(torch.relu, (torch.randn(2, 3),), dynamic_shapes=[{0: "n"}])
    assert input_types(graph) == {"input.0": "f32[n, 3]"}
    assert output_types(graph) == {"output": "f32[n, 3]"}


def test_an_output_may_not_take_an_inputs_name():
    class Echo(nn.Module):
        def forward(self, y):
            return {"y": y + 1}

    graph = capture(Echo(), (torch.randn(2),))
    assert output_types(graph) == {"y_out": "f32[2]"}


def test_one_tensor_passed_twice_is_two_inputs():
    def difference(a, b):
        return a - 2 * b

    x = torch.randn(3)
    graph = capture(difference, (x, x))
    a, b = (graph.placeholders()[i.placeholder] for i in graph.inputs)
    assert a.users
    assert b.users


def test_the_models_own_weight_may_be_an_input():
    model = nn.Linear(3, 3)
    graph = capture(model, (model.weight,))
    assert len(graph.inputs) == 1
    assert set(graph.state_names.values()) == {"weight", "bias"}


# -- free sizes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": {0: "batch"}},
        {"x": {-2: "batch"}},
        {"x": ("batch", None)},
        {"x": ["batch", 4]},
        ({0: "batch"},),
        {"x": {0: Dim("batch")}},
        {"x": {0: Dim("batch", min=1, max=64), 1: Dim.STATIC}},
    ],
    ids=str,
)
def test_ways_to_write_a_free_size(shapes):
    graph = capture(double, (torch.randn(3, 4),), dynamic_shapes=shapes)
    assert input_types(graph) == {"x": "f32[batch, 4]"}


@pytest.mark.parametrize("hint", [Dim.AUTO, Dim.DYNAMIC])
def test_a_size_without_a_name_is_named_after_its_axis(hint):
    graph = capture(double, (torch.randn(3, 4),), dynamic_shapes={"x": {0: hint}})
    assert input_types(graph) == {"x": "f32[x.0, 4]"}


@pytest.mark.parametrize("axes", [{"x": {0: "batch"}}, {"wave": {0: "batch"}}])
def test_dynamic_axes_of_the_older_exporter(axes):
    names = ["wave"] if "wave" in axes else None
    graph = capture(double, (torch.randn(3, 4),), dynamic_axes=axes, input_names=names)
    assert list(input_types(graph).values()) == ["f32[batch, 4]"]


@pytest.mark.parametrize("size", [0, 1, 2])
def test_the_examples_size_does_not_leak(size):
    def forward(x, y):
        return x + y, torch.cat([x, y], 1)

    x = torch.randn(size, 1)
    graph = capture(forward, (x, x.clone()), dynamic_shapes={"x": ("batch", "n"), "y": ("batch", "n")})
    assert output_types(graph) == {"output_0": "f32[batch, n]", "output_1": "f32[batch, 2*n]"}


def test_sums_of_sizes_are_followed_when_sizes_change():
    def forward(x, past, mask):
        return (torch.cat([past, x], 0) * mask).sum()

    inputs = (torch.randn(1), torch.randn(7), torch.randn(8))
    graph = capture(
        forward,
        inputs,
        dynamic_shapes={"x": ("seq",), "past": ("past",), "mask": (Dim.DYNAMIC,)},
    )
    assert input_types(graph)["mask"] == "f32[past + seq]"


def test_names_that_sympy_reserves_are_plain_names():
    graph = capture(lambda x: x.reshape(-1), (torch.randn(3, 4),), dynamic_shapes={"x": {0: "N", 1: "beta"}})
    assert output_types(graph) == {"output": "f32[N*beta]"}


def test_expressions_over_names():
    graph = capture(
        lambda x, y: (x[: y.shape[0]], y),
        (torch.randn(7, 2), torch.randn(3)),
        dynamic_shapes=({0: "2*k + 1"}, {0: "k"}),
    )
    assert input_types(graph) == {"x": "f32[2*k + 1, 2]", "y": "f32[k]"}


# -- what the model needs of sizes -----------------------------------------------------------------


def test_a_branch_on_a_size_is_kept_as_a_relation_with_its_line():
    def forward(x):
        if x.shape[0] <= 5:
            return x * 2
        return x * 3

    graph = capture(forward, (torch.randn(3),), dynamic_shapes=({0: "n"},))
    (relation,) = graph.relations
    assert str(relation) == "n <= 5"
    assert "if x.shape[0] <= 5" in (relation.where or "")


def test_a_question_whose_answer_changes_nothing_is_no_relation():
    def forward(x):
        if x.shape[0] > 1 and x.dim() == 7:
            return x * 2
        return x * 3

    assert capture(forward, (torch.randn(3),), dynamic_shapes=({0: "n"},)).relations == ()


def test_a_question_whose_answer_matters_at_one_is_a_relation():
    def forward(x):
        return x * 2 if x.shape[0] > 1 else x * 3

    graph = capture(forward, (torch.randn(3),), dynamic_shapes=({0: "n"},))
    assert [str(r) for r in graph.relations] == ["n > 1"]


def test_a_number_made_of_a_size_is_a_relation():
    def forward(x):
        return x.new_zeros(int(x.shape[0] * 0.5))

    graph = capture(forward, (torch.randn(16, 2),), dynamic_shapes=({0: "n"},))
    assert output_types(graph) == {"output": "f32[8]"}
    assert [str(r) for r in graph.relations] == ["n//2 == 8"]


def test_two_names_that_must_be_equal_are_a_relation():
    graph = capture(lambda x, y: x + y, (torch.randn(3), torch.randn(3)), dynamic_shapes=({0: "a"}, {0: "b"}))
    assert [str(r) for r in graph.relations] in (["b == a"], ["a == b"])


def test_bounds_of_a_dim_are_relations():
    graph = capture(double, (torch.randn(3),), dynamic_shapes=({0: Dim("n", min=2, max=9)},))
    assert [str(r) for r in graph.relations] == ["n >= 2", "n <= 9"]


def test_a_pinned_size_names_the_dim_the_value_and_the_line():
    def forward(x):
        return x + torch.ones(4)  # pins n

    with pytest.raises(PinnedDimError) as caught:
        capture(forward, (torch.randn(4),), dynamic_shapes=({0: "n"},))
    assert caught.value.dim == "n (axis 0 of x)"
    assert caught.value.value == "4"
    assert "pins n" in str(caught.value) or "x + torch.ones(4)" in str(caught.value)


def test_the_example_alone_does_not_pin():
    def forward(x):
        return x * 2 if x.shape[0] == 4 else x * 3  # the example happens to have 4

    graph = capture(forward, (torch.randn(4),), dynamic_shapes=({0: "n"},))
    assert [str(r) for r in graph.relations] == ["n != 4"]


# -- refused input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dynamic_shapes": {"y": {0: "n"}}}, "'y'"),
        ({"dynamic_shapes": {"x": {2: "n"}}}, "axis 2 of x"),
        ({"dynamic_shapes": {"x": ("n",)}}, "1 entries for x"),
        ({"dynamic_shapes": {"x": {0: 7}}}, "the example's is 3"),
        ({"dynamic_shapes": {"x": {0: "n("}}}, "'n('"),
        ({"dynamic_shapes": {"x": {0: 1.5}}}, "1.5"),
        ({"dynamic_shapes": {"x": "n"}}, "'n'"),
        ({"dynamic_shapes": ({0: "n"}, None)}, "2 entries for 1 inputs"),
        ({"input_names": ["a", "b"]}, "2 names"),
        ({"input_names": ["a"], "output_names": ["a"]}, "'a'"),
        ({"output_names": ["a", "a"]}, "'a' twice"),
        ({"output_names": ["a", "b"]}, "2 names"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ExportInputError) as caught:
        capture(double, (torch.randn(3, 4),), **options)
    assert message in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_wrong_arity_is_refused():
    with pytest.raises(ExportInputError, match="do not fit forward"):
        capture(double, (torch.randn(3), torch.randn(3)))


def test_an_unsupported_dtype_is_refused():
    with pytest.raises(ExportInputError, match="complex64"):
        capture(double, (torch.randn(3, dtype=torch.complex64),))


def test_something_that_is_no_model_is_refused():
    with pytest.raises(ExportInputError, match="is a int"):
        capture(3, ())  # type: ignore[arg-type]


def test_a_forward_that_raises_is_framed_with_the_users_line():
    def forward(x):
        raise RuntimeError("no weather today")

    with pytest.raises(CaptureError) as caught:
        capture(forward, (torch.randn(3),))
    assert "no weather today" in str(caught.value)
    assert 'raise RuntimeError("no weather today")' in str(caught.value)
    assert isinstance(caught.value.__cause__, RuntimeError)


# -- other doors -----------------------------------------------------------------------------------


def test_an_exported_program_comes_in():
    program = torch.export.export(
        nn.Linear(4, 2), (torch.randn(3, 4),), dynamic_shapes={"input": {0: Dim("batch")}}
    )
    graph = capture(program, dynamic_shapes={"input": {0: "batch"}})
    assert output_types(graph) == {"output": "f32[batch, 2]"}
    assert set(graph.state_names.values()) == {"weight", "bias"}


def test_a_symbolically_traced_module_comes_in():
    traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 2), nn.ReLU()))
    graph = capture(traced, (torch.randn(3, 4),), dynamic_shapes=({0: "batch"},))
    assert output_types(graph) == {"output": "f32[batch, 2]"}


def test_the_same_model_twice_gives_the_same_graph():
    model = nn.LSTM(3, 4, batch_first=True)
    shapes = {"input": {0: "batch", 1: "seq"}}
    types = [output_types(capture(model, (torch.randn(2, 5, 3),), dynamic_shapes=shapes)) for _ in range(3)]
    assert types[0] == types[1] == types[2]
    assert types[0]["output_0"] == "f32[batch, seq, 4]"


def test_a_cache_of_transformers_is_named_by_layer():
    transformers = pytest.importorskip("transformers")

    class Step(nn.Module):
        def forward(self, x, past_key_values):
            key, value = past_key_values.update(x, x + 1, 0)
            return key.sum() + value.sum(), past_key_values

    cache = transformers.DynamicCache()
    cache.update(torch.randn(2, 1, 3, 4), torch.randn(2, 1, 3, 4), 0)
    entry = {0: "batch", 2: "past"}
    graph = capture(
        Step(),
        (torch.randn(2, 1, 1, 4), cache),
        dynamic_shapes={"x": {0: "batch", 2: "seq"}, "past_key_values": [(entry, entry)]},
    )
    assert input_types(graph) == {
        "x": "f32[batch, 1, seq, 4]",
        "past_key_values.0.key": "f32[batch, 1, past, 4]",
        "past_key_values.0.value": "f32[batch, 1, past, 4]",
    }
    assert output_types(graph)["output_1.0.key"] == "f32[batch, 1, past + seq, 4]"
