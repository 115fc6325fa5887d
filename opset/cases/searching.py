"""Cases of the operators whose results are positions, or counts of elements."""

from __future__ import annotations

import math

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, values

aten = torch.ops.aten
nan, inf = math.nan, math.inf
i32, i64, f64 = torch.int32, torch.int64, torch.float64


NONZERO = (
    Case(lambda x: x.nonzero(), (bools(3, 4),), why="nonzero of bools"),
    Case(
        lambda x: x.nonzero(), (values(0, nan, -0.0, 1e-30, dtype=f64),), why="nonzero of doubles, NaN counts"
    ),
    Case(lambda x: x.nonzero(), (ints(5, low=0, high=2, dtype=torch.int8),), why="nonzero of int8"),
    Case(lambda x: x.nonzero(), (normal(),), why="nonzero of a number"),
    Case(lambda x: x.nonzero(), (values(0)[0],), why="nonzero of zero"),
    Case(lambda x: x.nonzero(), (normal(0, 3),), why="nonzero of an empty tensor"),
    Case(lambda x: torch.where(x > 0), (normal(3, 4),), why="where with one argument"),
    Case(lambda x: torch.where(x > 0), (normal(),), why="where with one number"),
    Case(lambda x: torch.argwhere(x > 0), (normal(3, 4),), why="argwhere"),
    Case(
        lambda x: x.nonzero(as_tuple=True)[1] + x.nonzero().shape[0],
        (bools(3, 4),),
        why="the number of places flows on",
    ),
    Case(lambda x, y: y[x.nonzero().squeeze(-1)], (bools(5), normal(5, 2)), why="rows by positions"),
    Case(aten.nonzero_static.default, (bools(3, 4),), {"size": 9}, why="more than there are, perhaps"),
    Case(
        aten.nonzero_static.default,
        (torch.ones(3, 4),),
        {"size": 2, "fill_value": 7},
        why="fewer than there are",
    ),
)

COUNTS = (
    Case(aten.one_hot.default, (ints(3, low=0, high=5), 5), why="a vector"),
    Case(aten.one_hot.default, (ints(2, 3, low=0, high=5), 7), why="a matrix, more classes"),
    Case(aten.one_hot.default, (ints(low=0, high=5), 5), why="one class"),
    Case(lambda x: x.bincount(), (values(1, 3, 3, 0, dtype=i64),), why="how often each number is there"),
    Case(
        lambda x: x.bincount(minlength=8),
        (values(1, 3, 3, 0, dtype=i64),),
        why="bincount of more numbers than there are",
    ),
    Case(lambda x, w: x.bincount(w), (values(1, 3, 3, 0, dtype=i64), normal(4)), why="bincount with weights"),
    Case(lambda x: x.bincount(), (ints(0),), why="bincount of nothing"),
    Case(
        aten.searchsorted.Tensor,
        (values(1, 3, 5, 7), values(0, 1, 4, 9, 7, nan, inf).reshape(7)),
        why="before equal ones",
        dynamic={1: (0,)},
    ),
    Case(
        aten.searchsorted.Tensor,
        (values(1, 3, 5, 7), values(0, 1, 4, 9, 7, nan)),
        {"right": True},
        why="after equal ones",
        dynamic={1: (0,)},
    ),
    Case(
        aten.searchsorted.Tensor,
        (values(1, 3, 5, 7), values(1, 3)),
        {"side": "right"},
        why="the side by name",
        dynamic={1: (0,)},
    ),
    Case(
        aten.searchsorted.Tensor,
        (normal(2, 5).sort()[0], normal(2, 3)),
        {"out_int32": True},
        why="rows in rows",
        dynamic={0: (0,), 1: (0, 1)},
    ),
    Case(
        aten.searchsorted.Tensor,
        (values(5, 1, 3), values(2, 4)),
        {"sorter": values(1, 2, 0, dtype=i64)},
        why="a sequence with its order",
        dynamic=False,
    ),
    Case(aten.searchsorted.Scalar, (values(1, 3, 5), 3), why="a number", dynamic=False),
    Case(aten.bucketize.Tensor, (normal(2, 3), values(-1, 0, 1)), why="floats", dynamic={0: (0, 1)}),
    Case(
        aten.bucketize.Tensor,
        (ints(2, 3), values(-1, 0, 1, dtype=i64)),
        {"right": True, "out_int32": True},
        why="integers",
        dynamic={0: (0, 1)},
    ),
    Case(aten.bucketize.Scalar, (0.5, values(-1, 0, 1)), why="a number", dynamic=False),
    Case(aten.isin.Tensor_Tensor, (ints(3, 4), ints(5)), why="integers"),
    Case(aten.isin.Tensor_Tensor, (ints(3, 4), ints(0)), why="among nothing"),
    Case(
        aten.isin.Tensor_Tensor,
        (values(1, nan, 2), values(nan, 2)),
        {"invert": True},
        why="NaN is not among NaN",
        dynamic=False,
    ),
    Case(aten.isin.Tensor_Tensor, (ints(4), values(1.5, 2)), why="dtypes are promoted", dynamic=False),
    Case(aten.isin.Tensor_Scalar, (ints(3, 4), 2), why="one number"),
    Case(aten.isin.Scalar_Tensor, (2, ints(3, 4)), why="is a number there"),
    Case(torch.diff, (normal(3, 4),), why="by decomposition"),
    Case(torch.diff, (normal(3, 4), 2, 0), why="the second difference, by decomposition"),
)

UNIQUE = (
    Case(lambda x: x.unique(), (ints(3, 4),), why="unique integers"),
    Case(
        lambda x: x.unique(return_inverse=True, return_counts=True),
        (ints(3, 4, dtype=i32),),
        why="unique of int32 with all results",
    ),
    Case(
        lambda x: x.unique(return_inverse=True, return_counts=True),
        (values(1, nan, 0, nan, 1, -inf),),
        why="unique floats: each NaN is distinct",
        dynamic=False,
    ),
    Case(lambda x: x.unique(return_counts=True), (normal(0),), why="unique of nothing"),
    Case(lambda x: x.unique(), (bools(5),), why="unique bools"),
    Case(lambda x: x.unique(), (normal(),), why="unique of one number"),
    Case(
        lambda x: x.unique(dim=0, return_inverse=True, return_counts=True),
        (ints(6, 2, low=0, high=2),),
        why="unique rows",
    ),
    Case(lambda x: x.unique(dim=1), (ints(2, 6, low=0, high=2).to(torch.float32),), why="unique columns"),
    Case(lambda x: x.unique_consecutive(), (ints(9, low=0, high=2),), why="unique_consecutive"),
    Case(
        lambda x: x.unique_consecutive(return_inverse=True, return_counts=True),
        (ints(3, 4, low=0, high=2),),
        why="unique_consecutive of a matrix with all results",
    ),
    Case(
        lambda x: x.unique_consecutive(return_inverse=True, return_counts=True),
        (ints(0),),
        why="unique_consecutive of nothing",
    ),
    Case(
        lambda x: x.unique_consecutive(return_inverse=True, return_counts=True, dim=0),
        (ints(8, 2, low=0, high=2),),
        why="unique_consecutive rows",
    ),
    Case(
        lambda x: x.unique().shape[0] + x.unique().sum(),
        (ints(9, low=0, high=3),),
        why="the number of unique elements flows on",
    ),
)

CASES = (*NONZERO, *COUNTS, *UNIQUE)
