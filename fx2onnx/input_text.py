"""Inputs as the command line writes them: `x: float32[batch=2, 3, 224, 224]`, `ids: int64[batch=2, seq=16] < 1000`.

    input  = name ":" dtype "[" [axis {"," axis}] "]" ["<" bound]
    axis   = size | name | name "=" size            sizes with a name stay free; a name alone has an example of 2
    dtype  = float32, f32, int64, i64, bool, …      torch's names or the short ones of graph text
    bound  = whole numbers are drawn below it; 2 where omitted
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch

from fx2onnx.errors import ExportInputError
from fx2onnx.types import DTYPES, FROM_SHORT

_INPUT = re.compile(r"\s*([\w.]+)\s*:\s*(\w+)\s*\[(.*)\]\s*(?:<\s*(\d+)\s*)?$")
_AXIS = re.compile(r"\s*(?:([A-Za-z_]\w*)\s*(?:=\s*(\d+))?|(\d+))\s*$")
_EXAMPLE = 2


@dataclass(frozen=True)
class InputText:
    """One input of the command line.

    Attributes:
        name: the parameter's name.
        dtype: its dtype.
        sizes: the example's shape.
        free: the names of the axes that stay free.
        bound: whole numbers are drawn from 0 to bound - 1.
    """

    name: str
    dtype: torch.dtype
    sizes: tuple[int, ...]
    free: dict[int, str]
    bound: int

    def tensor(self, generator: torch.Generator) -> torch.Tensor:
        """A random example: normal numbers, whole numbers below the bound, or coin tosses."""
        if self.dtype.is_floating_point:
            return torch.randn(self.sizes, generator=generator).to(self.dtype)
        return torch.randint(0, self.bound, self.sizes, generator=generator).to(self.dtype)


def parse_input(text: str) -> InputText:
    """The input that a text says.

    Raises:
        ExportInputError: the text is not of the form above.
    """
    match = _INPUT.match(text)
    if not match:
        raise ExportInputError(
            f"--input {text!r} is not of the form name: dtype[sizes]",
            fix='write e.g. "x: float32[batch=2, 3, 224, 224]" or "ids: int64[batch=2, seq=16] < 1000"',
        )
    name, dtype, axes, bound = match.groups()
    sizes: list[int] = []
    free: dict[int, str] = {}
    for i, axis in enumerate(axes.split(",") if axes.strip() else []):
        found = _AXIS.match(axis)
        if not found:
            raise ExportInputError(f"--input {text!r}: {axis.strip()!r} is no size", fix="write 224, batch or batch=2")
        if found[1]:
            free[i] = found[1]
        sizes.append(int(found[2] or found[3] or _EXAMPLE))
    return InputText(name, _dtype(dtype, text), tuple(sizes), free, int(bound) if bound else 2)


def _dtype(name: str, text: str) -> torch.dtype:
    found = FROM_SHORT.get(name, getattr(torch, name, None))
    if not isinstance(found, torch.dtype) or found not in DTYPES:
        names = ", ".join(str(d).removeprefix("torch.") for d in DTYPES)
        raise ExportInputError(f"--input {text!r}: there are no {name} tensors", fix=f"use one of {names}")
    return found
