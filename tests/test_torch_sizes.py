"""Sizes of a trace in the user's names mean at every size what Python computes there."""

import math
import operator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental import _config as size_config
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from fx2onnx import dims
from fx2onnx.torch_sizes import SymbolNames
from fx2onnx.types import names_of, size_of

checked = settings(derandomize=True, max_examples=200, deadline=None)
HINTS = {"h": 17, "w": 29}

# Python functions of numbers, which torch's SymInts and SymFloats go through as well.
WHOLE = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda a, b: a // (2 + b * b),
    "mod": lambda a, b: a % (2 + b * b),
    "max": torch.sym_max,
    "min": torch.sym_min,
    "ceil of a quotient": lambda a, b: math.ceil(a / (2 + b * b)),
    "floor of a quotient": lambda a, b: math.floor((a + 1) / 3 - 0.5) + b,
    "trunc of a scaled size": lambda a, b: math.trunc(a * 1.5) - b,
    "round": lambda a, b: round(a / 4) + b,
    "scaled": lambda a, b: math.floor(a * 0.7) + b,
    "scaled sum": lambda a, b: math.ceil((a + b) * 0.3),
    "twice rounded": lambda a, b: math.floor(a / 49 * 49) + b,
    "arange": lambda a, b: math.ceil(a / 0.3) - b,
}
trees = st.recursive(
    st.sampled_from(sorted(HINTS)) | st.integers(-4, 9),
    lambda inner: st.tuples(st.sampled_from(sorted(WHOLE)), inner, inner),
    max_leaves=4,
)


def traced(names):
    """SymInts with these names."""
    env = ShapeEnv()
    made = {}
    for name, hint in names.items():
        source = ConstantSource(name)
        symbol = env.create_symbol(hint, source=source, dynamic_dim=DimDynamic.DYNAMIC)
        made[name] = env.create_symintnode(symbol, hint=hint, source=source)
        names_of(env).rename(symbol, dims.symbol(name))
    return made


def computed(tree, values):
    if isinstance(tree, tuple):
        return WHOLE[tree[0]](computed(tree[1], values), computed(tree[2], values))
    return values[tree] if isinstance(tree, str) else tree


@checked
@given(
    trees, st.lists(st.fixed_dictionaries(dict.fromkeys(HINTS, st.integers(2, 300))), min_size=6, max_size=6)
)
def test_a_traced_size_is_what_python_computes(tree, samples):
    with size_config.patch(backed_size_oblivious=True):
        size = size_of(computed(tree, traced(HINTS)))
    for values in samples:
        assert dims.evaluate(size, values) == computed(tree, values), (dims.show(size), values)
    assert dims.parse(dims.show(size)) == size


@pytest.mark.parametrize(
    ("compute", "shown"),
    [
        (lambda h: math.ceil(h / 2), "(h + 1)//2"),
        (lambda h: math.floor((h - 7) / 2) + 9, "(h + 1)//2 + 5"),
        (lambda h: math.trunc(h * 2.0), "2*h"),
        (lambda h: math.trunc(h * 1.5), "3*h//2"),
        (lambda h: math.trunc(h * 0.7), "floor(0.7*h)"),
        (lambda h: math.ceil((h + 1) * 0.3), "ceiling(0.3*float(h + 1))"),
        (lambda h: math.ceil(h / 0.3), "ceiling(truediv(h, 0.3))"),
        (lambda h: math.floor(h / 49 * 49), "floor(49.0*truediv(h, 49))"),
        (lambda h: round(h / 3), "round(h/3)"),
        (lambda h: -(-h // 2), "(h + 1)//2"),
        (lambda h: 2**h, "pow(2, h)"),
        (lambda h: h & 3, "bitand(h, 3)"),
        (lambda h: h >> 1, "h//2"),
        (lambda h: torch.sym_max(0, h - torch.sym_max(0, h - 5)), "Min(5, h)"),
        (lambda h: math.floor(torch.sym_sqrt(h)), "floor(sqrt(h))"),
    ],
)
def test_form(compute, shown):
    assert dims.show(size_of(compute(traced({"h": 17})["h"]))) == shown


def named(value):
    """A SymInt of a trace whose names know what can be negative."""
    return SymbolNames(value.node.shape_env).from_torch(value.node.expr)


def test_numbers_from_data_may_be_negative_and_sizes_from_data_may_not():
    with FakeTensorMode(shape_env=ShapeEnv()):
        number = torch.empty([], dtype=torch.int64).item()
        size = torch.ops.aten.nonzero.default(torch.empty([5])).shape[0]
    assert dims.show(named(number)) == "signed.u0"
    assert dims.show(named(torch.sym_max(number, 0))) == "Max(0, signed.u0)"
    assert dims.show(named(number // 2)) == "signed.u0//2"
    assert dims.at_least(named(size), 0)
    assert not dims.at_least(named(number), 0)


def test_a_number_from_data_that_is_checked_to_be_a_size_is_one():
    with FakeTensorMode(shape_env=ShapeEnv()):
        number = torch.empty([], dtype=torch.int64).item()
        torch._check(number >= 0)
    assert dims.show(named(number)) == "u0"


def test_what_sizes_have_no_words_for_gets_a_name():
    h = traced({"h": 17})["h"]
    size = size_of(torch.sym_ite(h > 3, h, 2 * h))
    assert not isinstance(size, int)
    assert size.is_Symbol
    assert size_of(torch.sym_ite(h > 3, h, 2 * h)) == size
