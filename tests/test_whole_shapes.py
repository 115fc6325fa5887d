"""Shapes of whole operators: what torch finds out by running their parts, errors included."""

from __future__ import annotations

import pytest
import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from fx2onnx.whole_shapes import _SHAPES, whole_shapes


def fake_result(function):
    """The size, strides and dtype of a function's result over fake tensors, or the class of its error."""
    with FakeTensorMode(), enable_python_dispatcher():
        try:
            made = function()
        except (RuntimeError, ValueError, NotImplementedError) as error:
            return type(error)
    return made.shape, made.stride(), made.dtype


def image(n=2, c=6, h=5, w=7, **options):
    return torch.empty(n, c, h, w, **options)


def channels_last():
    return image().to(memory_format=torch.channels_last)


def vector(size=6, **options):
    return torch.empty(size, **options)


CASES = {
    "batch_norm": lambda: F.batch_norm(image(), vector(), vector(), vector(), vector()),
    "batch_norm, no weights": lambda: F.batch_norm(image(), vector(), vector()),
    "batch_norm, channels last": lambda: F.batch_norm(
        channels_last(), vector(), vector(), vector(), vector()
    ),
    "batch_norm, training": lambda: F.batch_norm(image(), vector(), vector(), training=True),
    "batch_norm, half": lambda: F.batch_norm(image(dtype=torch.float16), vector(), vector()),
    "batch_norm, rows": lambda: F.batch_norm(torch.empty(3, 6), vector(), vector()),
    "batch_norm, transposed": lambda: F.batch_norm(torch.empty(6, 3).t(), vector(), vector()),
    "batch_norm, wrong size": lambda: F.batch_norm(image(), vector(5), vector(5)),
    "layer_norm": lambda: F.layer_norm(image(), (5, 7), torch.empty(5, 7), torch.empty(5, 7)),
    "layer_norm, no weights": lambda: F.layer_norm(image(), (7,)),
    "layer_norm, transposed": lambda: F.layer_norm(image().transpose(1, 2), (7,)),
    "layer_norm, channels last": lambda: F.layer_norm(channels_last(), (6, 5, 7)),
    "layer_norm, wrong size": lambda: F.layer_norm(image(), (8,)),
    "layer_norm, wrong weight": lambda: F.layer_norm(image(), (7,), vector(6)),
    "batch_norm, integers": lambda: F.batch_norm(image(dtype=torch.int64), vector(), vector()),
    "group_norm, integers": lambda: F.group_norm(image(dtype=torch.int64), 3),
    "layer_norm, integers": lambda: F.layer_norm(image(dtype=torch.int64), (7,)),
    "group_norm": lambda: F.group_norm(image(), 3, vector(), vector()),
    "group_norm, channels last": lambda: F.group_norm(channels_last(), 3, vector(), vector()),
    "group_norm, wrong groups": lambda: F.group_norm(image(), 4),
    "group_norm, wrong weight": lambda: F.group_norm(image(), 3, vector(5)),
    "max_pool1d": lambda: F.max_pool1d(torch.empty(2, 3, 11), 3),
    "max_pool1d, all options": lambda: F.max_pool1d(torch.empty(3, 11), 3, 2, 1, 2, ceil_mode=True),
    "max_pool1d, too large": lambda: F.max_pool1d(torch.empty(2, 3, 4), 5),
    "linear": lambda: F.linear(torch.empty(2, 3, 6), torch.empty(4, 6), vector(4)),
    "linear, matrix": lambda: F.linear(torch.empty(3, 6), torch.empty(4, 6)),
    "linear, vector": lambda: F.linear(vector(), torch.empty(4, 6)),
    "linear, transposed": lambda: F.linear(
        torch.empty(2, 6, 3).transpose(1, 2), torch.empty(4, 6), vector(4)
    ),
    "linear, permuted": lambda: F.linear(torch.empty(3, 5, 2, 6).permute(2, 0, 1, 3), torch.empty(4, 6)),
    "linear, transposed weight": lambda: F.linear(torch.empty(2, 3, 6), torch.empty(6, 4).t(), vector(4)),
    "linear, wrong size": lambda: F.linear(torch.empty(2, 3, 5), torch.empty(4, 6)),
    "linear, wrong bias": lambda: F.linear(torch.empty(2, 3, 6), torch.empty(4, 6), vector(5)),
    "linear, two dtypes": lambda: F.linear(torch.empty(2, 6), torch.empty(4, 6, dtype=torch.float64)),
    "nearest": lambda: F.interpolate(image(), scale_factor=2),
    "nearest, channels last": lambda: F.interpolate(channels_last(), scale_factor=2),
    "nearest-exact": lambda: F.interpolate(image(), size=(3, 4), mode="nearest-exact"),
    "bilinear": lambda: F.interpolate(image(), scale_factor=(1.5, 0.7), mode="bilinear"),
    "bicubic": lambda: F.interpolate(image(), size=(9, 9), mode="bicubic", align_corners=True),
    "linear resize": lambda: F.interpolate(torch.empty(2, 3, 8), scale_factor=3, mode="linear"),
    "trilinear": lambda: F.interpolate(torch.empty(1, 2, 3, 4, 5), size=(4, 4, 4), mode="trilinear"),
    "bytes": lambda: F.interpolate(image(dtype=torch.uint8), scale_factor=2),
}


@pytest.mark.parametrize("name", CASES)
def test_what_torch_says(name):
    expected = fake_result(CASES[name])
    with whole_shapes():
        assert fake_result(CASES[name]) == expected


def test_the_operators_are_left_as_they_were():
    before = {op: dict(op.py_kernels) for op in _SHAPES}
    with whole_shapes():
        assert all(op.py_kernels != before[op] for op in _SHAPES)
    assert {op: dict(op.py_kernels) for op in _SHAPES} == before
