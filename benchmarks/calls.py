"""What a call costs around the work itself: 64x64 additions by position, by keyword, with torch tensors, and what takes the long way.

    python -m benchmarks.calls

Processor time of one thread, the best of many samples; torch's rows where torch is installed.
"""
from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.kernels import add, centred, made, scaled


def best(call: Callable[[], object], sample_seconds: float = 0.004, samples: int = 40) -> float:
    """The least processor time of one call, in microseconds."""
    for _ in range(3):
        call()
    began = time.process_time()
    call()
    repeats = max(1, int(sample_seconds / max(time.process_time() - began, 1e-7)))
    times = []
    for _ in range(samples):
        began = time.process_time()
        for _ in range(repeats):
            call()
        times.append((time.process_time() - began) / repeats)
    return min(times) * 1e6


def calls() -> dict[str, Callable[[], object]]:
    """Every sort of call."""
    x, y, out = np.ones((64, 64), np.float32), np.ones((64, 64), np.float32), np.empty((64, 64), np.float32)
    half, half_out = x.astype(ml_dtypes.bfloat16), x.astype(ml_dtypes.bfloat16)
    number, half_number = np.float32(3.0), ml_dtypes.bfloat16(3.0)
    found: dict[str, Callable[[], object]] = {
        "np.add(x, y, out=out)": lambda: np.add(x, y, out=out),
        "by position": lambda: add(x, y, out),
        "by position, bfloat16 arrays": lambda: add(half, half, half_out),
        "by keyword": lambda: add(a=x, b=y, out=out),
        "a float": lambda: scaled(x, out, 3.0),
        "a default": lambda: scaled(x, out),
        "a float by keyword": lambda: scaled(x, out, factor=3.0),
        "a NumPy float32": lambda: scaled(x, out, number),
        "a bfloat16 number": lambda: scaled(x, out, half_number),
        "a returned array": lambda: made(x, y),
        "a transposed input": lambda: add(x.T, y, out),
        "two kernels and a workspace": lambda: centred(x, out),
    }
    if importlib.util.find_spec("torch") is not None:
        torch: Any = importlib.import_module("torch")
        t = SimpleNamespace(x=torch.from_numpy(x), y=torch.from_numpy(y), out=torch.from_numpy(out))
        wide = t.x.bfloat16()
        wide_out = torch.empty_like(wide)
        found |= {
            "torch.add(x, y, out=out)": lambda: torch.add(t.x, t.y, out=t.out),
            "torch tensors": lambda: add(t.x, t.y, t.out),
            "torch tensors, bfloat16": lambda: add(wide, wide, wide_out),
            "a returned torch tensor": lambda: made(t.x, t.y),
        }
    return found


def main() -> None:
    """Print the table."""
    print("| call | us |\n| --- | ---: |")
    for name, call in calls().items():
        print(f"| {name} | {best(call):.2f} |", flush=True)


if __name__ == "__main__":
    main()
