"""Cases of the operators that put tensors together, or repeat one."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, values

aten = torch.ops.aten
i32, i64 = torch.int32, torch.int64

JOINS = (
    Case(aten.cat.default, ([normal(2, 3), normal(4, 3)],), why="rows"),
    Case(aten.cat.default, ([normal(2, 3), normal(2, 1)], -1), why="columns"),
    Case(
        aten.cat.default,
        ([normal(2, 0), normal(2, 3)], 1),
        why="an empty part keeps its axis",
        dynamic={1: (0, 1), 0: (0,)},
    ),
    Case(aten.cat.default, ([normal(0), normal(2, 3)], 1), why="PyTorch skips a vector without elements"),
    Case(aten.cat.default, ([normal(0), normal(0)],), why="only empty parts"),
    Case(aten.cat.default, ([normal(2, 3)], 1), why="one part"),
    Case(aten.cat.default, ([normal(2), ints(3)],), why="dtypes are promoted"),
    Case(aten.cat.default, ([bools(2), ints(3, dtype=i32)],), why="bools become integers"),
    Case(aten.cat.default, ([bools(2), bools(3)],), why="bools"),
    Case(
        aten.cat.default,
        ([normal(2, dtype=torch.bfloat16), normal(3, dtype=torch.bfloat16)],),
        why="bfloat16",
    ),
    Case(
        lambda x, y: torch.cat([x.expand(y.shape[0], -1, -1), y], 1),
        (normal(1, 1, 4), normal(2, 3, 4)),
        why="a class token in front",
        dynamic={1: (0, 1)},
    ),
    Case(aten.concat.default, ([normal(2, 3), normal(4, 3)],), why="the other name"),
    Case(aten.stack.default, ([normal(2, 3), normal(2, 3)],), why="in front", dynamic=False),
    Case(aten.stack.default, ([normal(2, 3), normal(2, 3)],), why="in front, all sizes free"),
    Case(aten.stack.default, ([normal(2, 3), normal(2, 3), normal(2, 3)], 1), why="in the middle"),
    Case(aten.stack.default, ([normal(2, 3), normal(2, 3)], -1), why="at the end"),
    Case(aten.stack.default, ([normal(), normal(), normal()],), why="numbers"),
    Case(aten.stack.default, ([normal(2)], 1), why="one part"),
    Case(aten.stack.default, ([normal(2), ints(2)],), why="dtypes are promoted", dynamic=False),
    Case(torch.hstack, ([normal(2), normal(3)],), why="by decomposition"),
    Case(torch.vstack, ([normal(3), normal(3)],), why="by decomposition"),
    Case(torch.dstack, ([normal(2, 3), normal(2, 3)],), why="by decomposition"),
    Case(torch.column_stack, ([normal(2), normal(2, 3)],), why="by decomposition"),
    Case(torch.block_diag, (normal(2, 3), normal(4)), why="by decomposition", dynamic=False),
    Case(torch.cartesian_prod, (normal(2), normal(3)), why="by decomposition"),
    Case(
        lambda *x: torch.meshgrid(*x, indexing="ij"),
        (normal(3), normal(4)),
        why="meshgrid of rows and columns",
    ),
    Case(
        lambda *x: torch.meshgrid(*x, indexing="xy"),
        (normal(3), normal(4), normal(2)),
        why="meshgrid of x, y and z",
    ),
    Case(aten.meshgrid.default, ([normal(3), normal()],), why="a number among the vectors"),
)

REPEATS = (
    Case(aten.repeat.default, (normal(2, 3), [2, 1]), why="rows"),
    Case(aten.repeat.default, (normal(2, 3), [2, 1, 2]), why="a new axis in front"),
    Case(aten.repeat.default, (normal(1, 3), [4, 1]), why="an axis of size 1 is expanded"),
    Case(aten.repeat.default, (normal(3), [4, 1]), why="a new axis is expanded"),
    Case(aten.repeat.default, (normal(2, 3), [1, 1]), why="once is no change"),
    Case(aten.repeat.default, (normal(2, 3), [0, 1]), why="not at all"),
    Case(aten.repeat.default, (normal(), [3]), why="a number"),
    Case(aten.repeat.default, (normal(2, 3, dtype=torch.bfloat16), [2, 1]), why="bfloat16"),
    Case(lambda x, y: x.repeat(y.shape[0], 1, 1), (normal(1, 2, 3), normal(5)), why="repeat over the batch"),
    Case(
        lambda x, y: x.repeat(1, y.shape[0]), (normal(2, 3), normal(5)), why="repeat as often as a size says"
    ),
    Case(aten.tile.default, (normal(2, 3), [2]), why="fewer repeats than axes"),
    Case(aten.tile.default, (normal(3), [2, 2]), why="more repeats than axes"),
    Case(aten.repeat_interleave.self_int, (normal(2, 3), 2, 1), why="each column twice"),
    Case(aten.repeat_interleave.self_int, (normal(2, 3), 2, 0), why="each row twice"),
    Case(aten.repeat_interleave.self_int, (normal(2, 3), 3), why="of the flat tensor"),
    Case(
        aten.repeat_interleave.self_int,
        (normal(2, 1500), 2, 1),
        why="too many for constant indices",
        dynamic=False,
    ),
    Case(aten.repeat_interleave.self_int, (normal(), 3), why="a number"),
    Case(aten.repeat_interleave.self_int, (normal(2, 3), 0, 1), why="not at all"),
    Case(
        lambda x, y: x.repeat_interleave(y.shape[0], 0),
        (normal(2, 3), normal(5)),
        why="as often as a size says",
    ),
    Case(
        aten.repeat_interleave.self_Tensor,
        (normal(3, 2), ints(3, low=0, high=4), 0),
        why="each row its number of times",
    ),
    Case(
        aten.repeat_interleave.self_Tensor,
        (normal(3, 4), values(2, dtype=i64), -1),
        why="one number for all",
        dynamic={0: (0, 1)},
    ),
    Case(aten.repeat_interleave.self_Tensor, (normal(4), values(0, 0, 0, 0, dtype=i32)), why="no times"),
    Case(aten.repeat_interleave.Tensor, (values(2, 0, 3, dtype=i32),), why="the positions"),
    Case(aten.repeat_interleave.Tensor, (ints(0),), why="no positions"),
)

CASES = (*JOINS, *REPEATS)
