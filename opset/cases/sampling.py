"""Grid sampling and affine grids."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, normal, uniform, values

aten = torch.ops.aten

IMAGE, GRID = normal(2, 3, 5, 6), uniform(2, 4, 7, 2, low=-1.3, high=1.3)
BLOCK, GRID_3D = normal(1, 2, 3, 4, 5), uniform(1, 2, 3, 4, 3, low=-1.3, high=1.3)
FREE = {0: (0, 2, 3), 1: (0, 1, 2)}
MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")

CASES = (
    *(
        Case(
            aten.grid_sampler_2d.default,
            (IMAGE, GRID, mode, padding, aligned),
            why=f"{MODES[mode]}, {PADDINGS[padding]}, align_corners={aligned}",
            dynamic=FREE,
            opsets=(23, 18) if padding == 0 else (23,),
            rtol=1e-4,
            atol=1e-5,
        )
        for mode in range(3)
        for padding in range(3)
        for aligned in (False, True)
    ),
    Case(
        aten.grid_sampler_2d.default,
        (
            normal(1, 1, 1, 5),
            values(-1, -0.5, 0, 0.5, 1, 0.25).view(1, 1, 6, 1).repeat(1, 1, 1, 2) * 1.0,
            1,
            0,
            True,
        ),
        why="halfway between two places",
        dynamic=False,
    ),
    *(
        Case(
            aten.grid_sampler_3d.default,
            (BLOCK, GRID_3D, mode, padding, False),
            why=f"{MODES[mode]}, {PADDINGS[padding]}",
            dynamic={0: (2, 3, 4), 1: (1, 2, 3)},
            rtol=1e-4,
            atol=1e-5,
        )
        for mode in range(2)
        for padding in range(3)
    ),
    Case(
        aten.grid_sampler_3d.default,
        (BLOCK, GRID_3D, 0, 0, False),
        why="with depth in opset 18",
        opsets=(18,),
        dynamic=False,
        gap="never",
    ),
    Case(
        aten.grid_sampler.default,
        (IMAGE, GRID, 0, 0, False),
        why="of any depth",
        dynamic=FREE,
        rtol=1e-4,
        atol=1e-5,
    ),
    Case(
        aten.grid_sampler_2d.default, (IMAGE.double(), GRID.double(), 0, 0, False), why="double", dynamic=FREE
    ),
    Case(
        aten.grid_sampler_2d.default,
        (IMAGE.bfloat16(), GRID.bfloat16(), 0, 0, False),
        why="bfloat16, which PyTorch also computes in",
        dynamic=FREE,
        atol=0.1,
    ),
    *(
        Case(
            aten.affine_grid_generator.default,
            (normal(2, 2, 3), [2, 3, 4, 5], aligned),
            why=f"a plane, align_corners={aligned}",
            dynamic=False,
            opsets=(23, 18),
            atol=1e-5,
        )
        for aligned in (False, True)
    ),
    *(
        Case(
            aten.affine_grid_generator.default,
            (normal(2, 3, 4), [2, 3, 4, 5, 6], aligned),
            why=f"a block, align_corners={aligned}",
            dynamic=False,
            opsets=(23, 18),
            atol=1e-5,
        )
        for aligned in (False, True)
    ),
    Case(
        aten.affine_grid_generator.default,
        (normal(2, 2, 3).double(), [2, 3, 4, 5], False),
        why="double",
        dynamic=False,
    ),
)
