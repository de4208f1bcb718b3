"""Activation functions, each with its expansion into primitives."""
from __future__ import annotations

import math

from pypto_dsl.compiler.ops import reference, shapes, typing
from pypto_dsl.compiler.ops.core import add, div, erf, exp, maximum, mul, neg, tanh
from pypto_dsl.compiler.ops.definition import Tensor, op


@op(types=typing.float_unary, shape=shapes.same, reference=reference.sigmoid, family="elementwise", bound={"f32": 2})
def sigmoid(input: Tensor) -> Tensor:
    """The logistic function, 1 / (1 + exp(-input))."""
    return div(1.0, add(exp(neg(input)), 1.0))


@op(types=typing.float_unary, shape=shapes.same, reference=reference.silu, family="elementwise", bound={"f32": 3})
def silu(input: Tensor) -> Tensor:
    """``input * sigmoid(input)``, computed as input / (1 + exp(-input))."""
    return div(input, add(exp(neg(input)), 1.0))


@op(types=typing.keep, shape=shapes.same, reference=lambda x, **_: reference.maximum(x, x * 0), family="elementwise", bound={"f32": 0})
def relu(input: Tensor) -> Tensor:
    """``maximum(input, 0)``; NaN stays NaN."""
    return maximum(input, 0)


@op(types=typing.float_unary, shape=shapes.same, reference=reference.gelu, family="elementwise", bound={"f32": 4})
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``input * Phi(input)`` with the normal distribution function; ``approximate="tanh"`` is the usual tanh form.

    The expansion of the erf form loses the negative tail to cancellation (1 + erf); targets with an erfc of their own do not.
    """
    if approximate == "tanh":
        inner = mul(add(input, mul(mul(mul(input, input), input), 0.044715)), math.sqrt(2.0 / math.pi))
        return mul(mul(input, 0.5), add(tanh(inner), 1.0))
    return mul(mul(input, 0.5), add(erf(mul(input, math.sqrt(0.5))), 1.0))
