"""Normalisation and dropout."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, normal, uniform

aten = torch.ops.aten

IMAGE = {0: (0, 2, 3)}
HALF, BF16, F64 = torch.float16, torch.bfloat16, torch.float64


def channels(size: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    """Weight, bias, running mean and running variance."""
    return (
        normal(size, dtype=dtype),
        normal(size, dtype=dtype),
        normal(size, dtype=dtype),
        uniform(size, dtype=dtype),
    )


STATISTICS = (normal(4), uniform(4))

CASES = (
    Case(
        aten.batch_norm.default,
        (normal(2, 4, 5, 6), *channels(4), False, 0.1, 1e-3, True),
        why="by running statistics",
        dynamic=IMAGE,
    ),
    Case(
        aten.batch_norm.default,
        (normal(3, 4), *channels(4), False, 0.1, 1e-5, False),
        why="without positions",
        dynamic={0: (0,)},
    ),
    Case(
        aten.batch_norm.default,
        (normal(2, 4, 5), None, None, *STATISTICS, False, 0.1, 1e-5, True),
        why="not affine",
        dynamic={0: (0, 2)},
    ),
    Case(
        aten.batch_norm.default,
        (normal(2, 4, 5), None, None, *STATISTICS, False, 0.1, 1e-5, True),
        why="not affine, the number of channels is free",
    ),
    Case(
        aten.batch_norm.default,
        (normal(2, 4, 5, 6), *channels(4)[:2], None, None, True, 0.1, 1e-5, True),
        why="by the batch's own statistics",
        dynamic=IMAGE,
    ),
    Case(
        aten.batch_norm.default,
        (normal(8, 4), None, None, None, None, True, 0.1, 1e-5, True),
        why="by the batch's own statistics, bare",
        dynamic={0: (0,)},
    ),
    Case(
        aten.batch_norm.default,
        (normal(2, 4, 5, 6, dtype=HALF), *channels(4), False, 0.1, 1e-3, True),
        why="half precision by float32 statistics",
        dynamic=IMAGE,
    ),
    Case(
        aten.batch_norm.default,
        (normal(2, 4, 5, 6, dtype=BF16), *channels(4, BF16), False, 0.1, 1e-3, True),
        why="bfloat16",
        dynamic=IMAGE,
    ),
    Case(
        aten.batch_norm.default,
        (normal(2, 4, 5, 6, dtype=F64), *channels(4, F64), False, 0.1, 1e-3, True),
        why="double",
        dynamic=IMAGE,
    ),
    Case(
        aten.batch_norm.default,
        (normal(2, 4, 5, 6, dtype=F64), *channels(4, F64)[:2], None, None, True, 0.1, 1e-3, True),
        why="double, by the batch's own statistics",
        dynamic=IMAGE,
    ),
    *(
        Case(
            aten._native_batch_norm_legit_functional.default,
            (normal(2, 4, 5, 6), *channels(4), training, 0.1, 1e-5),
            why=f"the running statistics after it, training={training}",
            dynamic=IMAGE,
        )
        for training in (True, False)
    ),
    Case(
        aten._native_batch_norm_legit.no_stats,
        (normal(2, 4, 5, 6), *channels(4)[:2], True, 0.1, 1e-5),
        why="statistics of the batch as results",
        dynamic=IMAGE,
    ),
    Case(
        aten._native_batch_norm_legit_no_training.default,
        (normal(2, 4, 5, 6), *channels(4), 0.1, 1e-5),
        why="the statistics are empty",
        dynamic=IMAGE,
    ),
    Case(
        aten._batch_norm_with_update_functional.default,
        (normal(2, 4, 5, 6), *channels(4), 0.3, 1e-5),
        why="with a reserve",
        dynamic=IMAGE,
    ),
    Case(
        aten._batch_norm_no_update.default,
        (normal(2, 4, 5, 6), *channels(4), 0.3, 1e-5),
        why="with a reserve, by running statistics",
        dynamic=IMAGE,
    ),
    # -- instances and groups
    Case(
        aten.instance_norm.default,
        (normal(2, 4, 5, 6), *channels(4)[:2], None, None, True, 0.1, 1e-5, True),
        why="affine",
        dynamic=IMAGE,
    ),
    Case(
        aten.instance_norm.default,
        (normal(2, 4, 5, 6), None, None, None, None, True, 0.1, 1e-5, True),
        why="bare, channels are free",
    ),
    Case(
        aten.instance_norm.default,
        (normal(2, 4, 5), *channels(4), False, 0.1, 1e-5, True),
        why="by running statistics",
        dynamic={0: (0, 2)},
    ),
    Case(
        aten.instance_norm.default,
        (normal(2, 4, 5, dtype=F64), *channels(4, F64)[:2], None, None, True, 0.1, 1e-5, True),
        why="double",
        dynamic={0: (0, 2)},
    ),
    Case(aten.group_norm.default, (normal(2, 6, 5, 4), 3, normal(6), normal(6)), why="images", dynamic=IMAGE),
    Case(
        aten.group_norm.default,
        (normal(2, 6, 5), 3, normal(6), normal(6)),
        why="sequences",
        dynamic={0: (0, 2)},
    ),
    Case(
        aten.group_norm.default,
        (normal(2, 6), 3, normal(6), normal(6)),
        why="vectors",
        dynamic={0: (0,)},
        atol=1e-4,
    ),
    Case(
        aten.group_norm.default,
        (normal(2, 6), 6, normal(6)),
        why="a group of one number is zero up to rounding",
        dynamic={0: (0,)},
        atol=1e-4,
    ),
    Case(aten.group_norm.default, (normal(2, 6, 5, 4), 1), why="one group, not affine", dynamic=IMAGE),
    Case(
        aten.group_norm.default, (normal(2, 6, 5, 4), 6, normal(6), normal(6)), why="one each", dynamic=IMAGE
    ),
    Case(
        aten.group_norm.default,
        (normal(2, 6, 5, 4, dtype=HALF), 3, normal(6, dtype=HALF), normal(6, dtype=HALF)),
        why="half precision",
        dynamic=IMAGE,
    ),
    Case(
        aten.group_norm.default,
        (normal(2, 6, 5, 4, dtype=F64), 3, normal(6, dtype=F64), normal(6, dtype=F64)),
        why="double",
        dynamic=IMAGE,
    ),
    Case(
        aten.native_group_norm.default,
        (normal(2, 6, 5, 4), normal(6), normal(6), 2, 6, 20, 3, 1e-5),
        why="mean and deviation of each group",
        dynamic=False,
    ),
    # -- layers
    Case(
        aten.layer_norm.default,
        (normal(2, 3, 8), [8], normal(8), normal(8)),
        why="the last axis",
        dynamic={0: (0, 1)},
    ),
    Case(
        aten.layer_norm.default,
        (normal(2, 3, 8), [3, 8], normal(3, 8), normal(3, 8)),
        why="two axes",
        dynamic={0: (0,)},
    ),
    Case(aten.layer_norm.default, (normal(2, 3, 8), [8]), why="not affine", dynamic={0: (0, 1)}),
    Case(aten.layer_norm.default, (normal(2, 3, 8), [8], normal(8)), why="no bias", dynamic={0: (0, 1)}),
    Case(
        aten.layer_norm.default, (normal(2, 3, 8), [8], None, normal(8)), why="no weight", dynamic={0: (0, 1)}
    ),
    Case(
        aten.layer_norm.default,
        (normal(8), [8], normal(8), normal(8), 0.5),
        why="one axis in all, a large eps",
        dynamic=False,
    ),
    Case(aten.layer_norm.default, (normal(0, 8), [8], normal(8), normal(8)), why="empty", dynamic=False),
    Case(
        aten.layer_norm.default,
        (normal(2, 3, 8, dtype=HALF), [8], normal(8, dtype=HALF), normal(8, dtype=HALF)),
        why="half precision",
        dynamic={0: (0, 1)},
    ),
    Case(
        aten.layer_norm.default,
        (normal(2, 3, 8, dtype=BF16), [8], normal(8, dtype=BF16), normal(8, dtype=BF16)),
        why="bfloat16",
        dynamic={0: (0, 1)},
    ),
    Case(
        aten.layer_norm.default,
        (normal(2, 3, 8, dtype=BF16), [8], normal(8), normal(8)),
        why="bfloat16 with float32 weights",
        dynamic={0: (0, 1)},
    ),
    Case(
        aten.layer_norm.default,
        (normal(2, 3, 8, dtype=F64), [8], normal(8, dtype=F64)),
        why="double",
        dynamic={0: (0, 1)},
    ),
    Case(
        aten.native_layer_norm.default,
        (normal(2, 3, 8), [3, 8], normal(3, 8), normal(3, 8), 1e-5),
        why="mean and deviation",
        dynamic={0: (0,)},
    ),
    *(
        Case(
            aten.rms_norm.default,
            (normal(2, 3, 8, dtype=dtype), [8], normal(8, dtype=dtype)),
            why=f"{dtype}, the default epsilon",
            dynamic={0: (0, 1)},
            opsets=(23, 18),
        )
        for dtype in (torch.float32, HALF, BF16, F64)
    ),
    Case(
        aten.rms_norm.default,
        (normal(2, 3, 8) * 1e-3, [8]),
        why="where epsilon matters",
        opsets=(23, 18),
        dynamic={0: (0, 1)},
    ),
    Case(
        aten.rms_norm.default,
        (normal(2, 3, 8), [3, 8], normal(3, 8), 1e-2),
        why="two axes",
        opsets=(23, 18),
        dynamic={0: (0,)},
    ),
    Case(
        aten._fused_rms_norm.default,
        (normal(2, 3, 8), [8], normal(8), 1e-5),
        why="the reciprocal root as a result",
        dynamic={0: (0, 1)},
        opsets=(23, 18),
    ),
    # -- weights
    Case(aten._weight_norm.default, (normal(6, 4, 3), normal(6, 1, 1)), why="by row"),
    Case(aten._weight_norm.default, (normal(6, 4), normal(1, 4), 1), why="by column"),
    Case(aten._weight_norm.default, (normal(6, 4), normal(), -1), why="as a whole"),
    Case(aten._weight_norm_interface.default, (normal(6, 4), normal(6, 1)), why="with the norms"),
    # -- dropout
    Case(aten.dropout.default, (normal(2, 3), 0.5, False), why="outside of training"),
    Case(aten.dropout.default, (normal(2, 3), 0.5, True), why="random in training", gap="never"),
    Case(aten.dropout.default, (normal(2, 3), 0.0, True), why="nothing dropped"),
    Case(aten.feature_dropout.default, (normal(2, 3, 4), 0.5, False), why="outside of training"),
    Case(aten.alpha_dropout.default, (normal(2, 3), 0.5, False), why="outside of training"),
    Case(aten.feature_alpha_dropout.default, (normal(2, 3, 4), 0.5, False), why="outside of training"),
    Case(aten.native_dropout.default, (normal(2, 3), 0.5, False), why="with its mask"),
)
