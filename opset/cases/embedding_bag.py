"""Bags of embeddings."""

from __future__ import annotations

from typing import Any

import torch

from fx2onnx.opset.cases import Case, normal

aten = torch.ops.aten

SUM, MEAN, MAX = 0, 1, 2
INDICES = torch.tensor([4, 1, 7, 7, 2, 0, 3])
OFFSETS = torch.tensor([0, 2, 2, 5])


def bag(weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor, *rest: Any) -> torch.Tensor:
    """The bags alone: what else PyTorch returns is for the backward pass."""
    return aten.embedding_bag.padding_idx(weight, indices, offsets, False, *rest)[0]  # type: ignore[no-any-return]


def core_bag(
    weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor, mode: int, padding: int
) -> torch.Tensor:
    """The same, as the core operator."""
    made = aten._embedding_bag_forward_only.default(
        weight, indices, offsets, False, mode, False, None, False, padding
    )
    return made[0]  # type: ignore[no-any-return]


def module(indices: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Bags of equal size, as rows of a matrix."""
    return torch.nn.functional.embedding_bag(indices, weight, mode="sum")


W = normal(8, 3)
FREE = {1: (0,), 2: (0,)}  # how many indices, how many bags
MORE = (W, torch.tensor([1, 1, 5, 6, 0, 2, 2, 3, 4]), torch.tensor([0, 0, 3, 8, 9]))

CASES = (
    *(
        Case(
            bag, (W, INDICES, OFFSETS, mode, False, None, False, padding), why=why, dynamic=FREE, second=MORE
        )
        for mode, padding, why in (
            (SUM, None, "sums, an empty bag"),
            (MEAN, None, "means, an empty bag"),
            (MAX, None, "maxima, an empty bag"),
            (SUM, 2, "sums without padding"),
            (MEAN, 7, "means without padding"),
            (MAX, -1, "maxima without padding, counted from the end"),
        )
    ),
    Case(
        bag,
        (W, INDICES, OFFSETS, SUM, False, normal(7), False, None),
        why="sums of weighted samples",
        dynamic={1: (0,), 2: (0,), 3: (0,)},
        second=(*MORE, normal(9)),
    ),
    Case(
        bag,
        (W, INDICES, torch.tensor([0, 2, 2, 5, 7]), SUM, False, None, True, None),
        why="the last offset is the end",
        dynamic=FREE,
        second=(*MORE[:2], torch.tensor([0, 0, 3, 9])),
    ),
    Case(
        bag,
        (W, INDICES.int(), OFFSETS.int(), MEAN, False, None, False, 4),
        why="int32 indices",
        dynamic=FREE,
        second=(W, MORE[1].int(), MORE[2].int()),
    ),
    Case(
        bag, (W, INDICES[:0], OFFSETS[:2] * 0, SUM, False, None, False, None), why="no indices", dynamic=False
    ),
    Case(
        bag, (W.half(), INDICES, OFFSETS, MEAN, False, None, False, None), why="half precision", dynamic=False
    ),
    Case(bag, (W.double(), INDICES, OFFSETS, MAX, False, None, False, None), why="double", dynamic=False),
    Case(core_bag, (W, INDICES, OFFSETS, MEAN, -1), why="-1 is no padding", dynamic=FREE, second=MORE),
    Case(core_bag, (W, INDICES, OFFSETS, SUM, 0), why="padding", dynamic=FREE, second=MORE),
    Case(module, (torch.tensor([[1, 2, 3], [4, 4, 0]]), W), why="rows of a matrix", dynamic={0: (0,)}),
)
