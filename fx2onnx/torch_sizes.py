"""torch's size expressions (`SymInt.node.expr`) as sizes of `fx2onnx.dims`, in the user's names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

import sympy
from torch.fx.experimental import _config as size_config

from fx2onnx import dims
from fx2onnx.dims import Dim


def _ceiling(a: Dim) -> Dim:
    return dims.dim(-dims.floordiv(-a, 1))


def _truncated(a: Dim) -> Dim:
    """`a` rounded towards zero."""
    if isinstance(a, int) or a.is_nonnegative:
        return dims.floordiv(a, 1)
    return dims.dim(sympy.Add(dims.maximum(dims.floordiv(a, 1), 0), dims.minimum(_ceiling(a), 0)))


_CALLS: dict[str, Callable[..., Dim]] = {
    "FloorDiv": dims.floordiv,
    "CleanDiv": dims.floordiv,
    "CeilDiv": dims.ceildiv,
    "Mod": dims.mod,
    "PythonMod": dims.mod,
    "ModularIndexing": lambda a, b, c: dims.mod(dims.floordiv(a, b), c),
    "Max": lambda *a: dims.dim(sympy.Max(*a)),
    "Min": lambda *a: dims.dim(sympy.Min(*a)),
    "Identity": lambda a: a,
    "ToFloat": lambda a: a,
    "IntTrueDiv": lambda a, b: dims.dim(sympy.Mul(a, sympy.Pow(b, -1))),
    "FloatTrueDiv": lambda a, b: dims.dim(sympy.Mul(a, sympy.Pow(b, -1))),
    "CeilToInt": _ceiling,
    "FloorToInt": lambda a: dims.floordiv(a, 1),
    "IntTrunc": _truncated,
    "TruncToInt": _truncated,
}


class SymbolNames(dict[sympy.Symbol, Dim]):
    """What stands for each symbol of one trace: the user's name, or an expression over such names."""

    def __init__(self) -> None:
        super().__init__()
        self._converted: dict[sympy.Expr, Dim] = {}

    def rename(self, symbol: sympy.Symbol, size: Dim) -> None:
        """Let `size` stand for `symbol` from now on."""
        self[symbol] = size
        self._converted.clear()

    def from_torch(self, expr: sympy.Expr) -> Dim:
        """`expr` over the user's names; torch's own functions become those of `fx2onnx.dims`.

        Symbols without a name keep torch's (`s17`, and `u0` for a size that depends on data).
        """
        if (found := self._converted.get(expr)) is None:
            found = self._converted[expr] = _convert(expr, self)
        return found


def _convert(expr: sympy.Expr, names: Mapping[sympy.Symbol, Dim]) -> Dim:
    if expr.is_Symbol:
        return names[expr] if expr in names else dims.symbol(expr.name)
    if not expr.args:
        return dims.dim(expr)
    arguments = [_convert(a, names) for a in expr.args]
    if call := _CALLS.get(expr.func.__name__):
        return call(*arguments)
    return dims.dim(expr.func(*arguments))


def sizes_without_special_cases() -> contextlib.AbstractContextManager[None]:
    """A context in which torch treats free sizes as if they were neither 0 nor 1."""
    patched: contextlib.AbstractContextManager[None] = size_config.patch(backed_size_oblivious=True)  # type: ignore[attr-defined]
    return patched
