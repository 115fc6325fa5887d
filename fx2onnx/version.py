"""The version of fx2onnx."""

__version__ = "0.1.0.dev0"
