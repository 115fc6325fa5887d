"""Lowering rules: `@lowers`, rows for one-to-one operators, gaps with a reason, and the RuleBook.

A rule is declared next to its operator and collected by `opset/__init__.py`; importing a rule file changes
nothing. A rule gets an `OpBuilder` and the ATen arguments under their schema names: tensors and sizes as
`Value`s, everything static as plain Python.

    @lowers(aten.gelu.default, since=20)
    def gelu(op: OpBuilder, self: Value, *, approximate: str = "none") -> ir.Value:
        return op.Gelu(self, approximate=approximate)

An `@onnxscript.script()` function is a rule as it stands: `lowers(my.op.default)(script_function)`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import onnxscript
import torch

Target = torch._ops.OpOverload | Callable[..., Any]  # noqa: SLF001  torch has no public name for it

OLDEST_OPSET = 18


@dataclass(frozen=True)
class Rule:
    """How one or more operators are written in ONNX.

    Attributes:
        targets: ATen overloads, custom operators, or Python operators on sizes.
        function: `function(op, *arguments)` returning a value or several; or an onnxscript function.
        since: the first opset in which the rule may be used; the newest that fits wins.
        target: "onnx" for rules of standard operators, "onnxruntime" for those that need com.microsoft.
        inline: is the result placed into the caller instead of becoming a function of its own?
    """

    targets: tuple[Target, ...]
    function: Callable[..., Any]
    since: int = OLDEST_OPSET
    target: str = "onnx"
    inline: bool = False

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Apply the rule, as another rule does that builds on it."""
        return self.function(*arguments, **keywords)

    @property
    def name(self) -> str:
        """The function's name with its module, for messages."""
        function = inspect.unwrap(getattr(self.function, "function", self.function))
        return f"{function.__module__}.{getattr(function, '__name__', function)}"

    @property
    def where(self) -> str:
        """`file.py:line` of the rule."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else self.name

    @functools.cached_property
    def parameters(self) -> Parameters | None:
        """What the function takes besides the builder; None when it takes anything."""
        found = list(inspect.signature(self.function).parameters.values())[1:]
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
            return None
        positional = [p for p in found if p.kind != p.KEYWORD_ONLY]
        return Parameters(len(positional), frozenset(p.name for p in found))


@dataclass(frozen=True)
class Parameters:
    """The signature of a rule: how many arguments it takes by position, and all names."""

    positional: int
    names: frozenset[str]


@dataclass(frozen=True)
class Gap:
    """Why operators have no rule.

    Attributes:
        kind: "ours" (not written yet), "onnxruntime" (the runtime lacks it), "never" (not sayable in ONNX).
        reason: one clause for the error message.
    """

    targets: tuple[Target, ...]
    kind: Literal["ours", "onnxruntime", "never"]
    reason: str


def lowers(
    *targets: Target, since: int = OLDEST_OPSET, target: str = "onnx", inline: bool = False
) -> Callable[[Callable[..., Any]], Rule]:
    """Declare the decorated function (or onnxscript function) the rule of these operators."""

    def declare(function: Callable[..., Any]) -> Rule:
        return Rule(targets, function, since, target, inline)

    return declare


def rows(table: Mapping[Target, str], since: int = OLDEST_OPSET) -> tuple[Rule, ...]:
    """Rules for operators that are one ONNX operator on the same tensor arguments."""
    return tuple(Rule((target,), _OneToOne(op_type), since) for target, op_type in table.items())


@dataclass(frozen=True)
class _OneToOne:
    """The rule of a row: all arguments become the operator's inputs."""

    op_type: str

    def __call__(self, op: Any, *arguments: Any) -> Any:
        return getattr(op, self.op_type)(*arguments)


class RuleBook:
    """Rules by target; made by `collect`, never changed.

    `book.find(target, opset=…, dialect=…)` gives the rule for one opset; `book.with_rules(mine)` is a new
    book in which `mine` come first.
    """

    def __init__(
        self, rules: Iterable[Rule], gaps: Iterable[Gap] = (), later: Mapping[str, str] | None = None
    ) -> None:
        self._rules: dict[Target, list[Rule]] = {}
        self._later = dict(later or {})
        for rule in rules:
            for target in rule.targets:
                self._rules.setdefault(target, []).append(rule)
        for found in self._rules.values():
            found.sort(key=lambda rule: (rule.target == "onnxruntime", rule.since), reverse=True)
        self._gaps = {target: gap for gap in gaps for target in gap.targets}
        self._first: dict[Target, Rule] = {}

    def find(self, target: Target, *, opset: int, dialect: str = "onnx") -> Rule | None:
        """The rule for `target` in a model of this opset, None when there is none."""
        if (mine := self._first.get(target)) is not None and mine.since <= opset:
            return mine
        for rule in self._rules.get(target, ()):
            if rule.since <= opset and rule.target in ("onnx", dialect):
                return rule
        other = self._namespace_book(target)
        return other.find(target, opset=opset, dialect=dialect) if other is not None else None

    def gap(self, target: Target) -> Gap | None:
        """Why there is no rule, where that is known."""
        found = self._gaps.get(target)
        if found is None and (other := self._namespace_book(target)) is not None:
            found = other.gap(target)
        return found

    def _namespace_book(self, target: Target) -> RuleBook | None:
        """The rules of a namespace whose operators exist only once their library is imported."""
        module = self._later.get(getattr(target, "namespace", ""))
        return _book_of(module) if module is not None else None

    def with_rules(self, rules: Iterable[Rule]) -> RuleBook:
        """A book in which these rules win over the ones here."""
        book = RuleBook(())
        book._rules, book._gaps, book._later = self._rules, self._gaps, self._later
        book._first = dict(self._first)
        for rule in rules:
            book._first.update(dict.fromkeys(rule.targets, rule))
        return book

    def targets(self) -> dict[Target, tuple[Rule, ...]]:
        """Every operator that has rules, with its rules, the preferred one first."""
        return {target: tuple(found) for target, found in self._rules.items()}

    def gaps(self) -> Mapping[Target, Gap]:
        """Every operator that is known to have no rule."""
        return self._gaps


@functools.cache
def _book_of(module: str) -> RuleBook:
    return collect(importlib.import_module(module))


def collect(*modules: ModuleType, later: Mapping[str, str] | None = None) -> RuleBook:
    """The rules and gaps that these modules declare at their top level (alone or in tuples).

    Args:
        modules: imported now.
        later: namespace → module that is imported when an operator of that namespace is looked up.

    Raises:
        ValueError: two rules are for the same operator, opset and target; both are named.
    """
    rules: list[Rule] = []
    gaps: list[Gap] = []
    for module in modules:
        for value in vars(module).values():
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Rule):
                    rules.append(item)
                elif isinstance(item, Gap):
                    gaps.append(item)
    _refuse_doubles(rules)
    return RuleBook(rules, gaps, later)


def _refuse_doubles(rules: Iterable[Rule]) -> None:
    seen: dict[tuple[Target, int, str], Rule] = {}
    for rule in rules:
        for target in rule.targets:
            other = seen.setdefault((target, rule.since, rule.target), rule)
            if other is not rule:
                raise ValueError(f"two rules for {target}: {other.name} and {rule.name}")


def is_script(function: Any) -> bool:
    """Is this an `@onnxscript.script()` function?"""
    return isinstance(function, onnxscript.OnnxFunction)
