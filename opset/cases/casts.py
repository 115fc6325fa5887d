"""Changes of dtype, and operators that change nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, values

aten = torch.ops.aten
prims = torch.ops.prims

DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
)
FRACTIONS = values(0.0, -0.0, 0.3, -0.3, 1.5, 2.5, 100.7, 3.0)
OUT_OF_RANGE = values(-1.5, 256.0, 300.5, -200.0, 70000.0, -129.0)


def _casts() -> Iterator[Case]:
    for dtype in DTYPES:
        name = str(dtype).removeprefix("torch.")
        kwargs = {"dtype": dtype}
        yield Case(aten._to_copy.default, (FRACTIONS,), kwargs, why=f"fractions to {name}")
        yield Case(aten._to_copy.default, (ints(9, low=0, high=99),), kwargs, why=f"integers to {name}")
        yield Case(aten._to_copy.default, (bools(9),), kwargs, why=f"bools to {name}")
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int64):
        name = str(dtype).removeprefix("torch.")
        kwargs = {"dtype": dtype}
        yield Case(aten._to_copy.default, (OUT_OF_RANGE,), kwargs, why=f"out of range to {name}")
        yield Case(
            aten._to_copy.default, (ints(9, low=-999, high=999),), kwargs, why=f"integers wrap to {name}"
        )
    for source in DTYPES:
        name = str(source).removeprefix("torch.")
        yield Case(
            aten._to_copy.default,
            (ints(9, low=0, high=9).to(source),),
            {"dtype": torch.float32},
            why=f"from {name}",
        )


OTHERS = (
    Case(aten._to_copy.default, (values(math.nan, 0.0),), {"dtype": torch.bool}, why="NaN is true"),
    Case(
        aten._to_copy.default,
        (values(1e6, -1e6, 1e-9),),
        {"dtype": torch.float16},
        why="overflow is infinite",
    ),
    Case(aten._to_copy.default, (normal(2, 3),), why="no dtype"),
    Case(aten.to.dtype, (normal(2, 3), torch.float16), why="the method"),
    Case(aten.to.dtype, (normal(2, 3), torch.float32), why="the method, its own dtype"),
    Case(aten.to.dtype_layout, (normal(2, 3),), {"dtype": torch.int32}, why="the method with layout"),
    Case(aten.to.device, (normal(2, 3), torch.device("cpu"), torch.int64), why="the method with device"),
    Case(aten.to.other, (normal(2, 3), ints(2)), why="another tensor's dtype"),
    Case(aten.type_as.default, (normal(2, 3), ints(2)), why="another tensor's dtype"),
    Case(aten._cast_Float.default, (ints(2, 3),), why="an old name"),
    Case(prims.convert_element_type.default, (normal(2, 3), torch.int32), why="as decompositions write it"),
    Case(aten.clone.default, (normal(2, 3),), {"memory_format": torch.contiguous_format}, why="a copy"),
    Case(aten.contiguous.default, (normal(2, 3),), why="a copy in order"),
    Case(aten.detach.default, (normal(2, 3),), why="nothing"),
    Case(aten.alias.default, (normal(2, 3),), why="nothing"),
    Case(aten.lift_fresh_copy.default, (normal(2, 3),), why="a constant's copy"),
    Case(aten.positive.default, (normal(2, 3),), why="plus"),
    Case(aten.real.default, (normal(2, 3),), why="of real numbers"),
    Case(aten.copy.default, (normal(2, 3), normal(2, 3)), why="of the same shape"),
    Case(aten.copy.default, (ints(2, 3), normal(3)), why="broadcast, of another dtype"),
    Case(aten.view.dtype, (normal(2, 3), torch.float32), why="its own dtype"),
    Case(aten.view.dtype, (normal(2, 3), torch.int32), why="the bits", gap="ours"),
)

CASES = (*_casts(), *OTHERS)
