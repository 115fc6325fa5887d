"""The value of a call, computed anew on the fake values of its arguments; and are two types the same?"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from fx2onnx import dims
from fx2onnx.dims import Dim
from fx2onnx.torch_sizes import sizes_without_special_cases
from fx2onnx.types import SizeType, TensorType, Type
from fx2onnx.whole_shapes import whole_shapes


class NotInferableError(Exception):
    """Types alone do not say what a call makes; the cause is chained."""


_UNKNOWN = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
    UnsupportedOperatorException,
)


def infer(target: Callable[..., Any], args: Any, kwargs: Any, mode: FakeTensorMode | None) -> Any:
    """What `target` makes of fake values; the values themselves are not changed, even by an operator that writes.

    Args:
        target: an ATen overload, a control-flow operator or a Python operator.
        args, kwargs: fake values, numbers, and GraphModules for bodies of control flow.
        mode: the fake mode of the graph.

    Raises:
        NotInferableError: the result depends on data in a way that cannot be said.
        Exception: whatever the operator raises for arguments that do not fit.
    """
    if isinstance(target, OpOverload) and target._schema.is_mutable:  # noqa: SLF001  the schema has no public name
        args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, _alias, (args, kwargs))  # noqa: SLF001
        return torch.utils._pytree.tree_map_only(torch.Tensor, _alias, _run(target, args, kwargs, mode))  # noqa: SLF001
    return _run(target, args, kwargs, mode)


def _alias(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory with a shape of its own, which `t_` and the like can change."""
    return tensor.detach()


def _run(target: Callable[..., Any], args: Any, kwargs: Any, mode: FakeTensorMode | None) -> Any:
    # As in tracing: the C++ forms of composite operators would fix free sizes, some without an error.
    with (
        mode or contextlib.nullcontext(),
        enable_python_dispatcher(),
        torch.no_grad(),
        whole_shapes(),
        sizes_without_special_cases(),
    ):
        try:
            return _call(target, args, kwargs)
        except _UNKNOWN as error:
            raise NotInferableError(str(error).splitlines()[0]) from error


def _call(target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    try:
        return target(*args, **kwargs)
    except ValueError:
        # A pass that drops copies leaves strides to no one: then a view is any reshape of the same elements.
        if target is not torch.ops.aten.view.default:
            raise
    return torch.ops.aten.reshape.default(*args, **kwargs)


def argument_values(module: fx.GraphModule, node: fx.Node) -> tuple[Any, Any]:
    """The arguments of a node with values for nodes: their `meta["val"]`, or the graph that they hold."""

    def value(argument: fx.Node) -> Any:
        if argument.op == "get_attr":
            return _held(module, argument)
        return argument.meta.get("val")

    args, kwargs = fx.node.map_arg((node.args, node.kwargs), value)
    return args, kwargs


def _held(module: fx.GraphModule, node: fx.Node) -> Any:
    found: Any = module
    for part in str(node.target).split("."):
        found = getattr(found, part)
    return found if isinstance(found, fx.GraphModule) else node.meta.get("val", found)


# -- types -----------------------------------------------------------------------------------------

_SAMPLES = (0, 1, 2, 3, 5, 8, 12, 31, 64, 97)


def same_size(a: Dim, b: Dim) -> bool:
    """Are two sizes equal? Where their forms do not tell, they are compared on numbers."""
    if (known := dims.same(a, b)) is not None:
        return known
    names = sorted(dims.names(a) | dims.names(b))
    return all(
        dims.evaluate(a, values) == dims.evaluate(b, values)
        for start in range(len(_SAMPLES))
        for values in [
            dict(zip(names, itertools.islice(itertools.cycle(_SAMPLES), start, None), strict=False))
        ]
    )


def same_type(a: Type | None, b: Type | None) -> bool:
    """Are two types the same, sizes compared by `same_size`?"""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.dtype == b.dtype and _all_same(a.shape, b.shape)
    if isinstance(a, SizeType) and isinstance(b, SizeType):
        return a.kind is b.kind and (a.expr is None or b.expr is None or same_size(a.expr, b.expr))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(itertools.starmap(same_type, zip(a, b, strict=True)))
    return a is None and b is None


def _all_same(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    return len(a) == len(b) and all(itertools.starmap(same_size, zip(a, b, strict=True)))


def mapped_sizes(type_: Type | None, change: Callable[[Dim], Dim]) -> Type | None:
    """A type with every size changed."""
    if isinstance(type_, TensorType):
        return TensorType(type_.dtype, tuple(map(change, type_.shape)))
    if isinstance(type_, SizeType):
        return type_ if type_.expr is None else SizeType(type_.kind, change(type_.expr))
    return None if type_ is None else tuple(mapped_sizes(part, change) for part in type_)


def sizes_in(type_: Type | None) -> Iterator[Dim]:
    """Every size of a type."""
    if isinstance(type_, TensorType):
        yield from type_.shape
    elif isinstance(type_, SizeType) and type_.expr is not None:
        yield type_.expr
    elif isinstance(type_, tuple):
        for part in type_:
            yield from sizes_in(part)
