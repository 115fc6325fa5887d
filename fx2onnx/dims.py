"""Sizes as sympy expressions: build, simplify, compare, print, parse.

A size (`Dim`) is a Python int or a sympy expression over size symbols. Everything here keeps three rules:
an expression that is a number becomes an int; equal sizes get one form where that is cheap (floors are
normalised, see `floordiv`); and a comparison has three answers, `True`, `False` and `None` for unknown.

Text is read by a small grammar of its own (`parse`), never by sympy's `sympify`, so that names such as
`N`, `S` or `beta` are plain names and a hostile text is a `DimSyntaxError`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping

import sympy
from sympy.core.numbers import Rational

from fx2onnx.errors import DimSyntaxError

Dim = int | sympy.Expr


@functools.cache
def symbol(name: str) -> sympy.Symbol:
    """The size called `name`: a nonnegative integer."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


def dim(expr: Dim) -> Dim:
    """`expr` as a Python int where it is a whole number, unchanged otherwise."""
    if isinstance(expr, int):
        return int(expr)
    return int(expr) if expr.is_Integer else expr


def _expr(size: Dim) -> sympy.Expr:
    return sympy.Integer(size) if isinstance(size, int) else size


@functools.lru_cache(maxsize=65536)
def floordiv(a: Dim, b: Dim) -> Dim:
    """The floor of a / b in one canonical form.

    Whole parts are taken out of the floor (`(h + 3)//2` is `(h + 1)//2 + 1`), and floors of floors by
    whole numbers are joined (`(h//2)//3` is `h//6`), so that sizes of stacked convolutions compare equal.
    """
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            return sympy.zoo
        return a // b
    return dim(_floor(sympy.expand(_expr(a) / _expr(b))))


def _floor(x: sympy.Expr) -> sympy.Expr:
    constant, rest = x.as_coeff_Add()
    whole = sympy.floor(constant) if constant.is_Rational else sympy.Integer(0)
    part = x - whole
    terms = sympy.Add.make_args(part)
    integers = [t for t in terms if t.is_integer]
    fraction = sympy.Add(*(t for t in terms if not t.is_integer))
    if fraction == 0:
        return x
    return sympy.Add(whole, *integers) + _joined_floor(fraction)


def _joined_floor(fraction: sympy.Expr) -> sympy.Expr:
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
            return _floor(sympy.expand(inner.args[0] / coefficient.q + others))
    return sympy.floor(fraction)


def ceildiv(a: Dim, b: Dim) -> Dim:
    """The ceiling of a / b, written with a floor: -((-a)//b) brought to the form of `floordiv`."""
    if isinstance(b, int):
        return dim(floordiv(a + b - 1, b))
    return dim(-floordiv(-a, b))


def mod(a: Dim, b: Dim) -> Dim:
    """a - b*(a//b): the remainder with the sign of b, as Python's %."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    return dim(sympy.Mod(_expr(a), _expr(b)))


def maximum(a: Dim, b: Dim) -> Dim:
    """The larger of two sizes."""
    return dim(sympy.Max(a, b))


def minimum(a: Dim, b: Dim) -> Dim:
    """The smaller of two sizes."""
    return dim(sympy.Min(a, b))


@functools.lru_cache(maxsize=65536)
def same(a: Dim, b: Dim) -> bool | None:
    """Are two sizes equal for every value of their symbols? True, False (for none), None (unknown)."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a == b:
        return True
    difference = sympy.expand(_expr(a) - _expr(b))
    if difference == 0:
        return True
    if difference.is_zero is False or difference.is_positive or difference.is_negative:
        return False
    return None


def evaluate(expr: Dim, values: Mapping[str, int]) -> int | None:
    """The number that `expr` is with the symbols' values, or None when a symbol has none."""
    if isinstance(expr, int):
        return expr
    free = {s: values[s.name] for s in expr.free_symbols if s.name in values}
    number = expr.xreplace({s: sympy.Integer(v) for s, v in free.items()}).doit()
    return int(number) if number.is_Integer else None


def names(expr: Dim) -> set[str]:
    """The names of the symbols in `expr`."""
    return set() if isinstance(expr, int) else {s.name for s in expr.free_symbols}


# -- text ------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=65536)
def show(expr: Dim) -> str:
    """`2*batch + 1`, `(h - 1)//2 + 1`, `Max(a, b)`: what `parse` reads back."""
    return str(expr) if isinstance(expr, int) else _show(expr, 0)


_SUM, _PRODUCT, _ATOM = 1, 2, 3


def _show(e: sympy.Expr, level: int) -> str:
    text, own = _show_bare(e)
    return f"({text})" if own < level else text


def _show_bare(e: sympy.Expr) -> tuple[str, int]:
    if e.is_Symbol:
        return e.name, _ATOM
    if e.is_Integer:
        return str(int(e)), _ATOM if e >= 0 else _SUM
    if e.is_Rational:
        return f"{e.p}/{e.q}", _PRODUCT if e.p >= 0 else _SUM
    if e.is_Float:
        return repr(float(e)), _ATOM
    if e.is_Add:
        return _show_sum(e), _SUM
    if e.func is sympy.floor:
        top, bottom = sympy.fraction(sympy.together(e.args[0]))
        return f"{_show(sympy.expand(top), _ATOM)}//{_show(sympy.expand(bottom), _ATOM)}", _PRODUCT
    if isinstance(e, sympy.Mod):
        return f"{_show(e.args[0], _ATOM)}%{_show(e.args[1], _ATOM)}", _PRODUCT
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return "*".join([_show(e.base, _ATOM)] * int(e.exp)), _PRODUCT
    if e.is_Mul:
        return _show_product(e)
    arguments = ", ".join(sorted(_show(a, 0) for a in e.args))
    return f"{e.func.__name__}({arguments})", _ATOM


def _show_sum(e: sympy.Expr) -> str:
    constant, rest = e.as_coeff_Add()
    terms = sorted(sympy.Add.make_args(rest), key=lambda t: (-sympy.total_degree(t) if t.is_polynomial() else 0, str(t)))
    terms.sort(key=_is_negative)
    text = _show(terms[0], _SUM)
    for term in terms[1:] + ([constant] if constant != 0 else []):
        negative = _is_negative(term)
        text += f" {'-' if negative else '+'} {_show(-term if negative else term, _PRODUCT)}"
    return text


def _is_negative(term: sympy.Expr) -> bool:
    return bool(term.as_coeff_Mul()[0] < 0)


def _show_product(e: sympy.Expr) -> tuple[str, int]:
    coefficient, rest = e.as_coeff_Mul()
    if coefficient == -1:
        return f"-{_show(rest, _PRODUCT)}", _SUM
    top, bottom = sympy.fraction(e)
    if bottom != 1:
        return f"{_show(top, _PRODUCT)}/{_show(bottom, _ATOM)}", _PRODUCT
    factors = sorted(sympy.Mul.make_args(rest), key=str)
    if coefficient != 1:
        factors.insert(0, coefficient)
    # a // or % in front would bind to what follows it: factors that are not atoms get parentheses
    text = "*".join(_show(f, _ATOM if f.func is sympy.floor or isinstance(f, sympy.Mod) else _PRODUCT) for f in factors)
    return text, _SUM if coefficient < 0 else _PRODUCT


_TOKEN = re.compile(r"\s*(?:(\d+)|([^\W\d][\w.]*)|(//|[-+*/%(),]))")
_CALLS: dict[str, tuple[int | None, Callable[..., Dim]]] = {
    "Max": (None, lambda *a: dim(sympy.Max(*a))),
    "Min": (None, lambda *a: dim(sympy.Min(*a))),
    "floor": (1, lambda a: dim(_floor(sympy.expand(a)))),
    "ceiling": (1, lambda a: dim(-_floor(sympy.expand(-a)))),
    "abs": (1, lambda a: dim(sympy.Abs(a))),
}
MAX_TEXT, MAX_DEPTH = 4096, 64


def parse(text: str) -> Dim:
    """The size that a text says: whole numbers, names, + - * / // %, parentheses, Max, Min, floor, ceiling.

    Args:
        text: e.g. `"2*batch + 1"`; at most 4096 characters, nested at most 64 deep.

    Raises:
        DimSyntaxError: the text is anything else.
    """
    if len(text) > MAX_TEXT:
        raise DimSyntaxError(f"a size expression of {len(text)} characters; at most {MAX_TEXT} are read")
    return _Parser(text).whole()


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
        self.next, self.depth = 0, 0

    def error(self, why: str) -> DimSyntaxError:
        return DimSyntaxError(f"{self.text[:80]!r} is no size expression: {why}")

    def whole(self) -> Dim:
        result = self.sum()
        if self.peek() is not None:
            raise self.error(f"unexpected {self.peek()!r}")
        return dim(result)

    def peek(self) -> str | None:
        return self.tokens[self.next] if self.next < len(self.tokens) else None

    def take(self, *choices: str) -> str | None:
        if self.peek() in choices:
            self.next += 1
            return self.tokens[self.next - 1]
        return None

    def sum(self) -> Dim:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error("nested too deeply")
        result = self.product()
        while sign := self.take("+", "-"):
            other = self.product()
            result = result + other if sign == "+" else result - other
        self.depth -= 1
        return result

    def product(self) -> Dim:
        result = self.signed()
        while sign := self.take("*", "//", "/", "%"):
            result = self.combine(sign, result, self.signed())
        return result

    def combine(self, sign: str, a: Dim, b: Dim) -> Dim:
        if sign == "*":
            return a * b
        if b == 0:
            raise self.error("division by zero")
        if sign == "//":
            return floordiv(a, b)
        return mod(a, b) if sign == "%" else dim(_expr(a) / _expr(b))

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
        if token is None or not (token[0].isalnum() or token[0] == "_"):
            raise self.error("it ends too early" if token is None else f"unexpected {token!r}")
        self.next += 1
        if token[0].isdigit():
            return int(token)
        return self.call(token) if self.take("(") else symbol(token)

    def call(self, name: str) -> Dim:
        if name not in _CALLS:
            raise self.error(f"unknown function {name!r}")
        arguments = [_expr(self.sum())]
        while self.take(","):
            arguments.append(_expr(self.sum()))
        self.close()
        arity, function = _CALLS[name]
        if arity is not None and len(arguments) != arity:
            raise self.error(f"{name} takes {arity} argument, not {len(arguments)}")
        return function(*arguments)

    def close(self) -> None:
        if not self.take(")"):
            raise self.error("a parenthesis is not closed")


# -- numbers ---------------------------------------------------------------------------------------


def solve(expr: Dim, value: int, known: Mapping[str, int]) -> dict[str, int]:
    """The value of the one symbol of `expr` that is not known, so that `expr` is `value`; {} if there is none."""
    if isinstance(expr, int):
        return {}
    expr = expr.xreplace({s: sympy.Integer(known[s.name]) for s in expr.free_symbols if s.name in known})
    if len(expr.free_symbols) != 1:
        return {}
    (unknown,) = expr.free_symbols
    solutions = [sympy.Integer(value)] if expr == unknown else sympy.solve(expr - value, unknown)
    return {unknown.name: int(solutions[0])} if len(solutions) == 1 and solutions[0].is_Integer else {}


def holds(left: Dim, sign: str, right: Dim, values: Mapping[str, int]) -> bool | None:
    """Does a relation (`==`, `!=`, `<`, `<=`, `>`, `>=`) hold for these values? None when some are missing."""
    a, b = evaluate(left, values), evaluate(right, values)
    if sign == "holds" or a is None or b is None:
        return None
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign]
