"""Exponentials, logarithms and hyperbolic functions beyond the core's `exp`, `log` and `tanh`."""
from __future__ import annotations

import math

import numpy as np

from pypto_dsl.compiler.ops import floats, shapes, typing
from pypto_dsl.compiler.ops.core import abs, add, cast, div, eq, exp, gt, log, lt, maximum, mul, neg, sqrt, sub, where
from pypto_dsl.compiler.ops.definition import Number, Tensor, op
from pypto_dsl.compiler.ops.elementwise import exp2
from pypto_dsl.compiler.ops.references import functions

LN2 = math.log(2.0)


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.expm1), family="elementwise", bound={"f32": 4},
    derivation="exp and log within one ulp each, a product and a quotient; u - 1 is exact (Kahan)", dtypes=typing.FLOATS)
def expm1(input: Tensor) -> Tensor:
    """``exp(input) - 1`` without cancellation near 0.

    With u = exp(x) rounded, (u - 1) * x / log(u) corrects the rounding of u, since (u - 1) / log(u) varies slowly (Kahan).
    """
    u = exp(input)
    less = sub(u, 1.0)
    logarithm = log(u)
    near = div(mul(less, input), where(eq(logarithm, 0.0), 1.0, logarithm))
    made = where(lt(abs(input), 1.0), near, less)
    return where(eq(u, 1.0), input, made)


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.log1p), family="elementwise", bound={"f32": 3},
    derivation="log within one ulp, a product and a quotient; (1 + x) - 1 is exact (Kahan)", dtypes=typing.FLOATS)
def log1p(input: Tensor) -> Tensor:
    """``log(1 + input)`` without cancellation near 0: log(-1) is -inf, below NaN.

    With u = 1 + x rounded, log(u) * x / (u - 1) corrects the rounding of u (Kahan).
    """
    u = add(input, 1.0)
    less = sub(u, 1.0)
    near = mul(log(u), div(input, where(eq(less, 0.0), 1.0, less)))
    return where(eq(less, 0.0), input, where(eq(u, math.inf), input, near))


def _split(x: Tensor) -> tuple[Tensor, Tensor]:
    """(m, e) with x = m * 2**e and m within [sqrt(1/2), sqrt(2)], both of x's dtype; for positive finite x."""
    significand, exponent = floats.split_exponent(x)
    upper = gt(significand, math.sqrt(2.0))
    return where(upper, mul(significand, 0.5), significand), add(cast(exponent, x.type.dtype), where(upper, 1.0, 0.0))


def _logarithm(x: Tensor, made: Tensor) -> Tensor:
    """``made`` where x is positive and finite; log's special values elsewhere."""
    return where(lt(x, math.inf), where(gt(x, 0.0), made, log(x)), x)


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.log2), family="elementwise", bound={"f32": 2.5},
    derivation="the significand's log within one ulp, its constant's rounding and product, and the exponent's sum", dtypes=typing.FLOATS,
    expands=floats.WIDE)
def log2(input: Tensor, precision_type: str = "INTRINSIC") -> Tensor:
    """The logarithm to base 2; exact at powers of two."""
    significand, exponent = _split(input)
    return _logarithm(input, add(exponent, mul(log(significand), 1.0 / LN2)))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.log10), family="elementwise", bound={"f32": 3},
    derivation="as log2; log10(2) in two parts of which the upper one's product with the exponent is exact", dtypes=typing.FLOATS,
    expands=floats.WIDE)
def log10(input: Tensor, precision_type: str = "INTRINSIC") -> Tensor:
    """The logarithm to base 10."""
    significand, exponent = _split(input)
    upper = 1233.0 / 4096.0  # log10(2) to 11 bits
    small = add(mul(log(significand), 1.0 / math.log(10.0)), mul(exponent, math.log10(2.0) - upper))
    return _logarithm(input, add(mul(exponent, upper), small))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.sinh), family="elementwise", bound={"f32": 6},
    derivation="expm1's, and a quotient, a sum and a product; beyond 1 the square of exp(x/2), whose error doubles", dtypes=typing.FLOATS)
def sinh(input: Tensor) -> Tensor:
    """The hyperbolic sine."""
    size = abs(input)
    t = expm1(size)
    near = mul(add(t, div(t, add(t, 1.0))), 0.5)
    root = exp(mul(size, 0.5))
    far = sub(mul(mul(root, 0.5), root), div(0.5, mul(root, root)))
    return floats.with_sign(where(lt(size, 1.0), near, far), input)


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.cosh), family="elementwise", bound={"f32": 4},
    derivation="the square of exp(x/2), whose error doubles, its reciprocal and a sum", dtypes=typing.FLOATS)
def cosh(input: Tensor) -> Tensor:
    """The hyperbolic cosine."""
    root = exp(mul(abs(input), 0.5))
    half = mul(mul(root, 0.5), root)
    return add(half, div(0.25, half))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.arcsinh), family="elementwise", bound={"f32": 5},
    derivation="log1p's 3, and four roundings of its argument, which it does not enlarge", dtypes=typing.FLOATS)
def asinh(input: Tensor) -> Tensor:
    """The inverse hyperbolic sine: log1p(x + x**2 / (1 + sqrt(1 + x**2))) with the sign of x; of large x log(x) + log(2)."""
    size = abs(input)
    inside = where(lt(size, 1e9), size, 1.0)
    square = mul(inside, inside)
    near = log1p(add(inside, div(square, add(sqrt(add(square, 1.0)), 1.0))))
    far = add(log(maximum(size, 1.0)), LN2)
    return floats.with_sign(where(lt(size, 1e9), near, far), input)


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.arccosh), family="elementwise", bound={"f32": 5},
    derivation="log1p's 3, and four roundings of its argument, which it does not enlarge", dtypes=typing.FLOATS)
def acosh(input: Tensor) -> Tensor:
    """The inverse hyperbolic cosine: log1p(t + sqrt(2 t + t**2)) with t = x - 1; NaN below 1."""
    inside = where(lt(input, 1e9), input, 2.0)
    t = sub(inside, 1.0)
    near = log1p(add(t, sqrt(add(mul(t, 2.0), mul(t, t)))))
    made = where(lt(input, 1e9), near, add(log(input), LN2))
    return where(lt(input, 1.0), math.nan, made)


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.arctanh), family="elementwise", bound={"f32": 5},
    derivation="log1p's 3, and the quotient's argument", dtypes=typing.FLOATS)
def atanh(input: Tensor) -> Tensor:
    """The inverse hyperbolic tangent: log1p(2 x / (1 - x)) / 2 with the sign of x; inf at 1, NaN beyond."""
    size = abs(input)
    made = mul(log1p(div(mul(size, 2.0), sub(1.0, size))), 0.5)
    return floats.with_sign(where(gt(size, 1.0), math.nan, made), input)


@op(types=typing.float_unary, shape=shapes.broadcast, reference=functions.logaddexp, family="elementwise", bound={"f32": 3},
    derivation="log1p(exp(d)) is at most ln 2 and the sum rounds once; counted in ulp of the larger operand",
    scale=lambda a, b, **_: np.maximum(np.maximum(np.abs(a), np.abs(b)), 1.0), dtypes=typing.FLOATS)
def logaddexp(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``log(exp(input) + exp(other))`` without overflow; equal infinities are themselves."""
    larger = maximum(input, other)
    distance = neg(abs(sub(input, other)))
    return where(eq(input, other), add(larger, LN2), add(larger, log1p(exp(distance))))


@op(types=typing.float_unary, shape=shapes.broadcast, reference=functions.logaddexp2, family="elementwise", bound={"f32": 4},
    derivation="as logaddexp, with exp2's bound and the constant 1 / ln 2",
    scale=lambda a, b, **_: np.maximum(np.maximum(np.abs(a), np.abs(b)), 1.0), dtypes=typing.FLOATS, expands=floats.WIDE)
def logaddexp2(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``log2(2**input + 2**other)`` without overflow; equal infinities are themselves."""
    larger = maximum(input, other)
    distance = neg(abs(sub(input, other)))
    return where(eq(input, other), add(larger, 1.0), add(larger, mul(log1p(exp2(distance)), 1.0 / LN2)))


