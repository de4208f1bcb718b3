import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

from pypto_dsl.runtime.emulator.manifest import choose

choose([{"kernel": "softmax_0", "requires": ["512 - N"]}], {"N": 1000}, "softmax")
