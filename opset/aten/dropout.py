"""Dropout: nothing happens outside of training."""

from __future__ import annotations

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.rules import lowers

aten = torch.ops.aten


@lowers(
    aten.dropout.default,
    aten.feature_dropout.default,
    aten.alpha_dropout.default,
    aten.feature_alpha_dropout.default,
)
def dropout(op: OpBuilder, input: Value, p: float, train: bool) -> ir.Value:
    """(*) -> (*), the argument itself.

    Raises:
        UnsupportedOpError: in training, unless nothing is dropped.
    """
    _refuse_training(p, train)
    return input


@lowers(aten.native_dropout.default)
def native_dropout(
    op: OpBuilder,
    input: Value,
    p: float,
    train: bool | None,
) -> tuple[ir.Value, ir.Value]:
    """(*) -> (*), the argument itself, and (*), a mask that is True everywhere."""
    _refuse_training(p, train is not False)
    return input, op.Expand(op.constant(True, torch.bool), op.Shape(input))


def _refuse_training(p: float, train: bool) -> None:
    if train and p > 0:
        raise UnsupportedOpError(
            f"dropout with p={p} is random in training", fix="call model.eval() before the export"
        )


__all__ = ["dropout", "native_dropout"]
