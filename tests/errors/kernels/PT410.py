import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

@pypto.jit
def kernel(x: pypto.Tensor([64, 65536], pypto.DT_FP32), out: pypto.Tensor([64, 65536], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(1, 65536)
    out[:] = x * 2.0


kernel.source("ascend-a2")
