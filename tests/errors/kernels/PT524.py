import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

from pypto_dsl.runtime.cpu import jit

jit.machine("avx1024")
