"""Models in ONNX Runtime: sessions on the CPU, torch tensors in and out."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping

import numpy as np
import onnxruntime
import torch

from fx2onnx.types import DTYPES

# NumPy has no type of these: they cross as integers of the same width.
_CARRIERS = {1: torch.uint8, 2: torch.int16}
_BY_RUNTIME_NAME = {
    "float": torch.float32,
    "double": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "bool": torch.bool,
    **{
        f"{sign}int{bits}": getattr(torch, f"{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "float8e4m3fn": torch.float8_e4m3fn,
    "float8e4m3fnuz": torch.float8_e4m3fnuz,
    "float8e5m2": torch.float8_e5m2,
    "float8e5m2fnuz": torch.float8_e5m2fnuz,
}


def session(model: bytes | str, *, optimise: bool = True) -> onnxruntime.InferenceSession:
    """A CPU session for a serialised model or a path."""
    options = onnxruntime.SessionOptions()
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(loaded: onnxruntime.InferenceSession, feeds: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Run a session on torch tensors; returns the outputs by name as torch tensors."""
    kept = {i.name for i in loaded.get_inputs()}
    given = {name: _to_runtime(value) for name, value in feeds.items() if name in kept}
    names = [o.name for o in loaded.get_outputs()]
    results = loaded.run_with_ort_values(names, given)
    return {name: _to_torch(value) for name, value in zip(names, results, strict=True)}


def _to_runtime(value: torch.Tensor) -> onnxruntime.OrtValue:
    value = value.detach().cpu().contiguous()
    onnx_type = int(DTYPES[value.dtype])
    array = value.numpy() if _numpy_has(value.dtype) else value.view(_CARRIERS[value.element_size()]).numpy()
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, onnx_type)


def _to_torch(value: onnxruntime.OrtValue) -> torch.Tensor:
    dtype = _BY_RUNTIME_NAME[value.data_type().removeprefix("tensor(").removesuffix(")")]
    if _numpy_has(dtype):
        return torch.from_numpy(np.array(value.numpy()))
    shape = value.shape()
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return torch.empty(shape, dtype=dtype)
    memory = (ctypes.c_char * size).from_address(
        value.data_ptr()
    )  # the runtime has no view of these for Python
    return torch.frombuffer(memory, dtype=dtype).clone().reshape(shape)


def _numpy_has(dtype: torch.dtype) -> bool:
    return dtype not in (torch.bfloat16,) and not dtype.is_complex and "float8" not in str(dtype)
