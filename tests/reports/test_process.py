"""Reports whose rows concern caches and recompiling."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import pypto_dsl as pypto

PROGRAM = """
import numpy as np
import pypto_dsl as pypto

@pypto.jit
def j(x, out):
    out[:] = x * 3.0

@pypto.jit
def k(x, out):
    out[:] = pypto.exp(x) + 1.0

x = np.ones((4, 8), np.float32)
for kernel in ({kernels}):
    kernel(x, np.empty_like(x))
    kernel(x, np.empty_like(x))
    assert len(kernel.specializations()) == 1
"""


def test_b81_factories_and_lambdas() -> None:
    """Numbers of the scope around are part of what a kernel is."""
    def build(n: int) -> Any:
        @pypto.jit
        def fill(x, out):
            out[:] = x + n

        return fill

    kernels = [build(128), build(256), *map(lambda v: pypto.jit(lambda a, out: out.move(a + v)), (1, 2, 3))]
    for kernel, number in zip(kernels, (128, 256, 1, 2, 3), strict=True):
        out = np.zeros(2, np.float32)
        kernel(np.zeros(2, np.float32), out)
        assert out.tolist() == [number] * 2


def test_b83_keys_do_not_depend_on_what_was_built_before(tmp_path: Path) -> None:
    """The entry of k is the same in a process that built j first."""
    entries = []
    for name, kernels in (("alone", "k,"), ("after", "j, k")):
        folder = tmp_path / name
        environment = {**os.environ, "PTC_CACHE_DIR": str(folder / "cache")}
        folder.mkdir()
        script = folder / "program.py"
        script.write_text(PROGRAM.format(kernels=kernels), encoding="utf-8")
        subprocess.run([sys.executable, str(script)], check=True, env=environment)
        entries.append({p.name for p in (folder / "cache").rglob("*") if p.is_file()})
    assert entries[0] < entries[1]
    assert len(entries[1] - entries[0]) == 2, "j has an object and a record of its own; what kernels share is there once"


def test_b87_a_sweep_of_the_batch() -> None:
    """A dynamic axis compiles once, a static one per extent, each with its reason."""
    @pypto.jit
    def dynamic(x: pypto.Tensor([pypto.DYNAMIC, 8], pypto.DT_FP32), out: pypto.Tensor([pypto.DYNAMIC, 8], pypto.DT_FP32)):
        out[:] = x + 1

    @pypto.jit
    def static(x, out):
        out[:] = x + 1

    sweep = (1, 2, 3, 16, 17, 1000)
    for kernel in (dynamic, static):
        for n in sweep:
            x = np.zeros((n, 8), np.float32)
            kernel(x, x)
            assert (x == 1).all()
    assert len(dynamic.specializations()) == 1 and len(static.specializations()) == len(sweep)
    assert [s.reason for s in static.specializations()][1] == "`x` axis 0 (static) was 1 and is 2"
