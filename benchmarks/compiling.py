"""What a first call costs: softmax with static and with symbolic extents, compiled and loaded from the cache, and 1,000 fused operations.

    python -m benchmarks.compiling

Processor time of the best of many runs in a process that has compiled before (the first compilation also starts LLVM): reading the kernel,
the passes, emission, LLVM and linking. Each compiled run begins with an empty cache.
"""
from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.capture import kernel
from benchmarks.kernels import softmax_static, softmax_symbolic
from pypto_dsl.driver import Kernel
from pypto_dsl.frontend import rewrite, spans


def best(call: Callable[[], object], before: Callable[[], object], turns: int) -> float:
    """The least processor time of a call, in milliseconds; ``before`` runs ahead of each and is not counted."""
    times = []
    for _ in range(turns):
        before()
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times) * 1e3


def main() -> None:
    """Print the table."""
    folder = tempfile.mkdtemp()
    os.environ["PTC_CACHE_DIR"] = folder
    x, out = np.ones((64, 256), np.float32), np.empty((64, 256), np.float32)

    def forget() -> None:
        spans.forget_sources()
        rewrite.forget_rewritten()

    def empty() -> None:
        forget()
        shutil.rmtree(folder, ignore_errors=True)

    def read(made: Any) -> Callable[[], object]:
        return lambda: Kernel(made.function, made.options).specialise(x, out)

    def run(made: Any) -> Callable[[], object]:
        return lambda: Kernel(made.function, made.options)(x, out)

    print("| first call of | reading it ms | with all of the compiler ms | with a load from the cache ms |\n| --- | ---: | ---: | ---: |")
    for name, made, turns in (("softmax, static extents", softmax_static, 25), ("softmax, symbolic extents", softmax_symbolic, 25),
                              ("1,000 fused operations", kernel(500), 4)):
        run(made)()
        costs = best(read(made), forget, turns), best(run(made), empty, turns), best(run(made), forget, turns)
        print(f"| {name} | {costs[0]:.2f} | {costs[1]:.1f} | {costs[2]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
