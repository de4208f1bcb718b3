"""The kernels of pypto_dsl once more, with precision="fast"."""
from __future__ import annotations

import pypto_dsl as pypto
from benchmarks.kernels import KERNELS
from benchmarks.peers import Prepare
from benchmarks.peers.pypto_peer import calls

FAST = {name: pypto.jit(precision="fast")(kernel.function) for name, kernel in KERNELS.items()}


def load(threads: int) -> Prepare:
    """Threads follow the cores that the process may use, which the run has set."""
    return calls(FAST)
