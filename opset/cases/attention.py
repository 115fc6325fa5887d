"""Scaled dot-product attention."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, bools, normal, values

aten = torch.ops.aten
sdpa = aten.scaled_dot_product_attention.default

INF = float("inf")
HALF, BF16, F64 = torch.float16, torch.bfloat16, torch.float64
BOTH = (23, 18)  # with the operator and by formula
EVERY = (23, 24, 25, 18)


def heads(
    query: int, key: int, length: int = 3, keys: int = 5, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, ...]:
    """Query, key and value of a batch of two, with 8 features."""
    return (
        normal(2, query, length, 8, dtype=dtype),
        normal(2, key, keys, 8, dtype=dtype),
        normal(2, key, keys, 8, dtype=dtype),
    )


def open_somewhere(*shape: int) -> torch.Tensor:
    """A mask that is False here and there, and all along the second row."""
    mask = bools(*shape)
    mask[..., 0] = True
    if shape[-2] > 1:
        mask[..., 1, :] = False
    return mask


def lowered(mask: torch.Tensor) -> torch.Tensor:
    """A bool mask as numbers to add."""
    return torch.zeros(mask.shape).masked_fill(~mask, -INF) + normal(*mask.shape)


FREE = {0: (0, 2), 1: (0, 2), 2: (0, 2)}  # batch and positions

CASES = (
    Case(sdpa, heads(4, 4), why="plain", opsets=EVERY, dynamic=FREE),
    Case(sdpa, heads(4, 4), why="every size is free", opsets=BOTH),
    Case(sdpa, heads(4, 4), {"scale": 0.3}, why="a scale", opsets=BOTH, dynamic=FREE),
    Case(sdpa, (*heads(4, 4), None, 0.0, True), why="causal, fewer queries", opsets=EVERY, dynamic=FREE),
    Case(sdpa, (*heads(4, 4, 6, 4), None, 0.0, True), why="causal, more queries", opsets=BOTH, dynamic=FREE),
    Case(
        sdpa,
        (*heads(4, 4), open_somewhere(3, 5)),
        why="a mask for all, with a closed row",
        opsets=EVERY,
        dynamic={**FREE, 3: (0, 1)},
    ),
    Case(
        sdpa,
        (*heads(4, 4), open_somewhere(2, 1, 3, 5)),
        why="a mask by batch",
        opsets=BOTH,
        dynamic={**FREE, 3: (0, 2, 3)},
    ),
    Case(
        sdpa,
        (*heads(4, 4), open_somewhere(2, 1, 1, 5)),
        why="a mask of keys",
        opsets=BOTH,
        dynamic={**FREE, 3: (0, 3)},
    ),
    Case(
        sdpa,
        (*heads(4, 4), open_somewhere(2, 4, 3, 5)),
        why="a mask by batch and head",
        opsets=BOTH,
        dynamic={**FREE, 3: (0, 2, 3)},
    ),
    Case(
        sdpa,
        (*heads(4, 4), open_somewhere(2, 1, 3, 1)),
        why="a mask of queries",
        opsets=BOTH,
        dynamic={**FREE, 3: (0, 2)},
    ),
    Case(
        sdpa,
        (*heads(4, 4), open_somewhere(4, 3, 5)),
        why="a mask by head",
        opsets=BOTH,
        dynamic={**FREE, 3: (1, 2)},
    ),
    Case(
        sdpa,
        (*heads(4, 4), lowered(open_somewhere(3, 5))),
        why="a float mask with a closed row",
        opsets=EVERY,
        dynamic={**FREE, 3: (0, 1)},
    ),
    Case(
        sdpa,
        (*heads(4, 4), lowered(open_somewhere(2, 1, 1, 5))),
        why="a float mask of keys",
        opsets=BOTH,
        dynamic={**FREE, 3: (0, 3)},
    ),
    Case(sdpa, heads(4, 2), {"enable_gqa": True}, why="grouped queries", opsets=EVERY, dynamic=FREE),
    Case(
        sdpa,
        (*heads(4, 2), None, 0.0, True),
        {"enable_gqa": True},
        why="grouped queries, causal",
        opsets=BOTH,
        dynamic=FREE,
    ),
    Case(
        sdpa,
        (*heads(4, 2), open_somewhere(2, 1, 3, 5)),
        {"enable_gqa": True},
        why="grouped queries, a mask by batch",
        opsets=BOTH,
        dynamic={**FREE, 3: (0, 2, 3)},
    ),
    Case(
        sdpa,
        (*heads(4, 2), lowered(open_somewhere(2, 4, 3, 5))),
        {"enable_gqa": True},
        why="grouped queries, a mask by batch and head",
        opsets=BOTH,
        dynamic={**FREE, 3: (0, 2, 3)},
    ),
    Case(sdpa, heads(4, 1), why="keys for all heads, broadcast", opsets=BOTH, dynamic=FREE),
    Case(
        sdpa,
        (normal(2, 4, 3, 8), normal(1, 4, 5, 8), normal(1, 4, 5, 8)),
        why="keys for the whole batch",
        opsets=BOTH,
        dynamic=False,
    ),
    Case(
        sdpa,
        (normal(2, 4, 3, 8), normal(2, 4, 5, 8), normal(2, 4, 5, 6)),
        why="values of another width",
        opsets=BOTH,
        dynamic=FREE,
    ),
    Case(
        sdpa,
        (normal(4, 3, 8), normal(4, 5, 8), normal(4, 5, 8)),
        why="three axes",
        dynamic={0: (1,), 1: (1,), 2: (1,)},
    ),
    Case(
        sdpa,
        (normal(4, 3, 8), normal(4, 5, 8), normal(4, 5, 8), open_somewhere(4, 3, 5)),
        why="three axes, a mask",
    ),
    Case(sdpa, (normal(3, 8), normal(5, 8), normal(5, 8)), why="two axes"),
    Case(
        sdpa,
        (normal(2, 2, 4, 3, 8), normal(2, 2, 4, 5, 8), normal(2, 2, 4, 5, 8)),
        why="five axes",
        dynamic=False,
    ),
    Case(
        sdpa,
        (normal(0, 4, 3, 8), normal(0, 4, 5, 8), normal(0, 4, 5, 8)),
        why="an empty batch",
        dynamic=False,
    ),
    Case(sdpa, (normal(2, 4, 3, 8), normal(2, 4, 0, 8), normal(2, 4, 0, 8)), why="no keys", dynamic=False),
    Case(sdpa, heads(4, 4, dtype=HALF), why="half precision", opsets=BOTH, dynamic=FREE),
    Case(
        sdpa,
        (*heads(4, 4, dtype=HALF), lowered(open_somewhere(3, 5))),
        why="half precision, a float32 mask",
        opsets=BOTH,
        dynamic={**FREE, 3: (0, 1)},
    ),
    Case(sdpa, heads(4, 4, dtype=BF16), why="bfloat16", dynamic=FREE),
    Case(sdpa, heads(4, 4, dtype=F64), why="double", dynamic=FREE),
    Case(sdpa, (*heads(4, 4), None, 0.1), why="dropout is random", gap="never", dynamic=False),
    Case(
        aten._scaled_dot_product_flash_attention_for_cpu.default,
        (*heads(4, 4), 0.0, True),
        why="with the sum of exponentials",
        dynamic=FREE,
    ),
    Case(
        aten._scaled_dot_product_flash_attention_for_cpu.default,
        heads(4, 4),
        {"attn_mask": values(0, -1, -INF, 2, 3).view(1, 1, 1, 5), "scale": 0.2},
        why="with a mask and a scale",
        dynamic={0: (0, 2), 1: (0,), 2: (0,)},
    ),
)
