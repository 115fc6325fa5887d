"""Cases of the operators that change the order of elements."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal

aten = torch.ops.aten

CASES = (
    Case(aten.roll.default, (normal(5, 4), [2], [0]), why="rows"),
    Case(
        aten.roll.default,
        (normal(2, 6, 6, 3), [-3, -3], [1, 2]),
        why="the windows of Swin",
        dynamic={0: (0,)},
    ),
    Case(aten.roll.default, (normal(2, 5, 4), [1, -2], [1, -1]), why="two axes"),
    Case(aten.roll.default, (normal(5, 4), [7], [0]), why="by more than the size", second=(normal(2, 3),)),
    Case(aten.roll.default, (normal(5, 4), [3]), why="the flat tensor"),
    Case(aten.roll.default, (normal(5, 4), [0], [0]), why="by nothing"),
    Case(aten.roll.default, (normal(), [3]), why="no axes"),
    Case(lambda x: x.roll(x.shape[0] // 2, 0), (normal(6, 3),), why="roll by half a size"),
    Case(
        aten.roll.default,
        (normal(3, 4), [1], [0]),
        why="an empty axis in the second run",
        second=(normal(0, 4),),
    ),
    Case(aten.flip.default, (normal(3, 4), [0]), why="one axis"),
    Case(aten.flip.default, (normal(3, 4, 5), [-1, 0]), why="two axes"),
    Case(aten.flip.default, (normal(3, 4), []), why="no axis"),
    Case(aten.flip.default, (bools(3), [0]), why="bools"),
    Case(aten.flip.default, (normal(0, 4), [0]), why="an empty axis"),
    Case(torch.fliplr, (normal(3, 4),), why="by decomposition"),
    Case(aten.rot90.default, (normal(3, 4),), why="a quarter"),
    Case(aten.rot90.default, (normal(3, 4), 2), why="a half"),
    Case(aten.rot90.default, (normal(2, 3, 4), -1, [1, 2]), why="a quarter back"),
    Case(aten.rot90.default, (normal(3, 4), 4), why="a whole"),
    Case(aten.pixel_shuffle.default, (normal(2, 12, 3, 4), 2), why="a batch", dynamic={0: (0, 2, 3)}),
    Case(aten.pixel_shuffle.default, (normal(9, 3, 4), 3), why="one image", dynamic={0: (1,)}),
    Case(aten.pixel_shuffle.default, (normal(2, 3, 8, 3, 4), 2), why="five axes", dynamic={0: (0, 3)}),
    Case(aten.pixel_shuffle.default, (ints(2, 8, 3, 4), 2), why="integers", dynamic=False),
    Case(aten.pixel_unshuffle.default, (normal(2, 3, 6, 4), 2), why="a batch", dynamic={0: (0,)}),
    Case(aten.pixel_unshuffle.default, (normal(2, 1, 6, 6), 3), why="one channel", dynamic={0: (0,)}),
    Case(aten.pixel_unshuffle.default, (normal(3, 6, 4), 2), why="one image", dynamic=False),
    Case(aten.pixel_unshuffle.default, (ints(2, 3, 6, 4), 2), why="integers", dynamic=False),
    Case(
        lambda x: torch.nn.functional.pixel_unshuffle(x, 2),
        (normal(2, 3, 6, 4),),
        why="pixel_unshuffle, all sizes free",
        second=(normal(3, 3, 4, 8),),
        dynamic={0: (0, 2, 3)},
    ),
    Case(aten.channel_shuffle.default, (normal(2, 6, 3), 3), why="three groups", dynamic={0: (0, 2)}),
    Case(torch.nn.ChannelShuffle(2), (normal(2, 6, 3, 4),), why="the module", dynamic={0: (0, 2, 3)}),
)
