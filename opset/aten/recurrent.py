"""LSTM, GRU and RNN: one ONNX node for each layer, and the cells of one step.

    input (T, N, I) or (N, T, I), states (layers*D, N, H) -> output (T, N, D*H) or (N, T, D*H), states (layers*D, N, H)

D is 2 for bidirectional networks. ONNX orders the gates of a weight differently (`Cell.gates`); one Gather brings the
rows of PyTorch's weights, of both directions joined, into that order.

Packed sequences are laid out (T, N, I) again, run with their lengths, and packed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, shape_of
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.rules import Rule, Target, lowers

aten = torch.ops.aten


@dataclass(frozen=True)
class Cell:
    """One kind of recurrence.

    Attributes:
        op_type: the ONNX operator.
        gates: ONNX's gates by their place in PyTorch's weights.
        states: how many tensors are handed from step to step.
        attributes: of the ONNX node, by direction where they are lists.
    """

    op_type: str
    gates: tuple[int, ...]
    states: int
    attributes: dict[str, Any] = field(default_factory=dict)


LSTM = Cell("LSTM", (0, 3, 1, 2), 2)  # PyTorch i f g o, ONNX i o f c
GRU = Cell("GRU", (1, 0, 2), 1, {"linear_before_reset": 1})  # PyTorch r z n, ONNX z r h
RNN_TANH = Cell("RNN", (0,), 1, {"activations": ["Tanh"]})
RNN_RELU = Cell("RNN", (0,), 1, {"activations": ["Relu"]})


class Weights(NamedTuple):
    """What one direction of one layer has: (G*H, I), (G*H, H or P), (G*H,) twice, and the projection (P, H)."""

    input: ir.Value
    state: ir.Value
    input_bias: ir.Value | None
    state_bias: ir.Value | None
    projection: ir.Value | None


@dataclass(frozen=True)
class Network:
    """A stack of layers.

    Attributes:
        layers: the weights of each layer, by direction.
        lengths: (N,) int32, how many steps each sequence has; all T where None.
    """

    cell: Cell
    layers: tuple[tuple[Weights, ...], ...]
    lengths: ir.Value | None = None


# -- padded sequences ------------------------------------------------------------------------------------


@lowers(aten.lstm.input)
def lstm(
    op: OpBuilder,
    input: Value,
    hx: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[ir.Value, ...]:
    """(T, N, I), (L*D, N, P), (L*D, N, H) -> (T, N, D*P), (L*D, N, P), (L*D, N, H); P is H without projection."""
    _refuse_dropout(dropout, num_layers, train)
    network = Network(LSTM, _layers(params, has_biases, num_layers, bidirectional, _is_projected(hx)))
    return _padded(op, network, input, list(hx), batch_first)


def _padded_rule(cell: Cell, target: Target) -> Rule:
    """The rule of a recurrence with one state."""

    @lowers(target)
    def recurrence(
        op: OpBuilder,
        input: Value,
        hx: Value,
        params: Sequence[Value],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[ir.Value, ...]:
        """(T, N, I), (L*D, N, H) -> (T, N, D*H), (L*D, N, H)."""
        _refuse_dropout(dropout, num_layers, train)
        network = Network(cell, _layers(params, has_biases, num_layers, bidirectional, projected=False))
        return _padded(op, network, input, [hx], batch_first)

    return recurrence


PADDED = (
    _padded_rule(GRU, aten.gru.input),
    _padded_rule(RNN_TANH, aten.rnn_tanh.input),
    _padded_rule(RNN_RELU, aten.rnn_relu.input),
)


def _padded(
    op: OpBuilder, network: Network, x: ir.Value, states: list[ir.Value], batch_first: bool
) -> tuple[ir.Value, ...]:
    if batch_first:
        x = op.Transpose(x, perm=[1, 0, 2])
    made, finals = _run(op, network, x, states)
    return _joined(op, made, network, batch_first=batch_first), *finals


# -- packed sequences ------------------------------------------------------------------------------------


@lowers(aten.lstm.data)
def lstm_packed(
    op: OpBuilder,
    data: Value,
    batch_sizes: Value,
    hx: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[ir.Value, ...]:
    """(R, I), (T,), (L*D, N, P), (L*D, N, H) -> (R, D*P), (L*D, N, P), (L*D, N, H), R rows of all steps."""
    _refuse_dropout(dropout, num_layers, train)
    layers = _layers(params, has_biases, num_layers, bidirectional, _is_projected(hx))
    return _packed(op, LSTM, layers, data, batch_sizes, list(hx))


def _packed_rule(cell: Cell, target: Target) -> Rule:
    """The rule of a recurrence with one state on packed sequences."""

    @lowers(target)
    def recurrence(
        op: OpBuilder,
        data: Value,
        batch_sizes: Value,
        hx: Value,
        params: Sequence[Value],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> tuple[ir.Value, ...]:
        """(R, I), (T,), (L*D, N, H) -> (R, D*H), (L*D, N, H), R rows of all steps."""
        _refuse_dropout(dropout, num_layers, train)
        layers = _layers(params, has_biases, num_layers, bidirectional, projected=False)
        return _packed(op, cell, layers, data, batch_sizes, [hx])

    return recurrence


PACKED = (
    _packed_rule(GRU, aten.gru.data),
    _packed_rule(RNN_TANH, aten.rnn_tanh.data),
    _packed_rule(RNN_RELU, aten.rnn_relu.data),
)


def _packed(
    op: OpBuilder,
    cell: Cell,
    layers: tuple[tuple[Weights, ...], ...],
    data: ir.Value,
    batch_sizes: ir.Value,
    states: list[ir.Value],
) -> tuple[ir.Value, ...]:
    """Step t holds the first batch_sizes[t] sequences: row b of it lies behind the rows of the steps before."""
    number = op.Range(op.constant(0), op.number(op.size(states[0], 1), torch.int64), op.constant(1))
    each = op.Unsqueeze(batch_sizes, op.ints([1]))
    inside = op.Less(number, each)  # (T, N)
    before = op.CumSum(each, op.constant(0), exclusive=1)
    rows = op.Where(inside, op.Add(before, number), op.constant(0))
    lengths = op.ReduceSum(op.cast(inside, torch.int32), op.ints([0]), keepdims=0)
    made, finals = _run(op, Network(cell, layers, lengths), op.Gather(data, rows), states)
    flat = op.Reshape(
        _joined(op, made, Network(cell, layers), batch_first=False), op.ints([-1, _width(layers)])
    )
    return op.Compress(flat, op.Reshape(inside, op.ints([-1])), axis=0), *finals


def _width(layers: tuple[tuple[Weights, ...], ...]) -> int:
    """The features of the output: D*H or D*P."""
    width = shape_of(layers[-1][0].state)[1]
    if not isinstance(width, int):
        raise TypeError("the number of features is not static")
    return width * len(layers[-1])


# -- one step ------------------------------------------------------------------------------------------


@lowers(aten.lstm_cell.default)
def lstm_cell(
    op: OpBuilder,
    input: Value,
    hx: Sequence[Value],
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None = None,
    b_hh: Value | None = None,
) -> tuple[ir.Value, ...]:
    """(N, I), (N, H), (N, H) -> (N, H), (N, H)."""
    return _step(op, LSTM, input, list(hx), Weights(w_ih, w_hh, b_ih, b_hh, None))


def _cell_rule(cell: Cell, target: Target) -> Rule:
    """The rule of one step of a recurrence with one state."""

    @lowers(target)
    def step(
        op: OpBuilder,
        input: Value,
        hx: Value,
        w_ih: Value,
        w_hh: Value,
        b_ih: Value | None = None,
        b_hh: Value | None = None,
    ) -> ir.Value:
        """(N, I), (N, H) -> (N, H)."""
        return _step(op, cell, input, [hx], Weights(w_ih, w_hh, b_ih, b_hh, None))[0]

    return step


CELLS = (
    _cell_rule(GRU, aten.gru_cell.default),
    _cell_rule(RNN_TANH, aten.rnn_tanh_cell.default),
    _cell_rule(RNN_RELU, aten.rnn_relu_cell.default),
)


def _step(
    op: OpBuilder, cell: Cell, x: ir.Value, states: list[ir.Value], weights: Weights
) -> tuple[ir.Value, ...]:
    first = op.ints([0])
    begin = [op.Unsqueeze(state, first) for state in states]
    _, finals = _run(op, Network(cell, ((weights,),)), op.Unsqueeze(x, first), begin)
    return tuple(op.Squeeze(state, first) for state in finals)


# -- layers --------------------------------------------------------------------------------------------


def _run(
    op: OpBuilder, network: Network, x: ir.Value, states: list[ir.Value]
) -> tuple[ir.Value, list[ir.Value]]:
    """(T, N, I), (L*D, N, H) each -> the last layer's (T, D, N, H), and the states after it (L*D, N, H)."""
    begins = [_by_layer(op, state, network) for state in states]
    ends: list[list[ir.Value]] = [[] for _ in states]
    made = x
    for index, directions in enumerate(network.layers):
        steps = x if index == 0 else _joined(op, made, network, batch_first=False)
        layer = _projected_layer if directions[0].projection is not None else _layer
        made, after = layer(op, network, steps, directions, [begin[index] for begin in begins])
        for found, end in zip(ends, after, strict=True):
            found.append(end)
    return made, [end[0] if len(end) == 1 else op.Concat(*end, axis=0) for end in ends]


def _by_layer(op: OpBuilder, state: ir.Value, network: Network) -> list[ir.Value]:
    """(L*D, N, H) -> (D, N, H) for each layer."""
    count = len(network.layers)
    if count == 1:
        return [state]
    sizes = op.ints([len(network.layers[0])] * count)
    return list(op.Split(state, sizes, axis=0, _outputs=count))


def _joined(op: OpBuilder, made: ir.Value, network: Network, *, batch_first: bool) -> ir.Value:
    """(T, D, N, H) -> (T, N, D*H) or (N, T, D*H)."""
    directions = len(network.layers[0])
    if directions == 1 and not batch_first:
        return op.Squeeze(made, op.ints([1]))
    swapped = op.Transpose(made, perm=[2, 0, 1, 3] if batch_first else [0, 2, 1, 3])
    if directions == 1:
        return op.Squeeze(swapped, op.ints([2]))
    return op.Reshape(swapped, op.ints([0, 0, -1]))


def _layer(
    op: OpBuilder, network: Network, x: ir.Value, directions: tuple[Weights, ...], begin: list[ir.Value]
) -> tuple[ir.Value, list[ir.Value]]:
    """(T, N, I), (D, N, H) each -> (T, D, N, H), (D, N, H) each: one LSTM, GRU or RNN."""
    cell = network.cell
    dtype = dtype_of(x)
    wide = torch.float32 if dtype == torch.bfloat16 else dtype  # ONNX Runtime 1.32 has no bfloat16 kernels
    hidden = _hidden(directions[0])
    weights = [
        _arranged(op, [w.input for w in directions], cell, hidden),
        _arranged(op, [w.state for w in directions], cell, hidden),
        _biases(op, directions, cell, hidden),
    ]
    operands = [x, *weights, network.lengths, *begin]
    attributes = {k: v * len(directions) if isinstance(v, list) else v for k, v in cell.attributes.items()}
    build: Callable[..., Sequence[ir.Value]] = getattr(op, cell.op_type)
    made = build(
        *(op.cast(v, wide) if v is not None and v is not network.lengths else v for v in operands),
        hidden_size=hidden,
        direction="bidirectional" if len(directions) > 1 else "forward",
        **attributes,
        _outputs=1 + cell.states,
    )
    steps, *after = [op.cast(value, dtype) for value in made]
    return steps, after


def _hidden(weights: Weights) -> int:
    hidden = shape_of(weights.state)[1] if weights.projection is None else shape_of(weights.projection)[1]
    if not isinstance(hidden, int):
        raise TypeError("the number of hidden features is not static")
    return hidden


def _arranged(op: OpBuilder, weights: Sequence[ir.Value], cell: Cell, hidden: int) -> ir.Value:
    """(G*H, *) for each direction -> (D, G*H, *), the gates in ONNX's order."""
    joined = weights[0] if len(weights) == 1 else op.Concat(*weights, axis=0)
    return op.Gather(joined, op.constant(_rows(cell, hidden, len(weights), 1)), axis=0)


def _biases(op: OpBuilder, directions: tuple[Weights, ...], cell: Cell, hidden: int) -> ir.Value | None:
    """(G*H,) twice for each direction -> (D, 2*G*H), the gates in ONNX's order; None without biases."""
    biases = [b for w in directions for b in (w.input_bias, w.state_bias) if b is not None]
    if not biases:
        return None
    return op.Gather(op.Concat(*biases, axis=0), op.constant(_rows(cell, hidden, len(directions), 2)), axis=0)


def _rows(cell: Cell, hidden: int, directions: int, parts: int) -> np.ndarray:
    """(D, parts*G*H), where ONNX's rows lie among those of all directions and parts one after the other."""
    rows = np.arange(directions * parts * len(cell.gates) * hidden)
    return rows.reshape(directions, parts, len(cell.gates), hidden)[:, :, list(cell.gates)].reshape(
        directions, -1
    )


def _layers(
    params: Sequence[ir.Value], has_biases: bool, num_layers: int, bidirectional: bool, projected: bool
) -> tuple[tuple[Weights, ...], ...]:
    """PyTorch's flat list of parameters by layer and direction."""
    count = 2 + 2 * has_biases + projected
    sets = [list(params[i : i + count]) for i in range(0, len(params), count)]
    directions = 1 + bidirectional
    if len(sets) != num_layers * directions or any(len(s) != count for s in sets):
        raise ValueError(f"{len(params)} parameters for {num_layers} layers of {directions} directions")
    weights = [
        Weights(
            s[0],
            s[1],
            s[2] if has_biases else None,
            s[3] if has_biases else None,
            s[-1] if projected else None,
        )
        for s in sets
    ]
    return tuple(tuple(weights[i : i + directions]) for i in range(0, len(weights), directions))


def _is_projected(hx: Sequence[Value]) -> bool:
    """Has the output another width than the cell's state?"""
    return bool(shape_of(hx[0])[-1] != shape_of(hx[1])[-1])


def _refuse_dropout(dropout: float, num_layers: int, train: bool) -> None:
    if train and dropout > 0 and num_layers > 1:
        raise UnsupportedOpError(
            f"dropout of {dropout} between recurrent layers is random in training",
            fix="call model.eval() before the export",
        )


# -- LSTM with a projected output ------------------------------------------------------------------------


def _projected_layer(
    op: OpBuilder, network: Network, x: ir.Value, directions: tuple[Weights, ...], begin: list[ir.Value]
) -> tuple[ir.Value, list[ir.Value]]:
    """(T, N, I), (D, N, P), (D, N, H) -> (T, D, N, P), (D, N, P), (D, N, H): a Scan for each direction.

    ONNX's LSTM knows no projection of the output.
    """
    if network.lengths is not None:
        raise ValueError("packed sequences with projections have no rule")
    begins = [
        list(op.Split(b, axis=0, num_outputs=2, _outputs=2)) if len(directions) > 1 else [b] for b in begin
    ]
    made = [
        _projected_direction(op, x, weights, begins[0][i], begins[1][i], reverse=i)
        for i, weights in enumerate(directions)
    ]
    first, one = op.ints([0]), op.ints([1])
    steps = [op.Unsqueeze(m[0], one) for m in made]
    ends = [[op.Unsqueeze(m[i], first) for m in made] for i in (1, 2)]
    if len(directions) == 1:
        return steps[0], [end[0] for end in ends]
    return op.Concat(*steps, axis=1), [op.Concat(*end, axis=0) for end in ends]


def _projected_direction(
    op: OpBuilder, x: ir.Value, weights: Weights, hidden: ir.Value, cell: ir.Value, *, reverse: int
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """(T, N, I), (1, N, P), (1, N, H) -> (T, N, P), (N, P), (N, H)."""
    assert weights.projection is not None
    first = op.ints([0])
    from_input = op.MatMul(x, op.Transpose(weights.input, perm=[1, 0]))
    for bias in (weights.input_bias, weights.state_bias):
        from_input = from_input if bias is None else op.Add(from_input, bias)
    state_weight = op.Transpose(weights.state, perm=[1, 0])
    projection = op.Transpose(weights.projection, perm=[1, 0])

    def step(inner: OpBuilder, h: ir.Value, c: ir.Value, gates: ir.Value) -> list[ir.Value]:
        gates = inner.Add(gates, inner.MatMul(h, state_weight))
        i, f, g, o = inner.Split(gates, axis=-1, num_outputs=4, _outputs=4)
        kept = inner.Mul(inner.Sigmoid(f), c)
        c = inner.Add(kept, inner.Mul(inner.Sigmoid(i), inner.Tanh(g)))
        h = inner.MatMul(inner.Mul(inner.Sigmoid(o), inner.Tanh(c)), projection)
        return [h, c, inner.Identity(h)]

    dtype = ir.TensorType(x.dtype)  # type: ignore[arg-type]
    inputs = [ir.Value(name=name, type=dtype, shape=ir.Shape([None, None])) for name in ("h", "c", "gates")]
    after_h, after_c, steps = op.Scan(
        op.Squeeze(hidden, first),
        op.Squeeze(cell, first),
        from_input,
        body=op.sub(step, inputs, 3),
        num_scan_inputs=1,
        scan_input_directions=[reverse],
        scan_output_directions=[reverse],
        _outputs=3,
    )
    return steps, after_h, after_c
