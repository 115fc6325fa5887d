"""What a lowering rule works with: `Value` and `OpBuilder`.

A `Value` is an onnx_ir.Value that knows its torch dtype and its shape in the user's size names. A size
(SymInt) arrives as a `Value` too: **a vector of one int64**, ready to be concatenated into a shape; use
`op.scalar(size)` where a rank-0 tensor is needed.

`OpBuilder` is onnxscript's: `op.Add(x, 1.0)` emits a node, Python numbers become constants of the other
operand's dtype. Its lower-case methods are additions of this project.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import onnxscript
import torch
from onnx_ir.tensor_adapters import TorchTensor

from fx2onnx import dims
from fx2onnx.dims import Dim
from fx2onnx.types import DTYPES, TORCH_DTYPES, SizeType, TensorType, Type

FEATURES = onnxscript.BuilderFeature.SCHEMA_AWARE | onnxscript.BuilderFeature.INFER_SHAPES
INT64_MAX = torch.iinfo(torch.int64).max


class Value(ir.Value):
    """An argument of a rule: an onnx_ir.Value with the type that the typed graph gives it.

    Attributes:
        of: a `TensorType` (dtype, shape of ints and sympy expressions) or a `SizeType`.
    """

    __slots__ = ("of",)

    def __init__(self, name: str, of: TensorType | SizeType) -> None:
        super().__init__(name=name)
        self.of = of
        annotate(self, of)

    @property
    def is_size(self) -> bool:
        """Is this a Python number made of sizes (SymInt, SymFloat, SymBool), a vector of one?"""
        return isinstance(self.of, SizeType)


def annotate(value: ir.Value, of: Type | None) -> None:
    """Write a type of the typed graph onto an ONNX value: dtype and shape, sizes as text."""
    if isinstance(of, TensorType) and of.dtype in DTYPES:
        value.type = ir.TensorType(DTYPES[of.dtype])
        value.shape = onnx_shape(of.shape)
    elif isinstance(of, SizeType):
        value.type = ir.TensorType(SIZE_DTYPES[of.kind])
        value.shape = ir.Shape([1])


SIZE_DTYPES = {int: ir.DataType.INT64, float: ir.DataType.DOUBLE, bool: ir.DataType.BOOL}


def onnx_shape(shape: Sequence[Dim]) -> ir.Shape:
    """A shape as ONNX writes it: numbers as dim_value, expressions as dim_param."""
    return ir.Shape([s if isinstance(s, int) else dims.show(s) for s in shape])


def shape_of(value: ir.Value) -> tuple[Dim | None, ...]:
    """The shape of a rule's argument or of a value that the rule made; None for an unknown size.

    Raises:
        ValueError: not even the rank is known.
    """
    if isinstance(value, Value) and isinstance(value.of, TensorType):
        return value.of.shape
    if value.shape is None:
        raise ValueError(f"the rank of {value.name} is unknown")
    return tuple(_dim_of(s) for s in value.shape)


def _dim_of(size: Any) -> Dim | None:
    if isinstance(size, int):
        return size
    return None if size.value is None else dims.parse(str(size.value))


def rank_of(value: ir.Value) -> int:
    """The number of axes of a value."""
    return len(shape_of(value))


def dtype_of(value: ir.Value) -> torch.dtype:
    """The torch dtype of a value.

    Raises:
        ValueError: the dtype is unknown or has no torch counterpart.
    """
    if value.dtype is None or value.dtype not in TORCH_DTYPES:
        raise ValueError(f"the dtype of {value.name} is {value.dtype}")
    return TORCH_DTYPES[value.dtype]


class OpBuilder(onnxscript.OpBuilder):
    """Emits ONNX nodes for one call.

    Attributes:
        opset: the version of the ai.onnx domain that the model uses.
        target: "onnx" (standard operators only) or "onnxruntime" (com.microsoft operators too).
        results: the types of what the call makes, as the typed graph has them.
    """

    def __init__(
        self,
        graph: ir.Graph,
        *,
        opset: int,
        target: str = "onnx",
        results: tuple[Type | None, ...] = (),
        parent: onnxscript.GraphBuilder | None = None,
    ) -> None:
        builder = onnxscript.GraphBuilder(graph, parent=parent)
        builder._features = FEATURES  # noqa: SLF001  the constructor takes no features (onnxscript 0.7)
        super().__init__(builder, "", opset)
        builder._op_builder = self  # noqa: SLF001  subgraphs made by the builder hand rules this class
        self.opset, self.target, self.results = opset, target, results

    if TYPE_CHECKING:  # an operator makes one value; these are asked for several, by `_outputs`
        Dropout: Callable[..., Sequence[ir.Value]]
        MaxPool: Callable[..., Sequence[ir.Value]]
        Scan: Callable[..., Sequence[ir.Value]]
        Split: Callable[..., Sequence[ir.Value]]
        TopK: Callable[..., Sequence[ir.Value]]
        Unique: Callable[..., Sequence[ir.Value]]

        def __getattr__(self, op_type: str) -> Callable[..., ir.Value]: ...

    @property
    def result(self) -> TensorType:
        """The type of the one tensor that the call makes."""
        (only,) = self.results
        if not isinstance(only, TensorType):
            raise TypeError(f"the result is no tensor but {only}")
        return only

    # -- constants and casts -----------------------------------------------------------------------

    def constant(self, value: Any, dtype: torch.dtype = torch.int64) -> ir.Value:
        """A constant tensor of this dtype: a number (rank 0), a nested list or an array."""
        array = torch.as_tensor(value, dtype=dtype)
        return self.initializer(tensor(array), f"const_{len(self.builder.root.graph.initializers)}")

    def ints(self, values: Sequence[int]) -> ir.Value:
        """A constant int64 vector."""
        return self.constant(list(values), torch.int64)

    def cast(self, x: ir.Value, dtype: torch.dtype) -> ir.Value:
        """x in this dtype; x itself when it has it already."""
        if x.dtype == DTYPES[dtype]:
            return x
        return self.Cast(x, to=DTYPES[dtype])

    def number(self, value: float | ir.Value, dtype: torch.dtype) -> ir.Value:
        """A scalar argument (a Python number or a size) as a rank-0 tensor of this dtype."""
        if isinstance(value, ir.Value):
            return self.cast(self.scalar(value) if _is_size(value) else value, dtype)
        return self.constant(value, dtype)

    # -- sizes and shapes --------------------------------------------------------------------------

    def scalar(self, size: int | ir.Value) -> ir.Value:
        """A size as a rank-0 tensor."""
        if isinstance(size, int):
            return self.constant(size)
        return self.Squeeze(size, self.ints([0]))

    def size(self, x: ir.Value, axis: int) -> int | ir.Value:
        """The size of one axis: a number where it is static, else a vector of one."""
        known = shape_of(x)[axis]
        if isinstance(known, int):
            return known
        axis %= rank_of(x)
        return self.Shape(x, start=axis, end=axis + 1)

    def vector(self, sizes: Sequence[int | ir.Value]) -> ir.Value:
        """Numbers and sizes as one int64 vector."""
        parts: list[ir.Value] = []
        static: list[int] = []
        for size in [*sizes, None]:
            if isinstance(size, int):
                static.append(size)
                continue
            if static:
                parts.append(self.ints(static))
                static = []
            if size is not None:
                parts.append(size)
        if not parts:
            return self.ints([])
        return parts[0] if len(parts) == 1 else self.Concat(*parts, axis=0)

    def sizes(self, x: ir.Value) -> list[int | ir.Value]:
        """The sizes of all axes of x."""
        return [self.size(x, axis) for axis in range(rank_of(x))]

    def reshape(
        self, x: ir.Value, sizes: Sequence[int | ir.Value], shape: Sequence[Dim | None] | None = None
    ) -> ir.Value:
        """x with the sizes of another shape, with as little shape arithmetic as can be.

        Args:
            x: the tensor.
            sizes: numbers and sizes (vectors of one).
            shape: what is known of the result's shape; taken from `sizes` where omitted.
        """
        known = list(shape) if shape is not None else [size_expr(s) for s in sizes]
        entries: list[int | ir.Value] = [
            k if isinstance(k, int) else s for s, k in zip(sizes, known, strict=True)
        ]
        cheap = _cheap_sizes(entries, known, shape_of(x))
        if 0 not in entries and all(isinstance(entry, int) for entry in cheap):
            return self.Reshape(x, self.vector(cheap))
        # sizes that are or may be 0 when the model runs are meant as they are: no shorthands
        return self.Reshape(x, self.vector(entries), allowzero=1)

    def sub(
        self,
        body: Callable[..., ir.Value | Sequence[ir.Value]],
        inputs: Sequence[ir.Value],
        outputs: int,
        name: str = "body",
    ) -> ir.Graph:
        """A subgraph for If, Loop or Scan: `body(op, *inputs)` returns its outputs."""
        graph = ir.Graph(list(inputs), [], nodes=[], opset_imports={"": self.opset}, name=name)
        inner = OpBuilder(graph, opset=self.opset, target=self.target, parent=self.builder)
        made = body(inner, *inputs)
        values = [made] if isinstance(made, ir.Value) else list(made)
        if len(values) != outputs:
            raise ValueError(f"the body made {len(values)} values, {outputs} were expected")
        graph.outputs.extend(values)
        return graph


def _is_size(value: ir.Value) -> bool:
    return isinstance(value, Value) and value.is_size


def size_expr(size: int | ir.Value) -> Dim | None:
    """What is known of a size argument: a number, an expression, or None."""
    if isinstance(size, ir.Value):
        return size.of.expr if isinstance(size, Value) and isinstance(size.of, SizeType) else None
    return size


def _cheap_sizes(
    entries: list[int | ir.Value], known: Sequence[Dim | None], old: Sequence[Dim | None]
) -> list[int | ir.Value]:
    """The entries of a Reshape's shape: 0 keeps a size in its place, one -1 is left to the runtime."""
    entries = list(entries)
    unknown = [i for i, entry in enumerate(entries) if not isinstance(entry, int) or entry == -1]
    for i in [*unknown]:
        if i < len(old) and known[i] is not None and old[i] == known[i]:
            entries[i] = 0
            unknown.remove(i)
    if len(unknown) == 1:
        entries[unknown[0]] = -1
    return entries


def tensor(value: torch.Tensor, name: str | None = None) -> ir.TensorProtocol:
    """A torch tensor as an ONNX tensor; the memory is shared, nothing is copied."""
    return TorchTensor(value.detach(), name=name)
