"""Whole models at sizes that hypothesis draws: the exported model is eager PyTorch at each of them."""

from __future__ import annotations

import functools

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

import fx2onnx
from benchmarks.models import MODELS
from fx2onnx.errors import Fx2OnnxError
from fx2onnx.verify import _resized, verify


class Chunks(nn.Module):
    """Python control flow over sizes: padding to a multiple, windows, their statistics, and a cut back."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)
        self.norm = nn.LayerNorm(6)

    def forward(self, x, *, scale):
        batch, length, width = x.shape
        padded = nn.functional.pad(x, (0, 0, 0, -length % 4))
        windows = padded.view(batch, -1, 4, width)
        mixed = windows + self.inner(windows.mean(2, keepdim=True)).softmax(-1)
        mixed = torch.cat([mixed, mixed.flip(2)], dim=2)[:, :, 1:5]
        out = self.norm(mixed.reshape(batch, -1, width)[:, :length] * scale)
        return {"out": out, "last": out[:, -1], "half": out[:, : length // 2 + 1].cumsum(1)}


def chunks():
    torch.manual_seed(0)
    model = Chunks().eval()
    options = {"scale": torch.tensor(0.5)}
    sizes = {"x": {0: "batch", 1: "length"}, "scale": None}
    return fx2onnx.export(model, (torch.randn(2, 7, 6),), options, dynamic_shapes=sizes)


@functools.cache
def exported(name: str) -> fx2onnx.OnnxProgram:
    """A model, exported once."""
    if name == "chunks":
        return chunks()
    subject = MODELS[name]()
    return fx2onnx.export(subject.model, *subject.inputs, dynamic_shapes=subject.dynamic_shapes)


SMALLEST = {"unet": 8}  # sizes below which the PyTorch model itself raises


@pytest.mark.parametrize(
    "name", ["chunks", "lstm", "gru", "transformer_encoder", "multihead_attention", "unet"]
)
def test_a_model_is_eager_pytorch_at_random_sizes(name):
    program = exported(name)
    names = sorted(program.sizes(program.feeds(program.args, program.kwargs)))
    low = SMALLEST.get(name, 1)

    @settings(max_examples=15, deadline=None, derandomize=True, database=None)
    @given(
        sizes=st.fixed_dictionaries({n: st.integers(1 if n == "batch" else low, 33) for n in names}),
        seed=st.integers(0, 99),
    )
    def check(sizes, seed):
        inputs = _resized(program, program.args, program.kwargs, sizes, seed)
        assume(inputs is not None)  # the example's own sizes, or not what the model needs
        assert verify(program, *inputs, other_sizes=False).checks

    check()


def test_sizes_that_a_relation_excludes_are_refused():
    def forward(x):
        return x + 1 if x.shape[0] > 3 else x - 1

    program = fx2onnx.export(forward, (torch.randn(5),), dynamic_shapes=({0: "n"},))
    for size in range(1, 9):
        if size > 3:
            assert torch.equal(program(torch.ones(size)), torch.full((size,), 2.0))
        else:
            with pytest.raises(Fx2OnnxError, match="needs n > 3"):
                program(torch.ones(size))
