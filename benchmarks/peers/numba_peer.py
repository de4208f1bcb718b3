"""numba: plain loops, parallel above 4,096 elements, with fastmath as its users reach for it; float32 only."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import prange

from benchmarks.peers import Inputs, Prepare, Prepared
from benchmarks.workloads import Array, Workload

F = np.float32
ZERO, HALF, ONE, TWO, P2P7 = F(0), F(0.5), F(1), F(2), F(2.7)
SCALE, CUBIC, ROOT_HALF = F(math.sqrt(2 / math.pi)), F(0.044715), F(math.sqrt(0.5))
EPSILON_RMS, EPSILON_LAYER = F(1e-6), F(1e-5)
LOWEST = F(-np.inf)
SERIAL_ELEMENTS = 4096
COLUMNS = 1024

ELEMENTS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "fma_relu": lambda a, b, c: max(a * b + c, ZERO),
    "exp": lambda x: math.exp(x),
    "log": lambda x: math.log(x),
    "tanh": lambda x: math.tanh(x),
    "sin": lambda x: math.sin(x),
    "gelu": lambda x: HALF * x * (ONE + math.tanh(SCALE * (x + CUBIC * x * x * x))),
    "gelu_erf": lambda x: HALF * x * (ONE + math.erf(x * ROOT_HALF)),
    "swiglu": lambda a, b: a / (ONE + math.exp(-a)) * b,
    "pow": lambda x, y: x ** y,
    "pow_2": lambda x: x ** TWO,
    "pow_half": lambda x: x ** HALF,
    "pow_2p7": lambda x: x ** P2P7,
    "ldexp": lambda x, n: math.ldexp(x, n),
}


def _softmax(x: Array, out: Array) -> None:
    for i in prange(x.shape[0]):
        largest = LOWEST
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = ZERO
        for j in range(x.shape[1]):
            weight = math.exp(x[i, j] - largest)
            out[i, j] = weight
            total += weight
        for j in range(x.shape[1]):
            out[i, j] *= ONE / total


def _rms_norm(x: Array, gamma: Array, out: Array) -> None:
    for i in prange(x.shape[0]):
        total = ZERO
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        scale = ONE / math.sqrt(total / F(x.shape[1]) + EPSILON_RMS)
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * scale * gamma[j]


def _layer_norm(x: Array, gamma: Array, beta: Array, out: Array) -> None:
    for i in prange(x.shape[0]):
        total = ZERO
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / F(x.shape[1])
        squares = ZERO
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        scale = ONE / math.sqrt(squares / F(x.shape[1]) + EPSILON_LAYER)
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * scale * gamma[j] + beta[j]


def _sum_last(x: Array, out: Array) -> None:
    for i in prange(x.shape[0]):
        total = ZERO
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total


def _max_last(x: Array, out: Array) -> None:
    for i in prange(x.shape[0]):
        largest = LOWEST
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        out[i] = largest


def _sum_first(x: Array, out: Array) -> None:
    for block in prange((x.shape[1] + COLUMNS - 1) // COLUMNS):
        start, stop = block * COLUMNS, min(block * COLUMNS + COLUMNS, x.shape[1])
        for j in range(start, stop):
            out[j] = x[0, j]
        for i in range(1, x.shape[0]):
            for j in range(start, stop):
                out[j] += x[i, j]


def _max_first(x: Array, out: Array) -> None:
    for block in prange((x.shape[1] + COLUMNS - 1) // COLUMNS):
        start, stop = block * COLUMNS, min(block * COLUMNS + COLUMNS, x.shape[1])
        for j in range(start, stop):
            out[j] = x[0, j]
        for i in range(1, x.shape[0]):
            for j in range(start, stop):
                out[j] = max(out[j], x[i, j])


LOOPS: dict[str, Callable[..., None]] = {
    "softmax": _softmax, "rms_norm": _rms_norm, "layer_norm": _layer_norm, "sum_last": _sum_last, "max_last": _max_last,
    "sum_first": _sum_first, "max_first": _max_first,
}


def load(threads: int) -> Prepare:
    """Holds numba to ``threads`` threads."""
    numba.set_num_threads(threads)
    return prepare


def prepare(workload: Workload, inputs: Inputs) -> Prepared | None:
    """The workload as compiled loops; None for other dtypes and for matrix products."""
    name, operands = workload.operation.name, list(inputs.values())
    if workload.dtype != "f32" or (name not in ELEMENTS and name not in LOOPS):
        return None
    parallel = operands[0].size > SERIAL_ELEMENTS
    out = workload.output()
    if name in LOOPS:
        rows = numba.njit(LOOPS[name], parallel=parallel, fastmath=True, nogil=True)
        return Prepared(lambda: rows(*operands, out), lambda _: out)
    loop = _elementwise(numba.njit(ELEMENTS[name], fastmath=True), len(operands), parallel)
    flat = [a.reshape(-1) for a in (*operands, out)]
    return Prepared(lambda: loop(*flat), lambda _: out)


def _elementwise(function: Any, operands: int, parallel: bool) -> Any:
    def one(a: Array, out: Array) -> None:
        for i in prange(out.size):
            out[i] = function(a[i])

    def two(a: Array, b: Array, out: Array) -> None:
        for i in prange(out.size):
            out[i] = function(a[i], b[i])

    def three(a: Array, b: Array, c: Array, out: Array) -> None:
        for i in prange(out.size):
            out[i] = function(a[i], b[i], c[i])

    loops: dict[int, Callable[..., None]] = {1: one, 2: two, 3: three}
    return numba.njit(loops[operands], parallel=parallel, fastmath=True, nogil=True)
