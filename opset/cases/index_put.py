"""Cases of the operators that write to a tensor at places that other tensors say."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, values

aten = torch.ops.aten
i32, i64 = torch.int32, torch.int64


def distinct(*numbers: int) -> torch.Tensor:
    """Indices, each once: what is written twice has no defined value."""
    return values(*numbers, dtype=i64)


MASKS = (
    Case(
        aten.index_put.default,
        (normal(4, 5), [bools(4, 5)], values(2.0)[0]),
        why="a number where a mask holds",
    ),
    Case(
        aten.index_put.default,
        (normal(4, 5), [bools(4, 5)], values(2.0)),
        why="one value where a mask holds",
        dynamic={0: (0, 1), 1: (0, 1)},
    ),
    Case(aten.index_put.default, (normal(4, 5), [bools(4)], normal(5)), why="one row for all rows of a mask"),
    Case(
        aten.index_put.default,
        (normal(4, 5, 3), [bools(4, 5)], normal(1, 3)),
        why="one row for a mask of two axes",
    ),
    Case(
        aten.index_put.default,
        (normal(2, 4, 5, 3), [None, bools(4, 5)], normal(2, 1, 3)),
        why="a row for each batch and a mask in the middle",
    ),
    Case(
        aten.index_put.default,
        (normal(4, 5), [None, bools(5)], values(2.0)[0]),
        why="a number in the columns of a mask",
    ),
    Case(
        aten.index_put.default,
        (normal(4, 5), [bools(4, 5)], values(2.0)[0], True),
        why="a number is added where a mask holds",
    ),
    Case(
        aten.index_put.default, (bools(4, 5), [bools(4, 5)], bools(1)[0], True), why="bools are added by or"
    ),
    Case(aten.index_put.default, (bools(4, 5), [bools(4, 5)], bools(1)[0]), why="bools where a mask holds"),
    Case(
        lambda x, m, y: x.index_put((m,), y),
        (normal(4, 3), values(True, False, True, False, dtype=torch.bool), normal(2, 3)),
        why="a value for each row of a mask",
        dynamic={0: (1,), 2: (1,)},
    ),
    Case(
        lambda x, m, y: x.index_put((m,), y),
        (normal(2, 2, 3), values(True, False, True, False, dtype=torch.bool).reshape(2, 2), normal(2, 3)),
        why="a value for each place of a mask of two axes",
        dynamic={0: (2,), 2: (1,)},
    ),
    Case(
        lambda x, m: torch.index_put(x, (m,), x[m] * 2),
        (normal(5, 3), bools(5)),
        why="what is read by a mask is written back",
    ),
    Case(aten.masked_scatter.default, (normal(3, 4), bools(3, 4), normal(40)), why="elements in order"),
    Case(
        aten.masked_scatter.default, (normal(3, 4), bools(3, 1), normal(3, 4)), why="a mask for all columns"
    ),
    Case(aten.masked_scatter.default, (normal(), bools(), normal(1)), why="no axes"),
    Case(
        aten.masked_scatter.default,
        (normal(3, 4), bools(3, 4).logical_and(bools(3, 4).new_zeros(())), normal(2)),
        why="nowhere",
        dynamic=False,
    ),
    Case(
        lambda x, m, y: x.masked_scatter(m[..., None].expand_as(x), y),
        (
            normal(2, 3, 4),
            values(True, False, False, True, True, False, dtype=torch.bool).reshape(2, 3),
            normal(3, 4),
        ),
        why="image features among embeddings",
        dynamic={0: (2,), 2: (1,)},
    ),
)

INTEGERS = (
    Case(aten.index_put.default, (normal(5, 3), [distinct(0, -1)], normal(2, 3)), why="rows"),
    Case(aten.index_put.default, (normal(5, 3), [distinct(0, 2)], values(1.0)[0]), why="a number in rows"),
    Case(aten.index_put.default, (normal(5, 3), [distinct(0, 2)], normal(3)), why="one row in rows"),
    Case(
        aten.index_put.default,
        (normal(5, 3), [distinct(3)[0]], normal(3)),
        why="one row, an index without axes",
    ),
    Case(
        aten.index_put.default,
        (normal(5, 3), [None, distinct(2)[0]], normal(5)),
        why="one column, an index without axes",
    ),
    Case(
        aten.index_put.default,
        (normal(2, 6, 3), [None, distinct(0, 4)], normal(2, 2, 3)),
        why="in a middle axis",
    ),
    Case(
        aten.index_put.default,
        (normal(2, 6, 3), [None, distinct(0, 4)], normal(3)),
        why="one row in a middle axis",
    ),
    Case(
        aten.index_put.default,
        (normal(2, 5, 4), [None, distinct(0, 1), distinct(2, 3)], normal(2, 2)),
        why="pairs, not in front",
        dynamic={0: (0, 1, 2), 3: (0,)},
    ),
    Case(
        aten.index_put.default,
        (normal(5, 2, 4), [distinct(0, 1), None, distinct(2, 3)], normal(2, 2)),
        why="pairs, apart",
        dynamic={0: (0, 2)},
    ),
    Case(
        aten.index_put.default,
        (normal(5, 4), [distinct(0, 1)[:, None], distinct(2, 3, 0)], normal(2, 3)),
        why="rows times columns",
        dynamic=False,
    ),
    Case(
        aten.index_put.default,
        (normal(5, 4), [distinct(0, 1)[:, None], distinct(2, 3, 0)], normal(3)),
        why="rows times columns, values for columns",
        dynamic=False,
    ),
    Case(
        aten.index_put.default,
        (normal(5, 4), [distinct(0, 1, 0), distinct(2, 3, 2)], normal(3), True),
        why="sums of what falls on one place",
    ),
    Case(aten.index_put.default, (ints(5), [distinct(0, 1, 0)], ints(3), True), why="sums of integers"),
    Case(
        aten.index_put.default,
        (normal(5, 3, dtype=torch.float16), [distinct(0, 1)], normal(2, 3, dtype=torch.float16), True),
        why="sums of halves",
    ),
    Case(
        aten.index_put.default,
        (normal(5, 3, dtype=torch.bfloat16), [distinct(0, 1)], normal(2, 3, dtype=torch.bfloat16)),
        why="bfloat16",
    ),
    Case(aten.index_put.default, (normal(5, 3), [distinct(0, 2).to(i32)], normal(2, 3)), why="int32"),
    Case(
        aten._unsafe_index_put.default,
        (normal(5, 3), [distinct(0, 2)], normal(2, 3)),
        why="the form without checks",
    ),
    Case(
        lambda x, i, y: x.index_put((torch.arange(x.shape[0]), i), y),
        (normal(3, 5), distinct(4, 0, 2), normal(3)),
        why="one column of each row",
    ),
)

ROWS = (
    Case(aten.index_copy.default, (normal(5, 3), 0, distinct(4, 0), normal(2, 3)), why="rows"),
    Case(
        aten.index_copy.default,
        (normal(2, 3, 6, 4), 2, distinct(1, 5), normal(2, 3, 2, 4)),
        why="a static cache",
    ),
    Case(aten.index_copy.default, (normal(5), 0, distinct(3)[0], normal()), why="one element"),
    Case(aten.index_copy.default, (normal(), 0, distinct(0), normal(1)), why="no axes"),
    Case(
        aten.index_add.default, (normal(5, 3), 0, distinct(4, 0, 4), normal(3, 3)), why="rows", dynamic=False
    ),
    Case(
        aten.index_add.default,
        (normal(3, 5), 1, distinct(4, 0, 4), normal(3, 3)),
        {"alpha": 2},
        why="columns, a factor",
        dynamic=False,
    ),
    Case(aten.index_add.default, (ints(5), 0, distinct(4, 0, 4, 1), ints(4)), why="integers"),
    Case(aten.index_fill.int_Scalar, (normal(5, 3), 0, distinct(4, 0), 1.5), why="rows"),
    Case(
        aten.index_fill.int_Scalar,
        (normal(3, 5), -1, distinct(4, 0, -2), 1.5),
        why="columns, one counted from the end",
        dynamic={0: (0, 1)},
    ),
    Case(aten.index_fill.int_Scalar, (ints(4, 5), 1, distinct(3)[0], 7), why="an index without axes"),
    Case(
        aten.index_fill.int_Tensor, (normal(5, 3), 1, distinct(0, 1), normal()), why="the value is a tensor"
    ),
    Case(aten.index_fill.int_Scalar, (bools(5), 0, distinct(0, 1), True), why="bools"),
    Case(
        aten.put.default, (normal(3, 4), distinct(0, -1, 5), normal(3)), why="elements", dynamic={0: (0, 1)}
    ),
    Case(
        aten.put.default,
        (normal(3, 4), ints(2, 3, low=0, high=12), normal(2, 3), True),
        why="sums of elements",
        dynamic={0: (0, 1)},
    ),
)

CASES = (*MASKS, *INTEGERS, *ROWS)
