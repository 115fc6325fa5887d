"""OnnxProgram: an exported model that can be saved, run with the model's own arguments, and verified."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
import onnx_ir as ir
import onnx_ir.passes.common as ir_passes
import torch
import torch.utils._pytree as pytree

from fx2onnx import dims, serialise
from fx2onnx.errors import ExportInputError, Fx2OnnxError, RelationError
from fx2onnx.graph import TypedGraph
from fx2onnx.protobuf_stream import PROTOBUF_LIMIT, write_model
from fx2onnx.types import SHORT, TORCH_DTYPES, TensorType, type_of

if TYPE_CHECKING:
    import onnxruntime

    from fx2onnx.verify import Report


@dataclass
class OnnxProgram:
    """An ONNX model with the typed graph that it was made from.

    Attributes:
        model: the model as onnx_ir has it; its weights share memory with the PyTorch model's.
        graph: the typed graph.
        source: the PyTorch model, for `verify`.
        args, kwargs: the example arguments.
    """

    model: ir.Model
    graph: TypedGraph
    source: Callable[..., Any] | None = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    _session: Any = field(default=None, repr=False)

    # -- the model ---------------------------------------------------------------------------------

    def to_proto(self) -> onnx.ModelProto:
        """The model as protobuf, weights included; models beyond 2 GB can only be saved."""
        return ir.to_proto(self.model)

    def inline(self) -> OnnxProgram:
        """The same program with every function replaced by its nodes."""
        model = self.model.clone()
        ir_passes.InlinePass()(model)
        ir_passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
        ir_passes.RemoveUnusedNodesPass()(model)
        ir_passes.RemoveUnusedOpsetsPass()(model)
        return OnnxProgram(model, self.graph, self.source, self.args, self.kwargs)

    def save(self, path: str | os.PathLike[str], *, external_data: bool | None = None) -> None:
        """Write the model; see `fx2onnx.serialise.save`."""
        serialise.save(self.model, path, external_data=external_data)

    @property
    def relations(self) -> tuple[str, ...]:
        """What the model needs of its sizes, e.g. `seq <= 1024`."""
        return tuple(map(str, self.graph.relations))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed or left out."""
        return self.graph.notes

    def report(self) -> str:
        """Inputs, outputs, what the model needs of its sizes, and what was assumed."""
        placeholders = self.graph.placeholders()
        lines = [f"input {i.name}: {type_of(placeholders[i.placeholder])}" for i in self.graph.inputs]
        lines += [f"output {value.name}: {_type_text(value)}" for value in self.model.graph.outputs]
        lines += [f"needs {r}" + (f"    at {r.where}" if r.where else "") for r in self.graph.relations]
        lines += [f"note: {note}" for note in self.graph.notes]
        return "\n".join(lines)

    # -- running -----------------------------------------------------------------------------------

    def session(self) -> onnxruntime.InferenceSession:
        """The model in ONNX Runtime on the CPU; loaded once.

        Raises:
            Fx2OnnxError: onnxruntime is not installed.
        """
        if self._session is None:
            self._session = _load(self)
        return self._session

    def feeds(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> dict[str, torch.Tensor]:
        """The model's inputs by name, out of the PyTorch model's own arguments.

        Raises:
            ExportInputError: another structure, dtype or rank than at export, or another Python value.
            RelationError: sizes that contradict each other, or that the model was not traced for.
        """
        leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs or {})))
        if self.graph.in_spec is not None and spec != self.graph.in_spec:
            raise ExportInputError(
                "the arguments have another structure than those of the export", where=str(spec)
            )
        for leaf, value in self.graph.input_constants.items():
            if leaves[leaf] != value:
                raise ExportInputError(
                    f"argument {leaf} is {leaves[leaf]!r}, but the model was exported with {value!r}",
                    fix="Python values are constants of the model: export again for another value",
                )
        feeds = {entry.name: leaves[entry.leaf] for entry in self.graph.inputs}
        self.check(feeds)
        return feeds

    def sizes(self, feeds: Mapping[str, torch.Tensor]) -> dict[str, int]:
        """The value of each of the model's size names, read off the inputs."""
        placeholders = self.graph.placeholders()
        values: dict[str, int] = {}
        for entry in self.graph.inputs:
            found = type_of(placeholders[entry.placeholder])
            if not isinstance(found, TensorType):
                continue
            for expected, actual in zip(found.shape, feeds[entry.name].shape, strict=True):
                if not isinstance(expected, int):
                    values.update(dims.solve(expected, int(actual), values))
        return values

    def check(self, feeds: Mapping[str, torch.Tensor]) -> None:
        """Refuse inputs that are not what the model was exported for."""
        placeholders = self.graph.placeholders()
        for entry in self.graph.inputs:
            _check_input(entry.name, feeds[entry.name], type_of(placeholders[entry.placeholder]))
        values = self.sizes(feeds)
        for entry in self.graph.inputs:
            found = type_of(placeholders[entry.placeholder])
            assert isinstance(found, TensorType)  # inputs are tensors
            for axis, (expected, actual) in enumerate(zip(found.shape, feeds[entry.name].shape, strict=True)):
                number = dims.evaluate(expected, values)
                if number is not None and number != actual:
                    raise RelationError(
                        f"axis {axis} of {entry.name} is {actual}, but {dims.show(expected)} is {number}"
                    )
        for relation in self.graph.relations:
            if dims.holds(relation.left, relation.sign, relation.right, values) is False:
                raise RelationError(
                    f"the model needs {relation}, but the sizes are "
                    + ", ".join(f"{k}={v}" for k, v in values.items()),
                    where=relation.where,
                )

    def run(self, feeds: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Run the model on named inputs in ONNX Runtime; returns the outputs by name."""
        from fx2onnx.runtime import run  # noqa: PLC0415  needs onnxruntime

        return run(self.session(), feeds)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model as the PyTorch model is called: pytrees in, pytrees out."""
        feeds = self.feeds(args, kwargs)
        made = self.run(feeds)
        values = self.sizes(feeds)
        leaves = []
        for output in self.graph.outputs:
            if output.leaf is None:
                continue
            leaves.append(made[output.name] if output.name else _constant(output.constant, values))
        if self.graph.out_spec is None:
            return tuple(leaves)
        return pytree.tree_unflatten(leaves, self.graph.out_spec)

    def verify(
        self, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> Report:
        """Compare the model in ONNX Runtime with eager PyTorch; see `fx2onnx.verify.verify`.

        Raises:
            VerificationError: they differ.
        """
        from fx2onnx.verify import verify  # noqa: PLC0415  needs onnxruntime

        return verify(self, args, kwargs, **options)


def _constant(value: Any, sizes: Mapping[str, int]) -> Any:
    """A leaf that the ONNX model does not return: a Python value, or a size to be computed."""
    if hasattr(value, "free_symbols"):
        return dims.evaluate(value, sizes)
    return value


def _check_input(name: str, value: Any, expected: Any) -> None:
    if not isinstance(value, torch.Tensor):
        raise ExportInputError(f"the input {name} is a {type(value).__name__}, not a tensor")
    if value.dtype != expected.dtype:
        raise ExportInputError(f"the input {name} is {value.dtype}, but the model takes {expected.dtype}")
    if value.dim() != len(expected.shape):
        raise ExportInputError(
            f"the input {name} has {value.dim()} axes, but the model takes {len(expected.shape)}"
        )


def _type_text(value: ir.Value) -> str:
    """An ONNX value's type as graph text has it."""
    dtype = "?" if value.dtype is None else SHORT[TORCH_DTYPES[value.dtype]]
    return f"{dtype}[{', '.join(map(str, value.shape or ()))}]"


def _load(program: OnnxProgram) -> Any:
    try:
        from fx2onnx.runtime import session  # noqa: PLC0415  onnxruntime is an extra
    except ImportError as error:
        raise Fx2OnnxError(
            "running a model needs onnxruntime", fix="pip install 'fx2onnx[runtime]'"
        ) from error
    if serialise.weight_bytes(program.model) < PROTOBUF_LIMIT // 2:
        message = io.BytesIO()
        write_model(program.model, message)
        return session(message.getvalue())
    folder = tempfile.TemporaryDirectory(prefix="fx2onnx-")
    path = Path(folder.name) / "model.onnx"
    program.save(path, external_data=True)
    loaded = session(str(path))
    folder.cleanup()
    return loaded
