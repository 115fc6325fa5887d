"""torchvision's operators."""

from __future__ import annotations

import torch
import torchvision  # noqa: F401  its operators exist once it is imported

from fx2onnx.opset.cases import Case, ints, normal, uniform

ops = torch.ops.torchvision

IMAGES = normal(2, 3, 16, 12)
REGIONS = torch.tensor(
    [[0, 1, 1, 8, 9], [1, 0, 0, 15, 11], [0, -3, -2, 5, 20], [1, 4, 4, 4.2, 4.3], [0, 20, 20, 30, 33]]
)
FREE = {0: (0, 2, 3), 1: (0,)}


def boxes(count: int) -> torch.Tensor:
    """Boxes on a small raster, so that overlaps are often equal to the threshold."""
    corner, size = ints(count, 2, low=0, high=10), ints(count, 2, low=0, high=10)
    return torch.cat([corner, corner + size], 1).float()


def pooled(images: torch.Tensor, regions: torch.Tensor) -> torch.Tensor:
    """The maxima alone: where they lie is for the backward pass."""
    return ops.roi_pool(images, regions, 0.5, 4, 3)[0]  # type: ignore[no-any-return]


def deformable(
    why: str,
    *,
    groups: int = 1,
    offset_groups: int = 1,
    use_mask: bool = True,
    gap: str | None = None,
    opsets: tuple[int, ...] = (23,),
) -> Case:
    """A deformable convolution of 4 channels to 6, with strides and padding that differ by axis."""
    weight = normal(6, 4 // groups, 3, 2)
    offset, mask = normal(2, 12 * offset_groups, 8, 5), uniform(2, 6 * offset_groups, 8, 5)
    args = (
        normal(2, 4, 8, 9),
        weight,
        offset,
        mask,
        normal(6),
        1,
        2,
        1,
        1,
        1,
        2,
        groups,
        offset_groups,
        use_mask,
    )
    return Case(
        ops.deform_conv2d.default,
        args,
        why=why,
        dynamic={0: (0,), 2: (0,), 3: (0,)},
        rtol=1e-4,
        atol=1e-5,
        gap=gap,
        opsets=opsets,
    )


CASES = (
    *(
        Case(
            ops.nms.default,
            (boxes(30), ints(30, low=0, high=6).float(), threshold),
            why=f"an overlap of {threshold}",
            dynamic={0: (0,), 1: (0,)},
        )
        for threshold in (0.1, 0.3, 0.5, 0.7)
    ),
    Case(
        ops.nms.default,
        (torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 3]]), torch.tensor([1.0, 0.9]), 0.3),
        why="0.3 as a float is above 0.3",
        dynamic=False,
    ),
    Case(ops.nms.default, (boxes(1)[:0], normal(0), 0.5), why="no boxes", dynamic=False),
    *(
        Case(
            ops.roi_align.default,
            (IMAGES, REGIONS, 0.5, 4, 3, ratio, aligned),
            why=f"{ratio} samples, aligned={aligned}",
            opsets=(23, 18),
            dynamic=FREE,
            second=(normal(1, 3, 9, 20), REGIONS[:3] * torch.tensor([0, 1, 1, 1, 1])),
            rtol=1e-4,
            atol=1e-5,
        )
        for ratio in (-1, 2, 1)
        for aligned in (False, True)
    ),
    Case(
        ops.roi_align.default,
        (IMAGES, REGIONS[:0], 0.5, 4, 3, 2, True),
        why="no regions",
        opsets=(18,),
        dynamic=False,
    ),
    Case(
        ops.roi_align.default,
        (IMAGES.double(), REGIONS.double(), 0.5, 4, 3, 2, True),
        why="double",
        dynamic=False,
    ),
    Case(pooled, (IMAGES, REGIONS), why="maxima", opsets=(18,), dynamic=FREE),
    Case(pooled, (IMAGES, REGIONS), why="maxima in opset 22", opsets=(22,), dynamic=FREE, gap="onnxruntime"),
    deformable("with a mask"),
    deformable("without a mask", use_mask=False),
    deformable("groups of channels and of offsets", groups=2, offset_groups=2),
    deformable("in opset 18", opsets=(18,), gap="never"),
    Case(
        ops.ps_roi_align.default,
        (normal(1, 12, 8, 8), REGIONS[:1], 0.5, 2, 2, 2),
        why="position-sensitive",
        dynamic=False,
        gap="ours",
    ),
)
