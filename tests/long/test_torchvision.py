"""Every classification model of torchvision: eager PyTorch at three batch sizes. Long: `make test-long` runs it."""

from __future__ import annotations

import pytest
import torch
import torchvision

import fx2onnx

NAMES = torchvision.models.list_models(module=torchvision.models)
SIZES = {"inception_v3": 299, "vit_h_14": 224}  # where the model takes no other
SMALL = ("swin", "maxvit", "vit")  # these fix the size of the image


def image_size(name: str) -> int:
    """The smallest image that says all about a model."""
    return SIZES.get(name, 224 if name.startswith(SMALL) else 96)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_classification_model(name):
    torch.manual_seed(0)
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    model = torchvision.models.get_model(name, weights=None, **options).eval()
    size = image_size(name)
    x = torch.randn(2, 3, size, size)
    program = fx2onnx.export(model, (x,), dynamic_shapes=({0: "batch"},))
    report = program.verify()
    assert [c.sizes["batch"] for c in report.checks] == [2, 1, 3]
