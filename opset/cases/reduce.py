"""Reductions, and running ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, uniform, values

aten = torch.ops.aten

HALF, BF16, DOUBLE = torch.float16, torch.bfloat16, torch.float64
NAN, INF = math.nan, math.inf


def _shapes() -> Iterator[Case]:
    """Axes and keepdim, for every operator with a list of axes."""
    for target in (
        aten.sum.dim_IntList,
        aten.mean.dim,
        aten.amax.default,
        aten.amin.default,
        aten.logsumexp.default,
    ):
        yield Case(target, (normal(2, 3, 4), [1]), why="one axis")
        yield Case(target, (normal(2, 3, 4), [-1, 0]), why="two axes in any order")
        yield Case(target, (normal(2, 3, 4), [1, 2], True), why="keepdim")
        yield Case(target, (normal(2, 3, 4), [0, 1, 2], True), why="all axes with keepdim")
        yield Case(target, (torch.tensor(2.5), [0]), why="no axes")
        if target is not aten.logsumexp.default:
            yield Case(target, (normal(2, 3), []), why="an empty list is all axes")
        yield Case(target, (normal(2, 9, dtype=HALF), [1]), why="half precision")
        yield Case(target, (normal(2, 9, dtype=BF16), [1]), why="bfloat16")
        yield Case(target, (normal(2, 9, dtype=DOUBLE), [1]), why="double precision")


SUMS = (
    Case(aten.sum.default, (normal(2, 3),), why="floats"),
    Case(aten.sum.default, (ints(2, 3, dtype=torch.int8),), why="int8 makes int64"),
    Case(aten.sum.default, (bools(2, 3),), why="bools are counted"),
    Case(aten.sum.default, (normal(2, 3),), {"dtype": DOUBLE}, why="a dtype"),
    Case(aten.sum.default, (normal(2, 3) * 9,), {"dtype": torch.int32}, why="a whole dtype"),
    Case(aten.sum.default, (torch.tensor(2.5),), why="no axes"),
    Case(aten.sum.default, (normal(0, 3),), why="nothing is 0"),
    Case(aten.sum.dim_IntList, (normal(2, 0, 3), [1]), why="an empty axis is 0"),
    Case(aten.sum.dim_IntList, (normal(2, 3), None), why="None is all axes"),
    Case(aten.sum.dim_IntList, (bools(2, 3), [1], True), {"dtype": torch.float32}, why="bools with a dtype"),
    Case(aten.nansum.default, (values(1, NAN, 2),), why="NaN is 0"),
    Case(aten.nansum.default, (ints(2, 3), [1]), why="integers"),
    Case(aten.nanmean.default, (values(1, NAN, 2),), why="of what is not NaN"),
    Case(aten.mean.default, (normal(2, 3),), why="all"),
    Case(aten.mean.default, (ints(2, 3),), {"dtype": torch.float32}, why="integers with a dtype"),
    Case(aten.mean.default, (normal(0),), why="of nothing is NaN"),
    Case(aten.mean.dim, (normal(2, 0, 3), [1]), why="an empty axis is NaN"),
    Case(aten.mean.dim, (normal(2, 3), None), why="None is all axes"),
    Case(aten.prod.default, (normal(2, 3),), why="all"),
    Case(aten.prod.default, (ints(2, 3, dtype=torch.int32),), why="int32 makes int64"),
    Case(aten.prod.default, (bools(3),), why="bools"),
    Case(aten.prod.dim_int, (normal(2, 3), 1), why="an axis"),
    Case(aten.prod.dim_int, (normal(2, 3), -2, True), why="keepdim"),
    Case(aten.prod.dim_int, (normal(2, 0), 1), why="nothing is 1"),
    Case(aten.prod.dim_int, (normal(2, 3, dtype=HALF), 1), {"dtype": torch.float32}, why="a dtype"),
    Case(aten.count_nonzero.default, (ints(3, 4, low=-1, high=2),), why="all"),
    Case(aten.count_nonzero.dim_IntList, (values(0.0, NAN, 2.0), [0]), why="NaN counts"),
)


def _questions() -> Iterator[Case]:
    for packet in (aten.any, aten.all):
        for opset in (18, 23):
            yield Case(packet.default, (bools(2, 3),), why=f"all axes, opset {opset}", opsets=(opset,))
            yield Case(packet.dim, (bools(4, 3), 1), why=f"an axis, opset {opset}", opsets=(opset,))
            yield Case(packet.dim, (bools(4, 0), 1), why=f"an empty axis, opset {opset}", opsets=(opset,))
        yield Case(packet.default, (bools(0),), why="nothing")
        yield Case(packet.default, (torch.tensor(True),), why="no axes")
        yield Case(packet.default, (normal(3),), why="floats")
        yield Case(packet.default, (values(0.0, NAN),), why="NaN is true")
        yield Case(packet.default, (ints(3, low=0, dtype=torch.uint8),), why="uint8 stays")
        yield Case(packet.dim, (ints(4, 3, low=0, high=2), 0, True), why="integers with keepdim")
        yield Case(packet.dims, (bools(2, 3, 4), [0, 2]), why="two axes")
        yield Case(packet.dims, (bools(2, 3, 4), None, True), why="None is all axes")
        yield Case(packet.dims, (ints(2, 3, low=0, high=2), []), why="an empty list is no axes")


def _extremes() -> Iterator[Case]:
    ties = torch.tensor([[3, 1, 3, 2], [0, 0, 0, 0], [1, 2, 3, 3]])
    for packet in (aten.max, aten.min):
        yield Case(packet.default, (normal(2, 3),), why="all")
        yield Case(packet.default, (torch.tensor(2.0),), why="no axes")
        yield Case(packet.default, (bools(3),), why="bools")
        yield Case(packet.dim, (ties, 1), why="ties")
        yield Case(packet.dim, (ties.float(), 0, True), why="keepdim")
        yield Case(packet.dim, (torch.tensor(2.0), 0), why="no axes")
        for dtype in (HALF, BF16, DOUBLE, torch.int8, torch.int16, torch.uint8, torch.bool):
            name = str(dtype).removeprefix("torch.")
            yield Case(packet.dim, (ints(2, 5, low=0).to(dtype), 1), why=name)
    for packet in (aten.argmax, aten.argmin):
        yield Case(packet.default, (ties,), why="through all elements")
        yield Case(packet.default, (ties.float(), 1), why="ties: the first")
        yield Case(packet.default, (ties, 0, True), why="keepdim")
        yield Case(packet.default, (ties, None, True), why="all with keepdim")
        yield Case(packet.default, (ties[0], None, True), why="a vector with keepdim")
        yield Case(packet.default, (torch.tensor(2.0),), why="no axes")
        yield Case(packet.default, (normal(2, 5, dtype=HALF), 1), why="half precision")
        yield Case(packet.default, (ints(2, 5, dtype=torch.int16), 1), why="int16")
    for packet in (aten.amax, aten.amin):
        for dtype in (torch.int64, torch.int16, torch.uint8, torch.bool):
            name = str(dtype).removeprefix("torch.")
            yield Case(packet.default, (ints(2, 5, low=0).to(dtype), [1]), why=name, opsets=(18, 23))
    yield Case(aten.aminmax.default, (normal(2, 3),), why="all")
    yield Case(aten.aminmax.default, (normal(2, 3),), {"dim": 1, "keepdim": True}, why="an axis")
    for size in (4, 5):
        yield Case(aten.median.default, (normal(size),), why=f"of {size}")
        yield Case(aten.median.dim, (normal(2, size), 1), why=f"of {size}")
    yield Case(aten.median.dim, (normal(5, 2), 0, True), why="keepdim")
    yield Case(aten.median.default, (values(1, NAN, 3),), why="NaN wins")
    yield Case(aten.median.dim, (torch.tensor([[1, NAN, 3], [1, 5, 2]]), 1), why="NaN in one row")
    yield Case(aten.median.dim, (torch.tensor([[4, 1, 3], [1, 5, 2]]), 1), why="integers")
    yield Case(aten.mode.default, (ints(5),), why="no ONNX operator", gap="ours")


def _moments() -> Iterator[Case]:
    for packet in (aten.var, aten.std, aten.var_mean, aten.std_mean):
        yield Case(packet.correction, (normal(2, 3, 4), [1, 2]), why="one less by default")
        yield Case(
            packet.correction, (normal(2, 3, 4), [-1]), {"correction": 0, "keepdim": True}, why="biased"
        )
        yield Case(packet.correction, (normal(2, 3),), {"correction": 0.5}, why="a fraction, all axes")
        yield Case(packet.correction, (normal(2, 3), [1]), {"correction": 2}, why="two less")
        yield Case(packet.correction, (normal(2, 1), [1]), why="of one element is NaN")
        yield Case(packet.correction, (normal(2, 9, dtype=HALF), [1]), why="half precision")
        yield Case(packet.correction, (normal(2, 9, dtype=BF16), [1]), why="bfloat16")
        yield Case(packet.correction, (normal(2, 9, dtype=DOUBLE), [1]), why="double precision")
        yield Case(packet.default, (normal(2, 3),), why="all axes")
        yield Case(packet.default, (normal(2, 3), False), why="all axes, biased")
        yield Case(packet.dim, (normal(2, 3), [1], False, True), why="the older form")


def _norms() -> Iterator[Case]:
    for p in (0, 1, 2, 3, 0.5, INF, -INF):
        yield Case(aten.linalg_vector_norm.default, (normal(2, 3, 4), p, [1]), why=f"{p}, an axis")
        yield Case(aten.linalg_vector_norm.default, (normal(2, 3), p), why=f"{p}, all")
    for p in (2, 1, INF, 3):
        yield Case(aten.norm.Scalar, (normal(2, 3), p), why=f"{p}")
        yield Case(aten.norm.ScalarOpt_dim, (normal(2, 3), p, [1], True), why=f"{p}, keepdim")
    yield Case(aten.norm.ScalarOpt_dim, (normal(2, 3), None, [0]), why="None is 2")
    yield Case(aten.norm.ScalarOpt_dtype, (normal(2, 3), 2), {"dtype": DOUBLE}, why="a dtype")
    yield Case(aten.linalg_vector_norm.default, (normal(2, 9, dtype=HALF), 3, [1]), why="half precision")
    yield Case(
        aten.linalg_vector_norm.default,
        (normal(2, 9, dtype=HALF), 2),
        {"dtype": torch.float32},
        why="a dtype",
    )
    yield Case(aten.linalg_vector_norm.default, (torch.tensor(-2.0),), why="no axes")
    yield Case(aten.frobenius_norm.dim, (normal(2, 3, 4), [1, 2]), why="two axes")
    for ord in ("fro", 1, INF, -1):
        target = aten.linalg_matrix_norm.str_ord if isinstance(ord, str) else aten.linalg_matrix_norm.default
        # torch fixes all sizes but those of the axes themselves
        yield Case(target, (normal(2, 3, 4), ord, [-2, -1]), why=f"{ord}", dynamic=False)
        yield Case(target, (normal(2, 3, 4), ord, [2, 0], True), why=f"{ord}, other axes", dynamic=False)
    yield Case(
        aten.linalg_matrix_norm.default, (normal(3, 4), 2), why="singular values", gap="never", dynamic=False
    )
    yield Case(aten.linalg_norm.default, (normal(2, 3),), why="all")
    yield Case(aten.linalg_norm.default, (normal(2, 3), None, [1]), why="an axis")
    yield Case(aten.linalg_norm.default, (normal(2, 3), 1, [1]), why="1, an axis")
    yield Case(aten.linalg_norm.default, (normal(2, 3), 1), why="1, a matrix", dynamic=False)
    yield Case(aten.linalg_norm.ord_str, (normal(2, 3), "fro"), why="a matrix")


LOGARITHMS = (
    Case(
        aten.logsumexp.default,
        (torch.tensor([[1000.0, 1000.0], [-INF, -INF], [INF, 1]]), [1]),
        why="large and infinite",
    ),
    Case(aten.logsumexp.default, (ints(2, 3), [1]), why="integers make floats"),
)


def _running() -> Iterator[Case]:
    for packet in (aten.cumsum, aten.cumprod):
        yield Case(packet.default, (normal(2, 3), 1), why="the last axis")
        yield Case(packet.default, (normal(2, 3, 4), -2), why="an inner axis")
        yield Case(packet.default, (ints(2, 3, dtype=torch.int32), 0), why="int32 makes int64")
        yield Case(packet.default, (bools(5), 0), why="bools")
        yield Case(packet.default, (normal(5, dtype=HALF), 0), why="half precision")
        yield Case(packet.default, (normal(5, dtype=BF16), 0), why="bfloat16")
        yield Case(packet.default, (normal(5), 0), {"dtype": DOUBLE}, why="a dtype")
        yield Case(packet.default, (torch.tensor(2.0), 0), why="no axes")
        yield Case(packet.default, (normal(0, 3), 0), why="empty")
    yield Case(aten.cumprod.default, (normal(2, 3), 1), why="ONNX CumProd", opsets=(26,))
    yield Case(aten.logcumsumexp.default, (normal(2, 5), 1), why="plain")
    yield Case(aten.logcumsumexp.default, (values(-INF, -INF, 1, 100, INF, 1), 0), why="infinities")
    for packet in (aten.cummax, aten.cummin):
        yield Case(packet.default, (values(2, 3, 3, 1, 0, 0, 5), 0), why="ties: the last")
        yield Case(packet.default, (values(2, NAN, 3, NAN, 1), 0), why="NaN stays")
        yield Case(packet.default, (ints(2, 3, 4), 1), why="an inner axis")
        yield Case(packet.default, (normal(3, 4, dtype=HALF), -1), why="half precision")
        yield Case(packet.default, (uniform(1, 1), 0), why="one element")


CASES = (
    *_shapes(),
    *SUMS,
    *_questions(),
    *_extremes(),
    *_moments(),
    *_norms(),
    *LOGARITHMS,
    *_running(),
)
