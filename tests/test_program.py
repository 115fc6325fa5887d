"""OnnxProgram: saved atomically, called like the model, verified loudly, inlined."""

from __future__ import annotations

import os
import subprocess
import sys

import onnx
import pytest
import torch
from torch import nn

import fx2onnx
from fx2onnx import serialise
from fx2onnx.errors import ExportInputError, SaveError, VerificationError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm(8)) for _ in range(3)
        )

    def forward(self, x, *, options):
        for layer in self.layers:
            x = layer(x) * options["scale"]
        return {"y": x, "rows": x.shape[0]}


@pytest.fixture
def program():
    torch.manual_seed(0)
    return fx2onnx.export(
        Net().eval(),
        (torch.randn(3, 8),),
        {"options": {"scale": torch.tensor(2.0)}},
        dynamic_shapes={"x": {0: "batch"}, "options": {"scale": None}},
    )


def test_sizes_that_the_model_does_not_take_are_listed():
    program = fx2onnx.export(
        lambda x: nn.functional.avg_pool1d(x, 3), (torch.randn(2, 3, 12),), dynamic_shapes=({0: "b", 2: "n"},)
    )
    report = program.verify()
    assert [c.sizes for c in report.checks] == [{"b": 2, "n": 12}, {"b": 1, "n": 12}, {"b": 3, "n": 14}]
    assert [s.sizes for s in report.skipped] == [{"b": 1, "n": 1}, {"b": 2, "n": 1}]
    assert "not compared, the PyTorch model raises RuntimeError: Given input size" in str(report)


def test_the_report_says_types_relations_and_notes():
    def forward(x, table):
        table.add_(1)
        return x * 2 if x.shape[0] <= 5 else x

    program = fx2onnx.export(forward, (torch.ones(3, 4), torch.zeros(2)), dynamic_shapes=({0: "n"}, None))
    report = program.report().splitlines()
    assert report[:3] == ["input x: f32[n, 4]", "input table: f32[2]", "output output: f32[n, 4]"]
    assert report[3].startswith("needs n <= 5    at ")
    assert report[4].startswith("note: the model writes to table")


# -- calling ---------------------------------------------------------------------------------------


def test_it_is_called_like_the_model(program):
    x, options = torch.randn(5, 8), {"scale": torch.tensor(0.5)}
    made, expected = program(x, options=options), program.source(x, options=options)
    assert made["rows"] == expected["rows"] == 5
    assert torch.allclose(made["y"], expected["y"], atol=1e-5)


@pytest.mark.parametrize(
    ("x", "scale", "message"),
    [
        (torch.randn(3, 9), torch.tensor(1.0), "axis 1 of x is 9"),
        (torch.randn(3), torch.tensor(1.0), "1 axes"),
        (torch.randn(3, 8).double(), torch.tensor(1.0), "float64"),
        (torch.randn(3, 8), 1.0, "a float"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(program, x, scale, message):
    with pytest.raises(ValueError, match=message):
        program(x, options={"scale": scale})


def test_another_structure_is_refused(program):
    with pytest.raises(ExportInputError, match="structure"):
        program(torch.randn(3, 8), options=torch.tensor(1.0))


def test_another_python_value_is_refused():
    program = fx2onnx.export(lambda x, k: x * k, (torch.randn(2), 3))
    assert program(torch.ones(2), 3).tolist() == [3, 3]
    with pytest.raises(ExportInputError, match="exported with 3"):
        program(torch.ones(2), 4)


# -- verification ----------------------------------------------------------------------------------


def test_a_wrong_model_is_found(program):
    report = program.verify()
    assert [c.sizes for c in report.checks] == [{"batch": 3}, {"batch": 1}, {"batch": 4}]
    with torch.no_grad():
        program.source.layers[1][0].weight[3, 4] += 1.0
    program._session = None
    broken = fx2onnx.export(Net().eval(), program.args, program.kwargs)
    broken.source = program.source
    with pytest.raises(VerificationError, match="differs by"):
        broken.verify()


def test_verification_leaves_the_model_as_it_was():
    model = nn.BatchNorm1d(3)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    fx2onnx.export(model, (torch.randn(4, 3),)).verify()
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert model.training


# -- functions -------------------------------------------------------------------------------------


def test_equal_layers_share_one_function(program):
    functions = [f.name for f in program.to_proto().functions]
    assert functions.count("Sequential") == 1
    assert sum(n.op_type == "Sequential" for n in program.to_proto().graph.node) == 3


def test_inlining_leaves_no_function(program):
    flat = program.inline()
    assert not flat.to_proto().functions
    assert len(program.to_proto().functions) == 1
    onnx.checker.check_model(flat.to_proto(), full_check=True)
    flat.verify()


@pytest.mark.parametrize("functions", ["modules", "ops", "none"])
def test_forms_of_functions_compute_the_same(functions):
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.Softplus(beta=2)), nn.Softplus(beta=2)).eval()
    program = fx2onnx.export(model, (torch.randn(2, 4),), functions=functions)
    domains = {f.domain for f in program.to_proto().functions}
    assert domains <= {"modules": {"aten", "torch"}, "ops": {"aten"}, "none": set()}[functions]
    program.verify()


# -- files -----------------------------------------------------------------------------------------


def test_saving_writes_one_file(program, tmp_path):
    program.save(tmp_path / "m.onnx")
    assert os.listdir(tmp_path) == ["m.onnx"]
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)


def test_external_data_stands_beside_the_model(program, tmp_path):
    for _ in range(3):  # saving again replaces both
        program.save(tmp_path / "m.onnx", external_data=True)
        assert len(os.listdir(tmp_path)) == 2
        session = fx2onnx.runtime.session(str(tmp_path / "m.onnx"))
        assert session.get_outputs()[0].name == "y"
    program.verify()


@pytest.mark.parametrize("external", [False, True])
def test_a_failing_write_leaves_the_old_file(program, tmp_path, monkeypatch, external):
    path = tmp_path / "m.onnx"
    program.save(path, external_data=external)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(serialise, "_flush", full)
    with pytest.raises(SaveError, match="No space left"):
        program.save(path, external_data=external)
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before


@pytest.mark.parametrize("where", ["missing/m.onnx", "."])
def test_an_unwritable_path_is_refused(program, tmp_path, where):
    with pytest.raises(SaveError, match="not written"):
        program.save(tmp_path / where)
    assert not os.listdir(tmp_path)


def test_importing_the_library_does_not_import_what_it_does_not_need():
    names = ("onnxruntime", "transformers", "rich", "torchvision")
    code = f"import sys, fx2onnx; print([m for m in {names} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
