"""What may be imported where, as far as the import contracts of pyproject.toml cannot say it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(p for folder in ("fx2onnx", "passes", "opset") for p in (ROOT / folder).rglob("*.py"))
OTHERS_RULES = ("onnxscript.function_libs", "torch.onnx")  # the lowering rules are our own
SHORT_NAMES = ("passes", "opset")  # by these the files would run twice


def imported(path: Path) -> set[str]:
    """The modules, and the names in modules, that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_imports_nothing_forbidden(path):
    forbidden = OTHERS_RULES + SHORT_NAMES
    assert not [n for n in imported(path) if f"{n}.".startswith(tuple(f"{f}." for f in forbidden))]


def test_importing_the_library_loads_nothing_that_only_some_need():
    code = "import sys, fx2onnx; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "fx2onnx" in loaded
    assert not loaded & {"onnxruntime", "transformers", "torchvision", "rich", *SHORT_NAMES}
    code = "import sys, fx2onnx; print(*[n for n in sys.modules if n.startswith('fx2onnx.cli')])"
    assert not subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
