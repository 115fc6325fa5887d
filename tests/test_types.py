"""Types: one table of dtypes, values read in the user's names, torch's size expressions as ours."""

from __future__ import annotations

import gc

import onnx_ir as ir
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy import functions as torch_functions

from fx2onnx import dims
from fx2onnx.infer import mapped_sizes, same_size, same_type, sizes_in
from fx2onnx.text import show_type
from fx2onnx.text_sizes import Sizes, example_sizes
from fx2onnx.text_tokens import Words
from fx2onnx.torch_sizes import SymbolNames
from fx2onnx.types import (
    DTYPES,
    FROM_SHORT,
    SHORT,
    TORCH_DTYPES,
    SizeType,
    TensorType,
    names_of,
    size_of,
    tensor_type_of,
    type_of,
    type_of_value,
)

n, m = dims.symbol("n"), dims.symbol("m")
sizes = st.sampled_from([0, 1, 7, n, m, 2 * n + 1, dims.floordiv(n, 2), dims.maximum(n, m)])
tensors = st.builds(TensorType, st.sampled_from(list(SHORT)), st.lists(sizes, max_size=4).map(tuple))
numbers = st.one_of(
    sizes.map(lambda s: SizeType(int, s)), st.sampled_from([SizeType(float, None), SizeType(bool, None)])
)
types = st.recursive(
    tensors | numbers, lambda inner: st.lists(inner | st.none(), max_size=3).map(tuple), max_leaves=5
)


# -- dtypes ----------------------------------------------------------------------------------------


def test_the_table_of_dtypes_goes_both_ways():
    assert {TORCH_DTYPES[onnx]: onnx for onnx in TORCH_DTYPES} == DTYPES
    assert {FROM_SHORT[text]: text for text in FROM_SHORT} == SHORT
    assert set(DTYPES) <= set(SHORT)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_onnx_takes_a_dtype_as_torch_has_it(dtype):
    onnx = DTYPES[dtype]
    assert onnx.bitwidth == torch.empty(0, dtype=dtype).element_size() * 8
    assert onnx.is_floating_point() == dtype.is_floating_point
    assert isinstance(onnx, ir.DataType)


# -- types of values -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (torch.zeros(2, 0, 3, dtype=torch.bfloat16), "bf16[2, 0, 3]"),
        (torch.tensor(True), "bool[]"),
        (3, "size[3]"),
        (-1, "size[-1]"),
        (True, "bool"),
        (2.5, "float"),
        ((torch.zeros(1), None, [2]), "(f32[1], None, (size[2],))"),
        ((), "()"),
        (None, "None"),
        ("text", "None"),
    ],
    ids=str,
)
def test_types_of_values(value, shown):
    assert show_type(type_of_value(value)) == shown


def test_a_node_has_the_type_of_its_value():
    node = fx.Graph().placeholder("x")
    assert type_of(node) is None
    node.meta["val"] = torch.zeros(2, 3)
    assert tensor_type_of(node) == TensorType(torch.float32, (2, 3))
    node.meta["val"] = 3
    with pytest.raises(TypeError, match="x is no tensor but 3"):
        tensor_type_of(node)


def test_sizes_have_the_users_names():
    known = Sizes({"n": 7, "m": 11}, {"n", "m"})
    value = known.value(TensorType(torch.float32, (2 * n + 1, m, 4)))
    assert str(type_of_value(value)) == "f32[2*n + 1, m, 4]"
    with known.mode:
        made = value.reshape(-1)[: value.shape[1]]
    assert str(type_of_value(made.new_zeros(value.shape[1] // 2 + 1, 3))) == "f32[m//2 + 1, 3]"
    size = value.shape[0]
    assert str(type_of_value(size + 1)) == "2*n + 2"
    assert str(type_of_value(size * 0.5)) == "float(?)"
    assert str(type_of_value(size > 3)) == "bool(?)"


def test_a_name_can_be_an_expression_and_can_be_given_late():
    env = ShapeEnv()
    size = env.create_unbacked_symint()
    assert size_of(size) == dims.symbol(f"signed.{size}")  # it may be negative
    names_of(env).rename(size.node.expr, 2 * n + 1)
    assert size_of(size) == 2 * n + 1
    assert size_of(size * 2) == 4 * n + 2


def test_names_live_as_long_as_their_trace():
    env = ShapeEnv()
    assert names_of(env) is names_of(env)
    other = ShapeEnv()
    assert names_of(other) is not names_of(env)
    before = len(gc.get_referrers(SymbolNames))
    del other
    gc.collect()
    assert len(gc.get_referrers(SymbolNames)) <= before


# -- torch's size expressions ----------------------------------------------------------------------

s0, s1 = sympy.symbols("s0 s1", integer=True, positive=True)
F = torch_functions


@pytest.mark.parametrize(
    ("expr", "shown"),
    [
        (F.FloorDiv(s0 + 3, 2), "(n + 1)//2 + 1"),
        (F.CleanDiv(s0 * 4, 2), "2*n"),
        (F.CeilToInt(F.IntTrueDiv(s0, 2)), "(n + 1)//2"),
        (F.Mod(s0, 4), "n%4"),
        (F.PythonMod(s0 - 5, 4), "(n + 3)%4"),
        (F.ModularIndexing(s0, 2, 3), "(n//2)%3"),
        (F.Max(s0, s1), "Max(m, n)"),
        (F.Min(s0, 8) * 2, "2*Min(8, n)"),
        (F.FloorToInt(F.ToFloat(s0) * 2.5), "5*n//2"),
        (F.TruncToInt(F.IntTrueDiv(s0 * 3, 2)), "3*n//2"),
        (F.TruncToInt(F.IntTrueDiv(s0 - 5, 2)), "trunc(n/2 - 5/2)"),
        (F.PowByNatural(s0, sympy.Integer(2)), "n*n"),
        (sympy.Integer(4), "4"),
    ],
    ids=str,
)
def test_torchs_expressions_are_ours(expr, shown):
    names = SymbolNames()
    names.rename(s0, n)
    names.rename(s1, m)
    converted = names.from_torch(expr)
    assert dims.show(converted) == shown
    for a, b in [(1, 1), (2, 5), (7, 3), (12, 40)]:
        assert dims.evaluate(converted, {"n": a, "m": b}) == int(
            expr.xreplace({s0: sympy.Integer(a), s1: sympy.Integer(b)})
        )


def test_identity_is_left_out():
    names = SymbolNames()
    names.rename(s0, n)
    assert names.from_torch(F.Identity(s0) * 2 + 1) == 2 * n + 1


# -- text and comparison ---------------------------------------------------------------------------


@settings(derandomize=True, max_examples=100, deadline=None)
@given(types)
def test_types_read_back(type_):
    assert Words(show_type(type_)).type() == type_


@settings(derandomize=True, max_examples=60, deadline=None)
@given(types)
def test_a_fake_value_of_a_type_has_that_type(type_):
    made = Sizes({"n": 7, "m": 11}, {"n", "m"}).value(type_)
    assert same_type(type_of_value(made), type_)
    assert list(sizes_in(mapped_sizes(type_, lambda s: 3))) == [3] * len(list(sizes_in(type_)))


@settings(derandomize=True, max_examples=100, deadline=None)
@given(types, types)
def test_types_are_the_same_when_their_text_is(a, b):
    assert same_type(a, a)
    assert same_type(a, b) == (show_type(a) == show_type(b))


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ("Min(2*(w//2), w)", "2*(w//2)", True),
        ("Max(n, 0)", "n", True),
        ("n - n//2", "(n + 1)//2", True),
        ("n - n//2", "n//2", False),
        ("n*m", "n", False),
    ],
)
def test_sizes_whose_forms_do_not_tell_are_compared_on_numbers(a, b, answer):
    assert same_size(dims.parse(a), dims.parse(b)) is answer


# -- example sizes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shapes", "relations"),
    [
        (["n", "m", "2*n + 1", "n + m"], []),
        (["n"], [("n", "<=", "512"), ("n%8", "==", "0")]),
        (["n"], [("n", "<=", "3")]),
        (["n", "m"], [("n", "==", "2*m")]),
        (["a", "b", "c"], [("a", "==", "b"), ("b", "==", "c")]),
        (["h", "w"], [("h%32", "==", "0"), ("w%32", "==", "0"), ("h", ">", "w")]),
        (["n//2"], [("n", ">=", "1000")]),
        (["n - 20"], []),
        (["n"], [("n", "==", "1")]),
    ],
    ids=str,
)
def test_example_sizes_fit(shapes, relations):
    wanted = [(dims.parse(a), sign, dims.parse(b)) for a, sign, b in relations]
    found = example_sizes([dims.parse(s) for s in shapes], wanted)
    assert found is not None
    assert all((dims.evaluate(dims.parse(s), found) or 0) >= 1 for s in shapes)
    assert all(dims.holds(*r, found) for r in wanted)
    if not relations:
        assert len(set(found.values())) == len(found)
        assert min(found.values()) >= 5


def test_sizes_that_cannot_be_have_no_example():
    assert example_sizes([n], [(n, "<", 0)]) is None
    assert example_sizes([n], [(n, "<", m), (m, "<", n)]) is None


def test_fake_values_of_a_text_are_over_one_mode():
    known = Sizes({"n": 7}, {"n"})
    value = known.value(TensorType(torch.int64, (n,)))
    assert isinstance(known.mode, FakeTensorMode)
    assert value.fake_mode is known.mode
