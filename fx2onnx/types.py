"""TensorType and SizeType, and the one table torch dtype ↔ ONNX dtype.

`type_of(node)` reads the type of a typed graph's node from `node.meta["val"]` (a FakeTensor, a SymInt, a
number, or a tuple of them), with every size in the user's names.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from fx2onnx import dims
from fx2onnx.dims import Dim
from fx2onnx.torch_sizes import SymbolNames

DTYPES: dict[torch.dtype, ir.DataType] = {
    torch.float32: ir.DataType.FLOAT,
    torch.float64: ir.DataType.DOUBLE,
    torch.float16: ir.DataType.FLOAT16,
    torch.bfloat16: ir.DataType.BFLOAT16,
    torch.float8_e4m3fn: ir.DataType.FLOAT8E4M3FN,
    torch.float8_e4m3fnuz: ir.DataType.FLOAT8E4M3FNUZ,
    torch.float8_e5m2: ir.DataType.FLOAT8E5M2,
    torch.float8_e5m2fnuz: ir.DataType.FLOAT8E5M2FNUZ,
    torch.int8: ir.DataType.INT8,
    torch.int16: ir.DataType.INT16,
    torch.int32: ir.DataType.INT32,
    torch.int64: ir.DataType.INT64,
    torch.uint8: ir.DataType.UINT8,
    torch.uint16: ir.DataType.UINT16,
    torch.uint32: ir.DataType.UINT32,
    torch.uint64: ir.DataType.UINT64,
    torch.bool: ir.DataType.BOOL,
}
TORCH_DTYPES: dict[ir.DataType, torch.dtype] = {onnx: torch_ for torch_, onnx in DTYPES.items()}

# How a dtype is written in graph text and on the command line: f32, i64, bool …
SHORT: dict[torch.dtype, str] = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3fn",
    torch.float8_e4m3fnuz: "f8e4m3fnuz",
    torch.float8_e5m2: "f8e5m2",
    torch.float8_e5m2fnuz: "f8e5m2fnuz",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.bool: "bool",
    torch.complex64: "c64",
    torch.complex128: "c128",
}
FROM_SHORT: dict[str, torch.dtype] = {text: dtype for dtype, text in SHORT.items()}


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor's dtype and shape; the shape is a tuple of ints and sympy expressions."""

    dtype: torch.dtype
    shape: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"{SHORT[self.dtype]}[{', '.join(map(dims.show, self.shape))}]"


@dataclass(frozen=True, slots=True)
class SizeType:
    """A Python number that is computed from sizes: its kind (int, float or bool) and its expression.

    The expression of a float or a bool is None where it is not arithmetic over sizes.
    """

    kind: type
    expr: Dim | None

    def __str__(self) -> str:
        text = "?" if self.expr is None else dims.show(self.expr)
        return text if self.kind is int else f"{self.kind.__name__}({text})"


Type = TensorType | SizeType | tuple["Type | None", ...]

# The user's names for the symbols of a trace: filled by capture, kept as long as the trace's ShapeEnv.
_NAMES: weakref.WeakKeyDictionary[ShapeEnv, SymbolNames] = weakref.WeakKeyDictionary()


def names_of(shape_env: ShapeEnv) -> SymbolNames:
    """The sizes (the user's names, or expressions over them) that stand for a trace's own symbols."""
    if (names := _NAMES.get(shape_env)) is None:
        names = _NAMES[shape_env] = SymbolNames(shape_env)
    return names


def size_of(value: int | torch.SymInt) -> Dim:
    """A Python int or SymInt as a size in the user's names."""
    if not isinstance(value, torch.SymInt):
        return int(value)
    if (number := value.node.maybe_as_int()) is not None:
        return number
    shape_env: ShapeEnv = value.node.shape_env  # type: ignore[assignment]  # a symbolic node has one
    return names_of(shape_env).from_torch(value.node.expr)


def type_of_value(value: Any) -> Type | None:
    """The type of what `node.meta["val"]` holds; None for None and for values that have no type."""
    if isinstance(value, torch.Tensor):
        return TensorType(value.dtype, tuple(size_of(s) for s in value.shape))
    if isinstance(value, torch.SymInt | int) and not isinstance(value, bool):
        return SizeType(int, size_of(value))
    if isinstance(value, torch.SymFloat | float):
        return SizeType(float, None)
    if isinstance(value, torch.SymBool | bool):
        return SizeType(bool, None)
    if isinstance(value, tuple | list):
        return tuple(type_of_value(v) for v in value)
    return None


def type_of(node: fx.Node) -> Type | None:
    """The type of a node in a typed graph: `TensorType(dtype, shape)`, `SizeType`, or a tuple of them."""
    return type_of_value(node.meta.get("val"))


def tensor_type_of(node: fx.Node) -> TensorType:
    """The type of a node that makes one tensor.

    Raises:
        TypeError: the node makes something else.
    """
    found = type_of(node)
    if not isinstance(found, TensorType):
        raise TypeError(f"{node.name} is no tensor but {found}")
    return found
