"""Files that the tests of `ptc` work on."""
from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

DOUBLE = '''\
import numpy as np
import pypto_dsl as pypto


@pypto.jit
def double(x: pypto.Tensor([4, 8], pypto.DT_FP32), out: pypto.Tensor([4, 8], pypto.DT_FP32)):
    out[:] = x * 2.0
'''
