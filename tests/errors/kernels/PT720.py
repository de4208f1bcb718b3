import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

@pypto.jit
def kernel(x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC]), out: pypto.Tensor()):
    out[:] = pypto.cumsum(x, 0)[0:8, 0:8]


kernel(np.broadcast_to(np.float32(1), (2**32, 2**20)), out)
