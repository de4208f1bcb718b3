import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

from pypto_dsl.compiler.dtypes import F32, I32, I64
from pypto_dsl.compiler.promotion import rule_set
from pypto_dsl.compiler.promotion.atype import strong

rule_set("tf-all").storage(strong(I64), frozenset({I32, F32}))
