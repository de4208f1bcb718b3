"""RunMode: both modes compute real numbers on the CPU, and say so once in a process, wherever the mode is set."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import numpy as np
import pypto_dsl as pypto

{before}
for mode in (pypto.RunMode.NPU, pypto.RunMode.SIM):
    @pypto.frontend.jit({options})
    def double(x: pypto.Tensor([4], pypto.DT_FP32), out: pypto.Tensor([4], pypto.DT_FP32)):
        out[:] = x * 2.0

    x = np.arange(4, dtype=np.float32)
    out = np.empty_like(x)
    double(x, out)
    print(out.tolist())
"""


@pytest.mark.parametrize("before, options, notes", [
    ("", 'runtime_options={"run_mode": mode}', 1),
    ("pypto.set_runtime_options(run_mode=pypto.RunMode.SIM)", 'runtime_options={"run_mode": mode}', 1),
    ("", 'runtime_options={"stitch_function_max_num": 128}', 0),
])
def test_both_run_on_the_cpu_with_one_note(tmp_path, before, options, notes):
    path = tmp_path / "modes.py"
    path.write_text(PROGRAM.format(before=before, options=options))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)})
    assert done.returncode == 0 and done.stdout.splitlines() == ["[0.0, 2.0, 4.0, 6.0]"] * 2, done.stderr
    assert done.stderr.count("note: kernels run on the CPU here") == notes
