import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.compiler.verify import require_valid

require_valid(read_graph("kernel k(%x: f32[8]) { %e = exp(%x): f32[9] return %e }", places=True))
