"""Functionalize: what a model with in-place operators and views computes is what eager PyTorch computes."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F
from eager import check_passes, run, tensors
from torch import nn

from fx2onnx.capture import capture
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.passes import drop_noops, functionalize, inline_contexts
from fx2onnx.passes.writes import written

torch.set_num_threads(1)
PASSES = (inline_contexts.run, functionalize.run, drop_noops.run)
CASES = []


def case(*args, dynamic_shapes=None, tolerance=0.0):
    """A function whose graph must be functional and compute what eager PyTorch computes."""

    def add(function):
        CASES.append(pytest.param(function, args, dynamic_shapes, tolerance, id=function.__name__))
        return function

    return add


def x(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7))


ROWS = {"x": {0: "n"}}

# -- views -------------------------------------------------------------------------------------------


@case(x(3, 4), dynamic_shapes=ROWS)
def residual(x):
    y = x * 2
    z = torch.relu_(y)
    return y + z


@case(x(3, 4), dynamic_shapes=ROWS)
def view_of_view(x):
    y = x.clone()
    y[1:].T[0].add_(5)
    return y


@case(x(3, 4), dynamic_shapes=ROWS)
def stale_view(x):
    y = x.clone()
    row = y[0]
    y[0] = 1
    return row, y


@case(x(4))
def three_deep(x):
    y = x.clone()
    a = y[1:]
    b = a[1:]
    c = b[1:]
    y.add_(1)
    c.mul_(3)
    b.sub_(1)
    return a, b, c, y


@case(x(3, 4), dynamic_shapes=ROWS)
def overlapping(x):
    y = x.clone()
    a, b = y[:2], y[1:]
    a += 1
    b *= 2
    return a, b, y


@case(x(4, 4))
def overlapping_views_of_an_input(x):
    a, b = x[1:3], x[:, 1:3]
    a += 1
    b *= 2
    a -= b[1:3, :1].clone()
    return a, b


@case(x(3, 4), dynamic_shapes=ROWS)
def strided_write(x):
    y = x.clone()
    y[..., ::2] += y[..., 1::2]
    return y


@case(x(3, 4))
def transposed_write(x):
    y = x.clone()
    y.T.add_(torch.arange(3.0))
    return y


@case(x(2, 3, 4))
def permuted_writes(x):
    y = x.clone()
    p = y.permute(2, 0, 1)
    p[1] = 0
    p.movedim(0, 1)[0].add_(5)
    y.swapaxes(0, 2)[3] = 2
    return y, p


@case(x(2, 3, 4), dynamic_shapes=ROWS)
def reshaped_writes(x):
    y = x.clone()
    y.flatten(1)[:, :5] = 0
    y.view(-1, 4)[2:4].mul_(3)
    y.reshape(x.shape[0], 12)[:, 0] = 1
    y.unflatten(2, (2, 2))[..., 0] += 1
    return y


@case(x(4, 6, 2))
def a_reshape_that_copies_and_one_that_views(x):
    y = x.clone()
    y.transpose(0, 1).reshape(6, 8).add_(1)
    y.transpose(0, 1).reshape(6, 4, 2).add_(1)
    return y


@case(x(4, 6), dynamic_shapes=ROWS)
def a_reshape_that_fakes_take_for_a_copy(x):
    y = x.clone()
    y[:, ::2].reshape(-1, 3).relu_()
    y[:, ::2].reshape(-1, 1).add_(1)
    return y


@case(x(1, 4, 4))
def squeezed_writes(x):
    y = x.clone()
    y.squeeze(0)[1] = 2
    y.squeeze()[2] = 3
    y.squeeze((0,))[3] = 1
    return y


@case(x(4, 4))
def diagonals(x):
    y = x.clone()
    y.diagonal().fill_(9)
    y.diagonal(1).fill_(8)
    torch.diagonal(y, -1, 1, 0).add_(1)
    y.fill_diagonal_(0.5)
    return y


@case(x(4, 4))
def narrow_from_the_end(x):
    y = x.clone()
    y.narrow(1, 1, 2).zero_()
    y.narrow(0, -1, 1).add_(1)
    return y


@case(x(4, 4), dynamic_shapes=ROWS)
def negative_indices(x):
    y = x * 1
    y[-1] = 0
    y[:, 1:-1] += 1
    return y


@case(x(4, 6))
def pieces(x):
    y = x.clone()
    a, b = y.split([2, 4], 1)
    a.mul_(3)
    c, *_ = y.chunk(3, 1)
    c.add_(1)
    y.hsplit(2)[1].neg_()
    first, second, *_ = y.unbind(0)
    first.fill_(7)
    second += first
    return a, b, y


@case(x(3, 8), dynamic_shapes=ROWS)
def gates(x):
    i, f, g, o = (x * 2).chunk(4, 1)
    i.sigmoid_()
    f.sigmoid_()
    g.tanh_()
    o.sigmoid_()
    return i * g + f, o


@case(x(6, 4), dynamic_shapes=ROWS)
def halves_of_a_free_size(x):
    y = x.clone()
    a, b = y[: x.shape[0] // 2], y[x.shape[0] // 2 :]
    b.add_(1)
    a.mul_(3)
    return y, a


@case(x(6))
def windows(x):
    y = x.clone()
    w = y.unfold(0, 2, 2)
    w.add_(1)
    return y, w


@case(x(3, 4))
def as_strided(x):
    y = x.clone().t()
    a = y.as_strided((2, 2), (4, 1), 1)
    a.add_(1)
    return y, a, x[1:].as_strided((2, 2), (4, 1)), x.t().as_strided((5, 3), (2, 1))


@case(x(5, 4), dynamic_shapes=ROWS)
def as_strided_of_a_free_size(x):
    n = x.shape[0]
    return (x * 2).as_strided((n - 1, 8), (4, 1))


@case(x(3, 4))
def an_expansion_reads_what_is_written_later(x):
    y = x.clone()
    e = y.expand(2, 3, 4)
    y.add_(1)
    y.expand(1, 3, 4).mul_(2)
    return e


@case(x(4), x(3))
def the_second_of_several_viewed_tensors(x, y):
    a, b = x.clone(), y.clone()
    m, n = torch.meshgrid(a, b, indexing="ij")
    b.add_(1)
    a.mul_(2)
    return m, n


@case(x(3, 4))
def the_bits_of_a_float(x):
    y = x.clone()
    bits = y.view(torch.int32)
    y.add_(1)
    bits[0].zero_()
    return y, bits


@case(x(3, 4))
def calls_that_return_their_argument(x):
    y = x.clone()
    y.contiguous().add_(1)
    y.t().contiguous().add_(1)
    y.to(torch.float32).mul_(2)
    y.to(torch.float64).mul_(2)
    F.dropout(y, 0.5, training=False).sub_(3)
    y.view_as(x).exp_()
    return y


@case(x(3, 4))
def metadata(x):
    y = x.clone()
    y.unsqueeze_(0)
    y.add_(1)
    y.squeeze_(0)
    z = y.view(1, 3, 4)
    z.squeeze_(0).t_()[0] = 3
    y.resize_(4, 3)
    return y.t_(), z


# -- operators ---------------------------------------------------------------------------------------


@case(x(3, 4))
def masks(x):
    y = x.clone()
    y[x > 0] = 0
    y[y < -1] += 2
    y.masked_fill_(y == 0, -1e4)
    return y


@case(x(3, 4), torch.tensor([0, 2]))
def indices(x, i):
    y = x.clone()
    y[i, 1] = 5.0
    y[:, i] = y[:, i] * 2
    y[[0, 2]] = y[[2, 0]]
    y.index_add_(0, i, x[:2])
    y.index_fill_(1, i, -1)
    y.index_copy_(0, i, x[1:])
    y.scatter_(0, i[None], 3.0)
    return y


@case(x(3, 4), x(3, 4))
def lower_precision(x, y):
    a = x.half()
    a += y
    a *= 2.5
    a -= y[0, 0]
    return a


@case(torch.arange(6))
def integers(x):
    y = x.clone()
    y += True
    y //= 2
    y <<= 1
    y |= 8
    y &= 15
    y ^= 3
    y %= 5
    y **= 2
    z = y.to(torch.int32)
    z.cumsum_(0)
    return y, z


@case(torch.arange(6) > 2)
def booleans(x):
    y = x.clone()
    y |= ~x
    y ^= True
    y.fill_(0)
    y[0] = True
    return y


@case(x(3, 4))
def comparisons_in_place(x):
    y, z = x.clone(), x.clone()
    y.gt_(0)
    z.ge_(x.flip(0)).logical_not_()
    return y, z


@case(x(4))
def copies(x):
    y = torch.zeros(3, 4, dtype=torch.float64)
    y.copy_(x)
    y[1] = x[0]
    y[2].fill_(x[3])
    return y


@case(x(4, 4), tolerance=1e-5)
def arithmetic(x):
    y = x.clone()
    y.clamp_(-1, 1).abs_().sqrt_().pow_(2).exp_()
    y.tril_().lerp_(x, 0.3).addcmul_(x, x, value=0.5).addmm_(x, x)
    y.nan_to_num_().round_().neg_().floor_()
    F.leaky_relu(y, 0.1, True)
    F.hardtanh_(y)
    F.hardswish(F.silu(F.elu_(y), True), True)
    F.dropout(y, 0.5, training=False, inplace=True)
    return torch.tanh_(y)


@case(x(3, 4))
def out_arguments(x):
    y, narrow, resized = torch.empty_like(x), torch.zeros(5, 4), torch.empty(0)
    torch.add(x, 1, out=y)
    torch.add(x, 1, out=narrow[1:4])
    torch.mul(x, 2, out=resized)
    values, places = torch.empty(4), torch.empty(4, dtype=torch.long)
    top, _ = torch.max(x, 0, out=(values, places))
    top.add_(1)
    return y * 2, narrow, resized, values, places


@case(x(4, 5))
def several_tensors_at_once(x):
    y, z = x.clone(), x * 2
    torch._foreach_add_([y, z], 1.0)
    return y, z


@case(x(4, 5), tolerance=1e-6)
def renormalized_embedding(x):
    w = x.clone()
    return F.embedding(torch.tensor([1, 2]), w, max_norm=1.0), w


@case(x(2, 3, 5), tolerance=1e-5)
def norms_that_update_statistics(x):
    mean, var = torch.zeros(3), torch.ones(3)
    y = F.relu_(F.batch_norm(x, mean, var, training=True))
    z = F.instance_norm(x, mean, var, use_input_stats=True)
    return y, F.batch_norm(z, mean, var, training=False), mean, var


@case(x(3))
def a_thousand_writes(x):
    y = x.clone()
    for _ in range(1000):
        y += x
    return y


@case(x(3, 4))
def a_loop_over_rows(x):
    y = torch.zeros_like(x)
    for i in range(3):
        y[i] = x[i] + (y[i - 1] if i else 0)
    return y


# -- inputs ------------------------------------------------------------------------------------------


@case([x(3), x(2), x(3)])
def a_list_of_inputs(xs):
    xs[0].add_(xs[2])
    xs[1][0] = 4
    xs[2].copy_(xs[0])
    return xs[0] + xs[2]


@case(x(3, 4), x(3, 4))
def swapped_inputs(x, y):
    t = x.clone()
    x.copy_(y)
    y.copy_(t)
    return x - y


@case(x(3, 4))
def slices_of_an_input(x):
    x[:, ::2] = 5
    x.t().add_(1)
    return x + 1


@case(x(3, 4))
def an_input_and_its_alias_returned(x):
    y = x.view(-1)
    x.add_(1)
    return y, x.mul_(2)


@case(x(3, 4))
def writes_without_gradients(x):
    with torch.no_grad():
        x.add_(1)
    y = x[0]
    with torch.no_grad():
        y.mul_(2)
    return x


@case(x(3, 4))
def branches(x):
    def one(x):
        y = x.clone()
        y[0] = 3
        return y.add_(1)

    def other(x):
        y = torch.zeros_like(x)
        y.copy_(x)
        return y

    return torch.cond(x.sum() > 0, one, other, (x,))


@pytest.mark.parametrize(("function", "args", "dynamic_shapes", "tolerance"), CASES)
def test_results_are_eager_results(function, args, dynamic_shapes, tolerance):
    graph = check_passes(function, args, PASSES, dynamic_shapes=dynamic_shapes, tolerance=tolerance)
    for module in graph.graphs():
        assert not any(written(node) for node in module.graph.nodes)


# -- random programs ---------------------------------------------------------------------------------

# Each with what a tensor must have for it: axes, elements on the axis, elements.
_VIEWS = (
    (1, 2, 0, lambda t, axis, k: t.select(axis, k % 2 if k % 3 else -1)),
    (1, 2, 0, lambda t, axis, k: t.narrow(axis, k % 2, t.shape[axis] - k % 2)),
    (1, 2, 0, lambda t, axis, k: t.narrow(axis, -2, 1)),
    (1, 2, 0, lambda t, axis, k: t[(slice(None),) * axis + (slice(None, None, 2),)]),
    (1, 2, 0, lambda t, axis, k: t.split([1, t.shape[axis] - 1], axis)[k % 2]),
    (1, 2, 0, lambda t, axis, k: t.unbind(axis)[k % 2]),
    (1, 2, 0, lambda t, axis, k: t.chunk(2, axis)[k % 2]),
    (1, 2, 0, lambda t, axis, k: t.unfold(axis, 2, 2)),
    (2, 2, 0, lambda t, axis, k: t.diagonal(0, 0, -1)),
    (1, 0, 0, lambda t, axis, k: t.unsqueeze(axis)),
    (1, 0, 0, lambda t, axis, k: t.expand(1, *t.shape)),
    (1, 0, 0, lambda t, axis, k: t.flatten()),
    (1, 0, 0, lambda t, axis, k: t.permute(*reversed(range(t.dim())))),
    (1, 0, 0, lambda t, axis, k: t.transpose(0, -1)),
    (1, 0, 5, lambda t, axis, k: t.as_strided((2, 2), (1, 2), k % 2)),
    (1, 0, 2, lambda t, axis, k: t.reshape(-1, 2 - t.numel() % 2)),
)
_WRITES = (
    lambda t, other, k: t.add_(k),
    lambda t, other, k: t.mul_(2),
    lambda t, other, k: t.copy_(other.clone().sum()),
    lambda t, other, k: t.fill_(k),
    lambda t, other, k: t.relu_(),
    lambda t, other, k: t.masked_fill_(t.clone() > 0, 1.5),
    lambda t, other, k: t.sub_(other.clone().mean()),
    lambda t, other, k: torch.exp(t.clone().clamp(-1, 1), out=t),
    lambda t, other, k: t.neg_(),
)


def random_program(seed):
    """A function that makes views of its argument, of copies and of each other, and writes to them."""
    rng = random.Random(seed)
    kinds = rng.choices(["view", "write", "read", "new"], [3, 3, 1, 1], k=rng.randint(4, 14))
    steps = [(kind, rng.random(), rng.random(), rng.random(), rng.randrange(100)) for kind in kinds]

    def program(x):
        made, read = [x if seed % 3 == 0 else x.clone()], []
        for kind, a, b, c, k in steps:
            t = made[int(a * len(made))]
            if kind == "view":
                axes, size, elements, view = _VIEWS[int(b * len(_VIEWS))]
                axis = int(c * t.dim())
                if t.dim() >= axes and t.shape[axis] >= size and t.numel() >= elements:
                    made.append(view(t, axis, k))
            elif kind == "write":
                made.append(_WRITES[k % len(_WRITES)](t, made[int(b * len(made))], k))
            elif kind == "read":
                read.append(t * 1)
            elif kind == "new":
                made.append(t * 2)
        return made[-6:] + read + made[:1]

    return program


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed):
    argument = x(4, 6) if seed % 2 else x(2, 4, 3)
    check_passes(random_program(seed), (argument,), PASSES, tolerance=1e-6)


# -- state -------------------------------------------------------------------------------------------


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x):
        for _ in range(3):
            self.count += x
        return self.count * 2


class Queue(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(3, 2))

    def forward(self, x):
        self.rows = torch.roll(self.rows, 1, 0)
        self.rows[0] = x
        return self.rows.sum(0)


@pytest.mark.parametrize("model", [Counter(), Queue()], ids=lambda m: type(m).__name__)
def test_a_mutated_buffer_is_an_extra_output(model):
    graph = functionalize.run(capture(model, (torch.ones(2),)))
    (name,) = dict(model.named_buffers())
    assert [o.mutated for o in graph.outputs] == [None, name]
    result, buffer = (t.clone() for t in run(graph, [torch.ones(2)]))
    assert torch.equal(result, model(torch.ones(2)))
    assert torch.equal(buffer, dict(model.named_buffers())[name])


def test_a_mutated_input_is_an_extra_output():
    def forward(x, items):
        x[0] = 0
        items[1].mul_(2)
        return x.sum()

    x, items = torch.ones(3), [torch.ones(2), torch.ones(2)]
    graph = functionalize.run(capture(forward, (x, items)))
    assert [o.mutated for o in graph.outputs] == [None, "x", "items.1"]
    total, new_x, new_item = run(graph, tensors((x, items)))
    assert total == 2
    assert new_x.tolist() == [0, 1, 1]
    assert new_item.tolist() == [2, 2]
    assert x.tolist() == [1, 1, 1]


def test_batch_norm_in_training_updates_its_statistics():
    model = nn.Sequential(nn.Conv1d(3, 3, 1), nn.BatchNorm1d(3), nn.ReLU(inplace=True))
    argument = x(8, 3, 5)
    graph = functionalize.run(capture(model, (argument,)))
    names = [o.mutated for o in graph.outputs if o.mutated]
    assert set(names) == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    result, *new = (t.clone() for t in run(graph, [argument]))
    assert torch.allclose(result, model(argument), atol=1e-6)
    for name, value in zip(names, new, strict=True):
        assert torch.allclose(value, dict(model.named_buffers())[name])


def test_a_buffer_with_two_names_is_one_tensor():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.zeros(4))
            self.register_buffer("b", self.a)

        def forward(self, x):
            self.a.add_(x)
            return self.b * 2

    graph = functionalize.run(capture(Tied(), (torch.ones(4),)))
    assert [o.mutated for o in graph.outputs] == [None, "a"]
    assert [t.tolist() for t in run(graph, [torch.ones(4)])] == [[2] * 4, [1] * 4]


# -- what is refused ---------------------------------------------------------------------------------


def bits_of_overlapping_windows(x):
    x.clone().as_strided((2, 2), (1, 1)).add_(1)
    return x


def another_storage(x):
    y, z = x.clone(), torch.zeros(2)
    z.set_(y)
    z.add_(1)
    return y


def more_elements(x):
    return x.clone().resize_(20)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (bits_of_overlapping_windows, "may be the same element in memory"),
        (another_storage, "has no functional counterpart"),
        (more_elements, "another number of elements"),
    ],
)
def test_what_has_no_functional_form_is_refused(function, says):
    class Model(nn.Module):
        def forward(self, x):
            return function(x)

    with pytest.raises(UnsupportedOpError, match=says) as error:
        functionalize.run(capture(Model(), (x(4),)))
    assert "test_functionalize.py" in str(error.value)


def test_inputs_that_are_views_of_one_tensor_are_refused():
    def forward(a, b):
        a.add_(1)
        return b * 2

    whole = x(4)
    with pytest.raises(UnsupportedOpError, match="different views of one tensor"):
        functionalize.run(capture(forward, (whole[:2], whole[1:3])))
