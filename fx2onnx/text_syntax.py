"""Graph text → statements: a recursive descent that knows no operator and no size.

`read(text)` gives the blocks of a text; `fx2onnx.text_parser` makes graphs of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fx2onnx import dims
from fx2onnx.dims import Dim
from fx2onnx.text_tokens import Ref, RegionRef, Words, fail
from fx2onnx.text_words import CONSTANTS
from fx2onnx.types import Type

# -- what a text says ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """A module call around lines: `in "layers.0" pkg.Layer:`; one object for each call."""

    path: str
    cls: str


@dataclass(frozen=True)
class Assign:
    """`name: type = callee(args)`.

    Attributes:
        kind: "call", "item" (`a[0]`, the position in `args`) or "attribute".
        typed: is the type written?
    """

    line: int
    name: str
    typed: bool
    type: Type | None
    kind: str
    callee: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class Parameter:
    """A placeholder, or a Python value among the inputs (`name` is None)."""

    line: int
    name: str | None
    type: Type | None
    title: str | None = None
    value: Any = None
    leaf: int | None = None


@dataclass(frozen=True)
class Result:
    """One item of the top graph's `return`."""

    value: Any
    into: str | None = None
    title: str | None = None
    leaf: int | None = None


@dataclass(frozen=True)
class Need:
    """`needs seq <= 512`, or `needs "text"` with sign "holds"."""

    left: Dim
    sign: str
    right: Dim
    text: str


@dataclass
class Block:
    """A region, or the graph itself (`name` is None).

    Attributes:
        returned: what a region returns; the graph's results are in `results`.
    """

    line: int
    name: str | None
    cls: str | None
    parameters: list[Parameter]
    result_type: Type | None
    needs: list[Need] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    state: list[Parameter] = field(default_factory=list)
    body: list[Assign] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    returned: Any = None
    return_line: int = 0


def read(text: str) -> list[Block]:
    """The blocks of a text, the graph last.

    Raises:
        GraphTextError: with the line, what was expected there and what was found.
    """
    return _Reader(text).blocks()


# -- reading ---------------------------------------------------------------------------------------


class _Reader(Words):
    """Reads blocks and their lines."""

    def blocks(self) -> list[Block]:
        found: list[Block] = []
        while self.token.kind != "end":
            found.append(self._block())
            if found[-1].name is None and self.token.kind != "end":
                self.fail("the end of the text after the graph")
        if not found or found[-1].name is not None:
            self.fail("'graph(…) -> …:'")
        return found

    def _block(self) -> Block:
        line = self.token.line
        if (word := self.take("region", "graph")) is None:
            self.fail("'region' or 'graph'")
        name = self.name("the region's name") if word == "region" else None
        cls = self.string() if name and self.take("of") else None
        self.need("(")
        parameters, _ = self.items(")", self._parameter)
        self.need("->")
        result = self.type()
        self.need(":")
        self.end_line()
        block = Block(line, name, cls, parameters, result)
        self._lines(block)
        return block

    def _lines(self, block: Block) -> None:
        """The lines up to `return`, each with the module calls around it."""
        around: list[tuple[int, Frame]] = []
        while True:
            token = self.token
            while around and token.indent <= around[-1][0]:
                around.pop()
            if token.text == "return" and token.kind == "name":
                self._return(block)
                return
            if token.text == "in" and self.tokens[self.next + 1].kind == "string":
                around.append((token.indent, self._frame()))
            elif token.text in ("needs", "note") and self.peek() not in (":", "="):
                self._fact(block)
            else:
                self._assign(block, tuple(frame for _, frame in around))
            self.end_line()

    def _frame(self) -> Frame:
        self.need("in")
        path = self.string()
        words = []
        while self.token.kind == "name" or self.token.text in ("<", ">"):  # f.<locals>.Model
            words.append(self.advance().text)
        if not words:
            self.fail("the module's class")
        self.need(":")
        return Frame(path, "".join(words))

    def _fact(self, block: Block) -> None:
        if block.name is not None:
            self.fail("a line of a region ('needs' and 'note' belong to the graph)")
        if self.advance().text == "note":
            block.notes.append(self.string())
        elif self.token.kind == "string":
            block.needs.append(Need(0, "holds", 0, self.string()))
        else:
            block.needs.append(self._need())

    def _need(self) -> Need:
        signs = ("==", "!=", "<", "<=", ">", ">=")
        left = self.size_until(*signs)
        sign = self.advance().text
        right = self.size_until("as", "end of line")
        plain = f"{dims.show(left)} {sign} {dims.show(right)}"
        return Need(left, sign, right, self.string() if self.take("as") else plain)

    def _parameter(self) -> Parameter:
        line = self.token.line
        if self.token.kind != "name" or self.peek() != ":":
            value = self.literal()
            if _refers(value):
                fail(
                    line,
                    f"{value.name!r} has no type" if isinstance(value, Ref) else "a value is no input",
                    self.text,
                )
            return Parameter(line, None, None, value=value, leaf=self._leaf())
        name = self._new_name()
        self.need(":")
        type_ = self.type()
        title = self._titled("input") if self.take("=") else None
        return Parameter(line, name, type_, title, leaf=self._leaf())

    def _leaf(self) -> int | None:
        return self.integer("a leaf's position") if self.take("@") else None

    def _titled(self, word: str) -> str:
        """`input["past.0.key"]`."""
        self.need(word)
        self.need("[")
        title = self.string()
        self.need("]")
        return title

    def _new_name(self) -> str:
        name = self.name("a name")
        if name in CONSTANTS or "." in name or "`" in name:
            self.next -= 1
            self.fail("a name for a value")
        return name

    def _assign(self, block: Block, frames: tuple[Frame, ...]) -> None:
        line, name = self.token.line, self._new_name()
        typed = self.take(":") is not None
        type_ = self.type() if typed else None
        self.need("=")
        if self.token.text == "state" and self.tokens[self.next + 2].kind == "string":
            if block.name is not None:
                self.fail("a call (state belongs to the graph)")
            block.state.append(Parameter(line, name, type_, self._titled("state")))
            return
        kind, callee, args, kwargs = self._call()
        block.body.append(Assign(line, name, typed, type_, kind, callee, args, kwargs, frames))

    def _call(self) -> tuple[str, str, tuple[Any, ...], dict[str, Any]]:
        if self.token.text == "attribute" and self.tokens[self.next + 2].kind == "string":
            return "attribute", self._titled("attribute"), (), {}
        callee = self.name("an operator, a region or a value")
        if self.take("["):
            position = self.integer("a position")
            self.need("]")
            return "item", callee, (position,), {}
        self.need("(")
        arguments, _ = self.items(")", self._argument)
        positional = tuple(value for key, value in arguments if key is None)
        keywords = {key: value for key, value in arguments if key is not None}
        return "call", callee, positional, keywords

    def _argument(self) -> tuple[str | None, Any]:
        if self.token.kind == "name" and self.peek() == "=":
            key = self.advance().text
            self.need("=")
            return key, self.literal()
        return None, self.literal()

    def _return(self, block: Block) -> None:
        block.return_line = self.token.line
        self.need("return")
        items: list[Result] = []
        while self.token.kind not in ("newline", "end"):
            if items:
                self.need(",")
            items.append(self._result() if block.name is None else Result(self.literal()))
        self.end_line()
        block.results = items if block.name is None else []
        if block.name is not None:
            block.returned = items[0].value if len(items) == 1 else tuple(i.value for i in items)

    def _result(self) -> Result:
        value = self.literal()
        into = self.string("the name of an input or a state") if self.take("into") else None
        title = self.string() if self.take("as") else None
        return Result(value, into, title, self._leaf())


def _refers(value: Any) -> bool:
    """Does a literal hold a value's name?"""
    if isinstance(value, list | tuple):
        return any(map(_refers, value))
    if isinstance(value, dict):
        return any(map(_refers, value.values()))
    return isinstance(value, Ref | RegionRef)
