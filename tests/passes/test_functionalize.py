"""Functionalize: what a model with in-place operators and views computes is what eager PyTorch computes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fx2onnx.capture import capture
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.passes.functionalize import run
from fx2onnx.passes.writes import written


def residual(x):
    y = x * 2
    z = torch.relu_(y)
    return y + z


def view_of_view(x):
    y = x.clone()
    y[1:].T[0].add_(5)
    return y


def stale_view(x):
    y = x.clone()
    row = y[0]
    y[0] = 1
    return row, y


def overlapping(x):
    y = x.clone()
    a, b = y[:2], y[1:]
    a += 1
    b *= 2
    return a, b, y


def strided_write(x):
    y = x.clone()
    y[..., ::2] += y[..., 1::2]
    return y


def transposed_write(x):
    y = x.clone()
    y.T.add_(torch.arange(3.0))
    return y


def through_view(x):
    y = x.clone()
    flat = y.view(-1)
    flat[3:7].zero_()
    return y, flat


def masked(x):
    y = x.clone()
    y[x > 0] = 0
    return y


def pieces(x):
    y = x.clone()
    a, b = y.split(2, 1)
    a.mul_(3)
    first, *_ = y.unbind(0)
    first.fill_(7)
    return a, b, y


def lower_precision(x):
    y = x.half()
    y += torch.ones(4, dtype=torch.float32) / 3
    return y


def copied(x):
    y = torch.zeros(3, 4, dtype=torch.float64)
    y.copy_(x[0])
    return y


def metadata(x):
    y = x.clone()
    y.unsqueeze_(0)
    y.add_(1)
    y.squeeze_(0)
    return y.t_()


def diagonal(x):
    y = x.clone()
    y.diagonal().fill_(9)
    return y


def loop(x):
    y = torch.zeros_like(x)
    for i in range(3):
        y[i] = x[i] + (y[i - 1] if i else 0)
    return y


def out_argument(x):
    y = torch.empty_like(x)
    torch.add(x, 1, out=y)
    return y * 2


CASES = [
    residual,
    view_of_view,
    stale_view,
    overlapping,
    strided_write,
    transposed_write,
    through_view,
    masked,
    pieces,
    lower_precision,
    copied,
    metadata,
    diagonal,
    loop,
    out_argument,
]


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dynamic", [False, True])
def test_results_are_eager_results(function, dynamic):
    x = torch.randn(3, 4)
    pinned = (loop, transposed_write, copied, pieces)
    shapes = {"x": {0: "n"}} if dynamic and function not in pinned else None
    graph = run(capture(function, (x,), dynamic_shapes=shapes))
    assert not any(written(n) for n in graph.module.graph.nodes if n.op == "call_function")
    expected = torch.utils._pytree.tree_leaves(function(x.clone()))
    made = graph.module(*_inputs(graph, x.clone()))
    for a, b in zip(made, expected, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


def _inputs(graph, *given):
    tensors = dict(zip([i.placeholder for i in graph.inputs], given, strict=True))
    return [
        graph.state[n] if n in graph.state else tensors[n]
        for n in (str(p.target) for p in graph.module.graph.find_nodes(op="placeholder"))
    ]


def test_a_mutated_input_is_an_extra_output():
    def forward(x, items):
        x[0] = 0
        items[1].mul_(2)
        return x.sum()

    x, items = torch.ones(3), [torch.ones(2), torch.ones(2)]
    graph = run(capture(forward, (x, items)))
    assert [o.mutated for o in graph.outputs] == [None, "x", "items.1"]
    total, new_x, new_item = graph.module(*_inputs(graph, x, *items))
    assert total == 2
    assert new_x.tolist() == [0, 1, 1]
    assert new_item.tolist() == [2, 2]
    assert x.tolist() == [1, 1, 1]


def test_a_mutated_buffer_is_an_extra_output():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            for _ in range(3):
                self.count += x
            return self.count * 2

    graph = run(capture(Counter(), (torch.ones(2),)))
    assert [o.mutated for o in graph.outputs] == [None, "count"]
    doubled, count = graph.module(*_inputs(graph, torch.ones(2)))
    assert doubled.tolist() == [6, 6]
    assert count.tolist() == [3, 3]


def test_batch_norm_in_training_updates_its_statistics():
    model = nn.BatchNorm1d(3)
    x = torch.randn(8, 3)
    graph = run(capture(model, (x,)))
    assert {o.mutated for o in graph.outputs if o.mutated} == {
        "running_mean",
        "running_var",
        "num_batches_tracked",
    }
    result, *new = graph.module(*_inputs(graph, x))
    expected = model(x)
    assert torch.allclose(result, expected)
    state = dict(model.named_buffers())
    for output, value in zip(graph.outputs[1:], new, strict=True):
        assert torch.allclose(value, state[output.mutated])


def test_without_writes_nothing_changes():
    graph = capture(lambda x: torch.relu(x)[0], (torch.randn(3, 4),))
    before = str(graph.module.graph)
    assert str(run(graph).module.graph) == before


def test_a_write_through_an_expansion_is_refused():
    def forward(x):
        y = x.clone().as_strided((2, 2), (1, 1)).view(torch.int32)
        y.add_(1)
        return y

    with pytest.raises(UnsupportedOpError):
        run(capture(forward, (torch.randn(3),)))
