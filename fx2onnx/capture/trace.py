"""Running torch's tracer: example tensors made ready, one non-strict torch.export, errors framed."""

from __future__ import annotations

import contextlib
import inspect
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.export import Dim as TorchDim

from fx2onnx.capture.containers import dataclass_results
from fx2onnx.capture.dynamic import Request
from fx2onnx.capture.hints import resized
from fx2onnx.capture.is_causal import symbolic_is_causal
from fx2onnx.capture.relations import user_lines
from fx2onnx.capture.short_circuit import short_circuits
from fx2onnx.capture.signature import Arguments
from fx2onnx.errors import CaptureError, Fx2OnnxError
from fx2onnx.origin import is_torch_file
from fx2onnx.torch_sizes import sizes_without_special_cases
from fx2onnx.whole_shapes import whole_shapes


class FunctionModule(torch.nn.Module):
    """A plain function as a module, with the function's own signature."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function if _has_signature(function) else _with_signature(function)


def _has_signature(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function)
    except (TypeError, ValueError):
        return False
    return True


def _with_signature(function: Callable[..., Any]) -> Callable[..., Any]:
    """A builtin (`torch.relu`) as a function that the tracer can ask for its parameters."""

    def forward(*input: Any) -> Any:
        return function(*input)

    return forward


def trace(
    module: torch.nn.Module,
    arguments: Arguments,
    requests: Sequence[Request],
    sizes: Mapping[tuple[int, int], int],
) -> torch.export.ExportedProgram:
    """Trace a module over fake tensors, with every requested axis free.

    Args:
        module: the model.
        arguments: the example arguments.
        requests: the dynamic axes.
        sizes: for (leaf index, axis) the size to trace with, see `fx2onnx.capture.hints`.

    Raises:
        CaptureError: the model's forward raised, or torch could not trace it.
    """
    args, kwargs = arguments.with_values(_examples(module, arguments, sizes))
    shapes = torch.export.ShapesCollection()
    by_leaf: dict[int, dict[int, Any]] = {}
    for request in requests:
        by_leaf.setdefault(request.leaf.index, {})[request.axis] = _hint(request)
    leaves = torch.utils._pytree.tree_leaves((args, kwargs))
    for index, axes in by_leaf.items():
        shapes[leaves[index]] = axes
    dynamic = shapes.dynamic_shapes(module, args, kwargs) if by_leaf else None
    try:
        with _tracing(), dataclass_results(module):
            program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic, strict=False)
    except Fx2OnnxError:
        raise
    except Exception as error:
        raise capture_error(error) from error
    if torch.is_autocast_enabled("cpu"):  # it is not in the graph: the caller's context is not traced
        program.graph_module.meta["autocast"] = torch.get_autocast_dtype("cpu")
    return program


@contextlib.contextmanager
def _tracing() -> Iterator[None]:
    """Sizes 0 and 1 are not special, guards know the user's lines, operators stay whole."""
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with (
            sizes_without_special_cases(),
            user_lines(),
            short_circuits(),
            whole_shapes(),
            symbolic_is_causal(),
            warnings.catch_warnings(),
        ):
            # Recurrent modules keep their weights in a plain list besides; torch takes that for an assignment.
            warnings.filterwarnings("ignore", "The tensor attributes? .*_flat_weights")
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)


def _hint(request: Request) -> Any:
    return TorchDim.AUTO(min=request.low, max=request.high)  # type: ignore[operator]


def _examples(
    module: torch.nn.Module, arguments: Arguments, traced: Mapping[tuple[int, int], int]
) -> dict[int, torch.Tensor]:
    """Tensors to trace with instead of the examples.

    Sizes that would leak are changed, and a tensor that is passed twice (or that is the model's own) is
    passed as a copy, since torch would take both for one input.
    """
    made: dict[int, torch.Tensor] = {}
    sizes: dict[int, dict[int, int]] = {}
    for (index, axis), size in traced.items():
        sizes.setdefault(index, {})[axis] = size
    seen = {id(t) for t in (*module.parameters(), *module.buffers())}
    for leaf in arguments.tensors():
        if leaf.index in sizes:
            made[leaf.index] = resized(leaf.value.detach(), sizes[leaf.index])
        elif id(leaf.value) in seen:
            made[leaf.index] = leaf.value.detach().clone()
        seen.add(id(leaf.value))
    return made


def capture_error(error: Exception) -> CaptureError:
    """Torch's or the model's own exception with the user's line around it."""
    where = None
    for frame in traceback.extract_tb(error.__traceback__):
        if not is_torch_file(frame.filename) and "fx2onnx" not in frame.filename:
            where = f"{frame.filename}:{frame.lineno}: {frame.line}"
    text = str(error).strip().splitlines()
    first = text[0] if text else "no message"
    return CaptureError(f"the model could not be traced: {type(error).__name__}: {first}", where=where)
