"""Shapes of whole operators, so that tracing does not walk through what they are made of.

torch knows the shape of a composite operator by running its parts: `aten.lstm.input` step by step, which fixes the
length of the sequence, `aten.batch_norm` through a dozen calls. Within `whole_shapes()` the result is typed directly.
A shape function returns NotImplemented where the arguments are not of the plain kind (another dtype, sizes that do not
fit); torch then goes its own way, and says itself what is wrong.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp.decompositions import upsample_compute_output_size
from torch._prims_common import suggest_memory_format

aten = torch.ops.aten
_KEY = torch._C.DispatchKey.CompositeImplicitAutograd  # noqa: SLF001


# -- recurrent networks ------------------------------------------------------------------------------


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


# -- normalization -----------------------------------------------------------------------------------


def _batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    variance: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn: bool,
) -> Any:
    """(N, C, …) -> (N, C, …), in evaluation."""
    plain = not training and mean is not None and variance is not None and x.dim() >= 2
    plain = plain and x.is_floating_point()
    if not plain or not _are_vectors([weight, bias, mean, variance], x.shape[1]):
        return NotImplemented
    return torch.empty_like(x)


def _layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn: bool = True,
) -> Any:
    """(…, *normalized_shape) -> the same, contiguous."""
    rank = len(normalized_shape)
    fits = x.is_floating_point() and 0 < rank <= x.dim() and _are_same(x.shape[-rank:], normalized_shape)
    if not fits or not all(w is None or _are_same(w.shape, normalized_shape) for w in (weight, bias)):
        return NotImplemented
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn: bool = True,
) -> Any:
    """(N, C, …) -> (N, C, …)."""
    channels = x.shape[1] if x.is_floating_point() and x.dim() >= 2 else None
    if type(channels) is not int or channels % num_groups or not _are_vectors([weight, bias], channels):
        return NotImplemented
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _are_vectors(weights: Sequence[Tensor | None], length: Any) -> bool:
    return all(w is None or _are_same(w.shape, [length]) for w in weights)


def _are_same(sizes: Sequence[Any], others: Sequence[Any]) -> bool:
    """Are these the same numbers, without a question about free sizes?"""
    if len(sizes) != len(others):
        return False
    return all(type(a) is int and type(b) is int and a == b for a, b in zip(sizes, others, strict=True))


# -- pooling ------------------------------------------------------------------------------------------


def _max_pool1d(
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Any:
    """(N, C, L) -> (N, C, pooled), as one row of a plane; torch's own kernel fixes the length."""
    if x.dim() not in (2, 3):
        return NotImplemented
    strides = [1, *stride] if stride else []
    windows = [1, *kernel_size], strides, [0, *padding], [1, *dilation]
    return aten.max_pool2d.default(x.unsqueeze(-2), *windows, ceil_mode).squeeze(-2)


# -- products and resizing ---------------------------------------------------------------------------


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """(…, I), (O, I), (O,) -> (…, O)."""
    dtypes = {t.dtype for t in (x, weight, bias) if t is not None}
    plain = x.dim() >= 2 and weight.dim() == 2 and len(dtypes) == 1
    if not plain or not _are_same(x.shape[-1:], weight.shape[1:]):
        return NotImplemented
    if bias is not None and not _are_same(bias.shape, weight.shape[:1]):
        return NotImplemented
    return x.new_empty([*x.shape[:-1], weight.shape[0]])


def _resized(rank: int, x: Tensor, output_size: Any, *options: Any) -> Any:
    """(N, C, *sizes) -> (N, C, *others)."""
    if x.dim() != rank + 2 or not x.is_floating_point():
        return NotImplemented
    sizes = upsample_compute_output_size(x.shape, output_size, options[-1])  # type: ignore[no-untyped-call]
    made = x.new_empty([*x.shape[:2], *sizes])
    return made.to(memory_format=suggest_memory_format(x))


_RESIZING = {
    1: (aten.upsample_nearest1d, aten._upsample_nearest_exact1d, aten.upsample_linear1d),  # noqa: SLF001
    2: (
        *(aten.upsample_nearest2d, aten._upsample_nearest_exact2d),  # noqa: SLF001
        *(aten.upsample_bilinear2d, aten.upsample_bicubic2d),
    ),
    3: (aten.upsample_nearest3d, aten._upsample_nearest_exact3d, aten.upsample_trilinear3d),  # noqa: SLF001
}


_SHAPES: dict[Any, Callable[..., Any]] = {
    aten.lstm.input: _lstm,
    aten.lstm.data: _lstm_packed,
    **dict.fromkeys((aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input), _rnn),
    **dict.fromkeys((aten.gru.data, aten.rnn_tanh.data, aten.rnn_relu.data), _rnn_packed),
    aten.batch_norm.default: _batch_norm,
    aten.layer_norm.default: _layer_norm,
    aten.group_norm.default: _group_norm,
    aten.linear.default: _linear,
    aten.max_pool1d.default: _max_pool1d,
    **{op.vec: functools.partial(_resized, rank) for rank, family in _RESIZING.items() for op in family},
}


@contextlib.contextmanager
def whole_shapes() -> Iterator[None]:
    """Within this context, fake tensors go through the operators of this file in one step."""
    before = {op: op.py_kernels.get(_KEY) for op in _SHAPES}
    for op, shapes in _SHAPES.items():
        op.py_kernels[_KEY] = functools.partial(_typed, op, shapes, before[op])
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


def _typed(op: Any, shapes: Callable[..., Any], kernel: Any, *args: Any, **kwargs: Any) -> Any:
    made = shapes(*args, **kwargs)
    if made is not NotImplemented:
        return made
    return op._op_dk(_KEY, *args, **kwargs) if kernel is None else kernel(*args, **kwargs)  # noqa: SLF001
