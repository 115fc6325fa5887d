"""Make every change of dtype explicit, so that rules see operands of the dtype that is computed in.

    y = aten.add.Tensor(i64, f32)            a = aten._to_copy.default(i64, dtype=f32)
                                       ->    y = aten.add.Tensor(a, f32)
    s = aten.sum.default(mask)               b = aten._to_copy.default(mask, dtype=i64)
                                             s = aten.sum.default(b)

Casts are written as `aten._to_copy.default(x, dtype=…)`. Python numbers stay numbers; the tensor is cast where the
number promotes it (`i64 * 2.5`). A `dtype=` argument becomes a cast of the operand. Source of the dtypes: the fake
values, that is PyTorch's own promotion; for comparisons, whose result is bool, `torch.result_type`.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import fx

from fx2onnx.rewrite import call, each_graph

aten = torch.ops.aten

_REDUCTIONS = (
    *(aten.sum, aten.nansum, aten.mean, aten.nanmean, aten.prod, aten.cumsum, aten.cumprod, aten.trace),
    *(aten.logsumexp, aten.softmax, aten.log_softmax, aten.norm, aten.linalg_vector_norm, aten.dist),
    *(aten.special_softmax, aten.special_log_softmax, aten.special_logsumexp),
)
_JOINS = (
    *(aten.cat, aten.concat, aten.concatenate, aten.stack, aten.hstack, aten.vstack, aten.dstack),
    *(aten.row_stack, aten.column_stack, aten.block_diag),
)
# Operators on elements that torch does not tag as pointwise: other names of tagged ones, and compositions.
_ALIASES = (
    *(aten.subtract, aten.multiply, aten.divide, aten.true_divide, aten.floor_divide, aten.rsub, aten.where),
    *(
        aten.absolute,
        aten.negative,
        aten.fix,
        aten.arccos,
        aten.arccosh,
        aten.arcsin,
        aten.arcsinh,
        aten.arctan,
    ),
    *(aten.arctan2, aten.arctanh, aten.outer, aten.ger, aten.kron, aten.special_exp2, aten.special_expit),
    *(aten.special_erf, aten.special_erfc, aten.special_erfinv, aten.special_expm1, aten.special_log1p),
    *(aten.special_logit, aten.special_digamma, aten.special_psi, aten.special_gammaln, aten.special_i0),
    *(aten.special_sinc, aten.special_round, aten.special_ndtr, aten.special_xlogy, aten.special_gammainc),
    *(aten.special_gammaincc, aten.special_polygamma, aten.special_multigammaln),
    *(aten.mse_loss, aten.l1_loss, aten.smooth_l1_loss, aten.huber_loss),
)
_COMPARISONS = (
    *(aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge, aten.isclose),
    *(aten.not_equal, aten.less, aten.less_equal, aten.greater, aten.greater_equal),
)
_PROMOTE = frozenset({*_REDUCTIONS, *_JOINS, *_ALIASES, *_COMPARISONS})

# Tagged as pointwise, but their operands keep their own dtypes.
_KEEP = frozenset(
    {
        *(aten.clone, aten.masked_fill, aten.ldexp, aten.frexp, torch.ops.prims.convert_element_type),
        *(aten.logical_and, aten.logical_or, aten.logical_xor, aten.logical_not),
    }
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
    dtype = _compared_dtype(node) if target.overloadpacket in _COMPARISONS else value.dtype
    return None if dtype is None or any(_is_complex(n) for n in node.all_input_nodes) else dtype


@functools.cache
def _promotes(target: torch._ops.OpOverload) -> bool:  # noqa: SLF001
    packet = target.overloadpacket
    if packet in _PROMOTE:
        return True
    to_bool = {aten.isnan, aten.isinf, aten.isfinite, aten.isposinf, aten.isneginf, aten.signbit}
    return torch.Tag.pointwise in target.tags and packet not in _KEEP | to_bool


def _is_complex(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_complex()


def _compared_dtype(node: fx.Node) -> torch.dtype | None:
    """The dtype in which two operands are compared."""
    operands = [_operand(a) for a in node.args[:2]]
    if len(operands) != 2 or any(o is None for o in operands):
        return None
    return torch.result_type(*operands)


def _operand(argument: Any) -> Any:
    """A stand-in for promotion: an empty tensor of the same rank and dtype, or a number."""
    value = argument.meta.get("val") if isinstance(argument, fx.Node) else argument
    if isinstance(value, torch.Tensor):
        return torch.empty((0,) * value.dim(), dtype=value.dtype, device="meta")
    for symbolic, number in ((torch.SymBool, True), (torch.SymInt, 1), (torch.SymFloat, 1.0)):
        if isinstance(value, symbolic):
            return number
    return value if isinstance(value, bool | int | float) else None


def _cast_operands(node: fx.Node, dtype: torch.dtype) -> None:
    formals = {a.name: a for a in node.target._schema.arguments}  # type: ignore[union-attr]  # noqa: SLF001
    graph = node.graph

    def cast(argument: fx.Node) -> fx.Node:
        value = argument.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype == dtype:
            return argument
        with graph.inserting_before(node):
            return call(graph, aten._to_copy.default, argument, dtype=dtype, like=node)  # noqa: SLF001

    def prepared(name: str, value: Any) -> Any:
        if name == "dtype" and formals[name].has_default_value() and _is_own_result(dtype):
            return None  # said by the cast now
        return value if name in _MASKS else fx.node.map_arg(value, cast)

    args = [prepared(name, value) for name, value in zip(formals, node.args, strict=False)]
    kwargs = {k: prepared(k, v) for k, v in node.kwargs.items()}
    node.args = tuple(args)
    node.kwargs = {k: v for k, v in kwargs.items() if k != "dtype" or v is not None}


def _is_own_result(dtype: torch.dtype) -> bool:
    """Do sums of this dtype have it too? Those of smaller integers are int64."""
    return dtype.is_floating_point or dtype is torch.int64


run = each_graph("promote_types", rewrite)
