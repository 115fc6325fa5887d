"""Shapes of whole recurrent operators, so that tracing does not unroll them.

torch knows the shape of `aten.lstm.input` only by running its steps one after the other, which fixes the length of the
sequence. Within `recurrent_shapes()` the operators' results are typed directly.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
_KEY = torch._C.DispatchKey.CompositeImplicitAutograd  # noqa: SLF001


def _padded(x: Tensor, hidden: Tensor, bidirectional: bool) -> Tensor:
    """(T, B, I) or (B, T, I), (L*D, B, H) -> (T, B, D*H) or (B, T, D*H)."""
    return hidden.new_empty([x.shape[0], x.shape[1], hidden.shape[-1] * (2 if bidirectional else 1)])


def _packed(data: Tensor, hidden: Tensor, bidirectional: bool) -> Tensor:
    """(N, I), (L*D, B, H) -> (N, D*H)."""
    return hidden.new_empty([data.shape[0], hidden.shape[-1] * (2 if bidirectional else 1)])


def _lstm(
    x: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    h, c = hx
    return _padded(x, h, bidirectional), torch.empty_like(h), torch.empty_like(c)


def _lstm_packed(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    h, c = hx
    return _packed(data, h, bidirectional), torch.empty_like(h), torch.empty_like(c)


def _rnn(
    x: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    return _padded(x, hx, bidirectional), torch.empty_like(hx)


def _rnn_packed(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor]:
    return _packed(data, hx, bidirectional), torch.empty_like(hx)


_SHAPES: dict[Any, Callable[..., Any]] = {
    aten.lstm.input: _lstm,
    aten.lstm.data: _lstm_packed,
    **dict.fromkeys((aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input), _rnn),
    **dict.fromkeys((aten.gru.data, aten.rnn_tanh.data, aten.rnn_relu.data), _rnn_packed),
}


@contextlib.contextmanager
def recurrent_shapes() -> Iterator[None]:
    """Within this context, fake tensors go through recurrent operators in one step."""
    before = {op: op.py_kernels.get(_KEY) for op in _SHAPES}
    for op, shapes in _SHAPES.items():
        op.py_kernels[_KEY] = shapes
        op._dispatch_cache.clear()  # noqa: SLF001
    try:
        yield
    finally:
        for op, kernel in before.items():
            if kernel is None:
                del op.py_kernels[_KEY]
            else:
                op.py_kernels[_KEY] = kernel
            op._dispatch_cache.clear()  # noqa: SLF001
