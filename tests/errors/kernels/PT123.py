import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

kept = []


@pypto.jit
def first(x: pypto.Tensor(), out: pypto.Tensor()):
    kept.append(x)
    out[:] = x * 2.0


@pypto.jit
def second(x: pypto.Tensor(), out: pypto.Tensor()):
    out[:] = x + kept[0]


first(x, out)
second(x, out)
