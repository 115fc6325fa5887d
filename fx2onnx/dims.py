"""Sizes as sympy expressions: build, simplify, compare, print, parse, evaluate.

A size (`Dim`) is a Python int or a sympy expression over size symbols. Everything here keeps three rules:
an expression that is a number becomes an int; equal sizes get one form where that is cheap (floors are
normalised, see `floordiv`); and a comparison has three answers, `True`, `False` and `None` for unknown.

Text is read by a small grammar of its own (`parse`), never by sympy's `sympify`, so that names such as
`N`, `S` or `beta` are plain names and a hostile text is a `DimSyntaxError`.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from fx2onnx.dim_algebra import (
    Dim,
    ceildiv,
    dim,
    floordiv,
    maximum,
    minimum,
    mod,
    names,
    same,
    symbol,
)
from fx2onnx.dim_text import parse, show


def evaluate(expr: Dim, values: Mapping[str, int]) -> int | None:
    """The number that `expr` is with the symbols' values; None when a symbol has none or it is no whole number."""
    if isinstance(expr, int):
        return expr
    free = {s: sympy.Integer(values[s.name]) for s in expr.free_symbols if s.name in values}
    number = expr.xreplace(free).doit()
    return int(number) if number.is_Integer else None


def solve(expr: Dim, value: int, known: Mapping[str, int]) -> dict[str, int]:
    """The value of the one symbol of `expr` that is not known, so that `expr` is `value`; {} if there is none.

    Sums, products and powers are solved; a floor has no single answer.
    """
    if isinstance(expr, int):
        return {}
    expr = expr.xreplace({s: sympy.Integer(known[s.name]) for s in expr.free_symbols if s.name in known})
    if len(expr.free_symbols) != 1:
        return {}
    (unknown,) = expr.free_symbols
    if not expr.is_polynomial(unknown):
        return {}
    solutions = [s for s in _roots(expr - value, unknown) if s.is_Integer and s >= 0]
    return {unknown.name: int(solutions[0])} if len(solutions) == 1 else {}


def _roots(expr: sympy.Expr, unknown: sympy.Symbol) -> list[sympy.Expr]:
    """The roots of a polynomial; those of a line without sympy's solver."""
    expr = sympy.expand(expr)
    slope = expr.coeff(unknown, 1)
    offset = expr.subs(unknown, 0)
    if slope != 0 and expr == slope * unknown + offset:
        return [-offset / slope]
    return list(sympy.solve(expr, unknown))


def holds(left: Dim, sign: str, right: Dim, values: Mapping[str, int]) -> bool | None:
    """Does a relation (`==`, `!=`, `<`, `<=`, `>`, `>=`) hold for these values? None when some are missing."""
    a, b = evaluate(left, values), evaluate(right, values)
    if sign == "holds" or a is None or b is None:
        return None
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign]


__all__ = [
    "Dim",
    "ceildiv",
    "dim",
    "evaluate",
    "floordiv",
    "holds",
    "maximum",
    "minimum",
    "mod",
    "names",
    "parse",
    "same",
    "show",
    "solve",
    "symbol",
]
