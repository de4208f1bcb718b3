import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

@pypto.jit
def kernel(x: pypto.Tensor([64, 64], pypto.DT_BF16), out: pypto.Tensor([64, 64], pypto.DT_BF16)):
    if x[0, 0] > 0:
        out[:] = x * 2.0
    else:
        out[:] = x


kernel.source("ascend-a2")
