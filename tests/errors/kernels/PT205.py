import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)


@pypto.jit
def kernel(x: pypto.Tensor(), out: pypto.Tensor()):
    y = pypto.tensor([8, 8], pypto.DT_INT32)
    y[:] = x
    out[:] = pypto.cast(y, pypto.DT_FP32)


kernel(x, out)
