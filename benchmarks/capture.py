"""What reading a kernel costs: cold (parse, rewrite, compile, record) and for another specialisation, for 20 and 1,000 operations.

    python benchmarks/capture.py
"""
from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pypto_dsl.driver import Kernel
from pypto_dsl.frontend import rewrite, spans


def kernel(lines: int) -> Any:
    """A kernel of two operations a line, from a file of its own, so that it has source and spans."""
    body = "".join(f"    t = pypto.mul(t, x) + {i}.0\n" for i in range(lines))
    text = ("import pypto_dsl as pypto\n\nROWS = pypto.Tensor([pypto.DYNAMIC, 128])\n\n\n@pypto.jit\ndef k(x: ROWS, out: ROWS):\n"
            f"    t = x\n{body}    out[:] = t\n")
    path = Path(tempfile.mkdtemp()) / f"kernel_{lines}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.k


def best(call: Callable[[], object], turns: int) -> float:
    """The shortest of several calls, in milliseconds."""
    times = []
    for _ in range(turns):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times) * 1e3


def main() -> None:
    """Print both costs for two sizes."""
    x, out = np.zeros((2, 128), np.float32), np.zeros((2, 128), np.float32)
    for lines, turns in ((10, 30), (500, 5)):
        k = kernel(lines)

        def specialise(k: Any = k) -> None:
            Kernel(k.function, k.options).specialise(x, out)

        def cold(specialise: Callable[[], None] = specialise) -> None:
            spans.forget_sources()
            rewrite.forget_rewritten()
            specialise()

        specialise()
        print(f"{2 * lines} operations: cold {best(cold, turns):.2f} ms, another specialisation {best(specialise, turns):.2f} ms")


if __name__ == "__main__":
    main()
