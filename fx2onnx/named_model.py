"""Models by name: `torchvision.models:resnet50`, `my_model.py:Net`.

The name after the colon stands for an nn.Module; for an nn.Module class or another callable that makes one,
which is then called; or for a function of tensors. Modules are put into eval mode.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from fx2onnx.errors import ExportInputError, Fx2OnnxError


def load(name: str, arguments: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The model that `package.module:name` or `file.py:name` stands for.

    Args:
        name: where the model is.
        arguments: keyword arguments for the class or function that makes it.

    Raises:
        ExportInputError: there is no such module, file or name, or it is nothing that can be exported.
        Fx2OnnxError: its own code raised; the cause is chained.
    """
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise ExportInputError(f"{name!r} is not of the form package.module:name or file.py:name")
    found: Any = _file(Path(place)) if place.endswith(".py") else _module(place)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ExportInputError(f"{place} has no {attribute}")
        found = getattr(found, part)
    return _model(found, name, dict(arguments or {}))


def parse_arguments(texts: Iterable[str]) -> dict[str, Any]:
    """Keyword arguments out of texts like `layers=4`; what is no Python literal is a string.

    Raises:
        ExportInputError: a text is not of this form.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip().isidentifier():
            raise ExportInputError(f"--model-arg {text!r} is not of the form name=value")
        try:
            found[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            found[name.strip()] = value
    return found


def parameters(model: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function or of a module's forward, by name."""
    function = model.forward if isinstance(model, torch.nn.Module) else model
    return dict(inspect.signature(function).parameters)


def _module(place: str) -> ModuleType:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise ExportInputError(f"there is no module {error.name}") from error
        raise Fx2OnnxError(f"{place} cannot be imported: {error}") from error
    except Exception as error:  # the user's code, which may raise anything
        raise Fx2OnnxError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ExportInputError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None  # the name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # for what looks its own module up, as dataclasses do
    sys.path.insert(0, str(path.parent.resolve()))  # as for a script: its neighbours can be imported
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's code, which may raise anything
        raise Fx2OnnxError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent.resolve()))
    return module


def _model(found: object, name: str, arguments: dict[str, Any]) -> Callable[..., Any]:
    if isinstance(found, torch.nn.Module) and not arguments:
        return found.eval()
    if isinstance(found, torch.export.ExportedProgram):
        raise ExportInputError(
            f"{name} is an ExportedProgram, whose inputs and sizes are fixed already",
            fix="name the module that it was made from, or pass it to fx2onnx.export in Python",
        )
    if isinstance(found, torch.nn.Module) or not callable(found):
        kind = f"is a {type(found).__name__}"
        raise ExportInputError(
            f"{name} {kind} and takes no arguments" if arguments else f"{name} {kind}, not a model"
        )
    if arguments or isinstance(found, type):
        return _made(found, name, arguments)
    try:
        known = parameters(found)
    except ValueError:  # a built-in function, as most of torch's own
        return _with_signature(found)
    # what makes a model does without arguments, a function of tensors does not
    needs_tensors = any(_is_required(p) for p in known.values())
    return found if needs_tensors else _made(found, name, arguments)


def _with_signature(builtin: Callable[..., Any]) -> Callable[..., Any]:
    def call(*tensors: torch.Tensor) -> Any:
        return builtin(*tensors)

    return call


def _is_required(parameter: inspect.Parameter) -> bool:
    various = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in various


def _made(maker: Callable[..., Any], name: str, arguments: dict[str, Any]) -> Callable[..., Any]:
    known = parameters(maker)
    if missing := [n for n, p in known.items() if _is_required(p) and n not in arguments]:
        raise ExportInputError(
            f"{name} needs {', '.join(missing)}", fix=f"give --model-arg {missing[0]}=… or name a ready model"
        )
    open_ended = any(p.kind == p.VAR_KEYWORD for p in known.values())
    if unknown := [n for n in arguments if n not in known and not open_ended]:
        raise ExportInputError(f"{name} takes no {', '.join(unknown)}, but {', '.join(known) or 'nothing'}")
    try:
        made = maker(**arguments)
    except Exception as error:  # the user's code, which may raise anything
        raise Fx2OnnxError(f"{name} cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(made, torch.nn.Module):
        raise ExportInputError(f"{name} makes a {type(made).__name__}, not an nn.Module")
    return made.eval()
