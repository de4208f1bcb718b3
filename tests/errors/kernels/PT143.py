import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

@pypto.jit
def kernel(x: pypto.Tensor([pypto.DYNAMIC, 8]), out: pypto.Tensor([1, 8])):
    total = None
    for i in pypto.loop(x.shape[0]):
        row = x[i:i + 1, :]
        total = row if total is None else total + row
    out[:] = total


kernel(x, out[0:1])
