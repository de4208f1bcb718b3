import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

@pypto.jit
def kernel(x: pypto.Tensor([64, 64], pypto.DT_BF16), y: pypto.Tensor([64, 70000], pypto.DT_BF16)):
    return pypto.matmul(x, y, pypto.DT_FP32)


kernel.source("ascend-a2")
