"""Sizes: arithmetic agrees with Python's, text reads back, comparisons agree with numbers, hostile text is refused."""

from __future__ import annotations

import contextlib
import operator
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from fx2onnx import dims
from fx2onnx.dims import Dim
from fx2onnx.errors import DimSyntaxError, Fx2OnnxError

few = settings(derandomize=True, max_examples=150, deadline=None)

NAMES = ("n", "m", "batch", "N", "S", "lambda", "x.0")
VALUES = st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES})


@dataclass(frozen=True)
class Written:
    """A size built twice: as a `Dim`, and as a function of numbers in plain Python."""

    size: Dim
    python: Callable[[dict[str, int]], int]

    def __repr__(self) -> str:
        return dims.show(self.size)


def leaf(value: int | str) -> Written:
    if isinstance(value, int):
        return Written(value, lambda _: value)
    return Written(dims.symbol(value), lambda v: v[value])


def both(symbolic: Callable[..., Dim], plain: Callable[..., int]) -> Callable[..., Written]:
    def build(a: Written, b: Written) -> Written:
        return Written(symbolic(a.size, b.size), lambda v: plain(a.python(v), b.python(v)))

    return build


BINARY = [
    both(lambda a, b: dims.dim(sympy.Add(a, b)), operator.add),
    both(lambda a, b: dims.dim(sympy.Add(a, sympy.Mul(-1, b))), operator.sub),
    both(lambda a, b: dims.dim(sympy.Mul(a, b)), operator.mul),
    both(dims.maximum, max),
    both(dims.minimum, min),
]
BY_NUMBER = [
    both(dims.floordiv, operator.floordiv),
    both(dims.mod, operator.mod),
    both(dims.ceildiv, lambda a, b: -(-a // b)),
]

leaves = st.one_of(st.sampled_from(NAMES), st.integers(-3, 9)).map(leaf)
positive = st.integers(1, 7).map(leaf)


def _extend(inner: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
    two = st.builds(lambda f, a, b: f(a, b), st.sampled_from(BINARY), inner, inner)
    divided = st.builds(lambda f, a, b: f(a, b), st.sampled_from(BY_NUMBER), inner, positive)
    return two | divided


sizes = st.recursive(leaves, _extend, max_leaves=5)


# -- arithmetic ------------------------------------------------------------------------------------


@few
@given(sizes, VALUES)
def test_a_size_has_the_value_that_python_computes(written, values):
    assert dims.evaluate(written.size, values) == written.python(values)


@few
@given(sizes, st.integers(-7, 7).filter(bool), VALUES)
def test_floordiv_and_mod_are_pythons(written, divisor, values):
    number = written.python(values)
    assert dims.evaluate(dims.floordiv(written.size, divisor), values) == number // divisor
    assert dims.evaluate(dims.mod(written.size, divisor), values) == number % divisor
    assert dims.evaluate(dims.ceildiv(written.size, divisor), values) == -(-number // divisor)


def test_numbers_are_plain_ints():
    n = dims.symbol("n")
    assert type(dims.dim(n - n + 3)) is int
    assert type(dims.floordiv(2 * n, n)) is int
    assert type(dims.mod(2 * n + 1, 2)) is int
    assert type(dims.maximum(3, 4)) is int


def test_a_division_by_zero_is_no_number():
    n = dims.symbol("n")
    for size in (dims.floordiv(3, 0), dims.mod(3, 0), dims.floordiv(7, n)):
        assert dims.evaluate(size, {"n": 0}) is None


def test_sizes_of_stacked_convolutions_are_one_form():
    h = dims.symbol("h")
    once = dims.floordiv(h - 1, 2) + 1
    assert dims.floordiv(once - 1, 2) + 1 == dims.floordiv(h - 1, 4) + 1
    assert dims.floordiv(dims.floordiv(h, 2), 3) == dims.floordiv(h, 6)


# -- comparison ------------------------------------------------------------------------------------


@few
@given(sizes, sizes, st.lists(VALUES, min_size=3, max_size=6))
def test_same_agrees_with_numbers(a, b, samples):
    answer = dims.same(a.size, b.size)
    equal = [a.python(values) == b.python(values) for values in samples]
    if answer is True:
        assert all(equal)
    if answer is False:
        assert not any(equal)


@few
@given(sizes)
def test_every_size_is_the_same_as_itself(written):
    assert dims.same(written.size, written.size) is True
    assert dims.same(dims.parse(dims.show(written.size)), written.size) is True


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ("n + m", "m + n", True),
        ("(3*n)//2", "n + n//2", True),
        ("n%4", "n - 4*(n//4)", True),
        ("(n + 1)*(n - 1)", "n*n - 1", True),
        ("-(-n//2)", "n - n//2", True),
        ("n + 1", "n", False),
        ("2*n + 1", "2*m", False),
        ("n", "m", None),
        ("n*m", "n", None),
        ("h - Max(0, h - 5)", "Min(h, 5)", True),
        ("h//2", "h + 1", False),
        ("signed.u0 + 1", "0", None),
        ("h + 1", "0", False),
        ("h%4", "4", False),
        ("0.7*h", "0.7*w", None),
    ],
)
def test_comparisons(a, b, answer):
    assert dims.same(dims.parse(a), dims.parse(b)) is answer


def test_relations_on_numbers():
    n, m = dims.symbol("n"), dims.symbol("m")
    assert dims.holds(n, "<=", 512, {"n": 512}) is True
    assert dims.holds(n + m, "!=", 3, {"n": 1, "m": 2}) is False
    assert dims.holds(n, "<", m, {"n": 1}) is None
    assert dims.holds(0, "holds", 0, {}) is None


@pytest.mark.parametrize(
    ("text", "value", "known", "answer"),
    [
        ("n", 7, {}, {"n": 7}),
        ("2*n + 1", 9, {}, {"n": 4}),
        ("2*n + 1", 8, {}, {}),
        ("n + m", 9, {"m": 2}, {"n": 7}),
        ("n*m", 12, {"m": 4}, {"n": 3}),
        ("n*n", 9, {}, {"n": 3}),
        ("n*n", 8, {}, {}),
        ("n + m", 9, {}, {}),
        ("n//2", 4, {}, {}),
        ("n - 9", -12, {}, {}),
        ("signed.n - 9", -12, {}, {"signed.n": -3}),
    ],
)
def test_solving_for_one_name(text, value, known, answer):
    assert dims.solve(dims.parse(text), value, known) == answer


# -- divisions by sizes, and numbers that may be negative -------------------------------------------

ANY = ("h", "w", "batch", "signed.u0")

# An expression as a tree of (operation, parts): built twice, as a size and as a number.
OPERATIONS = {
    "+": (lambda a, b: dims.dim(a + b), lambda a, b: a + b),
    "-": (lambda a, b: dims.dim(a - b), lambda a, b: a - b),
    "*": (lambda a, b: dims.dim(a * b), lambda a, b: a * b),
    "//": (dims.floordiv, lambda a, b: a // b),
    "ceil": (dims.ceildiv, lambda a, b: -(-a // b)),
    "%": (dims.mod, lambda a, b: a % b),
    "max": (dims.maximum, max),
    "min": (dims.minimum, min),
    "total": (dims.total, lambda a, b: a + b),
}
tree_leaves = st.sampled_from(ANY) | st.integers(-9, 9)
trees = st.recursive(
    tree_leaves, lambda inner: st.tuples(st.sampled_from(sorted(OPERATIONS)), inner, inner), max_leaves=8
)
any_values = st.fixed_dictionaries({n: st.integers(-9 if n.startswith("signed") else 0, 30) for n in ANY})


def size_of(tree):
    if isinstance(tree, tuple):
        return OPERATIONS[tree[0]][0](size_of(tree[1]), size_of(tree[2]))
    return dims.symbol(tree) if isinstance(tree, str) else tree


def number_of(tree, values):
    if isinstance(tree, tuple):
        return OPERATIONS[tree[0]][1](number_of(tree[1], values), number_of(tree[2], values))
    return values[tree] if isinstance(tree, str) else tree


def size_or_none(tree):
    """The size; None where it divides by a number that is 0."""
    size = size_of(tree)
    return size if isinstance(size, int) or not size.has(sympy.zoo, sympy.nan, sympy.oo) else None


@few
@given(trees, st.lists(any_values, min_size=5, max_size=5))
def test_sizes_divided_by_sizes_have_the_value_that_python_computes(tree, samples):
    size = size_or_none(tree)
    for sample in samples:
        try:
            expected = number_of(tree, sample)
        except ZeroDivisionError:
            continue  # for these values there is no size
        assert size is not None
        assert dims.evaluate(size, sample) == expected, (dims.show(size), sample)


@few
@given(trees)
def test_text_of_sizes_divided_by_sizes_reads_back(tree):
    size = size_or_none(tree)
    if size is not None:
        text = dims.show(size)
        assert dims.parse(text) == size, text
        assert dims.show(dims.parse(text)) == text


@few
@given(trees, trees, st.lists(any_values, min_size=8, max_size=8))
def test_same_and_compare_agree_with_numbers(one, other, samples):
    a, b = size_or_none(one), size_or_none(other)
    if a is None or b is None:
        return
    pairs = [(dims.evaluate(a, s), dims.evaluate(b, s)) for s in samples]
    pairs = [(x, y) for x, y in pairs if x is not None and y is not None]
    agree = {
        "==": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y,
        "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
    }  # fmt: skip
    for sign, holds in agree.items():
        known = dims.compare(a, sign, b)
        assert known is None or all(holds(x, y) is known for x, y in pairs), (
            dims.show(a),
            sign,
            dims.show(b),
        )
    assert dims.same(a, b) == dims.compare(a, "==", b)


@few
@given(trees)
def test_a_size_is_the_same_as_itself_in_another_form(tree):
    size = size_or_none(tree)
    if size is not None and not isinstance(size, int):
        assert dims.same(size, size) is True
        assert dims.same(dims.dim(size + 1), size) is False or dims.same(dims.dim(size + 1), size) is None
        assert dims.same(dims.dim(2 * size - size), size) is True


@pytest.mark.parametrize(
    ("relation", "answer"),
    [
        ("2*(h//2) - 2 < h", True),
        ("h <= h//2", None),
        ("h//2 <= h", True),
        ("h%7 < 7", True),
        ("Max(h, w) >= w", True),
        ("Min(h, 4) > 4", False),
        ("h >= 0", True),
        ("h < 0", False),
        ("signed.u0 >= 0", None),
    ],
)
def test_compare_has_three_answers(relation, answer):
    left, sign, right = re.fullmatch(r"(.*) ([<>]=?) (.*)", relation).groups()
    assert dims.compare(dims.parse(left), sign, dims.parse(right)) is answer


def test_evaluate_is_none_where_there_is_no_whole_number():
    assert dims.evaluate(dims.parse("h/2"), {"h": 3}) is None
    assert dims.evaluate(dims.parse("h//w"), {"h": 3, "w": 0}) is None
    assert dims.evaluate(dims.parse("h%w"), {"h": 3, "w": 0}) is None
    assert dims.evaluate(dims.parse("h + w"), {"h": 3}) is None
    assert dims.evaluate(dims.parse("pow(2, h)"), {"h": 10**9}) is None


# -- text ------------------------------------------------------------------------------------------


@few
@given(sizes)
def test_text_reads_back(written):
    text = dims.show(written.size)
    again = dims.parse(text)
    assert again == written.size, text
    assert dims.show(again) == text


@few
@given(sizes, VALUES)
def test_text_has_pythons_meaning(written, values):
    """What `show` writes, Python itself evaluates to the same number."""
    names = {f"v{i}": values[name] for i, name in enumerate(NAMES)}
    renamed = as_dim(written, {name: dims.symbol(f"v{i}") for i, name in enumerate(NAMES)})
    scope = {"__builtins__": {}, "Max": max, "Min": min, "Mod": operator.mod, **names}
    assert eval(dims.show(renamed), scope) == written.python(values)  # our own text


def as_dim(written: Written, renaming: dict[str, sympy.Symbol]) -> Dim:
    if isinstance(written.size, int):
        return written.size
    return dims.dim(written.size.xreplace({s: renaming[s.name] for s in written.size.free_symbols}))


@pytest.mark.parametrize(
    "name",
    ["N", "S", "Q", "O", "E", "I", "beta", "gamma", "lambda", "pi", "zoo", "oo", "Max", "None", "a.b.0", "_"],
)
def test_names_that_sympy_or_python_reserve_are_plain_names(name):
    size = dims.parse(f"2*{name} + 1")
    assert dims.names(size) == {name}
    assert dims.evaluate(size, {name: 4}) == 9
    assert dims.parse(dims.show(size)) == size


@pytest.mark.parametrize("name", ["past key", "a-b", "0", "x[1]", "größe 2", "n+1"])
def test_odd_names_are_quoted(name):
    size = 3 * dims.symbol(name) - 1
    assert dims.parse(dims.show(size)) == size


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1 + 2*batch", "2*batch + 1"),
        ("(h + 3)//2", "(h + 1)//2 + 1"),
        ("-(n//2)", "-(n//2)"),
        ("-n//2", "-((n + 1)//2)"),
        ("m - n//2", "m - n//2"),
        ("2*(n//2)", "2*(n//2)"),
        ("n*n*m", "m*n*n"),
        ("n%3*2", "2*(n%3)"),
        ("Max(b, a)", "Max(a, b)"),
        ("ceiling(n/2)", "(n + 1)//2"),
        ("-(-n//2)", "(n + 1)//2"),
        ("1 - h", "1 - h"),
        ("(h - 1)//2 + 1", "(h + 1)//2"),
        ("(2*h + 1)//4", "h//2"),
        ("(7 - h)//2", "3 - h//2"),
        ("3*h//2", "3*h//2"),
        ("(2*h)%4", "2*(h%2)"),
        ("(-h)%4", "(3*h)%4"),
        ("((h%8) + 3)%4", "(h + 3)%4"),
        ("(h*w + w)//w", "h + 1"),
        ("h*w//(2*w)", "h//2"),
        ("h/(2*w)", "h/(2*w)"),
        ("-(-h//w)", "ceiling(h/w)"),
        ("Max(h, 0)", "h"),
        ("Max(0, signed.u0)", "Max(0, signed.u0)"),
        ("Max(h, h + 2, w)", "Max(h + 2, w)"),
        ("Min(h, Min(w, 3))", "Min(3, h, w)"),
        ("Max(0, h - Max(0, h - 5))", "h - Max(0, h - 5)"),
        ("ceiling(0.3*float(h + 1))", "ceiling(0.3*float(h + 1))"),
        ("truediv(h, 0.3)", "truediv(h, 0.3)"),
        ("pow(2, h)", "pow(2, h)"),
        ("pow(h, 20)", "pow(h, 20)"),
        ("round(h/3)", "round(h/3)"),
        ("4 - 1", "3"),
        ("--n", "n"),
        ("floor(2.5*n)", "floor(2.5*n)"),
        ("(0.5*n + m)//1", "floor(m + 0.5*n)"),
        ("`a b` + 1", "`a b` + 1"),
    ],
)
def test_shown_form(text, shown):
    assert dims.show(dims.parse(text)) == shown


WRONG = [
    "",
    " ",
    "9**9**9",
    "n**2",
    "__import__('os')",
    "n; m",
    "n m",
    "n +",
    "(n",
    "n)",
    "f(n)",
    "Max()",
    "floor(a, b)",
    "n//0",
    "n%(m - m)",
    "1/0",
    "1.5.2",
    "1e999*n",
    "n[0]",
    "n = 1",
    "lambda: 0",
    "\x00",
    "n\n\n!",
    "1²",
    "`n",
    "(" * 100 + "n" + ")" * 100,
    "9" * 100_000,
    "Max(" + ",".join(f"a{i}" for i in range(500)) + ")",
    "(" * 30 + "n" + "//7*(n + m) + k)" * 30,
    "(w/(1 + " * 17 + "n" + "))" * 17,
    "n/((a + b)*(a - b) - a*a + b*b)",
    "pow(n)",
    "".join(["9" * 32, *["*" + "9" * 32] * 8]),
    "1" + "+1" * 5000,
    "-" * 5000 + "n",
]


@pytest.mark.parametrize("text", WRONG, ids=lambda t: repr(t[:24]))
def test_hostile_text_is_refused_in_bounded_time(text):
    start = time.process_time()
    with pytest.raises(DimSyntaxError) as caught:
        dims.parse(text)
    assert time.process_time() - start < 20
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, Fx2OnnxError)
    assert len(str(caught.value)) < 300


def nested(opening, closing, depth=60):
    return opening * depth + "h" + closing * depth


LARGE = {
    "a product of many sums": "*".join(["(a + b + c + d + e + f)"] * 100),
    "a floor of a product of many sums": "(" + "*".join(["(a + b + c + d + e + f)"] * 100) + ")//7",
    "a remainder of products": "(" + "*".join(["(a + b)"] * 50) + ")%(" + "*".join(["(a + c)"] * 50) + ")",
    "a large power": "*".join(["h"] * 1500) + "//3",
    "a product of two sums over another": "((a+b+c)*(a+b+d)*(a+c+d)*(b+c+d))%((a+b)*(b+c)*(c+d))",
    "floors of sums": "(" * 30 + "n" + "//2 + m)" * 30,
    "a long name": "n" * 4000,
    "many signs": "-" * 4000 + "n",
    "many parts of Max": "Max(" + ", ".join(f"a{i}" for i in range(60)) + ")",
    "nested Max": nested("Max(1 + Min(w, ", "), 3)", 30),
    "nested floors": nested("(3 + 2*", ")//7"),
    "nested remainders": nested("(3 + 2*", ")%7"),
    "nested quotients": nested("(w/(1 + ", "))", 16),
    "nested quotients of whole numbers": nested("(w//(1 + ", "))", 16),
    "nested remainders by sizes": nested("(w%(1 + ", "))", 16),
    "nested quotients of products": nested("(w*v/(u*v + w*", "))", 16),
    "a power": "pow(9, pow(9, 9))",
    "long sums": " + ".join(f"a{i}*b{i}//3" for i in range(250)),
    "Max of floors": "Max(" + ", ".join(f"(a{i} + Max(b{i}, c))//{i + 2}" for i in range(60)) + ")",
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_large_text_takes_bounded_time(text):
    start = time.process_time()
    size = dims.parse(text)
    with contextlib.suppress(DimSyntaxError):  # written out it may be too large
        assert dims.parse(dims.show(size)) == size
    dims.same(size, dims.dim(size + dims.symbol("h")))
    dims.evaluate(size, dict.fromkeys(dims.names(size), 3))
    assert time.process_time() - start < 20


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.text(alphabet="nm19+-*/%(), MaxMinfloor.`²_!", max_size=24))
def test_any_text_is_a_size_or_an_error(text):
    try:
        size = dims.parse(text)
    except DimSyntaxError:
        return
    assert dims.same(dims.parse(dims.show(size)), size) is not False
