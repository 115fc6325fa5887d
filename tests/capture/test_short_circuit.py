"""Questions about sizes that the rest of their condition makes irrelevant leave no relation."""

from __future__ import annotations

import sys

import pytest
import torch

from fx2onnx.capture import capture
from fx2onnx.capture.short_circuit import short_circuits

COUNTS: list[int] = []
TOTAL = 0


def never():
    return False


def counts():
    global TOTAL  # noqa: PLW0603
    TOTAL += 1
    return False


class Holder:
    flag = False

    def __bool__(self):
        return True


def relations(function, *sizes):
    """The relations of one trace over tensors of these sizes, the first two free (`n`, `m`)."""
    shapes = tuple({0: name} for name in "nm"[: len(sizes)])
    graph = capture(function, tuple(torch.randn(s, 3) for s in sizes), dynamic_shapes=shapes)
    return [str(r) for r in graph.relations]


def one_trace(monkeypatch):
    """Let a second trace fail the test."""
    monkeypatch.setattr(sys.modules["fx2onnx.capture"], "without_idle_relations", lambda graph, *_: graph)


MASK = object()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if (x.shape[0] > 1 and MASK is None) else x,
        lambda x: x * 2 if (x.shape[0] == 1 and never()) else x,
        lambda x: x * 2 if not (x.shape[0] != 1 or True) else x,
        lambda x: x * 2 if (x.shape[0] > 1 and isinstance(x, int)) else x,
        lambda x: x * 2 if (hasattr(x, "nothing") or x.dim() == 2 or x.shape[0] > 4) else x,
        lambda x: x * 2 if ((x.shape[0] > 1 or x.shape[0] <= 1) and MASK is not None) else x,
        lambda x: x * 2 if (len(x.shape) == 3 and x.shape[0] > 4) else x,
        lambda x: x * 2 if (x.size(0) > 1 and getattr(MASK, "flag", False)) is True else x,
    ],
)
def test_no_relation_where_the_condition_has_one_value(function, monkeypatch):
    one_trace(monkeypatch)
    assert relations(function, 5) == []


def test_a_condition_that_is_a_value(monkeypatch):
    one_trace(monkeypatch)

    def forward(x):
        causal = x.shape[0] > 1 and MASK is None
        return x + 1 if causal else x - 1

    assert relations(forward, 5) == []


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * 2 if (x.shape[0] > 1 and MASK is not None) else x, ["n > 1"]),
        (lambda x: x * 2 if x.shape[0] > 1 else x, ["n > 1"]),
        (lambda x: x * 2 if (x.shape[0] > 4 and Holder()) else x, ["n > 4"]),
        (lambda x: x * 2 if (x.shape[0] > 4 and getattr(MASK, "flag", None)) else x, ["n > 4"]),
        (lambda x: x * 2 if (x.shape[0] > 4 and x.missing) else x, AttributeError),
    ],
    ids=["matters", "alone", "no bool", "none or false", "raises"],
)
def test_the_relation_stays(function, expected, monkeypatch):
    one_trace(monkeypatch)
    if isinstance(expected, list):
        assert relations(function, 5) == expected
    else:
        with pytest.raises(Exception, match="missing"):
            relations(function, 5)


def test_two_sizes_in_one_condition_are_both_asked(monkeypatch):
    one_trace(monkeypatch)
    assert set(relations(lambda x, y: x if (x.shape[0] > 4 and y.shape[0] > 5) else y, 5, 7)) == {
        "n > 4",
        "m > 5",
    }


def test_what_python_would_not_look_at_is_not_fixed(monkeypatch):
    one_trace(monkeypatch)
    assert relations(lambda x, y: x if (x.shape[0] == 1 and len(y) == 7) else y, 5, 7) == ["n != 1"]


def test_a_condition_with_effects_is_left_to_python(monkeypatch):
    one_trace(monkeypatch)
    before = TOTAL
    assert relations(lambda x: x * 2 if (x.shape[0] == 1 and counts()) else x, 5) == ["n != 1"]
    assert before == TOTAL
    COUNTS[:] = [0, 0]
    assert relations(lambda x: x * 2 if (x.shape[0] > 1 and COUNTS.pop()) else x, 5) == ["n > 1"]
    assert len(COUNTS) == 1  # popped by Python, once


def test_the_tracer_is_left_as_it_was():
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    before = ShapeEnv.evaluate_expr
    with short_circuits():
        assert ShapeEnv.evaluate_expr is not before
    assert ShapeEnv.evaluate_expr is before
