import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

@pypto.jit
def kernel(x: pypto.Tensor([pypto.DYNAMIC, 8]), out: pypto.Tensor([pypto.DYNAMIC, 8])):
    out[:] = x * x[x.shape[0] - 9, 0]


kernel(x, out)
