"""Elementwise operations that expand into primitives."""
from __future__ import annotations

import math

import numpy as np

from pypto_dsl.compiler.dtypes import F32, I32
from pypto_dsl.compiler.ops import reference, shapes, typing
from pypto_dsl.compiler.ops.core import (
    abs, add, bitcast, bitwise_left_shift, cast, div, exp, ge, maximum, minimum, mul, rint, sqrt, sub, where)
from pypto_dsl.compiler.ops.definition import Number, Tensor, op


@op(types=typing.float_unary, shape=shapes.same, reference=np.exp2, family="elementwise", bound={"f32": 2})
def exp2(input: Tensor) -> Tensor:
    """2 raised to ``input``; exact at integers."""
    whole = rint(minimum(maximum(input, -1000.0), 1000.0))
    fraction = exp(mul(sub(input, whole), math.log(2.0)))
    return ldexp(fraction, cast(whole, I32, "CAST_RINT"))


@op(types=typing.keep, shape=shapes.same, reference=reference.wrapping(np.square), family="elementwise", bound={"f32": 0.5})
def square(input: Tensor) -> Tensor:
    """``input * input``."""
    return mul(input, input)


@op(types=typing.float_unary, shape=shapes.same, reference=lambda x, **_: 1.0 / x, family="elementwise", bound={"f32": 0.5})
def reciprocal(input: Tensor, precision_type: str = "HIGH_PRECISION") -> Tensor:
    """``1 / input``, correctly rounded."""
    return div(1.0, input)


@op(types=typing.float_unary, shape=shapes.same, reference=lambda x, **_: 1.0 / np.sqrt(x), family="elementwise", bound={"f32": 1.5})
def rsqrt(input: Tensor, precision_type: str = "INTRINSIC") -> Tensor:
    """``1 / sqrt(input)``."""
    return div(1.0, sqrt(input))


@op(types=typing.ldexp, shape=shapes.broadcast, reference=reference.ldexp, family="elementwise", bound={"f32": 1})
def ldexp(input: Tensor, other: Tensor | Number) -> Tensor:
    """``input * 2**other`` with the dtype of ``input``, under every promotion rule set.

    An integer exponent scales exactly and rounds once, whatever its size; a float exponent is real-valued (2**0.5 is the square
    root of 2) and within 1 ulp in f32. Source of the three-factor form: with n in [-378, 381] split so that only the last factor
    can take the product into the subnormals, the result is rounded once.
    """
    if other.type.dtype.is_integer:
        return _scale(input, cast(other, I32, satmode="ON"))
    bounded = minimum(maximum(other, -1000.0), 1000.0)
    whole = rint(bounded)
    fraction = exp(mul(sub(bounded, whole), math.log(2.0)))
    # the fraction's factor is applied where neither overflow nor rounding into the subnormals can happen
    large = ge(abs(input), 1.0)
    centred = mul(input, where(large, 0.25, 2.0**64))
    return _scale(mul(centred, fraction), add(cast(whole, I32, "CAST_RINT"), where(large, 2, -64)))


def _scale(x: Tensor, n: Tensor) -> Tensor:
    """f32 times 2**n for any i32 n, rounded once."""
    n = minimum(maximum(n, -378), 381)
    last = minimum(maximum(n, -126), 127)
    rest = sub(n, last)
    first = minimum(maximum(rest, -126), 127)
    for part in (first, sub(rest, first), last):
        x = mul(x, bitcast(bitwise_left_shift(add(part, 127), 23), F32))
    return x
