"""What a trace assumed about sizes: torch's guards as relations in the user's names."""

from __future__ import annotations

import contextlib
import linecache
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import sympy
from torch._guards import SLoc
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from fx2onnx import dims
from fx2onnx.dims import Dim
from fx2onnx.graph import Relation
from fx2onnx.origin import is_torch_file
from fx2onnx.types import names_of

_SIGNS = {
    sympy.Eq: "==",
    sympy.Ne: "!=",
    sympy.StrictLessThan: "<",
    sympy.LessThan: "<=",
    sympy.StrictGreaterThan: ">",
    sympy.GreaterThan: ">=",
}


def relations_of(shape_env: ShapeEnv) -> list[Relation]:
    """The guards of a trace that do not hold for every size, each once."""
    found: dict[str, Relation] = {}
    choices: list[tuple[list[Relation | None], str | None]] = []
    for guard in shape_env.guards:
        where = place_of(guard.sloc)
        for part in _parts(shape_env.replace(guard.expr)):
            if isinstance(part, sympy.Or):
                choices.append(([_relation(p, shape_env, where) for p in part.args], where))
            elif (relation := _relation(part, shape_env, where)) is not None:
                internal = guard.sloc is not None and guard.sloc.framework_loc == _INTERNAL
                found.setdefault(relation.text, replace(relation, internal=internal))
    for options, where in choices:
        if not any(option is None or option.text in found for option in options):
            text = " or ".join(option.text for option in options if option is not None)
            found.setdefault(text, Relation(0, "holds", 0, where, text))
    return list(found.values())


def _parts(expr: Any) -> Sequence[Any]:
    return expr.args if isinstance(expr, sympy.And) else (expr,)


def _relation(expr: Any, shape_env: ShapeEnv, where: str | None) -> Relation | None:
    """One comparison in the user's names; None when it holds for every size."""
    if expr in (True, sympy.true):
        return None
    sign = _SIGNS.get(type(expr))
    if sign is None:
        return Relation(0, "holds", 0, where, str(expr))
    names = names_of(shape_env)
    left, sign, right = _plain(names.from_torch(expr.args[0]), sign, names.from_torch(expr.args[1]))
    if dims.compare(left, sign, right):
        return None
    text = f"{dims.show(left)} {sign} {dims.show(right)}"
    return Relation(left, sign, right, where, text, guard=str(expr))


def _plain(left: Dim, sign: str, right: Dim) -> tuple[Dim, str, Dim]:
    """`Min(512, seq) == seq` is `seq <= 512`, and `Max(a, b) == b` is `b >= a`."""
    for one, other in ((left, right), (right, left)):
        if sign == "==" and isinstance(one, sympy.Min | sympy.Max) and other in one.args:
            rest = [a for a in one.args if a != other]
            bound = dims.dim(one.func(*rest))
            return other, "<=" if isinstance(one, sympy.Min) else ">=", bound
    return left, sign, right


def place_of(sloc: SLoc | None) -> str | None:
    """The user's line behind a guard."""
    if sloc is None:
        return None
    if sloc.maybe_user_loc:
        return sloc.maybe_user_loc
    frame = sloc.framework_loc
    return (
        None if frame is None or isinstance(frame, str) else f"{frame.filename}:{frame.lineno}: {frame.line}"
    )


_INTERNAL = "asked by torch for layout or shape"


@contextlib.contextmanager
def user_lines() -> Iterator[None]:
    """While a model is traced, let guards remember the user's line, which non-strict export leaves out."""
    original = ShapeEnv._get_sloc  # noqa: SLF001

    def with_user_line(_: ShapeEnv, framework_loc: Any = None) -> SLoc:
        del framework_loc
        return _asked_from(sys._getframe(1))  # noqa: SLF001

    ShapeEnv._get_sloc = with_user_line  # type: ignore[method-assign, assignment]  # noqa: SLF001
    try:
        yield
    finally:
        ShapeEnv._get_sloc = original  # type: ignore[method-assign]  # noqa: SLF001


def _asked_from(frame: FrameType | None) -> SLoc:
    """The user's line among the callers, and whether torch asked only to know a layout or a shape.

    What is asked while a fake tensor's shape is computed, or while its memory layout is looked at, has no influence on
    which operators are recorded: these are recorded before. What torch's compiled kernels ask picks one of several
    ways to compute the same.
    """
    internal = None
    while frame is not None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        if not is_torch_file(path):
            module = frame.f_globals.get("__name__", "")
            if module in _BETWEEN:
                frame = frame.f_back
                continue
            if module.startswith("fx2onnx."):
                break
            code = linecache.getline(path, frame.f_lineno).strip()
            return SLoc(internal, f"{path}:{frame.f_lineno}: {code}" if code else f"{path}:{frame.f_lineno}")
        if path.endswith("_subclasses/fake_tensor.py") or (path.endswith("sym_node.py") and name in _LAYOUT):
            internal = _INTERNAL
        if path.endswith("sym_node.py") and name == "guard_bool" and _caller_is_native(frame):
            internal = _INTERNAL
        frame = frame.f_back
    return SLoc(internal, None)


# Ours, but called from the model's lines.
_BETWEEN = ("fx2onnx.capture.is_causal", "fx2onnx.capture.short_circuit", "fx2onnx.whole_shapes")


def _caller_is_native(frame: FrameType) -> bool:
    """Was a SymBool turned into a bool by compiled code, not by Python's `if`?"""
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename.endswith("sym_node.py"):
        caller = caller.f_back
    return caller is None or caller.f_code.co_name != "__bool__"


_LAYOUT = frozenset(
    {
        "is_contiguous",
        "is_channels_last_contiguous_2d",
        "is_channels_last_contiguous_3d",
        "is_channels_last_strides_2d",
        "is_channels_last_strides_3d",
        "is_non_overlapping_and_dense",
    }
)
