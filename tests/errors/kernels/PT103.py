import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

@pypto.jit
def kernel(x: pypto.Tensor([8, 8]), scale: pypto.Tensor([]), out: pypto.Tensor([8, 8])):
    out[:] = x * float(scale)


kernel(x, np.array(2.0, np.float32), out)
