"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fx2onnx.cli import _parser
from fx2onnx.input_text import parse_inputs

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^    (fx2onnx .*)$", README, re.MULTILINE)
TARGETS = re.findall(
    r"`make (\w+)`|^    make (\w+)", README + (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE
)
VERSIONS = re.findall(r"^\| (\w+)[^|]*\| ≥ ([\d.]+) \| ([\d.]+) \|", README, re.MULTILINE)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_python_blocks_run(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "block.py"
    path.write_text(block, encoding="utf-8")
    exec(compile(block, str(path), "exec"), {"__name__": "block"})
    assert (tmp_path / "model.onnx").exists() == ("model.onnx" in block)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_understood(command):
    options = _parser().parse_args(shlex.split(command)[1:])
    assert callable(options.command)
    parse_inputs(getattr(options, "input", []))


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    wanted = {a or b for a, b in TARGETS}
    assert {"demo", "test", "check"} <= wanted
    for target in wanted:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_versions_are_those_that_are_installed_and_asked_for():
    pins = dict(
        re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "requirements-test.txt").read_text("utf-8"), re.MULTILINE)
    )
    asked = dict(re.findall(r'"(\w+)>=([\d.]+)"', (ROOT / "pyproject.toml").read_text("utf-8")))
    assert len(VERSIONS) == 6
    for package, least, tested in VERSIONS:
        if package != "Python":
            assert pins[package.replace("_", "-")] == tested, package
            assert asked[package] == least, package
