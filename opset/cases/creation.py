"""Tensors made of sizes and numbers, and random ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, uniform

aten = torch.ops.aten

HALF, BF16, DOUBLE = torch.float16, torch.bfloat16, torch.float64


# -- functions of a size, x.shape[0] or x.shape[1] ---------------------------------------------------


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = name
    return function


OF_SIZES = (
    _named("arange_end", lambda x: torch.arange(x.shape[0])),
    _named("arange_start", lambda x: torch.arange(1, x.shape[1])),
    _named("arange_step", lambda x: torch.arange(0, 2 * x.shape[1], 2)),
    _named("arange_down", lambda x: torch.arange(x.shape[1] - 1, -1, -1)),
    _named("arange_floats", lambda x: torch.arange(x.shape[1], dtype=torch.float32)),
    _named("arange_half", lambda x: torch.arange(x.shape[1], dtype=torch.float16)),
    _named("arange_int32", lambda x: torch.arange(x.shape[1], dtype=torch.int32)),
    _named("arange_fractions", lambda x: torch.arange(0.5, x.shape[1], 1.0)),
    _named("zeros", lambda x: torch.zeros(x.shape[0], 3)),
    _named("ones", lambda x: torch.ones(x.shape[1], dtype=torch.int64)),
    _named("empty_filled", lambda x: torch.empty(x.shape[0], 2).fill_(1.5)),
    _named("tensor_of_a_size", lambda x: torch.tensor(x.shape[0])),
    _named("full", lambda x: torch.full((x.shape[0], x.shape[1]), -math.inf)),
    _named("full_bool", lambda x: torch.full((x.shape[0],), True)),
    _named("full_of_a_size", lambda x: torch.full((2,), x.shape[0])),
    _named("full_of_a_size_in_floats", lambda x: torch.full((x.shape[1],), x.shape[0], dtype=torch.float32)),
    _named("new_zeros", lambda x: x.new_zeros(x.shape[1], x.shape[0])),
    _named("new_ones", lambda x: x.new_ones((x.shape[1],), dtype=torch.bool)),
    _named("new_full", lambda x: x.new_full((x.shape[1],), 2.5)),
    _named("scalar_tensor", lambda x: torch.scalar_tensor(x.shape[0], dtype=torch.float32)),
    _named("eye", lambda x: torch.eye(x.shape[1])),
    _named("eye_of_two_sizes", lambda x: torch.eye(x.shape[0], x.shape[1], dtype=torch.int64)),
    _named("triangle", lambda x: torch.triu(torch.full((x.shape[1], x.shape[1]), -math.inf), diagonal=1)),
    _named("causal_mask", lambda x: torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()),
    _named("diagonal_of_a_size", lambda x: torch.tril(torch.ones(4, 4), diagonal=x.shape[0] - 3)),
)


def _of_sizes() -> Iterator[Case]:
    for function in OF_SIZES:
        yield Case(function, (normal(2, 3),), why="of a size")


RANGES = (
    Case(aten.arange.default, (5,), why="whole"),
    Case(aten.arange.default, (5.5,), why="a fraction"),
    Case(aten.arange.start, (2, 7), why="from a start"),
    Case(aten.arange.start_step, (0, 1, 0.1), why="tenths"),
    Case(aten.arange.start_step, (5, -5, -3), why="down"),
    Case(aten.arange.start_step, (0, 5000, 1), why="longer than a constant"),
    Case(aten.arange.start_step, (0.0, 500.0, 0.1), why="fractions longer than a constant"),
    Case(aten.arange.start_step, (0, 3000, 2), {"dtype": BF16}, why="bfloat16, longer than a constant"),
    Case(aten.arange.default, (5,), {"dtype": torch.float32}, why="whole numbers as floats"),
    Case(aten.arange.default, (5,), {"dtype": torch.uint8}, why="uint8"),
    Case(aten.arange.default, (0,), why="nothing"),
    Case(aten.linspace.default, (0, 1, 5), why="plain"),
    Case(aten.linspace.default, (-1.5, 2.0, 7), {"dtype": HALF}, why="half precision"),
    Case(aten.linspace.default, (0, 10, 4), {"dtype": torch.int64}, why="whole"),
    Case(aten.linspace.default, (3, 1, 1), why="one number"),
    Case(aten.linspace.Tensor_Tensor, (torch.tensor(0.5), torch.tensor(2.0), 6), why="tensors"),
    Case(aten.linspace.Tensor_Scalar, (torch.tensor(0.5), 2, 1), why="one number of a tensor"),
    Case(aten.linspace.Scalar_Tensor, (0, torch.tensor(2.0), 5), why="a tensor's end"),
    Case(aten.logspace.default, (0, 2, 5), why="by decomposition"),
)

FILLS = (
    Case(aten.full.default, ([2, 3], 1.5), why="plain"),
    Case(aten.full.default, ([2, 3], 7), why="whole numbers make int64"),
    Case(aten.full.default, ([2, 3], True), why="bools"),
    Case(aten.full.default, ([], 2.5), why="no axes"),
    Case(aten.full.default, ([0, 3], 2.5), why="nothing"),
    Case(aten.full.default, ([50, 50], -0.0), why="more than a constant"),
    Case(aten.full.default, ([2], 0.1), {"dtype": BF16}, why="bfloat16"),
    Case(aten.zeros.default, ([2, 3],), {"dtype": torch.int32}, why="int32"),
    Case(aten.ones.default, ([50, 50],), {"dtype": torch.bool}, why="more bools than a constant"),
    Case(aten.empty.memory_format, ([2, 3],), why="left open", compare="types"),
    Case(aten.empty_like.default, (normal(2, 3),), why="left open", compare="types"),
    Case(aten.new_empty.default, (normal(2, 3), [4]), why="left open", compare="types"),
    Case(aten.new_empty_strided.default, (normal(2, 3), [4, 2], [2, 1]), why="left open", compare="types"),
    Case(aten.zeros_like.default, (normal(2, 3),), why="plain"),
    Case(aten.zeros_like.default, (normal(2, 3),), {"dtype": torch.bool}, why="bools"),
    Case(aten.ones_like.default, (ints(2, 3),), why="integers"),
    Case(aten.ones_like.default, (torch.tensor(2.0),), why="no axes"),
    Case(aten.ones_like.default, (normal(2, 3, dtype=BF16),), why="bfloat16"),
    Case(aten.full_like.default, (normal(2, 3), -math.inf), why="minus infinity"),
    Case(aten.full_like.default, (ints(2, 3), 2.5), {"dtype": torch.float64}, why="a dtype"),
    Case(aten.full_like.default, (ints(2, 3, low=0, dtype=torch.uint8), 7), why="uint8"),
    Case(aten.new_full.default, (ints(2), [3], 2), why="the tensor's dtype"),
    Case(aten.new_ones.default, (normal(2, dtype=HALF), [3]), why="the tensor's dtype"),
    Case(aten.fill.Scalar, (normal(2, 3), 2), why="the tensor's dtype"),
    Case(aten.fill.Tensor, (normal(2, 3), torch.tensor(2)), why="a tensor"),
    Case(aten.scalar_tensor.default, (2.5,), {"dtype": HALF}, why="a dtype"),
    Case(aten.scalar_tensor.default, (True,), {"dtype": torch.bool}, why="a bool"),
)


def _triangles() -> Iterator[Case]:
    for packet in (aten.tril, aten.triu):
        yield Case(packet.default, (normal(2, 3, 4),), why="a batch")
        yield Case(packet.default, (normal(3, 4), -1), why="below the diagonal")
        yield Case(packet.default, (normal(3, 4), 2), why="above the diagonal")
        yield Case(packet.default, (normal(3, 4), 9), why="beyond the corner")
        yield Case(packet.default, (normal(3, 3) / 0,), why="infinities are dropped")
        for dtype in (torch.bool, torch.int64, torch.uint8, torch.int16, HALF, BF16, DOUBLE):
            yield Case(packet.default, (ints(3, 4, low=0).to(dtype),), why=str(dtype).removeprefix("torch."))
    for packet in (aten.tril_indices, aten.triu_indices):
        yield Case(packet.default, (3, 4), why="plain")
        yield Case(packet.default, (4, 3, -1), why="below the diagonal")
        yield Case(packet.default, (60, 60, 1), why="more than a constant")
    yield Case(aten.eye.default, (3,), why="square")
    yield Case(aten.eye.m, (2, 4), {"dtype": torch.bool}, why="wide, of bools")
    yield Case(aten.eye.m, (60, 50), {"dtype": torch.int32}, why="more than a constant")


RANDOM = (
    Case(aten.rand.default, ([2, 3],), why="plain", compare="types", opsets=(18, 23)),
    Case(aten.rand.default, ([2, 3],), {"dtype": HALF}, why="half precision", compare="types"),
    Case(aten.randn.default, ([2, 3],), {"dtype": DOUBLE}, why="double precision", compare="types"),
    Case(aten.rand_like.default, (normal(2, 3),), why="plain", compare="types"),
    Case(aten.randn_like.default, (normal(2, 3, dtype=BF16),), why="bfloat16", compare="types"),
    Case(aten.randint.default, (9, [2, 3]), why="plain", compare="types"),
    Case(aten.randint.low, (-9, 9, [2, 3]), {"dtype": torch.float32}, why="floats", compare="types"),
    Case(aten.randint_like.default, (normal(2, 3), 9), why="plain", compare="types"),
    Case(aten.randint_like.low_dtype, (ints(2, 3), 2, 9), why="bounds", compare="types"),
    Case(aten.randperm.default, (5,), why="plain", compare="types"),
    Case(aten.bernoulli.default, (uniform(2, 3),), why="probabilities", compare="types"),
    Case(aten.bernoulli.default, (bools(2, 3).float(),), why="certain ones: the values agree"),
    Case(aten.bernoulli.p, (normal(2, 3), 0.3), why="one probability", compare="types"),
    Case(aten.bernoulli.p, (normal(2, 3), 0.0), why="never: the values agree"),
    Case(aten.bernoulli.p, (normal(2, 3), 1.0), why="always: the values agree"),
    Case(
        _named("rand_of_sizes", lambda x: torch.rand(x.shape[0], 4)),
        (normal(2, 3),),
        why="free",
        compare="types",
    ),
    Case(
        _named("permutation", lambda x: torch.randperm(x.shape[1]).sort()[0]),
        (normal(2, 3),),
        why="all numbers",
    ),
)

CASES = (*_of_sizes(), *RANGES, *FILLS, *_triangles(), *RANDOM)
