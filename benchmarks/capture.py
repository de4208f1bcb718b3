"""What the package costs before anything runs: the import, and reading a kernel cold or for another specialisation.

    python -m benchmarks.capture

Cold is parse, rewrite, compile and record; another specialisation is one more static extent of a kernel that has been read. Processor time.
"""
from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pypto_dsl.driver import Kernel
from pypto_dsl.frontend import rewrite, spans

IMPORT = ("import time; start = time.process_time(); import numpy; between = time.process_time(); import pypto_dsl; pypto_dsl.jit; "
          "print(between - start, time.process_time() - between)")


def kernel(lines: int) -> Any:
    """A kernel of two operations a line, from a file of its own, so that it has source and spans."""
    body = "".join(f"    t = pypto.mul(t, x) + {i}.0\n" for i in range(lines))
    text = ("import pypto_dsl as pypto\n\nROWS = pypto.Tensor([pypto.DYNAMIC, pypto.STATIC])\n\n\n@pypto.jit\ndef k(x: ROWS, out: ROWS):\n"
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
    """The least processor time of several calls, in milliseconds: what else the machine does counts little."""
    times = []
    for _ in range(turns):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times) * 1e3


def imports(turns: int) -> tuple[float, float]:
    """The least processor time of importing NumPy, and then this package with the language loaded, in milliseconds."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as bytecode:
        command = [sys.executable, "-X", f"pycache_prefix={bytecode}", "-c", IMPORT]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True, env=environment) for _ in range(turns + 1)]
    numpy, own = zip(*(map(float, run.stdout.split()) for run in runs[1:]), strict=True)
    return min(numpy) * 1e3, min(own) * 1e3


def main() -> None:
    """Print the import's cost, and both costs of reading for two sizes."""
    numpy, own = imports(10)
    print(f"import numpy {numpy:.0f} ms, import pypto_dsl with `jit` looked up after it {own:.0f} ms more")
    widths = itertools.count(1)
    for lines, turns in ((10, 100), (500, 10)):
        k = kernel(lines)

        def specialise(k: Any = k) -> None:
            width = next(widths)
            k.specialise(np.zeros((2, width), np.float32), np.zeros((2, width), np.float32))

        def cold(k: Any = k) -> None:
            spans.forget_sources()
            rewrite.forget_rewritten()
            specialise(Kernel(k.function, k.options))

        specialise()
        print(f"{2 * lines} operations: cold {best(cold, turns):.2f} ms, another specialisation {best(specialise, turns):.2f} ms")


if __name__ == "__main__":
    main()
