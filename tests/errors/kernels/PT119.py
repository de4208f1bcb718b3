import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

import pypto_dsl.compiler

kernel = pypto.jit(np.add)
