"""Calls that read or write arrays that are not dense: transposed, broadcast and with steps, beside NumPy and torch on the same arrays.

    python -m benchmarks.layouts [SIDE ...]

Processor time of one thread, the best of many samples, the libraries taking turns. torch's columns where torch is installed.
"""
from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks import kernels

Array = np.ndarray[Any, np.dtype[Any]]
LAYOUTS: dict[str, Callable[[int, Any], Array]] = {
    "dense": lambda n, dtype: ones(n, n, dtype),
    "transposed": lambda n, dtype: ones(n, n, dtype).T,
    "inside": lambda n, dtype: ones(n, 2 * n, dtype)[:, 3:n + 3],
    "every other": lambda n, dtype: ones(n, 2 * n, dtype)[:, ::2],
    "one row": lambda n, dtype: np.broadcast_to(ones(1, n, dtype), (n, n)),
    "one column": lambda n, dtype: np.broadcast_to(ones(n, 1, dtype), (n, n)),
}

WRITTEN = ("transposed", "inside", "every other")


def ones(rows: int, cols: int, dtype: Any) -> Array:
    """Numbers around 1."""
    return (1 + np.random.default_rng(0).random((rows, cols), np.float32) / 8).astype(dtype)


def softmax(x: Array, out: Array) -> None:
    """As NumPy users write it."""
    np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(axis=1, keepdims=True), out=out)


def work(x: Array) -> dict[str, dict[str, Callable[[], object]]]:
    """What is measured on an array: operation -> library -> call."""
    y, out = np.ascontiguousarray(x), np.empty(x.shape, x.dtype)
    cols, rows = np.empty(x.shape[1], x.dtype), np.empty(x.shape[0], x.dtype)
    found: dict[str, dict[str, Callable[[], object]]] = {
        "add": {"pypto": lambda: kernels.add(x, y, out), "numpy": lambda: np.add(x, y, out=out)},
        "exp": {"pypto": lambda: kernels.exp(x, out), "numpy": lambda: np.exp(x, out=out)},
        "softmax": {"pypto": lambda: kernels.softmax(x, out), "numpy": lambda: softmax(x, out)},
        "sum over axis 0": {"pypto": lambda: kernels.sum_first(x, cols), "numpy": lambda: np.sum(x, 0, out=cols)},
        "sum over axis 1": {"pypto": lambda: kernels.sum_last(x, rows), "numpy": lambda: np.sum(x, 1, out=rows)},
    }
    torch = installed_torch()
    if torch is not None:
        a, b, made, first, last = (tensor(torch, v) for v in (x, y, out, cols, rows))
        found["add"]["torch"] = lambda: torch.add(a, b, out=made)
        found["exp"]["torch"] = lambda: torch.exp(a, out=made)
        found["softmax"]["torch"] = lambda: torch.softmax(a, 1, out=made)
        found["sum over axis 0"]["torch"] = lambda: torch.sum(a, 0, out=first)
        found["sum over axis 1"]["torch"] = lambda: torch.sum(a, 1, out=last)
    return found


def writing(out: Array) -> dict[str, dict[str, Callable[[], object]]]:
    """What is measured on dense operands and an output, as `work` gives it."""
    x = ones(out.shape[0], out.shape[1], out.dtype)
    found: dict[str, dict[str, Callable[[], object]]] = {
        "add": {"pypto": lambda: kernels.add(x, x, out), "numpy": lambda: np.add(x, x, out=out)},
        "exp": {"pypto": lambda: kernels.exp(x, out), "numpy": lambda: np.exp(x, out=out)},
        "softmax": {"pypto": lambda: kernels.softmax(x, out), "numpy": lambda: softmax(x, out)},
    }
    torch = installed_torch()
    if torch is not None:
        a, made = tensor(torch, x), tensor(torch, out)
        found["add"]["torch"] = lambda: torch.add(a, a, out=made)
        found["exp"]["torch"] = lambda: torch.exp(a, out=made)
        found["softmax"]["torch"] = lambda: torch.softmax(a, 1, out=made)
    return found


def installed_torch() -> Any:
    """torch on one thread, or None."""
    if importlib.util.find_spec("torch") is None:
        return None
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    return torch


def tensor(torch: Any, x: Array) -> Any:
    """The array's memory as a tensor of torch."""
    if x.T.flags.c_contiguous and not x.flags.c_contiguous:
        return tensor(torch, x.T).T
    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def best(calls: dict[str, Callable[[], object]], samples: int = 15, sample_seconds: float = 0.004) -> dict[str, float]:
    """The least processor time of each call, in microseconds; they take turns."""
    repeats, least = {}, dict.fromkeys(calls, float("inf"))
    for name, call in calls.items():
        call()
        began = time.process_time()
        call()
        repeats[name] = max(1, int(sample_seconds / max(time.process_time() - began, 1e-7)))
    for _ in range(samples):
        for name, call in calls.items():
            began = time.process_time()
            for _ in range(repeats[name]):
                call()
            least[name] = min(least[name], (time.process_time() - began) / repeats[name])
    return {name: seconds * 1e6 for name, seconds in least.items()}


def rows(sides: list[int]) -> Iterator[str]:
    """The table's lines."""
    for side in sides:
        for dtype in (np.float32, ml_dtypes.bfloat16):
            times: dict[tuple[str, str], dict[str, float]] = {}
            every = [*((layout, work, make) for layout, make in LAYOUTS.items()), *((f"into {n}", writing, LAYOUTS[n]) for n in WRITTEN)]
            for layout, operations, make in every:
                for operation, calls in operations(make(side, dtype)).items():
                    # minutes: NumPy's bfloat16 is element by element
                    kept = {n: c for n, c in calls.items() if n != "numpy" or dtype is np.float32 or side <= 1024}
                    times[operation, layout] = best(kept, 15 if side <= 1024 else 5)
            for (operation, layout), found in times.items():
                if layout == "dense":
                    continue
                ours, dense = found["pypto"], times[operation, "dense"]["pypto"]
                peers = " | ".join(f"{found[n] / ours:.2f}x" if n in found else "" for n in ("numpy", "torch"))
                yield f"| {operation} | {layout} | {np.dtype(dtype).name} | {side} | {ours:.1f} | {ours / dense:.2f} | {peers} |"


def main() -> None:
    """Print the table."""
    warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)  # nobody writes to it
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before the pool counts processors: one thread
    print("| operation | array | dtype | side | us | of dense | numpy / us | torch / us |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for line in rows([int(a) for a in sys.argv[1:]] or [64, 1024, 4096]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
