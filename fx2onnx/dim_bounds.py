"""What is known about sizes whatever their names stand for: order, Max and Min, equality."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import sympy

from fx2onnx.dim_algebra import (
    ONE,
    Product,
    Sum,
    all_whole,
    expression,
    floor_of,
    floordiv,
    plus,
    product_of,
    product_order,
    scaled,
    sum_of,
)
from fx2onnx.dim_functions import Dim, as_expr, dim

_STEPS = 60  # a proof looks at this many sums before it gives up
_LONG = 200  # sizes of more parts are not brought to the form for comparisons
_MINUS_ONE: Sum = {ONE: Fraction(-1)}


# -- order -----------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=65536)
def at_least(a: Dim, b: Dim) -> bool:
    """Is a >= b for all values of their names? False where that is not known."""
    if isinstance(a, int) and isinstance(b, int):
        return a >= b
    if (difference := _difference(a, b)) is not None:
        return _Proof().nonnegative(difference)
    return b == 0 and bool(as_expr(a).is_nonnegative)


@functools.lru_cache(maxsize=65536)
def above(a: Dim, b: Dim) -> bool:
    """Is a > b for all values of their names? False where that is not known."""
    if isinstance(a, int) and isinstance(b, int):
        return a > b
    difference = _difference(a, b)
    return difference is not None and _positive(difference)


def _difference(a: Dim, b: Dim) -> Sum | None:
    x, y = sum_of(a), sum_of(b)
    return None if x is None or y is None else plus(x, y, -1)


def _positive(terms: Sum) -> bool:
    return all_whole(terms) and _Proof().nonnegative(plus(terms, _MINUS_ONE))


class _Proof:
    """Shows that a sum is nonnegative by replacing floors, remainders, Max and Min by what bounds them."""

    def __init__(self) -> None:
        self.steps = 0

    def nonnegative(self, terms: Sum) -> bool:
        """Is the sum known to be nonnegative for all values?"""
        self.steps += 1
        if self.steps > _STEPS:
            return False
        bad = {p for p, c in terms.items() if c < 0 or not _is_nonnegative_product(p)}
        if not bad:
            return True
        replaceable = [p for p in terms if _is_bounded(p)]
        replaceable.sort(key=lambda p: (p not in bad, product_order(p)))
        return any(self._with_bounds(terms, product) for product in replaceable)

    def _with_bounds(self, terms: Sum, product: Product) -> bool:
        """Is it nonnegative with one floor, remainder, Max or Min replaced by what it is at least (at most)?"""
        ((atom, _),) = product
        coefficient = terms[product]
        rest = {p: c for p, c in terms.items() if p != product}
        combine, bounds = _bounds(atom, upper=coefficient < 0)
        return combine(self.nonnegative(plus(rest, bound, coefficient)) for bound in bounds)


def _is_bounded(product: Product) -> bool:
    kinds = (sympy.floor, sympy.Mod, sympy.Max, sympy.Min)
    return len(product) == 1 and all(k == 1 and isinstance(atom, kinds) for atom, k in product)


def _bounds(atom: sympy.Expr, *, upper: bool) -> tuple[Callable[[Iterable[bool]], bool], Sequence[Sum]]:
    """Sums that an atom is at most (or at least), and which of them must do: `all` or `any`."""
    sums = [s for s in map(sum_of, atom.args) if s is not None]
    if len(sums) != len(atom.args):
        return any, ()
    if isinstance(atom, sympy.Max | sympy.Min):
        return all if upper == isinstance(atom, sympy.Max) else any, sums
    if isinstance(atom, sympy.Mod):
        n = atom.args[1]
        if not n.is_Integer or n < 0 or not all_whole(sums[0]):
            return any, ()
        return any, [{ONE: Fraction(int(n) - 1)} if upper else {}]
    (inner,) = sums
    return any, [inner if upper else plus(inner, {ONE: _least_loss(inner)})]


def _least_loss(inner: Sum) -> Fraction:
    """By how much a floor is less than what is in it, at most: (1 - d)/d for a whole sum over d."""
    bottom = math.lcm(*(c.denominator for c in inner.values()))
    return Fraction(1 - bottom, bottom) if all_whole(scaled(inner, bottom)) else Fraction(-1)


@functools.lru_cache(maxsize=65536)
def _is_nonnegative_product(product: Product) -> bool:
    return all(power % 2 == 0 or _is_nonnegative(atom) for atom, power in product)


@functools.lru_cache(maxsize=65536)
def _is_nonnegative(atom: sympy.Expr) -> bool:
    if isinstance(atom, sympy.Max | sympy.Min):
        some = any if isinstance(atom, sympy.Max) else all
        return some(at_least(dim(a), 0) for a in atom.args)
    if isinstance(atom, sympy.floor) and (inner := sum_of(atom.args[0])) is not None:
        return all(c >= 0 and _is_nonnegative_product(p) for p, c in inner.items())
    return bool(atom.is_nonnegative)


# -- Max and Min -----------------------------------------------------------------------------------


def maximum(*sizes: Dim) -> Dim:
    """The largest of sizes."""
    return _extreme(sympy.Max, sizes)


def minimum(*sizes: Dim) -> Dim:
    """The smallest of sizes."""
    return _extreme(sympy.Min, sizes)


def _extreme(kind: Any, sizes: Iterable[Dim]) -> Dim:
    flat = list(dict.fromkeys(part for size in sizes for part in _parts(kind, size)))
    numbers = [s for s in flat if isinstance(s, int)]
    left = [s for s in flat if not isinstance(s, int)]
    if numbers:
        left.append(max(numbers) if kind is sympy.Max else min(numbers))
    if len(left) <= 8:  # each is compared with each other one
        left = _needed(kind, left)
    return left[0] if len(left) == 1 else kind(*left, evaluate=False)


def _parts(kind: Any, size: Dim) -> Iterator[Dim]:
    if isinstance(size, int) or size.func is not kind:
        yield dim(size)
    else:
        yield from (dim(a) for a in size.args)


def _needed(kind: Any, sizes: list[Dim]) -> list[Dim]:
    """Without those that another one always is as large as (as small as)."""
    left = list(sizes)
    for size in sizes:
        others = [s for s in left if s is not size]
        if any(at_least(o, size) if kind is sympy.Max else at_least(size, o) for o in others):
            left = others
    return left


def total(*sizes: Dim) -> Dim:
    """The sum of sizes, drawn into a Max or Min where that is shorter: `h - Max(0, h - 5)` is `Min(5, h)`."""
    outside = dim(sympy.Add(*sizes))
    terms = sum_of(outside)
    if terms is None or (inside := _drawn_inside(terms)) is None:
        return outside
    return min(outside, inside, key=_length)


def _length(size: Dim) -> int:
    """The number of parts of a size, counted up to a bound."""
    return (
        1
        if isinstance(size, int)
        else sum(1 for _ in itertools.islice(sympy.preorder_traversal(size), _LONG))
    )


def _drawn_inside(terms: Sum) -> Dim | None:
    """c*Max(x, y) + r as Max(c*x + r, c*y + r), or as Min where c < 0; None unless there is one Max or Min."""
    found = [p for p in terms if _is_bounded(p) and all(isinstance(a, sympy.Max | sympy.Min) for a, _ in p)]
    if len(found) != 1:
        return None
    ((atom, _),) = found[0]
    rest = {p: c for p, c in terms.items() if p != found[0]}
    coefficient = terms[found[0]]
    parts = [p for p in map(sum_of, atom.args) if p is not None]
    combine = maximum if isinstance(atom, sympy.Max) == (coefficient > 0) else minimum
    if len(parts) != len(atom.args):
        return None
    return combine(*(expression(plus(rest, p, coefficient)) for p in parts))


# -- equality --------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=65536)
def same(a: Dim, b: Dim) -> bool | None:
    """Are two sizes equal for every value of their symbols? True, False (for none), None (unknown)."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a == b:
        return True
    for form in (sum_of, _plain):
        x, y = form(a), form(b)
        if x is None or y is None:
            return None
        difference = plus(x, y, -1)
        if not difference:
            return True
        if _never_zero(difference):
            return False
        if _length(a) + _length(b) > _LONG:
            return None
    return None


def compare(left: Dim, sign: str, right: Dim) -> bool | None:
    """Does `left sign right` (`==`, `<=` …) hold for every size (True), for none (False), or is it unknown?"""
    if sign in ("==", "!="):
        equal = same(left, right)
        return equal if sign == "==" or equal is None else not equal
    if sign in (">", ">="):
        return compare(right, "<" if sign == ">" else "<=", left)
    holds, fails = (above, at_least) if sign == "<" else (at_least, above)
    if holds(right, left):
        return True
    return False if fails(left, right) else None


def _never_zero(difference: Sum) -> bool:
    if not all_whole(difference):
        return False
    steps = [int(c) for p, c in difference.items() if p]
    constant = int(difference.get(ONE, 0))
    if not steps or constant % int(sympy.igcd(0, *steps)):
        return True
    return _positive(difference) or _positive(scaled(difference, -1))


@functools.lru_cache(maxsize=65536)
def _plain(size: Dim) -> Sum | None:
    """A form for comparisons: remainders as floors, floors reduced, sums drawn into Max and Min."""
    terms = sum_of(size)
    if terms is None:
        return None
    result: Sum = {}
    for product, coefficient in terms.items():
        factors = [
            _plain_atom(atom) if k > 0 else {frozenset(((atom, -1),)): Fraction(1)} for atom, k in product
        ]
        powers = [f for f, (_, k) in zip(factors, product, strict=True) for _ in range(min(abs(k), 64))]
        if any(abs(k) > 64 for _, k in product) or (value := product_of(powers)) is None:
            return None
        result = plus(result, value, coefficient)
    inside = _drawn_inside(result)
    return result if inside is None else sum_of(inside)


def _plain_atom(atom: sympy.Expr) -> Sum | None:
    """An atom of a sum in the form of `_plain`."""
    itself: Sum = {frozenset(((atom, 1),)): Fraction(1)}
    if not isinstance(atom, sympy.Mod | sympy.floor | sympy.Max | sympy.Min):
        return itself
    if isinstance(atom, sympy.Mod) and not atom.args[1].is_Integer and atom.args[1].has(sympy.Mod):
        return itself  # it would double in length with each remainder
    sums = [s for s in map(_plain, map(dim, atom.args)) if s is not None]
    if len(sums) != len(atom.args):
        return itself
    if isinstance(atom, sympy.floor):
        return _reduced(floor_of(sums[0]))
    sizes = [expression(s) for s in sums]
    if isinstance(atom, sympy.Mod):
        if sizes[1] == 0:
            return itself
        quotient = _plain(floordiv(*sizes))
        multiple = product_of((sums[1], quotient))
        return None if multiple is None else plus(sums[0], multiple, -1)
    return sum_of(maximum(*sizes) if isinstance(atom, sympy.Max) else minimum(*sizes))


def _reduced(terms: Sum) -> Sum:
    """Floors brought to one form for comparisons: `(3*h)//2` is `h + h//2`, and `(h + 1)//2` is `h - h//2`.

    The coefficients over d are in [0, d), and of a floor and its mirror image the one is taken that comes first.
    """
    result: Sum = {}
    for product, coefficient in terms.items():
        result = plus(result, _reduced_floor(product), coefficient)
    return result


def _reduced_floor(product: Product) -> Sum:
    itself: Sum = {product: Fraction(1)}
    if len(product) != 1:
        return itself
    ((atom, power),) = product
    inner = sum_of(atom.args[0]) if power == 1 and isinstance(atom, sympy.floor) else None
    if inner is None:
        return itself
    bottom = math.lcm(*(c.denominator for c in inner.values()))
    tops = scaled(inner, bottom)
    if not all_whole(tops):
        return itself
    mirrored = plus(scaled(tops, -1), {ONE: Fraction(bottom - 1)})  # floor(n/d) = -floor((-n + d - 1)/d)
    one, other = _split(tops, bottom), _split(mirrored, bottom)
    if _order_of(one[1]) <= _order_of(other[1]):
        return _floor_again(*one, bottom)
    return scaled(_floor_again(*other, bottom), -1)


def _split(tops: Sum, bottom: int) -> tuple[Sum, Sum]:
    """n as d*whole + rest."""
    whole = {p: Fraction(int(c) // bottom) for p, c in tops.items() if int(c) // bottom}
    rest = {p: Fraction(int(c) % bottom) for p, c in tops.items() if int(c) % bottom}
    return whole, rest


def _order_of(rest: Sum) -> Any:
    return sorted((product_order(p), c) for p, c in rest.items() if p), rest.get(ONE, Fraction(0))


def _floor_again(whole: Sum, rest: Sum, bottom: int) -> Sum:
    if not any(rest):
        return whole
    inner = expression(scaled(rest, Fraction(1, bottom)))
    return plus(whole, {frozenset(((sympy.floor(inner, evaluate=False), 1),)): Fraction(1)})
