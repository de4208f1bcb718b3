"""Kernels with loops, branches, guards and element reads, their arguments, and what NumPy makes of them."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pypto_dsl as pypto

F32, I32, D, T = pypto.DT_FP32, pypto.DT_INT32, pypto.DYNAMIC, pypto.Tensor
Array = np.ndarray[Any, np.dtype[Any]]


def rows_with_a_tail(x: T([D, 64], F32), out: T([D, 64], F32)):
    n = x.shape[0]
    for i in pypto.loop((n + 31) // 32):
        tile = pypto.view(x, [32, 64], [i * 32, 0], valid_shape=[pypto.min(n - i * 32, 32), 64])
        pypto.assemble(pypto.softmax(tile, -1), [i * 32, 0], out)


def a_branch_in_a_loop(x: T([4, 32, 64], F32), out: T([32, 64], F32)):
    s = pypto.full([32, 64], 0.5, F32)
    for i in pypto.loop(4):
        if i > 1:
            s = s + pypto.exp(x[i])
        else:
            s = s * 2.0 + x[i]
    out[:] = s


def chained_comparisons(x: T([D, 32, 32], F32), out: T([32, 32], F32)):
    out[:] = 0.0
    for i in pypto.loop(x.shape[0]):
        if 1 <= i < 3:
            out[:] = out + x[i]


def a_float_decides(x: T([2, 32, 32], F32), out: T([32, 32], F32)):
    if x[0, 0, 0] > 0.25:
        out[:] = x[0] * 2.0
    else:
        out[:] = x[1]


def counts_from_a_tensor(x: T([4, 64, 32], F32), n: T([4], I32), out: T([4, 32, 32], F32)):
    for b in pypto.loop(4):
        s = pypto.full([32, 32], 0.0, F32)
        for j in pypto.loop(n[b]):
            s = s + x[b, j * 32:j * 32 + 32, :]
        out[b] = s


def a_product_in_a_loop(a: T([3, 32, 64], pypto.DT_BF16), b: T([64, 96], pypto.DT_BF16), out: T([3, 32, 96], F32)):
    pypto.set_cube_tile_shapes([32, 32], [64, 64], [32, 32])
    for i in pypto.loop(3):
        out[i] = pypto.matmul(a[i], b, pypto.DT_FP32)


def part_of_an_output(x: T([64, 32], F32), out: T([96, 32], F32)):
    for i in pypto.loop(1, 3):
        out[i * 32:i * 32 + 32, :] = -x[i * 32 - 32:i * 32, :]


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@dataclass(frozen=True)
class Case:
    function: Callable[..., None]
    arrays: tuple[Array, ...]
    want: Array
    before: float = 7.0  # what the output holds before the call


def cases() -> list[Case]:
    x, y, z, w, v = random(70, 64), random(4, 32, 64), random(5, 32, 32), random(4, 64, 32), random(64, 32)
    n = np.array([2, 0, 1, 2], np.int32)
    branch = y[1] + 2 * (y[0] + 2 * 0.5)
    sums = np.stack([sum((w[b, j * 32:j * 32 + 32] for j in range(n[b])), np.zeros((32, 32), np.float32)) for b in range(4)])
    positive, negative = z[:2].copy(), z[:2].copy()
    positive[0, 0, 0], negative[0, 0, 0] = 1, -1
    a, b = random(3, 32, 64).astype(pypto.DT_BF16.numpy), random(64, 96).astype(pypto.DT_BF16.numpy)
    return [
        Case(rows_with_a_tail, (x,), softmax(x)),
        Case(rows_with_a_tail, (x[:64],), softmax(x[:64])),
        Case(rows_with_a_tail, (x[:1],), softmax(x[:1])),
        Case(a_branch_in_a_loop, (y,), branch + np.exp(y[2]) + np.exp(y[3])),
        Case(chained_comparisons, (z,), z[1] + z[2]),
        Case(a_float_decides, (positive,), positive[0] * 2),
        Case(a_float_decides, (negative,), negative[1]),
        Case(counts_from_a_tensor, (w, n), sums),
        Case(a_product_in_a_loop, (a, b), a.astype(np.float32) @ b.astype(np.float32)),
        Case(part_of_an_output, (v,), np.concatenate([np.full((32, 32), 7, np.float32), -v])),
    ]


CASES = cases()
NAMES = [f"{i}-{c.function.__name__}" for i, c in enumerate(CASES)]
