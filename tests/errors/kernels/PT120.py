import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)


@pypto.jit
def kernel(x: pypto.Tensor(), out: pypto.Tensor()):
    rows = []
    for i in pypto.loop(8):
        rows.append(x[i:i + 1, :] * 2.0)
    out[:] = rows[0]


kernel(x, out)
