import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)


@pypto.jit
def kernel(x: pypto.Tensor(), out: pypto.Tensor()):
    total = pypto.full([1, 8], 0.0)
    for i in pypto.loop(8):
        total = pypto.concat([total, x[i:i + 1, :]], dim=0)
    out[0:1, :] = total


kernel(x, out)
