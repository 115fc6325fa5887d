"""Attention that takes a comparison of sizes for `is_causal`, while a model is traced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


@contextlib.contextmanager
def symbolic_is_causal() -> Iterator[None]:
    """Let attention take `is_causal=(seq > 1)`, a comparison of sizes, as eager PyTorch does.

    The operator's argument parser wants a bool and refuses a SymBool (torch 2.14); `seq > 1 and mask is None` is one
    whenever `seq > 1` is false.
    """
    original = torch.nn.functional.scaled_dot_product_attention

    def attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: Any = False,
        **options: Any,
    ) -> torch.Tensor:
        return original(query, key, value, attn_mask, dropout_p, bool(is_causal), **options)

    torch.nn.functional.scaled_dot_product_attention = attention  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.nn.functional.scaled_dot_product_attention = original
