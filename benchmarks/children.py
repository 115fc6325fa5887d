"""Child processes of the benchmarks: one export, or one measurement of a model, each in a fresh process.

python -m benchmarks.children export fx2onnx resnet50 /tmp/a.onnx      → {"seconds": …, "peak_mb": …}
python -m benchmarks.children run /tmp/a.onnx                          → {"load": …, "latency": …}
"""

from __future__ import annotations

import json
import logging
import resource
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent


def measure(*arguments: str) -> dict[str, Any]:
    """Run one child and return what it printed; its error otherwise."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.children", *arguments],
        capture_output=True,
        text=True,
        cwd=HERE,
        check=False,
    )
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "crash"}
    return json.loads(done.stdout.strip().splitlines()[-1])  # type: ignore[no-any-return]


def export(exporter: str, name: str, path: str) -> dict[str, float]:
    """Export and save one model; the exporter's own imports count."""
    import torch

    from benchmarks.models import MODELS

    subject = MODELS[name]()
    args, kwargs = subject.inputs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    if exporter.startswith("fx2onnx"):
        import fx2onnx

        functions: Any = "none" if exporter.endswith("flat") else "modules"
        fx2onnx.export(
            subject.model, args, kwargs, dynamic_shapes=subject.dynamic_shapes, functions=functions
        ).save(path)
    else:
        shapes = _torch_shapes(subject, torch)
        program = torch.onnx.export(
            subject.model, args, kwargs=kwargs, dynamo=True, dynamic_shapes=shapes, verbose=False
        )
        program.save(path)  # type: ignore[union-attr]
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _save_inputs(subject, path)
    return {"seconds": seconds, "peak_mb": peak / 1024, "above_model_mb": (peak - before) / 1024}


def _torch_shapes(subject: Any, torch: Any) -> Any:
    """The same free sizes for torch.onnx.export: every named size as Dim.DYNAMIC."""
    from fx2onnx.capture.containers import register_caches
    from fx2onnx.capture.dynamic import requests
    from fx2onnx.capture.signature import arguments_of

    register_caches()
    arguments = arguments_of(subject.model.forward, *subject.inputs)
    axes: dict[int, dict[int, Any]] = {}
    for request in requests(arguments, subject.dynamic_shapes):
        axes.setdefault(request.leaf.index, {})[request.axis] = torch.export.Dim.DYNAMIC
    shapes = torch.export.ShapesCollection()
    for leaf in arguments.leaves:
        if leaf.index in axes:
            shapes[leaf.value] = axes[leaf.index]
    return shapes.dynamic_shapes(subject.model, *subject.inputs)


def _save_inputs(subject: Any, path: str) -> None:
    """Write the example inputs next to the model, in their order."""
    import numpy as np
    import torch

    leaves = torch.utils._pytree.tree_leaves(subject.inputs)  # noqa: SLF001
    np.savez(f"{path}.npz", *[leaf.numpy() for leaf in leaves if isinstance(leaf, torch.Tensor)])


def run(path: str, seconds: str = "1") -> dict[str, float]:
    """Load time and latency of one model in ONNX Runtime, on one thread, with the inputs that lie next to it."""
    import numpy as np

    with np.load(f"{path}.npz") as saved:
        arrays = [saved[name] for name in saved.files]
    loads = []
    for _ in range(3):
        start = time.perf_counter()
        session = _session(path)
        loads.append(time.perf_counter() - start)
    feeds = {i.name: a for i, a in zip(session.get_inputs(), arrays, strict=True)}
    session.run(None, feeds)
    times: list[float] = []
    end = time.perf_counter() + float(seconds)
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    return {"load": statistics.median(loads), "latency": statistics.median(times)}


def _session(path: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def main() -> None:
    """Do what the command line asks for and print the result as JSON."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    command, *arguments = sys.argv[1:]
    result = {"export": export, "run": run}[command](*arguments)  # type: ignore[operator]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
