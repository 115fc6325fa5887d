"""Questions about sizes whose answer the rest of a condition makes irrelevant.

`seq > 1 and mask is None` is false for every `seq` where there is a mask. Python asks `seq > 1` all the same, and the
trace would hold for the sizes with that answer only. So the condition around a question is worked out for both answers
when it is asked: if its value is the same, the question leaves no guard.

Only conditions without side effects are tried: names, attributes, constants, comparisons, and calls that look at
something (`_LOOKS`, methods of a tensor such as `dim`, functions without arguments that store nothing).
"""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import inspect
import sys
import textwrap
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv


class _AnotherQuestionError(Exception):
    """The rest of the condition asks about another size: both answers have to be guards."""


@contextlib.contextmanager
def short_circuits() -> Iterator[None]:
    """While a model is traced, answer questions that do not matter to their condition without a guard."""
    original = ShapeEnv.evaluate_expr
    trial: dict[sympy.Basic, bool] = {}  # the answer to the question that is tried at the moment

    def evaluate(self: ShapeEnv, orig_expr: Any, *args: Any, **kwargs: Any) -> Any:
        if not getattr(orig_expr, "free_symbols", None):
            return original(self, orig_expr, *args, **kwargs)
        if trial:
            return _same_answer(orig_expr, trial)
        if not isinstance(orig_expr, sympy.logic.boolalg.Boolean):
            return original(self, orig_expr, *args, **kwargs)
        answer = _idle_answer(orig_expr, sys._getframe(1), trial)  # noqa: SLF001
        if answer is None:
            return original(self, orig_expr, *args, **kwargs)
        return sympy.true if answer else sympy.false

    ShapeEnv.evaluate_expr = evaluate  # type: ignore[method-assign]
    try:
        yield
    finally:
        ShapeEnv.evaluate_expr = original  # type: ignore[method-assign]


def _idle_answer(
    question: sympy.Basic, frame: FrameType | None, trial: dict[sympy.Basic, bool]
) -> bool | None:
    """An answer to a question that does not matter to the condition it stands in; None when it may."""
    while frame is not None and _is_asking(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    if frame is None or (condition := _condition(frame.f_code, frame.f_lasti)) is None:
        return None
    expression, calls = condition
    plain: dict[bool, bool] = {}
    values: dict[bool, bool] = {}
    for answer in (True, False):
        trial[question] = answer
        try:
            if not all(_only_looks(eval(call, frame.f_globals, frame.f_locals)) for call in calls):
                return None
            found = eval(expression, frame.f_globals, frame.f_locals)
        except Exception:  # noqa: BLE001  the model's own condition may raise anything; then it has no value
            return None
        finally:
            trial.clear()
        if (value := _under(found, question, answer)) is None:
            return None
        values[answer], plain[answer] = value, isinstance(found, bool)
    if values[True] is not values[False]:
        return None
    # The answer that makes the condition a plain bool: with the other one it may be the question itself.
    return plain[True] or not plain[False]


def _same_answer(asked: sympy.Basic, trial: dict[sympy.Basic, bool]) -> sympy.Basic:
    ((question, answer),) = trial.items()
    if asked not in (question, sympy.Not(question)):
        raise _AnotherQuestionError
    return sympy.true if answer is (asked == question) else sympy.false


def _is_asking(module: str) -> bool:
    """Is a frame of this module part of how a SymBool becomes a bool?"""
    return module == "torch" or module.startswith(("torch.fx.experimental.", "torch.utils._stats"))


def _under(value: Any, question: sympy.Basic, answer: bool) -> bool | None:
    """The truth value of a condition, given the answer to a question; None when it is no bool."""
    if isinstance(value, bool):
        return value
    if isinstance(value, torch.SymBool):
        if value.node.expr == question:
            return answer
        if value.node.expr == sympy.Not(question):
            return not answer
    return None


# -- the condition around a question ----------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _condition(code: CodeType, instruction: int) -> tuple[CodeType, list[CodeType]] | None:
    """The `and` / `or` around an instruction, and the functions that it calls; None if it is none or has effects."""
    positions = list(code.co_positions())[instruction // 2]
    if None in positions:
        return None
    line, end_line, column, end_column = positions
    for node in _outer_conditions(code):
        starts = (node.lineno, node.col_offset) <= (line, column)
        if starts and (end_line, end_column) <= (node.end_lineno, node.end_col_offset):
            if not all(map(_has_no_effect, ast.walk(node))):
                return None
            calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
            return _compiled(node), [_compiled(call) for call in calls]
    return None


def _compiled(node: ast.expr) -> CodeType:
    return compile(ast.Expression(node), "<condition>", "eval")


@functools.lru_cache(maxsize=1024)
def _outer_conditions(code: CodeType) -> list[ast.BoolOp]:
    """The largest `and`s and `or`s of a function, with their places in its file."""
    try:
        lines, first = inspect.getsourcelines(code)
        text = textwrap.dedent("".join(lines))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError):  # typed at a prompt, or a lambda in the middle of a line
        return []
    indent = len(lines[0]) - len(lines[0].lstrip())
    found: list[ast.BoolOp] = []
    _collect(tree, found)
    for condition in found:
        for node in ast.walk(condition):
            if isinstance(node, ast.expr):
                _move(node, max(first, 1) - 1, indent)
    return found


def _collect(node: ast.AST, found: list[ast.BoolOp]) -> None:
    if isinstance(node, ast.BoolOp):
        found.append(node)
        return
    for child in ast.iter_child_nodes(node):
        _collect(child, found)


def _move(node: Any, lines: int, columns: int) -> None:
    node.lineno += lines
    node.end_lineno += lines
    node.col_offset += columns
    node.end_col_offset += columns


# -- what has no side effects ------------------------------------------------------------------------

_EXPRESSIONS = (
    *(ast.BoolOp, ast.UnaryOp, ast.Compare, ast.Call, ast.keyword, ast.Attribute, ast.Subscript),
    *(ast.Name, ast.Constant, ast.Tuple, ast.BinOp),
    *(ast.boolop, ast.unaryop, ast.cmpop, ast.operator, ast.expr_context),
)
_LOOKS = frozenset({getattr, hasattr, isinstance, len, bool, callable})
_TENSOR_LOOKS = frozenset({"dim", "ndimension", "size", "numel", "is_floating_point", "is_complex"})
_STORES = frozenset(
    {"STORE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR", "STORE_DEREF", "DELETE_SUBSCR", "DELETE_ATTR"}
)


def _has_no_effect(node: ast.AST) -> bool:
    return isinstance(node, _EXPRESSIONS)


def _only_looks(function: Any) -> bool:
    """Does a call of this function change nothing?"""
    if isinstance(getattr(function, "__self__", None), torch.Tensor | torch.Size):
        return function.__name__ in _TENSOR_LOOKS
    if isinstance(function, FunctionType):
        takes_nothing = not inspect.signature(function).parameters
        return takes_nothing and _STORES.isdisjoint(i.opname for i in dis.get_instructions(function))
    try:
        return function in _LOOKS
    except TypeError:  # not hashable
        return False
