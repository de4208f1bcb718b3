import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)


@pypto.jit
def kernel(x: pypto.Tensor(), out: pypto.Tensor()):
    for i in pypto.loop(8):
        if pypto.is_loop_begin(3):
            out[:] = x


kernel(x, out)
