"""Make every change of dtype explicit, so that rules see operands of the dtype that is computed in.

    y = aten.add.Tensor(i64, f32)            a = aten._to_copy.default(i64, dtype=f32)
                                       ->    y = aten.add.Tensor(a, f32)
    s = aten.sum.default(mask)               b = aten._to_copy.default(mask, dtype=i64)
                                             s = aten.sum.default(b)

Python numbers stay numbers; the tensor is cast where the number promotes it (`i64 * 2.5`). Source of the dtypes:
the fake values, that is PyTorch's own promotion; for comparisons, whose result is bool, `torch.result_type`.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import fx

from fx2onnx.rewrite import call, each_graph

aten = torch.ops.aten

# Operators that compute in the dtype of their result, besides those that torch tags as pointwise.
_COMPUTE_IN_RESULT_DTYPE = frozenset(
    {
        *(getattr(aten, name) for name in ("sum", "nansum", "mean", "nanmean", "prod", "cumsum", "cumprod", "logsumexp")),
        *(getattr(aten, name) for name in ("softmax", "log_softmax", "cat", "concat", "concatenate", "stack", "hstack")),
        *(getattr(aten, name) for name in ("vstack", "dstack", "column_stack", "norm", "linalg_vector_norm", "cumulative_trapezoid")),
    }
)
# Pointwise operators whose operands keep their own dtypes.
_KEEP = frozenset(
    getattr(aten, name)
    for name in ("_to_copy", "clone", "copy", "masked_fill", "fill", "bernoulli", "ldexp", "frexp", "float_power", "dropout")
)
_MASKS = frozenset({"condition", "mask"})


def rewrite(module: fx.GraphModule) -> None:
    """Write the casts of one graph."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001
            dtype = _computation_dtype(node)
            if dtype is not None:
                _cast_operands(node, dtype)


def _computation_dtype(node: fx.Node) -> torch.dtype | None:
    """The dtype that the tensors of a call are computed in; None where it takes them as they are."""
    value = node.meta.get("val")
    target: torch._ops.OpOverload = node.target  # type: ignore[assignment]  # noqa: SLF001
    if not isinstance(value, torch.Tensor) or not _promotes(target):
        return None
    if value.dtype is not torch.bool or target.overloadpacket in _COMPUTE_IN_RESULT_DTYPE:
        return value.dtype
    return _compared_dtype(node)


@functools.cache
def _promotes(target: torch._ops.OpOverload) -> bool:  # noqa: SLF001
    packet = target.overloadpacket
    if packet in _COMPUTE_IN_RESULT_DTYPE:
        return True
    return torch.Tag.pointwise in target.tags and packet not in _KEEP and "logical" not in target.name()


def _compared_dtype(node: fx.Node) -> torch.dtype | None:
    """The dtype in which two operands are compared."""
    operands = [_operand(a) for a in node.args[:2]]
    if len(operands) != 2 or any(o is None for o in operands):  # noqa: PLR2004
        return None
    return torch.result_type(*operands)


def _operand(argument: Any) -> Any:
    """A stand-in for promotion: an empty tensor of the same rank and dtype, or a number."""
    value = argument.meta.get("val") if isinstance(argument, fx.Node) else argument
    if isinstance(value, torch.Tensor):
        return torch.empty((0,) * value.dim() if value.dim() else (), dtype=value.dtype)
    if isinstance(value, torch.SymInt):
        return 1
    if isinstance(value, torch.SymFloat):
        return 1.0
    return value if isinstance(value, bool | int | float) else None


def _cast_operands(node: fx.Node, dtype: torch.dtype) -> None:
    formals = node.target._schema.arguments  # type: ignore[union-attr]  # noqa: SLF001
    graph = node.graph

    def cast(argument: fx.Node) -> fx.Node:
        value = argument.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype == dtype:
            return argument
        with graph.inserting_before(node):
            return call(graph, aten._to_copy.default, argument, dtype=dtype, like=node)  # noqa: SLF001

    args = [
        value if formal.name in _MASKS else fx.node.map_arg(value, cast)
        for formal, value in zip(formals, node.args, strict=False)
    ]
    kwargs = {k: v if k in _MASKS else fx.node.map_arg(v, cast) for k, v in node.kwargs.items()}
    for i, formal in enumerate(formals):
        if formal.name == "dtype":  # said by the cast now
            kwargs.pop("dtype", None)
            if i < len(args):
                args[i] = None
    node.args, node.kwargs = tuple(args), kwargs


run = each_graph("promote_types", rewrite)
