import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

import os
import sys

from pypto_dsl.runtime.toolchain import build_shared_object

answer = "print('strict C++ 1.0'); sys.exit(None if '--version' in sys.argv else 'kernel.cpp:1:1: error')"
os.environ["PTC_CXX"] = f'{sys.executable} -c "import sys; {answer}"'
build_shared_object("kernel", {"kernel.cpp": "int x;"}, ["kernel.cpp"])
