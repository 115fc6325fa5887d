"""The words of graph text: the names of call targets, and the literals that calls hold.

Both directions stand side by side here, for `fx2onnx.text` (which writes) and `fx2onnx.text_parser` (which reads).
Names of operators are found by walking `torch.ops` and in one fixed table, nothing else is ever called.
"""

from __future__ import annotations

import builtins
import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import fx
from torch._ops import (
    HigherOrderOperator,
    OpOverload,
    OpOverloadPacket,
    _HigherOrderNamespace,
    _OpNamespace,
)

from fx2onnx import dims
from fx2onnx.types import FROM_SHORT, SHORT

_OPERATORS = (
    "abs add and_ eq floordiv ge getitem gt le lshift lt mod mul ne neg not_ or_ pos pow rshift sub "
    "truediv xor"
)
_TORCH = (
    "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum _sym_acos _sym_asin _sym_atan _sym_cos "
    "_sym_cosh _sym_log2 _sym_sin _sym_sinh _sym_sqrt _sym_tan _sym_tanh"
)
PYTHON: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in _OPERATORS.split()},
    **{name: getattr(torch, name) for name in _TORCH.split() if hasattr(torch, name)},
    **{name: getattr(math, name) for name in ("ceil", "floor", "sqrt", "trunc")},
    **{name: getattr(builtins, name) for name in ("float", "int", "max", "min", "round")},
}
"""Operators on sizes and numbers, by the name that text has for them."""

_PYTHON_NAMES = {id(function): name for name, function in PYTHON.items()}

CONSTANTS: dict[str, Any] = {
    "None": None,
    "True": True,
    "False": False,
    "inf": math.inf,
    "nan": math.nan,
    **FROM_SHORT,
    **{f"torch.{name}": t for name, t in vars(torch).items() if isinstance(t, torch.dtype)},
    **{str(t): t for t in vars(torch).values() if isinstance(t, torch.layout | torch.memory_format)},
}
"""What a bare name stands for where no value has that name; `bool` is the dtype."""

RESERVED = frozenset({"region", "graph", "return", "in", *CONSTANTS})
"""Names that values do not have in text."""


@dataclass(frozen=True)
class Opaque:
    """A Python object that text can only point at; `description` is how it is written."""

    description: str

    def __repr__(self) -> str:
        return self.description


# -- targets ---------------------------------------------------------------------------------------


def target_name(target: Any) -> str | None:
    """`aten.add.Tensor`, `higher_order.cond` or `floordiv`; None for what text has no name for."""
    if isinstance(target, OpOverload):
        namespace, name = target._schema.name.split("::")  # noqa: SLF001  the public name leaves the overload out
        return f"{namespace}.{name}.{target._overloadname}"  # noqa: SLF001
    if isinstance(target, HigherOrderOperator):
        return f"higher_order.{target.name()}"
    return _PYTHON_NAMES.get(id(target))


def find_target(name: str) -> Callable[..., Any] | None:
    """What `target_name` names; None when there is no such operator."""
    if "." not in name:
        return PYTHON.get(name)
    namespace_name, *rest = name.split(".")
    namespace = getattr(torch.ops, namespace_name, None)
    if isinstance(namespace, _HigherOrderNamespace) and len(rest) == 1:
        found = getattr(namespace, rest[0], None)
        return found if isinstance(found, HigherOrderOperator) else None
    if not isinstance(namespace, _OpNamespace) or len(rest) != 2:
        return None
    packet = getattr(namespace, rest[0], None)
    if not isinstance(packet, OpOverloadPacket) or rest[1] not in packet.overloads():
        return None
    overload = getattr(packet, rest[1])
    return overload if isinstance(overload, OpOverload) else None


# -- literals --------------------------------------------------------------------------------------


def literal(value: Any, names: Mapping[fx.Node, str]) -> str:
    """A call's argument as text.

    Args:
        value: a node, a constant, or lists, tuples, dicts and slices of them.
        names: how nodes are written.
    """
    if isinstance(value, fx.Node):
        return names[value]
    if isinstance(value, list | tuple):
        return _sequence(value, names)
    if isinstance(value, dict):
        parts = (f"{literal(k, names)}: {literal(v, names)}" for k, v in value.items())
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, slice | range):
        parts = (literal(v, names) for v in (value.start, value.stop, value.step))
        return f"{type(value).__name__}({', '.join(parts)})"
    return constant(value)


def _sequence(value: list[Any] | tuple[Any, ...], names: Mapping[fx.Node, str]) -> str:
    text = ", ".join(literal(v, names) for v in value)
    if isinstance(value, list):
        return f"[{text}]"
    return f"({text},)" if len(value) == 1 else f"({text})"


def constant(value: Any) -> str:
    """A single Python value as text: `2`, `1e-05`, `"mean"`, `f32`, `device("cpu")` or `size[2*n]`."""
    if value is None or value is Ellipsis or isinstance(value, bool | int):
        return "..." if value is Ellipsis else repr(value)
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, torch.dtype):
        return SHORT.get(value, str(value))
    if isinstance(value, torch.device):
        return f"device({json.dumps(str(value))})"
    if isinstance(value, torch.layout | torch.memory_format):
        return str(value)
    if isinstance(value, sympy.Expr):
        return f"size[{dims.show(value)}]"
    if isinstance(value, OpOverload):
        return str(target_name(value))
    return f"opaque({json.dumps(repr(value), ensure_ascii=False)})"
