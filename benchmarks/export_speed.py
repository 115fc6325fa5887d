"""Export time and peak memory against torch.onnx.export(dynamo=True).

    python -m benchmarks.export_speed [--rounds 3] [MODEL …]

Each export runs in a fresh process, ours and the peer's alternating; the figures are medians. The time is that of
`export` and `save`, the exporter's own imports included, the model's construction not.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.children import measure
from benchmarks.models import MODELS

EXPORTERS = ("fx2onnx", "torch.onnx")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    console = Console(width=110)
    table = Table("model", "ours s", "peer s", "ratio", "ours peak MB", "peer peak MB", title="export + save")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models:
            runs = _alternating(name, options.rounds, Path(folder))
            ratio = _row(table, name, runs)
            if ratio:
                ratios.append(ratio)
            console.print(f"{name}: {_line(runs, ratio)}")
    console.print(table)
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        console.print(
            f"geometric mean of the ratios over {len(ratios)} models: {mean:.3f}, largest {max(ratios):.3f}"
        )


def _alternating(name: str, rounds: int, folder: Path) -> dict[str, list[dict[str, Any]]]:
    runs: dict[str, list[dict[str, Any]]] = {e: [] for e in EXPORTERS}
    for _ in range(rounds):
        for exporter in EXPORTERS:
            runs[exporter].append(measure("export", exporter, name, str(folder / "model.onnx")))
    return runs


def _median(runs: list[dict[str, Any]], key: str) -> float | None:
    values = [r[key] for r in runs if key in r]
    return statistics.median(values) if values else None


def _row(table: Table, name: str, runs: dict[str, list[dict[str, Any]]]) -> float | None:
    """Add a model's row; returns the ratio of the times when both exported."""
    ours, peer = (_median(runs[e], "seconds") for e in EXPORTERS)
    peaks = [_median(runs[e], "peak_mb") for e in EXPORTERS]
    ratio = ours / peer if ours and peer else None
    cells = [ours, peer, ratio, *peaks]
    formats = ["{:.2f}", "{:.2f}", "{:.3f}", "{:.0f}", "{:.0f}"]
    table.add_row(
        name, *(f.format(c) if c is not None else "failed" for c, f in zip(cells, formats, strict=True))
    )
    return ratio


def _line(runs: dict[str, list[dict[str, Any]]], ratio: float | None) -> str:
    if ratio is not None:
        return f"ratio {ratio:.3f}"
    errors = {e: r["error"] for e, found in runs.items() for r in found if "error" in r}
    return "; ".join(f"{e} failed: {text}" for e, text in errors.items())


if __name__ == "__main__":
    main()
