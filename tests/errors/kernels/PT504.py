import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

from pypto_dsl.compiler.targets.target import from_data

tile = {"flatten": True, "flat": 256, "rows": 1, "cols": 256, "column_rows": 256, "column_cols": 16, "matmul": [16, 32, 256]}
from_data({"name": "mine", "title": "Mine", "family": "llvmm", "tile": tile})
