"""The measured kernels in pypto_dsl, written as a user would write them: default precision, any float dtype, any number of rows."""
from __future__ import annotations

from typing import Any

import pypto_dsl as pypto

MATRIX = pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC])
ROWS = pypto.Tensor([pypto.DYNAMIC, pypto.STATIC])
ROW = pypto.Tensor([pypto.STATIC])
LINE = pypto.Tensor([pypto.DYNAMIC])
SQUARE = pypto.Tensor([pypto.STATIC, pypto.STATIC])


@pypto.jit
def add(a: MATRIX, b: MATRIX, out: MATRIX):
    out[:] = a + b


@pypto.jit
def fma_relu(a: MATRIX, b: MATRIX, c: MATRIX, out: MATRIX):
    out[:] = pypto.relu(a * b + c)


@pypto.jit
def exp(x: MATRIX, out: MATRIX):
    out[:] = pypto.exp(x)


@pypto.jit
def log(x: MATRIX, out: MATRIX):
    out[:] = pypto.log(x)


@pypto.jit
def tanh(x: MATRIX, out: MATRIX):
    out[:] = pypto.tanh(x)


@pypto.jit
def sin(x: MATRIX, out: MATRIX):
    out[:] = pypto.sin(x)


@pypto.jit
def gelu(x: MATRIX, out: MATRIX):
    out[:] = pypto.gelu(x, "tanh")


@pypto.jit
def gelu_erf(x: MATRIX, out: MATRIX):
    out[:] = pypto.gelu(x)


@pypto.jit
def swiglu(a: MATRIX, b: MATRIX, out: MATRIX):
    out[:] = pypto.silu(a) * b


@pypto.jit
def power(x: MATRIX, y: MATRIX, out: MATRIX):
    out[:] = pypto.pow(x, y)


@pypto.jit
def power_2(x: MATRIX, out: MATRIX):
    out[:] = x ** 2.0


@pypto.jit
def power_half(x: MATRIX, out: MATRIX):
    out[:] = x ** 0.5


@pypto.jit
def power_2p7(x: MATRIX, out: MATRIX):
    out[:] = x ** 2.7


@pypto.jit
def ldexp(x: MATRIX, n: MATRIX, out: MATRIX):
    out[:] = pypto.ldexp(x, n)


@pypto.jit
def softmax(x: ROWS, out: ROWS):
    out[:] = pypto.softmax(x, -1)


@pypto.jit
def rms_norm(x: ROWS, gamma: ROW, out: ROWS):
    out[:] = pypto.rms_norm(x, gamma, 1e-6)


@pypto.jit
def layer_norm(x: ROWS, gamma: ROW, beta: ROW, out: ROWS):
    out[:] = pypto.layer_norm(x, gamma, beta, 1e-5)


@pypto.jit
def sum_last(x: MATRIX, out: LINE):
    out[:] = pypto.sum(x, -1)


@pypto.jit
def max_last(x: MATRIX, out: LINE):
    out[:] = pypto.amax(x, -1)


@pypto.jit
def sum_first(x: MATRIX, out: LINE):
    out[:] = pypto.sum(x, 0)


@pypto.jit
def max_first(x: MATRIX, out: LINE):
    out[:] = pypto.amax(x, 0)


@pypto.jit
def matmul(a: SQUARE, b: SQUARE, out: SQUARE):
    out[:] = pypto.matmul(a, b)


@pypto.jit
def matmul_bias_gelu(a: SQUARE, b: SQUARE, bias: ROW, out: SQUARE):
    out[:] = pypto.gelu(pypto.matmul(a, b) + bias, "tanh")


@pypto.jit
def attention(query: pypto.Tensor, key: pypto.Tensor, value: pypto.Tensor, out: pypto.Tensor):
    out[:] = pypto.attention(query, key, value)


KERNELS: dict[str, Any] = {
    "add": add, "fma_relu": fma_relu, "exp": exp, "log": log, "tanh": tanh, "sin": sin, "gelu": gelu, "gelu_erf": gelu_erf,
    "swiglu": swiglu, "pow": power, "pow_2": power_2, "pow_half": power_half, "pow_2p7": power_2p7, "ldexp": ldexp,
    "softmax": softmax, "rms_norm": rms_norm, "layer_norm": layer_norm,
    "sum_last": sum_last, "max_last": max_last, "sum_first": sum_first, "max_first": max_first,
    "matmul": matmul, "matmul_bias_gelu": matmul_bias_gelu, "attention": attention,
}


@pypto.jit
def scaled(x: MATRIX, out: MATRIX, factor=2.0):
    out[:] = x * factor


@pypto.jit
def made(a: MATRIX, b: MATRIX):
    return a + b


@pypto.jit
def centred(x: MATRIX, out: MATRIX):
    out[:] = x - pypto.amax(x, 0, True)


@pypto.jit
def softmax_static(x: pypto.Tensor([64, 256]), out: pypto.Tensor([64, 256])):
    e = pypto.exp(x - pypto.amax(x, -1, True))
    out[:] = e / pypto.sum(e, -1, True)


@pypto.jit
def softmax_symbolic(x: MATRIX, out: MATRIX):
    e = pypto.exp(x - pypto.amax(x, -1, True))
    out[:] = e / pypto.sum(e, -1, True)
