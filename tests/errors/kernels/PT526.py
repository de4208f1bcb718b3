import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

@pypto.jit
def kernel(x: pypto.Tensor([2, 2, 2, 4, 8], pypto.DT_FP32), out: pypto.Tensor([2, 2, 2, 4, 8], pypto.DT_FP32)):
    out[:] = x * 2.0


kernel.source("ascend-a2")
