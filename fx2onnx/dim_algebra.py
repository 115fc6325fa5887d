"""Sizes as sympy expressions: build, simplify, compare. `fx2onnx.dims` is the door to this file."""

from __future__ import annotations

import functools
from typing import TypeAlias

import sympy
from sympy.core.numbers import Rational

Dim: TypeAlias = int | sympy.Expr


@functools.cache
def symbol(name: str) -> sympy.Symbol:
    """The size called `name`: a nonnegative integer."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


def dim(expr: Dim) -> Dim:
    """`expr` as a Python int where it is a whole number, unchanged otherwise."""
    if isinstance(expr, int):
        return int(expr)
    return int(expr) if expr.is_Integer else expr


def as_expr(size: Dim) -> sympy.Expr:
    """`size` as a sympy expression, numbers included."""
    return sympy.Integer(size) if isinstance(size, int) else size


@functools.lru_cache(maxsize=65536)
def floordiv(a: Dim, b: Dim) -> Dim:
    """The floor of a / b in one canonical form.

    Whole parts are taken out of the floor (`(h + 3)//2` is `(h + 1)//2 + 1`), and floors of floors by
    whole numbers are joined (`(h//2)//3` is `h//6`), so that sizes of stacked convolutions compare equal.
    A division by zero is sympy's `zoo`, which is no number.
    """
    if isinstance(a, int) and isinstance(b, int):
        return sympy.zoo if b == 0 else a // b
    return dim(floored(sympy.expand(as_expr(a) / as_expr(b))))


def floored(x: sympy.Expr) -> sympy.Expr:
    """The floor of an expanded expression, whole parts outside."""
    constant, _ = x.as_coeff_Add()
    whole = sympy.floor(constant) if constant.is_Rational else sympy.Integer(0)
    terms = sympy.Add.make_args(x - whole)
    integers = [t for t in terms if t.is_integer]
    fraction = sympy.Add(*(t for t in terms if not t.is_integer))
    if fraction == 0:
        return x
    return sympy.Add(whole, *integers) + _joined(fraction)


def _joined(fraction: sympy.Expr) -> sympy.Expr:
    """floor(floor(x)/n + c/n) is floor((x + c)/n) for whole n > 0 and whole c."""
    terms = sympy.Add.make_args(fraction)
    floors = [t for t in terms if t.as_coeff_Mul()[1].func is sympy.floor]
    if len(floors) == 1:
        coefficient, inner = floors[0].as_coeff_Mul()
        others = sympy.Add(*(t for t in terms if t is not floors[0]))
        if (
            isinstance(coefficient, Rational)
            and coefficient.p == 1
            and (sympy.expand(others * coefficient.q)).is_integer
        ):
            return floored(sympy.expand(inner.args[0] / coefficient.q + others))
    return sympy.floor(fraction)


def ceildiv(a: Dim, b: Dim) -> Dim:
    """The ceiling of a / b, written with a floor in the form of `floordiv`."""
    if isinstance(b, int) and b > 0:
        return dim(floordiv(a + b - 1, b))
    return dim(-floordiv(-a, b))


def mod(a: Dim, b: Dim) -> Dim:
    """a - b*(a//b): the remainder with the sign of b, as Python's %; `zoo` for b = 0."""
    if isinstance(a, int) and isinstance(b, int):
        return sympy.zoo if b == 0 else a % b
    return dim(sympy.Mod(as_expr(a), as_expr(b)))


def maximum(a: Dim, b: Dim) -> Dim:
    """The larger of two sizes."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else dim(sympy.Max(a, b))


def minimum(a: Dim, b: Dim) -> Dim:
    """The smaller of two sizes."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else dim(sympy.Min(a, b))


@functools.lru_cache(maxsize=65536)
def same(a: Dim, b: Dim) -> bool | None:
    """Are two sizes equal for every value of their symbols? True, False (for none), None (unknown)."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a == b:
        return True
    difference = sympy.expand(as_expr(a) - as_expr(b))
    if difference != 0 and difference.has(sympy.floor, sympy.Mod):
        difference = sympy.expand(_reduced(difference))
    if difference == 0:
        return True
    if difference.is_zero is False or difference.is_positive or difference.is_negative:
        return False
    return None


def _reduced(x: sympy.Expr) -> sympy.Expr:
    """`x` with remainders as floors, and with floors whose coefficients are between 0 and 1.

    `(3*n)//2` and `n + n//2` are one size in two forms.
    """
    if not x.has(sympy.floor, sympy.Mod):
        return x
    arguments = [_reduced(a) for a in x.args]
    if isinstance(x, sympy.Mod) and arguments[1].is_Integer and arguments[1] != 0:
        a, b = arguments
        return sympy.expand(a - b * _reduced_floor(sympy.expand(a / b)))
    if x.func is sympy.floor:
        return _reduced_floor(sympy.expand(arguments[0]))
    return x.func(*arguments)


def _reduced_floor(x: sympy.Expr) -> sympy.Expr:
    outside = []
    for term in sympy.Add.make_args(x):
        coefficient, rest = term.as_coeff_Mul()
        if coefficient.is_Rational and rest.is_integer:
            outside.append(sympy.floor(coefficient) * rest)
    whole = sympy.Add(*outside)
    return whole + floored(sympy.expand(x - whole))


def names(expr: Dim) -> set[str]:
    """The names of the symbols in `expr`."""
    return set() if isinstance(expr, int) else {s.name for s in expr.free_symbols}
