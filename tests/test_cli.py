"""The command line: what it writes, what it prints, and its exit status."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import onnx
import pytest
import torch

from fx2onnx.cli import main
from fx2onnx.errors import ExportInputError, VerificationError
from fx2onnx.input_text import example_sizes, parse_input, parse_inputs
from fx2onnx.rules import Gap, collect

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.linear = torch.nn.Linear(size, 3)

    def forward(self, x, ids=None):
        y = self.linear(x)
        return y if ids is None else y[ids]

ready = Net()

def make():
    return Net()

def double(x):
    return x * 2

def pair(x, /, *, y, scale=1.0):
    return x + y * scale, x

def broken(x):
    raise RuntimeError("no weather today")

class Needs(Net):
    def __init__(self, size):
        super().__init__(size)

class Raises(Net):
    def __init__(self):
        raise RuntimeError("no weights today")

def makes_text(kind="a"):
    return kind

number = 3
traced = torch.export.export(ready, (torch.zeros(2, 4),))
"""
ROOT = Path(__file__).parent.parent


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.onnx"


@pytest.mark.parametrize("name", ["Net", "ready", "make", "double"])
def test_every_kind_of_model_is_exported(model, out, capsys, name):
    text = "x: float32[batch=2, 4]"
    assert main(["export", f"{model}:{name}", "--input", text, "-o", str(out), "--verify"]) == 0
    assert onnx.load(out).graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    printed = capsys.readouterr()
    assert "equal to eager PyTorch at\nbatch=2:" in printed.out
    assert "batch=1:" in printed.out
    assert printed.out.splitlines()[-1] == str(out)
    assert printed.err.splitlines() == [f"{s} …" for s in ("capture", "passes", "lower", "verify", "save")]


def test_a_module_in_a_package_is_exported(out):
    options = ["--input", "input: f32[n, 4]", "--model-arg", "p=0.5", "-o", str(out)]
    assert main(["export", "torch.nn:Dropout", *options]) == 0


def test_a_function_without_a_signature_is_exported(out):
    assert main(["export", "torch:relu", "-i", "x: f32[n]", "-o", str(out), "--verify"]) == 0
    assert [i.name for i in onnx.load(out).graph.input] == ["x"]
    assert main(["verify", "torch:relu", str(out), "-i", "x: f32[n]"]) == 0


def test_the_model_gets_its_arguments(model, out):
    for name in ("Net", "Needs"):
        options = ["-i", "x: f32[2, 7]", "--model-arg", "size=7", "-o", str(out), "--verify"]
        assert main(["export", f"{model}:{name}", *options]) == 0


def test_inputs_go_by_position_and_by_keyword(model, out):
    options = ["-i", "y: f32[n=3]", "-i", "x: f32[n]", "-o", str(out), "--verify"]
    assert main(["export", f"{model}:pair", *options]) == 0
    assert {i.name for i in onnx.load(out).graph.input} == {"x", "y"}
    options = ["-i", "x: f32[n=3, 4]", "-i", "ids: i64[k=5] < 3", "-o", str(out)]
    assert main(["export", f"{model}:Net", *options]) == 0


def test_the_seed_makes_the_weights(model, out, capsys):
    common = ["--input", "x: f32[batch, 4]", "--seed"]
    assert main(["export", f"{model}:Net", "-o", str(out), *common, "3"]) == 0
    assert main(["verify", f"{model}:Net", str(out), *common, "3"]) == 0
    assert "is equal to eager PyTorch at" in capsys.readouterr().out
    assert main(["verify", f"{model}:Net", str(out), *common, "4"]) == 1
    assert "differs" in capsys.readouterr().err


def test_a_model_of_another_exporter_is_verified(out, model, capsys):
    tensor = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Add", ["a", "a"], ["b"])
    ends = [tensor("a", 1, ["n"])], [tensor("b", 1, ["n"])]
    graph = onnx.helper.make_graph([node], "g", *ends)
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8), out
    )
    assert main(["verify", f"{model}:double", str(out), "-i", "x: f32[n]"]) == 0
    assert main(["verify", f"{model}:pair", str(out), "-i", "x: f32[n]", "-i", "y: f32[n]"]) == 1
    assert "has the inputs a, but the PyTorch model has x, y" in capsys.readouterr().err


def test_what_is_no_onnx_model_is_not_verified(out, model, capsys):
    out.write_bytes(b"no model at all")
    assert main(["verify", f"{model}:double", str(out), "-i", "x: f32[n]"]) == 1
    assert "is not an ONNX model" in capsys.readouterr().err
    assert main(["verify", f"{model}:double", str(out.parent / "none.onnx"), "-i", "x: f32[n]"]) == 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nothing", [], "has no nothing"),
        ("number", [], "is a int, not a model"),
        ("ready", ["--model-arg", "size=3"], "takes no arguments"),
        ("traced", [], "is an ExportedProgram"),
        ("makes_text", [], "makes a str, not an nn.Module"),
        ("Needs", [], "needs size"),
        ("Net", ["--model-arg", "width=3"], "takes no width, but size"),
        ("Net", ["--model-arg", "width"], "not of the form name=value"),
        ("Net", [], "also takes x"),
        ("Net", ["--input", "x: f32[2, 4]", "--input", "z: float32[2, 4]"], "no input z; it takes x, ids"),
        ("Net", ["--input", "x float32"], "not of the form"),
        ("Net", ["--input", "x: f32[2, 4]", "--input", "x: f32[2, 4]"], "twice"),
        ("Net", ["--input", "x: f32[n=2, n=4]"], "n is 2 in one place and 4 in another"),
        ("Net", ["--input", "x: f32[2, 4]", "--print-after", "nonsense"], "there is no pass nonsense"),
    ],
)
def test_wrong_usage_is_status_2(model, out, capsys, name, options, message):
    assert main(["export", f"{model}:{name}", "-o", str(out), *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not out.exists()


@pytest.mark.parametrize("name", ["no_such_package.models:Net", "no_such_file.py:Net", "torch.nn", "torch:"])
def test_a_model_that_is_not_there_is_status_2(out, name):
    assert main(["export", name, "-o", str(out)]) == 2


@pytest.mark.parametrize("arguments", [[], ["export"], ["export", "a:b", "--functions", "all"], ["import"]])
def test_an_unknown_command_is_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert "usage: fx2onnx" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("broken", [], "no weather today"),
        ("Raises", [], "no weights today"),
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
    assert "bug" not in error
    assert not list(tmp_path.glob("*.onnx"))


def test_a_file_that_cannot_be_imported_is_status_1(tmp_path, capsys):
    path = tmp_path / "bad.py"
    path.write_text("import no_such_package")
    assert main(["export", f"{path}:Net"]) == 1
    assert "No module named 'no_such_package'" in capsys.readouterr().err


def test_debug_shows_the_traceback(model, out, capsys):
    options = ["--input", "x: f32[2]", "-o", str(out), "--debug"]
    assert main(["export", f"{model}:broken", *options]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["while it is imported", "while it is made", "while it runs"])
def test_a_model_that_ends_the_program_is_no_success(tmp_path, out, capsys, place):
    bodies = {
        "while it is imported": "import sys\nsys.exit(0)",
        "while it is made": "import sys\ndef model(): sys.exit(0)",
        "while it runs": "import sys\ndef model(x): sys.exit(0)",
    }
    path = tmp_path / "ends.py"
    path.write_text(bodies[place])
    assert main(["export", f"{path}:model", "--input", "x: f32[2]", "-o", str(out)]) == 1
    assert "SystemExit" in capsys.readouterr().err
    assert not out.exists()


def test_a_model_that_fails_its_check_is_not_written(model, out, capsys, monkeypatch):
    def differs(program):
        raise VerificationError("the output y differs by 1.00e+00 of its scale")

    out.write_bytes(b"what was there before")
    monkeypatch.setattr("fx2onnx.OnnxProgram.verify", differs)
    options = ["--input", "x: f32[2]", "-o", str(out), "--verify"]
    assert main(["export", f"{model}:double", *options]) == 1
    assert "the output y differs" in capsys.readouterr().err
    assert out.read_bytes() == b"what was there before"


def test_timings_are_those_of_the_stages(model, out, capsys):
    options = ["--input", "x: f32[2]", "-o", str(out), "--timings"]
    assert main(["export", f"{model}:double", *options]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines[-5:]] == ["capture", "passes", "lower", "save", "total"]
    seconds = [float(line.split()[1]) for line in lines[-5:]]
    assert seconds[-1] == pytest.approx(sum(seconds[:-1]), abs=0.03)


def test_a_reader_that_has_had_enough_is_no_error(tmp_path):
    command = f"{shlex.quote(sys.executable)} -m fx2onnx.cli ops | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
    assert not done.stderr


def test_gaps_are_listed_with_their_kind(capsys, monkeypatch):
    gap = Gap((torch.ops.aten.bincount.default,), "never", "its length [n] depends on the values")
    monkeypatch.setattr("fx2onnx.cli.RULES", collect(SimpleNamespace(__name__="gaps", GAPS=(gap,))))
    assert main(["ops", "bincount"]) == 0
    assert "none (never): its length [n] depends on the values" in capsys.readouterr().out


def test_our_own_mistake_is_called_one(model, out, capsys, monkeypatch):
    monkeypatch.setattr("fx2onnx.export", lambda *args, **kwargs: {}["lost"])
    options = ["--input", "x: f32[2]", "-o", str(out)]
    assert main(["export", f"{model}:double", *options]) == 1
    error = capsys.readouterr().err
    assert "fx2onnx failed: KeyError: 'lost'; this is a bug" in error
    assert "Traceback" not in error
    assert main(["export", f"{model}:double", *options, "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_operators_are_listed(capsys):
    assert main(["ops", "aten.relu"]) == 0
    printed = capsys.readouterr().out
    assert "aten.relu.default" in printed
    assert "aten.cat" not in printed
    assert main(["ops"]) == 0


def test_print_after_shows_the_graph(model, out, capsys):
    options = ["--input", "x: f32[batch, 4]", "-o", str(out), "--print-after", "dead_code", "--verify-each"]
    assert main(["export", f"{model}:Net", *options]) == 0
    error = capsys.readouterr().err
    assert "# after dead_code" in error
    assert "aten.linear.default" in error


def test_weights_go_to_a_file_of_their_own(model, out):
    options = ["--input", "x: f32[batch, 4]", "-o", str(out), "--external-data", "--opset", "20"]
    assert main(["export", f"{model}:Net", *options]) == 0
    assert out.with_name("out.onnx.data").exists()
    assert [o.version for o in onnx.load(out).opset_import if o.domain == ""] == [20]


def test_without_a_terminal_there_are_plain_lines(model, tmp_path):
    command = [sys.executable, "-m", "fx2onnx.cli", "export", "model.py:double", "-i", "x: f32[2]"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == ["capture …", "passes …", "lower …", "save …"]
    assert "\x1b" not in done.stdout
    assert (tmp_path / "double.onnx").exists()


def test_inputs_are_read():
    found = parse_input(" ids:int64[batch=3, seq, 7]<1000 ")
    assert (found.name, found.dtype, found.bound) == ("ids", torch.int64, 1000)
    assert found.free == {0: "batch", 1: "seq"}
    made = found.tensor({"batch": 3, "seq": 2}, torch.Generator().manual_seed(0))
    assert made.shape == (3, 2, 7)
    assert 2 < made.max() < 1000
    assert parse_input("x: bool[]").axes == ()


def test_an_example_size_counts_for_all_inputs():
    inputs = parse_inputs(["a: f32[n]", "b: f32[n=5, m]"])
    assert example_sizes(inputs) == {"n": 5, "m": 2}


NOT_INPUTS = """
x | x: f32 | x: f33[2] | x: c64[2] | x: f32[-1] | x: f32[a b] | x: f32[2,] | x: f32[n=] | x: f32[n+1]
x: i64[2] < a | x: f32[2] < 3 | x: bool[2] < 3 | x: i64[2] < 0 | x: i8[2] < 129
"""


@pytest.mark.parametrize("text", NOT_INPUTS.strip().replace("\n", " | ").split(" | "))
def test_bad_inputs_are_refused(text):
    with pytest.raises(ExportInputError):
        parse_input(text)
