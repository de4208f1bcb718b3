"""`reshape` of tails: elements keep their places unless `valid_shape` says how the live ones are packed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto

ROWS, COLS = 8, 4


def kernel_of(shape: list[int], columns: int, moved: bool) -> Any:
    @pypto.jit
    def kernel(x: pypto.Tensor([pypto.DYNAMIC, COLS], pypto.DT_FP32), out: pypto.Tensor(shape, pypto.DT_FP32)):
        tail = pypto.view(x, [ROWS, COLS], [0, 0], valid_shape=[x.shape[0], columns])
        if moved:
            out.move(tail + 1.0)
        else:
            out[:] = pypto.reshape(tail + 1.0, shape)

    return kernel


@pytest.mark.parametrize("columns", [COLS, 3, 1])
@pytest.mark.parametrize(("shape", "moved"), [([32], False), ([16, 2], False), ([2, 4, 4], False), ([4, 8], False), ([8, 1, 4], False),
                                              ([1, 32], False), ([32], True), ([2, 4, 4], True)])
def test_elements_keep_their_places(shape: list[int], columns: int, moved: bool) -> None:
    for rows in (1, 4, 7, 8):
        x = np.random.default_rng(0).random((rows, COLS), dtype=np.float32)
        whole = np.zeros((ROWS, COLS), np.float32)
        whole[:rows, :columns] = x[:, :columns] + 1
        kernel, out, want = kernel_of(shape, columns, moved), np.full(shape, -1, np.float32), np.full(shape, -1, np.float32)
        kernel(x, out)
        kernel.run(x, want, target="interpreter")
        assert out.tobytes() == want.tobytes()
        assert (np.where(out == -1, 0, out) == whole.reshape(shape)).all()


def test_live_elements_fill_a_valid_shape() -> None:
    @pypto.jit
    def kernel(x: pypto.Tensor([pypto.DYNAMIC, COLS], pypto.DT_FP32), out: pypto.Tensor([32], pypto.DT_FP32)):
        tail = pypto.view(x, [ROWS, COLS], [0, 0], valid_shape=[x.shape[0], 3])
        out[:] = pypto.reshape(tail, [32], valid_shape=[x.shape[0] * 3])

    x, out = np.arange(20, dtype=np.float32).reshape(5, 4), np.full(32, -1, np.float32)
    kernel(x, out)
    assert (out[:15] == x[:, :3].reshape(-1)).all() and (out[15:] == -1).all()


def test_groups_with_scales_that_lie_between_dead_elements() -> None:
    """Quantized rows of two groups, each followed by four bytes of which two are a scale per group: read by places, seen by groups."""

    @pypto.jit
    def kernel(x: pypto.Tensor([pypto.DYNAMIC, 12], pypto.DT_FP32), out: pypto.Tensor([ROWS, 8], pypto.DT_FP32)):
        n = x.shape[0]
        values = pypto.view(x, [ROWS, 8], [0, 0], valid_shape=[n, 8])
        scales = pypto.view(x, [ROWS, 4], [0, 8], valid_shape=[n, 2])
        twice = pypto.concat([values, values], -1)
        scaled = pypto.reshape(twice, [ROWS * 4, 4]) * pypto.reshape(scales + 0.0, [ROWS * 4, 1])
        out[:] = pypto.view(pypto.reshape(scaled, [ROWS, 16]), [ROWS, 8], [0, 0], valid_shape=[n, 8])

    for rows in (1, 5, 8):
        x = np.random.default_rng(0).random((rows, 12), dtype=np.float32)
        out = np.zeros((ROWS, 8), np.float32)
        kernel(x, out)
        assert (out[:rows] == (x[:, :8].reshape(rows, 2, 4) * x[:, 8:10, None]).reshape(rows, 8)).all()


def test_a_long_chain_of_reshaped_tails_is_captured_and_compiled_at_once() -> None:
    """Rows of an inverse, each from those before it, of four blocks side by side: extents of tails do not grow with the chain."""
    blocks, size = 4, 12

    @pypto.jit
    def kernel(x: pypto.Tensor([pypto.DYNAMIC, size], pypto.DT_FP32), n: int, out: pypto.Tensor([size, blocks * size], pypto.DT_FP32)):
        live = pypto.min(size, n)
        pieces = [pypto.view(x, [size, size], [size * i, 0], valid_shape=[live, live]) + 0.0 for i in range(blocks)]
        wide = pypto.concat(pieces, dim=1)
        rows = wide[:2, :]
        for i in range(2, size):
            row = pypto.view(wide, [1, blocks * size], [i, 0])
            factors = row.reshape([blocks, size]).view([blocks, i], [0, 0]).transpose(1, 0).reshape([blocks * i, 1])
            step = (factors * (rows + 0.0).reshape([blocks * i, size])).reshape([i, blocks * size])
            rows = pypto.concat([rows + 0.0, row + step.sum(0, keepdim=True)], dim=0)
        out[:] = rows

    lower = np.tril(np.random.default_rng(0).random((blocks, size, size)), -1).astype(np.float32) * 0.1
    x, out = lower.reshape(blocks * size, size), np.zeros((size, blocks * size), np.float32)
    start = time.process_time()
    kernel(x, size, out)
    assert time.process_time() - start < 30
    want = np.concatenate([np.linalg.inv(np.eye(size) - a) - np.eye(size) for a in lower], 1)
    np.testing.assert_allclose(out, want, atol=1e-5)
