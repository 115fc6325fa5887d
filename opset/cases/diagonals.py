"""Cases of the operators on the diagonals of matrices."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal

aten = torch.ops.aten

CASES = (
    Case(aten.diagonal.default, (normal(4, 4),), why="a square"),
    Case(aten.diagonal.default, (normal(3, 5),), why="wide", second=(normal(4, 9),)),
    Case(aten.diagonal.default, (normal(5, 3),), why="high", second=(normal(7, 4),)),
    Case(aten.diagonal.default, (normal(3, 5), 2), why="above", dynamic=False),
    Case(aten.diagonal.default, (normal(5, 3), -2), why="below", dynamic=False),
    Case(aten.diagonal.default, (normal(3, 5), 7), why="outside", dynamic=False),
    Case(aten.diagonal.default, (normal(5, 3), -5), why="below the last row", dynamic=False),
    Case(aten.diagonal.default, (normal(6, 6), 2), why="above, of a free square"),
    Case(aten.diagonal.default, (normal(6, 6), -1), why="below, of a free square"),
    Case(
        aten.diagonal.default,
        (normal(2, 3, 4, 3), 1, 1, -1),
        why="of axes that are apart",
        second=(normal(3, 4, 2, 4),),
    ),
    Case(aten.diagonal.default, (normal(3, 4), 1, 1, 0), why="of the transposed matrix", dynamic=False),
    Case(aten.diagonal.default, (normal(3, 4, 0), 0, 0, 1), why="an empty axis beside it", dynamic=False),
    Case(torch.diag, (normal(3),), why="a vector becomes a matrix"),
    Case(torch.diag, (normal(3, 3), 1), why="a matrix becomes a vector"),
    Case(torch.linalg.diagonal, (normal(2, 3, 3),), why="the last two axes"),
    Case(aten.trace.default, (normal(3, 3),), why="floats"),
    Case(aten.trace.default, (ints(3, 4),), why="integers", dynamic=False),
    Case(aten.diag_embed.default, (normal(2, 3),), why="a batch"),
    Case(aten.diag_embed.default, (normal(2, 3), 2), why="above"),
    Case(aten.diag_embed.default, (normal(2, 3), -1, 0, 2), why="below, in other axes"),
    Case(aten.diag_embed.default, (bools(3),), why="bools"),
    Case(aten.diagonal_scatter.default, (normal(4, 4), normal(4)), why="a square"),
    Case(aten.diagonal_scatter.default, (normal(3, 5), normal(3), 1), why="above", dynamic=False),
    Case(aten.diagonal_scatter.default, (normal(5, 3), normal(3), -1), why="below", dynamic=False),
    Case(
        aten.diagonal_scatter.default,
        (normal(5, 3), normal(2), -3),
        why="below, cut by the last row",
        dynamic=False,
    ),
    Case(
        aten.diagonal_scatter.default,
        (normal(2, 3, 3), normal(3, 2), 0, 0, 2),
        why="in axes that are apart",
        dynamic=False,
    ),
)
