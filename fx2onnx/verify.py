"""The same inputs through eager PyTorch and ONNX Runtime, at the example's sizes and at others."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from fx2onnx import dims
from fx2onnx.errors import Fx2OnnxError, VerificationError
from fx2onnx.program import OnnxProgram
from fx2onnx.types import TensorType, type_of

# The largest difference that is taken for rounding, as a share of the output's scale.
TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def _listed(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{k}={v}" for k, v in sizes.items()) or "static sizes"


@dataclass(frozen=True)
class Check:
    """One run: the sizes, and for each output the largest difference as a share of its scale."""

    sizes: dict[str, int]
    differences: dict[str, float]

    def __str__(self) -> str:
        worst = max(self.differences.values(), default=0.0)
        count = len(self.differences)
        return f"{_listed(self.sizes)}: {count} outputs equal, largest difference {worst:.1e} of the scale"


@dataclass(frozen=True)
class Skipped:
    """Sizes that the PyTorch model itself does not take, and what it raises."""

    sizes: dict[str, int]
    reason: str

    def __str__(self) -> str:
        return f"{_listed(self.sizes)}: not compared, the PyTorch model raises {self.reason}"


@dataclass(frozen=True)
class Report:
    """All runs of a verification."""

    checks: tuple[Check, ...]
    skipped: tuple[Skipped, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.checks, *self.skipped)))


def verify(
    program: OnnxProgram,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tolerance: Mapping[torch.dtype, float] | None = None,
    other_sizes: bool = True,
) -> Report:
    """Compare a program in ONNX Runtime with the PyTorch model that it was made from.

    Args:
        program: the exported model.
        args, kwargs: inputs; those of the export where omitted.
        tolerance: for each dtype the largest difference, as a share of the output's largest value.
        other_sizes: also run with each dynamic size at 1 and at other values, as far as the model's
            relations allow and the PyTorch model takes them; the report lists those that it does not take.

    Raises:
        VerificationError: an output differs in dtype, shape or values.
        Fx2OnnxError: the program does not know its PyTorch model.
    """
    if program.source is None:
        raise Fx2OnnxError("this program does not hold the PyTorch model that it came from")
    if args is None:
        args, kwargs = program.args, program.kwargs
    kwargs = dict(kwargs or {})
    limits = {**TOLERANCE, **(tolerance or {})}
    checks = [_check(program, args, kwargs, _eager(program, args, kwargs), limits)]
    skipped: list[Skipped] = []
    if other_sizes:
        for sizes in _other_sizes(program.sizes(program.feeds(args, kwargs)), skipped):
            if (inputs := _resized(program, args, kwargs, sizes, seed=len(checks))) is None:
                continue
            try:
                expected = _eager(program, *inputs)
            except Exception as error:  # noqa: BLE001  models raise what they like at sizes that they do not take
                skipped.append(Skipped(dict(sizes), f"{type(error).__name__}: {error}".splitlines()[0]))
                continue
            checks.append(_check(program, *inputs, expected, limits))
    return Report(tuple(checks), tuple(skipped))


def _other_sizes(sizes: Mapping[str, int], skipped: Sequence[Skipped]) -> Iterator[dict[str, int]]:
    """Every free size at 1, one after the other where the model does not take that; then all a little larger."""
    if not sizes:
        return
    ones = dict.fromkeys(sizes, 1)
    tried = [ones]
    yield ones
    if skipped and len(sizes) > 1:
        tried += [{**sizes, name: 1} for name in sizes]
        yield from tried[1:]
    larger = {k: v + 1 + i for i, (k, v) in enumerate(sizes.items())}
    if larger not in tried:
        yield larger


def _check(
    program: OnnxProgram,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result: Any,
    limits: Mapping[torch.dtype, float],
) -> Check:
    feeds = program.feeds(args, kwargs)
    expected = pytree.tree_leaves(result)
    made = program.run(feeds)
    differences = {}
    for output in program.graph.outputs:
        if output.name is not None and output.leaf is not None:
            differences[output.name] = _difference(
                output.name, made[output.name], expected[output.leaf], limits, program.sizes(feeds)
            )
    return Check(program.sizes(feeds), differences)


def _eager(program: OnnxProgram, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The PyTorch model's own result, on copies, so that nothing of the user's is changed."""
    source: Any = program.source
    args, kwargs = copy.deepcopy((tuple(args), dict(kwargs)))
    if not isinstance(source, torch.nn.Module):
        return source(*args, **kwargs)
    buffers = {name: b.clone() for name, b in source.named_buffers()}
    try:
        with torch.no_grad():
            return source(*args, **kwargs)
    finally:
        with torch.no_grad():
            for name, buffer in source.named_buffers():
                buffer.copy_(buffers[name])


def _difference(
    name: str,
    made: torch.Tensor,
    expected: torch.Tensor,
    limits: Mapping[torch.dtype, float],
    sizes: Mapping[str, int],
) -> float:
    at = f" at {', '.join(f'{k}={v}' for k, v in sizes.items())}" if sizes else ""
    if made.dtype != expected.dtype or made.shape != expected.shape:
        raise VerificationError(
            f"the output {name}{at} is {made.dtype}{list(made.shape)}, "
            f"but eager PyTorch makes {expected.dtype}{list(expected.shape)}"
        )
    if made.numel() == 0:
        return 0.0
    a, b = made.double(), expected.detach().double()
    wrong = ~((a == b) | (a.isnan() & b.isnan()))
    if not wrong.any():
        return 0.0
    finite = b[b.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 1.0
    difference = (a - b).abs()
    difference[~wrong] = 0.0
    share = float((difference / max(scale, 1e-30)).nan_to_num(nan=float("inf")).max())
    if share > limits.get(made.dtype, 0.0):
        place = int(difference.nan_to_num(nan=float("inf")).argmax())
        index = [int(i) for i in torch.unravel_index(torch.tensor(place), expected.shape)]
        raise VerificationError(
            f"the output {name}{at} differs by {share:.2e} of its scale: {int(wrong.sum())} of {made.numel()} "
            f"values, most at {index}: {a.flatten()[place]:.8g}, eager PyTorch has {b.flatten()[place]:.8g}"
        )
    return share


def _resized(
    program: OnnxProgram, args: Sequence[Any], kwargs: Mapping[str, Any], sizes: Mapping[str, int], seed: int
) -> tuple[Any, Any] | None:
    """The inputs at other sizes; None where they are the same, or not allowed by what the model needs."""
    if sizes == program.sizes(program.feeds(args, kwargs)) or not _allowed(program, sizes):
        return None
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    changed = _resized_leaves(program, list(leaves), sizes, seed)
    return None if changed is None else pytree.tree_unflatten(changed, spec)


def _allowed(program: OnnxProgram, sizes: Mapping[str, int]) -> bool:
    return all(dims.holds(r.left, r.sign, r.right, sizes) is not False for r in program.graph.relations)


def _resized_leaves(
    program: OnnxProgram, leaves: list[Any], sizes: Mapping[str, int], seed: int
) -> list[Any] | None:
    """Inputs of other sizes with values taken from the example's, in another order."""
    placeholders = program.graph.placeholders()
    generator = torch.Generator().manual_seed(seed)
    for entry in program.graph.inputs:
        found = type_of(placeholders[entry.placeholder])
        assert isinstance(found, TensorType)  # inputs are tensors
        shape = [dims.evaluate(s, sizes) for s in found.shape]
        if any(s is None or s < 0 for s in shape):
            return None
        old = leaves[entry.leaf]
        if list(old.shape) == shape:
            continue
        if old.numel() == 0:
            leaves[entry.leaf] = old.new_zeros(shape)  # type: ignore[arg-type]
            continue
        count = 1
        for s in shape:
            count *= s  # type: ignore[operator]
        picks = torch.randint(0, old.numel(), (count,), generator=generator)
        leaves[entry.leaf] = old.reshape(-1)[picks].reshape(shape)  # type: ignore[arg-type]
    return leaves
