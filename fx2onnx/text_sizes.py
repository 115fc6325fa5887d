"""Sizes of a graph that was read from text: torch symbols that carry the text's names.

Each name gets a symbol of a fresh ShapeEnv with an example size of its own, chosen so that all sizes of inputs are
whole and positive and all relations hold; types of the text become fake tensors over these symbols.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sympy
import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from fx2onnx import dims
from fx2onnx.dims import Dim
from fx2onnx.types import SizeType, TensorType, Type, names_of, size_of

_PREFERRED = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 5)
_ATTEMPTS = 5_000

Comparison = tuple[Dim, str, Dim]


# -- example sizes ---------------------------------------------------------------------------------


def example_sizes(sizes: Sequence[Dim], relations: Sequence[Comparison]) -> dict[str, int] | None:
    """A number for each name so that all sizes are whole and at least 2, and all relations hold.

    Numbers are distinct and at least 5 where that is possible. None when no such numbers were found.

    Args:
        sizes: the sizes of inputs.
        relations: comparisons, e.g. `(seq, "<=", 512)`.
    """
    free = sorted(set().union(*map(dims.names, sizes), *(_names(r) for r in relations)))
    for least, distinct in ((2, True), (2, False), (1, False), (0, False)):
        bounds = [(size, ">=", least) for size in sizes if not isinstance(size, int)]
        search = _Search([*relations, *bounds], [s for s in sizes if not isinstance(s, int)], distinct)
        if (found := search.run(free)) is not None:
            return found
    return None


def _names(relation: Comparison) -> set[str]:
    return dims.names(relation[0]) | dims.names(relation[2])


class _Search:
    """Backtracking over names; a condition is looked at as soon as all of its names have numbers."""

    def __init__(self, relations: Sequence[Comparison], whole: Sequence[Dim], distinct: bool) -> None:
        self.relations, self.whole, self.distinct = relations, whole, distinct
        self.attempts = 0
        constants = {abs(int(c)) for r in relations for side in (r[0], r[2]) for c in _constants(side)}
        common = math.lcm(*(c for c in constants if 0 < c <= 4096)) if constants else 1
        near = {c + d for c in constants for d in (-1, 0, 1)} | {2 * c for c in constants}
        multiples = {k * common for k in (1, 2, 3, 5, 7)} if common <= 10**6 else set()
        rest = sorted(n for n in near | multiples | {3, 2, 1, 0} if n not in _PREFERRED and n >= 0)
        self.candidates = (*_PREFERRED, *rest)

    def run(self, names: Sequence[str]) -> dict[str, int] | None:
        return self._extend(list(names), {})

    def _extend(self, rest: list[str], values: dict[str, int]) -> dict[str, int] | None:
        if not rest:
            return values
        name, *others = rest
        for number in self._options(name, values):
            self.attempts += 1
            if self.attempts > _ATTEMPTS:
                return None
            extended = {**values, name: number}
            if self._fits(name, extended) and (found := self._extend(others, extended)) is not None:
                return found
        return None

    def _options(self, name: str, values: dict[str, int]) -> Iterator[int]:
        for left, sign, right in self.relations:
            if sign == "==" and name in _names((left, sign, right)):
                solved = dims.solve(dims.dim(sympy.Add(left, -right)), 0, values).get(name)
                if solved is not None and solved >= 0:
                    yield solved
                    return
        used = set(values.values()) if self.distinct else set()
        yield from (n for n in self.candidates if n not in used)

    def _fits(self, name: str, values: dict[str, int]) -> bool:
        for left, sign, right in self.relations:
            if name in _names((left, sign, right)) and dims.holds(left, sign, right, values) is False:
                return False
        return all(
            dims.evaluate(size, values) is not None
            for size in self.whole
            if name in dims.names(size) <= set(values)
        )


def _constants(size: Dim) -> Iterable[Any]:
    return [size] if isinstance(size, int) else size.atoms(sympy.Integer)


# -- symbols ---------------------------------------------------------------------------------------


class Sizes:
    """The names of one text as symbols of one ShapeEnv, and the fake mode over it.

    Args:
        examples: the example size of each name that inputs carry; other names are sizes that depend on data.
        reserved: all names of the text, which torch's own symbols must not seem to be.
    """

    def __init__(self, examples: dict[str, int], reserved: Iterable[str]) -> None:
        self.shape_env = ShapeEnv()
        self.mode = FakeTensorMode(shape_env=self.shape_env, static_shapes=False)
        self.names = names_of(self.shape_env)
        self.reserved = set(reserved)
        self.known: dict[str, Any] = {}
        self._replaced = 0
        for name, number in examples.items():
            source = ConstantSource(f"size_{name}")
            symbol = self.shape_env.create_symbol(number, source=source, dynamic_dim=DimDynamic.DYNAMIC)
            self.known[name] = self.shape_env.create_symintnode(symbol, hint=number, source=source)
            self.names.rename(symbol, dims.symbol(name))

    def symint(self, size: Dim) -> Any:
        """A size as an int or SymInt.

        Raises:
            ValueError: the size holds something other than whole-number arithmetic.
        """
        if isinstance(size, int):
            return size
        if size.is_Symbol:
            return self._named(size.name)
        if isinstance(size, dims.PythonCall):
            return self._called(size)
        if size.func is sympy.floor and size.has(sympy.Float, dims.PythonCall):
            return math.floor(self._symfloat(size.args[0]))
        if size.func is sympy.floor:
            top, bottom = sympy.fraction(sympy.together(size.args[0]))
            return self.symint(dims.dim(sympy.expand(top))) // self.symint(dims.dim(sympy.expand(bottom)))
        top, bottom = sympy.fraction(sympy.together(size))
        if bottom != 1 and not size.is_Rational:
            return self.symint(dims.dim(sympy.expand(top))) // self.symint(dims.dim(bottom))
        return self._combined(size)

    def _combined(self, size: sympy.Expr) -> Any:
        parts = [self.symint(dims.dim(a)) for a in size.args]
        if size.is_Pow and isinstance(parts[1], int) and parts[1] > 0:
            return math.prod([parts[0]] * parts[1])
        for kind, combine in _COMBINE:
            if isinstance(size, kind):
                return combine(parts)
        raise ValueError(f"{dims.show(size)} is no size of a tensor")

    def _called(self, size: sympy.Expr) -> Any:
        """A Python function of sizes, called on them."""
        name = size.func.__name__
        function = _FUNCTIONS.get(name) or getattr(torch, f"_sym_{name}", None)
        if function is None:
            raise ValueError(f"{dims.show(size)} is no size of a tensor")
        return function(
            *(self._symfloat(a) if size.has(sympy.Float) else self.symint(dims.dim(a)) for a in size.args)
        )

    def _symfloat(self, size: sympy.Expr) -> Any:
        """A product or sum with floats in it, computed in floats as the model does."""
        if size.is_Float:
            return float(size)
        if isinstance(size, dims.PythonCall):
            return self._called(size)
        if not size.has(sympy.Float):
            return torch.sym_float(self.symint(dims.dim(size)))
        if size.is_Add or size.is_Mul:
            parts = [self._symfloat(a) for a in size.args]
            return sum(parts) if size.is_Add else math.prod(parts)
        raise ValueError(f"{dims.show(size)} is no size of a tensor")

    def _named(self, name: str) -> Any:
        if name not in self.known:
            self.known[name] = made = self.shape_env.create_unbacked_symint()
            self.names.rename(made.node.expr, dims.symbol(name))
            if dims.symbol(name).is_nonnegative:
                torch.fx.experimental.symbolic_shapes._constrain_range_for_size(made)  # noqa: SLF001
        return self.known[name]

    def value(self, type_: Type | None) -> Any:
        """A fake value of a type.

        Raises:
            ValueError: a size that no tensor can have.
        """
        if isinstance(type_, TensorType):
            shape = [self.symint(size) for size in type_.shape]
            with self.mode:
                return torch.empty(shape, dtype=type_.dtype)
        if isinstance(type_, SizeType):
            return self._number(type_)
        return None if type_ is None else tuple(self.value(part) for part in type_)

    def _number(self, type_: SizeType) -> Any:
        if type_.kind is float:
            return self.shape_env.create_unbacked_symfloat()
        if type_.kind is bool:
            return self.shape_env.create_unbacked_symbool()
        return self.symint(type_.expr if type_.expr is not None else 0)

    def plain(self, size: Dim) -> Dim:
        """`size` with what the ShapeEnv has found out since, e.g. that two names are equal."""
        return size_of(self.symint(size))

    def fixed(self) -> dict[str, int]:
        """The names that can have one number only, for all that the ShapeEnv has been told since the last call."""
        if len(self.shape_env.replacements) == self._replaced:
            return {}
        self._replaced = len(self.shape_env.replacements)
        numbers = {n: s.node.maybe_as_int() for n, s in self.known.items() if isinstance(s, torch.SymInt)}
        return {name: number for name, number in numbers.items() if number is not None}

    # -- sizes that depend on data -----------------------------------------------------------------

    def bind(self, value: Any, type_: Type | None) -> None:
        """Let new sizes of a value, which depend on data, have the names that a written type gives them."""
        if isinstance(type_, tuple) and isinstance(value, tuple | list):
            for part, part_type in zip(value, type_, strict=False):
                self.bind(part, part_type)
        elif isinstance(type_, TensorType) and isinstance(value, torch.Tensor):
            for size, written in zip(value.shape, type_.shape, strict=False):
                self._bind(size, written)
        elif isinstance(type_, SizeType) and type_.kind is int and type_.expr is not None:
            self._bind(value, type_.expr)

    def _bind(self, size: Any, written: Dim) -> None:
        if (symbol := self._unnamed(size)) is None:
            return
        if not isinstance(written, int) and written.is_Symbol and written.name not in self.known:
            self.known[written.name] = size
            if written.is_nonnegative and self.names.can_be_negative(symbol):
                torch._check(size >= 0)  # noqa: SLF001  the name says so
        else:
            torch._check(size == self.symint(written))  # noqa: SLF001  what the text says of the data
        self.names.rename(symbol, written)

    def _unnamed(self, size: Any) -> sympy.Symbol | None:
        """The symbol of a size that depends on data and has no name yet."""
        if not isinstance(size, torch.SymInt) or size.node.maybe_as_int() is not None:
            return None
        symbol = size.node.expr
        unbacked = symbol.is_Symbol and self.shape_env.is_unbacked_symint(symbol)
        return symbol if unbacked and symbol not in self.names else None

    def name_rest(self, value: Any) -> None:
        """Give new sizes that no type names a name that the text does not use."""
        for leaf in torch.utils._pytree.tree_leaves(value):  # noqa: SLF001
            for size in leaf.shape if isinstance(leaf, torch.Tensor) else (leaf,):
                if (symbol := self._unnamed(size)) is not None:
                    sign = dims.SIGNED if self.names.can_be_negative(symbol) else ""
                    name = next(n for i in itertools.count() if (n := f"{sign}u{i}") not in self.reserved)
                    self.reserved.add(name)
                    self.known[name] = size
                    self.names.rename(symbol, dims.symbol(name))


_FUNCTIONS: dict[str, Any] = {
    "float": torch.sym_float,
    "trunc": math.trunc,
    "round": round,
    "pow": operator.pow,
    "float_pow": operator.pow,
    "truediv": operator.truediv,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
}
_COMBINE: tuple[tuple[type, Any], ...] = (
    (sympy.Add, sum),
    (sympy.Mul, math.prod),
    (sympy.Mod, lambda parts: parts[0] % parts[1]),
    (sympy.Max, lambda parts: _chained(torch.sym_max, parts)),
    (sympy.Min, lambda parts: _chained(torch.sym_min, parts)),
)


def _chained(function: Any, parts: Sequence[Any]) -> Any:
    result = parts[0]
    for part in parts[1:]:
        result = function(result, part)
    return result
