"""What operators mean: `RULES` holds every lowering rule; `opset/aten/` has one file per family."""

from __future__ import annotations

from fx2onnx.opset import prims
from fx2onnx.opset.aten import (
    activations,
    arranging,
    bitwise,
    casts,
    compare,
    conv,
    creation,
    diagonals,
    elementwise,
    joining,
    linalg,
    movement,
    padding,
    pool,
    random,
    reduce,
    scans,
    sizes,
    slicing,
    unary,
    windows,
)
from fx2onnx.rules import RuleBook, collect

# The only list. A new file of rules is added here.
RULES = collect(
    elementwise,
    unary,
    bitwise,
    casts,
    activations,
    compare,
    reduce,
    scans,
    creation,
    random,
    linalg,
    sizes,
    movement,
    slicing,
    joining,
    arranging,
    diagonals,
    padding,
    windows,
    conv,
    pool,
    prims,
)


def book() -> RuleBook:
    """The rules that ship with fx2onnx."""
    return RULES
