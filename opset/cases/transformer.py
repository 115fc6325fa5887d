"""PyTorch's fast paths for attention blocks and encoder layers."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, bools, normal

aten = torch.ops.aten

attention = aten._native_multi_head_attention.default
layer = aten._transformer_encoder_layer_fwd.default

X = normal(2, 5, 16)
WEIGHTS = (normal(48, 16) / 4, normal(48), normal(16, 16) / 4, normal(16))
NORMS = (normal(16), normal(16), normal(16), normal(16))
FEED_FORWARD = (normal(32, 16) / 4, normal(32), normal(16, 32) / 6, normal(16))
UPPER = torch.ones(5, 5, dtype=torch.bool).triu(1)
PADDING = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]).bool()


def self_attention(x: torch.Tensor, *weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of a sequence to itself, the three inputs being one."""
    return attention(x, x, x, 16, 4, *weights)


def layer_case(why: str, *, gelu: bool, first: bool, mask: tuple[object, ...] = ()) -> Case:
    """An encoder layer of 4 heads."""
    arguments = (X, 16, 4, *WEIGHTS, gelu, first, 1e-5, *NORMS, *FEED_FORWARD, *mask)
    return Case(layer, arguments, why=why, dynamic=False, rtol=1e-4, atol=1e-5, opsets=(23, 18))


CASES = (
    Case(
        attention,
        (X, normal(2, 5, 16), normal(2, 5, 16), 16, 4, *WEIGHTS),
        why="three inputs",
        dynamic={0: (0, 1), 1: (0, 1), 2: (0, 1)},
    ),
    Case(self_attention, (X, *WEIGHTS), why="one input", dynamic={0: (0,)}),
    Case(
        attention,
        (X, X, X, 16, 4, *WEIGHTS, UPPER, True, False, 0),
        why="a causal mask, weights of each head",
        dynamic=False,
    ),
    Case(attention, (X, X, X, 16, 4, *WEIGHTS, PADDING, True, True, 1), why="a mask of keys", dynamic=False),
    Case(
        attention,
        (X, X, X, 16, 4, *WEIGHTS, bools(2, 4, 5, 5), True, True, 2),
        why="a mask of everything",
        dynamic=False,
    ),
    Case(
        attention,
        (X, X, X, 16, 4, *WEIGHTS, torch.zeros(5, 5).masked_fill(UPPER, float("-inf")), True, True, 0),
        why="a float mask",
        dynamic=False,
    ),
    Case(
        attention,
        (X, X, X, 16, 4, *WEIGHTS, torch.ones(2, 5, dtype=torch.bool), True, True, 1),
        why="nothing is open",
        dynamic=False,
    ),
    layer_case("ReLU, norms last", gelu=False, first=False),
    layer_case("GELU, norms first", gelu=True, first=True),
    layer_case("a mask of keys", gelu=True, first=False, mask=(PADDING, 1)),
)
