"""Python numbers made of sizes. Each case returns a tensor of what Python computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from fx2onnx.opset.cases import Case, ints, normal

aten = torch.ops.aten

# Each function takes the sizes a and b of a tensor and returns a number.
FORMULAS: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
    ("sum", lambda a, b: a + b + 1),
    ("difference", lambda a, b: a - b),
    ("product", lambda a, b: 3 * a * b),
    ("negative", lambda a, b: -a + 0 * b),
    ("quotient_of_sizes", lambda a, b: (a * 7) // (b + 1)),
    ("quotient_that_is_negative", lambda a, b: (a - 2 * b) // 2),
    ("quotient_by_a_negative", lambda a, b: (a + b) // -2),
    ("quotient_of_a_difference", lambda a, b: (b - 1) // 2 + 1 + 0 * a),
    ("rest", lambda a, b: (a * 7) % (b + 1)),
    ("rest_that_is_negative", lambda a, b: (a - 3 * b) % 4),
    ("float_quotient", lambda a, b: a / b),
    ("power", lambda a, b: a**3 + b**2),
    ("root", lambda a, b: b**0.5 + 0 * a),
    ("reciprocal_root", lambda a, b: b**-0.5 + 0 * a),
    ("floor", lambda a, b: math.floor(a * 1.7 / b)),
    ("ceil", lambda a, b: math.ceil(a * 1.7 / b)),
    ("trunc", lambda a, b: math.trunc((a - 3.7 * b) / 2)),
    ("int", lambda a, b: torch.sym_int(a * 0.7) + b),
    ("float", lambda a, b: torch.sym_float(a) * 0.5 + b),
    ("max", lambda a, b: torch.sym_max(a * 2, b)),
    ("min", lambda a, b: torch.sym_min(a * 2, b)),
    ("max_with_a_float", lambda a, b: torch.sym_max(a * 1.5, b)),
    ("choice", lambda a, b: torch.sym_ite(a * 2 > b + 1, a, b)),
    ("choice_of_not", lambda a, b: torch.sym_ite(torch.sym_not(a * 2 > b + 1), a, b)),
)


def _of(formula: Callable[[Any, Any], Any], name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    def function(x: torch.Tensor) -> torch.Tensor:
        number = formula(x.shape[0], x.shape[1])
        whole = isinstance(number, int | torch.SymInt)
        return torch.scalar_tensor(number, dtype=torch.int64 if whole else torch.float64)

    function.__name__ = name
    return function


def _formulas() -> Iterator[Case]:
    for name, formula in FORMULAS:
        # the second size is told apart from the first one by more than 1, so that signs change
        yield Case(_of(formula, name), (normal(5, 3),), why="of sizes", second=(normal(2, 9),))


def numel(x: torch.Tensor) -> torch.Tensor:
    return torch.scalar_tensor(x.numel(), dtype=torch.int64)


def sizes_as_arguments(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(x.shape[0] * x.shape[1]).unsqueeze(0).expand(x.shape[0] + 1, -1)


def size_times_tensor(x: torch.Tensor) -> torch.Tensor:
    return x / (x.shape[1] // 2 + 1)


def item_as_a_number(x: torch.Tensor) -> torch.Tensor:
    return torch.ones(3) * x.sum().item()


def item_as_a_size(x: torch.Tensor) -> torch.Tensor:
    size = x.max().item()
    torch._check(size >= 0)
    return torch.arange(size)


OTHERS = (
    Case(numel, (normal(2, 3),), why="the number of elements"),
    Case(sizes_as_arguments, (normal(2, 3),), why="sizes in shapes"),
    Case(size_times_tensor, (normal(2, 3),), why="a size in arithmetic with a tensor"),
    Case(item_as_a_number, (normal(2, 3),), why="a value as a float"),
    Case(item_as_a_size, (ints(5, low=1),), why="a value as a size"),
)

CASES = (*_formulas(), *OTHERS)
