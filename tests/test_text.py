"""The text form: parse(show(g)) says what g says, and a text that is wrong names its line."""

from __future__ import annotations

import math
import re
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.export import Dim

from fx2onnx.capture import capture
from fx2onnx.difference import difference
from fx2onnx.errors import Fx2OnnxError, GraphTextError
from fx2onnx.graph import TypedGraph
from fx2onnx.passes import default_pipeline
from fx2onnx.text import show
from fx2onnx.text_parser import parse
from fx2onnx.text_tokens import Words
from fx2onnx.text_words import literal
from fx2onnx.types import type_of
from fx2onnx.verifier import check

torch.set_num_threads(1)


def without_comments(text: str) -> str:
    return re.sub(r"    # \S+$", "", text, flags=re.MULTILINE)


def assert_reads_back(graph: TypedGraph) -> TypedGraph:
    """parse(show(g)) is g, with and without the module calls."""
    for modules in (False, True):
        text = show(graph, modules=modules)
        again = parse(text)
        assert difference(graph, again) is None
        assert show(again, modules=modules) == without_comments(text)
    return again


# -- the form --------------------------------------------------------------------------------------


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv1(x)


def test_a_captured_model_in_text():
    graph = capture(Small(), (torch.randn(2, 3, 8, 8),), dynamic_shapes={"x": {0: "batch"}})
    line = Small.forward.__code__.co_firstlineno + 1
    assert str(graph) == (
        "graph(x: f32[batch, 3, 8, 8]) -> f32[batch, 4, 6, 6]:\n"
        '  p_conv1_weight: f32[4, 3, 3, 3] = state["conv1.weight"]\n'
        '  p_conv1_bias: f32[4] = state["conv1.bias"]\n'
        "  conv2d: f32[batch, 4, 6, 6] = aten.conv2d.default(x, p_conv1_weight, p_conv1_bias)"
        f"    # test_text.py:{line}\n"
        "  return conv2d"
    )


TEXTS = {
    "names of inputs and outputs": """
graph(x: f32[n, 3] = input["past.0.key"], y: f32[n, 3]) -> (f32[n, 3], f32[n, 3]):
  a: f32[n, 3] = aten.add.Tensor(x, y)
  b: f32[n, 3] = aten.mul.Tensor(x, y)
  return a as "logits", b
""",
    "constants among inputs and results": """
graph("mode", x: f32[n], 2.0, None, y: f32[n] @7) -> f32[n]:
  a: f32[n] = aten.add.Tensor(x, y, alpha=-0.5)
  return None, a, size[2*n + 1], "tag", True, 1 @9
""",
    "relations and notes": """
graph(x: f32[seq, 64]) -> f32[seq, 64]:
  needs seq <= 512
  needs seq%8 == 0
  needs seq != 16 as "seq is not 16"
  needs "seq == 8 or seq == 24"
  note "the model writes to \\"cache\\" \\té"
  y: f32[seq, 64] = aten.relu.default(x)
  return y
""",
    "a mutated input and a mutated state": """
graph(x: f32[3]) -> (f32[], f32[3], i64[]):
  count: i64[] = state["count"]
  x_1: f32[3] = aten.add.Tensor(x, 1)
  count_1: i64[] = aten.add.Tensor(count, 1)
  y: f32[] = aten.sum.default(x_1)
  return y, x_1 into "x", count_1 into "count" as "count.mutated"
""",
    "sizes by Python operators": """
graph(x: f32[h, w]) -> f32[w//2, 2, h]:
  n: size[h] = aten.sym_size.int(x, 0)
  m: size[w] = aten.sym_size.int(x, 1)
  k: size[w//2] = floordiv(m, 2)
  e: size[2*(w//2)] = mul(k, 2)
  part: f32[h, 2*(w//2)] = aten.narrow.default(x, 1, 0, e)
  y: f32[h, w//2, 2] = aten.reshape.default(part, [n, k, 2])
  z: f32[w//2, 2, h] = aten.permute.default(y, [1, 2, 0])
  return z
""",
    "tuples, dtypes, devices and layouts": """
graph(x: f32[n, 4]) -> (f32[n], i64[n], f64[n, 4], bool[3]):
  m: (f32[n], i64[n]) = aten.max.dim(x, -1)
  a: f32[n] = m[0]
  b: i64[n] = m[1]
  c: f64[n, 4] = aten._to_copy.default(x, dtype=f64, memory_format=torch.preserve_format)
  d: bool[3] = aten.ones.default([3], dtype=bool, layout=torch.strided, device=device("cpu"), pin_memory=False)
  return a, b, c, d
""",
    "special numbers": """
graph(x: f32[n]) -> f32[n]:
  y: bool[n] = aten.ne.Scalar(x, -0.0)
  a: f32[n] = aten.masked_fill.Scalar(x, y, -inf)
  return a
""",
    "strings and optional tensors": """
graph(x: f32[n, 4], i: i64[k]) -> (f32[k, 4], f32[n, 4]):
  a: f32[k, 4] = aten.index.Tensor(x, [i])
  b: f32[n, 4] = aten.gelu.default(x, approximate="tanh")
  return a, b
""",
    "a size that depends on data": """
graph(x: f32[n]) -> (i64[count, 1], f32[2*count]):
  a: i64[count, 1] = aten.nonzero.default(x)
  k: size[count] = aten.sym_size.int(a, 0)
  two: size[2*count] = mul(k, 2)
  b: f32[2*count] = aten.zeros.default([two], device=device("cpu"), pin_memory=False)
  return a, b
""",
    "regions within regions": """
region Act of "net.Act"(x: f32[n, 4]) -> f32[n, 4]:
  a: f32[n, 4] = aten.exp.default(x)
  return a

region Block of "net.Block"(x: f32[n, 4], w: f32[4, 4]) -> (f32[n, 4], f32[n, 4]):
  a: f32[n, 4] = aten.linear.default(x, w)
  b: f32[n, 4] = Act(a)
  c: f32[n, 4] = Act(b)
  return (b, c)

graph(x: f32[n, 4]) -> f32[n, 4]:
  w: f32[4, 4] = state["w"]
  p: (f32[n, 4], f32[n, 4]) = Block(x, w)
  q: f32[n, 4] = p[1]
  r: (f32[n, 4], f32[n, 4]) = Block(q, w)
  s: f32[n, 4] = r[0]
  return s
""",
    "control flow": """
region then(a: f32[n, 4]) -> (f32[n, 4],):
  b: f32[n, 4] = aten.exp.default(a)
  return (b,)

region otherwise(a: f32[n, 4]) -> (f32[n, 4],):
  b: f32[n, 4] = aten.neg.default(a)
  return (b,)

graph(x: f32[n, 4], p: bool[]) -> f32[n, 4]:
  c: (f32[n, 4],) = higher_order.cond(p, region then, region otherwise, (x,))
  then: f32[n, 4] = c[0]
  return then
""",
    "a tensor held by a graph": """
graph(x: f32[n, 4]) -> f32[n, 4]:
  c: f32[4] = attribute["offset"]
  y: f32[n, 4] = aten.add.Tensor(x, c)
  return y
""",
    "no results": "graph() -> ():\n  return",
    "a single result that is an input": "graph(x: f32[]) -> f32[]:\n  return x",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_reads_back(text):
    graph = parse(text)
    shown = show(graph)
    assert shown == text.strip()
    assert difference(graph, parse(shown)) is None
    check(graph, stage="parse", functional=False)


def test_types_may_be_left_out():
    full = TEXTS["tuples, dtypes, devices and layouts"]
    bare = re.sub(r"^(  \w+): [^=]* = ", r"\1 = ", full, flags=re.MULTILINE)
    assert bare != full
    assert show(parse(bare)) == show(parse(full))


def test_a_size_that_depends_on_data_gets_a_free_name():
    graph = parse("graph(x: f32[u0]) -> i64[u1, 1]:\n  y = aten.nonzero.default(x)\n  return y")
    assert "y: i64[u1, 1] =" in show(graph)


def test_comments_blank_lines_and_line_breaks_within_brackets():
    graph = parse(
        """
        # a comment
        graph(
            x: f32[n, 2],   # the input
            y: f32[n, 2],
        ) -> f32[n, 2]:

            z: f32[n, 2] = aten.add.Tensor(   # file.py:3
                x, y)

            return z  # "done"
        """
    )
    assert show(graph).splitlines()[0] == "graph(x: f32[n, 2], y: f32[n, 2]) -> f32[n, 2]:"


def test_state_is_given_or_zeros():
    text = 'graph() -> (f32[2], i64[3]):\n  w: f32[2] = state["a.w"]\n  b: i64[3] = state["b"]\n  return w, b'
    weight = torch.tensor([1.0, 2.0])
    graph = parse(text, state={"a.w": weight})
    assert graph.state["w"] is weight
    assert graph.state["b"].tolist() == [0, 0, 0]
    assert graph.state_names == {"w": "a.w", "b": "b"}
    with pytest.raises(GraphTextError, match=r"line 2.*f32\[3\]"):
        parse(text, state={"a.w": torch.zeros(3)})


def test_node_names_with_a_meaning_in_text_get_another():
    graph = parse("graph(x: f32[2]) -> f32[2]:\n  y: f32[2] = aten.relu.default(x)\n  return y")
    for node, name in zip(graph.module.graph.nodes, ["x", "f32", "output"], strict=True):
        node.name = name
    assert "  f32_: f32[2] = aten.relu.default(x)\n  return f32_" in show(graph)
    assert difference(graph, parse(show(graph))) is None


def test_a_view_that_needs_strides_which_nobody_has_is_a_reshape():
    parse(
        "graph(x: f32[n, 4]) -> f32[4*n]:\n  t: f32[4, n] = aten.t.default(x)\n"
        "  y: f32[4*n] = aten.view.default(t, [-1])\n  return y"
    )


def test_equal_names_that_the_text_says_are_equal():
    graph = parse(
        "graph(x: f32[a], y: f32[b]) -> f32[b]:\n  needs a == b\n"
        "  z: f32[b] = aten.add.Tensor(x, y)\n  return z"
    )
    assert [str(r) for r in graph.relations] == ["a == b"]


# -- literals --------------------------------------------------------------------------------------

constants = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=6),
    st.sampled_from([torch.float32, torch.bool, torch.complex64, torch.quint8, torch.int64, torch.uint16]),
    st.sampled_from([torch.strided, torch.sparse_coo, torch.contiguous_format, torch.channels_last]),
    st.sampled_from([torch.device("cpu"), torch.device("cuda:1"), ..., torch.ops.aten.add.Tensor]),
)
literals = st.recursive(
    constants,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=2),
        st.builds(slice, st.none() | st.integers(), st.none() | st.integers(), st.none() | st.integers()),
    ),
    max_leaves=6,
)


def exact(value: object) -> object:
    """A form in which 1, 1.0, True, -0.0 and nan are all told apart."""
    if isinstance(value, list | tuple):
        return type(value).__name__, [exact(v) for v in value]
    if isinstance(value, dict):
        return "dict", [(k, exact(v)) for k, v in value.items()]
    if isinstance(value, complex):
        return "complex", exact(value.real), exact(value.imag)
    if isinstance(value, float):
        return "float", "nan" if math.isnan(value) else value.hex()
    return type(value).__name__, str(value)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(literals)
def test_literals_read_back(value):
    words = Words(literal(value, {}))
    assert exact(words.literal()) == exact(value)
    assert words.token.kind == "newline"


# -- random graphs ---------------------------------------------------------------------------------

UNARY = ["relu.default", "neg.default", "t.default", "exp.default"]
BINARY = ["add.Tensor", "mul.Tensor", "maximum.default"]
STEP = st.one_of(
    st.tuples(st.sampled_from(UNARY), st.integers(0, 9)),
    st.tuples(st.sampled_from(BINARY), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("cat"), st.integers(0, 9), st.integers(0, 1), st.integers(2, 3)),
    st.tuples(st.just("mean"), st.integers(0, 9), st.integers(0, 1)),
    st.tuples(st.just("max"), st.integers(0, 9), st.integers(0, 1)),
    st.tuples(st.just("flat"), st.integers(0, 9)),
    st.tuples(st.just("scale"), st.integers(0, 9), st.sampled_from([2, 0.5, -1, math.inf])),
)


def random_text(steps: list[tuple]) -> str:
    """A graph of matrices in text, without types; steps that do not fit are dropped."""
    lines, shapes = [], {"x": ("n", "m"), "y": ("m", "n"), "w": (3, 3)}

    def pick(i: int) -> str:
        return list(shapes)[i % len(shapes)]

    for number, (op, first, *rest) in enumerate(steps):
        a, name = pick(first), f"v{number}"
        shape = shapes[a]
        if op in UNARY:
            lines.append(f"{name} = aten.{op}({a})")
            shapes[name] = shape[::-1] if op == "t.default" else shape
        elif op in BINARY:
            b = pick(rest[0])
            if shapes[b] == shape:
                lines.append(f"{name} = aten.{op}({a}, {b})")
                shapes[name] = shape
        elif op == "cat":
            lines.append(f"{name} = aten.cat.default([{', '.join([a] * rest[1])}], {rest[0]})")
            shapes[name] = ("cat", name)
        elif op == "mean":
            lines.append(f"{name} = aten.mean.dim({a}, [{rest[0]}], True)")
            shapes[name] = ("mean", name)
        elif op == "max":
            lines += [f"{name}_p = aten.max.dim({a}, {rest[0]}, True)", f"{name} = {name}_p[0]"]
            shapes[name] = ("max", name)
        elif op == "flat":
            lines += [
                f"{name}_k = aten.sym_size.int({a}, 0)",
                f"{name} = aten.reshape.default({a}, [{name}_k, -1])",
            ]
            shapes[name] = ("flat", name)
        else:
            lines.append(f"{name} = aten.mul.Scalar({a}, {rest[0]!r})")
            shapes[name] = shape
    results = list(shapes)[-2:]
    head = 'graph(x: f32[n, m], y: f32[m, n] = input["y.0"]) -> HERE:\n  w: f32[3, 3] = state["w"]\n'
    return head + "".join(f"  {line}\n" for line in lines) + f"  return {', '.join(results)}"


def with_result_type(text: str) -> str:
    """The text with the type of its result, which `parse` itself finds out."""
    with pytest.raises(GraphTextError) as caught:
        parse(text.replace("HERE", "()"))
    found = re.search(r"the graph returns (.*), the text has", str(caught.value))
    assert found, str(caught.value)
    return text.replace("HERE", found[1])


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.lists(STEP, min_size=1, max_size=8))
def test_random_graphs_read_back(steps):
    graph = parse(with_result_type(random_text(steps)))
    check(graph, stage="parse")
    assert_reads_back(graph)


# -- captured models -------------------------------------------------------------------------------


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        return x + torch.relu(self.fc(self.norm(x)))


class Everything(nn.Module):
    """Layers, an attention, sizes, a branch on data, a branch on a size, a mutated buffer."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Layer(), Layer(), Layer())
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.lstm = nn.LSTM(8, 4, bidirectional=True, batch_first=True)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x, mask, *, scale=1.5, mode="sum"):
        self.seen += 1
        x = self.layers(x) * scale
        y, _ = self.attention(x, x, x, key_padding_mask=mask)
        z, (h, _) = self.lstm(y)
        if x.shape[1] > 3:
            z = z[:, : x.shape[1] // 2]
        z = torch.cond(z.sum() > 0, lambda a: a.exp(), lambda a: a * 2, (z,))
        return {"z": z, "where": torch.nonzero(mask), "h": h, "n": x.shape[0] * 2 + 1, "mode": mode}


@pytest.fixture(scope="module")
def everything() -> TypedGraph:
    return capture(
        Everything().eval(),
        (torch.randn(2, 6, 8), torch.zeros(2, 6, dtype=torch.bool)),
        {"mode": "mean"},
        dynamic_shapes={"x": {0: "batch", 1: "seq"}, "mask": {0: "batch", 1: "seq"}},
    )


def test_a_captured_model_reads_back(everything):
    assert_reads_back(everything)


def test_a_compiled_model_reads_back(everything):
    graph = default_pipeline()(everything)
    assert "region Layer of" in show(graph)
    assert_reads_back(graph)


@pytest.mark.parametrize(
    ("function", "inputs", "shapes"),
    [
        (lambda x, y: x @ y, (torch.randn(3, 4), torch.randn(4, 5)), ({0: "n", 1: "k"}, {0: "k"})),
        (lambda x, y: (x[: y.shape[0]], y), (torch.randn(7, 2), torch.randn(3)), ({0: "2*k + 1"}, {0: "k"})),
        (lambda x: nn.functional.interpolate(x, scale_factor=2.5), (torch.randn(1, 2, 6, 6),), ({2: "h"},)),
        (lambda x: torch.arange(512)[: x.shape[0]] + x, (torch.randn(9),), ({0: Dim("n", min=2, max=512)},)),
        (lambda x: x.reshape(-1), (torch.randn(3, 4),), ({0: "N", 1: "lambda"},)),
        (lambda x: x.masked_fill(x > 0, -math.inf).add_(1), (torch.randn(3),), ({0: "n"},)),
        (lambda x: (x.topk(2)[1], x.half(), x.to(torch.complex64)), (torch.randn(5),), None),
        (lambda x: x[x > 0].unique() * 2, (torch.randn(5),), ({0: "n"},)),
        (lambda x: x.item() + 1 if False else torch.full((2,), 3.0) * x, (torch.randn(2),), None),
        (
            lambda x: nn.functional.max_pool2d(x, 3, 2, ceil_mode=True),
            (torch.randn(1, 2, 9, 9),),
            ({3: "w"},),
        ),
        (lambda x: x.pow(1.0 / x.shape[0]), (torch.randn(4).abs(),), ({0: "n"},)),
        (lambda x: x.unfold(0, 3, 2), (torch.randn(9),), ({0: "n"},)),
    ],
    ids=range(12),
)
def test_captured_functions_read_back(function, inputs, shapes):
    assert_reads_back(capture(function, inputs, dynamic_shapes=shapes))


# -- differences -----------------------------------------------------------------------------------

BASE = """
region Layer(x: f32[n, 4], w: f32[4, 4]) -> f32[n, 4]:
  a: f32[n, 4] = aten.linear.default(x, w)
  return a

graph(x: f32[n, 4], y: f32[n, 4]) -> (f32[n, 4], f32[n, 4]):
  needs n <= 64
  w: f32[4, 4] = state["w"]
  a: f32[n, 4] = Layer(x, w)
  b: f32[n, 4] = Layer(a, w)
  c: f32[n, 4] = aten.mul.Tensor(b, 2)
  d: f32[n, 4] = aten.clamp.default(c, 0.0)
  return c, d
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(b, 2)", "(b, 2.0)", "aten.mul.Tensor(b, 2.0)"),
        ("(b, 2)", "(b, True)", "aten.mul.Tensor(b, True)"),
        ("(c, 0.0)", "(c, -0.0)", "aten.clamp.default(c, -0.0)"),
        ("Layer(a, w)", "Layer(y, w)", "Layer(y, w)"),
        ("linear.default(x, w)", "linear.default(x, w, None)", "in region"),
        ("clamp.default", "clamp_min.default", "clamp_min"),
        ("n <= 64", "n <= 63", "relation n <= 64 against n <= 63"),
        ('state["w"]', 'state["v"]', "state w against v"),
        ("y: f32[n, 4]", "y: f32[n, 4] @5", "leaf 1 against 5"),
        ("return c, d", 'return c, d as "e"', "output output_1"),
        ("return c, d", "return d, c", "return"),
        ("return c, d", "return c, d, None", "2 outputs against 3"),
        ("y: f32[n, 4]", 'y: f32[n, 4] = input["z"]', "inputs x, y against x, z"),
        ("y: f32[n, 4]", "y: f64[n, 4]", "input y is f32[n, 4] against f64[n, 4]"),
        ("f32[n, 4], y", "f32[n, 4], 3, y", "leaf 1 against 2"),
    ],
)
def test_every_difference_is_seen(old, new, said):
    found = difference(parse(BASE), parse(BASE.replace(old, new, 1)))
    assert found is not None
    assert said in found


def test_names_of_values_and_spare_regions_make_no_difference():
    renamed = BASE.replace("b: f32", "bb: f32").replace("(b,", "(bb,").replace("Layer", "Other")
    assert difference(parse(BASE), parse(renamed)) is None


def test_regions_that_are_shared_in_one_graph_only_differ():
    region = BASE.strip().split("\n\n")[0]
    twice = region + "\n\n" + BASE.replace("region Layer", "region Layer_2").replace("Layer(a", "Layer_2(a")
    assert "share one region" in (difference(parse(BASE), parse(twice)) or "")


# -- wrong text ------------------------------------------------------------------------------------

GOOD = "graph(x: f32[n, 4]) -> f32[n, 4]:\n  a: f32[n, 4] = aten.relu.default(x)\n  return a"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("graph", "graf", 1, "expected 'region' or 'graph', found 'graf'"),
        ("f32[n, 4]) ->", "f33[n, 4]) ->", 1, "expected a type"),
        ("f32[n, 4]) ->", "f32[n, 4) ->", 1, "expected"),
        ("(x: f32[n, 4])", "(x)", 1, "'x' has no type"),
        ("-> f32[n, 4]:", "-> f32[n, 5]:", 3, "the graph returns f32[n, 4], the text has f32[n, 5]"),
        ("aten.relu.default", "aten.relu", 2, "neither an operator nor a region"),
        ("aten.relu.default", "aten.relu.nothing", 2, "neither an operator nor a region"),
        ("aten.relu.default", "os.system", 2, "neither an operator nor a region"),
        ("aten.relu.default", "__import__", 2, "neither an operator nor a region"),
        ("aten.relu.default", "load_library", 2, "neither an operator nor a region"),
        ("aten.relu.default", "aten.relu.default.__call__", 2, "neither an operator nor a region"),
        ("aten.relu.default", "getitem", 2, "takes no such arguments"),
        ("(x)\n", "(y)\n", 2, "no value is called 'y' up to here"),
        ("(x)\n", "(a)\n", 2, "no value is called 'a' up to here"),
        ("(x)\n", "(x, x)\n", 2, "takes no such arguments"),
        ("(x)\n", "(x\n", 3, "expected"),
        ("(x)\n", '(x, "no end)\n', 2, "unexpected"),
        ("(x)\n", "(x) x\n", 2, "expected the end of the line"),
        ("(x)\n", "(region body)\n", 2, "no region is called 'body'"),
        ("(x)\n", '(opaque("<object>"))\n', 2, "cannot be read from text"),
        ("(x)\n", "(slice(1))\n", 2, "slice takes 3 values"),
        ("(x)\n", '(device("moon"))\n', 2, "no device"),
        ("a: f32[n, 4]", "a: f32[n, 5]", 2, "makes f32[n, 4], the text has f32[n, 5]"),
        ("a: f32[n, 4]", "a: f64[n, 4]", 2, "makes f32[n, 4], the text has f64[n, 4]"),
        ("a: f32[n, 4]", "a: f32[n + 1, 4]", 2, "the text has f32[n + 1, 4]"),
        ("a: f32[n, 4]", "a: f32[n**2, 4]", 2, "no size expression"),
        ("a: f32[n, 4]", "x: f32[n, 4]", 2, "a second value is called 'x'"),
        ("a: f32[n, 4]", "f32: f32[n, 4]", 2, "expected a name for a value, found 'f32'"),
        ("  return a", "  return b", 3, "no value is called 'b'"),
        ("  return a", "", 3, "expected a name, found 'end of text'"),
        ("  return a", "  return a\nmore", 4, "expected the end of the text"),
        ("  return a", "  return a into x", 3, "expected the name of an input or a state, found 'x'"),
        ("  a:", "  needs n <\n  a:", 2, "no size expression"),
        ("  a:", "  needs n > 0 and n < 9\n  a:", 2, "no size expression"),
        ("  a:", "  needs n < 0\n  a:", 1, "no sizes were found"),
        ("  a:", '  w: f32[n] = state["w"]\n  a:', 2, "only sizes that are numbers"),
        ("a: f32[n, 4] = aten.relu.default(x)", "a: f32[n, 4] = x[0]", 2, "has no item 0"),
        (
            "a: f32[n, 4] = aten.relu.default(x)",
            "a = aten.expand.default(x, [7, 4])",
            2,
            "works for n = 7 only",
        ),
        ("(x)\n", "(" + "[" * 5000 + "\n", 2, "nested more than"),
        ("(x)\n", "(x, " + "9" * 100_000 + ")\n", 2, "a number of 100000 digits"),
    ],
)
def test_a_wrong_text_names_its_line(old, new, line, message):
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    start = time.perf_counter()
    with pytest.raises(GraphTextError) as caught:
        parse(text)
    assert time.perf_counter() - start < 20
    error = caught.value
    assert isinstance(error, ValueError)
    assert str(error).startswith(f"line {line}: "), str(error)
    assert message in str(error)
    assert len(str(error)) < 600


def test_no_graph_at_all():
    for text in ("", "\n\n", "region R() -> ():\n  return ()\n"):
        with pytest.raises(GraphTextError):
            parse(text)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_text_is_an_error_of_ours_or_a_graph(data):
    text = TEXTS["regions within regions"]
    start = data.draw(st.integers(0, len(text) - 1))
    stop = start + data.draw(st.integers(0, 6))
    damaged = text[:start] + data.draw(st.text('xwab(),:=[]"->1 \n', max_size=3)) + text[stop:]
    try:
        graph = parse(damaged)
    except Fx2OnnxError as error:
        assert isinstance(error, GraphTextError)  # noqa: PT017
        return
    assert show(parse(show(graph))) == show(graph)


def test_types_of_a_parsed_graph_are_real_fakes():
    graph = parse(GOOD)
    nodes = {n.name: n for n in graph.module.graph.nodes}
    assert str(type_of(nodes["a"])) == "f32[n, 4]"
    assert nodes["a"].meta["val"].fake_mode is nodes["x"].meta["val"].fake_mode
