"""Graph text → statements: a tokenizer and a recursive descent, which know no operator and no size.

`read(text)` gives the blocks of a text; `fx2onnx.text_parser` makes graphs of them. Nothing of a text is evaluated:
strings are read by json, sizes by `fx2onnx.dims.parse`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from fx2onnx import dims
from fx2onnx.dims import Dim
from fx2onnx.errors import DimSyntaxError, GraphTextError
from fx2onnx.text_words import CONSTANTS, Opaque, find_target
from fx2onnx.text_words import constant as show_constant
from fx2onnx.types import FROM_SHORT, SizeType, TensorType, Type

MAX_DEPTH, MAX_DIGITS = 64, 400

_TOKEN = re.compile(
    r"(?P<space>[ \t\r]+|\#[^\n]*)"
    r"|(?P<newline>\n)"
    r'|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<name>[^\W\d][\w.]*|`[^`\n]+`)"
    r"|(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
    r"|(?P<sign>->|//|\.\.\.|==|!=|<=|>=|[][(){},:=+*/%@<>-])"
)


class Token(NamedTuple):
    """One word of a text: its kind, where it is, and the column at which its line begins."""

    kind: str
    text: str
    start: int
    line: int
    indent: int


# -- what a text says ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ref:
    """A value by its name."""

    name: str


@dataclass(frozen=True)
class RegionRef:
    """A graph that is passed to an operator."""

    name: str


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


def fail(line: int, why: str, text: str = "") -> NoReturn:
    """Raise the error of a line.

    Raises:
        GraphTextError: always.
    """
    lines = text.split("\n")
    shown = lines[line - 1].strip()[:120] if 0 < line <= len(lines) else None
    raise GraphTextError(f"line {line}: {why}", where=shown or None)


def tokens_of(text: str) -> list[Token]:
    """The words of a text; line ends within brackets are left out, and so are empty lines."""
    found: list[Token] = []
    position, line, indent, fresh, open_brackets = 0, 1, 0, True, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            fail(line, f"unexpected {text[position]!r}", text)
        kind, word = str(match.lastgroup), match[0]
        if fresh and kind not in ("space", "newline"):
            indent, fresh = position - (text.rfind("\n", 0, position) + 1), False
        if kind == "newline":
            if open_brackets == 0 and not fresh:
                found.append(Token(kind, "end of line", position, line, indent))
                fresh = True
            line += 1
        elif kind != "space":
            open_brackets = max(0, open_brackets + (word in tuple("([{")) - (word in tuple(")]}")))
            found.append(Token(kind, word, position, line, indent))
        position = match.end()
    if not fresh:
        found.append(Token("newline", "end of line", position, line, indent))
    found.append(Token("end", "end of text", position, line, 0))
    return found


# -- reading ---------------------------------------------------------------------------------------


class Words:
    """The tokens of a text with a position; the lowest level of the descent."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.next, self.depth = text, tokens_of(text), 0, 0

    @property
    def token(self) -> Token:
        return self.tokens[self.next]

    def peek(self, ahead: int = 1) -> str:
        """The word after the next one."""
        return self.tokens[min(self.next + ahead, len(self.tokens) - 1)].text

    def fail(self, expected: str) -> NoReturn:
        """Raise: what was expected at the position, and what is there."""
        fail(self.token.line, f"expected {expected}, found {self.token.text!r}", self.text)

    def take(self, *words: str) -> str | None:
        """The next word if it is one of these (and no string)."""
        if self.token.text in words and self.token.kind != "string":
            return self.advance().text
        return None

    def advance(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.next += 1
        return token

    def need(self, word: str) -> None:
        if self.take(word) is None:
            self.fail(f"{word!r}")

    def need_kind(self, kind: str, expected: str) -> str:
        if self.token.kind != kind:
            self.fail(expected)
        return self.advance().text

    def name(self, expected: str) -> str:
        return self.need_kind("name", expected)

    def string(self, expected: str = "a text in double quotes") -> str:
        line, word = self.token.line, self.need_kind("string", expected)
        try:
            return str(json.loads(word))
        except json.JSONDecodeError as error:
            fail(line, f"{word[:40]} is no text: {error.msg}", self.text)

    def integer(self, expected: str = "a whole number") -> int:
        word = self.need_kind("number", expected)
        if not word.isdigit() or len(word) > MAX_DIGITS:
            self.next -= 1
            self.fail(expected)
        return int(word)

    def end_line(self) -> None:
        if self.token.kind not in ("newline", "end"):
            self.fail("the end of the line")
        self.advance()

    def nested(self, inner: Callable[[], Any]) -> Any:
        """What `inner` reads, one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            fail(self.token.line, f"nested more than {MAX_DEPTH} deep", self.text)
        result = inner()
        self.depth -= 1
        return result

    def items(self, close: str, item: Callable[[], Any]) -> tuple[list[Any], bool]:
        """Items up to the closing bracket, and whether a comma follows the last one."""
        found: list[Any] = []
        comma = False
        while self.take(close) is None:
            if found and not comma:
                self.fail(f"',' or {close!r}")
            found.append(self.nested(item))
            comma = self.take(",") is not None
        return found, comma

    # -- sizes and types ---------------------------------------------------------------------------

    def size_until(self, *ends: str) -> Dim:
        """The size expression up to one of these words outside of brackets."""
        first, level = self.token, 0
        while not (level == 0 and self.token.text in ends):
            if self.token.kind in ("newline", "end"):
                self.fail(" or ".join(map(repr, ends)))
            level += (self.token.text in ("(", "[")) - (self.token.text in (")", "]"))
            self.advance()
        try:
            return dims.parse(self.text[first.start : self.token.start])
        except DimSyntaxError as error:
            fail(first.line, error.what, self.text)

    def type(self) -> Type | None:
        """`f32[n, 3]`, `size[n]`, `float`, `bool`, `(f32[n], None)`."""
        if self.take("("):
            return tuple(self.items(")", self.type)[0])
        word = self.name("a type")
        if word == "None":
            return None
        if self.take("["):
            return self._bracketed(word)
        if word in ("float", "bool"):
            return SizeType({"float": float, "bool": bool}[word], None)
        self.next -= 1
        self.fail("a type")

    def _bracketed(self, word: str) -> Type:
        if word == "size":
            size = self.size_until("]")
            self.need("]")
            return SizeType(int, size)
        if word not in FROM_SHORT:
            self.next -= 2
            self.fail(f"a type ({', '.join(FROM_SHORT)}, size)")
        shape: list[Dim] = []
        while self.take("]") is None:
            shape.append(self.size_until(",", "]"))
            self.take(",")
        return TensorType(FROM_SHORT[word], tuple(shape))

    # -- literals ----------------------------------------------------------------------------------

    def literal(self) -> Any:
        """A value's name, a constant, or a list, tuple, dict or slice of them."""
        token = self.token
        if token.kind == "string":
            return self.string()
        if token.kind == "number" or token.text in ("-", "+"):
            return self._number()
        if token.kind == "name":
            return self._word()
        if self.take("["):
            return self.items("]", self.literal)[0]
        if self.take("("):
            found, comma = self.items(")", self.literal)
            return found[0] if len(found) == 1 and not comma else tuple(found)
        if self.take("{"):
            return dict(self.items("}", self._pair)[0])
        if self.take("..."):
            return ...
        self.fail("a value")

    def _pair(self) -> tuple[Any, Any]:
        key = self.literal()
        self.need(":")
        return key, self.literal()

    def _number(self) -> int | float:
        negative = self.take("-", "+") == "-"
        token = self.token
        if token.kind == "name" and token.text in ("inf", "nan"):
            number: int | float = CONSTANTS[self.advance().text]
        else:
            word = self.need_kind("number", "a number")
            if len(word) > MAX_DIGITS:
                fail(token.line, f"a number of {len(word)} digits", self.text)
            number = int(word) if word.isdigit() else float(word)
        return -number if negative else number

    def _word(self) -> Any:
        token = self.advance()
        word, before = token.text, self.token.text
        if word == "region":
            return RegionRef(self.name("the name of a region"))
        if before == "(" and word in _FORMS:
            return self._form(token)
        if word == "size" and before == "[":
            self.advance()
            size = self.size_until("]")
            self.need("]")
            return size
        if word in CONSTANTS:
            return CONSTANTS[word]
        if "." in word:
            if (target := find_target(word)) is None:
                fail(token.line, f"{word!r} is no operator and no constant", self.text)
            return target
        return Ref(word)

    def _form(self, token: Token) -> Any:
        """`slice(0, None, 2)`, `complex(0.0, 1.0)`, `device("cpu")` …"""
        self.need("(")
        arguments, _ = self.items(")", self.literal)
        build, counts = _FORMS[token.text]
        if len(arguments) != counts:
            fail(token.line, f"{token.text} takes {counts} values, not {len(arguments)}", self.text)
        try:
            return build(*arguments)
        except (TypeError, ValueError, RuntimeError) as error:
            fail(token.line, f"no {token.text}: {str(error).splitlines()[0]}", self.text)


def _device(text: str) -> Any:
    import torch  # noqa: PLC0415  only here

    return torch.device(text)


_FORMS: dict[str, tuple[Callable[..., Any], int]] = {
    "slice": (slice, 3),
    "range": (range, 3),
    "complex": (complex, 2),
    "device": (_device, 1),
    "opaque": (lambda text: Opaque(str(text)), 1),
}


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
                fail(line, f"{value.name!r} has no type" if isinstance(value, Ref) else "a value is no input", self.text)
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
        into = self.name("an input or a state") if self.take("into") else None
        title = self.string() if self.take("as") else None
        return Result(value, into, title, self._leaf())


def _refers(value: Any) -> bool:
    """Does a literal hold a value's name?"""
    if isinstance(value, list | tuple):
        return any(map(_refers, value))
    if isinstance(value, dict):
        return any(map(_refers, value.values()))
    return isinstance(value, Ref | RegionRef)


__all__ = ["Assign", "Block", "Frame", "Need", "Parameter", "Ref", "RegionRef", "Result", "fail", "read", "show_constant"]
