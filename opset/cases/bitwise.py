"""Bits of integers."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from fx2onnx.opset.cases import Case, bools, ints, values

aten = torch.ops.aten

INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


def _logic() -> Iterator[Case]:
    for packet in (aten.bitwise_and, aten.bitwise_or, aten.bitwise_xor):
        yield Case(packet.Tensor, (ints(2, 9), ints(9)), why="integers")
        yield Case(packet.Tensor, (bools(9), bools(9)), why="bools")
        yield Case(packet.Tensor, (bools(9), ints(9)), why="a bool and integers")
        yield Case(packet.Tensor, (ints(9, dtype=torch.int8), ints(9, dtype=torch.int32)), why="two widths")
        yield Case(packet.Scalar, (ints(9), 6), why="a number")
        yield Case(packet.Scalar, (bools(9), True), why="a bool")
        yield Case(packet.Scalar_Tensor, (6, ints(9)), why="a number first")
    for packet in (aten.__and__, aten.__or__, aten.__xor__):
        yield Case(packet.Tensor, (bools(9), bools(9)), why="the operator's name")
        yield Case(packet.Scalar, (ints(9), 5), why="the operator's name and a number")
    yield Case(aten.bitwise_not.default, (ints(9),), why="integers")
    yield Case(aten.bitwise_not.default, (ints(9, low=0, dtype=torch.uint8),), why="uint8")
    yield Case(aten.bitwise_not.default, (bools(9),), why="bools")


def _shifts() -> Iterator[Case]:
    left, right = aten.bitwise_left_shift, aten.bitwise_right_shift
    for packet in (left, right):
        for dtype in INTEGERS:
            width, name = torch.iinfo(dtype).bits, str(dtype).removeprefix("torch.")
            numbers = ints(9, low=-100 if dtype.is_signed else 0, high=100, dtype=dtype)
            yield Case(packet.Tensor_Scalar, (numbers, 2), why=f"{name} by a number")
            yield Case(packet.Tensor_Scalar, (numbers, width - 1), why=f"{name} by all but one")
            yield Case(packet.Tensor_Scalar, (numbers, width), why=f"{name} by its width")
            counts = torch.tensor([0, 1, 2, width - 2, width - 1, width, width + 9, 3, 4]).to(dtype)
            yield Case(packet.Tensor, (numbers, counts), why=f"{name} by counts in and out of range")
        yield Case(packet.Scalar_Tensor, (9, ints(9, low=0, high=8)), why="a number by counts")
        yield Case(packet.Tensor, (ints(3), values(-1, 0, 1, dtype=torch.int64)), why="a negative count")
    yield Case(aten.__lshift__.Scalar, (ints(9), 3), why="the operator's name")
    yield Case(aten.__rshift__.Scalar, (ints(9), 1), why="the operator's name")


CASES = (*_logic(), *_shifts())
