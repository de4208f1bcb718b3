import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)


@pypto.jit
def kernel(x: pypto.Tensor(), out: pypto.Tensor()):
    pypto.set_vec_tile_shapes(0, 8)
    out[:] = x * 2.0


kernel(x, out)
