"""NumPy: one function call per step, into preallocated memory where its interface allows; 16-bit floats by way of float32."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from benchmarks.peers import Inputs, Prepare, Prepared
from benchmarks.workloads import DTYPES, Array, Workload

F = np.float32
TANH_SCALE = F(math.sqrt(2 / math.pi))
Step = Callable[..., Array]


def _fma_relu(out: Array, a: Array, b: Array, c: Array) -> Array:
    np.multiply(a, b, out=out)
    np.add(out, c, out=out)
    np.maximum(out, F(0), out=out)
    return out


def _gelu(out: Array, x: Array) -> Array:
    return np.asarray(F(0.5) * x * (F(1) + np.tanh(TANH_SCALE * (x + F(0.044715) * x * x * x))))


def _softmax(out: Array, x: Array) -> Array:
    np.subtract(x, x.max(-1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(-1, keepdims=True), out=out)
    return out


def _rms_norm(out: Array, x: Array, gamma: Array) -> Array:
    mean = np.einsum("ij,ij->i", x, x)[:, None] / F(x.shape[1])
    np.multiply(x, F(1) / np.sqrt(mean + F(1e-6)), out=out)
    return np.multiply(out, gamma, out=out)


def _layer_norm(out: Array, x: Array, gamma: Array, beta: Array) -> Array:
    np.subtract(x, x.mean(-1, keepdims=True), out=out)
    variance = np.einsum("ij,ij->i", out, out)[:, None] / F(x.shape[1])
    np.multiply(out, F(1) / np.sqrt(variance + F(1e-5)), out=out)
    np.multiply(out, gamma, out=out)
    return np.add(out, beta, out=out)


def _matmul_bias_gelu(out: Array, a: Array, b: Array, bias: Array) -> Array:
    np.matmul(a, b, out=out)
    np.add(out, bias, out=out)
    return _gelu(out, out)


def _attention(out: Array, query: Array, key: Array, value: Array) -> Array:
    scores = query @ key.swapaxes(-1, -2)
    scores *= F(1 / math.sqrt(query.shape[-1]))
    return np.matmul(_softmax(scores, scores), value, out=out)


STEPS: dict[str, Step] = {
    "add": lambda out, a, b: np.add(a, b, out=out),
    "fma_relu": _fma_relu,
    "exp": lambda out, x: np.exp(x, out=out),
    "log": lambda out, x: np.log(x, out=out),
    "tanh": lambda out, x: np.tanh(x, out=out),
    "sin": lambda out, x: np.sin(x, out=out),
    "gelu": _gelu,
    "swiglu": lambda out, a, b: a / (F(1) + np.exp(-a)) * b,
    "pow": lambda out, x, y: np.power(x, y, out=out),
    "pow_2": lambda out, x: np.power(x, F(2), out=out),
    "pow_half": lambda out, x: np.power(x, F(0.5), out=out),
    "pow_2p7": lambda out, x: np.power(x, F(2.7), out=out),
    "ldexp": lambda out, x, n: np.ldexp(x, n, out=out),
    "softmax": _softmax,
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "sum_last": lambda out, x: np.sum(x, -1, out=out),
    "max_last": lambda out, x: np.max(x, -1, out=out),
    "sum_first": lambda out, x: np.sum(x, 0, out=out),
    "max_first": lambda out, x: np.max(x, 0, out=out),
    "matmul": lambda out, a, b: np.matmul(a, b, out=out),
    "matmul_bias_gelu": _matmul_bias_gelu,
    "attention": _attention,
}


def load(threads: int) -> Prepare:
    """NumPy has no threads of its own but OpenBLAS', which the environment holds."""
    return prepare


def prepare(workload: Workload, inputs: Inputs) -> Prepared | None:
    """The steps of the workload's operation; None where NumPy has no function for it."""
    step = STEPS.get(workload.operation.name)
    if step is None or (workload.dtype != "f32" and workload.flops):
        return None
    operands, dtype, out = list(inputs.values()), DTYPES[workload.dtype], workload.output()
    if workload.dtype == "f32":
        return Prepared(lambda: step(out, *operands))
    wide = np.empty(out.shape, F)

    def widened() -> Array:
        result: Array = step(wide, *(a.astype(F) for a in operands)).astype(dtype)
        return result

    return Prepared(widened)
