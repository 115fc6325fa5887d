"""Every exception of fx2onnx: its fields, and the sentence it prints.

Different failures are different classes, all below `Fx2OnnxError`:

    ExportInputError        what the caller passed does not fit (also a ValueError)
    CaptureError            torch could not trace the model
      PinnedDimError        the model fixes a size that was asked to be dynamic
    NoLoweringError         operators that have neither a rule nor a decomposition
    UnsupportedOpError      what can never be said in ONNX
    RuleError               a lowering rule raised
    GraphTextError          a text is not a graph (also a ValueError)
    DimSyntaxError          a text is not a size (also a ValueError)
    SaveError               nothing was written (also an OSError)
    VerificationError       the model's results differ from eager PyTorch's
    RelationError           an input breaks a relation that the model needs
    InvariantError          our own bug: a graph that breaks an invariant
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class Fx2OnnxError(Exception):
    """Base of all errors that fx2onnx raises on purpose.

    Attributes:
        stage: the stage of the compiler that noticed: "input", "capture", "pass", "lower", "save" …
    """

    stage: str | None = None

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        self.what, self.where, self.fix = what, where, fix
        lines = [what]
        if where:
            lines += [f"  at {line}" for line in where.splitlines()]
        if fix:
            lines.append(f"  fix: {fix}")
        super().__init__("\n".join(lines))


class ExportInputError(Fx2OnnxError, ValueError):
    """What the caller passed to fx2onnx does not fit: names, sizes, dtypes, opset, paths."""

    stage = "input"


class CaptureError(Fx2OnnxError):
    """torch could not trace the model; the cause is chained."""

    stage = "capture"


class PinnedDimError(CaptureError):
    """A size that was asked to be dynamic can only have one value in this model.

    Attributes:
        dim: the user's name for the size, with the inputs and axes that carry it.
        value: the only value that the model accepts.
    """

    def __init__(self, dim: str, value: str, *, where: str | None) -> None:
        self.dim, self.value = dim, value
        super().__init__(
            f"the model needs {dim} to be {value}, but it was asked to be dynamic",
            where=where,
            fix="leave this size static, or change the line so that it holds for every size",
        )


@dataclass(frozen=True)
class MissingOp:
    """One operator without a rule: its schema and every place where the user's code needs it."""

    name: str
    schema: str
    places: tuple[str, ...]
    reason: str | None = None


class NoLoweringError(Fx2OnnxError):
    """Operators that have neither a lowering rule nor a decomposition; all of them at once.

    Attributes:
        missing: one `MissingOp` for each operator.
    """

    stage = "lower"

    def __init__(self, missing: Sequence[MissingOp]) -> None:
        self.missing = tuple(missing)
        parts = [_missing_op_text(op) for op in self.missing]
        count = f"{len(parts)} operator{'s have' if len(parts) > 1 else ' has'} no lowering rule"
        super().__init__(
            f"{count} and no decomposition:\n" + "\n".join(parts),
            fix="pass a rule for each: fx2onnx.export(..., rules=[…]); a rule looks like\n"
            + "\n".join(_skeleton(op) for op in self.missing),
        )


def _missing_op_text(op: MissingOp) -> str:
    uses = f"{len(op.places)} use{'s' if len(op.places) != 1 else ''}"
    head = f"  {op.name} ({uses})" + (f": {op.reason}" if op.reason else "")
    return "\n".join([head, f"    {op.schema}", *(f"    at {place}" for place in op.places)])


def _skeleton(op: MissingOp) -> str:
    function = op.name.split(".")[-2] if op.name.count(".") > 1 else op.name.split(".")[0]
    return f"    @fx2onnx.lowers(torch.ops.{op.name})\n    def {function}(op, …): return op.SomeOnnxOp(…)"


class UnsupportedOpError(Fx2OnnxError):
    """The model asks for something that ONNX has no words for."""

    stage = "lower"


class RuleError(Fx2OnnxError):
    """A lowering rule raised; the cause is chained, `where` holds the rule's line and the call."""

    stage = "lower"


class GraphTextError(Fx2OnnxError, ValueError):
    """A text is not the text form of a graph."""

    stage = "text"


class DimSyntaxError(Fx2OnnxError, ValueError):
    """A text is not arithmetic over size names."""

    stage = "text"


class SaveError(Fx2OnnxError, OSError):
    """The model could not be written; what was at the path before is still there."""

    stage = "save"


class VerificationError(Fx2OnnxError):
    """The model's results in ONNX Runtime differ from those of eager PyTorch."""

    stage = "verify"


class RelationError(Fx2OnnxError, ValueError):
    """An input breaks a relation between sizes that the traced model relies on."""

    stage = "run"


class InvariantError(Fx2OnnxError):
    """A graph breaks an invariant of the compiler: a bug of fx2onnx, or of a pass or rule of yours."""

    stage = "verifier"
