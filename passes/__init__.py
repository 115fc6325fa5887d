"""The passes in their order, and the pipeline that runs them.

Each pass is a file of its own with a `run`; `PIPELINE` is the one place that knows their order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import fx

from fx2onnx.errors import UnsupportedOpError
from fx2onnx.graph import TypedGraph
from fx2onnx.passes import (
    cse,
    dead_code,
    drop_noops,
    fold_constants,
    functionalize,
    fuse_batch_norm,
    inline_contexts,
    outline,
    plain_creation,
    promote_types,
    share_sizes,
    split_group_norm,
    split_linear,
)
from fx2onnx.rewrite import Pass

PIPELINE: tuple[Pass, ...] = (
    inline_contexts.run,  # first: what grad mode and autocast wrap is part of the graph
    functionalize.run,  # then no call writes: every later pass may assume that calls only compute
    plain_creation.run,  # before cse and fold_constants: masks are then made of numbers alone
    drop_noops.run,  # before outline: fewer nodes, and module calls that come to one operator show as such
    share_sizes.run,  # before outline: regions get their sizes as arguments
    cse.run,  # before outline too: module calls that repeat a mask or a size computation then share it
    fold_constants.run,  # before outline: tables that layers share are then state
    outline.run,  # from here on work is done once for each distinct region
    promote_types.run,  # before the passes that make weights, which then are of one dtype
    fuse_batch_norm.run,  # before split_linear and fold_constants, which fold the weights that it writes
    split_linear.run,  # also before it
    split_group_norm.run,  # also before it
    fold_constants.run,
    cse.run,
    dead_code.run,  # last: the others leave unread nodes behind
)


@dataclass(frozen=True)
class Pipeline:
    """An ordered set of passes; calling it runs them.

    Attributes:
        passes: in order.
    """

    passes: tuple[Pass, ...] = PIPELINE

    def __call__(
        self,
        graph: TypedGraph,
        *,
        print_after: str | Sequence[str] = (),
        verify_each: bool = False,
        on_pass: Callable[[Pass], None] | None = None,
    ) -> TypedGraph:
        """Run all passes; `graph` is left as it is.

        Args:
            graph: a captured graph.
            print_after: names of passes after which the graph is printed to standard error, or "all".
            verify_each: check the invariants after each pass.
            on_pass: called before each pass.

        Raises:
            KeyError: `print_after` names no pass of the pipeline.
            InvariantError: a pass broke the graph.
        """
        printed = self._printed(print_after)
        result = graph.copy()
        functional = False
        for step in self.passes:
            if on_pass is not None:
                on_pass(step)
            step.apply(result)
            if step.name in printed:
                sys.stderr.write(f"# after {step.name}\n{result}\n")
            functional |= step.name == functionalize.run.name
            if verify_each:
                from fx2onnx.verifier import check  # noqa: PLC0415  only when asked for

                check(result, stage=step.name, functional=functional)
        return result

    def _printed(self, names: str | Sequence[str]) -> set[str]:
        chosen = {names} if isinstance(names, str) else set(names)
        known = {step.name for step in self.passes}
        if "all" in chosen:
            return known
        if unknown := chosen - known:
            raise KeyError(
                f"no pass is called {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}"
            )
        return chosen

    def insert_before(self, name: str, new: Pass) -> Pipeline:
        """A pipeline with `new` before the first pass of this name."""
        return self._inserted(self._position(name), new)

    def insert_after(self, name: str, new: Pass) -> Pipeline:
        """A pipeline with `new` after the last pass of this name."""
        last = max(i for i, step in enumerate(self.passes) if i >= self._position(name) and step.name == name)
        return self._inserted(last + 1, new)

    def without(self, name: str) -> Pipeline:
        """A pipeline without the passes of this name."""
        self._position(name)
        return replace(self, passes=tuple(step for step in self.passes if step.name != name))

    def _inserted(self, position: int, new: Pass) -> Pipeline:
        return replace(self, passes=(*self.passes[:position], new, *self.passes[position:]))

    def _position(self, name: str) -> int:
        for i, step in enumerate(self.passes):
            if step.name == name:
                return i
        raise KeyError(f"no pass is called {name}")


def default_pipeline() -> Pipeline:
    """The passes that `fx2onnx.export` runs."""
    return Pipeline()


# What the graph of a decomposed call goes through before it is lowered.
PIECES: tuple[Pass, ...] = (
    functionalize.run,  # decompositions fill new tensors in place
    drop_noops.run,
    promote_types.run,  # and count on implicit promotion
    dead_code.run,
)


def prepare_pieces(module: fx.GraphModule) -> fx.GraphModule:
    """Bring the graph of a decomposed call to the form that rules expect; its parameters and results stay.

    Raises:
        UnsupportedOpError: the decomposition writes to its arguments.
    """
    graph = TypedGraph(module, inputs=(), outputs=(), state={}, state_names=_placeholder_names(module))
    for step in PIECES:
        step.apply(graph)
    if mutated := [o.mutated for o in graph.outputs if o.mutated]:
        raise UnsupportedOpError(f"a decomposition writes to its argument {', '.join(mutated)}")
    return graph.module


def _placeholder_names(module: fx.GraphModule) -> dict[str, str]:
    return {node.name: node.name for node in module.graph.find_nodes(op="placeholder")}
