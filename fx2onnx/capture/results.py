"""What the model returns, as named outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import fx

from fx2onnx.capture.signature import leaf_names
from fx2onnx.errors import ExportInputError
from fx2onnx.graph import Output
from fx2onnx.types import size_of


def outputs_of(
    values: Sequence[Any], spec: pytree.TreeSpec, output_names: Sequence[str] | None, inputs: Sequence[str]
) -> tuple[Output, ...]:
    """Name the leaves of a result; numbers, strings, None and sizes are no outputs of the ONNX model.

    Args:
        values: for each leaf its node, or the constant that it is.
        spec: the pytree of the result.
        output_names: the user's names for the tensors among the leaves, in order.
        inputs: the names of the inputs, which outputs may not have.

    Raises:
        ExportInputError: the user's names are too few, too many, doubled, or those of inputs.
    """
    some = torch.empty(0)  # caches see their tensors by their type
    keyed, _ = pytree.tree_flatten_with_path(pytree.tree_unflatten([some] * len(values), spec))
    own_names = leaf_names([keys for keys, _ in keyed], "output")
    tensors = [i for i, value in enumerate(values) if _is_tensor(value)]
    names = dict(zip(tensors, _chosen(output_names, len(tensors)), strict=True))
    taken = set(inputs) | {n for n in names.values() if n}
    return tuple(
        _output(i, value, names.get(i) or _free(own_names[i], taken)) for i, value in enumerate(values)
    )


def check_names(kind: str, names: Sequence[str] | None) -> None:
    """Refuse a name that is there twice, or that is no text.

    Raises:
        ExportInputError: naming the name.
    """
    for i, name in enumerate(names or ()):
        if not isinstance(name, str) or not name:
            raise ExportInputError(f"{kind}[{i}] is {name!r}, not a name")
        if name in (names or ())[:i]:
            raise ExportInputError(f"{kind} has {name!r} twice", fix="give each its own name")


def _chosen(names: Sequence[str] | None, count: int) -> list[str | None]:
    if names is None:
        return [None] * count
    if len(names) != count:
        raise ExportInputError(f"output_names has {len(names)} names, but the model returns {count} tensors")
    return list(names)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_out"
    taken.add(name)
    return name


def _is_tensor(value: Any) -> bool:
    return isinstance(value, fx.Node) and isinstance(value.meta.get("val"), torch.Tensor)


def _output(leaf: int, value: Any, name: str) -> Output:
    if _is_tensor(value):
        return Output(name, leaf=leaf)
    if isinstance(value, fx.Node):
        found = value.meta.get("val")
        if isinstance(found, torch.SymInt):
            size = size_of(found)
            return Output(None, leaf=leaf, constant=size)
        value = found
    return Output(None, leaf=leaf, constant=value)
