"""The pipeline: its order can be changed, and on small models every pass keeps what eager PyTorch computes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from eager import check_passes
from torch import nn

from fx2onnx.capture import capture
from fx2onnx.errors import InvariantError
from fx2onnx.passes import PIPELINE, Pipeline, default_pipeline, functionalize
from fx2onnx.rewrite import Pass, each_graph

torch.set_num_threads(1)
aten = torch.ops.aten


def targets(graph) -> list[str]:
    """The operators of a graph and of its regions, each graph once."""
    nodes = [node for module in graph.graphs() for node in module.graph.nodes if node.op == "call_function"]
    return [str(node.target).removeprefix("aten.").split(".")[0] for node in nodes]


# -- models ------------------------------------------------------------------------------------------


def norm(channels, axes):
    """A batch norm whose statistics and weights are no trivial numbers."""
    made = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[axes](channels)
    for tensor in (made.running_mean, made.weight.data, made.bias.data):
        tensor.normal_()
    made.running_var.uniform_(0.5, 2)
    return made


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.bn1 = norm(4, 2)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.bn2 = norm(4, 2)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x
        return self.relu(y)


class Block(nn.Module):
    """Attention with a mask and rotary tables that are made of buffers and numbers."""

    def __init__(self, width=32):
        super().__init__()
        self.q, self.k = nn.Linear(width, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.register_buffer("frequencies", torch.arange(16.0) / 16)
        self.register_buffer("mask", torch.ones(64, 64, dtype=torch.bool).tril())

    def forward(self, x):
        n = x.shape[1]
        tables = torch.outer(torch.arange(64).float(), self.frequencies).cos()[:n]
        scores = (self.q(x) @ self.k(x).mT).masked_fill(~self.mask[:n, :n], -1e9).softmax(-1)
        return self.norm(x) + scores @ x + torch.cat([tables, tables], -1)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(300, 128)
        self.head = nn.Linear(128, 300, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, i):
        return self.head(self.embedding(i))


class Branches(nn.Module):
    """The branches read a weight that is also read outside of them, under the same name."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        def one(x):
            return self.linear(x) + torch.arange(4) * torch.arange(4)

        def other(x):
            return x + self.linear.weight.t()[0]

        return torch.cond(x.sum() > 0, one, other, (x,)), self.linear(x)


class Chunked(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(24, 8))

    def forward(self, x):
        q, k, v = (F.linear(x, w) for w in self.weight.chunk(3))
        return F.scaled_dot_product_attention(q, k, v)


class SharedConvolution(nn.Module):
    """One convolution's result is normalized, the other's is not: the weight is stored as it is."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(4, 4, 3), norm(4, 2)

    def forward(self, x):
        return self.bn(self.conv(x)), self.conv(x * 2)


class Mixed(nn.Module):
    """Dtypes that PyTorch promotes on its own."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(3, dtype=torch.int32))

    def forward(self, x, i):
        mask = i > 0.5
        return (
            torch.cat([x * i, x / self.scale]),
            mask.sum() + i.cumsum(0),
            torch.where(mask, x, i),
            x.half() + x,
        )


torch.manual_seed(0)
weight_norm = nn.utils.parametrizations.weight_norm
MODELS = {
    "residual block": (Residual(), (torch.randn(2, 4, 6, 6),), {"x": {0: "n"}}),
    "grouped convolution": (
        nn.Sequential(nn.Conv1d(4, 8, 3, groups=2), norm(8, 1)),
        (torch.randn(2, 4, 8),),
        None,
    ),
    "convolution in space": (
        nn.Sequential(nn.Conv3d(2, 3, 2), norm(3, 3)),
        (torch.randn(1, 2, 4, 4, 4),),
        None,
    ),
    "transposed convolution": (
        nn.Sequential(nn.ConvTranspose2d(4, 6, 3, 2, output_padding=1, groups=2), norm(6, 2)),
        (torch.randn(2, 4, 5, 5),),
        None,
    ),
    "linear and norm": (nn.Sequential(nn.Linear(3, 4), norm(4, 1)), (torch.randn(5, 3),), None),
    "norm of another axis": (nn.Sequential(nn.Linear(3, 4), norm(5, 1)), (torch.randn(2, 5, 3),), None),
    "shared convolution": (SharedConvolution(), (torch.randn(2, 4, 6, 6),), None),
    "blocks": (
        nn.Sequential(Block(), nn.Sequential(Block(), Block()), Block()),
        (torch.randn(2, 10, 32),),
        {"input": {0: "batch", 1: "n"}},
    ),
    "tied embedding": (Tied(), (torch.randint(0, 300, (2, 5)),), None),
    "branches": (Branches(), (torch.randn(2, 3, 4),), None),
    "chunks of a weight": (Chunked(), (torch.randn(2, 3, 8),), None),
    "weight norm": (
        nn.Sequential(weight_norm(nn.Linear(8, 8)), weight_norm(nn.Conv1d(8, 8, 3))),
        (torch.randn(2, 8, 8),),
        None,
    ),
    "mixed dtypes": (Mixed(), (torch.randn(6), torch.arange(6) % 2), {"x": {0: "n"}, "i": {0: "n"}}),
    "transformer layer": (
        nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
        (torch.randn(2, 5, 16),),
        None,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_pass_keeps_what_a_model_computes(name):
    model, args, dynamic_shapes = MODELS[name]
    graph = check_passes(model.eval(), args, dynamic_shapes=dynamic_shapes, tolerance=2e-5)
    names = targets(graph)
    if name in ("residual block", "grouped convolution", "transposed convolution", "linear and norm"):
        assert "batch_norm" not in names
    if name in ("norm of another axis", "shared convolution"):
        assert "batch_norm" in names
    if name == "tied embedding":
        assert names == ["embedding", "t", "matmul"]
        assert len(graph.state) == 1
    if name == "blocks":
        assert names.count("softmax") == 1  # one region for all of them
        assert not {"t", "outer", "cos", "arange"} & set(names)
    if name == "weight norm":
        assert names == ["matmul", "add", "conv1d"]


def test_a_region_that_draws_random_numbers_is_called_as_often_as_the_model_calls_it():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.noise = nn.Sequential(nn.Dropout(0.5), nn.ReLU())

        def forward(self, x):
            return self.noise(x), self.noise(x)

    graph = default_pipeline()(capture(Model().train(), (torch.ones(1000),)))
    a, b = graph.module(torch.ones(1000))
    assert not torch.equal(a, b)


# -- the pipeline itself -----------------------------------------------------------------------------


def negate(name="negate"):
    """A pass that turns relu into neg."""

    def rewrite(module):
        for node in module.graph.find_nodes(op="call_function", target=aten.relu.default):
            node.target = aten.neg.default

    return each_graph(name, rewrite)


def test_a_pass_of_ones_own():
    graph = capture(nn.ReLU(), (torch.randn(3),))
    pipeline = default_pipeline()
    for changed in (pipeline.insert_before("outline", negate()), pipeline.insert_after("cse", negate())):
        assert targets(changed(graph)) == ["neg"]
    assert targets(pipeline(graph)) == ["relu"]
    assert [p.name for p in pipeline.insert_after("cse", negate()).passes][-2:] == ["negate", "dead_code"]
    assert "cse" not in [p.name for p in pipeline.without("cse").passes]
    with pytest.raises(KeyError, match="no pass is called nothing"):
        pipeline.insert_before("nothing", negate())


def test_the_graph_that_goes_in_stays_as_it_is():
    graph = capture(Residual().eval(), (torch.randn(2, 4, 6, 6),))
    before = str(graph)
    default_pipeline()(graph)
    assert str(graph) == before


def test_graphs_are_printed_after_passes(capsys):
    graph = capture(nn.ReLU(), (torch.randn(3),))
    default_pipeline()(graph, print_after="cse")
    assert capsys.readouterr().err.count("# after cse\ngraph(input_1: f32[3]") == 2
    default_pipeline()(graph, print_after="all")
    assert capsys.readouterr().err.count("# after") == len(PIPELINE)
    with pytest.raises(KeyError, match=r"no pass is called cst; there are .*cse"):
        default_pipeline()(graph, print_after=["cst"])


def test_a_pass_that_breaks_the_graph_is_named():
    def untype(graph):
        for node in graph.module.graph.find_nodes(op="call_function", target=aten.relu.default):
            del node.meta["val"]

    pipeline = default_pipeline().insert_after("drop_noops", Pass("untype", untype))
    seen = []
    with pytest.raises(InvariantError, match="after untype"):
        pipeline(
            capture(nn.ReLU(), (torch.randn(3),)),
            verify_each=True,
            on_pass=lambda p: seen.append(p.name),
        )
    assert seen == ["inline_contexts", "functionalize", "plain_creation", "drop_noops", "untype"]


def test_each_pass_stands_alone():
    graph = capture(Residual().eval(), (torch.randn(2, 4, 6, 6),))
    assert "relu_" in targets(graph)
    assert "relu_" not in targets(functionalize.run(graph))
    assert "relu_" in targets(graph)
    assert Pipeline((functionalize.run,))(graph).outputs == graph.outputs
