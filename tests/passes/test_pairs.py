"""Passes on graph text: each `*.md` file here holds pairs of graphs, before and after the pass of that name.

A pair is a `## sentence` that says why it is there, a fenced block `before` and a fenced block `after`; `same` as the
text after means that the pass leaves the graph as it is. Every pass must also be idempotent on each pair.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from fx2onnx.difference import difference
from fx2onnx.graph import TypedGraph
from fx2onnx.rewrite import Pass
from fx2onnx.text import show
from fx2onnx.text_parser import parse
from fx2onnx.verifier import check

HERE = Path(__file__).parent
_PAIR = re.compile(
    r"^## (?P<why>[^\n]+)\n(?:(?!^## |^```).*\n)*"
    r"^```before\n(?P<before>.*?)^```\n\s*"
    r"^```after\n(?P<after>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Pair:
    """A graph before a pass and after it, and why the pair exists."""

    name: str
    why: str
    before: str
    after: str

    def run(self) -> Pass:
        """The pass of the pair's file."""
        found = importlib.import_module(f"fx2onnx.passes.{self.name}").run
        assert isinstance(found, Pass)
        return found


def pairs_of(path: Path) -> list[Pair]:
    """The pairs of a file; every heading must have one."""
    text = path.read_text()
    found = [Pair(path.stem, m["why"], m["before"], m["after"]) for m in _PAIR.finditer(text)]
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [p.why for p in found] == headings, f"{path.name}: a heading has no pair of before and after"
    return found


PAIRS = [pair for path in sorted(HERE.glob("*.md")) for pair in pairs_of(path)]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p.name}: {p.why}")
def test_pair(pair: Pair) -> None:
    before = parse(pair.before)
    untouched = show(before, modules=True)
    made = pair.run()(before)
    assert show(before, modules=True) == untouched, "the pass changed its argument"
    expected = before if pair.after.strip() == "same" else parse(pair.after)
    assert_equal(made, expected)
    check(made, stage=pair.name, functional=False)
    assert_equal(pair.run()(made), made)


def assert_equal(made: TypedGraph, expected: TypedGraph) -> None:
    """The graphs show the same text."""
    assert show(made) == show(expected), difference(made, expected)
