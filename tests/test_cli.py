"""The command line: what it writes, what it prints, and its exit status."""

from __future__ import annotations

import subprocess
import sys

import onnx
import pytest

from fx2onnx.cli import main
from fx2onnx.errors import ExportInputError
from fx2onnx.input_text import parse_input

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x, ids=None):
        y = self.linear(x)
        return y if ids is None else y[ids]

ready = Net()

def make():
    return Net()

def double(x):
    return x * 2

def broken(x):
    raise RuntimeError("no weather today")

def needs(size):
    return Net()

number = 3
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


@pytest.mark.parametrize("name", ["Net", "ready", "make", "double"])
def test_every_kind_of_model_is_exported(model, tmp_path, capsys, name):
    out = tmp_path / "out.onnx"
    status = main(["export", f"{model}:{name}", "--input", "x: float32[batch=2, 4]", "-o", str(out), "--verify"])
    assert status == 0
    made = onnx.load(out)
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    printed = capsys.readouterr()
    assert "equal to eager PyTorch" in printed.out
    assert str(out) in printed.out
    assert "capture …" in printed.err


def test_a_model_on_disk_is_verified(model, tmp_path, capsys):
    out = tmp_path / "out.onnx"
    common = ["--input", "x: f32[batch, 4]", "--seed", "3"]
    assert main(["export", f"{model}:Net", "-o", str(out), *common]) == 0
    assert main(["verify", f"{model}:Net", str(out), *common]) == 0
    assert main(["verify", f"{model}:Net", str(out), *common[:2], "--seed", "4"]) == 1
    assert "differs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nothing", [], "has no nothing"),
        ("number", [], "is a int, not a model"),
        ("Net", ["--input", "z: float32[2, 4]"], "no input z"),
        ("Net", ["--input", "x float32"], "not of the form"),
        ("Net", ["--input", "x: f32[2, 4]", "--input", "x: f32[2, 4]"], "twice"),
        ("Net", ["--input", "x: f32[2, 4]", "--print-after", "nonsense"], "no pass is called nonsense"),
    ],
)
def test_wrong_usage_is_status_2(model, tmp_path, capsys, name, options, message):
    assert main(["export", f"{model}:{name}", "-o", str(tmp_path / "o.onnx"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("broken", [], "no weather today"),
        ("double", ["--opset", "99"], "opset_version is 99"),
        ("double", ["-o", "/nowhere/at/all.onnx"], "does not exist"),
    ],
)
def test_a_failed_export_is_status_1(model, tmp_path, monkeypatch, capsys, name, options, message):
    monkeypatch.chdir(tmp_path)
    assert main(["export", f"{model}:{name}", "--input", "x: f32[2]", *options]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not list(tmp_path.glob("*.onnx"))


def test_debug_shows_the_traceback(model, tmp_path, capsys):
    out = str(tmp_path / "o.onnx")
    assert main(["export", f"{model}:broken", "--input", "x: f32[2]", "-o", out, "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_operators_are_listed(capsys):
    assert main(["ops", "aten.relu"]) == 0
    assert "aten.relu.default" in capsys.readouterr().out


def test_print_after_shows_the_graph(model, tmp_path, capsys):
    out = str(tmp_path / "o.onnx")
    options = ["--input", "x: f32[batch, 4]", "-o", out, "--print-after", "dead_code", "--verify-each"]
    assert main(["export", f"{model}:Net", *options]) == 0
    error = capsys.readouterr().err
    assert "# after dead_code" in error
    assert "aten.linear.default" in error


def test_without_a_terminal_there_are_plain_lines(model, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "fx2onnx.cli", "export", f"{model}:double", "-i", "x: f32[2]", "-o", "o.onnx"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines() == ["capture …", "passes …", "lower …", "save …"]
    assert "\x1b" not in done.stdout


def test_inputs_are_read():
    found = parse_input("ids: int64[batch=3, seq, 7] < 1000")
    assert (found.name, found.sizes, found.free, found.bound) == ("ids", (3, 2, 7), {0: "batch", 1: "seq"}, 1000)
    assert parse_input("x: bool[]").sizes == ()


@pytest.mark.parametrize("text", ["x", "x: f32", "x: f33[2]", "x: f32[-1]", "x: f32[a b]", "x: f32[2] < a"])
def test_bad_inputs_are_refused(text):
    with pytest.raises(ExportInputError):
        parse_input(text)
