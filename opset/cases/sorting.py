"""Cases of the operators that order elements."""

from __future__ import annotations

import math

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, values

aten = torch.ops.aten
nan, inf = math.nan, math.inf


def distinct(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Values of which no two are equal: the order of equal ones is not defined."""
    order = ints(math.prod(shape), low=0, high=1 << 30).argsort()
    return order.reshape(shape).to(dtype)


CASES = (
    Case(aten.topk.default, (distinct(3, 6), 2), why="the largest", dynamic={0: (0,)}),
    Case(
        aten.topk.default, (distinct(6, 3), 2, 0, False), why="the smallest of the columns", dynamic={0: (1,)}
    ),
    Case(
        aten.topk.default,
        (distinct(3, 6), 2, -1, True, False),
        why="in any order",
        compare="types",
        dynamic=False,
    ),
    Case(aten.topk.default, (distinct(3, 6), 0), why="none", dynamic={0: (0,)}),
    Case(aten.topk.default, (distinct(3, 6, dtype=torch.int32), 6), why="all of int32", dynamic={0: (0,)}),
    Case(aten.topk.default, (distinct(3, 6, dtype=torch.bfloat16), 2), why="bfloat16", dynamic={0: (0,)}),
    Case(aten.topk.default, (normal(), 1), why="no axes"),
    Case(aten.topk.default, (values(1, nan, 3, -inf, inf), 4), why="NaN is the largest", dynamic=False),
    Case(
        lambda x, y: x.topk(y.shape[0]),
        (distinct(3, 6), normal(2)),
        why="topk of as many as a size says",
        dynamic={0: (0,), 1: (0,)},
    ),
    Case(
        lambda x: x.topk(min(4, x.shape[1])),
        (distinct(3, 6),),
        why="topk of at most as many as there are",
        dynamic={0: (0,)},
    ),
    Case(aten.sort.default, (normal(3, 6),), why="the last axis"),
    Case(aten.sort.default, (normal(3, 6), 0, True), why="columns, falling"),
    Case(
        aten.sort.stable, (ints(30, low=0, high=4),), {"stable": True}, why="equal elements keep their order"
    ),
    Case(
        aten.sort.stable,
        (ints(30, low=0, high=4),),
        {"stable": True, "descending": True},
        why="equal elements keep their order when falling",
    ),
    Case(
        aten.sort.default,
        (values(1, nan, 3, -inf, inf, nan, -0.0, 0.0),),
        why="NaN comes last",
        dynamic=False,
    ),
    Case(
        aten.sort.default,
        (values(1, nan, 3, -inf, inf, nan), -1, True),
        why="NaN comes first when falling",
        dynamic=False,
    ),
    Case(aten.sort.stable, (bools(8),), {"stable": True}, why="bools"),
    Case(aten.sort.stable, (ints(8, low=0, dtype=torch.uint8),), {"stable": True}, why="uint8"),
    Case(aten.sort.default, (normal(),), why="no axes"),
    Case(aten.sort.default, (normal(0, 3),), why="an empty tensor"),
    Case(aten.sort.default, (normal(3, 0),), why="an empty axis"),
    Case(aten.sort.default, (normal(300, 3), 0), why="many elements", dynamic=False),
    Case(aten.argsort.default, (distinct(3, 6), 1), why="positions"),
    Case(
        aten.argsort.stable,
        (ints(30, low=0, high=4),),
        {"stable": True, "descending": True},
        why="positions of equal elements",
    ),
    Case(aten.msort.default, (normal(3, 6),), why="along the first axis"),
    Case(aten.kthvalue.default, (distinct(3, 6), 2), why="the second smallest", dynamic={0: (0,)}),
    Case(
        aten.kthvalue.default,
        (distinct(6, 3), 6, 0, True),
        why="the last one, its axis kept",
        dynamic={0: (1,)},
    ),
    Case(aten.kthvalue.default, (normal(), 1), why="no axes"),
    Case(aten.nanmedian.dim, (distinct(3, 6), 1), why="the lower of two", dynamic={0: (0,)}),
    Case(
        aten.nanmedian.dim,
        (torch.stack([values(1, nan, 3, 2), values(nan, nan, 5, 4)]), 1, True),
        why="among the numbers, its axis kept",
        dynamic={0: (0,)},
    ),
    Case(
        aten.nanmedian.default,
        (torch.stack([values(1, nan, 3), values(nan, nan, 5)]),),
        why="of all numbers",
        dynamic=False,
    ),
    Case(aten.nanmedian.default, (values(nan, nan),), why="no number", dynamic=False),
    Case(aten.nanmedian.default, (ints(3, 5),), why="integers", dynamic=False),
)
