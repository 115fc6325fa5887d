"""Where a node of the typed graph came from: the user's line and the module path."""

from __future__ import annotations

import functools
import os
import re
from typing import Any

import torch
from torch import fx

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in [^\n]*\n(?:[ \t]+([^\n]*))?')
_TORCH = os.path.dirname(torch.__file__) + os.sep


def user_line(node: fx.Node) -> str | None:
    """`model.py:42: y = self.proj(x)`: the innermost line outside of torch; None when it is unknown."""
    trace = node.meta.get("stack_trace")
    return user_line_of(trace) if trace else None


def is_torch_file(path: str) -> bool:
    """Is this a file of torch itself, or code that torch generated?"""
    return path.startswith((_TORCH, "torch/", "<"))


@functools.lru_cache(maxsize=16384)
def user_line_of(trace: str) -> str | None:
    """The innermost line of a stack trace that is not torch's own, or torch's where there is no other."""
    frames = _FRAME.findall(trace)
    if not frames:
        return None
    outside = [f for f in frames if not is_torch_file(f[0])]
    path, line, code = (outside or frames)[-1]
    return f"{path}:{line}: {code}" if code else f"{path}:{line}"


def module_path(node: fx.Node) -> str:
    """The dotted path of the nn.Module whose forward made the node; empty for the model itself."""
    stack: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    return next(reversed(stack.values()))[0] if stack else ""
