"""Sizes as text: `show` writes them, `parse` reads them. `fx2onnx.dims` is the door to this file.

The grammar is small and its own: sums, products, `//`, `/`, `%`, parentheses, a few functions. Nothing is evaluated,
and the work on a text is bounded: its length, its depth, the digits of its numbers, and how large the expression
would be when multiplied out.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable

import sympy

from fx2onnx.dim_algebra import Dim, as_expr, dim, floordiv, floored, mod, symbol
from fx2onnx.errors import DimSyntaxError

# -- writing ---------------------------------------------------------------------------------------

_SUM, _PRODUCT, _ATOM = 1, 2, 3
_PLAIN = re.compile(r"[^\W\d][\w.]*")


@functools.lru_cache(maxsize=65536)
def show(expr: Dim) -> str:
    """`2*batch + 1`, `(h - 1)//2 + 1`, `Max(a, b)`: what `parse` reads back.

    A name that is no plain word stands in backquotes.
    """
    return str(expr) if isinstance(expr, int) else _show(expr, 0)


def _show(e: sympy.Expr, level: int) -> str:
    text, own = _show_bare(e)
    return f"({text})" if own < level else text


def _show_bare(e: sympy.Expr) -> tuple[str, int]:
    if e.is_Symbol:
        return (e.name if _PLAIN.fullmatch(e.name) else f"`{e.name}`"), _ATOM
    if e.is_Number:
        return _show_number(e)
    if e.is_Add:
        return _show_sum(e), _SUM
    if e.func is sympy.floor:
        return _show_floor(e.args[0])
    if isinstance(e, sympy.Mod):
        return f"{_show(e.args[0], _ATOM)}%{_show(e.args[1], _ATOM)}", _PRODUCT
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return "*".join([_show(e.base, _ATOM)] * int(e.exp)), _PRODUCT
    if e.is_Mul or e.is_Pow:
        return _show_product(e)
    arguments = ", ".join(sorted(_show(a, 0) for a in e.args))
    return f"{e.func.__name__}({arguments})", _ATOM


def _show_number(e: sympy.Expr) -> tuple[str, int]:
    if e.is_Rational:
        text, level = (str(int(e)), _ATOM) if e.is_Integer else (f"{e.p}/{e.q}", _PRODUCT)
    else:
        text, level = repr(float(e)), _ATOM
    return text, _SUM if e < 0 else level


def _show_floor(inner: sympy.Expr) -> tuple[str, int]:
    if inner.has(sympy.Float):  # a scale factor: computed in floats, in this order
        return f"floor({_show(inner, 0)})", _ATOM
    top, bottom = sympy.fraction(sympy.together(inner))
    return f"{_show(sympy.expand(top), _ATOM)}//{_show(sympy.expand(bottom), _ATOM)}", _PRODUCT


def _show_sum(e: sympy.Expr) -> str:
    """The terms: positive ones before negative ones, high degrees before low ones, the number last."""
    constant, rest = e.as_coeff_Add()
    terms = sorted(sympy.Add.make_args(rest), key=lambda t: (_is_negative(t), -_degree(t), str(t)))
    text = _show(terms[0], _SUM)
    for term in terms[1:] + ([constant] if constant != 0 else []):
        negative = _is_negative(term)
        text += f" {'-' if negative else '+'} {_show(-term if negative else term, _PRODUCT)}"
    return text


def _degree(term: sympy.Expr) -> int:
    return int(sympy.total_degree(term)) if term.is_polynomial() else 0


def _is_negative(term: sympy.Expr) -> bool:
    return bool(term.as_coeff_Mul()[0] < 0)


def _show_product(e: sympy.Expr) -> tuple[str, int]:
    top, bottom = sympy.fraction(e)
    if bottom != 1:
        level = _SUM if _is_negative(top) else _PRODUCT
        return f"{_show(top, level)}/{_show(bottom, _ATOM)}", level
    coefficient, rest = e.as_coeff_Mul()
    factors = sorted(sympy.Mul.make_args(rest), key=str)
    if coefficient not in (1, -1):
        factors.insert(0, abs(coefficient))
    # a // or % among factors would bind to its neighbours, and to a sign in front
    text = "*".join(_show(f, _ATOM if _divides(f) else _PRODUCT) for f in factors)
    return (f"-{text}", _SUM) if coefficient < 0 else (text, _PRODUCT)


def _divides(e: sympy.Expr) -> bool:
    return e.func is sympy.floor or isinstance(e, sympy.Mod)


# -- reading ---------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"\s*(?:([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)|([^\W\d][\w.]*|`[^`\n]+`)|(//|[-+*/%(),]))"
)
_CALLS: dict[str, tuple[int | None, Callable[..., Dim]]] = {
    "Max": (None, lambda *a: dim(sympy.Max(*a))),
    "Min": (None, lambda *a: dim(sympy.Min(*a))),
    "floor": (1, lambda a: dim(floored(sympy.expand(a)))),
    "ceiling": (1, lambda a: dim(-floored(sympy.expand(-a)))),
    "abs": (1, lambda a: dim(sympy.Abs(a))),
    "Abs": (1, lambda a: dim(sympy.Abs(a))),
}
MAX_TEXT, MAX_DEPTH, MAX_DIGITS, MAX_TERMS, MAX_DEGREE, MAX_CHOICES = 4096, 32, 32, 256, 32, 12
_TOO_LARGE = MAX_TERMS + 1


def parse(text: str) -> Dim:
    """The size that a text says: numbers, names, + - * / // %, parentheses, Max, Min, floor, ceiling, abs.

    Args:
        text: e.g. `"2*batch + 1"`; at most 4096 characters, nested at most 32 deep.

    Raises:
        DimSyntaxError: the text is anything else, or asks for more work than a size is worth.
    """
    if len(text) > MAX_TEXT:
        raise DimSyntaxError(f"a size expression of {len(text)} characters; at most {MAX_TEXT} are read")
    return _Parser(text).whole()


@functools.lru_cache(maxsize=4096)
def _extent(e: sympy.Expr) -> tuple[int, int]:
    """Bounds of the number of terms and of the degree of an expression that is multiplied out."""
    if not e.args:
        return 1, int(e.is_Symbol)
    extents = [_extent(a) for a in e.args]
    if e.is_Add:
        return min(sum(t for t, _ in extents), _TOO_LARGE), max(d for _, d in extents)
    if e.is_Mul:
        terms = 1
        for count, _ in extents:
            terms = min(terms * count, _TOO_LARGE)
        return terms, sum(d for _, d in extents)
    if e.is_Pow and e.exp.is_Integer:
        (terms, degree), power = extents[0], min(abs(int(e.exp)), MAX_DEGREE + 1)
        return min(terms**power, _TOO_LARGE), degree * power
    return max(t for t, _ in extents), max(d for _, d in extents)


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, position = text, [], 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if not match:
                raise self.error(f"unexpected {text[position:].strip()[:1]!r}")
            self.tokens.append(match[0].strip())
            position = match.end()
        self.next, self.depth, self.choices = 0, 0, 0

    def error(self, why: str) -> DimSyntaxError:
        return DimSyntaxError(f"{self.text[:80]!r} is no size expression: {why}")

    def whole(self) -> Dim:
        result = self.sum()
        if self.peek() is not None:
            raise self.error(f"unexpected {self.peek()!r}")
        if any(max(abs(n.p), n.q) >= 10**MAX_DIGITS for n in as_expr(result).atoms(sympy.Rational)):
            raise self.error(f"it comes to numbers of more than {MAX_DIGITS} digits")
        return dim(result)

    def peek(self) -> str | None:
        return self.tokens[self.next] if self.next < len(self.tokens) else None

    def take(self, *choices: str) -> str | None:
        if self.peek() in choices:
            self.next += 1
            return self.tokens[self.next - 1]
        return None

    def bounded(self, result: Dim) -> Dim:
        """Refuse an expression that is too large to work with."""
        terms, degree = _extent(as_expr(result))
        if terms > MAX_TERMS or degree > MAX_DEGREE:
            raise self.error("it is too large when multiplied out")
        return result

    # -- grammar -----------------------------------------------------------------------------------

    def sum(self) -> Dim:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error("nested too deeply")
        terms = [self.product()]
        while sign := self.take("+", "-"):
            other = self.product()
            terms.append(other if sign == "+" else -other)
            if len(terms) > MAX_TERMS:
                raise self.error("it has too many terms")
        self.depth -= 1
        return terms[0] if len(terms) == 1 else self.bounded(dim(sympy.Add(*terms)))

    def product(self) -> Dim:
        result = self.signed()
        while sign := self.take("*", "//", "/", "%"):
            result = self.bounded(self.combine(sign, result, self.signed()))
        return result

    def combine(self, sign: str, a: Dim, b: Dim) -> Dim:
        if sign == "*":
            return dim(a * b)
        if b == 0:
            raise self.error("division by zero")
        self.bounded(dim(as_expr(a) / as_expr(b)))
        if sign == "//":
            return floordiv(a, b)
        return mod(a, b) if sign == "%" else dim(as_expr(a) / as_expr(b))

    def signed(self) -> Dim:
        negative = False
        while sign := self.take("+", "-"):
            negative ^= sign == "-"
        return -self.atom() if negative else self.atom()

    def atom(self) -> Dim:
        if self.take("("):
            inner = self.sum()
            self.close()
            return inner
        token = self.peek()
        if token is None or token in ("*", "/", "//", "%", ")", ","):
            raise self.error("it ends too early" if token is None else f"unexpected {token!r}")
        self.next += 1
        if token[0] in "0123456789":
            if len(token) > MAX_DIGITS:
                raise self.error(f"a number of {len(token)} digits")
            return int(token) if token.isdecimal() else self.decimal(token)
        if token.startswith("`"):
            return symbol(token[1:-1])
        return self.call(token) if self.take("(") else symbol(token)

    def decimal(self, token: str) -> sympy.Expr:
        number = float(token)
        if math.isinf(number):
            raise self.error(f"{token} is too large a number")
        return sympy.Float(number)

    def call(self, name: str) -> Dim:
        if name not in _CALLS:
            raise self.error(f"unknown function {name!r}")
        arguments = [as_expr(self.sum())]
        while self.take(","):
            arguments.append(as_expr(self.sum()))
        self.close()
        arity, function = _CALLS[name]
        if arity is not None and len(arguments) != arity:
            raise self.error(f"{name} takes {arity} argument, not {len(arguments)}")
        self.choices += len(arguments) if arity is None else 0
        if self.choices > MAX_CHOICES:  # sympy compares all of them with all others
            raise self.error(f"more than {MAX_CHOICES} arguments of Max and Min")
        return self.bounded(function(*arguments))

    def close(self) -> None:
        if not self.take(")"):
            raise self.error("a parenthesis is not closed")
