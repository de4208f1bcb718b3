"""A value that one operation reads as it is made and in another order too: transposed, by rows, by elements, as a product's operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto

N = 5
Step = Callable[[Any], Any]
MADE: dict[str, Step] = {
    "elementwise": pypto.exp,
    "product": lambda x: pypto.matmul(x, x, x.dtype),
    "behind a product": lambda x: pypto.matmul(x, x, x.dtype) * 0.5 + x,
    "behind a sum": lambda x: x / (pypto.sum(x, 1, keepdim=True) + 2.0),
    "behind a sum of columns": lambda x: x / (pypto.sum(x, 0, keepdim=True) + 2.0),
}
ORDERS: dict[str, Step] = {
    "transposed": lambda y: y.transpose(0, 1),
    "a column": lambda y: pypto.view(y, [N, 1], [0, 1]),
    "a row": lambda y: pypto.view(y, [1, N], [2, 0]),
    "an element": lambda y: pypto.reshape(pypto.view(y, [1, 1], [1, 2]), []) * 2.0,
    "as lines of another length": lambda y: pypto.reshape(pypto.view(pypto.reshape(y, [N * N]), [N], [3]), [1, N]),
    "rounded and transposed": lambda y: pypto.cast(pypto.cast(y.transpose(0, 1), pypto.DT_FP16), y.dtype),
    "on the left of a product": lambda y: pypto.matmul(y, y * 0.5, y.dtype),
    "transposed in a product": lambda y: pypto.matmul(y, y, y.dtype, a_trans=True),
    "sums of rows along the columns": lambda y: pypto.sum(y, 1) + y,
    "sums of columns": lambda y: pypto.sum(y, 0, keepdim=True) * y.transpose(0, 1),
}


def kernel_of(dtype: Any, make: Step, order: Step, first: bool) -> Any:
    @pypto.jit
    def kernel(x: pypto.Tensor([N, N], dtype), out: pypto.Tensor([N, N], dtype)):
        y = make(x)
        out[:] = (y * 0.25 + order(y)) + y if first else order(y * 0.25) + y * 0.25

    return kernel


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("made", MADE)
def test_both_are_read_right(made: str, order: str) -> None:
    rng = np.random.default_rng(0)
    for dtype, kind in ((pypto.DT_FP32, np.float32), (pypto.DT_FP16, np.float16)):
        for first in (True, False):
            kernel = kernel_of(dtype, MADE[made], ORDERS[order], first)
            x = rng.random((N, N)).astype(kind)
            got, want = np.zeros((N, N), kind), np.zeros((N, N), kind)
            kernel(x, got)
            kernel.run(x, want, target="interpreter")
            np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-5 if kind is np.float32 else 4e-3)
