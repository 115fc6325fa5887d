"""Arithmetic of two and three operands."""

from __future__ import annotations

import math

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, uniform, values

aten = torch.ops.aten

HALF, BF16, DOUBLE = torch.float16, torch.bfloat16, torch.float64
NAN, INF = math.nan, math.inf
SPECIAL = values(NAN, INF, -INF, 0.0, -0.0, 1.5, -2.5)


def _scalar(number: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(number, dtype=dtype)


def times_size(x: torch.Tensor) -> torch.Tensor:
    return x * x.shape[0]


def number_times_size(x: torch.Tensor) -> torch.Tensor:
    return x.sum() * x.shape[1]


def over_root_of_size(x: torch.Tensor) -> torch.Tensor:
    return x / x.shape[-1] ** 0.5


SUMS = (
    Case(aten.add.Tensor, (normal(2, 3), normal(2, 3)), why="plain"),
    Case(aten.add.Tensor, (normal(2, 3), normal(3)), why="broadcast on the left"),
    Case(aten.add.Tensor, (normal(2, 1, 3), normal(4, 1)), why="both sides broadcast"),
    Case(aten.add.Tensor, (_scalar(2.0), _scalar(3.0)), why="tensors without axes"),
    Case(aten.add.Tensor, (normal(2, 3), normal(2, 3)), {"alpha": 2.5}, why="alpha on a tensor"),
    Case(aten.add.Tensor, (normal(2, 3), 2), {"alpha": 3}, why="alpha on a number"),
    Case(aten.add.Tensor, (ints(2, 3), ints(2, 3)), {"alpha": -2}, why="integer alpha"),
    Case(aten.add.Tensor, (ints(2, 3), 2.5), why="integers and a float make floats"),
    Case(aten.add.Tensor, (ints(2, 3), normal(2, 3)), why="integers and floats"),
    Case(
        aten.add.Tensor, (normal(2, 3), _scalar(2.0, DOUBLE)), why="a double without axes stays below floats"
    ),
    Case(aten.add.Tensor, (ints(3, dtype=torch.uint8, low=0), ints(3)), why="uint8 and int64"),
    Case(aten.add.Tensor, (ints(4, low=100, high=128, dtype=torch.int8), 100), why="int8 wraps around"),
    Case(aten.add.Tensor, (ints(4, low=0, high=99, dtype=torch.uint8), 300), why="a number that wraps"),
    Case(aten.add.Tensor, (values(True, True, False), values(True, False, False)), why="floats from True"),
    Case(aten.add.Tensor, (bools(4), bools(4)), why="bools are or-ed"),
    Case(aten.add.Tensor, (bools(4), True), why="a bool and True"),
    Case(aten.add.Tensor, (bools(4), bools(4)), {"alpha": False}, why="bools with alpha False"),
    Case(aten.add.Tensor, (bools(4), 2), why="a bool and an integer"),
    Case(aten.add.Tensor, (normal(2, 3, dtype=HALF), normal(2, 3, dtype=HALF)), why="half precision"),
    Case(aten.add.Tensor, (normal(2, 3, dtype=BF16), normal(2, 3, dtype=BF16)), why="bfloat16"),
    Case(aten.add.Tensor, (normal(2, 3, dtype=DOUBLE), 0.1), why="double precision"),
    Case(aten.add.Tensor, (normal(0, 3), normal(3)), why="empty"),
    Case(aten.add.Tensor, (normal(3), -0.0), why="minus zero"),
    Case(aten.add.Tensor, (normal(3), -INF), why="an infinite number"),
    Case(aten.add.Scalar, (normal(2, 3), 2.0, 0.5), why="alpha by position"),
    Case(aten.sub.Tensor, (normal(2, 3), normal(3)), why="plain"),
    Case(aten.sub.Tensor, (normal(2, 3), normal(3)), {"alpha": 2}, why="alpha"),
    Case(aten.sub.Tensor, (ints(3, low=0, dtype=torch.uint8), 5), why="uint8 wraps around"),
    Case(aten.sub.Scalar, (normal(2, 3), 2, 3), why="alpha by position"),
    Case(aten.rsub.Scalar, (normal(2, 3), 1), why="from a number"),
    Case(aten.rsub.Scalar, (normal(2, 3), 1.5, 2), why="alpha on the tensor"),
    Case(aten.rsub.Tensor, (normal(2, 3), normal(3)), {"alpha": 2}, why="alpha on the first operand"),
)

PRODUCTS = (
    Case(aten.mul.Tensor, (normal(2, 3), normal(2, 1)), why="plain"),
    Case(aten.mul.Tensor, (bools(4), bools(4)), why="bools are and-ed"),
    Case(aten.mul.Tensor, (bools(4), normal(4)), why="a bool and floats"),
    Case(aten.mul.Tensor, (ints(2, 3, dtype=torch.int32), ints(3)), why="int32 and int64"),
    Case(aten.mul.Tensor, (normal(4, dtype=HALF) * 1e4, 1e-8), why="a factor below half precision's range"),
    Case(aten.mul.Tensor, (normal(4, dtype=HALF), 0.1), why="half precision and a number"),
    Case(aten.mul.Tensor, (SPECIAL, -0.0), why="special values"),
    Case(aten.mul.Scalar, (ints(2, 3), 3), why="integers and a number"),
    Case(times_size, (normal(2, 3),), why="a size as a factor"),
    Case(number_times_size, (normal(2, 3),), why="a size and a tensor without axes"),
    Case(over_root_of_size, (normal(2, 3),), why="a float made of a size"),
    Case(aten.addcmul.default, (normal(2, 3), normal(2, 3), normal(3)), why="plain"),
    Case(aten.addcmul.default, (normal(3), normal(3), normal(3)), {"value": 0.5}, why="a factor"),
    Case(aten.addcmul.default, (ints(3), ints(3), ints(3)), {"value": 2}, why="integers"),
    Case(aten.addcmul.default, (normal(3, dtype=HALF),) * 3, {"value": 0.5}, why="half precision"),
    Case(aten.addcdiv.default, (normal(2, 3), normal(2, 3), normal(3)), why="plain"),
    Case(aten.addcdiv.default, (normal(3), normal(3), normal(3)), {"value": -0.5}, why="a factor"),
    Case(aten.lerp.Scalar, (normal(2, 3), normal(2, 3), 0.3), why="from the start"),
    Case(aten.lerp.Scalar, (normal(2, 3), normal(2, 3), 1.0), why="the end exactly"),
    Case(aten.lerp.Scalar, (normal(2, 3), normal(2, 3), 0.7), why="from the end"),
    Case(aten.lerp.Tensor, (normal(2, 3), normal(2, 3), uniform(3)), why="weights"),
)

QUOTIENTS = (
    Case(aten.div.Tensor, (normal(2, 3), normal(3)), why="plain"),
    Case(aten.div.Tensor, (ints(2, 3), ints(3, low=1)), why="integers make floats"),
    Case(aten.div.Tensor, (ints(2, 3), 4), why="integers and a number make floats"),
    Case(aten.div.Tensor, (bools(3), values(1.0, 2.0, 3.0)), why="a bool over floats"),
    Case(aten.div.Tensor, (SPECIAL, values(0.0, 1, 2, 0, 1, INF, -0.0)), why="special values"),
    Case(aten.div.Tensor, (normal(3, dtype=HALF) * 1e4, 1e5), why="a divisor above half precision's range"),
    Case(aten.div.Scalar, (normal(2, 3), 3.0), why="a number"),
    Case(aten.true_divide.Tensor, (ints(3), ints(3, low=1)), why="the other name"),
    Case(aten.div.Tensor_mode, (normal(9) * 9, normal(9)), {"rounding_mode": "trunc"}, why="floats, trunc"),
    Case(aten.div.Tensor_mode, (normal(9) * 9, normal(9)), {"rounding_mode": "floor"}, why="floats, floor"),
    Case(aten.div.Tensor_mode, (normal(9) * 9, normal(9)), {"rounding_mode": None}, why="floats, None"),
    Case(aten.div.Tensor_mode, (ints(9), ints(9, low=1)), {"rounding_mode": None}, why="integers, None"),
    Case(
        aten.div.Tensor_mode, (ints(40), ints(40, low=1)), {"rounding_mode": "trunc"}, why="integers, trunc"
    ),
    Case(
        aten.div.Tensor_mode, (ints(40), ints(40, high=0)), {"rounding_mode": "floor"}, why="integers, floor"
    ),
    Case(
        aten.div.Tensor_mode, (ints(40), ints(40, low=1)), {"rounding_mode": "floor"}, why="positive divisors"
    ),
    Case(aten.div.Scalar_mode, (ints(20), -3), {"rounding_mode": "floor"}, why="a negative number"),
    Case(aten.div.Scalar_mode, (normal(9) * 9, 0.5), {"rounding_mode": "floor"}, why="a power of two"),
    Case(aten.div.Scalar_mode, (normal(9) * 9, 0.3), {"rounding_mode": "trunc"}, why="floats and a number"),
    Case(
        aten.div.Tensor_mode, (normal(9, dtype=HALF), 0.3), {"rounding_mode": "floor"}, why="half precision"
    ),
    Case(aten.floor_divide.default, (ints(20), ints(20, low=1)), why="integers"),
    Case(
        aten.floor_divide.default,
        (values(-128, -127, 127, -1, 0, dtype=torch.int8), values(3, -3, -3, 100, 7, dtype=torch.int8)),
        why="the ends of int8",
    ),
    Case(
        aten.floor_divide.default,
        (values(-(2**63), 2**63 - 1, -(2**63) + 1, dtype=torch.int64), values(3, -3, 7, dtype=torch.int64)),
        why="the ends of int64",
    ),
    Case(
        aten.floor_divide.default,
        (values(-(2**63), 5, -1, dtype=torch.int64), 3),
        why="the end, and a number",
    ),
    Case(aten.floor_divide.default, (ints(9, low=0, high=255, dtype=torch.uint8), 7), why="uint8"),
    Case(
        aten.floor_divide.default,
        (values(1.0, -1.0, 7.5, -7.5, INF, 0.0, 3.0, -3.0), values(0.1, 0.1, 2.5, 2.5, 2.0, 0.0, INF, INF)),
        why="quotients that round up to a whole number, and special values",
    ),
    Case(aten.floor_divide.default, (values(1.0, -1.0, 3.0, NAN, 0.7), 0.1), why="a number, exactly"),
    Case(
        aten.floor_divide.default, (values(1.0, -1.0, 3.0, NAN, 0.7), -0.1), why="a negative number, exactly"
    ),
    Case(aten.remainder.Tensor, (ints(40), ints(40, high=0)), why="integers"),
    Case(aten.remainder.Tensor, (normal(40) * 9, normal(40)), why="floats"),
    Case(
        aten.remainder.Tensor,
        (
            values(5.0, -5.0, INF, 1.0, -1.0, 1.0, 0.0, -1e-20),
            values(-3.0, 3.0, 2.0, INF, INF, 0.0, 1.0, 1.0),
        ),
        why="special values",
    ),
    Case(aten.remainder.Scalar, (normal(20) * 9, 2.5), why="a positive number"),
    Case(aten.remainder.Scalar, (normal(20) * 9, -2.5), why="a negative number"),
    Case(aten.remainder.Scalar, (ints(20), -4), why="integers and a number"),
    Case(aten.remainder.Scalar, (ints(20), 2.5), why="integers and a float"),
    Case(aten.remainder.Scalar_Tensor, (7, ints(20, low=1)), why="a number first"),
    Case(aten.remainder.Scalar, (normal(9, dtype=HALF) * 9, 2.5), why="half precision"),
    Case(aten.fmod.Tensor, (normal(20) * 9, normal(20)), why="floats"),
    Case(aten.fmod.Tensor, (ints(20), ints(20, high=0)), why="integers"),
    Case(aten.fmod.Scalar, (normal(20) * 9, 2), why="a number"),
    Case(aten.fmod.Scalar, (normal(20, dtype=BF16) * 9, 2), why="bfloat16"),
)

POWERS = (
    Case(aten.pow.Tensor_Tensor, (uniform(2, 3), normal(3)), why="floats"),
    Case(aten.pow.Tensor_Tensor, (ints(20), ints(20, low=0)), why="integers"),
    Case(aten.pow.Tensor_Tensor, (ints(9, dtype=torch.int8), ints(9, low=0, high=2)), why="int8 and int64"),
    Case(aten.pow.Tensor_Tensor, (ints(9), uniform(9, low=1, high=3)), why="integers to floats"),
    Case(aten.pow.Scalar, (2, ints(9, low=0)), why="a whole base and integers"),
    Case(aten.pow.Scalar, (2.5, normal(9)), why="a base and floats"),
    Case(aten.pow.Scalar, (10000, normal(9)), why="a whole base and floats"),
    Case(aten.pow.Tensor_Scalar, (normal(2, 3), 2), why="a square"),
    Case(aten.pow.Tensor_Scalar, (normal(2, 3), 3), why="a cube"),
    Case(aten.pow.Tensor_Scalar, (SPECIAL, 0.5), why="a root"),
    Case(aten.pow.Tensor_Scalar, (SPECIAL, -0.5), why="a reciprocal root"),
    Case(aten.pow.Tensor_Scalar, (SPECIAL, -1), why="a reciprocal"),
    Case(aten.pow.Tensor_Scalar, (SPECIAL, -2), why="a reciprocal square"),
    Case(aten.pow.Tensor_Scalar, (SPECIAL, 0), why="one, even for NaN"),
    Case(aten.pow.Tensor_Scalar, (SPECIAL, 1), why="the tensor itself"),
    Case(aten.pow.Tensor_Scalar, (uniform(9), 2.7), why="a fraction"),
    Case(aten.pow.Tensor_Scalar, (ints(9), 2), why="integers squared"),
    Case(aten.pow.Tensor_Scalar, (ints(40), 40), why="integers wrap around"),
    Case(aten.pow.Tensor_Scalar, (ints(9), 0), why="integers to 0"),
    Case(aten.pow.Tensor_Scalar, (ints(9, low=1), 2.5), why="integers to a fraction"),
    Case(aten.pow.Tensor_Scalar, (ints(9, dtype=torch.int8), 20), why="int8 wraps around"),
    Case(aten.pow.Tensor_Scalar, (normal(9, dtype=HALF), 3), why="half precision, one rounding"),
    Case(aten.float_power.Tensor_Scalar, (normal(9), 2), why="always double"),
)

CHOICES = (
    Case(aten.maximum.default, (SPECIAL, SPECIAL.flip(0)), why="NaN wins"),
    Case(aten.maximum.default, (ints(2, 3), ints(3)), why="integers"),
    Case(aten.maximum.default, (ints(3, dtype=torch.int16), ints(3, dtype=torch.int16)), why="int16"),
    Case(aten.maximum.default, (bools(8), bools(8)), why="bools"),
    Case(aten.maximum.default, (normal(3, dtype=HALF), normal(3, dtype=HALF)), why="half precision"),
    Case(aten.max.other, (normal(2, 3), normal(3)), why="the other name"),
    Case(aten.minimum.default, (SPECIAL, SPECIAL.flip(0)), why="NaN wins"),
    Case(aten.minimum.default, (bools(8), bools(8)), why="bools"),
    Case(aten.min.other, (normal(2, 3), normal(3)), why="the other name"),
    Case(aten.fmax.default, (SPECIAL, SPECIAL.flip(0)), why="NaN loses"),
    Case(aten.fmin.default, (SPECIAL, SPECIAL.flip(0)), why="NaN loses"),
    Case(aten.fmax.default, (ints(3), ints(3)), why="integers"),
    Case(aten.clamp.default, (SPECIAL, -1, 2), why="numbers, NaN stays"),
    Case(aten.clamp.default, (SPECIAL, 3, 2), why="bounds that cross"),
    Case(aten.clamp.default, (SPECIAL, NAN, 2), why="a bound that is NaN"),
    Case(aten.clamp.default, (SPECIAL, None, 2), why="only above"),
    Case(aten.clamp.default, (SPECIAL, 0), why="only below"),
    Case(aten.clamp.default, (ints(9), -2, 3), why="integers"),
    Case(aten.clamp.default, (ints(9, dtype=torch.int16), -2, 3), why="int16"),
    Case(aten.clamp.default, (ints(9), -2.5, 3.5), why="integers and floats"),
    Case(aten.clamp.default, (normal(2, 3, dtype=HALF), 0.0, INF), why="half precision, no bound above"),
    Case(aten.clamp.Tensor, (normal(2, 3), normal(3), normal(2, 1)), why="tensors"),
    Case(aten.clamp.Tensor, (normal(2, 3), None, normal(3)), why="a tensor above"),
    Case(aten.clamp_min.default, (normal(2, 3), 0.1), why="a number"),
    Case(aten.clamp_min.default, (ints(2, 3), 1), why="integers"),
    Case(aten.clamp_min.Tensor, (normal(2, 3), normal(3)), why="a tensor"),
    Case(aten.clamp_max.default, (normal(2, 3), 0.1), why="a number"),
    Case(aten.clamp_max.Tensor, (normal(2, 3), normal(3)), why="a tensor"),
    Case(aten.clip.default, (normal(2, 3), -1, 1), why="the other name"),
    Case(aten.where.self, (bools(2, 3), normal(2, 3), normal(3)), why="plain"),
    Case(aten.where.self, (bools(2, 1), ints(3), normal(3)), why="integers and floats"),
    Case(aten.where.self, (bools(6), bools(6), bools(6)), why="bools"),
    Case(aten.where.self, (bools(6), ints(6, dtype=torch.int16), ints(6, dtype=torch.int16)), why="int16"),
    Case(aten.where.self, (bools(6), normal(6, dtype=BF16), normal(6, dtype=BF16)), why="bfloat16"),
    Case(aten.where.ScalarOther, (bools(6), normal(6), -INF), why="a number second"),
    Case(aten.where.ScalarSelf, (bools(6), 0, ints(6)), why="a number first"),
    Case(aten.where.Scalar, (bools(6), 1.0, 0.0), why="two numbers"),
    Case(aten.where.Scalar, (bools(6), 1, 0), why="two whole numbers"),
    Case(aten.where.ScalarOther, (bools(6), bools(6), False), why="bools, else False"),
    Case(aten.where.ScalarOther, (bools(6), bools(6), True), why="bools, else True"),
    Case(aten.where.ScalarSelf, (bools(6), True, bools(6)), why="True, else bools"),
    Case(aten.where.ScalarSelf, (bools(6), False, bools(6)), why="False, else bools"),
    Case(aten.masked_fill.Scalar, (normal(2, 3), bools(2, 3), -INF), why="minus infinity"),
    Case(aten.masked_fill.Scalar, (normal(2, 3), bools(3), -1e9), why="a mask that broadcasts"),
    Case(aten.masked_fill.Scalar, (bools(2, 3), bools(2, 3), True), why="bools"),
    Case(aten.masked_fill.Scalar, (ints(2, 3), bools(2, 3), 7), why="integers"),
    Case(aten.masked_fill.Tensor, (normal(2, 3), bools(2, 3), _scalar(3.0)), why="a tensor without axes"),
    Case(
        aten.masked_fill.Tensor, (normal(2, 3, dtype=HALF), bools(2, 3), _scalar(3.0)), why="of another dtype"
    ),
)

OTHERS = (
    Case(aten.atan2.default, (normal(20), normal(20)), why="all quadrants"),
    Case(
        aten.atan2.default,
        (
            values(0, 0, 1, -1, INF, -INF, INF, -INF, NAN, 1, 1),
            values(1, -1, 0, 0, INF, INF, -INF, -INF, 1, INF, -INF),
        ),
        why="axes and infinities",
    ),
    Case(aten.atan2.default, (values(0.0), values(0.0)), why="the origin"),
    Case(aten.atan2.default, (ints(9), ints(9)), why="integers make floats"),
    Case(aten.hypot.default, (normal(9), normal(9)), why="plain"),
    Case(
        aten.hypot.default,
        (values(3e30, 0, INF, 1e-30, NAN), values(4e30, 0, 1, 1e-30, 1)),
        why="large and small",
    ),
    Case(aten.copysign.Tensor, (normal(9), normal(9)), why="plain"),
    Case(aten.copysign.Tensor, (values(1, 2, 3, 4), values(0.0, -0.0, INF, -INF)), why="signs of zeros"),
    Case(aten.copysign.Scalar, (normal(9), -2.0), why="a number"),
    Case(aten.heaviside.default, (SPECIAL, normal(7)), why="special values"),
    Case(aten.heaviside.default, (ints(9), ints(9)), why="integers"),
    Case(aten.xlogy.Tensor, (values(0, 1, 0, 2, NAN), values(0, 2, NAN, 0, 1)), why="zero and NaN"),
    Case(aten.xlogy.Scalar_Self, (2.0, uniform(9)), why="a number first"),
    Case(aten.xlogy.Scalar_Other, (normal(9), 2.0), why="a number second"),
    Case(aten.logaddexp.default, (normal(9), normal(9)), why="plain"),
    Case(
        aten.logaddexp.default,
        (values(INF, -INF, -INF, 100, NAN), values(INF, -INF, 1, 101, 1)),
        why="infinities",
    ),
    Case(aten.logaddexp2.default, (normal(9), normal(9)), why="plain"),
    Case(aten.ldexp.Tensor, (normal(9), ints(9)), why="by decomposition"),
    Case(aten.dist.default, (normal(2, 3), normal(2, 3), 2.0), why="by decomposition"),
)

CASES = (*SUMS, *PRODUCTS, *QUOTIENTS, *POWERS, *CHOICES, *OTHERS)
