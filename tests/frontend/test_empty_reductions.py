"""Reductions without a value of nothing refuse dynamic extents that are 0 when the kernel is called; what is built of them does not."""
from __future__ import annotations

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.errors import KernelError

ROWS = [pypto.DYNAMIC, pypto.DYNAMIC]


@pypto.jit
def largest(x: pypto.Tensor(ROWS, pypto.DT_FP32), out: pypto.Tensor([pypto.DYNAMIC], pypto.DT_FP32)):
    out[:] = pypto.amax(x, -1)


@pypto.jit
def where_largest(x: pypto.Tensor(ROWS, pypto.DT_FP32), out: pypto.Tensor([pypto.DYNAMIC], pypto.DT_INT32)):
    out[:] = pypto.argmax(x, -1)


@pypto.jit
def weights(x: pypto.Tensor(ROWS, pypto.DT_FP32), out: pypto.Tensor(ROWS, pypto.DT_FP32)):
    out[:] = pypto.softmax(x, -1)


@pytest.mark.parametrize(("kernel", "dtype"), [(largest, np.float32), (where_largest, np.int32)])
def test_nothing_has_no_maximum(kernel, dtype):
    """PT306 at the operation, before anything is written; rows of nothing at all are fine."""
    out = np.full(3, 7, dtype)
    with pytest.raises(KernelError) as caught:
        kernel(np.ones((3, 0), np.float32), out)
    assert caught.value.code == "PT306" and "`x.shape[1]` = 0" in str(caught.value) and (out == 7).all()
    kernel(np.ones((0, 4), np.float32), np.zeros(0, dtype))


def test_softmax_of_nothing_is_nothing():
    weights(np.ones((3, 0), np.float32), np.ones((3, 0), np.float32))
