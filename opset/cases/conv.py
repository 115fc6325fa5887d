"""Convolutions."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, ints, normal

aten = torch.ops.aten

BATCH = {0: (0,)}
IMAGE = {0: (0, 2, 3)}
HALF, BF16, F64 = torch.float16, torch.bfloat16, torch.float64

CASES = (
    Case(
        aten.conv1d.default,
        (normal(2, 4, 9), normal(6, 4, 3), normal(6)),
        why="one axis",
        dynamic={0: (0, 2)},
    ),
    Case(aten.conv1d.default, (normal(4, 9), normal(6, 4, 3)), why="no batch, no bias", dynamic={0: (1,)}),
    Case(
        aten.conv2d.default,
        (normal(2, 4, 8, 9), normal(6, 4, 3, 2), normal(6), [2, 1], [1, 0], [1, 2]),
        why="settings differ by axis",
        dynamic=IMAGE,
    ),
    Case(
        aten.conv2d.default,
        (normal(2, 4, 8, 9), normal(8, 1, 3, 3), None, [1], [1], [1], 4),
        why="depthwise, one number for both axes",
        dynamic=IMAGE,
    ),
    Case(
        aten.conv2d.default,
        (normal(4, 8, 9), normal(6, 4, 3, 3), normal(6)),
        why="no batch",
        dynamic={0: (1, 2)},
    ),
    Case(
        aten.conv2d.default,
        (normal(2, 4, 5, 5), normal(6, 4, 3, 3), normal(6)),
        why="every size is free, the kernel's and the channels' too",
        second=(normal(3, 2, 7, 6), normal(5, 2, 2, 4), normal(5)),
        dynamic={0: (0, 1, 2, 3), 1: (0, 1, 2, 3), 2: (0,)},
    ),
    Case(
        aten.conv2d.default,
        (normal(0, 4, 5, 5), normal(6, 4, 3, 3), normal(6)),
        why="an empty batch",
        dynamic=False,
    ),
    Case(
        aten.conv2d.default,
        (normal(2, 4, 8, 9, dtype=HALF), normal(6, 4, 3, 3, dtype=HALF), normal(6, dtype=HALF)),
        why="half precision",
        dynamic=BATCH,
    ),
    Case(
        aten.conv2d.default,
        (normal(2, 4, 8, 9, dtype=BF16), normal(6, 4, 3, 3, dtype=BF16), normal(6, dtype=BF16)),
        why="bfloat16 is computed in float32",
        dynamic=BATCH,
    ),
    Case(
        aten.conv2d.default,
        (normal(2, 4, 8, 9, dtype=F64), normal(6, 4, 3, 3, dtype=F64)),
        why="the runtime has no double Conv",
        dynamic=BATCH,
        gap="onnxruntime",
    ),
    Case(
        aten.conv2d.default,
        (ints(2, 4, 8, 9), ints(6, 4, 3, 3)),
        why="of integers",
        dynamic=BATCH,
        gap="never",
    ),
    Case(
        aten.conv3d.default,
        (normal(1, 2, 4, 5, 6), normal(4, 2, 3, 2, 3), normal(4), [1, 2, 1], [1, 0, 1]),
        why="three axes",
        dynamic={0: (2, 3, 4)},
    ),
    Case(
        aten.conv1d.padding,
        (normal(2, 4, 9), normal(6, 4, 4), normal(6), [1], "same", [3]),
        why="same, odd total padding: more at the end",
        dynamic={0: (0, 2)},
    ),
    Case(
        aten.conv2d.padding,
        (normal(2, 4, 8, 9), normal(6, 4, 3, 2), normal(6), [1], "same"),
        why="same, even and odd",
        dynamic=IMAGE,
    ),
    Case(
        aten.conv2d.padding,
        (normal(2, 4, 8, 9), normal(6, 4, 2, 3)),
        {"padding": "same"},
        why="same, with a kernel of any size",
        second=(normal(2, 4, 8, 9), normal(6, 4, 3, 4)),
        dynamic={1: (2, 3)},
    ),
    Case(
        aten.conv2d.padding,
        (normal(2, 4, 8, 9), normal(6, 4, 3, 2), None, [2], "valid"),
        why="valid, with a stride",
        dynamic=IMAGE,
    ),
    Case(
        aten.conv3d.padding,
        (normal(2, 3, 4, 5), normal(6, 2, 2, 3, 2), None, [1], "same"),
        why="same, no batch",
    ),
    Case(
        aten.conv_transpose1d.default,
        (normal(2, 4, 5), normal(4, 3, 3), normal(3), [2], [1], [1]),
        why="one axis",
        dynamic={0: (0, 2)},
    ),
    Case(
        aten.conv_transpose2d.input,
        (normal(2, 4, 5, 6), normal(4, 3, 3, 2), normal(6), [3, 2], [1, 0], [2, 1], 2, [1, 2]),
        why="groups, output padding and dilation",
        dynamic=IMAGE,
    ),
    Case(
        aten.conv_transpose2d.input,
        (normal(2, 4, 5, 6), normal(4, 3, 3, 3), None, [1], [1], [1], 1, [2]),
        why="output padding below the dilation but not below the stride",
        dynamic=IMAGE,
    ),
    Case(
        aten.conv_transpose2d.input,
        (normal(2, 4, 5, 6), normal(4, 3, 3, 3), None, [1], [0], [1], 1, [2]),
        why="output padding above the stride and the padding",
        dynamic=IMAGE,
        gap="onnxruntime",
    ),
    Case(
        aten.conv_transpose2d.input,
        (normal(4, 5, 6), normal(4, 3, 3, 2)),
        why="no batch, no bias",
        dynamic={0: (1, 2)},
    ),
    Case(
        aten.conv_transpose2d.input,
        (normal(2, 4, 5, 6), normal(4, 3, 3, 3), None, [2], [2]),
        why="padding cuts the result",
        dynamic=IMAGE,
    ),
    Case(
        aten.conv_transpose3d.input,
        (normal(1, 2, 3, 4, 3), normal(2, 4, 2, 3, 2), normal(4), [2], [1], [1]),
        why="three axes",
        dynamic={0: (2, 3, 4)},
    ),
    Case(
        aten.convolution.default,
        (normal(2, 4, 8), normal(6, 4, 3), None, [2], [1], [1], False, [0], 1),
        why="the core operator",
        dynamic={0: (0, 2)},
    ),
    Case(
        aten.convolution.default,
        (normal(2, 4, 8), normal(4, 3, 3), normal(3), [2], [1], [1], True, [1], 1),
        why="the core operator, transposed",
        dynamic={0: (0, 2)},
    ),
    Case(
        aten._convolution.default,
        (normal(2, 4, 8), normal(6, 4, 3), None, [2], [1], [1], False, [0], 1, True, True, True, True),
        why="backend settings don't matter",
        dynamic={0: (0, 2)},
    ),
    Case(
        aten.conv_tbc.default,
        (normal(7, 2, 4), normal(3, 4, 5), normal(5), 1),
        why="time first",
        dynamic=False,
    ),
)
