import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

@pypto.jit
def kernel(pair, out: pypto.Tensor()):
    out[:] = pair[0] * 2.0


kernel([x, x], out)
