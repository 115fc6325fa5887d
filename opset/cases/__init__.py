"""The case table: operators with example arguments, one file per family, feeding every suite.

Each family file holds `CASES`, a tuple of `Case`s, each with the reason why it exists:

    Case(aten.cat.default, ([normal(2, 0), normal(2, 3)], 1), why="an empty part keeps its axis")

`fx2onnx.testing.check` exports a case, runs it in ONNX Runtime and compares it with eager PyTorch.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch


@dataclass(frozen=True, eq=False)
class Case:
    """One call of an operator or of a small function.

    Attributes:
        target: an ATen overload, or a function of tensors.
        args, kwargs: its arguments; every tensor in them becomes an input of the model.
        why: what this case shows that no other does.
        dynamic: which sizes are free in the second export: True for all above 1 (equal sizes share one
            name), False for none, or `{tensor: (axis, ...)}` by position among the tensors.
        second: the tensors of the run at other sizes; made from the first ones where omitted.
        gap: why the case fails, strictly: "ours", "onnxruntime" or "never", as in `fx2onnx.rules.Gap`.
        opsets: the versions of ai.onnx to export to.
        rtol, atol: tolerances other than the dtype's usual ones.
        compare: "types" where values are random.
    """

    target: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    why: str = field(kw_only=True)
    dynamic: bool | Mapping[int, Sequence[int]] = field(default=True, kw_only=True)
    second: Sequence[torch.Tensor] | None = field(default=None, kw_only=True)
    gap: Literal["ours", "onnxruntime", "never"] | None = field(default=None, kw_only=True)
    opsets: tuple[int, ...] = field(default=(23,), kw_only=True)
    rtol: float | None = field(default=None, kw_only=True)
    atol: float | None = field(default=None, kw_only=True)
    compare: Literal["values", "types"] = field(default="values", kw_only=True)

    def __str__(self) -> str:
        """`aten.cat.default-an_empty_part_keeps_its_axis`: the name of its test."""
        name = str(self.target)
        if not isinstance(self.target, torch._ops.OpOverload):
            name = getattr(self.target, "__name__", type(self.target).__name__)
        return f"{name}-{re.sub(r'[^A-Za-z0-9.+=*/<>-]+', '_', self.why).strip('_')}"


def families() -> dict[str, tuple[Case, ...]]:
    """The cases of every file here, by file name."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        found[info.name] = importlib.import_module(f"{__name__}.{info.name}").CASES
    return found


# -- example tensors, the same in every run ----------------------------------------------------------

_RANDOM = torch.Generator().manual_seed(1)


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normally distributed values."""
    return torch.randn(shape, generator=_RANDOM).to(dtype)


def uniform(
    *shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Values spread evenly over [low, high)."""
    return (torch.rand(shape, generator=_RANDOM) * (high - low) + low).to(dtype)


def ints(*shape: int, low: int = -9, high: int = 10, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Whole numbers in [low, high)."""
    return torch.randint(low, high, shape, generator=_RANDOM).to(dtype)


def bools(*shape: int) -> torch.Tensor:
    """True and False, evenly."""
    return torch.rand(shape, generator=_RANDOM) < 0.5


def values(*numbers: float | bool, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A vector of these numbers."""
    return torch.tensor(numbers, dtype=dtype)
