import numpy as np

import pypto_dsl as pypto


@pypto.jit
def root(x: pypto.Tensor([64, 128], pypto.DT_FP32), out: pypto.Tensor([64, 128], pypto.DT_FP32)):
    out[:] = np.sqrt(x) + 1.0
