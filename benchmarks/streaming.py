"""From which size on it pays to write past the caches: `python -m benchmarks.streaming` times kernels both ways around the last
cache's size, alone and with a kernel behind them that reads the result."""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import click
import numpy as np

from benchmarks.kernels import KERNELS, sum_last
from benchmarks.workloads import DTYPES, WORKLOADS, Array, aligned
from pypto_dsl.codegen.llvm.kernel import STREAMING
from pypto_dsl.compiler import pipeline
from pypto_dsl.frontend.targets import extents_of
from pypto_dsl.runtime.cpu.caches import last_level_bytes
from pypto_dsl.runtime.cpu.executable import Executable
from pypto_dsl.runtime.cpu.pool import Pool

COLUMNS = 1024
SHARES = (0.25, 0.5, 0.625, 0.75, 0.875, 1.0, 1.25, 1.5, 2.0)
NAMES = ("pow_2_f32_1M", "add_f32_1M", "fma_relu_f32_1M", "rms_norm_f32_1M", "add_bf16_1M")
WAYS = {"through": 1 << 62, "past": 0}


def prepared(name: str, total: int) -> tuple[dict[str, Executable], dict[str, Array]]:
    """A workload's kernel both ways, and arrays of ``total`` bytes together."""
    workload = WORKLOADS[name]
    dtype, kinds = DTYPES[workload.dtype], {**workload.operation.operands, "out": "result"}
    planes = sum(not kind.endswith("/row") for kind in kinds.values())
    rows = total // (planes * COLUMNS * dtype.itemsize)
    arrays: dict[str, Array] = {}
    for operand, kind in kinds.items():
        arrays[operand] = aligned((COLUMNS,) if kind.endswith("/row") else (rows, COLUMNS), dtype)
        arrays[operand][...] = 1.5
    graph = KERNELS[workload.operation.name].graph(*arrays.values())
    program, extents = pipeline.lower(graph, "llvm-cpu"), extents_of(graph)
    ways = {way: Executable(program, pool=Pool(1), launch={STREAMING: limit}, extents=extents) for way, limit in WAYS.items()}
    return ways, arrays


def timed(calls: Sequence[Callable[[], object]]) -> float:
    """Processor time of several calls, four times in turn."""
    began = time.process_time()
    for _ in range(4):
        for call in calls:
            call()
    return time.process_time() - began


def compared(name: str, total: int, rounds: int) -> tuple[float, float]:
    """How much faster a workload on ``total`` bytes is past the caches than through them: alone, and with its result read afterwards."""
    ways, arrays = prepared(name, total)
    sums = np.empty(arrays["out"].shape[0], arrays["out"].dtype)
    best = {(way, read): np.inf for way in ways for read in (False, True)}
    for _ in range(rounds):
        for way, read in best:
            calls: list[Callable[[], object]] = [lambda run=ways[way].run: run(arrays)]  # type: ignore[misc]
            best[way, read] = min(best[way, read], timed(calls + [lambda: sum_last(arrays["out"], sums)] * read))
    return best["through", False] / best["past", False], best["through", True] / best["past", True]


@click.command()
@click.option("--rounds", default=15, show_default=True, help="The best of so many, both ways in each.")
def main(rounds: int) -> None:
    """Print how much faster kernels are when they write past the caches, on one thread."""
    cache = last_level_bytes()
    if cache is None:
        raise click.ClickException("this machine does not say how large its last cache is")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    click.echo(f"last cache: {cache >> 20} MiB\n\n| workload | " + " | ".join(f"{s:g}" for s in SHARES) + " |")
    click.echo("| --- |" + " ---: |" * len(SHARES))
    for name in NAMES:
        alone, read = zip(*(compared(name, int(share * cache), rounds) for share in SHARES), strict=True)
        for title, ratios in ((name.rsplit("_", 1)[0], alone), ("... and read", read)):
            click.echo(f"| {title} | " + " | ".join(f"{r:.2f}x" for r in ratios) + " |")


if __name__ == "__main__":
    main()
