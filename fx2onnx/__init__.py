"""fx2onnx: a compiler from PyTorch to ONNX on torch.fx graphs.

    program = fx2onnx.export(model, args, dynamic_shapes={"x": {0: "batch"}})
    program.save("model.onnx")

Every stage can be used alone: `capture`, `passes`, `lower`; see `fx2onnx.pipeline` for the whole compiler.
"""

from fx2onnx.capture import capture
from fx2onnx.errors import Fx2OnnxError
from fx2onnx.graph import TypedGraph
from fx2onnx.pipeline import DEFAULT_OPSET, export, lower
from fx2onnx.program import OnnxProgram
from fx2onnx.rules import Gap, Rule, RuleBook, collect, lowers, rows
from fx2onnx.types import SizeType, TensorType, type_of
from fx2onnx.version import __version__

__all__ = [
    "DEFAULT_OPSET",
    "Fx2OnnxError",
    "Gap",
    "OnnxProgram",
    "Rule",
    "RuleBook",
    "SizeType",
    "TensorType",
    "TypedGraph",
    "__version__",
    "capture",
    "collect",
    "export",
    "lower",
    "lowers",
    "rows",
    "type_of",
]
