"""A part of a tensor that is written behind the whole of it stays, in whatever order their values are computed."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto

DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.int8)
PARTS = {
    "an element read": lambda x: x[1, 0],
    "a row": lambda x: x[1:2, :] * 3.0,
    "a full row": lambda x: pypto.full([1, 8], 5.0, pypto.DT_FP32),
    "a sum": lambda x: pypto.sum(x, 0, True),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("early", (False, True))
def test_the_later_write_stays(dtype: Any, part: str, early: bool) -> None:
    @pypto.jit(lint="off")
    def kernel(x: pypto.Tensor([6, 8], pypto.DT_FP32), y: pypto.Tensor([6, 8]), out: pypto.Tensor([6, 8], pypto.DT_FP32)):
        before = PARTS[part](x) if early else None
        out.move(pypto.cast(y, pypto.DT_FP32))
        value = before if early else PARTS[part](x)
        if part == "an element read":
            out[0, 1] = value
        else:
            out[2:3, :] = value

    x = np.arange(1, 49, dtype=np.float32).reshape(6, 8)
    y = (-x).astype(dtype)
    got, want = np.zeros((6, 8), np.float32), np.zeros((6, 8), np.float32)
    kernel(x, y, got)
    kernel.run(x, y, want, target="interpreter")
    np.testing.assert_array_equal(got, want)
    assert (got != y.astype(np.float32)).any()
