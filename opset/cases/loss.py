"""Loss functions, which PyTorch's own decompositions write out."""

from __future__ import annotations

from typing import Any

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, uniform

aten = torch.ops.aten

SCORES, CLASSES, WEIGHTS = normal(6, 5), torch.tensor([1, 4, 0, 0, 2, 3]), uniform(5)
IGNORING = torch.tensor([1, -100, 0, 2, -100, 3])
IMAGES, LABELS = normal(2, 5, 3, 4), ints(2, 3, 4, low=0, high=5)
BATCH, IMAGE = {0: (0,), 1: (0,)}, {0: (0, 2, 3), 1: (0, 1, 2)}
LOOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}
REDUCTIONS = ("none", "mean", "sum")


def of_pairs(
    target: Any, left: torch.Tensor, right: torch.Tensor, *settings: Any, why: str = ""
) -> list[Case]:
    """A loss of two tensors under all three reductions."""
    return [
        Case(target, (left, right, *settings, reduction), why=f"{why}{REDUCTIONS[reduction]}", **LOOSE)
        for reduction in range(3)
    ]


CASES = (
    *(
        Case(
            aten.cross_entropy_loss.default,
            (SCORES, CLASSES, weight, reduction),
            why=why,
            dynamic=BATCH,
            **LOOSE,
        )
        for weight, reduction, why in (
            (None, 0, "of each"),
            (None, 1, "mean"),
            (None, 2, "sum"),
            (WEIGHTS, 0, "weighted, of each"),
            (WEIGHTS, 1, "weighted mean: over the weights"),
        )
    ),
    Case(aten.cross_entropy_loss.default, (SCORES, IGNORING), why="some are ignored", dynamic=BATCH, **LOOSE),
    Case(
        aten.cross_entropy_loss.default,
        (SCORES, CLASSES, None, 1, -100, 0.1),
        why="smoothed",
        dynamic=BATCH,
        **LOOSE,
    ),
    Case(
        aten.cross_entropy_loss.default,
        (SCORES, CLASSES, WEIGHTS, 1, 2, 0.1),
        why="smoothed, weighted, one ignored",
        dynamic=BATCH,
        **LOOSE,
    ),
    Case(aten.cross_entropy_loss.default, (SCORES, SCORES.softmax(-1)), why="by probabilities", **LOOSE),
    Case(aten.cross_entropy_loss.default, (IMAGES, LABELS), why="images", dynamic=IMAGE, **LOOSE),
    Case(
        aten.cross_entropy_loss.default, (normal(5), torch.tensor(3)), why="no batch", dynamic=False, **LOOSE
    ),
    Case(aten.nll_loss_nd.default, (SCORES, CLASSES, WEIGHTS), why="weighted", dynamic=BATCH, **LOOSE),
    Case(aten.nll_loss_nd.default, (IMAGES, LABELS, None, 0), why="images, of each", dynamic=IMAGE, **LOOSE),
    Case(
        aten.nll_loss_forward.default,
        (SCORES, CLASSES, WEIGHTS, 1, 2),
        why="with the total weight",
        dynamic=BATCH,
        **LOOSE,
    ),
    *of_pairs(aten.mse_loss.default, normal(3, 4), normal(3, 4)),
    *of_pairs(aten.l1_loss.default, normal(3, 4), normal(3, 4)),
    *of_pairs(aten.binary_cross_entropy.default, uniform(3, 4), uniform(3, 4), None),
    *of_pairs(aten.binary_cross_entropy.default, uniform(3, 4), uniform(3, 4), uniform(4), why="weighted, "),
    *of_pairs(aten.binary_cross_entropy_with_logits.default, normal(3, 4), uniform(3, 4), None, None),
    *of_pairs(
        aten.binary_cross_entropy_with_logits.default,
        normal(3, 4),
        uniform(3, 4),
        uniform(4),
        uniform(4),
        why="weighted, ",
    ),
    *of_pairs(aten.kl_div.default, normal(3, 4), uniform(3, 4)),
    Case(
        aten.kl_div.default,
        (normal(3, 4), normal(3, 4), 1),
        {"log_target": True},
        why="of logarithms",
        **LOOSE,
    ),
    *(
        Case(
            target,
            (normal(3, 4), normal(3, 4), reduction, setting),
            why=f"{REDUCTIONS[reduction]}, {setting}",
            **LOOSE,
        )
        for target in (aten.smooth_l1_loss.default, aten.huber_loss.default)
        for reduction in range(3)
        for setting in (1.0, 0.3)
    ),
    *of_pairs(aten.soft_margin_loss.default, normal(3, 4), bools(3, 4).float() * 2 - 1),
    Case(
        aten.hinge_embedding_loss.default,
        (normal(3, 4), bools(3, 4).float() * 2 - 1, 1.0),
        why="mean",
        **LOOSE,
    ),
    Case(
        aten.margin_ranking_loss.default,
        (normal(6), normal(6), bools(6).float() * 2 - 1, 0.2),
        why="mean",
        **LOOSE,
    ),
    Case(
        aten.cosine_embedding_loss.default,
        (normal(6, 4), normal(6, 4), bools(6).float() * 2 - 1, 0.2),
        why="mean",
        **LOOSE,
    ),
    Case(aten.triplet_margin_loss.default, (normal(6, 4), normal(6, 4), normal(6, 4)), why="mean", **LOOSE),
    Case(
        aten.triplet_margin_loss.default,
        (normal(6, 4), normal(6, 4), normal(6, 4), 1.0, 2.0, 1e-6, True),
        why="swapped",
        **LOOSE,
    ),
    Case(aten.multi_margin_loss.default, (SCORES, CLASSES), why="mean", dynamic=BATCH, **LOOSE),
    Case(
        aten.multilabel_margin_loss.default,
        (normal(2, 4), torch.tensor([[3, 0, -1, 1], [2, -1, 0, 0]])),
        why="mean",
        dynamic=BATCH,
        **LOOSE,
    ),
    Case(
        aten.poisson_nll_loss.default,
        (normal(3, 4), uniform(3, 4), True, True, 1e-8, 1),
        why="full",
        **LOOSE,
    ),
)
