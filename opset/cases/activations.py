"""Activation functions, and softmax."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from fx2onnx.opset.cases import Case, ints, normal, uniform, values

aten = torch.ops.aten

HALF, BF16, DOUBLE = torch.float16, torch.bfloat16, torch.float64
SPECIAL = values(math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.5, 30.0, -30.0)

FUNCTIONS: tuple[tuple[Any, tuple[Any, ...], dict[str, Any], bool], ...] = (
    (aten.relu.default, (), {}, True),
    (aten.relu6.default, (), {}, True),
    (aten.hardtanh.default, (), {}, True),
    (aten.hardtanh.default, (-0.5, 2), {}, True),
    (aten.leaky_relu.default, (), {}, True),
    (aten.leaky_relu.default, (0.2,), {}, True),
    (aten.threshold.default, (0.1, 20.0), {}, True),
    (aten.hardshrink.default, (), {}, True),
    (aten.hardshrink.default, (0.1,), {}, True),
    (aten.softshrink.default, (), {}, True),
    (aten.elu.default, (), {}, True),
    (aten.elu.default, (0.7,), {}, True),
    (aten.elu.default, (0.7, 1.1, 0.9), {}, True),
    (aten.selu.default, (), {}, True),
    (aten.celu.default, (), {}, True),
    (aten.celu.default, (0.5,), {}, True),
    (aten.softplus.default, (), {}, True),
    (aten.softplus.default, (2.0,), {}, True),
    (aten.softplus.default, (1.0, 2.0), {}, True),
    (aten.log_sigmoid.default, (), {}, True),
    (aten.gelu.default, (), {}, False),
    (aten.gelu.default, (), {"approximate": "tanh"}, True),
    (aten.silu.default, (), {}, True),
    (aten.mish.default, (), {}, True),
    (aten.hardsigmoid.default, (), {}, True),
    (aten.hardswish.default, (), {}, True),
)
OLDER = (aten.gelu.default,)  # other rules below opset 20


def _functions() -> Iterator[Case]:
    for target, args, kwargs, double in FUNCTIONS:
        options = ", ".join(map(str, (*args, *kwargs.values()))) or "defaults"
        opsets = (18, 23) if target in OLDER else (23,)
        yield Case(target, (normal(2, 9) * 3, *args), kwargs, why=f"{options}: plain", opsets=opsets)
        # torch.gelu makes NaN of infinity where its vectorised kernel runs
        special = SPECIAL[~SPECIAL.isinf()] if target is aten.gelu.default else SPECIAL
        yield Case(target, (special, *args), kwargs, why=f"{options}: special values", opsets=opsets)
        yield Case(
            target,
            (normal(9, dtype=HALF) * 3, *args),
            kwargs,
            why=f"{options}: half precision",
            opsets=opsets,
        )
        yield Case(
            target, (normal(9, dtype=BF16) * 3, *args), kwargs, why=f"{options}: bfloat16", opsets=opsets
        )
        gap = None if double else "onnxruntime"
        yield Case(
            target, (normal(9, dtype=DOUBLE), *args), kwargs, why=f"{options}: double precision", gap=gap
        )
        yield Case(target, (torch.tensor(-0.7), *args), kwargs, why=f"{options}: no axes")


def _softmaxes() -> Iterator[Case]:
    for packet in (aten.softmax, aten.log_softmax):
        yield Case(packet.int, (normal(2, 3, 4), -1), why="the last axis")
        yield Case(packet.int, (normal(2, 3, 4), 1), why="an inner axis")
        yield Case(packet.int, (normal(2, 3), 0), {"dtype": torch.float64}, why="a wider dtype")
        yield Case(
            packet.int, (normal(2, 3, dtype=HALF), -1), {"dtype": torch.float32}, why="from half precision"
        )
        yield Case(packet.int, (normal(2, 3, dtype=HALF), -1), why="half precision")
        yield Case(packet.int, (normal(2, 3, dtype=BF16), -1), why="bfloat16")
        yield Case(packet.int, (ints(2, 3), -1, torch.float32), why="from integers")
        yield Case(packet.int, (torch.tensor(3.0), 0), why="no axes")
        yield Case(packet.int, (normal(0, 3), 1), why="empty")
        yield Case(packet.int, (values(-math.inf, 1.0, 2.0), 0), why="minus infinity")
        yield Case(packet.int, (values(-math.inf, -math.inf), 0), why="only minus infinity: NaN")
    for packet in (aten._softmax, aten._log_softmax):
        yield Case(packet.default, (normal(2, 3), 1, False), why="the core operator")
    yield Case(aten._safe_softmax.default, (values(-math.inf, -math.inf), 0), why="by decomposition: zeros")


OTHERS = (
    Case(aten.relu.default, (ints(9),), why="int64"),
    Case(aten.relu.default, (ints(9, dtype=torch.int8),), why="int8"),
    Case(aten.relu.default, (ints(9, dtype=torch.int16),), why="int16"),
    Case(aten.relu.default, (ints(9, low=0, dtype=torch.uint8),), why="uint8"),
    Case(aten.hardtanh.default, (ints(9), -1, 1), why="integers"),
    Case(aten.threshold.default, (ints(9), 2, 7), why="integers"),
    Case(aten.prelu.default, (normal(2, 3, 4), uniform(3)), why="a slope for each channel"),
    Case(aten.prelu.default, (normal(2, 3, 4, 5), uniform(1)), why="one slope"),
    Case(aten.prelu.default, (normal(2, 3), uniform(3)), why="a matrix"),
    Case(aten.prelu.default, (normal(3), uniform(1)), why="a vector"),
    Case(aten.prelu.default, (torch.tensor(-1.0), uniform(1)), why="no axes"),
    Case(
        aten.prelu.default, (normal(2, 3, 4, dtype=DOUBLE), uniform(3, dtype=DOUBLE)), why="double precision"
    ),
    Case(aten.prelu.default, (normal(2, 3, 4, dtype=HALF), uniform(3, dtype=HALF)), why="half precision"),
    Case(aten._prelu_kernel.default, (normal(2, 3, 4), uniform(3, 1)), why="the core operator"),
    Case(aten.glu.default, (normal(2, 6),), why="the last axis", dynamic={0: (0,)}),
    Case(aten.glu.default, (normal(2, 6, 3), 1), why="an inner axis", dynamic={0: (0, 2)}),
    Case(aten.rrelu.default, (normal(2, 3),), why="in evaluation"),
    Case(aten.rrelu.default, (normal(2, 3), 0.1, 0.3, True), why="in training", gap="never", compare="types"),
    Case(aten.log_sigmoid_forward.default, (normal(2, 3),), why="by decomposition"),
)

CASES = (*_functions(), *_softmaxes(), *OTHERS)
