"""Ratios to the best peer as a picture: one bar per workload (matplotlib, the extra `bench`)."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from benchmarks.table import Line


def plot(lines: Sequence[Line], path: Path) -> None:
    """Write the picture; its format follows the file's suffix."""
    shown = [(line.workload, line.ratio) for line in lines if line.ratio is not None]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.16 * len(shown)), layout="constrained")
    ratios = [ratio for _, ratio in shown]
    colors = ["#2a7f62" if r >= 1 else "#b5483a" for r in ratios]
    axes.barh([name for name, _ in shown], [r - 1 for r in ratios], left=1.0, color=colors)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("best peer's time / pypto_dsl's time")
    axes.tick_params(axis="y", labelsize=6)
    axes.margins(y=0)
    axes.invert_yaxis()
    figure.savefig(path)
    pyplot.close(figure)
