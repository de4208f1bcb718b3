import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

import os

from pypto_dsl.runtime.toolchain import find_compiler

os.environ["PTC_CXX"] = "no-such-compiler"
find_compiler()
