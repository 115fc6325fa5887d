"""AlexNet through every stage of the compiler, then in ONNX Runtime against eager PyTorch.

Run with `make demo`. The weights are random, nothing is downloaded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torchvision

import fx2onnx
from fx2onnx.passes import default_pipeline

MODEL = Path(__file__).parent.parent / "build" / "alexnet.onnx"


def main() -> None:
    """Go through the stages one by one and print what each makes."""
    torch.manual_seed(0)
    model = torchvision.models.alexnet(weights=None).eval()
    image = torch.randn(2, 3, 224, 224)

    with stage("capture"):
        graph = fx2onnx.capture(model, (image,), dynamic_shapes={"x": {0: "batch"}})
    print(f"    {calls(graph)} ATen calls, {len(graph.state)} weights")

    with stage("passes"):
        graph = default_pipeline()(graph)
    print(f"    {calls(graph)} calls in {len(list(graph.graphs()))} graphs, among them")
    print(excerpt(str(graph)))

    with stage("lower"):
        program = fx2onnx.lower(graph)
    functions = ", ".join(name for _, name, _ in program.model.functions)
    print(f"    opset {fx2onnx.DEFAULT_OPSET}, functions: {functions}")

    MODEL.parent.mkdir(exist_ok=True)
    with stage("save"):
        program.save(MODEL)
    print(f"    {MODEL.stat().st_size / 1e6:.0f} MB")

    with stage("verify"):
        program.source = model
        reports = [
            program.verify((torch.randn(batch, 3, 224, 224),), other_sizes=False) for batch in (1, 2, 5)
        ]
    for report in reports:
        print(f"    {report}")
    print(f"\n{program.report()}\n{MODEL}")


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Print a stage's name and how long it took."""
    start = time.perf_counter()
    yield
    print(f"{name} {time.perf_counter() - start:.2f} s")


def calls(graph: fx2onnx.TypedGraph) -> int:
    """The number of calls in a graph and its regions."""
    return sum(node.op.startswith("call") for module in graph.graphs() for node in module.graph.nodes)


def excerpt(text: str) -> str:
    """The first lines of a graph's text, cut to a terminal's width."""
    shown = [line if len(line) <= 100 else f"{line[:99]}…" for line in text.splitlines()]
    return "\n".join(f"    {line}" for line in [*shown[:8], "…"])


if __name__ == "__main__":
    main()
