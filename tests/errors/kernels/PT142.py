import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

text = """
def doubled(x, out):
    for i in pypto.loop(8):
        out[i:i + 1, :] = x[i:i + 1, :] * 2.0
"""
names = {"pypto": pypto}
exec(text, names)
pypto.jit(names["doubled"])(x, out)
