"""What the machine can do at most with a workload's bytes or flops: hand-written streams and multiply-adds, compiled when first used.

It takes part in every round like a library, so that shares of the limit are ratios within one run; tables do not count it as a peer.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.peers import Inputs, Prepare, Prepared
from benchmarks.workloads import Array, Workload, aligned
from pypto_dsl.runtime import toolchain

SOURCE = Path(__file__).resolve().parents[1] / "limits.cpp"
NON_TEMPORAL_BYTES = 24 << 20  # beyond this, stores around the caches are faster
LINE = 64


@cache
def library() -> ctypes.CDLL:
    """The compiled limits. Raises KernelError PT901 or PT902 without a working C++ compiler."""
    files = {SOURCE.name: SOURCE.read_text(encoding="utf-8")}
    made = ctypes.CDLL(str(toolchain.build_shared_object("limits", files, [SOURCE.name], flags=["-O3", "-march=native"])))
    made.stream_write.argtypes = [ctypes.c_int, ctypes.c_int, *[ctypes.c_void_p] * 4, ctypes.c_size_t]
    made.stream_read.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    made.multiply_adds.argtypes = [ctypes.c_double, ctypes.c_void_p]
    for function in (made.stream_write, made.stream_read, made.multiply_adds):
        function.restype = None
    return made


def load(threads: int) -> Prepare:
    """Limits with ``threads`` threads, each with its part of the arrays."""
    pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def shared(part: Callable[[int], Any]) -> Prepared:
        if pool is None:
            return Prepared(lambda: part(0))
        return Prepared(lambda: list(pool.map(part, range(threads))))

    def prepare(workload: Workload, inputs: Inputs) -> Prepared | None:
        made = library()
        sinks = [aligned((LINE,), workload.output().dtype) for _ in range(threads)]
        places = [s.ctypes.data for s in sinks]
        if workload.flops:
            flops = workload.flops / threads
            return _keeping(shared(lambda i: made.multiply_adds(flops, places[i])), sinks) if workload.dtype == "f32" else None
        arrays = [a for a in inputs.values() if a.shape == workload.shape]
        if len({a.nbytes for a in arrays}) != 1:
            return None
        floats = arrays[0].nbytes // 4 // threads
        step = floats * 4
        starts = [a.ctypes.data for a in arrays]
        around = workload.traffic(inputs) > NON_TEMPORAL_BYTES
        if threads > 1 and not around:
            return None  # handing parts to Python's threads would take longer than the stream
        if workload.operation.reduces:
            return _keeping(shared(lambda i: made.stream_read(starts[0] + i * step, places[i], floats)), [*arrays, *sinks])
        out = workload.output()
        sources = [*starts, *starts[:1] * (3 - len(starts))]
        count, target = len(arrays), out.ctypes.data

        def write(i: int) -> None:
            made.stream_write(count, around, *(s + i * step for s in sources), target + i * step, floats)

        return _keeping(shared(write), [*arrays, out])

    return prepare


def _keeping(prepared: Prepared, alive: list[Array]) -> Prepared:
    """Holds the arrays as long as the calls that have their addresses."""
    return Prepared(prepared.run, lambda _: alive[-1])
