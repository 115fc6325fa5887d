"""Functions of one tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, uniform, values

aten = torch.ops.aten

HALF, BF16, DOUBLE = torch.float16, torch.bfloat16, torch.float64
SPECIAL = values(math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.5)

# Each function with the range in which it is defined, and whether the runtime computes it in float64.
FUNCTIONS = (
    (aten.abs.default, -9, 9, True),
    (aten.acos.default, -1, 1, False),
    (aten.acosh.default, 1, 9, False),
    (aten.asin.default, -1, 1, False),
    (aten.asinh.default, -9, 9, False),
    (aten.atan.default, -9, 9, False),
    (aten.atanh.default, -1, 1, False),
    (aten.cos.default, -9, 9, True),
    (aten.cosh.default, -3, 3, True),
    (aten.deg2rad.default, -180, 180, True),
    (aten.erf.default, -3, 3, False),
    (aten.erfc.default, -3, 3, False),
    (aten.exp.default, -3, 3, True),
    (aten.exp2.default, -3, 3, True),
    (aten.expm1.default, -3, 3, True),
    (aten.frac.default, -9, 9, True),
    (aten.log.default, 0, 9, True),
    (aten.log10.default, 0, 9, True),
    (aten.log1p.default, -1, 9, True),
    (aten.log2.default, 0, 9, True),
    (aten.logit.default, 0, 1, True),
    (aten.rad2deg.default, -3, 3, True),
    (aten.reciprocal.default, -9, 9, True),
    (aten.rsqrt.default, 0, 9, True),
    (aten.sigmoid.default, -9, 9, True),
    (aten.sin.default, -9, 9, True),
    (aten.sinc.default, -3, 3, True),
    (aten.sinh.default, -3, 3, True),
    (aten.sqrt.default, 0, 9, True),
    (aten.square.default, -9, 9, True),
    (aten.tan.default, -1, 1, True),
    (aten.tanh.default, -9, 9, True),
)
# PyTorch takes no integers for these.
FLOATS_ONLY = (aten.frac.default,)


def _functions() -> Iterator[Case]:
    for target, low, high, double in FUNCTIONS:
        yield Case(target, (uniform(2, 9, low=low, high=high),), why="its range")
        yield Case(target, (SPECIAL,), why="special values")
        yield Case(target, (torch.tensor(0.5),), why="no axes")
        yield Case(target, (uniform(9, low=low, high=high, dtype=HALF),), why="half precision")
        yield Case(target, (uniform(9, low=low, high=high, dtype=BF16),), why="bfloat16")
        gap = None if double else "onnxruntime"
        yield Case(target, (uniform(9, low=low, high=high, dtype=DOUBLE),), why="double precision", gap=gap)
        if target not in FLOATS_ONLY:
            yield Case(target, (ints(9, low=math.ceil(low), high=high + 1),), why="integers")


ROUNDINGS = (aten.ceil.default, aten.floor.default, aten.round.default, aten.trunc.default)


def _roundings() -> Iterator[Case]:
    for target in ROUNDINGS:
        yield Case(target, (values(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.3, -0.7),), why="halves")
        yield Case(target, (SPECIAL,), why="special values")
        yield Case(target, (ints(9),), why="integers stay")
        yield Case(target, (normal(9, dtype=HALF) * 9,), why="half precision")
        yield Case(target, (normal(9, dtype=DOUBLE) * 9,), why="double precision")


def _questions() -> Iterator[Case]:
    targets = (aten.isnan, aten.isinf, aten.isfinite, aten.isposinf, aten.isneginf, aten.isreal, aten.signbit)
    for packet in targets:
        special = SPECIAL if packet is not aten.signbit else SPECIAL[1:]
        yield Case(packet.default, (special,), why="special values")
        yield Case(packet.default, (special.to(HALF),), why="half precision", opsets=(18, 23))
        yield Case(packet.default, (ints(9),), why="integers")


NEAR_ZERO = values(1e-7, -1e-7, 1e-5, -1e-5, 1e-3)

OTHERS = (
    Case(aten.abs.default, (ints(9, dtype=torch.int8),), why="int8"),
    Case(aten.neg.default, (SPECIAL,), why="special values"),
    Case(aten.neg.default, (ints(9),), why="integers"),
    Case(aten.neg.default, (ints(9, low=0, dtype=torch.uint8),), why="uint8 wraps around"),
    Case(aten.neg.default, (normal(9, dtype=BF16),), why="bfloat16"),
    Case(aten.sign.default, (SPECIAL,), why="special values"),
    Case(aten.sign.default, (ints(9),), why="integers"),
    Case(aten.sign.default, (bools(9),), why="bools"),
    Case(aten.sgn.default, (normal(9),), why="the other name"),
    Case(aten.square.default, (ints(9),), why="integers stay integers"),
    Case(aten.round.decimals, (normal(9) * 9,), {"decimals": 2}, why="places after the point"),
    Case(aten.round.decimals, (normal(9) * 900,), {"decimals": -2}, why="places before the point"),
    Case(aten.round.decimals, (normal(9) * 9,), {"decimals": 0}, why="no places"),
    Case(aten.round.decimals, (normal(9, dtype=HALF) * 9,), {"decimals": 1}, why="half precision"),
    Case(aten.expm1.default, (NEAR_ZERO,), why="no cancellation near 0", rtol=1e-6, atol=0.0),
    Case(aten.expm1.default, (NEAR_ZERO.double(),), why="nor in double", rtol=1e-9, atol=0.0),
    Case(aten.log1p.default, (NEAR_ZERO,), why="no cancellation near 0", rtol=1e-6, atol=0.0),
    Case(aten.log1p.default, (NEAR_ZERO.double(),), why="nor in double", rtol=1e-9, atol=0.0),
    Case(aten.log2.default, (2.0 ** torch.arange(-9, 10),), why="whole for powers of 2", rtol=0.0, atol=0.0),
    Case(aten.log10.default, (10.0 ** torch.arange(0, 9),), why="whole for powers of 10", rtol=0.0, atol=0.0),
    Case(aten.logit.default, (uniform(9, low=-0.2, high=1.2), 1e-3), why="bounds"),
    Case(aten.sinc.default, (values(0.0, 1.0, 0.5),), why="1 at 0"),
    Case(aten.nan_to_num.default, (SPECIAL,), why="the dtype's limits"),
    Case(aten.nan_to_num.default, (SPECIAL, 2.0), why="a number for NaN"),
    Case(aten.nan_to_num.default, (SPECIAL, 2.0, 7.0, -7.0), why="all given"),
    Case(aten.nan_to_num.default, (SPECIAL, None, 7.0), why="only above"),
    Case(aten.nan_to_num.default, (SPECIAL, None, None, -7.0), why="only below"),
    Case(aten.nan_to_num.default, (SPECIAL.to(HALF),), why="half precision's limits"),
    Case(aten.nan_to_num.default, (ints(9),), why="integers stay"),
    Case(aten.erfinv.default, (uniform(9),), why="no ONNX operator", gap="ours"),
    Case(aten.lgamma.default, (uniform(9),), why="no ONNX operator", gap="ours"),
    Case(aten.special_entr.default, (uniform(9),), why="by decomposition"),
    Case(aten.special_ndtr.default, (normal(9),), why="by decomposition"),
    Case(aten.special_expit.default, (normal(9),), why="by decomposition"),
)

CASES = (*_functions(), *_roundings(), *_questions(), *OTHERS)
