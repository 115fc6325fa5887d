"""The whole compiler, readable in one sitting.

    nn.Module · function · fx.GraphModule · ExportedProgram
        │ capture      fx2onnx/capture/      torch.fx symbolic tracing over fake tensors
        ▼
    TypedGraph         fx2onnx/graph.py      ATen calls; every node has a dtype and a sympy shape
        │ passes       passes/               FX graph → FX graph, an ordered table
        ▼
    TypedGraph         functional, folded, typed, outlined into module regions
        │ lower        fx2onnx/lower.py      each distinct call → one body, by the rules in opset/
        ▼
    bodies and calls
        │ compose      fx2onnx/compose.py    functions, names, initializers
        ▼
    onnx_ir.Model      in an OnnxProgram     save, run, verify, inline

Data flows one way; only this file knows all stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from fx2onnx.capture import Model, capture
from fx2onnx.compose import compose
from fx2onnx.errors import ExportInputError
from fx2onnx.garbage import collector_paused
from fx2onnx.graph import TypedGraph
from fx2onnx.lower import lower_graph
from fx2onnx.opset import RULES
from fx2onnx.passes import Pipeline, default_pipeline, prepare_pieces
from fx2onnx.program import OnnxProgram
from fx2onnx.rules import OLDEST_OPSET, Rule, RuleBook
from fx2onnx.version import __version__

# 23: the first opset with Attention and RMSNormalization, both native in ONNX Runtime's CPU provider; from 25 on
# Attention is run as a function of 71 nodes, and Q/DQ of 28 does not load (onnxruntime 1.32).
DEFAULT_OPSET = 23
NEWEST_OPSET = 28  # the newest that onnx 1.23 and onnxruntime 1.32 both know

Functions = Literal["modules", "ops", "none"]
Target = Literal["onnx", "onnxruntime"]


def export(
    model: Model,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    functions: Functions = "modules",
    target: Target = "onnx",
    rules: Iterable[Rule] | RuleBook = (),
    passes: Pipeline | None = None,
    return_mutated: bool = False,
    print_after: str | Sequence[str] = (),
    verify_each: bool = False,
    progress: Callable[[str], None] | None = None,
) -> OnnxProgram:
    """Compile a PyTorch model to ONNX.

    Args:
        model: an nn.Module, a function of tensors, an fx.GraphModule or an ExportedProgram.
        args, kwargs: example arguments, as for a call of the model.
        dynamic_shapes: the sizes that stay free: names, expressions or torch.export.Dim by input name or position,
            over pytrees; see `fx2onnx.capture.dynamic`.
        dynamic_axes: the same in the older exporter's form.
        input_names, output_names: names for the tensors that go in and come out, in order; their paths
            (`past_key_values.0.key`, `logits`) where omitted.
        opset_version: version of the ai.onnx domain, 18 to 28; 23 where omitted.
        functions: what becomes an ONNX function: module calls and operators ("modules"), operators ("ops") or
            nothing ("none").
        target: "onnx" for standard operators only, "onnxruntime" also for com.microsoft operators.
        rules: lowering rules that win over the built-in ones, or a whole RuleBook.
        passes: the pass pipeline; `fx2onnx.passes.default_pipeline()` where omitted.
        return_mutated: return the new values of inputs and buffers that the model writes to as extra
            outputs; they are left out, with a note, otherwise.
        print_after: names of passes after which the graph is printed, or "all".
        verify_each: check the graph's invariants after each pass.
        progress: called with each stage's name as it begins.

    Raises:
        Fx2OnnxError: the subclass says what kind of failure it is; see `fx2onnx.errors`.
    """
    opset = _checked_opset(opset_version)
    _check_choices(functions, target)
    say = progress or (lambda _: None)
    with collector_paused():
        say("capture")
        graph = capture(
            model,
            args,
            kwargs,
            dynamic_shapes=dynamic_shapes,
            dynamic_axes=dynamic_axes,
            input_names=input_names,
            output_names=output_names,
        )
        say("passes")
        pipeline = passes if passes is not None else default_pipeline()
        graph = pipeline(graph, print_after=print_after, verify_each=verify_each)
        graph = name_mutated(graph, return_mutated=return_mutated)
        say("lower")
        program = lower(graph, opset_version=opset, functions=functions, target=target, rules=rules)
    return replace(program, source=_eager(model), args=_tuple(args), kwargs=dict(kwargs or {}))


def lower(
    graph: TypedGraph,
    *,
    opset_version: int | None = None,
    functions: Functions = "modules",
    target: Target = "onnx",
    rules: Iterable[Rule] | RuleBook = (),
) -> OnnxProgram:
    """Lower a typed graph and compose the ONNX model; the arguments are those of `export`."""
    opset = _checked_opset(opset_version)
    book = rules if isinstance(rules, RuleBook) else RULES.with_rules(rules)
    lowered = lower_graph(
        graph, book, opset=opset, dialect=target, functions=functions, prepare=prepare_pieces
    )
    return OnnxProgram(compose(lowered, graph, opset=opset, producer_version=__version__), graph)


def name_mutated(graph: TypedGraph, *, return_mutated: bool) -> TypedGraph:
    """Name the outputs that hold mutated inputs and buffers, or drop them with a note for each."""
    mutated = [o for o in graph.outputs if o.mutated is not None]
    if not mutated:
        return graph
    if return_mutated:
        outputs = tuple(
            replace(o, name=f"{o.mutated}.mutated") if o.mutated is not None else o for o in graph.outputs
        )
        return replace(graph, outputs=outputs)
    output = graph.module.graph.output_node()
    kept = len(graph.outputs) - len(mutated) - sum(o.name is None for o in graph.outputs if o.mutated is None)
    results: Any = output.args[0]
    output.args = (tuple(results[:kept]),)
    notes = tuple(
        f"the model writes to {o.mutated}; the new value is not an output (return_mutated=True)"
        for o in mutated
    )
    outputs = tuple(o for o in graph.outputs if o.mutated is None)
    return replace(graph, outputs=outputs, notes=graph.notes + notes)


def _checked_opset(version: int | None) -> int:
    if version is None:
        return DEFAULT_OPSET
    if (
        isinstance(version, bool)
        or not isinstance(version, int)
        or not OLDEST_OPSET <= version <= NEWEST_OPSET
    ):
        raise ExportInputError(
            f"opset_version is {version!r}",
            fix=f"opsets {OLDEST_OPSET} to {NEWEST_OPSET} are written; {DEFAULT_OPSET} is the default",
        )
    return version


def _check_choices(functions: str, target: str) -> None:
    if functions not in ("modules", "ops", "none"):
        raise ExportInputError(f"functions is {functions!r}", fix='use "modules", "ops" or "none"')
    if target not in ("onnx", "onnxruntime"):
        raise ExportInputError(f"target is {target!r}", fix='use "onnx" or "onnxruntime"')


def _tuple(args: Any) -> tuple[Any, ...]:
    return tuple(args) if isinstance(args, tuple | list) else (args,)


def _eager(model: Any) -> Any:
    """The callable that `verify` compares with."""
    return model.module() if hasattr(model, "module_call_graph") else model
