"""torch's size expressions (`SymInt.node.expr`) as sizes of `fx2onnx.dims`, in the user's names.

Torch keeps two kinds of arithmetic apart: whole numbers (`FloorDiv`, `Mod`, …), which become those of `dims`, and
Python floats (`ToFloat`, `IntTrueDiv`, …), which round. Floats are taken for exact fractions where the whole number
that is made of them is the same for all sizes below 2**50 (`int(h / 2)`, `int(1.5 * h)`); else the calls are kept as
they are (`floor(0.7*h)`).
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from fractions import Fraction

import sympy
from torch.fx.experimental import _config as size_config
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from fx2onnx import dims
from fx2onnx.dims import Dim

_WHOLE: dict[str, Callable[..., Dim]] = {
    "FloorDiv": dims.floordiv,
    "CleanDiv": dims.floordiv,
    "CeilDiv": dims.ceildiv,
    "Mod": dims.mod,
    "PythonMod": dims.mod,
    "ModularIndexing": lambda a, b, c: dims.mod(dims.floordiv(a, b), c),
    "Max": dims.maximum,
    "Min": dims.minimum,
    "Add": dims.total,
    "Mul": lambda *a: dims.dim(sympy.Mul(*a)),
    "Pow": lambda a, b: dims.dim(sympy.Pow(a, b)),
    "Abs": lambda a: dims.dim(sympy.Abs(a)),
    "Identity": lambda a: a,
    "PowByNatural": dims.power,
    "BitwiseFn_bitwise_and": lambda a, b: dims.call("bitand", a, b),
    "BitwiseFn_bitwise_or": lambda a, b: dims.call("bitor", a, b),
    "BitwiseFn_bitwise_xor": lambda a, b: dims.call("bitxor", a, b),
}
_ROUNDINGS: dict[str, Callable[[Dim], Dim]] = {
    "FloorToInt": dims.floor,
    "CeilToInt": dims.ceiling,
    "TruncToInt": lambda a: dims.floor(a) if dims.at_least(a, 0) else dims.call("trunc", a),
    "IntTrunc": lambda a: dims.floor(a) if dims.at_least(a, 0) else dims.call("trunc", a),
    "RoundToInt": lambda a: a if dims.is_whole(a) else dims.call("round", a),
}
_REAL = {
    "IntTrueDiv": "truediv",
    "FloatTrueDiv": "truediv",
    "FloatPow": "float_pow",
    "RoundDecimal": "round_to",
    "TruncToFloat": "trunc",
}


class SymbolNames(dict[sympy.Symbol, Dim]):
    """What stands for each symbol of one trace: the user's name, or an expression over such names.

    Args:
        shape_env: knows which symbols of the trace can be negative; without it none can.
    """

    def __init__(self, shape_env: ShapeEnv | None = None) -> None:
        super().__init__()
        self._shape_env = None if shape_env is None else weakref.ref(shape_env)
        self._converted: dict[sympy.Expr, Dim] = {}
        self._unknown: dict[sympy.Expr, Dim] = {}

    def rename(self, symbol: sympy.Symbol, size: Dim) -> None:
        """Let `size` stand for `symbol` from now on."""
        self[symbol] = size
        self._converted.clear()

    def from_torch(self, expr: sympy.Expr) -> Dim:
        """`expr` over the user's names; torch's own functions become those of `fx2onnx.dims`.

        Symbols without a name keep torch's (`s17`, `u0` for a size that depends on data, `signed.u0` for a number
        from data that may be negative). What sizes have no words for gets a name of its own.
        """
        if (found := self._converted.get(expr)) is None:
            found = self._converted[expr] = self._convert(expr)
        return found

    def _convert(self, expr: sympy.Expr) -> Dim:
        if expr.is_Symbol:
            return self._named(expr)
        if not expr.args:
            return dims.dim(expr)
        kind = expr.func.__name__
        if (rounding := _ROUNDINGS.get(kind)) is not None:
            exact = self._exact(expr.args[0])
            return rounding(self._float(expr.args[0]) if exact is None else exact[0])
        if (function := _WHOLE.get(kind)) is not None:
            return function(*map(self.from_torch, expr.args))
        return self._float(expr)

    def _exact(self, expr: sympy.Expr) -> tuple[Dim, bool] | None:
        """A float as the fraction that it stands for, and whether it was rounded on the way.

        None where the whole number next to it may differ: after a second rounding, or with a constant such as 0.7.
        """
        if expr.is_Number:
            value = Fraction(float(expr))
            short = value.denominator <= 2**20 and abs(value) < 2**30
            return (dims.dim(sympy.Rational(value.numerator, value.denominator)), False) if short else None
        kind = expr.func.__name__
        if kind == "ToFloat":
            return self.from_torch(expr.args[0]), False
        if kind == "IntTrueDiv":
            return _quotient(*map(self.from_torch, expr.args)), True
        if kind not in ("Add", "Mul", "FloatTrueDiv"):
            return None
        parts = [p for p in map(self._exact, expr.args) if p is not None]
        sizes, roundings = [size for size, _ in parts], sum(rounded for _, rounded in parts)
        if len(parts) != len(expr.args) or roundings > (kind != "FloatTrueDiv"):
            return None
        if kind == "Add":
            return dims.total(*sizes), bool(roundings)
        if kind == "FloatTrueDiv":
            return _quotient(*sizes), True
        if roundings and not all(rounded or _is_power_of_two(size) for size, rounded in parts):
            return None
        return dims.dim(sympy.Mul(*sizes)), bool(roundings)

    def _float(self, expr: sympy.Expr) -> Dim:
        """An expression of floats with its operations as they are."""
        if not expr.args:
            return self.from_torch(expr)
        kind = expr.func.__name__
        if kind == "ToFloat":
            size = self.from_torch(expr.args[0])
            return dims.call("float", size) if isinstance(size, int) or size.is_Add or size.is_Mul else size
        if kind in _REAL:
            return dims.call(_REAL[kind], *map(self.from_torch, expr.args))
        if (name := kind.removeprefix("OpaqueUnaryFn_")) != kind and name in dims.CALLS:
            return dims.call(name, self.from_torch(expr.args[0]))
        if kind in _WHOLE or kind in _ROUNDINGS:
            return self.from_torch(expr)
        return self._opaque(expr)

    def _named(self, symbol: sympy.Symbol) -> Dim:
        if symbol in self:
            return self[symbol]
        return dims.symbol(f"{dims.SIGNED if self.can_be_negative(symbol) else ''}{symbol.name}")

    def can_be_negative(self, symbol: sympy.Symbol) -> bool:
        """Is a symbol of the trace a number that may be less than 0?"""
        shape_env = None if self._shape_env is None else self._shape_env()
        if shape_env is None or symbol.is_nonnegative or symbol not in shape_env.var_to_range:
            return False
        return bool(shape_env.var_to_range[symbol].lower < 0)

    def _opaque(self, expr: sympy.Expr) -> Dim:
        """A name for a size without words."""
        if expr not in self._unknown:
            prefix = "" if expr.is_nonnegative else dims.SIGNED
            self._unknown[expr] = dims.symbol(f"{prefix}size_{len(self._unknown)}")
        return self._unknown[expr]


def _quotient(a: Dim, b: Dim) -> Dim:
    return dims.dim(sympy.Mul(a, sympy.Pow(b, -1)))


def _is_power_of_two(size: Dim) -> bool:
    number = abs(size) if isinstance(size, int) or size.is_Rational else 0
    return number != 0 and bool(sympy.log(number, 2).is_integer)


def sizes_without_special_cases() -> contextlib.AbstractContextManager[None]:
    """A context in which torch treats free sizes as if they were neither 0 nor 1."""
    patched: contextlib.AbstractContextManager[None] = size_config.patch(backed_size_oblivious=True)  # type: ignore[attr-defined]
    return patched
