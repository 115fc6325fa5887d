"""What users write for dynamic sizes, brought to one form: a request for each axis of each tensor input.

Accepted, by input name or by position, over pytrees of the inputs' structure:

    {"x": {0: "batch", 2: "2*k"}}        names and expressions
    {"x": {0: Dim("batch", max=64)}}     torch.export.Dim, derived dims (2*Dim("k")), Dim.AUTO, Dim.DYNAMIC
    {"x": ("batch", None, 224)}          a tuple with one entry for each axis; ints and None are static
    ({0: "batch"}, None)                 by position
    dynamic_axes={"x": {0: "batch"}}     the older exporter's form, also {"x": [0, 1]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import Dim as TorchDim

from fx2onnx import dims
from fx2onnx.capture.signature import Arguments, Leaf
from fx2onnx.dims import Dim
from fx2onnx.errors import DimSyntaxError, ExportInputError


@dataclass(frozen=True)
class Request:
    """What is asked of one axis of one tensor.

    Attributes:
        leaf: the tensor.
        axis: counted from 0.
        size: the user's name or expression; None for a dynamic size without a name.
        strict: must it stay dynamic (a name or Dim.DYNAMIC), or may the model fix it (Dim.AUTO)?
        low, high: bounds that the user gives, inclusive.
    """

    leaf: Leaf
    axis: int
    size: Dim | None
    strict: bool
    low: int = 0
    high: int | None = None

    @property
    def text(self) -> str:
        """How messages call it: `batch (axis 0 of x)`."""
        place = f"axis {self.axis} of {self.leaf.name}"
        return place if self.size is None else f"{dims.show(self.size)} ({place})"

    @property
    def example(self) -> int:
        """The size in the example."""
        return int(self.leaf.value.shape[self.axis])


def requests(
    arguments: Arguments,
    dynamic_shapes: Any = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
) -> tuple[Request, ...]:
    """The dynamic axes among the inputs.

    Raises:
        ExportInputError: an unknown input, an axis that the tensor does not have, a size that contradicts the
            example, or an entry of an unknown kind.
    """
    if dynamic_axes and dynamic_shapes:
        raise ExportInputError("dynamic_shapes and dynamic_axes were both given", fix="use dynamic_shapes")
    tensors = arguments.tensors()
    if dynamic_axes:
        spec_of = _by_onnx_name(tensors, dynamic_axes, input_names)
        found = [(leaf, _axes_form(spec)) for leaf, spec in spec_of]
    elif dynamic_shapes is not None:
        by_name = _by_parameter(arguments, dynamic_shapes)
        found = [(leaf, _descend(by_name.get(str(leaf.path[0])), leaf)) for leaf in tensors]
    else:
        return ()
    return tuple(request for leaf, spec in found for request in _of_tensor(leaf, spec))


def _by_onnx_name(
    tensors: Sequence[Leaf], axes: Mapping[str, Any], input_names: Sequence[str] | None
) -> list[tuple[Leaf, Any]]:
    names = list(input_names or [])
    names += [leaf.name for leaf in tensors[len(names) :]]
    return [(leaf, axes[name]) for leaf, name in zip(tensors, names, strict=False) if name in axes]


def _axes_form(spec: Any) -> Any:
    """`[0, 1]` of the older form asks for dynamic axes without names."""
    if isinstance(spec, Mapping):
        return spec
    return dict.fromkeys(spec, TorchDim.DYNAMIC)


def _by_parameter(arguments: Arguments, spec: Any) -> dict[str, Any]:
    known = [*arguments.parameters, *arguments.kwargs]
    if isinstance(spec, Mapping):
        starred = [k.rsplit(".", 1)[0] for k in arguments.parameters if "." in k]
        if unknown := [k for k in spec if k not in known and k not in starred]:
            raise ExportInputError(
                f"dynamic_shapes names {', '.join(map(repr, unknown))}, "
                f"but the inputs are {', '.join(map(repr, known)) or 'none'}",
                fix="use the parameter names of forward",
            )
        spread = {f"{k}.{i}": s for k in starred if k in spec for i, s in enumerate(spec[k])}
        return {**spec, **spread}
    if not isinstance(spec, Sequence) or isinstance(spec, str):
        raise ExportInputError(f"dynamic_shapes is a {type(spec).__name__}", fix="use a dict by input name")
    if len(spec) != len(known):
        raise ExportInputError(f"dynamic_shapes has {len(spec)} entries for {len(known)} inputs")
    return dict(zip(known, spec, strict=True))


def _descend(spec: Any, leaf: Leaf) -> Any:
    """The part of a nested spec that is for one tensor."""
    for key, position in zip(leaf.path[1:], leaf.positions, strict=True):
        if spec is None:
            return None
        spec = _child(spec, key, position, leaf)
    return spec


def _child(spec: Any, key: str | int, position: int, leaf: Leaf) -> Any:
    """The part of a spec for one child: by key, by position, or by attribute."""
    if isinstance(spec, Mapping):
        if key in spec or not all(isinstance(k, int) for k in spec):
            return spec.get(key)
    elif isinstance(spec, Sequence) and not isinstance(spec, str):
        if position < len(spec):
            return spec[position]
    elif hasattr(spec, str(key)):
        return getattr(spec, str(key))
    raise ExportInputError(
        f"dynamic_shapes does not have the structure of the inputs at {leaf.name}: {key!r} is not in {spec!r}"
    )


def _of_tensor(leaf: Leaf, spec: Any) -> list[Request]:
    if spec is None:
        return []
    rank = leaf.value.dim()
    if isinstance(spec, Mapping):
        entries = dict(spec)
    elif isinstance(spec, Sequence) and not isinstance(spec, str):
        if len(spec) != rank:
            raise ExportInputError(
                f"dynamic_shapes has {len(spec)} entries for {leaf.name}, which has {rank} axes"
            )
        entries = dict(enumerate(spec))
    else:
        raise ExportInputError(
            f"dynamic_shapes for {leaf.name} is {spec!r}", fix='use a dict by axis: {0: "batch"}'
        )
    found: list[Request] = []
    for axis, entry in entries.items():
        if not isinstance(axis, int) or not -rank <= axis < rank:
            raise ExportInputError(
                f"dynamic_shapes asks for axis {axis!r} of {leaf.name}, which has {rank} axes"
            )
        if (request := _of_axis(leaf, axis % rank, entry)) is not None:
            found.append(request)
    return found


def _of_axis(leaf: Leaf, axis: int, entry: Any) -> Request | None:
    if entry is None or entry is TorchDim.STATIC:
        return None
    if isinstance(entry, bool) or not isinstance(
        entry, int | str | TorchDim | torch.export.dynamic_shapes._DimHint
    ):  # noqa: SLF001
        raise ExportInputError(f"axis {axis} of {leaf.name} is asked to be {entry!r}")
    if isinstance(entry, int):
        if entry != leaf.value.shape[axis]:
            raise ExportInputError(
                f"axis {axis} of {leaf.name} is asked to be {entry}, "
                f"but the example's is {leaf.value.shape[axis]}"
            )
        return None
    if isinstance(entry, str):
        return Request(leaf, axis, _parse(entry, leaf, axis), strict=True)
    low, high = _bounds(entry)
    if isinstance(entry, TorchDim):
        return Request(leaf, axis, _parse(entry.__name__, leaf, axis), True, low, high)
    kind = entry.type.name
    return None if kind == "STATIC" else Request(leaf, axis, None, kind == "DYNAMIC", low, high)


def _parse(text: str, leaf: Leaf, axis: int) -> Dim:
    try:
        return dims.parse(text)
    except DimSyntaxError as error:
        raise ExportInputError(
            f"axis {axis} of {leaf.name} is called {text!r}: {error.what}",
            fix="use a name, or arithmetic over names such as 2*batch",
        ) from None


def _bounds(entry: Any) -> tuple[int, int | None]:
    """The bounds of a Dim or hint; a torch Dim without a lower bound has 0."""
    low, high = getattr(entry, "min", None), getattr(entry, "max", None)
    if not isinstance(low, int):
        low = 0
    if not isinstance(high, int) or high >= 2**31:
        high = None
    return low, high
