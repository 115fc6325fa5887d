"""fx2onnx: a compiler from PyTorch to ONNX on torch.fx graphs."""

__version__ = "0.1.0.dev0"
