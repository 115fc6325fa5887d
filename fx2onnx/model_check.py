"""ONNX models from disk as programs that can be verified, whoever exported them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from fx2onnx.errors import Fx2OnnxError
from fx2onnx.graph import TypedGraph
from fx2onnx.program import OnnxProgram


def load(
    path: Path,
    graph: TypedGraph,
    source: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> OnnxProgram:
    """The model at `path` as a program that is run and verified as `source` is called.

    Inputs and outputs are told apart by their names where these are the graph's, by their order otherwise.

    Args:
        path: an ONNX file.
        graph: the capture of `source`.
        source: the PyTorch model.
        args, kwargs: example arguments.

    Raises:
        Fx2OnnxError: the file holds no ONNX model, or one that ONNX Runtime does not load, or that has
            another number of inputs or outputs.
    """
    try:
        model = ir.load(path)
    except Exception as error:  # protobuf's, of many kinds
        raise Fx2OnnxError(f"{path} is not an ONNX model: {error}") from error
    program = OnnxProgram(model, _named_as(model, graph, path), source, tuple(args), dict(kwargs))
    try:
        program.session()
    except Fx2OnnxError:
        raise
    except Exception as error:  # ONNX Runtime's, of many kinds
        raise Fx2OnnxError(f"ONNX Runtime does not load {path}: {error}") from error
    return program


def _named_as(model: ir.Model, graph: TypedGraph, path: Path) -> TypedGraph:
    """The graph with the model's own names for its inputs and outputs."""
    initialised = model.graph.initializers
    there = [v.name for v in model.graph.inputs if v.name not in initialised]
    ours = [i.name for i in graph.inputs]
    inputs = _matched("input", ours, there, path)
    made = [o.name for o in graph.outputs if o.name is not None and o.leaf is not None]
    outputs = _matched("output", made, [v.name for v in model.graph.outputs], path)
    return replace(
        graph,
        inputs=tuple(replace(i, name=inputs[i.name]) for i in graph.inputs),
        outputs=tuple(replace(o, name=outputs[o.name]) if o.name in outputs else o for o in graph.outputs),
    )


def _matched(kind: str, ours: Sequence[str], theirs: Sequence[str | None], path: Path) -> dict[str, str]:
    """Our name → the model's, by name if it has all of ours, else by position."""
    if set(ours) <= set(theirs):
        return {name: name for name in ours}
    if len(ours) == len(theirs):
        return {name: str(other) for name, other in zip(ours, theirs, strict=True)}
    raise Fx2OnnxError(
        f"{path} has the {kind}s {', '.join(map(str, theirs))}, but the PyTorch model has {', '.join(ours)}"
    )
