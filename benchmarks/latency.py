"""The models that come out: load time and latency in ONNX Runtime, node counts, against torch.onnx.export(dynamo=True).

    python -m benchmarks.latency [--rounds 5] [MODEL …]

Both models of a pair are measured in fresh processes, alternating, on one thread; the figures are ratios of medians.
Nodes are counted with all functions inlined, constants left out.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from pathlib import Path
from typing import Any

import onnx
import onnx.inliner
from rich.console import Console
from rich.table import Table

from benchmarks.children import measure
from benchmarks.export_speed import EXPORTERS
from benchmarks.models import MODELS


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    console = Console(width=120)
    table = Table(
        "model",
        "nodes ours",
        "nodes peer",
        "latency ms ours",
        "peer",
        "ratio",
        "load ms ours",
        "peer",
        "ratio",
    )
    latencies, loads = [], []
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            found = _pair(name, options.rounds, Path(folder))
        if "error" in found:
            console.print(f"{name}: {found['error']}")
            continue
        latencies.append(found["latency"][2])
        loads.append(found["load"][2])
        table.add_row(name, *map(str, found["nodes"]), *_cells(found["latency"]), *_cells(found["load"]))
        console.print(f"{name}: nodes {found['nodes']}, latency x{latencies[-1]:.3f}, load x{loads[-1]:.3f}")
    console.print(table)
    for title, ratios in (("latency", latencies), ("load", loads)):
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            console.print(f"{title}: geometric mean of the ratios {mean:.3f}, largest {max(ratios):.3f}")


def _pair(name: str, rounds: int, folder: Path) -> dict[str, Any]:
    """Export with both, count nodes, then run them in turn."""
    paths = [folder / f"{i}.onnx" for i in range(2)]
    for exporter, path in zip(EXPORTERS, paths, strict=True):
        made = measure("export", exporter, name, str(path))
        if "error" in made:
            return {"error": f"{exporter} failed: {made['error']}"}
    runs: list[list[dict[str, Any]]] = [[], []]
    for _ in range(rounds):
        for i, path in enumerate(paths):
            runs[i].append(measure("run", name, str(path)))
    if errors := [r["error"] for found in runs for r in found if "error" in r]:
        return {"error": errors[0]}
    result: dict[str, Any] = {"nodes": [count_nodes(path) for path in paths]}
    for key in ("latency", "load"):
        ours, peer = (statistics.median(r[key] for r in found) for found in runs)
        result[key] = (ours, peer, ours / peer)
    return result


def count_nodes(path: Path) -> int:
    """The nodes of a model and its subgraphs with all functions inlined, constants left out."""
    model = onnx.inliner.inline_local_functions(onnx.load(path, load_external_data=False))
    return _count(model.graph)


def _count(graph: onnx.GraphProto) -> int:
    inner = (a.g for n in graph.node for a in n.attribute if a.HasField("g"))
    return sum(n.op_type != "Constant" for n in graph.node) + sum(map(_count, inner))


def _cells(figures: tuple[float, float, float]) -> list[str]:
    ours, peer, ratio = figures
    return [f"{ours * 1e3:.2f}", f"{peer * 1e3:.2f}", f"{ratio:.3f}"]


if __name__ == "__main__":
    main()
