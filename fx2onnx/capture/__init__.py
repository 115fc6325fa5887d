"""Model → TypedGraph: torch.fx symbolic tracing over fake tensors, sizes in the user's names.

`capture` takes an nn.Module, a plain function, an fx.GraphModule or an ExportedProgram. The trace is taken as it
is: composite operators stay whole, nothing is traced again for decomposition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from fx2onnx.capture.containers import register_caches, register_dataclasses
from fx2onnx.capture.dynamic import Request, requests
from fx2onnx.capture.hints import traced_sizes
from fx2onnx.capture.idle import without_idle_relations
from fx2onnx.capture.program import typed_graph
from fx2onnx.capture.results import check_names
from fx2onnx.capture.signature import Arguments, arguments_of
from fx2onnx.capture.trace import FunctionModule, trace
from fx2onnx.errors import CaptureError, ExportInputError, PinnedDimError
from fx2onnx.graph import TypedGraph
from fx2onnx.types import DTYPES

Model = torch.nn.Module | Callable[..., Any] | torch.export.ExportedProgram


def capture(
    model: Model,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> TypedGraph:
    """The typed graph of a model.

    Args:
        model: an nn.Module (an fx.GraphModule too), a function of tensors, or an ExportedProgram.
        args, kwargs: example arguments, as for a call; pytrees of tensors and Python values.
        dynamic_shapes: the sizes that stay free, see `fx2onnx.capture.dynamic`.
        dynamic_axes: the same in the older exporter's form, by ONNX input name.
        input_names: names for the tensor inputs in order, instead of their paths.
        output_names: names for the returned tensors in order, instead of their paths.

    Raises:
        ExportInputError: arguments, names or sizes that do not fit.
        CaptureError: the model could not be traced.
        PinnedDimError: the model fixes a size that was asked to be dynamic.
    """
    check_names("input_names", input_names)
    check_names("output_names", output_names)
    for name in set(input_names or ()) & set(output_names or ()):
        raise ExportInputError(f"{name!r} is both in input_names and in output_names")
    register_caches()
    if isinstance(model, torch.export.ExportedProgram):
        return _from_program(model, dynamic_shapes, dynamic_axes, input_names, output_names)
    module = _as_module(model)
    register_dataclasses((tuple(args), kwargs))
    arguments = arguments_of(module.forward, args, kwargs)
    _check_dtypes(arguments)
    _check_input_names(arguments, input_names)
    wanted = requests(arguments, dynamic_shapes, dynamic_axes, input_names)
    return _trace_free(module, arguments, wanted, input_names, output_names)


def _trace_free(
    module: torch.nn.Module,
    arguments: Arguments,
    wanted: Sequence[Request],
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> TypedGraph:
    """Trace at the example's sizes, and again at sizes of our own where the example's turn out to matter."""

    def attempt(sizes: dict[tuple[int, int], int]) -> TypedGraph:
        program = trace(module, arguments, wanted, sizes)
        return typed_graph(program, arguments, wanted, input_names, output_names)

    sizes = traced_sizes(wanted)
    try:
        graph = attempt(sizes)
    except CaptureError as error:
        others = traced_sizes(wanted, every=True)
        if others == sizes:
            raise
        sizes = others
        try:
            graph = attempt(sizes)
        except CaptureError as second:
            raise (second if isinstance(second, PinnedDimError) else error) from None
    return without_idle_relations(graph, wanted, lambda: attempt(sizes))


def _as_module(model: Any) -> torch.nn.Module:
    if isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        raise ExportInputError(
            "a ScriptModule has no Python code to trace", fix="pass the nn.Module that was scripted"
        )
    if isinstance(model, torch.nn.Module):
        return model
    if callable(model):
        return FunctionModule(model)
    raise ExportInputError(
        f"the model is a {type(model).__name__}",
        fix="pass an nn.Module, a function, an fx.GraphModule or an ExportedProgram",
    )


def _check_dtypes(arguments: Arguments) -> None:
    for leaf in arguments.tensors():
        if leaf.value.dtype not in DTYPES:
            raise ExportInputError(
                f"the input {leaf.name} is {leaf.value.dtype}, which ONNX Runtime takes no tensors of"
            )
        if leaf.value.layout is not torch.strided:
            raise ExportInputError(f"the input {leaf.name} is {leaf.value.layout}, not a strided tensor")


def _check_input_names(arguments: Arguments, input_names: Sequence[str] | None) -> None:
    count = len(arguments.tensors())
    if input_names is not None and len(input_names) > count:
        raise ExportInputError(
            f"input_names has {len(input_names)} names, but there are {count} tensor inputs"
        )


def _from_program(
    program: torch.export.ExportedProgram,
    dynamic_shapes: Any,
    dynamic_axes: Mapping[str, Any] | None,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> TypedGraph:
    """A program that torch.export made: its example inputs say the structure, its symbols the free sizes."""
    if program.example_inputs is None:
        raise ExportInputError("the ExportedProgram holds no example inputs", fix="export it again")
    args, kwargs = program.example_inputs
    names = program.module_call_graph[0].signature.forward_arg_names  # type: ignore[union-attr]
    arguments = _program_arguments(args, kwargs, names)
    wanted = requests(arguments, dynamic_shapes, dynamic_axes, input_names)
    return typed_graph(program, arguments, wanted, input_names, output_names)


def _program_arguments(args: Any, kwargs: Any, names: Sequence[str] | None) -> Arguments:
    arguments = arguments_of(_anything, args, kwargs)
    if names is None:
        return arguments
    renamed = dict(zip(arguments.parameters, names, strict=False))
    leaves = tuple(
        replace(leaf, path=(renamed.get(str(leaf.path[0]), leaf.path[0]), *leaf.path[1:]))
        for leaf in arguments.leaves
    )
    return Arguments(
        arguments.args, arguments.kwargs, leaves, arguments.spec, tuple(names[: len(arguments.args)])
    )


def _anything(*input: Any, **kwargs: Any) -> None:
    """A signature that every call fits."""


__all__ = ["Model", "capture", "fx"]
