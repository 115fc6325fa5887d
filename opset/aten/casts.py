"""Changes of dtype, and operators that change nothing: copies, views of the whole, moves between devices."""

from __future__ import annotations

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, shape_of
from fx2onnx.rules import Gap, lowers

aten = torch.ops.aten
prims = torch.ops.prims

GAPS = (
    Gap(
        (
            aten.complex.default,
            aten.polar.default,
            aten.view_as_real.default,
            aten.view_as_complex.default,
            aten._conj.default,
        ),
        "never",
        "ONNX Runtime has no complex tensors",
    ),
)


@lowers(
    aten._to_copy.default,
    aten.to.dtype,
    aten.to.dtype_layout,
    aten.to.device,
    prims.convert_element_type.default,
)
def to(op: OpBuilder, self: Value, dtype: torch.dtype | None = None) -> ir.Value:
    """(*) -> (*) in another dtype: fractions are cut off, bools are `!= 0`, integers wrap around."""
    return self if dtype is None else op.cast(self, dtype)


@lowers(
    aten.to.other,
    aten.type_as.default,
    *(
        getattr(aten, name).default
        for name in (
            "_cast_Byte",
            "_cast_Char",
            "_cast_Double",
            "_cast_Float",
            "_cast_Half",
            "_cast_Int",
            "_cast_Long",
            "_cast_Short",
        )
    ),
)
def to_result(op: OpBuilder, self: Value, other: Value | None = None) -> ir.Value:
    """(*) -> (*) in the dtype that the typed graph says."""
    return op.cast(self, op.result.dtype)


@lowers(
    aten.alias.default,
    aten.clone.default,
    aten.conj.default,
    aten.conj_physical.default,
    aten.contiguous.default,
    aten.detach.default,
    aten.lift.default,
    aten.lift_fresh.default,
    aten.lift_fresh_copy.default,
    aten.positive.default,
    aten.real.default,
    aten.resolve_conj.default,
    aten.resolve_neg.default,
)
def same(op: OpBuilder, self: Value) -> ir.Value:
    """(*) -> (*), the argument itself."""
    return self


@lowers(aten.copy.default)
def copy(op: OpBuilder, self: Value, src: Value) -> ir.Value:
    """(*), (*src) -> (*): the elements of src in the shape and dtype of self."""
    made = op.cast(src, op.result.dtype)
    if shape_of(src) == shape_of(self):
        return made
    static = [s for s in shape_of(self) if isinstance(s, int)]
    return op.Expand(made, op.ints(static) if len(static) == len(shape_of(self)) else op.Shape(self))


@lowers(aten.view.dtype)
def view_dtype(op: OpBuilder, self: Value, dtype: torch.dtype) -> ir.Value:
    """(*) -> (*), the same bits read as another dtype; ONNX has BitCast from opset 26 on.

    Raises:
        ValueError: the dtypes differ in width, or the opset is older.
    """
    if dtype == dtype_of(self):
        return self
    raise ValueError(f"the bits of {dtype_of(self)} cannot be read as {dtype} in opset {op.opset}")
