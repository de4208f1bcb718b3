import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

def halved(v, times):
    return halved(v * 0.5, times - 1)


@pypto.jit
def kernel(x: pypto.Tensor(), out: pypto.Tensor()):
    out[:] = halved(x, 3)


kernel(x, out)
