"""The words of graph text as tokens, and what is read from them below the level of lines: sizes, types, literals.

Nothing of a text is evaluated: strings are read by json, sizes by `fx2onnx.dims.parse`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import torch

from fx2onnx import dims
from fx2onnx.dims import Dim
from fx2onnx.errors import DimSyntaxError, GraphTextError
from fx2onnx.text_words import CONSTANTS, Opaque, find_target
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


@dataclass(frozen=True)
class Ref:
    """A value by its name."""

    name: str


@dataclass(frozen=True)
class RegionRef:
    """A graph that is passed to an operator."""

    name: str


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


class Words:
    """The tokens of a text with a position: what sizes, types and literals are read from."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.next, self.depth = text, tokens_of(text), 0, 0

    @property
    def token(self) -> Token:
        """The next word."""
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
        """The next word, and go on to the one after it; the end of the text stays."""
        token = self.token
        if token.kind != "end":
            self.next += 1
        return token

    def need(self, word: str) -> None:
        """Take a word that must be there."""
        if self.take(word) is None:
            self.fail(f"{word!r}")

    def need_kind(self, kind: str, expected: str) -> str:
        """Take a word of a kind; `expected` says in errors what that is."""
        if self.token.kind != kind:
            self.fail(expected)
        return self.advance().text

    def name(self, expected: str) -> str:
        """Take a name."""
        return self.need_kind("name", expected)

    def string(self, expected: str = "a text in double quotes") -> str:
        """Take a text in double quotes."""
        line, word = self.token.line, self.need_kind("string", expected)
        try:
            return str(json.loads(word))
        except json.JSONDecodeError as error:
            fail(line, f"{word[:40]} is no text: {error.msg}", self.text)

    def integer(self, expected: str = "a whole number") -> int:
        """Take a whole number."""
        word = self.need_kind("number", expected)
        if not word.isdigit() or len(word) > MAX_DIGITS:
            self.next -= 1
            self.fail(expected)
        return int(word)

    def end_line(self) -> None:
        """Go on to the next line."""
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
        return self.fail("a type")

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
        return self.fail("a value")

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
        """`slice(0, None, 2)`, `complex(0.0, 1.0)`, `device("cpu")` and the like."""
        self.need("(")
        arguments, _ = self.items(")", self.literal)
        build, counts = _FORMS[token.text]
        if len(arguments) != counts:
            fail(token.line, f"{token.text} takes {counts} values, not {len(arguments)}", self.text)
        try:
            return build(*arguments)
        except (TypeError, ValueError, RuntimeError) as error:
            fail(token.line, f"no {token.text}: {str(error).splitlines()[0]}", self.text)


_FORMS: dict[str, tuple[Callable[..., Any], int]] = {
    "slice": (slice, 3),
    "range": (range, 3),
    "complex": (complex, 2),
    "device": (torch.device, 1),
    "opaque": (lambda text: Opaque(str(text)), 1),
}
