import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

@pypto.jit
def kernel(x: pypto.Tensor([64, 64], pypto.DT_FP32), out: pypto.Tensor([64, 64], pypto.DT_FP32)):
    out[:] = pypto.cast(pypto.cast(x, pypto.DT_INT8), pypto.DT_FP32)


kernel.source("tt-wormhole")
