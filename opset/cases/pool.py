"""Pooling over windows and over adaptive bins."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, ints, normal, values

aten = torch.ops.aten

LINE, IMAGE, BLOCK = {0: (0, 1, 2)}, {0: (0, 1, 2, 3)}, {0: (0, 2, 3, 4)}
HALF, BF16, F64 = torch.float16, torch.bfloat16, torch.float64
NAN, INF = float("nan"), float("inf")


CASES = (
    Case(aten.max_pool1d.default, (normal(2, 3, 9), [3]), why="one axis", dynamic={0: (0,)}),
    Case(aten.max_pool1d.default, (normal(3, 9), [3], [2], [1], [2]), why="no batch, dilated", dynamic=False),
    Case(
        aten.max_pool2d.default,
        (normal(2, 3, 8, 9), [3, 2], [2, 1], [1, 0]),
        why="settings by axis",
        dynamic=IMAGE,
    ),
    Case(aten.max_pool2d.default, (normal(2, 3, 8, 9), [2]), why="one number for both axes", dynamic=IMAGE),
    Case(aten.max_pool2d.default, (normal(3, 8, 9), [2, 2]), why="no batch", dynamic={0: (1, 2)}),
    Case(aten.max_pool2d.default, (normal(0, 3, 8, 9), [2, 2]), why="an empty batch", dynamic=False),
    Case(
        aten.max_pool2d.default, (normal(2, 3, 8, 9, dtype=HALF), [2, 2]), why="half precision", dynamic=IMAGE
    ),
    Case(aten.max_pool2d.default, (normal(2, 3, 8, 9, dtype=BF16), [2, 2]), why="bfloat16", dynamic=IMAGE),
    Case(aten.max_pool2d.default, (normal(2, 3, 8, 9, dtype=F64), [2, 2]), why="double", dynamic=IMAGE),
    Case(aten.max_pool2d.default, (ints(2, 3, 8, 9, dtype=torch.int8), [2, 2]), why="int8", dynamic=IMAGE),
    Case(
        aten.max_pool2d.default,
        (ints(2, 3, 8, 9, dtype=torch.int32), [3, 3], [2], [1]),
        why="int32",
        dynamic=IMAGE,
    ),
    Case(
        aten.max_pool2d.default,
        (ints(2, 3, 8, 9) + 2**62, [3, 3], [2], [1]),
        why="int64 that no double holds",
        dynamic=IMAGE,
    ),
    Case(
        aten.max_pool2d.default,
        (normal(2, 3, 8, 9), [3, 3], [2, 2], [1, 1], [1, 1], True),
        why="ceil mode, windows overlap",
        dynamic=IMAGE,
        second=(normal(2, 3, 7, 10),),
    ),
    Case(
        aten.max_pool2d.default,
        (normal(2, 3, 8, 9), [2, 2], [2, 2], [1, 1], [1, 1], True),
        why="ceil mode, the last window would start in the padding",
        dynamic={0: (0,)},  # the shape function guards on the parity of sizes
    ),
    Case(
        aten.max_pool2d.default,
        (normal(2, 3, 8, 9), [2, 1], [3, 4], [0, 0], [1, 1], True),
        why="ceil mode, strides above the kernel",
        dynamic={0: (0,)},
    ),
    Case(
        aten.max_pool2d.default,
        (normal(2, 3, 8, 9), [3, 3], [2, 3], [1, 1], [2, 1], True),
        why="ceil mode, dilated",
        dynamic=IMAGE,
        second=(normal(2, 3, 11, 10),),
    ),
    Case(
        aten.max_pool2d.default,
        (normal(2, 3, 8, 9), [3, 3], [2, 2], [1, 1], [1, 1], True),
        why="ceil mode in another opset",
        dynamic=IMAGE,
        opsets=(18, 22),
    ),
    Case(
        aten.max_pool3d.default,
        (normal(1, 2, 4, 5, 6), [2, 2, 3], [2, 1, 2]),
        why="three axes",
        dynamic=BLOCK,
    ),
    Case(
        aten.max_pool2d_with_indices.default,
        (normal(2, 3, 8, 9), [3, 3], [2, 2], [1, 1]),
        why="indices count within the plane",
        dynamic=IMAGE,
    ),
    Case(
        aten.max_pool2d_with_indices.default,
        (ints(2, 3, 8, 9, low=0, high=3).float(), [3, 3], [2, 2], [1, 1], [1, 1], True),
        why="the first of equal values",
        dynamic=IMAGE,
    ),
    Case(
        aten.max_pool2d_with_indices.default, (normal(3, 8, 9), [2, 2]), why="no batch", dynamic={0: (1, 2)}
    ),
    Case(
        aten.max_pool2d_with_indices.default,
        (ints(2, 3, 8, 9) + 2**62, [2, 2]),
        why="indices of int64",
        dynamic=IMAGE,
    ),
    Case(
        aten.max_pool2d_with_indices.default,
        (normal(1, 1, 8, 9), [2, 2]),
        why="a single plane",
        dynamic={0: (2, 3)},
    ),
    Case(
        aten.max_pool3d_with_indices.default,
        (normal(2, 2, 4, 5, 6), [2, 2, 2]),
        why="three axes",
        dynamic=BLOCK,
    ),
    Case(aten.max_pool1d_with_indices.default, (normal(2, 3, 9), [2]), why="one axis", dynamic=LINE),
    Case(aten.avg_pool1d.default, (normal(2, 3, 9), [3], [2], [1]), why="padding counts", dynamic=LINE),
    Case(aten.avg_pool2d.default, (normal(2, 3, 8, 9), [3, 2]), why="side by side", dynamic=IMAGE),
    Case(aten.avg_pool2d.default, (normal(3, 8, 9), [3, 2]), why="no batch", dynamic={0: (1, 2)}),
    Case(
        aten.avg_pool2d.default,
        (normal(2, 3, 8, 9), [3, 3], [2, 2], [1, 1], False, False),
        why="padding doesn't count",
        dynamic=IMAGE,
    ),
    *(
        Case(
            aten.avg_pool2d.default,
            (normal(2, 3, 8, 9), kernel, stride, padding, True, counts),
            why=f"ceil mode, {kernel} {stride} {padding}, padding counts: {counts}",
            dynamic=axes,
        )
        for kernel, stride, padding, axes in (
            ([3, 3], [2, 2], [1, 1], IMAGE),
            ([2, 3], [2, 3], [1, 0], {0: (0, 3)}),
            ([3, 2], [3, 4], [0, 0], {0: (0, 2)}),
        )
        for counts in (True, False)
    ),
    Case(
        aten.avg_pool2d.default,
        (normal(2, 3, 8, 9), [3, 3], [2, 2], [1, 1], False, True, 5),
        why="a divisor given",
        dynamic=IMAGE,
    ),
    Case(
        aten.avg_pool2d.default,
        (normal(2, 3, 8, 9), [3, 3], [2, 2], [1, 1], True, False, -2),
        why="a divisor given, in ceil mode",
        dynamic=IMAGE,
        second=(normal(2, 3, 7, 10),),
    ),
    Case(
        aten.avg_pool3d.default,
        (normal(1, 2, 4, 5, 6), [2, 2, 3], [1, 2, 2], [1, 1, 1], False, False),
        why="three axes",
        dynamic=BLOCK,
    ),
    Case(
        aten.avg_pool2d.default, (normal(2, 3, 8, 9, dtype=HALF), [2, 2]), why="half precision", dynamic=IMAGE
    ),
    Case(aten.avg_pool2d.default, (normal(2, 3, 8, 9, dtype=BF16), [2, 2]), why="bfloat16", dynamic=IMAGE),
    Case(
        aten.avg_pool2d.default,
        (normal(2, 3, 8, 9, dtype=F64), [2, 2]),
        why="the runtime has no double AveragePool",
        dynamic=IMAGE,
        gap="onnxruntime",
    ),
    Case(aten.avg_pool2d.default, (ints(2, 3, 8, 9), [2, 2]), why="integers", dynamic=IMAGE, gap="never"),
    # -- adaptive
    Case(aten.adaptive_avg_pool1d.default, (normal(2, 3, 9), [1]), why="to one place", dynamic=LINE),
    Case(aten.adaptive_avg_pool1d.default, (normal(2, 3, 9), [4]), why="uneven bins", dynamic={0: (0,)}),
    Case(aten.adaptive_avg_pool2d.default, (normal(2, 3, 8, 9), [1, 1]), why="to one place", dynamic=IMAGE),
    Case(
        aten.adaptive_avg_pool2d.default,
        (normal(3, 8, 9), [1, 1]),
        why="to one place, no batch",
        dynamic={0: (1, 2)},
    ),
    Case(
        aten.adaptive_avg_pool2d.default, (normal(2, 3, 6, 6), [6, 6]), why="nothing to do", dynamic={0: (0,)}
    ),
    Case(
        aten.adaptive_avg_pool2d.default, (normal(2, 3, 8, 9), [4, 3]), why="even bins", dynamic={0: (0, 1)}
    ),
    Case(
        aten.adaptive_avg_pool2d.default,
        (normal(2, 3, 10, 9), [7, 3]),
        why="one axis uneven",
        dynamic={0: (0, 1)},
    ),
    Case(
        aten.adaptive_avg_pool2d.default,
        (normal(3, 10, 9), [7, 5]),
        why="uneven, no batch",
        dynamic={0: (0,)},
    ),
    Case(
        aten.adaptive_avg_pool2d.default,
        (normal(2, 3, 4, 5), [7, 11]),
        why="more bins than places",
        dynamic=False,
    ),
    Case(
        aten.adaptive_avg_pool2d.default,
        (normal(2, 3, 10, 9), [7, 3]),
        why="free sizes, some of them even",
        dynamic=IMAGE,
        second=(normal(3, 2, 14, 4),),
    ),
    Case(
        aten.adaptive_avg_pool2d.default,
        (normal(2, 3, 10, 9), [1, 3]),
        why="one axis to one place",
        dynamic=IMAGE,
    ),
    Case(
        aten.adaptive_avg_pool2d.default,
        (values(1, NAN, 2, INF, 3, 4, 5, 6, 7, 8).view(1, 1, 1, 10), [1, 7]),
        why="NaN and Inf stay in their bins",
        dynamic={0: (3,)},
    ),
    Case(
        aten.adaptive_avg_pool2d.default,
        (normal(2, 3, 10, 9, dtype=BF16), [7, 3]),
        why="bfloat16",
        dynamic=IMAGE,
    ),
    Case(
        aten.adaptive_avg_pool2d.default, (normal(2, 3, 10, 9, dtype=HALF), [7, 3]), why="half", dynamic=IMAGE
    ),
    Case(
        aten.adaptive_avg_pool2d.default,
        (normal(2, 3, 10, 9, dtype=F64), [7, 3]),
        why="double",
        dynamic=IMAGE,
    ),
    Case(aten._adaptive_avg_pool2d.default, (normal(2, 3, 8, 9), [1, 1]), why="core name", dynamic=IMAGE),
    Case(
        aten.adaptive_avg_pool3d.default, (normal(1, 2, 4, 5, 6), [2, 3, 3]), why="three axes", dynamic=BLOCK
    ),
    Case(
        aten.adaptive_avg_pool3d.default,
        (normal(1, 2, 4, 5, 6), [1, 1, 1]),
        why="to one place",
        dynamic=BLOCK,
    ),
    Case(aten.adaptive_max_pool1d.default, (normal(2, 3, 9), [4]), why="uneven bins", dynamic={0: (0,)}),
    Case(
        aten.adaptive_max_pool2d.default, (normal(2, 3, 8, 9), [4, 3]), why="even bins", dynamic={0: (0, 1)}
    ),
    Case(
        aten.adaptive_max_pool2d.default,
        (normal(2, 3, 8, 9), [1, 1]),
        why="to one place",
        dynamic={0: (0, 1)},
    ),
    Case(
        aten.adaptive_max_pool2d.default,
        (normal(3, 10, 9), [7, 4]),
        why="uneven, no batch",
        dynamic={0: (0,)},
    ),
    Case(
        aten.adaptive_max_pool2d.default,
        (ints(2, 3, 10, 9, low=0, high=3).float(), [7, 4]),
        why="the first of equal values",
        dynamic={0: (0,)},
    ),
    Case(
        aten.adaptive_max_pool3d.default, (normal(1, 2, 4, 5, 6), [2, 3, 4]), why="three axes", dynamic=False
    ),
)
