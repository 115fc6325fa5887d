"""The command line: `fx2onnx export | verify | ops`.

    fx2onnx export torchvision.models:resnet50 --input "x: float32[batch=2, 3, 224, 224]" -o resnet50.onnx --verify

A model is named `package.module:name` or `file.py:name`; the name stands for an nn.Module, an nn.Module class or
a function that needs no arguments and returns one (both are called), or a function of tensors.
Exit status: 0 done, 1 the export or the check failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import fx2onnx
from fx2onnx.errors import ExportInputError, Fx2OnnxError
from fx2onnx.input_text import InputText, parse_input
from fx2onnx.opset import RULES
from fx2onnx.progress import Progress


class UsageError(Exception):
    """The command line does not say what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except UsageError as error:
        return _fail(str(error), status=2)
    except Fx2OnnxError as error:
        return _fail(str(error), status=1, debug=options.debug)
    except KeyboardInterrupt:
        return _fail("interrupted", status=1)
    except Exception as error:  # noqa: BLE001  the last frame: nothing may reach the user without one
        text = f"this is a bug in fx2onnx or in the model's code: {type(error).__name__}: {error}"
        return _fail(text + ("" if options.debug else "\n  --debug shows where"), status=1, debug=options.debug)


def _fail(text: str, *, status: int, debug: bool = False) -> int:
    if debug:
        traceback.print_exc()
    print(f"fx2onnx: {text}", file=sys.stderr)  # noqa: T201  a command line prints
    return status


# -- commands --------------------------------------------------------------------------------------


def export(options: argparse.Namespace) -> int:
    """Export a model, write it, and verify it on request."""
    inputs = _inputs(options)
    torch.manual_seed(options.seed)
    model = load(options.model)
    path = Path(options.output or f"{options.model.rsplit(':', 1)[-1]}.onnx")
    with Progress() as progress:
        program = _export(model, inputs, options, progress.stage)
        progress.stage("save")
        program.save(path, external_data=True if options.external_data else None)
        report = None
        if options.verify:
            progress.stage("verify")
            report = program.verify()
    if options.timings:
        for stage, seconds in progress.timings.items():
            print(f"{stage:8} {seconds:7.2f} s")  # noqa: T201
    print(program.report())  # noqa: T201
    if report is not None:
        print(f"equal to eager PyTorch at\n{report}")  # noqa: T201
    print(path)  # noqa: T201
    return 0


def _export(
    model: Any, inputs: Sequence[InputText], options: argparse.Namespace, progress: Callable[[str], None]
) -> fx2onnx.OnnxProgram:
    generator = torch.Generator().manual_seed(options.seed)
    args, kwargs = _arguments(model, {i.name: i.tensor(generator) for i in inputs})
    try:
        return fx2onnx.export(
            model,
            args,
            kwargs,
            dynamic_shapes={i.name: dict(i.free) for i in inputs if i.free} or None,
            opset_version=options.opset,
            functions=options.functions,
            target=options.target,
            print_after=options.print_after,
            verify_each=options.verify_each,
            progress=progress,
        )
    except KeyError as error:  # a pass that is not there
        raise UsageError(str(error.args[0])) from error


def verify(options: argparse.Namespace) -> int:
    """Check a model on disk against the PyTorch model that it was made from."""
    import onnx_ir as ir  # noqa: PLC0415  only this command reads models

    inputs = _inputs(options)
    torch.manual_seed(options.seed)
    model = load(options.model)
    path = Path(options.file)
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    options.opset, options.functions, options.target = None, "modules", "onnx"
    options.print_after, options.verify_each = (), False
    with Progress() as progress:
        program = _export(model, inputs, options, progress.stage)
        program.model = ir.load(path)
        progress.stage("verify")
        report = program.verify()
    print(f"{path} is equal to eager PyTorch at\n{report}")  # noqa: T201
    return 0


def ops(options: argparse.Namespace) -> int:
    """List the operators that have rules, and those that are known to have none."""
    from rich.console import Console  # noqa: PLC0415  only this command draws a table
    from rich.table import Table  # noqa: PLC0415

    table = Table("operator", "rule", "from opset", box=None)
    found = sorted((str(t), rules) for t, rules in RULES.targets().items())
    for target, rules in found:
        if options.filter in target:
            table.add_row(target, rules[-1].name.rsplit("opset.", 1)[-1], ", ".join(str(r.since) for r in rules[::-1]))
    for target, gap in RULES.gaps().items():
        if options.filter in str(target):
            table.add_row(str(target), f"none ({gap.kind}): {gap.reason}", "")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    print(f"{len(found)} operators have rules; what has none is decomposed where torch knows how")  # noqa: T201
    return 0


# -- models and inputs -----------------------------------------------------------------------------


def load(name: str) -> Any:
    """The model that `package.module:name` or `file.py:name` stands for.

    Raises:
        UsageError: there is no such module, file or name, or it cannot be made without arguments.
    """
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise UsageError(f"{name!r} is not of the form package.module:name or file.py:name")
    module = _module(place)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{place} has no {attribute}")
        found = getattr(found, part)
    return _made(found, name)


def _module(place: str) -> Any:
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise UsageError(f"there is no file {place}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise UsageError(f"{place} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise UsageError(f"there is no module {error.name}") from error


def _made(found: Any, name: str) -> Any:
    """A module in eval mode: as it is, or made by a class or function that needs no arguments."""
    if isinstance(found, torch.nn.Module):
        return found.eval()
    if not callable(found):
        raise UsageError(f"{name} is a {type(found).__name__}, not a model")
    required = [p for p in _parameters(found) if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if inspect.isclass(found) or not required:
        if required:
            raise UsageError(f"{name} needs arguments ({', '.join(p.name for p in required)})")
        made = found()
        if not isinstance(made, torch.nn.Module):
            raise UsageError(f"{name}() is a {type(made).__name__}, not an nn.Module")
        return made.eval()
    return found


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def _inputs(options: argparse.Namespace) -> list[InputText]:
    try:
        inputs = [parse_input(text) for text in options.input]
    except ExportInputError as error:
        raise UsageError(str(error)) from error
    names = [i.name for i in inputs]
    if doubled := {n for n in names if names.count(n) > 1}:
        raise UsageError(f"--input gives {', '.join(sorted(doubled))} twice")
    return inputs


def _arguments(model: Any, tensors: dict[str, torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """By position where the names are the first parameters in order, by keyword otherwise."""
    forward = model.forward if isinstance(model, torch.nn.Module) else model
    names = [p.name for p in _parameters(forward)]
    if unknown := [n for n in tensors if n not in names]:
        raise UsageError(f"the model has no input {', '.join(unknown)}; it takes {', '.join(names) or 'none'}")
    if list(tensors) == names[: len(tensors)]:
        return tuple(tensors.values()), {}
    return (), tensors


# -- arguments -------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fx2onnx", description="A compiler from PyTorch to ONNX.")
    parser.add_argument("--version", action="version", version=f"fx2onnx {fx2onnx.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _export_arguments(commands.add_parser("export", help="export a model", description=export.__doc__))
    _verify_arguments(commands.add_parser("verify", help="check a model on disk", description=verify.__doc__))
    listing = commands.add_parser("ops", help="list the operators", description=ops.__doc__)
    listing.add_argument("filter", nargs="?", default="", help="only operators with this in their name")
    listing.add_argument("--debug", action="store_true", help="show tracebacks")
    listing.set_defaults(command=ops)
    return parser


def _model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="package.module:name or file.py:name")
    parser.add_argument(
        "--input", "-i", action="append", default=[], metavar="TEXT", help='e.g. "x: float32[batch=2, 3, 224, 224]"'
    )
    parser.add_argument("--seed", type=int, default=0, help="for weights and example inputs")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    _model_arguments(parser)
    parser.add_argument("--output", "-o", metavar="FILE", help="where to write the model (NAME.onnx)")
    parser.add_argument("--opset", type=int, help=f"version of the ai.onnx domain ({fx2onnx.DEFAULT_OPSET})")
    parser.add_argument("--functions", choices=["modules", "ops", "none"], default="modules")
    parser.add_argument("--target", choices=["onnx", "onnxruntime"], default="onnx")
    parser.add_argument("--verify", action="store_true", help="compare with eager PyTorch in ONNX Runtime")
    parser.add_argument("--external-data", action="store_true", help="write the weights to a file of their own")
    parser.add_argument("--print-after", action="append", default=[], metavar="PASS", help='a pass, or "all"')
    parser.add_argument("--verify-each", action="store_true", help="check the graph after each pass")
    parser.add_argument("--timings", action="store_true", help="print the time of each stage")
    parser.set_defaults(command=export)


def _verify_arguments(parser: argparse.ArgumentParser) -> None:
    _model_arguments(parser)
    parser.add_argument("file", metavar="FILE", help="the ONNX model")
    parser.set_defaults(command=verify)


if __name__ == "__main__":
    sys.exit(main())
