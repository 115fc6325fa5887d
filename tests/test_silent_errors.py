"""Answers that other exporters get wrong without a word: here each is right, or refused with a clear error."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim

import fx2onnx
from fx2onnx.errors import ExportInputError, RelationError, UnsupportedOpError


def test_a_guard_that_the_model_needs_is_kept_and_checked():
    def forward(x):
        return x * 2 if x.shape[0] <= 5 else x * 3

    program = fx2onnx.export(forward, (torch.randn(3),), dynamic_shapes=({0: "n"},))
    assert program.relations == ("n <= 5",)
    metadata = {p.key: p.value for p in program.to_proto().metadata_props}
    assert metadata["fx2onnx.relations"] == "n <= 5"
    assert torch.equal(program(torch.ones(5)), torch.ones(5) * 2)
    with pytest.raises(RelationError, match="needs n <= 5"):
        program(torch.ones(9))


def test_a_loop_over_a_free_size_is_refused():
    def forward(x):
        total = torch.zeros(())
        for row in x:
            total = total + row.sum()
        return total

    with pytest.raises(fx2onnx.Fx2OnnxError, match="needs n"):
        fx2onnx.export(forward, (torch.randn(3, 2),), dynamic_shapes=({0: "n"},))


def test_an_auto_size_that_the_model_fixes_is_declared_fixed():
    def forward(x):
        total = torch.zeros(())
        for row in x:
            total = total + row.sum()
        return total

    program = fx2onnx.export(forward, (torch.randn(3, 2),), dynamic_shapes=({0: Dim.AUTO},))
    assert program.to_proto().graph.input[0].type.tensor_type.shape.dim[0].dim_value == 3


def test_train_mode_batch_norm_uses_the_batchs_statistics():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    x = torch.randn(5, 3, 6, 6) * 3 + 1
    program = fx2onnx.export(model, (x,), dynamic_shapes={"input": {0: "batch"}})
    assert len(program.notes) == 3
    assert "1.running_mean" in program.notes[0]
    program.verify()


def test_new_running_statistics_are_returned_on_request():
    model = nn.BatchNorm1d(4)
    x = torch.randn(5, 4)
    program = fx2onnx.export(model, (x,), return_mutated=True)
    made = program.run(program.feeds((x,)))
    model(x)
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        assert torch.allclose(made[f"{name}.mutated"], getattr(model, name))


def test_dropout_in_training_is_refused():
    with pytest.raises(UnsupportedOpError, match="eval"):
        fx2onnx.export(nn.Sequential(nn.Linear(4, 4), nn.Dropout()), (torch.randn(2, 4),))


def test_one_tensor_for_two_inputs():
    x = torch.randn(4)
    program = fx2onnx.export(lambda a, b: a - 2 * b, (x, x))
    a, b = torch.randn(4), torch.randn(4)
    assert torch.allclose(program(a, b), a - 2 * b)


def test_mutated_inputs_are_reported_or_returned():
    def forward(x):
        x.add_(1)
        return x * 2

    plain = fx2onnx.export(forward, (torch.zeros(2),))
    assert "writes to x" in plain.notes[0]
    assert [o.name for o in plain.to_proto().graph.output] == ["output"]
    full = fx2onnx.export(forward, (torch.zeros(2),), return_mutated=True)
    made = full.run({"x": torch.zeros(2)})
    assert made["x.mutated"].tolist() == [1, 1]
    assert made["output"].tolist() == [2, 2]


def test_results_that_are_no_tensors_come_back():
    def forward(x):
        return {"y": x * 2, "none": None, "name": "cat", "count": 3, "twice": x.shape[0] * 2, "flag": True}

    program = fx2onnx.export(forward, (torch.randn(3),), dynamic_shapes=({0: "n"},))
    assert [o.name for o in program.to_proto().graph.output] == ["y"]
    made = program(torch.ones(5))
    assert made.pop("y").tolist() == [2] * 5
    assert made == {"none": None, "name": "cat", "count": 3, "twice": 10, "flag": True}


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_outputs_are_declared_with_free_sizes(kind):
    model = kind(4, 5, batch_first=True).eval()
    x = torch.randn(2, 3, 4)
    for _ in range(2):  # the second export in a process is like the first
        program = fx2onnx.export(model, (x,), dynamic_shapes={"input": {0: "b", 1: "s"}})
        output = program.to_proto().graph.output[0].type.tensor_type.shape.dim
        assert [d.dim_param or d.dim_value for d in output] == ["b", "s", 5]
        program.verify()


def test_a_static_export_in_between_changes_nothing():
    model = nn.LSTM(4, 5).eval()
    x = torch.randn(3, 2, 4)
    fx2onnx.export(model, (x,)).verify()
    fx2onnx.export(model, (x,), dynamic_shapes={"input": {0: "s", 1: "b"}}).verify()


def test_derived_sizes_keep_the_users_names():
    k = Dim("k")
    program = fx2onnx.export(
        lambda x: torch.cat([x, x, x[:1]]), (torch.randn(4, 2),), dynamic_shapes=({0: 2 * k},)
    )
    proto = program.to_proto().graph
    assert proto.input[0].type.tensor_type.shape.dim[0].dim_param == "2*k"
    assert proto.output[0].type.tensor_type.shape.dim[0].dim_param == "4*k + 1"
    program.verify()


@pytest.mark.parametrize("version", [5, 17, 29, 99, "20", True])
def test_an_opset_that_is_not_written_is_refused(version):
    with pytest.raises(ExportInputError, match="opset_version"):
        fx2onnx.export(torch.relu, (torch.randn(2),), opset_version=version)


@pytest.mark.parametrize("version", range(18, 29))
def test_every_opset_is_honoured(version):
    def forward(x):
        return nn.functional.gelu(x).sum(1, keepdim=True) + nn.functional.layer_norm(x, (4,)).amax(
            1, keepdim=True
        )

    program = fx2onnx.export(forward, (torch.randn(2, 4),), opset_version=version)
    assert {o.domain: o.version for o in program.to_proto().opset_import}[""] == version
    program.verify()


def test_average_pooling_with_its_own_divisor():
    pool = nn.AvgPool2d(2, divisor_override=3)
    fx2onnx.export(pool, (torch.randn(1, 2, 4, 4),)).verify()


def test_autocast_around_the_export_gives_a_model_that_loads():
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 4)).eval()
    x = torch.randn(3, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = model(x)
        program = fx2onnx.export(model, (x,))
    made = program(x)
    assert made.dtype == expected.dtype
    assert torch.allclose(made.float(), expected.float(), atol=0.05)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: x * (n // 2),
        lambda x, n: x * max(n, 0),
        lambda x, n: x * abs(n),
        lambda x, n: x * (n % 3),
        lambda x, n: x * min(n, 1),
    ],
    ids=["half", "max", "abs", "mod", "min"],
)
@pytest.mark.parametrize("n", [-7, 0, 5])
def test_a_number_read_from_data_may_be_negative(function, n):
    def forward(x, number):
        return function(x, number.item())

    program = fx2onnx.export(forward, (torch.ones(3), torch.tensor(5)), dynamic_shapes=({0: "k"}, None))
    assert torch.equal(
        program(torch.ones(3), torch.tensor(n)), forward(torch.ones(3), torch.tensor(n)).float()
    )
