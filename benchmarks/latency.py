"""The models that come out: load time and latency in ONNX Runtime, node counts, against torch.onnx.export(dynamo=True).

    python -m benchmarks.latency [--rounds 5] [MODEL …]

Both models of a pair are measured in fresh processes, alternating, on one thread; the figures are ratios of medians.
Nodes are counted with all functions inlined, constants left out. Load time is given for our model with its functions,
which ONNX Runtime inlines level by level when it loads them, and for the flat one (`functions="none"`).
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
        "flat",
        "peer",
        "ratio",
        "flat ratio",
    )
    ratios: dict[str, list[float]] = {"latency": [], "load": [], "load of the flat model": []}
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            found = _pair(name, options.rounds, Path(folder))
        if "error" in found:
            console.print(f"{name}: {found['error']}")
            continue
        for title, figures in found["ratios"].items():
            ratios[title].append(figures)
        table.add_row(name, *map(str, found["nodes"]), *found["cells"])
        console.print(f"{name}: nodes {found['nodes']}, " + ", ".join(_text(found["ratios"])))
    console.print(table)
    for title, values in ratios.items():
        if values:
            mean = math.exp(statistics.fmean(map(math.log, values)))
            console.print(f"{title}: geometric mean of the ratios {mean:.3f}, largest {max(values):.3f}")


def _text(ratios: dict[str, float]) -> list[str]:
    return [f"{title} x{value:.3f}" for title, value in ratios.items()]


def _pair(name: str, rounds: int, folder: Path) -> dict[str, Any]:
    """Export with both, count nodes, then load and run them in turn."""
    exporters = ("fx2onnx", "fx2onnx-flat", "torch.onnx")
    paths = {e: folder / f"{e}.onnx" for e in exporters}
    for exporter, path in paths.items():
        made = measure("export", exporter, name, str(path))
        if "error" in made:
            return {"error": f"{exporter} failed: {made['error']}"}
    runs: dict[str, list[dict[str, Any]]] = {e: [] for e in exporters}
    for _ in range(rounds):
        for exporter, path in paths.items():
            runs[exporter].append(measure("run", str(path)))
    if errors := [r["error"] for found in runs.values() for r in found if "error" in r]:
        return {"error": errors[0]}
    ours, flat, peer = (_median(runs[e], "load") for e in exporters)
    latency = [_median(runs[e], "latency") for e in EXPORTERS]
    cells = [*latency, latency[0] / latency[1], ours, flat, peer, ours / peer, flat / peer]
    formats = ["{:.2f}", "{:.2f}", "{:.3f}", "{:.1f}", "{:.1f}", "{:.1f}", "{:.3f}", "{:.3f}"]
    scaled = [c * 1e3 if ":.3f" not in f else c for c, f in zip(cells, formats, strict=True)]
    return {
        "nodes": [count_nodes(paths[e]) for e in EXPORTERS],
        "ratios": {
            "latency": latency[0] / latency[1],
            "load": ours / peer,
            "load of the flat model": flat / peer,
        },
        "cells": [f.format(c) for c, f in zip(scaled, formats, strict=True)],
    }


def _median(runs: list[dict[str, Any]], key: str) -> float:
    return statistics.median(r[key] for r in runs)


def count_nodes(path: Path) -> int:
    """The nodes of a model and its subgraphs with all functions inlined, constants left out."""
    model = onnx.inliner.inline_local_functions(onnx.load(path, load_external_data=False))
    return _count(model.graph)


def _count(graph: onnx.GraphProto) -> int:
    inner = (a.g for n in graph.node for a in n.attribute if a.HasField("g"))
    return sum(n.op_type != "Constant" for n in graph.node) + sum(map(_count, inner))


if __name__ == "__main__":
    main()
