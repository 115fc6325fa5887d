"""Sizes as text and back: `2*batch + 1`, `(h - 1)//2 + 1`, `Max(a, b)`, `floor(0.7*h)`.

Text is read by a small grammar of its own, never by sympy's `sympify`, so that names such as `N`, `S` or `beta`
are plain names and a hostile text is a `DimSyntaxError`:

    sum     = product {("+" | "-") product}
    product = signed {("*" | "/" | "//" | "%") signed}
    signed  = {"+" | "-"} atom
    atom    = number | name | "`" name of any kind "`" | name "(" sum {"," sum} ")" | "(" sum ")"
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable

import sympy

from fx2onnx.dim_algebra import (
    Sum,
    atom_order,
    ceiling,
    expression,
    floor,
    floordiv,
    mod,
    product_order,
    scaled,
    sum_of,
)
from fx2onnx.dim_bounds import maximum, minimum
from fx2onnx.dim_functions import CALLS, Dim, PythonCall, as_expr, call, dim, power, symbol
from fx2onnx.errors import DimSyntaxError

# -- writing ---------------------------------------------------------------------------------------

_SUM, _PRODUCT, _ATOM = 1, 2, 3  # how tightly a text holds together
_PLAIN = re.compile(r"[^\W\d][\w.]*")


@functools.lru_cache(maxsize=65536)
def show(expr: Dim) -> str:
    """`2*batch + 1`, `(h + 1)//2`, `Max(a, b)`: what `parse` reads back.

    A name that is no plain word stands in backquotes.
    """
    return str(expr) if isinstance(expr, int) else _show(expr, _SUM)


def _show(e: sympy.Expr, level: int) -> str:
    text, own = _show_bare(e)
    return f"({text})" if own < level else text


def _show_bare(e: sympy.Expr) -> tuple[str, int]:
    if e.is_Symbol:
        return (e.name if _PLAIN.fullmatch(e.name) else f"`{e.name}`"), _ATOM
    if e.is_Rational:
        text = str(int(e.p)) if e.q == 1 else f"{e.p}/{e.q}"
        return text, _SUM if e.p < 0 else _ATOM if e.q == 1 else _PRODUCT
    if e.is_Float:
        return repr(float(e)), _ATOM if e >= 0 else _SUM
    if e.is_Add:
        return _show_sum(e), _SUM
    if isinstance(e, sympy.floor):
        return _show_floor(e.args[0])
    if isinstance(e, sympy.Mod):
        return f"{_show(e.args[0], _ATOM)}%{_show(e.args[1], _ATOM)}", _PRODUCT
    if e.is_Mul or (e.is_Pow and e.exp.is_Integer):
        return _show_product(e)
    arguments = [_show(a, _SUM) for a in e.args]
    if not isinstance(e, PythonCall):
        arguments.sort()  # Max and Min
    return f"{e.func.__name__}({', '.join(arguments)})", _ATOM


def _show_sum(e: sympy.Expr) -> str:
    constants = [t for t in e.args if t.is_Number]
    terms = sorted((t for t in e.args if not t.is_Number), key=_term_order)
    ordered = [t for t in terms if not _is_negative(t)]
    rest = [t for t in terms if _is_negative(t)]
    ordered += constants + rest if not ordered else rest + constants
    text = _show(ordered[0], _SUM)
    for term in ordered[1:]:
        negative = _is_negative(term)
        text += f" {'-' if negative else '+'} {_show(-term if negative else term, _PRODUCT)}"
    return text


def _term_order(term: sympy.Expr) -> tuple[object, ...]:
    terms = sum_of(term)
    if terms is None or len(terms) != 1:
        return 0, [], str(term)
    (product,) = terms
    return (*product_order(product), "")


def _is_negative(term: sympy.Expr) -> bool:
    return bool(term.as_coeff_Mul()[0] < 0)


def _show_floor(inside: sympy.Expr) -> tuple[str, int]:
    terms = sum_of(inside)
    if terms is None:
        return f"floor({_show(inside, _SUM)})", _ATOM
    top, bottom = _fraction(terms)
    if bottom == 1:
        return f"floor({_show(as_expr(top), _SUM)})", _ATOM
    return f"{_show(as_expr(top), _PRODUCT)}//{_show(as_expr(bottom), _ATOM)}", _PRODUCT


def _fraction(terms: Sum) -> tuple[Dim, Dim]:
    """A sum over one denominator."""
    number = math.lcm(*(c.denominator for c in terms.values()))
    powers: dict[sympy.Expr, int] = {}
    for product in terms:
        for atom, exponent in product:
            powers[atom] = max(powers.get(atom, 0), -exponent)
    factors = [sympy.Pow(atom, powers[atom]) for atom in sorted(powers, key=atom_order)]
    parts = (sympy.Mul(as_expr(expression({p: c})), *factors) for p, c in scaled(terms, number).items())
    return dim(sympy.Add(*parts)), dim(sympy.Mul(number, *factors))


def _show_product(e: sympy.Expr) -> tuple[str, int]:
    coefficient, _ = e.as_coeff_Mul()
    if coefficient < 0 and (rounded := _ceiling_of(e)) is not None:
        return f"ceiling({_show(rounded, _SUM)})", _ATOM
    if coefficient < 0:
        text, _ = _show_product(-e) if (-e).is_Mul or (-e).is_Pow else (_show(-e, _ATOM), _ATOM)
        return f"-{text}", _SUM
    above, below = [], []
    for factor in sympy.Mul.make_args(e):
        base, exponent = factor.args if factor.is_Pow and factor.exp.is_Integer else (factor, sympy.S.One)
        if factor.is_Rational:
            above += [str(int(factor.p))] if factor.p != 1 else []
            below += [str(int(factor.q))] if factor.q != 1 else []
        else:
            (above if exponent > 0 else below).extend(_show_power(base, abs(int(exponent))))
    top = "*".join(above) or "1"
    bottom = "*".join(below)
    return (f"{top}/({bottom})" if len(below) > 1 else f"{top}/{bottom}" if below else top), _PRODUCT


def _show_power(base: sympy.Expr, exponent: int) -> list[str]:
    """The factors of a power."""
    return [_show(base, _ATOM)] * exponent if exponent <= 4 else [f"pow({_show(base, _SUM)}, {exponent})"]


def _ceiling_of(e: sympy.Expr) -> sympy.Expr | None:
    """x where `e` is -floor(-x)."""
    inner = -e
    return -inner.args[0] if isinstance(inner, sympy.floor) and _is_negative(inner.args[0]) else None


# -- reading ---------------------------------------------------------------------------------------

MAX_TEXT, MAX_DEPTH, MAX_DIGITS, MAX_ARGUMENTS = 4096, 64, 40, 64
MAX_PARTS = 2000  # names, numbers and operations of one size, each as often as it is written
MAX_QUOTIENTS = 16  # divisions by sizes in one text; sympy's time doubles with each that is in another

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)|(?P<name>[^\W\d][\w.]*|`[^`\n]+`)|(?P<sign>//|[-+*/%(),]))"
)
_FORMS: dict[str, tuple[int | None, Callable[..., Dim]]] = {
    "Max": (None, maximum),
    "Min": (None, minimum),
    "pow": (2, power),
    "floor": (1, floor),
    "ceiling": (1, ceiling),
    "abs": (1, lambda a: dim(sympy.Abs(a))),
    "Abs": (1, lambda a: dim(sympy.Abs(a))),
}
_TWO = {"bitand", "bitor", "bitxor", "truediv", "float_pow", "round_to"}


def parse(text: str) -> Dim:
    """The size that a text says: numbers, names, + - * / // %, parentheses, and functions such as Max and floor.

    Args:
        text: e.g. `"2*batch + 1"`; at most 4096 characters, nested at most 64 deep.

    Raises:
        DimSyntaxError: the text is anything else.
    """
    if len(text) > MAX_TEXT:
        raise DimSyntaxError(f"a size expression of {len(text)} characters; at most {MAX_TEXT} are read")
    return _parsed(text)


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> Dim:
    return _Parser(text).whole()


@functools.lru_cache(maxsize=65536)
def _parts(e: sympy.Expr) -> int:
    return 1 + sum(map(_parts, e.args))


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, position = text, [], 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if not match:
                raise self.error(f"unexpected {text[position:].strip()[:1]!r}")
            self.tokens.append((str(match.lastgroup), match[0].strip()))
            position = match.end()
        self.next, self.depth, self.quotients = 0, 0, 0

    def error(self, why: str) -> DimSyntaxError:
        return DimSyntaxError(f"{self.text[:80]!r} is no size expression: {why}")

    def bounded(self, result: Dim) -> Dim:
        """Refuse an expression that is too large to work with."""
        if _parts(as_expr(result)) > MAX_PARTS:
            raise self.error(f"multiplied out, it has more than {MAX_PARTS} parts")
        return result

    def whole(self) -> Dim:
        result = self.sum()
        if self.peek() is not None:
            raise self.error(f"unexpected {self.peek()!r}")
        if any(max(abs(n.p), n.q) >= 10**MAX_DIGITS for n in as_expr(result).atoms(sympy.Rational)):
            raise self.error(f"it comes to numbers of more than {MAX_DIGITS} digits")
        return dim(result)

    def peek(self) -> str | None:
        return self.tokens[self.next][1] if self.next < len(self.tokens) else None

    def take(self, *choices: str) -> str | None:
        if (found := self.peek()) in choices:
            self.next += 1
            return found
        return None

    def sum(self) -> Dim:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error("nested too deeply")
        terms = [self.product()]
        while sign := self.take("+", "-"):
            terms.append(self.product() if sign == "+" else -self.product())
        self.depth -= 1
        return terms[0] if len(terms) == 1 else self.bounded(dim(sympy.Add(*terms)))

    def product(self) -> Dim:
        result = self.signed()
        while sign := self.take("*", "//", "/", "%"):
            result = self.bounded(self.combined(sign, result, self.signed()))
        return result

    def combined(self, sign: str, a: Dim, b: Dim) -> Dim:
        if sign == "*":
            return dim(a * b)
        if b == 0 or sum_of(b) == {}:
            raise self.error("division by zero")
        self.quotients += not isinstance(b, int)
        if self.quotients > MAX_QUOTIENTS:
            raise self.error(f"more than {MAX_QUOTIENTS} divisions by sizes")
        if sign == "//":
            return floordiv(a, b)
        return mod(a, b) if sign == "%" else dim(sympy.Mul(a, sympy.Pow(b, -1)))

    def signed(self) -> Dim:
        negative = False
        while sign := self.take("+", "-"):
            negative ^= sign == "-"
        return dim(-self.atom()) if negative else self.atom()

    def atom(self) -> Dim:
        if self.take("("):
            inner = self.sum()
            self.close()
            return inner
        if (token := self.peek()) is None:
            raise self.error("it ends too early")
        kind = self.tokens[self.next][0]
        self.next += 1
        if kind == "number":
            return self.number(token)
        if kind != "name":
            raise self.error(f"unexpected {token!r}")
        if token.startswith("`"):
            return symbol(token[1:-1])
        return self.call(token) if self.take("(") else symbol(token)

    def number(self, token: str) -> Dim:
        if len(token) > MAX_DIGITS:
            raise self.error(f"a number of {len(token)} digits")
        if token.isdecimal():
            return int(token)
        if not math.isfinite(float(token)):
            raise self.error(f"{token} is too large")
        return sympy.Float(float(token))

    def call(self, name: str) -> Dim:
        arguments = [self.sum()]
        while self.take(","):
            arguments.append(self.sum())
        self.close()
        if name in _FORMS:
            arity, function = _FORMS[name]
        elif name in CALLS:
            arity, function = 1 + (name in _TWO), functools.partial(call, name)
        else:
            raise self.error(f"unknown function {name!r}")
        if len(arguments) != arity if arity is not None else len(arguments) > MAX_ARGUMENTS:
            raise self.error(
                f"{name} takes {arity or f'at most {MAX_ARGUMENTS}'} arguments, not {len(arguments)}"
            )
        return self.bounded(function(*arguments))

    def close(self) -> None:
        if not self.take(")"):
            raise self.error("a parenthesis is not closed")
