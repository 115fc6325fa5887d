"""Inputs as the command line writes them: `ids: int64[batch=2, seq=16] < 1000`.

The grammar:

    input  = name ":" dtype "[" [axis {"," axis}] "]" ["<" bound]
    axis   = size | name | name "=" size
    dtype  = float32, f32, int64, i64, bool, …

An axis with a name stays free; `batch=2` also gives the example's size, which is 2 where no input gives one.
Whole numbers are drawn below the bound, which is 2 where omitted; the rest are random values of their dtype.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from fx2onnx.errors import ExportInputError
from fx2onnx.types import DTYPES, FROM_SHORT

_INPUT = re.compile(r"\s*([A-Za-z_]\w*)\s*:\s*(\w+)\s*\[(.*)\]\s*(?:<\s*(\d+)\s*)?$")
_AXIS = re.compile(r"\s*(?:(?P<name>[A-Za-z_]\w*)\s*(?:=\s*(?P<example>\d+))?|(?P<size>\d+))\s*$")
_EXAMPLE = 2
_BOUND = 2


@dataclass(frozen=True)
class Axis:
    """One axis: its name where it stays free, its size where that is given; one of the two is."""

    name: str | None
    size: int | None


@dataclass(frozen=True)
class InputText:
    """One input of the command line.

    Attributes:
        name: the parameter's name.
        dtype: its dtype.
        axes: its axes in order.
        bound: whole numbers are drawn from 0 to bound - 1.
    """

    name: str
    dtype: torch.dtype
    axes: tuple[Axis, ...]
    bound: int = _BOUND

    @property
    def free(self) -> dict[int, str]:
        """The names of the axes that stay free, by position."""
        return {i: axis.name for i, axis in enumerate(self.axes) if axis.name is not None}

    def tensor(self, examples: dict[str, int], generator: torch.Generator) -> torch.Tensor:
        """A random example: normal numbers, whole numbers below the bound, or coin tosses.

        Args:
            examples: sizes for the names of axes; see `example_sizes`.
            generator: where the values come from.
        """
        shape = [examples[a.name] if a.name is not None else a.size or 0 for a in self.axes]
        if self.dtype.is_floating_point:
            return torch.randn(shape, generator=generator).to(self.dtype)
        return torch.randint(0, self.bound, shape, generator=generator).to(self.dtype)


def parse_inputs(texts: Iterable[str]) -> list[InputText]:
    """The inputs that these texts say.

    Raises:
        ExportInputError: a text is not of the form above, or two are of the same input.
    """
    inputs = [parse_input(text) for text in texts]
    names = [i.name for i in inputs]
    if doubled := sorted({n for n in names if names.count(n) > 1}):
        raise ExportInputError(f"--input gives {', '.join(doubled)} twice")
    return inputs


def parse_input(text: str) -> InputText:
    """The input that one text says.

    Raises:
        ExportInputError: the text is not of the form above.
    """
    match = _INPUT.match(text)
    if not match:
        raise ExportInputError(
            f"--input {text!r} is not of the form name: dtype[sizes]",
            fix='write e.g. "x: float32[batch=2, 3, 224, 224]" or "ids: int64[batch=2, seq=16] < 1000"',
        )
    name, dtype_name, inner, bound = match.groups()
    dtype = _dtype(dtype_name, text)
    axes = tuple(_axis(axis, text) for axis in inner.split(",")) if inner.strip() else ()
    return InputText(name, dtype, axes, _BOUND if bound is None else _bound(int(bound), dtype, text))


def example_sizes(inputs: Iterable[InputText]) -> dict[str, int]:
    """The example's size for each name of an axis.

    Raises:
        ExportInputError: a name has two sizes.
    """
    sizes: dict[str, int] = {}
    axes = [axis for i in inputs for axis in i.axes if axis.name is not None]
    for axis in axes:
        assert axis.name is not None  # only named axes are left
        if axis.size is not None and sizes.setdefault(axis.name, axis.size) != axis.size:
            raise ExportInputError(
                f"--input: {axis.name} is {sizes[axis.name]} in one place and {axis.size} in another",
                fix="give axes of different sizes different names",
            )
    return {axis.name: sizes.get(axis.name, _EXAMPLE) for axis in axes if axis.name is not None}


def _axis(axis: str, text: str) -> Axis:
    found = _AXIS.match(axis)
    if not found:
        raise ExportInputError(
            f"--input {text!r}: {axis.strip()!r} is no size", fix="write 224, batch or batch=2"
        )
    size = found["example"] or found["size"]
    return Axis(found["name"], None if size is None else int(size))


def _bound(bound: int, dtype: torch.dtype, text: str) -> int:
    if dtype.is_floating_point or dtype == torch.bool:
        raise ExportInputError(f"--input {text!r}: only whole numbers have a bound")
    if not 1 <= bound <= torch.iinfo(dtype).max + 1:
        raise ExportInputError(f"--input {text!r}: no {dtype} is drawn below {bound}")
    return bound


def _dtype(name: str, text: str) -> torch.dtype:
    found = FROM_SHORT.get(name, getattr(torch, name, None))
    if not isinstance(found, torch.dtype) or found not in DTYPES:
        names = ", ".join(str(d).removeprefix("torch.") for d in DTYPES)
        raise ExportInputError(f"--input {text!r}: there are no {name} tensors", fix=f"use one of {names}")
    return found
