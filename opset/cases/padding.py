"""Cases of the operators that add a border to a tensor, or cut one off."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal

aten = torch.ops.aten
inf = float("inf")

CONSTANT = (
    Case(aten.constant_pad_nd.default, (normal(2, 3), [1, 2]), why="one axis"),
    Case(aten.constant_pad_nd.default, (normal(2, 3), [1, 2, 0, 1], 1.5), why="two axes, a value"),
    Case(aten.constant_pad_nd.default, (normal(2, 3), [0, 0]), why="none is no change"),
    Case(aten.constant_pad_nd.default, (normal(2, 5), [-1, -2]), why="negative pads cut"),
    Case(aten.constant_pad_nd.default, (normal(2, 5), [-1, 2]), why="one side is cut"),
    Case(aten.constant_pad_nd.default, (normal(2, 5), [1, 1], -inf), why="minus infinity"),
    Case(aten.constant_pad_nd.default, (normal(0, 5), [0, 0, 1, 1]), why="an empty tensor"),
    Case(aten.constant_pad_nd.default, (bools(2, 3), [1, 1], True), why="bools"),
    Case(aten.constant_pad_nd.default, (ints(2, 3), [1, 1], 7), why="integers"),
    Case(aten.constant_pad_nd.default, (ints(2, 3, dtype=torch.int16), [1, 1], 7), why="int16"),
    Case(aten.constant_pad_nd.default, (ints(2, 3, low=0, dtype=torch.uint8), [1, 1], 255), why="uint8"),
    Case(aten.constant_pad_nd.default, (normal(2, 3, dtype=torch.float16), [1, 1], 0.5), why="float16"),
    Case(
        aten.constant_pad_nd.default,
        (normal(2, 3, dtype=torch.bfloat16), [1, 1], 0.5),
        why="bfloat16",
        opsets=(23, 19, 18),
    ),
    Case(aten.pad.default, (normal(2, 3), [1, 2]), why="the default mode"),
    Case(aten.pad.default, (normal(2, 3), [1, 2], "constant", 2.0), why="a value"),
    Case(lambda x: torch.nn.functional.pad(x, (0, 4 - x.shape[1])), (normal(2, 3),), why="pad to a size"),
    Case(
        lambda x: torch.nn.functional.pad(x, (0, -x.shape[1] % 4)), (normal(2, 6),), why="pad to a multiple"
    ),
)

MODES = (
    Case(
        aten.pad.default,
        (normal(1, 2, 4), [-1, 3], "reflect"),
        why="mirrored up to what is cut",
        dynamic=False,
    ),
    Case(
        aten.pad.default,
        (normal(1, 2, 2), [1, -2], "replicate"),
        why="all is cut but the border",
        dynamic=False,
    ),
    Case(aten.pad.default, (normal(2, 3, 4), [1, 2], "reflect"), why="mirrored"),
    Case(aten.pad.default, (normal(2, 3, 4, 5), [1, 2, 2, 1], "reflect"), why="mirrored in two axes"),
    Case(
        aten.pad.default, (normal(2, 3, 4), [4, 5], "replicate"), why="the border repeated, beyond the size"
    ),
    Case(aten.pad.default, (normal(2, 3, 4), [-1, 2], "replicate"), why="one side is cut, one repeated"),
    Case(aten.pad.default, (normal(2, 3, 4), [-1, -1], "replicate"), why="both sides are cut"),
    Case(aten.pad.default, (normal(2, 3, 5), [-1, 2], "reflect"), why="one side is cut, one mirrored"),
    Case(
        aten.pad.default,
        (normal(2, 3, 4), [1, 2], "circular"),
        why="continued from the other end",
        opsets=(23, 18),
    ),
    Case(
        aten.pad.default,
        (normal(2, 3, 4), [4, 4], "circular"),
        why="continued by the whole",
        opsets=(23, 18),
        dynamic={0: (0,)},
    ),
    Case(
        aten.pad.default,
        (normal(2, 3, 4, 5), [1, 2, -1, 1], "circular"),
        why="continued in two axes, one cut",
        opsets=(23, 18),
    ),
    Case(aten.reflection_pad1d.default, (normal(3, 4), [1, 2]), why="one example"),
    Case(aten.reflection_pad2d.default, (normal(2, 3, 4, 5), [1, 2, 3, 0]), why="images"),
    Case(aten.reflection_pad3d.default, (normal(1, 2, 3, 4, 5), [1, 2, 1, 0, 1, 1]), why="volumes"),
    Case(aten.replication_pad1d.default, (normal(2, 3, 4), [1, 2]), why="sequences"),
    Case(aten.replication_pad2d.default, (normal(3, 4, 5), [1, 2, 3, 0]), why="one image"),
    Case(aten.replication_pad3d.default, (normal(1, 2, 3, 4, 5), [1, 2, 1, 0, 1, 1]), why="volumes"),
    Case(torch.nn.CircularPad2d(1), (normal(2, 3, 4, 5),), why="the module"),
    Case(torch.nn.ReflectionPad2d((1, 0, 2, 1)), (normal(2, 3, 4, 5),), why="the module"),
    Case(torch.nn.ZeroPad1d(1), (normal(2, 3, 4),), why="the module"),
)

CASES = (*CONSTANT, *MODES)
