"""AlexNet through every stage of the compiler: captured, rewritten, lowered, run, and checked against eager PyTorch.

Run with `make demo`. The weights are random, nothing is downloaded.
"""

from __future__ import annotations

import time
from pathlib import Path

import torch
import torchvision

import fx2onnx
from fx2onnx.passes import default_pipeline


def main() -> None:
    """Go through the stages one by one and print what each makes."""
    torch.manual_seed(0)
    model = torchvision.models.alexnet(weights=None).eval()
    image = torch.randn(2, 3, 224, 224)

    start = time.perf_counter()
    graph = fx2onnx.capture(model, (image,), dynamic_shapes={"x": {0: "batch"}})
    say("capture", f"{calls(graph)} ATen calls", start)

    start = time.perf_counter()
    graph = default_pipeline()(graph)
    say("passes", f"{calls(graph)} calls, {len(graph.state)} tensors of state", start)
    print(indented(str(graph)))

    start = time.perf_counter()
    program = fx2onnx.lower(graph)
    say("lower", f"{program.model.graph.num_nodes()} ONNX nodes, opset {program.model.opset_imports['']}", start)

    path = Path("build/alexnet.onnx")
    path.parent.mkdir(exist_ok=True)
    start = time.perf_counter()
    program.save(path)
    say("save", f"{path.stat().st_size / 1e6:.0f} MB", start)

    start = time.perf_counter()
    program = fx2onnx.export(model, (image,), dynamic_shapes={"x": {0: "batch"}})
    say("export", "all of the above in one call", start)
    print(program.report())

    print("\nONNX Runtime against eager PyTorch:")
    print(indented(str(program.verify())))
    print(f"\nthe model: {path.resolve()}")


def calls(graph: fx2onnx.TypedGraph) -> int:
    """The number of calls in a graph and its regions."""
    return sum(node.op.startswith("call") for module in graph.graphs() for node in module.graph.nodes)


def say(stage: str, what: str, start: float) -> None:
    """One line for a stage."""
    print(f"{stage:8} {time.perf_counter() - start:6.2f} s   {what}")


def indented(text: str) -> str:
    """A text moved to the right, long ones shortened in the middle."""
    lines = text.splitlines()
    if len(lines) > 40:
        lines = [*lines[:20], f"… {len(lines) - 30} more lines …", *lines[-10:]]
    return "\n".join(f"    {line}" for line in lines)


if __name__ == "__main__":
    main()
