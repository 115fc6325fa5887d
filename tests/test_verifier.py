"""The verifier: each invariant is broken once, and is named with the node, the line and the graph around it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import fx, nn

from fx2onnx.capture import capture
from fx2onnx.errors import InvariantError
from fx2onnx.graph import Output, TypedGraph
from fx2onnx.passes import PIPELINE, default_pipeline
from fx2onnx.text_parser import parse
from fx2onnx.verifier import INVARIANTS, check, outputs_unchanged

aten = torch.ops.aten

TEXT = """
region Layer of "net.Layer"(x: f32[n, 4], w: f32[4, 4]) -> f32[n, 4]:
  a: f32[n, 4] = aten.linear.default(x, w)
  b: f32[n, 4] = aten.relu.default(a)
  return b

graph(x: f32[n, 4]) -> (f32[n, 4], i64[n]):
  w: f32[4, 4] = state["w"]
  y: f32[n, 4] = Layer(x, w)
  z: f32[n, 4] = Layer(y, w)
  m: (f32[n], i64[n]) = aten.max.dim(z, 1)
  i: i64[n] = m[1]
  return z as "values", i as "positions"
"""


@pytest.fixture
def graph() -> TypedGraph:
    return parse(TEXT)


def node_of(graph: TypedGraph, name: str) -> fx.Node:
    return next(n for m in reversed(list(graph.graphs())) for n in m.graph.nodes if n.name == name)


def broken(graph: TypedGraph) -> tuple[str, str]:
    """The invariant that does not hold, and the whole message."""
    with pytest.raises(InvariantError) as caught:
        check(graph, stage="some_pass")
    text = str(caught.value)
    (sentence,) = [s for s, _ in INVARIANTS if f'after some_pass, "{s}" does not hold' in text]
    return sentence, text


def test_a_sound_graph_passes(graph):
    check(graph, stage="parse")


def test_the_graph_is_not_changed(graph):
    before = str(graph)
    guards = len(node_of(graph, "x").meta["val"].fake_mode.shape_env.guards)
    check(graph, stage="parse")
    assert str(graph) == before
    assert len(node_of(graph, "x").meta["val"].fake_mode.shape_env.guards) == guards


# -- structure -------------------------------------------------------------------------------------


def test_an_argument_that_comes_later(graph):
    z, y = node_of(graph, "z"), node_of(graph, "y")
    y.args = (z, y.args[1])
    z.args = (node_of(graph, "x"), z.args[1])
    y.args = (z, y.args[1])
    sentence, text = broken(graph)
    assert sentence == "every argument is made before it is read"
    assert "y reads z, which comes later" in text
    assert "  > y: f32[n, 4] = Layer(z, w)" in text


def test_an_argument_of_another_graph(graph):
    node_of(graph, "m").args = (node_of(graph, "b"), 1)
    assert "which is of another graph" in broken(graph)[1]


def test_a_region_that_is_not_there(graph):
    node_of(graph, "y").target = "Gone"
    assert broken(graph)[0] == "what is called is there"


def test_a_module_that_is_no_region(graph):
    graph.module.Other = nn.ReLU()
    node_of(graph, "y").target = "Other"
    assert "calls a ReLU, not a region" in broken(graph)[1]


def test_a_method_call(graph):
    with graph.module.graph.inserting_before(node_of(graph, "m")):
        graph.module.graph.call_method("relu", (node_of(graph, "z"),)).meta["val"] = node_of(graph, "z").meta[
            "val"
        ]
    assert "is a method call" in broken(graph)[1]


def test_a_placeholder_that_nobody_knows(graph):
    del graph.state["w"]
    sentence, text = broken(graph)
    assert sentence == "every placeholder is an input or a state"
    assert "w is neither an input nor a state" in text


def test_a_state_without_a_placeholder(graph):
    graph.state["v"] = torch.zeros(1)
    assert "v is a state and has no placeholder" in broken(graph)[1]


def test_an_input_that_is_also_state(graph):
    graph.state["x"] = torch.zeros(1)
    assert "the placeholder x is named 2 times" in broken(graph)[1]


def test_an_output_with_an_inputs_name(graph):
    changed = replace(graph, outputs=(replace(graph.outputs[0], name="x"), graph.outputs[1]))
    sentence, text = broken(changed)
    assert sentence == "names are unique"
    assert "2 inputs or outputs are called 'x'" in text


def test_two_nodes_of_one_name(graph):
    node_of(graph, "z").name = "y"
    assert "2 nodes are called 'y'" in broken(graph)[1]


def test_fewer_results_than_outputs(graph):
    changed = replace(graph, outputs=(*graph.outputs, Output("more", leaf=2)))
    sentence, text = broken(changed)
    assert sentence == "the results are the described outputs"
    assert "returns 2 values, 3 are described" in text


def test_constant_outputs_need_no_value(graph):
    check(replace(graph, outputs=(*graph.outputs, Output(None, constant=3, leaf=2))), stage="capture")


def test_a_result_that_is_no_tensor(graph):
    graph.module.graph.output_node().args = ((node_of(graph, "z"), node_of(graph, "m")),)
    assert "positions is no tensor" in broken(graph)[1]


def test_a_result_that_is_no_tuple(graph):
    graph.module.graph.output_node().args = (node_of(graph, "z"),)
    assert "something else than a tuple" in broken(graph)[1]


# -- types -----------------------------------------------------------------------------------------


def test_a_node_without_a_value(graph):
    del node_of(graph, "a").meta["val"]
    sentence, text = broken(graph)
    assert sentence == "every value has a type"
    assert "a has no value" in text


def test_a_state_whose_tensor_has_another_type(graph):
    graph.state["w"] = torch.zeros(4, 5)
    sentence, text = broken(graph)
    assert sentence == "state has its tensor's type"
    assert "w is f32[4, 4], its tensor f32[4, 5]" in text


def test_a_stored_type_that_pytorch_does_not_make(graph):
    node_of(graph, "b").target = aten.isnan.default
    sentence, text = broken(graph)
    assert sentence == "the stored type is the inferred type"
    assert "b is f32[n, 4], PyTorch makes bool[n, 4]" in text


def test_a_stored_size_that_pytorch_does_not_make():
    graph = parse("graph(x: f32[n, 4]) -> f32[4, n]:\n  y: f32[4, n] = aten.t.default(x)\n  return y")
    node_of(graph, "y").target = aten.relu.default
    assert "y is f32[4, n], PyTorch makes f32[n, 4]" in broken(graph)[1]


def test_a_size_by_pythons_operators():
    graph = parse(
        "graph(x: f32[n]) -> f32[2*n]:\n  k: size[n] = aten.sym_size.int(x, 0)\n"
        "  d: size[2*n] = mul(k, 2)\n  y: f32[2*n] = aten.zeros.default([d])\n  return y"
    )
    check(graph, stage="parse")
    node_of(graph, "d").args = (node_of(graph, "k"), 3)
    assert "d is size[2*n], PyTorch makes size[3*n]" in broken(graph)[1]


def test_an_item_that_is_another_one(graph):
    node_of(graph, "i").args = (node_of(graph, "m"), 0)
    assert "i is i64[n], the item f32[n]" in broken(graph)[1]
    node_of(graph, "i").args = (node_of(graph, "m"), 2)
    assert "item 2 of (f32[n], i64[n])" in broken(graph)[1]


def test_arguments_that_do_not_fit(graph):
    node_of(graph, "a").args = node_of(graph, "a").args[:1]
    assert "does not take the arguments of a" in broken(graph)[1]


def test_equal_calls_are_looked_at_once_and_different_ones_each():
    lines = "".join(f"  y{i}: f32[n] = aten.relu.default({f'y{i - 1}' if i else 'x'})\n" for i in range(50))
    graph = parse(f"graph(x: f32[n]) -> f32[n]:\n{lines}  return y49")
    check(graph, stage="parse")
    node_of(graph, "y40").target = aten.isfinite.default
    assert "y40 is f32[n], PyTorch makes bool[n]" in broken(graph)[1]


def test_sizes_that_depend_on_data_are_compared_up_to_names():
    text = (
        "graph(x: f32[n], y: f32[n]) -> (i64[a, 1], i64[b, 1]):\n"
        "  p: i64[a, 1] = aten.nonzero.default(x)\n  q: i64[b, 1] = aten.nonzero.default(y)\n  return p, q"
    )
    graph = parse(text)
    check(graph, stage="parse")
    check(graph, stage="again")
    node_of(graph, "p").target = aten.argwhere.default
    check(graph, stage="the same type")
    node_of(graph, "p").meta["val"] = node_of(graph, "p").meta["val"].new_empty(3, 2)
    assert "PyTorch makes i64[" in broken(graph)[1]


def test_a_region_call_that_does_not_fit(graph):
    node_of(graph, "y").args = (node_of(graph, "w"), node_of(graph, "w"))
    sentence, text = broken(graph)
    assert sentence == "region calls fit their regions"
    assert "y passes f32[4, 4] as x: f32[n, 4]" in text
    node_of(graph, "y").args = (node_of(graph, "x"),)
    assert "y passes 1 values, the region takes 2" in broken(graph)[1]


def test_a_region_call_with_another_result(graph):
    node_of(graph, "y").meta["val"] = node_of(graph, "i").meta["val"]
    assert "y is i64[n], the region makes f32[n, 4]" in broken(graph)[1]


# -- mutation --------------------------------------------------------------------------------------

WRITES = (
    "graph(x: f32[n]) -> f32[n]:\n  a: f32[n] = aten.exp.default(x)\n"
    "  b: f32[n] = aten.relu_.default(a)\n  return b"
)


def test_a_write():
    sentence, text = broken(parse(WRITES))
    assert sentence == "no mutation is left"
    assert "b writes to its arguments (aten.relu_.default)" in text


def test_a_write_before_functionalize_is_fine():
    check(parse(WRITES), stage="capture", functional=False)


def test_metadata_operators_leave_the_graph_as_it_is():
    graph = parse(
        "graph(x: f32[n, 4]) -> f32[4, n]:\n  a: f32[n, 4] = aten.exp.default(x)\n"
        "  b: f32[4, n] = aten.t_.default(a)\n  return b"
    )
    for _ in range(2):
        check(graph, stage="capture", functional=False)
    assert node_of(graph, "a").meta["val"].shape[1] == 4


# -- pipelines -------------------------------------------------------------------------------------


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)) for _ in range(3))
        )
        self.norm = nn.BatchNorm1d(4)
        self.lstm = nn.LSTM(4, 3, batch_first=True)

    def forward(self, x, mask):
        y = self.norm(self.layers(x))
        z, _ = self.lstm(y[None].expand(2, -1, -1))
        y = torch.cond(mask.any(), lambda a: a + 1, lambda a: a * 2, (y,))
        return y, z[:, : x.shape[0] // 2], torch.nonzero(mask)


@pytest.fixture(scope="module")
def model() -> TypedGraph:
    inputs = (torch.randn(6, 4), torch.tensor([True, False] * 3))
    return capture(Model().eval(), inputs, dynamic_shapes={"x": {0: "n"}, "mask": {0: "n"}})


def test_every_pass_keeps_the_invariants_and_the_results(model):
    check(model, stage="capture", functional=False)
    graph, functional = model, False
    for step in PIPELINE:
        before, graph = graph, step(graph)
        functional = functional or step.name == "functionalize"
        check(graph, stage=step.name, functional=functional)
        for n in (6, 1):
            outputs_unchanged(before, graph, (torch.randn(n, 4), torch.rand(n) > 0.5))


def test_the_users_line_is_named(model):
    graph = default_pipeline()(model)
    node = next(n for n in graph.module.graph.nodes if n.target is aten.nonzero.default)
    node.meta["val"] = node.args[0].meta["val"]
    text = broken(graph)[1]
    assert "test_verifier.py" in text
    assert "torch.nonzero(mask)" in text


# -- results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("aten.exp.default(x)", "aten.sin.default(x)", "result 0 has changed: values differ by"),
        ("aten.exp.default(x)", "aten.exp.default(x)\n  y_: f32[n] = aten.neg.default(x)", None),
        ("return y", "return x", "result 0 has changed: values differ by"),
        ("return y, i", "return y", "result 1 is gone"),
        ("(x, -1)", "(x, 0, False)", None),
        ("aten.argmax.default(x, -1)", "aten.argmin.default(x, -1)", "result 1 has changed: other values"),
    ],
)
def test_results_are_compared(old, new, message):
    text = (
        "graph(x: f32[n]) -> (f32[n], i64[]):\n  y: f32[n] = aten.exp.default(x)\n"
        "  i: i64[] = aten.argmax.default(x, -1)\n  return y, i"
    )
    changed = text.replace(old, new)
    if new == "return y":
        changed = changed.replace("(f32[n], i64[]):", "f32[n]:")
    graphs = parse(text), parse(changed)
    inputs = (torch.tensor([0.5, 2.0, -1.0]),)
    if message is None:
        outputs_unchanged(*graphs, inputs)
        return
    with pytest.raises(InvariantError, match=message):
        outputs_unchanged(*graphs, inputs)


def test_results_that_are_not_finite_are_compared_too():
    text = "graph(x: f32[n]) -> f32[n]:\n  y: f32[n] = aten.log.default(x)\n  return y"
    other = text.replace(
        "aten.log.default(x)", "aten.log.default(x)\n  z: f32[n] = aten.nan_to_num.default(y)"
    )
    inputs = (torch.tensor([0.0, -1.0, 1.0]),)
    outputs_unchanged(parse(text), parse(text), inputs)
    with pytest.raises(InvariantError, match="has changed"):
        outputs_unchanged(parse(text), parse(other.replace("return y", "return z")), inputs)


def test_inputs_and_state_are_not_changed_by_a_run():
    text = (
        'graph(x: f32[2]) -> f32[2]:\n  w: f32[2] = state["w"]\n  y: f32[2] = aten.add_.Tensor(x, w)\n'
        "  z: f32[2] = aten.add_.Tensor(w, y)\n  return z"
    )
    graph = parse(text, state={"w": torch.ones(2)})
    x = torch.zeros(2)
    outputs_unchanged(graph, graph.copy(), (x,))
    assert x.tolist() == [0, 0]
    assert graph.state["w"].tolist() == [1, 1]
