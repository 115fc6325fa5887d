"""What operators mean: `RULES` holds every lowering rule; `opset/aten/` has one file per family."""

from __future__ import annotations

from fx2onnx.opset import prims
from fx2onnx.opset.aten import (
    activations,
    adaptive_pool,
    arranging,
    attention,
    bitwise,
    casts,
    compare,
    conv,
    creation,
    diagonals,
    dropout,
    elementwise,
    extremes,
    index_put,
    indexing,
    joining,
    linalg,
    moments,
    movement,
    norm,
    padding,
    pool,
    random,
    recurrent,
    reduce,
    scans,
    scatter,
    searching,
    sizes,
    slicing,
    sorting,
    transformer,
    unary,
    vector_norms,
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
    extremes,
    moments,
    vector_norms,
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
    adaptive_pool,
    attention,
    dropout,
    index_put,
    indexing,
    norm,
    recurrent,
    scatter,
    searching,
    sorting,
    transformer,
    prims,
)


def book() -> RuleBook:
    """The rules that ship with fx2onnx."""
    return RULES
