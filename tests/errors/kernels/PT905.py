import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

from pypto_dsl.runtime.emulator.ttmetal.machine import Launch, launch


@pypto.jit
def kernel(x: pypto.Tensor(), out: pypto.Tensor()):
    out[:] = x * 2.0


launch({}, Launch(rings=[], tensors=[], arguments={}, cores=1, dst_tiles=4, l1_budget=1 << 20))
