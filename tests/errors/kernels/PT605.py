import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

from pypto_dsl.compiler.text.reader import read_graph

read_graph("kernel k(%x: f32[M]) { return %x }")
