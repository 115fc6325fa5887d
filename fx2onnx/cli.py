"""The command line: `fx2onnx export | verify | ops`.

    fx2onnx export torchvision.models:resnet50 --input "x: float32[batch=2, 3, 224, 224]" -o resnet50.onnx

How models are named: `fx2onnx.named_model`; how inputs are written: `fx2onnx.input_text`.
Results go to standard output, the stages and all messages to standard error.
Exit status: 0 done, 1 the export or the check failed, 2 wrong usage.
A model that fails its check is not written.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import fx2onnx
from fx2onnx import model_check
from fx2onnx.errors import ExportInputError, Fx2OnnxError
from fx2onnx.input_text import example_sizes, parse_inputs
from fx2onnx.named_model import load, parameters, parse_arguments
from fx2onnx.opset import RULES
from fx2onnx.passes import default_pipeline
from fx2onnx.progress import Progress

HELP_ON_MODELS = """\
MODEL is package.module:name or file.py:name, where the name stands for
  an nn.Module                     exported as it is, in eval mode
  an nn.Module class               made first, with --model-arg
  a function that makes a module   called first, with --model-arg: one that can be called without arguments
  a function of tensors            the model itself: one with a parameter that must be given

--input is written for each tensor: name: dtype[sizes] [< bound]
  x: float32[batch=2, 3, 224, 224]   batch stays free and is 2 in the example
  x: f32[n, m=7]                     n stays free too; an example size is 2 where none is given
  ids: int64[batch, seq] < 1000      whole numbers from 0 to 999; from 0 to 1 without a bound
  scale: float32[]                   a single number

exit status: 0 done, 1 the export or the check failed, 2 wrong usage
"""


class UsageError(Exception):
    """The command line does not say what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except BrokenPipeError:
        return _unread()
    except SystemExit as error:  # no command of ours raises it: the status must not be the model's
        return _fail(f"the model's code ended the program: SystemExit({error.code!r})", options)
    except UsageError as error:
        return _fail(str(error), options, status=2)
    except Fx2OnnxError as error:
        return _fail(str(error), options)
    except KeyboardInterrupt:
        return _fail("interrupted", options)
    except Exception as error:  # noqa: BLE001  the last frame: nothing may reach the user without one
        more = "" if options.debug else "\n  --debug shows where"
        return _fail(f"fx2onnx failed: {type(error).__name__}: {error}; this is a bug{more}", options)


def _run(options: argparse.Namespace) -> int:
    status = int(options.command(options))
    sys.stdout.flush()
    return status


def _unread() -> int:
    """The reader of our output has had enough, as `| head` has; the work was done before it was told of."""
    # Python flushes once more at its end, and would complain then
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(text: str, options: argparse.Namespace, status: int = 1) -> int:
    if options.debug:
        traceback.print_exc()
    print(f"error: {text}", file=sys.stderr)
    return status


# -- commands --------------------------------------------------------------------------------------


def export(options: argparse.Namespace) -> int:
    """Export a model, write it, and verify it on request."""
    _check_passes(options.print_after)
    call = _call(options)
    path = Path(options.output or f"{options.model.rpartition(':')[2]}.onnx")
    with Progress() as progress:
        program = fx2onnx.export(
            call.model,
            call.args,
            call.kwargs,
            dynamic_shapes=call.dynamic_shapes,
            input_names=call.input_names,
            opset_version=options.opset,
            functions=options.functions,
            target=options.target,
            print_after=options.print_after,
            verify_each=options.verify_each,
            progress=progress.stage,
        )
        if options.verify:  # before save: a wrong model does not take the place of a right one
            progress.stage("verify")
            report = program.verify()
        progress.stage("save")
        program.save(path, external_data=True if options.external_data else None)
    if options.timings:
        print(progress.table(), file=sys.stderr)
    print(program.report())
    if options.verify:
        print(f"equal to eager PyTorch at\n{report}")
    print(path)
    return 0


def verify(options: argparse.Namespace) -> int:
    """Compare an ONNX model on disk with the PyTorch model that it was made from."""
    path = Path(options.file)
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    call = _call(options)
    with Progress() as progress:
        progress.stage("capture")
        graph = fx2onnx.capture(
            call.model,
            call.args,
            call.kwargs,
            dynamic_shapes=call.dynamic_shapes,
            input_names=call.input_names,
        )
        progress.stage("load")
        program = model_check.load(path, graph, call.model, call.args, call.kwargs)
        progress.stage("verify")
        report = program.verify()
    print(f"{path} is equal to eager PyTorch at\n{report}")
    return 0


def ops(options: argparse.Namespace) -> int:
    """List the operators that have rules, and those that are known to have none."""
    from rich.console import Console  # noqa: PLC0415  only this command draws a table
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table("operator", "from opset", "rule", box=None)
    ruled = {_operator(target): rules for target, rules in RULES.targets().items()}
    gaps = {_operator(target): gap for target, gap in RULES.gaps().items()}
    for name in sorted(n for n in {*ruled, *gaps} if options.filter in n):
        if name in ruled:
            first = ruled[name][0].name.removeprefix("fx2onnx.opset.")
            table.add_row(name, ", ".join(_since(rule) for rule in reversed(ruled[name])), escape(first))
        else:
            table.add_row(name, "", escape(f"none ({gaps[name].kind}): {gaps[name].reason}"))
    console = Console(width=None if sys.stdout.isatty() else 1000)  # one line for each outside of a terminal
    with console.capture() as text:  # printed by us: rich ends the program where the reader is gone
        console.print(table)
    print("\n".join(line.rstrip() for line in text.get().splitlines()))
    print(f"{len(ruled)} operators have rules; what has none is decomposed where torch knows how")
    return 0


def _operator(target: Any) -> str:
    """`aten.relu.default`, `operator.add`."""
    if isinstance(target, torch._ops.OpOverload | torch._ops.HigherOrderOperator):  # noqa: SLF001  no public name
        return str(target)
    return f"{target.__module__.removeprefix('_')}.{target.__name__}"


def _since(rule: fx2onnx.Rule) -> str:
    return str(rule.since) if rule.target == "onnx" else f"{rule.since} ({rule.target})"


# -- models and inputs -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A model with its example arguments and the names of their free sizes.

    `input_names` are given where the model takes `*tensors` and has no names for them.
    """

    model: Callable[..., Any]
    args: tuple[torch.Tensor, ...]
    kwargs: dict[str, torch.Tensor]
    dynamic_shapes: dict[str, dict[int, str]] | tuple[dict[int, str], ...] | None
    input_names: tuple[str, ...] | None = None


def _call(options: argparse.Namespace) -> Call:
    """What --input and the model's name say; weights and values come from --seed.

    Raises:
        UsageError: they do not say a call.
        Fx2OnnxError: the model's own code raised.
    """
    try:
        inputs = parse_inputs(options.input)
        sizes = example_sizes(inputs)
        torch.manual_seed(options.seed)
        model = load(options.model, parse_arguments(options.model_arg))
    except ExportInputError as error:
        raise UsageError(str(error)) from error
    generator = torch.Generator().manual_seed(options.seed)
    tensors = {i.name: i.tensor(sizes, generator) for i in inputs}
    known = parameters(model)
    if any(p.kind == p.VAR_POSITIONAL for p in known.values()):
        return Call(model, tuple(tensors.values()), {}, tuple(i.free for i in inputs), tuple(tensors))
    args, kwargs = _arguments(known, tensors)
    return Call(model, args, kwargs, {i.name: i.free for i in inputs if i.free} or None)


def _arguments(
    known: dict[str, inspect.Parameter], tensors: dict[str, torch.Tensor]
) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
    """By position as far as the names are the first parameters in order, by keyword from there on."""
    kinds = inspect.Parameter
    named = {n: p for n, p in known.items() if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)}
    open_ended = any(p.kind == kinds.VAR_KEYWORD for p in known.values())
    if unknown := [n for n in tensors if n not in named and not open_ended]:
        raise UsageError(
            f"the model has no input {', '.join(unknown)}; it takes {', '.join(named) or 'none'}"
        )
    if missing := [n for n, p in named.items() if p.default is p.empty and n not in tensors]:
        raise UsageError(
            f'the model also takes {", ".join(missing)}; write --input "{missing[0]}: dtype[sizes]"'
        )
    count = 0
    for name, parameter in named.items():
        if name not in tensors or parameter.kind == kinds.KEYWORD_ONLY:
            break
        count += 1
    first = list(named)[:count]
    return tuple(tensors[n] for n in first), {n: t for n, t in tensors.items() if n not in first}


def _check_passes(names: Sequence[str]) -> None:
    known = {step.name for step in default_pipeline().passes}
    if unknown := [n for n in names if n not in known and n != "all"]:
        raise UsageError(f"there is no pass {', '.join(unknown)}; there are {', '.join(sorted(known))}")


# -- arguments -------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fx2onnx", description="A compiler from PyTorch to ONNX.")
    parser.add_argument("--version", action="version", version=f"fx2onnx {fx2onnx.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _export_options(_command(commands, export, "export a model", HELP_ON_MODELS))
    _verify_options(_command(commands, verify, "check a model on disk", HELP_ON_MODELS))
    _ops_options(_command(commands, ops, "list the operators", None))
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], int],
    text: str,
    epilog: str | None,
) -> argparse.ArgumentParser:
    made = commands.add_parser(
        run.__name__,
        help=text,
        description=run.__doc__,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--debug", action="store_true", help="show tracebacks")
    made.set_defaults(command=run)
    return made


def _model_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help="package.module:name or file.py:name")
    add(
        "--input",
        "-i",
        action="append",
        default=[],
        metavar="TEXT",
        help='"x: float32[batch=2, 3, 224, 224]"',
    )
    add("--model-arg", action="append", default=[], metavar="NAME=VALUE", help="for what makes the model")
    add("--seed", type=int, default=0, help="for weights and example inputs (0)")


def _export_options(parser: argparse.ArgumentParser) -> None:
    _model_options(parser)
    add = parser.add_argument
    add("--output", "-o", metavar="FILE", help="where to write the model (NAME.onnx)")
    add("--opset", type=int, help=f"version of the ai.onnx domain ({fx2onnx.DEFAULT_OPSET})")
    add("--functions", choices=["modules", "ops", "none"], default="modules", help="what becomes a function")
    add("--target", choices=["onnx", "onnxruntime"], default="onnx", help="whose operators may be used")
    add("--verify", action="store_true", help="compare with eager PyTorch in ONNX Runtime")
    add("--external-data", action="store_true", help="write the weights to a file of their own")
    add(
        "--print-after",
        action="append",
        default=[],
        metavar="PASS",
        help='show the graph; "all" for each pass',
    )
    add("--verify-each", action="store_true", help="check the graph after each pass")
    add("--timings", action="store_true", help="show the seconds of each stage")


def _verify_options(parser: argparse.ArgumentParser) -> None:
    _model_options(parser)
    parser.add_argument("file", metavar="FILE", help="the ONNX model")


def _ops_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("filter", nargs="?", default="", help="only operators with this in their name")


if __name__ == "__main__":
    sys.exit(main())
