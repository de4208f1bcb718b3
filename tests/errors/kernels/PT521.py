import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

import dataclasses

from pypto_dsl.compiler import pipeline, targets


@pypto.jit
def kernel(x: pypto.Tensor(), out: pypto.Tensor()):
    out[:] = x * 2.0


tall = np.ones((64, 64), np.float32)
wormhole = targets.load("tt-wormhole")
mine = dataclasses.replace(wormhole, tile=dataclasses.replace(wormhole.tile, rows=8, plane=(8, 64), align=(8, 32)))
pipeline.lower(kernel.graph(tall, tall), mine)
