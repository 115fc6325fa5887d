"""Interpolation."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, ints, normal

aten = torch.ops.aten

SPACE = {0: (0, 2, 3)}
HALF, BF16, F64 = torch.float16, torch.bfloat16, torch.float64
LOOSE = {"rtol": 1e-4, "atol": 1e-5}


def to_size_of(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Nearest places, to the size of another image."""
    return aten.upsample_nearest2d.vec(x, list(like.shape[2:]), None)  # type: ignore[no-any-return]


def exactly_to_size_of(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Nearest middles, to the size of another image."""
    return aten._upsample_nearest_exact2d.vec(x, list(like.shape[2:]), None)  # type: ignore[no-any-return]


def mixed_to_size_of(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Bilinear, to the size of another image."""
    return aten.upsample_bilinear2d.vec(x, list(like.shape[2:]), False, None)  # type: ignore[no-any-return]


def down_and_up(x: torch.Tensor) -> torch.Tensor:
    """As in a U-Net: halved, and brought to the size of before."""
    half = aten.max_pool2d.default(x, [2, 2])
    return aten.upsample_nearest2d.vec(half, list(x.shape[2:]), None)  # type: ignore[no-any-return]


CASES = (
    # -- nearest
    Case(aten.upsample_nearest2d.vec, (normal(2, 3, 4, 5), None, [2.0, 2.0]), why="twice", dynamic=SPACE),
    Case(
        aten.upsample_nearest2d.vec,
        (normal(2, 3, 4, 5), None, [3.0, 1.5]),
        why="scales by axis",
        dynamic=SPACE,
    ),
    Case(aten.upsample_nearest2d.vec, (normal(2, 3, 8, 9), None, [0.5, 0.25]), why="smaller", dynamic=SPACE),
    Case(
        aten.upsample_nearest2d.vec,
        (normal(2, 3, 8, 10), None, [0.7, 0.29]),
        why="scales that float32 lacks",
        dynamic=SPACE,
    ),
    Case(
        aten.upsample_nearest2d.vec,
        (normal(1, 1, 8, 7), None, [1.25, 2.05]),
        why="scales that are ignored where sizes stay or double",
        second=(normal(1, 1, 3, 2),),
        dynamic=SPACE,
    ),
    Case(
        aten.upsample_nearest2d.vec,
        (normal(1, 1, 2, 3), None, [41.0, 1.0]),
        why="41 * (1/41) is below 1",
        dynamic=SPACE,
    ),
    Case(aten.upsample_nearest2d.vec, (normal(2, 3, 4, 5), [7, 13], None), why="sizes", dynamic={0: (0,)}),
    Case(
        aten.upsample_nearest2d.vec,
        (normal(1, 1, 2, 5), [82, 5], None),
        why="sizes: 41 * (2/82) is below 1",
        dynamic=False,
    ),
    Case(
        aten.upsample_nearest2d.vec,
        (normal(2, 3, 4, 5), [7, 13], None),
        why="sizes from free ones",
        dynamic=SPACE,
    ),
    Case(
        to_size_of,
        (normal(2, 3, 4, 5), normal(1, 1, 9, 12)),
        why="free sizes",
        dynamic={0: (2, 3), 1: (2, 3)},
    ),
    Case(
        down_and_up,
        (normal(2, 3, 8, 10),),
        why="one Resize, its free sizes are near twice",
        second=(normal(1, 3, 13, 15),),
    ),
    Case(
        aten.upsample_nearest2d.vec,
        (ints(2, 3, 4, 5, low=0, high=255, dtype=torch.uint8), None, [2.0, 3.0]),
        why="uint8",
        dynamic=SPACE,
    ),
    Case(
        aten.upsample_nearest2d.vec,
        (normal(2, 3, 4, 5, dtype=HALF), None, [2.0, 3.0]),
        why="half precision",
        dynamic=SPACE,
    ),
    Case(
        aten.upsample_nearest2d.vec,
        (normal(2, 3, 4, 5, dtype=BF16), None, [2.0, 3.0]),
        why="bfloat16",
        dynamic=SPACE,
    ),
    Case(
        aten.upsample_nearest2d.vec,
        (normal(2, 3, 4, 5, dtype=F64), None, [2.0, 3.0]),
        why="double",
        dynamic=SPACE,
    ),
    Case(aten.upsample_nearest2d.vec, (normal(2, 3, 4, 5), [4, 5], None), why="nothing to do", dynamic=False),
    Case(
        aten.upsample_nearest2d.default,
        (normal(2, 3, 4, 5), [7, 10], 1.75, 2.0),
        why="with scales",
        dynamic={0: (0,)},
    ),
    Case(aten.upsample_nearest1d.vec, (normal(2, 3, 5), None, [2.0]), why="one axis", dynamic={0: (0, 2)}),
    Case(aten.upsample_nearest1d.default, (normal(2, 3, 5), [9]), why="one axis, a size", dynamic={0: (0,)}),
    Case(
        aten.upsample_nearest3d.vec,
        (normal(1, 2, 3, 4, 5), None, [2.0, 1.5, 3.0]),
        why="three axes",
        dynamic={0: (2, 3, 4)},
    ),
    *(
        Case(aten._upsample_nearest_exact2d.vec, args, why=f"exact: {why}", dynamic=dynamic)
        for why, args, dynamic in (
            ("twice", (normal(2, 3, 4, 5), None, [2.0, 2.0]), SPACE),
            ("smaller", (normal(2, 3, 8, 9), None, [0.5, 0.7]), SPACE),
            ("sizes", (normal(2, 3, 4, 5), [7, 13], None), {0: (0,)}),
            ("20.5 * (2/41) is below 1", (normal(1, 3, 2, 5), [41, 5], None), False),
            ("a third", (normal(2, 3, 12, 15), [4, 5], None), {0: (0,)}),
        )
    ),
    Case(
        exactly_to_size_of,
        (normal(2, 3, 4, 5), normal(1, 1, 9, 12)),
        why="free sizes",
        dynamic={0: (2, 3), 1: (2, 3)},
    ),
    Case(
        aten._upsample_nearest_exact1d.default,
        (normal(2, 3, 5), [9]),
        why="exact: one axis",
        dynamic={0: (0,)},
    ),
    Case(
        aten._upsample_nearest_exact3d.vec,
        (normal(1, 2, 3, 4, 5), None, [2.0, 2.0, 2.0]),
        why="exact: three axes",
        dynamic={0: (2, 3, 4)},
    ),
    # -- linear and cubic
    *(
        Case(target, args, why=f"{why}, align_corners={args[2]}", dynamic=dynamic, rtol=1e-4, atol=1e-4)
        for target in (aten.upsample_bilinear2d.vec, aten.upsample_bicubic2d.vec)
        for why, args, dynamic in (
            ("twice", (normal(2, 3, 4, 5), None, False, [2.0, 2.0]), SPACE),
            ("twice", (normal(2, 3, 4, 5), None, True, [2.0, 2.0]), SPACE),
            ("scales that float32 lacks", (normal(2, 3, 8, 10), None, False, [0.7, 1.3]), SPACE),
            ("scales that float32 lacks", (normal(2, 3, 8, 10), None, True, [0.7, 1.3]), SPACE),
            ("a size that float32 would miss", (normal(1, 1, 100, 4), None, False, [0.29, 1.0]), False),
            ("sizes", (normal(2, 3, 4, 5), [7, 13], False, None), SPACE),
            ("sizes", (normal(2, 3, 4, 5), [7, 13], True, None), SPACE),
            ("smaller", (normal(2, 3, 9, 8), [4, 3], False, None), SPACE),
            ("to one place", (normal(2, 3, 4, 5), [1, 1], False, None), SPACE),
            ("to one place", (normal(2, 3, 4, 5), [1, 1], True, None), SPACE),
            ("from one place", (normal(2, 3, 1, 1), [4, 3], False, None), {0: (0,)}),
            ("from one place", (normal(2, 3, 1, 1), [4, 3], True, None), {0: (0,)}),
            ("a scale that is not the ratio", (normal(2, 3, 5, 7), None, False, [1.5, 1.25]), SPACE),
        )
    ),
    Case(
        mixed_to_size_of,
        (normal(2, 3, 4, 5), normal(1, 1, 9, 12)),
        why="bilinear",
        dynamic={0: (2, 3), 1: (2, 3)},
        **LOOSE,
    ),
    Case(
        aten.upsample_bilinear2d.default,
        (normal(2, 3, 4, 5), [6, 8], False, 1.5, 1.7),
        why="with scales",
        dynamic={0: (0,)},
        **LOOSE,
    ),
    Case(
        aten.upsample_bilinear2d.vec,
        (normal(2, 3, 4, 5, dtype=HALF), None, False, [2.0, 2.0]),
        why="half precision",
        dynamic=SPACE,
    ),
    Case(
        aten.upsample_bilinear2d.vec,
        (normal(2, 3, 4, 5, dtype=BF16), None, False, [2.0, 2.0]),
        why="bfloat16",
        dynamic=SPACE,
    ),
    Case(
        aten.upsample_bilinear2d.vec,
        (normal(2, 3, 4, 5, dtype=F64), None, False, [2.0, 2.0]),
        why="double",
        dynamic=SPACE,
        gap="onnxruntime",
    ),
    Case(
        aten.upsample_bilinear2d.vec,
        (ints(2, 3, 4, 5, low=0, high=255, dtype=torch.uint8), None, False, [2.0, 2.0]),
        why="uint8 in fixed point",
        dynamic=SPACE,
        gap="never",
    ),
    Case(
        aten.upsample_linear1d.vec,
        (normal(2, 3, 5), None, False, [2.0]),
        why="one axis",
        dynamic={0: (0, 2)},
        **LOOSE,
    ),
    Case(
        aten.upsample_linear1d.default,
        (normal(2, 3, 5), [9], True),
        why="one axis, a size",
        dynamic={0: (0, 2)},
        **LOOSE,
    ),
    Case(
        aten.upsample_trilinear3d.vec,
        (normal(1, 2, 3, 4, 5), None, False, [2.0, 1.5, 2.0]),
        why="three axes",
        dynamic={0: (2, 3, 4)},
        **LOOSE,
    ),
    Case(
        aten.upsample_trilinear3d.vec,
        (normal(2, 2, 3, 4, 5), [5, 3, 7], True, None),
        why="three axes, sizes",
        dynamic={0: (0,)},
        **LOOSE,
    ),
    # -- with antialiasing
    *(
        Case(target, args, why=f"{why}, align_corners={args[2]}", dynamic=dynamic, **LOOSE)
        for target in (aten._upsample_bilinear2d_aa.vec, aten._upsample_bicubic2d_aa.vec)
        for why, args, dynamic in (
            ("smaller", (normal(2, 3, 12, 15), [5, 4], False, None), SPACE),
            ("smaller by scales", (normal(2, 3, 12, 15), None, False, [0.5, 0.3]), SPACE),
            ("larger", (normal(2, 3, 4, 5), [7, 13], False, None), SPACE),
        )
    ),
    Case(
        aten._upsample_lanczos2d_aa.default, (normal(2, 3, 12, 15), [5, 4], False), why="Lanczos", gap="never"
    ),
)
