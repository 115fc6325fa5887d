"""Sizes as sympy expressions: build, simplify, compare, print, parse.

A size (`Dim`) is a Python int or a sympy expression over size symbols. Everything here keeps three rules:
an expression that is a number becomes an int; equal sizes get one form where that is cheap (see `floordiv`,
`mod`, `maximum`); and a comparison has three answers, `True`, `False` and `None` for unknown.

Names stand for nonnegative integers. A name that starts with `signed.` stands for any integer: a number that a
model reads from its data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import sympy

from fx2onnx.dim_algebra import ONE, all_whole, ceildiv, ceiling, floor, floordiv, mod, sum_of
from fx2onnx.dim_bounds import above, at_least, compare, maximum, minimum, same, total
from fx2onnx.dim_functions import CALLS, SIGNED, Dim, PythonCall, call, dim, plain_number, power, symbol
from fx2onnx.dim_text import parse, show

__all__ = [
    "CALLS",
    "SIGNED",
    "Dim",
    "PythonCall",
    "above",
    "at_least",
    "call",
    "ceildiv",
    "ceiling",
    "compare",
    "dim",
    "evaluate",
    "floor",
    "floordiv",
    "holds",
    "is_whole",
    "maximum",
    "minimum",
    "mod",
    "names",
    "parse",
    "power",
    "same",
    "show",
    "solve",
    "symbol",
    "total",
]

Number = int | Fraction | float


def names(expr: Dim) -> set[str]:
    """The names of the symbols in `expr`."""
    return set() if isinstance(expr, int) else {s.name for s in expr.free_symbols}


def is_whole(size: Dim) -> bool:
    """Is a size a whole number for all values of its names, as its form shows?"""
    return (terms := sum_of(size)) is not None and all_whole(terms)


def evaluate(expr: Dim, values: Mapping[str, int]) -> int | None:
    """The whole number that `expr` is with these values of its names.

    None when a name has no value, or when the values make no whole number of it.
    """
    if isinstance(expr, int):
        return expr
    try:
        number = _number(expr, values)
    except (ArithmeticError, ValueError, TypeError):  # 1/0, the root of a negative number, no value
        return None
    return int(number) if not isinstance(number, float) and number.denominator == 1 else None


def _number(e: sympy.Expr, values: Mapping[str, int]) -> Number:
    if e.is_Symbol:
        return _value(e.name, values)
    if e.is_Rational or e.is_Float:
        return plain_number(e)
    arguments = [_number(a, values) for a in e.args]
    if e.is_Add:
        return sum(arguments)
    if e.is_Mul:
        return math.prod(arguments)
    if isinstance(e, PythonCall):
        return e.python(*arguments)  # type: ignore[no-any-return]  # they make numbers
    if (function := _FUNCTIONS.get(e.func)) is None:
        raise ValueError(f"{e.func} is no function on sizes")
    return function(*arguments)  # type: ignore[no-any-return]  # they make numbers


def _value(name: str, values: Mapping[str, int]) -> int:
    if name not in values:
        raise ValueError(f"{name} has no value")
    return int(values[name])


def _power(base: Number, exponent: Number) -> Number:
    if exponent < 0:
        return 1 / Fraction(base) ** -exponent  # type: ignore[arg-type, return-value]  # exponents are whole
    return CALLS["pow"].python(base, exponent)  # type: ignore[no-any-return]


_FUNCTIONS: dict[Any, Any] = {
    sympy.Pow: _power,
    sympy.floor: math.floor,
    sympy.ceiling: math.ceil,
    sympy.Mod: lambda a, b: a % b,
    sympy.Max: max,
    sympy.Min: min,
    sympy.Abs: abs,
}


def solve(expr: Dim, value: int, known: Mapping[str, int]) -> dict[str, int]:
    """The value of the one symbol of `expr` that is not known, so that `expr` is `value`; {} if there is none.

    Solved are a*n + b and a power of n in its place; a floor has no single answer.
    """
    unknown = names(expr) - set(known)
    if isinstance(expr, int) or len(unknown) != 1:
        return {}
    (name,) = unknown
    given = {s: sympy.Integer(known[s.name]) for s in expr.free_symbols if s.name in known}
    terms = sum_of(dim(expr.xreplace(given)))
    if terms is None or len(terms.keys() - {ONE}) != 1:
        return {}
    (product,) = terms.keys() - {ONE}
    ((atom, power), *others) = product
    if others or atom != symbol(name) or power < 1:
        return {}
    base = (value - terms.get(ONE, Fraction(0))) / terms[product]
    root = base if power == 1 else _root(base, power)
    fits = root is not None and root.denominator == 1 and (root >= 0 or not atom.is_nonnegative)
    return {name: int(root)} if root is not None and fits else {}


def _root(base: Fraction, power: int) -> Fraction | None:
    """The whole number whose power this is, None if there is none."""
    if base < 0 or base.denominator != 1:
        return None
    root, exact = sympy.integer_nthroot(int(base), power)
    return Fraction(int(root)) if exact else None


def holds(left: Dim, sign: str, right: Dim, values: Mapping[str, int]) -> bool | None:
    """Does a relation (`==`, `!=`, `<`, `<=`, `>`, `>=`) hold for these values? None when some are missing."""
    a, b = evaluate(left, values), evaluate(right, values)
    if sign == "holds" or a is None or b is None:
        return None
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign]
