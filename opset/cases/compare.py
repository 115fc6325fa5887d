"""Comparisons and logic."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, values

aten = torch.ops.aten

NAN, INF = math.nan, math.inf
A = values(1.0, 2.0, NAN, INF, -INF, 0.0, NAN)
B = values(1.0, 1.0, NAN, INF, INF, -0.0, 1.0)

COMPARISONS = (aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge)
ALIASES = (aten.not_equal, aten.less, aten.less_equal, aten.greater, aten.greater_equal)
LOGIC = (aten.logical_and, aten.logical_or, aten.logical_xor)


def _comparisons() -> Iterator[Case]:
    for packet in COMPARISONS:
        yield Case(packet.Tensor, (A, B), why="special values")
        yield Case(packet.Tensor, (ints(2, 3), ints(3)), why="integers")
        yield Case(packet.Tensor, (ints(9), normal(9)), why="integers and floats")
        yield Case(packet.Tensor, (bools(9), bools(9)), why="bools")
        yield Case(
            packet.Tensor, (ints(9, dtype=torch.int16), ints(9, dtype=torch.uint8, low=0)), why="two widths"
        )
        yield Case(
            packet.Tensor, (normal(9, dtype=torch.bfloat16), normal(9, dtype=torch.bfloat16)), why="bfloat16"
        )
        yield Case(
            packet.Tensor, (normal(9, dtype=torch.float16), normal(9)), why="half precision and float32"
        )
        yield Case(packet.Tensor, (torch.tensor(1.0), torch.tensor(2.0)), why="no axes")
        yield Case(packet.Scalar, (ints(9), 2), why="a number")
        yield Case(packet.Scalar, (ints(9), 2.5), why="integers and a float")
        yield Case(packet.Scalar, (bools(9), 1), why="bools and a number")
        yield Case(packet.Scalar, (ints(9, low=0, dtype=torch.uint8), 300), why="a number that wraps")
    for packet in ALIASES:
        yield Case(packet.Tensor, (normal(9), normal(9)), why="the other name")
        yield Case(packet.Scalar, (normal(9), 0.1), why="the other name, a number")


def _logic() -> Iterator[Case]:
    for packet in LOGIC:
        yield Case(packet.default, (bools(2, 9), bools(9)), why="bools")
        yield Case(packet.default, (ints(9, low=-1, high=2), values(*range(9)) > 4), why="integers and bools")
        yield Case(packet.default, (A, B), why="floats, NaN is true")
    yield Case(aten.logical_not.default, (bools(9),), why="bools")
    yield Case(aten.logical_not.default, (ints(9, low=-1, high=2),), why="integers")
    yield Case(aten.logical_not.default, (A,), why="floats, NaN is true")


def smaller_than_size(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(5) < x.shape[0]


CLOSE = values(1.0, 1.00001, 1.0001, NAN, INF, -INF, 0.0, 1e-9)
NEAR = values(1.0, 1.0, 1.0, NAN, INF, INF, 1e-9, 0.0)

OTHERS = (
    Case(smaller_than_size, (normal(2, 3),), why="a size on the right"),
    Case(aten.isclose.default, (CLOSE, NEAR), why="defaults"),
    Case(aten.isclose.default, (CLOSE, NEAR, 1e-3, 1e-8, True), why="NaN equals NaN"),
    Case(aten.isclose.default, (CLOSE, NEAR, 0.0, 1e-4), why="only absolute"),
    Case(aten.isclose.default, (CLOSE, NEAR, 0.0, 0.0), why="only equal"),
    Case(aten.isclose.default, (ints(9), ints(9), 0.5, 1.0), why="integers"),
)

CASES = (*_comparisons(), *_logic(), *OTHERS)
