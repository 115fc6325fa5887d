"""Cases of the operators that write elements along one axis."""

from __future__ import annotations

import math

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, values

aten = torch.ops.aten
nan, inf = math.nan, math.inf


def columns(rows: int, count: int, below: int) -> torch.Tensor:
    """For each row, distinct columns: what is written twice has no defined value."""
    return torch.stack([torch.roll(torch.arange(below), i)[:count] for i in range(rows)])


def some(*shape: int, below: int) -> torch.Tensor:
    """Indices, some of them more than once."""
    return ints(*shape, low=0, high=below)


def largest_only(x: torch.Tensor) -> torch.Tensor:
    """The two largest of each row, the rest minus infinity."""
    found, positions = x.topk(2)
    return torch.full_like(x, -inf).scatter(-1, positions, found)


WRITES = (
    Case(aten.scatter.src, (normal(3, 5), 1, columns(3, 2, 5), normal(3, 2)), why="columns", dynamic=False),
    Case(
        aten.scatter.src,
        (normal(3, 5), 1, columns(2, 2, 5), normal(3, 4)),
        why="of a larger source the first elements",
        dynamic=False,
    ),
    Case(aten.scatter.src, (normal(3, 5), -1, columns(3, 5, 5), normal(3, 5)), why="all columns"),
    Case(aten.scatter.src, (normal(), 0, values(0, dtype=torch.int64)[0], normal()), why="no axes"),
    Case(
        aten.scatter.value,
        (normal(3, 5), 1, columns(3, 2, 5), 1.5),
        why="a number",
        dynamic={0: (0, 1), 1: (0, 1)},
    ),
    Case(aten.scatter.value, (bools(3, 5), 1, columns(3, 2, 5), True), why="bools", dynamic=False),
    Case(aten.scatter.value, (ints(3, 5), 0, some(1, 5, below=3), 7), why="integers"),
    Case(aten.scatter.value, (normal(3, 5), 1, some(3, 0, below=5), 7), why="nothing"),
    Case(
        lambda x, i: torch.zeros_like(x).scatter(-1, i, 1.0),
        (normal(3, 5), columns(3, 2, 5)),
        why="scatter a mask of the chosen",
        dynamic={0: (0, 1), 1: (0,)},
    ),
    Case(
        lambda i: torch.zeros(i.shape[0], 5).scatter(1, i[:, None], 1.0),
        (some(4, below=5),),
        why="one hot by scatter",
    ),
    Case(
        largest_only,
        (normal(3, 5),),
        why="the two largest, the rest minus infinity",
        dynamic={0: (0,)},
    ),
)

SUMS = (
    Case(
        aten.scatter_add.default,
        (normal(3, 5), 1, some(3, 7, below=5), normal(3, 7)),
        why="more places than columns",
        dynamic=False,
    ),
    Case(
        aten.scatter_add.default,
        (normal(4), 0, some(9, below=4), normal(9)),
        why="a vector",
        dynamic={0: (0,)},
    ),
    Case(aten.scatter_add.default, (ints(4), 0, some(9, below=4), ints(9)), why="integers", dynamic=False),
    Case(
        aten.scatter_add.default,
        (normal(4), 0, some(6, below=4), normal(9)),
        why="of a longer source the first elements",
        dynamic={0: (0,)},
    ),
    Case(
        aten.scatter.reduce,
        (normal(3, 5), 1, some(3, 5, below=5), normal(3, 5)),
        {"reduce": "add"},
        why="sums",
    ),
    Case(
        aten.scatter.reduce,
        (normal(3, 5), 1, some(3, 5, below=5), normal(3, 5)),
        {"reduce": "multiply"},
        why="products",
    ),
    Case(
        aten.scatter.value_reduce,
        (normal(3, 5), 1, some(3, 5, below=5), 1.5),
        {"reduce": "multiply"},
        why="products with a number",
    ),
)

REDUCTIONS = tuple(
    Case(
        aten.scatter_reduce.two,
        (x, 0, index, src, reduce),
        {"include_self": include_self},
        why=f"{reduce} of {name}{'' if include_self else ' without x itself'}",
        dynamic=include_self,
    )
    for name, x, index, src in (
        ("floats", normal(4, 3), some(4, 3, below=3), normal(4, 3)),
        ("integers", ints(4, 3), some(4, 3, below=3), ints(4, 3)),
    )
    for reduce in ("sum", "prod", "mean", "amax", "amin")
    for include_self in (True, False)
)

NAN = (
    Case(
        aten.scatter_reduce.two,
        (values(nan, 1, 1, 1), 0, values(0, 1, 1, dtype=torch.int64), values(1, nan, 2), "amax"),
        why="a NaN wins over later numbers",
    ),
    Case(
        aten.scatter_reduce.two,
        (values(nan, 1, 1, 1), 0, values(0, 1, 1, dtype=torch.int64), values(1, nan, 2), "amin"),
        {"include_self": False},
        why="a NaN of x does not count when x does not",
    ),
    Case(
        aten.scatter_reduce.two,
        (values(-inf, 1, inf), 0, values(0, 1, 1, dtype=torch.int64), values(-inf, inf, 2), "amax"),
        why="infinities",
    ),
    Case(
        aten.index_reduce.default,
        (normal(4, 3), 0, some(5, below=4), normal(5, 3), "amax"),
        why="rows",
        dynamic=False,
    ),
    Case(
        aten.index_reduce.default,
        (normal(3, 4), 1, some(5, below=4), normal(3, 5), "mean"),
        {"include_self": False},
        why="columns",
        dynamic=False,
    ),
)

CASES = (*WRITES, *SUMS, *REDUCTIONS, *NAN)
