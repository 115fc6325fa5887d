"""Matrix products and what is made of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal

aten = torch.ops.aten

HALF, BF16, DOUBLE = torch.float16, torch.bfloat16, torch.float64
NAN = math.nan

PRODUCTS = (
    Case(aten.mm.default, (normal(2, 3), normal(3, 4)), why="matrices"),
    Case(aten.mm.default, (normal(2, 3, dtype=HALF), normal(3, 4, dtype=HALF)), why="half precision"),
    Case(aten.mm.default, (normal(2, 3, dtype=BF16), normal(3, 4, dtype=BF16)), why="bfloat16"),
    Case(aten.mm.default, (normal(2, 3, dtype=DOUBLE), normal(3, 4, dtype=DOUBLE)), why="double precision"),
    Case(aten.mm.default, (ints(2, 3), ints(3, 4)), why="integers"),
    Case(
        aten.mm.default,
        (ints(2, 3, low=-99, high=99, dtype=torch.int8), ints(3, 4, dtype=torch.int8)),
        why="int8 wraps",
    ),
    Case(aten.mm.default, (normal(2, 0), normal(0, 4)), why="sums of nothing"),
    Case(aten.bmm.default, (normal(5, 2, 3), normal(5, 3, 4)), why="a batch"),
    Case(aten.matmul.default, (normal(3), normal(3)), why="vectors"),
    Case(aten.matmul.default, (normal(2, 3), normal(3)), why="a matrix and a vector"),
    Case(aten.matmul.default, (normal(3), normal(3, 4)), why="a vector and a matrix"),
    Case(aten.matmul.default, (normal(5, 2, 3), normal(3, 4)), why="a batch and a matrix"),
    Case(aten.matmul.default, (normal(5, 1, 2, 3), normal(6, 3, 4)), why="batches that broadcast"),
    Case(aten.matmul.default, (normal(5, 2, 3), normal(3)), why="a batch and a vector"),
    Case(aten.mv.default, (normal(2, 3), normal(3)), why="a matrix and a vector"),
    Case(aten.dot.default, (normal(3), normal(3)), why="vectors"),
    Case(aten.vdot.default, (normal(3), normal(3)), why="vectors"),
    Case(aten.inner.default, (normal(2, 3), normal(4, 3)), why="by decomposition"),
    Case(aten.outer.default, (normal(2), normal(3)), why="vectors"),
    Case(aten.outer.default, (ints(2), normal(3)), why="integers and floats"),
    Case(aten.outer.default, (bools(2), bools(3)), why="bools"),
    Case(aten.kron.default, (normal(2, 3), normal(4, 2)), why="by decomposition", dynamic=False),
    Case(aten.tensordot.default, (normal(2, 3, 4), normal(4, 3, 5), [1, 2], [1, 0]), why="by decomposition"),
    Case(aten.linalg_vecdot.default, (normal(2, 3), normal(2, 3)), why="by decomposition"),
    Case(
        aten.linalg_multi_dot.default,
        ([normal(2, 3), normal(3, 4), normal(4, 5)],),
        why="by decomposition",
        dynamic=False,
    ),
    Case(aten.linalg_matrix_power.default, (normal(3, 3), 3), why="by decomposition"),
    Case(aten.chain_matmul.default, ([normal(2, 3), normal(3, 4)],), why="by decomposition", dynamic=False),
)

X, W, B = normal(2, 3), normal(4, 3), normal(4)

LINEAR = (
    Case(aten.linear.default, (X, W, B), why="matrices: one Gemm"),
    Case(aten.linear.default, (X, W), why="no bias: one Gemm"),
    Case(aten.linear.default, (normal(5, 2, 3), W, B), why="a batch"),
    Case(aten.linear.default, (normal(5, 2, 3), W), why="a batch without bias"),
    Case(aten.linear.default, (normal(3), W, B), why="a vector"),
    Case(aten.linear.default, (normal(3), W), why="a vector without bias"),
    Case(aten.linear.default, (X, normal(3)), why="one row of weights, a vector"),
    Case(aten.linear.default, (X.to(HALF), W.to(HALF), B.to(HALF)), why="half precision"),
    Case(aten.linear.default, (X.to(BF16), W.to(BF16), B.to(BF16)), why="bfloat16"),
    Case(
        aten.linear.default, (normal(5, 2, 3, dtype=BF16), W.to(BF16), B.to(BF16)), why="a batch in bfloat16"
    ),
    Case(aten.linear.default, (X.double(), W.double(), B.double()), why="double precision"),
    Case(aten.linear.default, (ints(2, 3), ints(4, 3), ints(4)), why="integers"),
    Case(aten.linear.default, (normal(0, 3), W, B), why="an empty batch"),
)

M = normal(2, 4)

SUMS = (
    Case(aten.addmm.default, (M, X, W.t().contiguous()), why="plain"),
    Case(aten.addmm.default, (B, X, W.t().contiguous()), why="a row"),
    Case(aten.addmm.default, (normal(2, 1), X, W.t().contiguous()), why="a column"),
    Case(aten.addmm.default, (torch.tensor(2.0), X, W.t().contiguous()), why="a number"),
    Case(aten.addmm.default, (M, X, W.t().contiguous()), {"alpha": 0.5, "beta": 2}, why="factors"),
    Case(aten.addmm.default, (M * NAN, X, W.t().contiguous()), {"beta": 0}, why="beta 0 drops NaN"),
    Case(aten.addmm.default, (ints(2, 4), ints(2, 3), ints(3, 4)), {"alpha": 2, "beta": 3}, why="integers"),
    Case(aten.addmm.default, (M.to(BF16), X.to(BF16), W.t().contiguous().to(BF16)), why="bfloat16"),
    Case(aten.addmv.default, (normal(2), X, normal(3)), {"alpha": 0.5, "beta": 2}, why="factors"),
    Case(aten.baddbmm.default, (normal(5, 2, 4), normal(5, 2, 3), normal(5, 3, 4)), why="plain"),
    Case(
        aten.baddbmm.default,
        (normal(1, 4), normal(5, 2, 3), normal(5, 3, 4)),
        {"beta": 0.3, "alpha": 2},
        why="factors, and a row",
    ),
    Case(
        aten.baddbmm.default,
        (normal(5, 2, 4) * NAN, normal(5, 2, 3), normal(5, 3, 4)),
        {"beta": 0},
        why="beta 0",
    ),
    Case(
        aten.addbmm.default,
        (normal(2, 4), normal(5, 2, 3), normal(5, 3, 4)),
        {"beta": 0.3},
        why="a sum of a batch",
    ),
    Case(aten.addr.default, (normal(2, 3), normal(2), normal(3)), {"beta": 2, "alpha": 0.5}, why="factors"),
    Case(aten.addr.default, (normal(2, 3) * NAN, normal(2), normal(3)), {"beta": 0}, why="beta 0"),
)


def _einsums() -> Iterator[Case]:
    batch = (normal(5, 2, 3), normal(5, 3, 4))
    yield Case(aten.einsum.default, ("bij, bjk -> bik", [*batch]), why="a batch, with spaces")
    yield Case(aten.einsum.default, ("bij,bjk", [*batch]), why="no arrow")
    yield Case(aten.einsum.default, ("...ij,...jk->...ik", [*batch]), why="an ellipsis")
    yield Case(
        aten.einsum.default, ("...ij,jk", [batch[0], normal(3, 4)]), why="an ellipsis on one side, no arrow"
    )
    yield Case(
        aten.einsum.default, ("...i,...i->...", [normal(6, 5, 3), normal(5, 3)]), why="ellipses of two ranks"
    )
    yield Case(aten.einsum.default, ("ij->ji", [X]), why="a transpose")
    yield Case(aten.einsum.default, ("ij->", [X]), why="a sum")
    yield Case(aten.einsum.default, ("ij->j", [X]), why="a sum of rows")
    yield Case(aten.einsum.default, ("ii->i", [normal(3, 3)]), why="a diagonal")
    yield Case(aten.einsum.default, ("ii", [normal(3, 3)]), why="a trace")
    yield Case(aten.einsum.default, ("i,j->ij", [normal(2), normal(3)]), why="an outer product")
    yield Case(
        aten.einsum.default, ("bhqd,bkhd->bhqk", [normal(2, 3, 4, 5), normal(2, 6, 3, 5)]), why="attention"
    )
    yield Case(aten.einsum.default, ("ij,jk,kl->il", [X, normal(3, 4), normal(4, 5)]), why="three matrices")
    yield Case(aten.einsum.default, ("Ab,bA->A", [X, normal(3, 2)]), why="capitals")
    yield Case(
        aten.einsum.default, ("bij,bjk->bik", [normal(1, 2, 3), batch[1]]), why="an axis of 1 broadcasts"
    )
    yield Case(
        aten.einsum.default, ("ij,jk->ik", [X.to(HALF), normal(3, 4, dtype=HALF)]), why="half precision"
    )
    yield Case(aten.einsum.default, ("ij,jk->ik", [X.to(BF16), normal(3, 4, dtype=BF16)]), why="bfloat16")
    yield Case(aten.einsum.default, ("ij,jk->ik", [ints(2, 3), ints(3, 4)]), why="integers")
    yield Case(aten.einsum.default, ("n,d->nd", [torch.arange(3), normal(4)]), why="integers and floats")


OTHERS = (
    Case(
        aten.bilinear.default,
        (normal(2, 3), normal(2, 4), normal(5, 3, 4), normal(5)),
        why="plain",
        dynamic=False,
    ),  # torch fixes the sizes
    Case(
        aten.bilinear.default,
        (normal(6, 2, 3), normal(6, 2, 4), normal(5, 3, 4)),
        why="two axes before, no bias",
        dynamic=False,
    ),
    Case(
        aten._trilinear.default,
        (normal(2, 3), normal(5, 3, 4), normal(2, 4), [1, 3], [0], [1, 2], [2, 3]),
        why="as bilinear",
        dynamic=False,
    ),
    Case(
        aten.linalg_cross.default,
        (normal(2, 3), normal(2, 3)),
        why="the last axis",
        dynamic={0: (0,), 1: (0,)},
    ),
    Case(
        aten.linalg_cross.default,
        (normal(3, 2), normal(3, 2)),
        {"dim": 0},
        why="an axis",
        dynamic={0: (1,), 1: (1,)},
    ),
    Case(
        aten.linalg_cross.default,
        (normal(4, 1, 3), normal(1, 2, 3)),
        why="broadcasts",
        dynamic={0: (0,), 1: (1,)},
    ),
    Case(
        aten.cross.default,
        (normal(5, 3), normal(5, 3)),
        why="the first axis of 3",
        dynamic={0: (0,), 1: (0,)},
    ),
    Case(aten.cross.default, (ints(2, 3), ints(2, 3), 1), why="integers", dynamic={0: (0,), 1: (0,)}),
    Case(aten.linalg_det.default, (normal(2, 3, 3),), why="a batch", dynamic={0: (0,)}),
    Case(aten.det.default, (normal(3, 3),), why="a matrix"),
    Case(aten.linalg_inv.default, (normal(3, 3),), why="no ONNX operator", gap="never"),
    Case(aten.cdist.default, (normal(2, 3), normal(4, 3)), why="Euclidean"),
    Case(aten.cdist.default, (normal(5, 2, 3), normal(5, 4, 3), 1.0), why="a batch, absolute"),
    Case(aten.cdist.default, (normal(2, 3), normal(4, 3), math.inf), why="the largest"),
    Case(aten.cdist.default, (normal(2, 3), normal(4, 3), 0.0), why="a count"),
    Case(aten.cdist.default, (normal(2, 3), normal(4, 3), 3.0), why="cubes"),
    Case(aten._cdist_forward.default, (normal(2, 3), normal(4, 3), 2.0, None), why="the core operator"),
    Case(aten.cosine_similarity.default, (normal(2, 3), normal(2, 3)), why="plain"),
    Case(
        aten.cosine_similarity.default,
        (normal(4, 1, 3), normal(5, 3), -1, 0.5),
        why="broadcasts, a large floor",
    ),
    Case(aten.cosine_similarity.default, (normal(2, 3) * 0, normal(2, 3), 0), why="of nothing"),
    Case(aten.pairwise_distance.default, (normal(2, 3), normal(2, 3)), why="by decomposition"),
    Case(aten.trace.default, (normal(3, 3),), why="a square"),
    Case(aten.trace.default, (normal(2, 3),), why="wide"),
)

CASES = (*PRODUCTS, *LINEAR, *SUMS, *_einsums(), *OTHERS)
