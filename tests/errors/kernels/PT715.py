import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.runtime.interpreter import run

run(read_graph("kernel k(%x: f32[8, 8], %y: f32[8, 8]) { %s = add(%x, %y) return %s }"), {"x": x})
