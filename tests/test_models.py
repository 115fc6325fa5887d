"""The models of the benchmarks, through the whole compiler: equal to eager PyTorch at three sets of sizes.

Each is checked by onnx.checker in full mode, and loaded by ONNX Runtime without a warning.
"""

from __future__ import annotations

import onnx
import pytest

import fx2onnx
from benchmarks.models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_model_is_eager_pytorch(name, capfd):
    subject = MODELS[name]()
    args, kwargs = subject.inputs
    program = fx2onnx.export(subject.model, args, kwargs, dynamic_shapes=subject.dynamic_shapes)
    onnx.checker.check_model(program.to_proto(), full_check=True)
    capfd.readouterr()
    program.session()
    loading = capfd.readouterr()
    assert "onnxruntime" not in loading.err + loading.out, loading.err
    for inputs in (subject.inputs, *subject.others):
        report = program.verify(*inputs, other_sizes=False)
        assert report.checks
    _free_sizes_stay(program, subject)


def _free_sizes_stay(program: fx2onnx.OnnxProgram, subject) -> None:
    """The sizes that were asked to be free carry the user's names in the ONNX model."""
    proto = program.to_proto()
    found = {d.dim_param for i in proto.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
    wanted = {name for name in _names(subject.dynamic_shapes) if name.isidentifier()}
    assert wanted <= found


def _names(spec) -> set[str]:
    if isinstance(spec, str):
        return {spec}
    children = spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list | tuple) else ()
    return set().union(*map(_names, children)) if children else set()
