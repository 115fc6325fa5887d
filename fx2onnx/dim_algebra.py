"""Size arithmetic: sums of products are one form, and floors, remainders, Max and Min over them are too.

Everything here gives ints for whole numbers. What is divided, rounded or compared is first written as a sum of
products of *atoms* (names, floors, remainders, calls of functions), with fractions for coefficients:

    (2*h + 3)/4   is   {h: 1/2, 1: 3/4}

Expressions with floating-point numbers stay as they are: their roundings depend on the order of operations.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import sympy

from fx2onnx.dim_functions import Dim, PythonCall, as_expr, dim

# A sum of products: for each product (atoms with their powers) its coefficient, never 0.
Product = frozenset[tuple[sympy.Expr, int]]
Sum = dict[Product, Fraction]

ONE: Product = frozenset()
MAX_TERMS = 200  # larger sums of products are not written out


# -- sums of products ------------------------------------------------------------------------------


@functools.lru_cache(maxsize=65536)
def sum_of(size: Dim) -> Sum | None:
    """`size` as a sum of products; None where it has floating-point terms or too many. Not to be changed."""
    if isinstance(size, int):
        return {ONE: Fraction(size)} if size else {}
    if size.is_Rational:
        return {ONE: Fraction(int(size.p), int(size.q))} if size.p else {}
    if size.is_Number:
        return None
    if size.is_Add:
        return _total(map(sum_of, size.args))
    if size.is_Mul:
        return product_of(map(sum_of, size.args))
    if size.is_Pow and size.exp.is_Integer:
        return _to_the(size.base, int(size.exp))
    return {frozenset(((size, 1),)): Fraction(1)}


def _total(sums: Iterable[Sum | None]) -> Sum | None:
    result: Sum = {}
    for terms in sums:
        if terms is None:
            return None
        result = plus(result, terms)
    return result if len(result) <= MAX_TERMS else None


def product_of(sums: Iterable[Sum | None]) -> Sum | None:
    """The product of sums; None where one is None or it has too many terms."""
    result: Sum = {ONE: Fraction(1)}
    for terms in sums:
        if terms is None or len(result) * len(terms) > MAX_TERMS:
            return None
        result = times(result, terms)
    return result


def _to_the(base: sympy.Expr, exponent: int) -> Sum | None:
    if exponent < 0:
        inverse = _inverse(sum_of(base))
        return None if inverse is None else product_of([inverse] * -exponent)
    if (terms := sum_of(base)) is None or len(terms) ** min(exponent, 64) > MAX_TERMS:
        return None
    if len(terms) != 1:
        return product_of([terms] * exponent)
    ((factors, coefficient),) = terms.items()
    return {frozenset((a, k * exponent) for a, k in factors): coefficient**exponent}


def _inverse(terms: Sum | None) -> Sum | None:
    """1 over a sum; a sum of several products becomes an atom, with its content taken out. None for 1/0."""
    if not terms:
        return None
    if len(terms) == 1:
        ((factors, coefficient),) = terms.items()
        return {frozenset((atom, -power) for atom, power in factors): 1 / coefficient}
    content = _content(terms.values())
    if terms[_leading(terms)] < 0:
        content = -content
    atom = expression(scaled(terms, 1 / content))
    return {frozenset(((atom, -1),)): 1 / content}


def _content(coefficients: Iterable[Fraction]) -> Fraction:
    """The greatest number that divides all of them into whole ones."""
    values = list(coefficients)
    bottom = math.lcm(*(c.denominator for c in values))
    return Fraction(math.gcd(*(int(c * bottom) for c in values)), bottom)


def plus(a: Sum, b: Sum, factor: Fraction | int = 1) -> Sum:
    """a + factor*b."""
    result = dict(a)
    for product, coefficient in b.items():
        if total := result.get(product, 0) + factor * coefficient:
            result[product] = Fraction(total)
        else:
            result.pop(product, None)
    return result


def times(a: Sum, b: Sum) -> Sum:
    """a * b."""
    result: Sum = {}
    for (x, c), (y, d) in ((s, t) for s in a.items() for t in b.items()):
        product = _joined(x, y)
        if total := result.get(product, 0) + c * d:
            result[product] = Fraction(total)
        else:
            result.pop(product, None)
    return result


def _joined(x: Product, y: Product) -> Product:
    if not x or not y:
        return x or y
    powers = dict(x)
    for atom, power in y:
        powers[atom] = powers.get(atom, 0) + power
    return frozenset((atom, power) for atom, power in powers.items() if power)


def scaled(terms: Sum, factor: Fraction | int) -> Sum:
    """factor * terms, for a factor that is not 0."""
    return {product: coefficient * factor for product, coefficient in terms.items()}


def expression(terms: Sum) -> Dim:
    """The sum as a size."""
    parts = (
        sympy.Mul(sympy.Rational(c.numerator, c.denominator), *(sympy.Pow(a, k) for a, k in product))
        for product, c in terms.items()
    )
    return dim(sympy.Add(*parts))


def _leading(terms: Sum) -> Product:
    """The product that decides about the sign of a sum: of the highest degree, then the first by name."""
    return min((p for p in terms if p), key=product_order, default=ONE)


@functools.lru_cache(maxsize=65536)
def product_order(product: Product) -> tuple[Any, ...]:
    """Sorts products as they are written: by falling degree, then by name."""
    return -sum(k for _, k in product if k > 0), sorted((atom_order(atom), k) for atom, k in product)


@functools.lru_cache(maxsize=65536)
def atom_order(atom: sympy.Expr) -> str:
    """Sorts atoms by name."""
    return atom.name if atom.is_Symbol else str(atom)


# -- whole and nonnegative -------------------------------------------------------------------------


@functools.lru_cache(maxsize=65536)
def _is_whole(atom: sympy.Expr) -> bool:
    if atom.is_Symbol or isinstance(atom, PythonCall):
        return bool(atom.is_integer)
    if atom.func in (sympy.floor, sympy.ceiling):
        return True
    if isinstance(atom, sympy.Mod | sympy.Max | sympy.Min | sympy.Abs):
        return all((terms := sum_of(a)) is not None and all_whole(terms) for a in atom.args)
    return False


def _whole_product(product: Product) -> bool:
    return all(power > 0 and _is_whole(atom) for atom, power in product)


def all_whole(terms: Sum) -> bool:
    """Is a sum a whole number, by its coefficients and atoms?"""
    return all(c.denominator == 1 and _whole_product(p) for p, c in terms.items())


def _has_no_value(size: Dim) -> bool:
    return not isinstance(size, int) and bool(size.has(sympy.zoo, sympy.nan))


# -- floors ----------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=65536)
def floordiv(a: Dim, b: Dim) -> Dim:
    """The floor of a / b in one form.

    Whole parts stand outside (`(h + 3)//2` is `(h + 1)//2 + 1`), floors of floors by whole numbers are joined
    (`(h//2)//3` is `h//6`), what cannot matter is left out (`(2*h + 1)//4` is `h//2`), and the first term is
    positive (`-(-h//2)` is `(h + 1)//2`): sizes of stacked convolutions compare equal.
    A division by 0 is sympy's `zoo`, which is no number.
    """
    if b == 0 or _has_no_value(a) or _has_no_value(b):
        return sympy.zoo
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    quotient = product_of((sum_of(a), _inverse(sum_of(b))))
    if quotient is None:
        return floor(sympy.Mul(as_expr(a), sympy.Pow(as_expr(b), -1)))
    return expression(floor_of(quotient))


def ceildiv(a: Dim, b: Dim) -> Dim:
    """The ceiling of a / b: -((-a)//b)."""
    return dim(-floordiv(-a, b))


def floor(x: Dim) -> Dim:
    """The largest whole number that is at most x."""
    if (terms := sum_of(x)) is not None:
        return expression(floor_of(terms))
    inside = as_expr(x)
    return math.floor(float(inside)) if inside.is_Float else sympy.floor(inside, evaluate=False)


def ceiling(x: Dim) -> Dim:
    """The smallest whole number that is at least x."""
    return dim(-floor(-x))


def floor_of(terms: Sum) -> Sum:
    """The floor of a sum: its whole part, and one floor in the form of `floordiv`."""
    whole: Sum = {}
    rest: Sum = {}
    for product, coefficient in terms.items():
        if coefficient.denominator == 1 and _whole_product(product):
            whole[product] = coefficient
        else:
            rest[product] = coefficient
    constant = rest.pop(ONE, Fraction(0))
    if math.floor(constant):
        whole = plus(whole, {ONE: Fraction(math.floor(constant))})
    if not rest:
        return whole
    if part := constant - math.floor(constant):
        rest[ONE] = part
    return plus(whole, _fraction_floor(rest))


def _fraction_floor(rest: Sum) -> Sum:
    """The floor of a sum without whole terms, its constant in [0, 1)."""
    if all(map(_whole_product, rest)):
        bottom = math.lcm(*(c.denominator for c in rest.values()))
        if rest[_leading(rest)] < 0:  # floor(n/d) = -floor((-n + d - 1)/d)
            mirrored = plus(scaled(rest, -1), {ONE: Fraction(bottom - 1, bottom)})
            return scaled(floor_of(mirrored), -1)
        if (joined := _without_inner_floor(rest)) is not None:
            return floor_of(joined)
        rest = _without_idle_constant(rest, bottom)
    return {frozenset(((sympy.floor(expression(rest), evaluate=False), 1),)): Fraction(1)}


def _without_inner_floor(rest: Sum) -> Sum | None:
    """floor(floor(x)/n + c/n) is floor((x + c)/n) for whole n > 0 and whole c; None if there is no such floor."""
    floors = [(p, atom) for p in rest for atom, k in p if len(p) == k == 1 and atom.func is sympy.floor]
    if len(floors) != 1:
        return None
    ((product, atom),) = floors
    coefficient, inner = rest[product], sum_of(atom.args[0])
    others = {p: c for p, c in rest.items() if p != product}
    n = coefficient.denominator
    if coefficient.numerator != 1 or inner is None or any((c * n).denominator != 1 for c in others.values()):
        return None
    return plus(others, inner, Fraction(1, n))


def _without_idle_constant(rest: Sum, bottom: int) -> Sum:
    """floor((g*x + k)/(g*d)) is floor((x + k//g)/d)."""
    if ONE not in rest:
        return rest
    tops = [int(c * bottom) for p, c in rest.items() if p]
    common = math.gcd(bottom, *tops)
    constant = int(rest[ONE] * bottom) // common
    others = {p: c for p, c in rest.items() if p}
    return others | ({ONE: Fraction(constant * common, bottom)} if constant else {})


# -- remainders ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=65536)
def mod(a: Dim, b: Dim) -> Dim:
    """a - b*(a//b): the remainder with the sign of b, as Python's %.

    Multiples of b are left out, common factors stand outside (`(2*h)%4` is `2*(h%2)`); `zoo` for b = 0.
    """
    if b == 0 or _has_no_value(a) or _has_no_value(b):
        return sympy.zoo
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    top, inverse = sum_of(a), _inverse(sum_of(b))
    if top is None or inverse is None or not all_whole(top):
        return dim(sympy.Mod(as_expr(a), as_expr(b), evaluate=False))
    if not isinstance(b, int):
        rest = {
            p: c
            for p, c in top.items()
            if not all_whole(product_of(({p: c}, inverse)) or {p: Fraction(1, 2)})
        }
        return dim(sympy.Mod(as_expr(expression(rest)), b, evaluate=False)) if rest else 0
    if b < 0:
        return dim(-mod(-a, -b))
    return _remainder(top, b)


def _remainder(top: Sum, n: int) -> Dim:
    """The remainder of a whole sum by a whole number n > 0."""
    rest = {p: Fraction(int(c) % n) for p, c in _without_inner_mods(top, n).items() if int(c) % n}
    if not any(rest):
        return int(rest.get(ONE, 0))
    common = math.gcd(n, *(int(c) for c in rest.values()))
    inner = expression(scaled(rest, Fraction(1, common)))
    return dim(common * sympy.Mod(as_expr(inner), sympy.Integer(n // common), evaluate=False))


def _without_inner_mods(top: Sum, n: int) -> Sum:
    """c*(x%m) is c*x in a remainder by n, where n divides c*m."""
    for product, coefficient in top.items():
        for atom, power in product:
            if len(product) == power == 1 and isinstance(atom, sympy.Mod) and atom.args[1].is_Integer:
                inner = sum_of(atom.args[0])
                if inner is not None and coefficient * int(atom.args[1]) % n == 0:
                    others = {p: c for p, c in top.items() if p != product}
                    return _without_inner_mods(plus(others, inner, coefficient), n)
    return top
