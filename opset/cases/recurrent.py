"""Recurrent networks and cells."""

from __future__ import annotations

from typing import Any

import torch

from fx2onnx.opset.cases import Case, normal

aten = torch.ops.aten

HALF, BF16, F64 = torch.float16, torch.bfloat16, torch.float64


def lstm_input(*args: Any) -> tuple[torch.Tensor, ...]:
    """Traced as a model is: the operator alone has no shape function, and runs step by step."""
    return aten.lstm.input(*args)  # type: ignore[no-any-return]


def lstm_data(*args: Any) -> tuple[torch.Tensor, ...]:
    """See `lstm_input`."""
    return aten.lstm.data(*args)  # type: ignore[no-any-return]


def gru_data(*args: Any) -> tuple[torch.Tensor, ...]:
    """See `lstm_input`."""
    return aten.gru.data(*args)  # type: ignore[no-any-return]


def rnn_tanh_data(*args: Any) -> tuple[torch.Tensor, ...]:
    """See `lstm_input`."""
    return aten.rnn_tanh.data(*args)  # type: ignore[no-any-return]


def gru_input(*args: Any) -> tuple[torch.Tensor, ...]:
    """See `lstm_input`."""
    return aten.gru.input(*args)  # type: ignore[no-any-return]


def rnn_tanh_input(*args: Any) -> tuple[torch.Tensor, ...]:
    """See `lstm_input`."""
    return aten.rnn_tanh.input(*args)  # type: ignore[no-any-return]


def rnn_relu_input(*args: Any) -> tuple[torch.Tensor, ...]:
    """See `lstm_input`."""
    return aten.rnn_relu.input(*args)  # type: ignore[no-any-return]


FREE = {0: (0, 1), 1: (1,)}  # time and batch of the input, batch of the state
PACKED = {0: (0,), 1: (0,)}  # rows and steps
FREE_LSTM = {0: (0, 1), 1: (1,), 2: (1,)}


def weights(
    gates: int,
    *,
    layers: int = 1,
    directions: int = 1,
    bias: bool = True,
    projection: int = 0,
    width: int = 3,
    hidden: int = 4,
    dtype: torch.dtype = torch.float32,
) -> list[torch.Tensor]:
    """The flat parameters of a network."""
    made = []
    for layer in range(layers):
        columns = directions * (projection or hidden) if layer else width
        for _ in range(directions):
            made += [
                normal(gates * hidden, columns, dtype=dtype),
                normal(gates * hidden, projection or hidden, dtype=dtype),
            ]
            made += [normal(gates * hidden, dtype=dtype), normal(gates * hidden, dtype=dtype)] if bias else []
            made += [normal(projection, hidden, dtype=dtype)] if projection else []
    return made


def lstm(
    why: str,
    *,
    layers: int = 1,
    directions: int = 1,
    bias: bool = True,
    projection: int = 0,
    batch_first: bool = False,
    train: bool = False,
    dropout: float = 0.0,
    dtype: torch.dtype = torch.float32,
    gap: str | None = None,
) -> Case:
    """An LSTM of 4 hidden features over 5 steps of a batch of two."""
    count = layers * directions
    x = normal(*((2, 5) if batch_first else (5, 2)), 3, dtype=dtype)
    states = [normal(count, 2, projection or 4, dtype=dtype), normal(count, 2, 4, dtype=dtype)]
    params = weights(4, layers=layers, directions=directions, bias=bias, projection=projection, dtype=dtype)
    args = (x, states, params, bias, layers, dropout, train, directions == 2, batch_first)
    tolerance = {} if dtype != torch.float32 else {"rtol": 1e-4, "atol": 1e-5}
    return Case(lstm_input, args, why=why, dynamic=FREE_LSTM, gap=gap, **tolerance)


def one_state(
    target: object,
    gates: int,
    why: str,
    *,
    layers: int = 1,
    directions: int = 1,
    bias: bool = True,
    batch_first: bool = False,
    dtype: torch.dtype = torch.float32,
    gap: str | None = None,
) -> Case:
    """A GRU or RNN of 4 hidden features over 5 steps of a batch of two."""
    x = normal(*((2, 5) if batch_first else (5, 2)), 3, dtype=dtype)
    state = normal(layers * directions, 2, 4, dtype=dtype)
    params = weights(gates, layers=layers, directions=directions, bias=bias, dtype=dtype)
    args = (x, state, params, bias, layers, 0.0, False, directions == 2, batch_first)
    tolerance = {} if dtype != torch.float32 else {"rtol": 1e-4, "atol": 1e-5}
    return Case(target, args, why=why, dynamic=FREE, gap=gap, **tolerance)


def packed(*lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows and batch sizes of sequences of these lengths, longest first."""
    sizes = torch.tensor([sum(n > t for n in lengths) for t in range(lengths[0])])
    return normal(sum(lengths), 3), sizes


CASES = (
    lstm("plain"),
    lstm("batch first", batch_first=True),
    lstm("both directions", directions=2),
    lstm("both directions, batch first", directions=2, batch_first=True),
    lstm("three layers of both directions", layers=3, directions=2, batch_first=True),
    lstm("two layers, no bias", layers=2, bias=False),
    lstm("dropout between layers outside of training", layers=2, dropout=0.5),
    lstm("dropout between layers in training", layers=2, dropout=0.5, train=True, gap="never"),
    lstm("dropout of a single layer in training is none", dropout=0.5, train=True),
    lstm("half precision", dtype=HALF),
    lstm("bfloat16", dtype=BF16),
    lstm("double", dtype=F64, directions=2, gap="onnxruntime"),
    lstm("projected", projection=2),
    lstm(
        "projected, two layers of both directions, batch first",
        projection=2,
        layers=2,
        directions=2,
        batch_first=True,
    ),
    lstm("projected, no bias", projection=2, bias=False),
    one_state(gru_input, 3, "plain"),
    one_state(
        gru_input, 3, "two layers of both directions, batch first", layers=2, directions=2, batch_first=True
    ),
    one_state(gru_input, 3, "no bias", bias=False),
    one_state(gru_input, 3, "double", dtype=F64, gap="onnxruntime"),
    one_state(rnn_tanh_input, 1, "plain"),
    one_state(rnn_tanh_input, 1, "double", dtype=F64, gap="onnxruntime"),
    one_state(
        rnn_relu_input,
        1,
        "two layers of both directions, batch first",
        layers=2,
        directions=2,
        batch_first=True,
    ),
    one_state(rnn_relu_input, 1, "no bias", bias=False),
    Case(
        lstm_data,
        (
            *packed(5, 3, 1),
            [normal(2, 3, 4), normal(2, 3, 4)],
            weights(4, directions=2),
            True,
            1,
            0.0,
            False,
            True,
        ),
        why="packed, both directions",
        dynamic=PACKED,
        second=(*packed(4, 4, 2), normal(2, 3, 4), normal(2, 3, 4), *weights(4, directions=2)),
        rtol=1e-4,
        atol=1e-5,
    ),
    Case(
        gru_data,
        (*packed(4, 4, 2, 1), normal(2, 4, 4), weights(3, layers=2), True, 2, 0.0, False, False),
        why="packed, two layers",
        dynamic=PACKED,
        second=(*packed(6, 3, 3, 2), normal(2, 4, 4), *weights(3, layers=2)),
        rtol=1e-4,
        atol=1e-5,
    ),
    Case(
        rnn_tanh_data,
        (*packed(4, 2), normal(1, 2, 4), weights(1), True, 1, 0.0, False, False),
        why="packed",
        dynamic=PACKED,
        second=(*packed(3, 2), normal(1, 2, 4), *weights(1)),
        rtol=1e-4,
        atol=1e-5,
    ),
    Case(
        aten.lstm_cell.default,
        (normal(2, 3), [normal(2, 4), normal(2, 4)], *weights(4)),
        why="one step",
        dynamic={0: (0,), 1: (0,), 2: (0,)},
    ),
    Case(
        aten.lstm_cell.default,
        (normal(2, 3), [normal(2, 4), normal(2, 4)], *weights(4, bias=False)),
        why="one step, no bias",
        dynamic=False,
    ),
    Case(
        aten.gru_cell.default,
        (normal(2, 3), normal(2, 4), *weights(3)),
        why="one step",
        dynamic={0: (0,), 1: (0,)},
    ),
    Case(
        aten.rnn_tanh_cell.default,
        (normal(2, 3), normal(2, 4), *weights(1)),
        why="one step",
        dynamic={0: (0,), 1: (0,)},
    ),
    Case(
        aten.rnn_relu_cell.default,
        (normal(2, 3), normal(2, 4), *weights(1)),
        why="one step",
        dynamic={0: (0,), 1: (0,)},
    ),
)
