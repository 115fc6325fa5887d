"""The model's arguments as named leaves: which tensors go in, and what each is called.

A leaf's name is its path: the parameter's name, then the keys below it (`past_key_values.0.key`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from fx2onnx.errors import ExportInputError

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Leaf:
    """One leaf of `(args, kwargs)`.

    Attributes:
        path: the parameter's name, then keys and positions.
        positions: for each part of the path after the first, its position among its siblings.
        value: the example.
        index: its position among all leaves.
    """

    path: Path
    value: Any
    index: int
    positions: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The path as a name."""
        return ".".join(map(str, self.path))


@dataclass(frozen=True)
class Arguments:
    """The example arguments of a model.

    Attributes:
        args, kwargs: as they were passed.
        leaves: all leaves in pytree order.
        spec: the pytree of `(args, kwargs)`.
        parameters: the parameter name of each positional argument.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: tuple[Leaf, ...]
    spec: pytree.TreeSpec
    parameters: tuple[str, ...]

    def tensors(self) -> tuple[Leaf, ...]:
        """The leaves that are tensors."""
        return tuple(leaf for leaf in self.leaves if isinstance(leaf.value, torch.Tensor))

    def with_values(self, values: Mapping[int, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """`(args, kwargs)` with some leaves replaced."""
        flat = [values.get(leaf.index, leaf.value) for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(flat, self.spec)
        return args, kwargs


def arguments_of(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None
) -> Arguments:
    """Name and flatten the example arguments of a model's forward.

    Raises:
        ExportInputError: the arguments do not fit the signature.
    """
    if isinstance(args, torch.Tensor):
        args = (args,)
    args, kwargs = tuple(args), dict(kwargs or {})
    parameters = _parameter_names(function, args, kwargs)
    keyed, spec = pytree.tree_flatten_with_path((args, kwargs))
    leaves = tuple(
        Leaf(_path(keys, parameters), value, i, positions[2:])
        for i, ((keys, value), positions) in enumerate(zip(keyed, _positions(spec), strict=True))
    )
    return Arguments(args, kwargs, leaves, spec, parameters)


def _parameter_names(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[str, ...]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin: no signature to check or to name by
        return tuple(f"input_{i}" for i in range(len(args)))
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ExportInputError(
            f"the example arguments do not fit forward{signature}: {error}",
            fix=f"pass args and kwargs as for a call of the model; {len(args)} positional and "
            f"{len(kwargs)} keyword arguments were given",
        ) from None
    names: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}.{i}" for i in range(len(args) - len(names))]
        elif parameter.kind is not parameter.KEYWORD_ONLY and len(names) < len(args):
            names.append(parameter.name)
    return tuple(names[: len(args)])


def _path(keys: tuple[Any, ...], parameters: tuple[str, ...]) -> Path:
    side, first, *rest = keys
    head = parameters[first.idx] if side.idx == 0 else first.key
    return (head, *map(key_name, rest))


def _positions(spec: pytree.TreeSpec) -> Iterator[tuple[int, ...]]:
    """For each leaf of a pytree: at each level, which child it is in."""
    if spec.is_leaf():
        yield ()
        return
    for i, child in enumerate(spec.children()):
        for below in _positions(child):
            yield (i, *below)


def key_name(key: Any) -> str | int:
    """A pytree key as a part of a path."""
    if isinstance(key, pytree.SequenceKey):
        return int(key.idx)
    if isinstance(key, pytree.GetAttrKey):
        return str(key.name)
    return key.key if isinstance(key, pytree.MappingKey) else str(key)


def leaf_names(spec_paths: Sequence[tuple[Any, ...]], stem: str) -> list[str]:
    """Names for the leaves of a result: their paths, or `stem`, `stem_1` … where a path has no name."""
    names: list[str] = []
    for i, keys in enumerate(spec_paths):
        parts = [key_name(key) for key in keys]
        if parts and isinstance(parts[0], str):
            names.append(".".join(map(str, parts)))
        elif len(spec_paths) == 1:
            names.append(stem)
        else:
            names.append(".".join([f"{stem}_{parts[0]}" if parts else f"{stem}_{i}", *map(str, parts[1:])]))
    return names
