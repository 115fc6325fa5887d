"""Cases of the operators that cut a tensor into overlapping windows, or add such windows up."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, ints, normal

aten = torch.ops.aten
F = torch.nn.functional

CASES = (
    Case(aten.unfold.default, (normal(7), 0, 3, 2), why="a vector"),
    Case(aten.unfold.default, (normal(2, 7, 3), 1, 3, 1), why="in the middle"),
    Case(aten.unfold.default, (normal(2, 7), -1, 7, 1), why="one window"),
    Case(aten.unfold.default, (normal(), 0, 1, 1), why="a number"),
    Case(aten.unfold.default, (ints(7, 2), 0, 2, 3), why="with gaps"),
    Case(lambda x: x.unfold(2, 2, 2).unfold(3, 2, 2), (normal(1, 3, 6, 4),), why="the patches of an image"),
    Case(aten.im2col.default, (normal(2, 3, 5, 6), [2, 3], [1, 1], [0, 0], [1, 1]), why="plain"),
    Case(
        aten.im2col.default,
        (normal(2, 3, 5, 6), [2, 2], [2, 1], [1, 2], [2, 1]),
        why="dilated, padded, in steps",
    ),
    Case(aten.im2col.default, (normal(3, 5, 6), [2, 2], [1, 1], [0, 0], [2, 2]), why="one image"),
    Case(F.unfold, (normal(2, 3, 5, 6), 3, 1, 1), why="the function"),
    Case(
        aten.col2im.default,
        (normal(2, 12, 20), [5, 6], [2, 2], [1, 1], [0, 0], [1, 1]),
        why="plain",
        dynamic={0: (0,)},
    ),
    Case(
        aten.col2im.default,
        (normal(2, 12, 27), [5, 6], [2, 2], [2, 1], [1, 2], [2, 1]),
        why="dilated, padded, in steps",
        dynamic=False,
    ),
    Case(
        aten.col2im.default,
        (normal(12, 20), [5, 6], [2, 2], [1, 1], [0, 0], [1, 1]),
        why="one image",
        dynamic=False,
    ),
    Case(
        aten.col2im.default,
        (normal(2, 12, 20, dtype=torch.float64), [5, 6], [2, 2], [1, 1], [0, 0], [1, 1]),
        why="double",
        dynamic=False,
        gap="onnxruntime",
    ),
    Case(
        lambda x: F.fold(F.unfold(x, 2), x.shape[2:], 2),
        (normal(2, 3, 5, 6),),
        why="fold undoes unfold, up to how often",
        dynamic={0: (0,)},
    ),
)
