"""What sizes are made of: numbers, names, and the functions of Python that a model puts them through."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import sympy

Dim: TypeAlias = int | sympy.Expr

SIGNED = "signed."


@functools.cache
def symbol(name: str) -> sympy.Symbol:
    """The size called `name`: a nonnegative integer, or any integer when the name starts with `signed.`."""
    if name.startswith(SIGNED):
        return sympy.Symbol(name, integer=True)
    return sympy.Symbol(name, integer=True, nonnegative=True)


def dim(expr: Dim) -> Dim:
    """`expr` as a Python int where it is a whole number, unchanged otherwise."""
    if isinstance(expr, int):
        return int(expr)
    return int(expr) if expr.is_Integer else expr


def as_expr(size: Dim) -> sympy.Expr:
    """A size as a sympy expression."""
    return sympy.Integer(size) if isinstance(size, int) else size


# -- functions of Python -----------------------------------------------------------------------------


class PythonCall(sympy.Function):  # type: ignore[misc]  # sympy has no types
    """A Python function that sizes go through; computed when its arguments are numbers."""

    python: ClassVar[Callable[..., Any]]

    @classmethod
    def eval(cls, *arguments: sympy.Expr) -> sympy.Expr | None:
        """The number, for numbers; None keeps the call."""
        if not all(a.is_Rational or a.is_Float for a in arguments):
            return None
        try:
            result = cls.python(*map(plain_number, arguments))
        except (ArithmeticError, ValueError, TypeError):
            return None
        if isinstance(result, float):
            return sympy.Float(result) if math.isfinite(result) else None
        return sympy.Integer(result) if isinstance(result, int) else None


def plain_number(number: sympy.Expr) -> int | Fraction | float:
    """A sympy number as Python's."""
    if number.is_Float:
        return float(number)
    return int(number) if number.is_Integer else Fraction(int(number.p), int(number.q))


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and abs(exponent * max(base.bit_length(), 1)) > 4096:
        raise OverflowError("a power of more than 4096 bits")
    return pow(base, exponent)


_WHOLE: dict[str, Callable[..., Any]] = {
    "trunc": math.trunc,
    "round": round,
    "pow": _power,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
}
_MATH: tuple[Callable[..., Any], ...] = (
    *(math.sqrt, math.exp, math.log, math.log2, math.sin, math.cos, math.tan),
    *(math.asin, math.acos, math.atan, math.sinh, math.cosh, math.tanh, math.asinh),
)
_REAL: dict[str, Callable[..., Any]] = {
    "float": float,
    "truediv": operator.truediv,
    "float_pow": math.pow,
    "round_to": round,
    **{function.__name__: function for function in _MATH},
}


def _call_class(name: str, python: Callable[..., Any], **attributes: Any) -> type[PythonCall]:
    return type(name, (PythonCall,), {"python": staticmethod(python), **attributes})


CALLS: dict[str, type[PythonCall]] = {
    **{name: _call_class(name, python, is_integer=True) for name, python in _WHOLE.items()},
    **{name: _call_class(name, python, is_real=True) for name, python in _REAL.items()},
}
"""The functions by name; the first ones make whole numbers."""


def call(name: str, *arguments: Dim) -> Dim:
    """The call of a function of `CALLS`, or its result."""
    return dim(CALLS[name](*map(as_expr, arguments)))


def power(base: Dim, exponent: Dim) -> Dim:
    """`base` to a power that is not negative."""
    if isinstance(exponent, int) and not isinstance(base, int) and exponent >= 0:
        return dim(sympy.Pow(base, exponent))
    return call("pow", base, exponent)
