"""Cheaper forms of f32 functions for `precision="fast"`: a few ulp, the same special values; each says what makes up its bound.

They share reductions, tables and rare paths with the exact forms; constants are in ``fast.json`` (``tools/fit_fast_math.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Value
from pypto_dsl.codegen.llvm.math import error, exponential, logarithm, power, root, tables, trigonometric
from pypto_dsl.codegen.llvm.math.tables import (
    ROUNDING,
    at_most,
    by_interval,
    clamp,
    coefficients,
    copysign,
    look_up,
    magnitude,
    nearest,
    scale,
)

FAST = "fast.json"
polynomial = partial(tables.polynomial, file=FAST)
SIXTEENTHS = ROUNDING / 16  # adding it leaves the nearest sixteenth in the low mantissa bits


def exp(b: Builder, x: Value) -> Value:
    """e^x within 3 ulp: 1.6 of the polynomial of degree 5 (2^-23.3), a half each of reduction, evaluation and scaling."""
    part = exponential.reduce(b, clamp(b, x, -104.0, 89.0))
    return scale(b, b.horner(part.r, polynomial("exp")), part.shifted, part.number)


def exp2(b: Builder, x: Value) -> Value:
    """2^x within 3 ulp, exact for integers: 1.6 of the polynomial of degree 5 (2^-23.3), a half each of evaluation and scaling."""
    return exponential.exp2(b, x, polynomial("exp2m1"))


def _logarithm(name: str) -> logarithm.Core:
    """e unit - log c + r P(r) within 3 ulp: 1.2 of the polynomial (2^-22.8), a half each of the table's sum, which
    r may halve, and of the last one; nothing cancels beside x = 1, where -log c is 0."""

    def core(b: Builder, x: Value, adjust: Value | None) -> Value:
        data, taken = coefficients(FAST)[name], logarithm.parts(b, x, adjust)
        _, r = logarithm.remainder(b, taken)
        whole = b.fma(taken.exponent, data["unit"], look_up(b, f"fast_{name}", data["table"], taken.index))
        return b.fma(r, b.horner(r, data["polynomial"]), whole)

    return core


log, log2, log10 = (logarithm.guarded(f"fast_{name}", _logarithm(name)) for name in ("log", "log2", "log10"))


def tanh(b: Builder, x: Value) -> Value:
    """Hyperbolic tangent as (e^2a - 1)/(e^2a + 1) within 4 ulp: one each of e^r - 1 with its polynomial (2^-26), of e^2a - 1, and of the
    divisor, half an ulp of the quotient."""
    a = at_most(b, magnitude(b, x), 10.0)
    twice = a + a
    shifted = b.fma(twice, exponential.LOG2_E, ROUNDING)
    r = b.fma(nearest(b, shifted), -exponential.LN_2, twice)
    power = tables.power_from_shifted(b, shifted)
    grown = b.fma(power, b.fma(r * r, b.horner(r, polynomial("expm1_rest")), r), power - 1.0)
    return copysign(b, grown / (grown + 2.0), x)


def erf(b: Builder, x: Value) -> Value:
    """The error function within 4 ulp by polynomials of degree 6 around the nearest of 8 centres: one of the worst of them (2^-24.2), and
    their evaluation. At the limit the last one is 1."""
    data = coefficients(FAST)["erf"]
    width = data["width"]
    a = at_most(b, magnitude(b, x), data["limit"])
    shifted = b.fma(a, 1 / width, ROUNDING)
    t = b.fma(nearest(b, shifted), -width, a)  # exact
    return copysign(b, by_interval(b, "fast_erf", data["tables"], t, b.bits(shifted)), x)


def _denominator(b: Builder, x: Value) -> Value:
    """1 + e^-x for x >= -16."""
    part = exponential.reduce(b, -at_most(b, x, 80.0))
    return b.fma(tables.power_from_shifted(b, part.shifted), b.horner(part.r, polynomial("exp")), 1.0)


def sigmoid(b: Builder, x: Value) -> Guarded:
    """1/(1 + e^-x) within 4 ulp: `exp`'s 3, which the sum halves at least where x > 0, a sum and a division."""
    return exponential.logistic(b, x, 1.0 / _denominator(b, x), "sigmoid")


def silu(b: Builder, x: Value) -> Guarded:
    """x/(1 + e^-x) within 4 ulp, as `sigmoid`."""
    return exponential.logistic(b, x, x / _denominator(b, x), "silu")


def gelu_erf(b: Builder, x: Value) -> Guarded:
    """x Phi(x) by intervals with polynomials of degree 5, within 4 ulp: 2.6 of the worst of them (2^-22.6), the rest its evaluation."""
    return error.gelu_by_intervals(b, x, "gelu_erf", FAST)


def gelu_tanh(b: Builder, x: Value) -> Guarded:
    """The tanh form of gelu, as `gelu_erf`."""
    return error.gelu_by_intervals(b, x, "gelu_tanh", FAST)


def rsqrt(b: Builder, x: Value) -> Value:
    """1/sqrt(x) within 1.5 ulp: half an ulp of the root, which may be one of its reciprocal, and half an ulp of the division."""
    return 1.0 / root.sqrt(b, x)


def pow(b: Builder, x: Value, y: Value) -> Guarded:
    """x^y within 4 ulp: 2.4 of log2 x in one polynomial (2^-29.2 where y makes 2^7 of it), half an ulp each of the table and of the last
    multiply-add.

    With q = k r, k next to log2 e, log2 x is e - log2 (c / k) + q + q P(q), of which the last sum alone is kept in two parts.
    """
    table = coefficients(FAST)["power"]
    exponent, significand = logarithm.apart(b, x)
    index = b.bits(significand).lshr(19)
    whole = exponent + look_up(b, "fast_power_high", table["hi"], index)  # exact
    q = b.fma(significand, look_up(b, "fast_power_c", table["c"], index), -table["k"])
    rest = b.horner(q, table["rest"])
    high = whole + b.fma(q, rest, q)
    low = b.fma(q, rest, q - (high - whole)) + look_up(b, "fast_power_low", table["lo"], index)
    shifted = b.fma(y, high, SIXTEENTHS)
    n = shifted - SIXTEENTHS
    f = b.fma(y, low, b.fma(y, high, -n))
    return power.finished(b, x, y, power.Exponent(n, 1.0, b.bits(shifted), f * b.horner(f, table["exponential"])))


def _half_turn(b: Builder, x: Value, n: Value) -> Value:
    """sin(x + n pi) of |x| < REACH, for n next to -x/pi. A factor times the angle keeps the sign of zeros, which a sum would lose."""
    r = x
    for part in tables.polynomial("half_pi"):
        r = b.fma(n, 2 * part, r)
    square = r * r
    return r * b.fma(square, b.horner(square, polynomial("sin_rest")), 1.0)


def _signed(b: Builder, value: Value, shifted: Value) -> Value:
    """``value``, negated where the integer in ``shifted`` is odd."""
    return b.from_bits(b.bits(value) ^ (b.bits(shifted) << 31), "float")


def _sin(b: Builder, x: Value) -> Value:
    shifted = b.fma(x, tables.constant("two_over_pi") / 2, ROUNDING)
    return _signed(b, _half_turn(b, x, -nearest(b, shifted)), shifted)


def sin(b: Builder, x: Value) -> Guarded:
    """The sine within 3 ulp: one polynomial on half a turn instead of two on a quarter; an ulp each of the angle and the evaluation."""
    return trigonometric.of_angle(b, x, "sin", _sin)


def _cos(b: Builder, x: Value) -> Value:
    """cos a = -(-1)^n sin(a - (n + 1/2) pi)"""
    a = magnitude(b, x)
    shifted = b.fma(a, tables.constant("two_over_pi") / 2, -0.5) + ROUNDING
    return -_signed(b, _half_turn(b, a, -0.5 - nearest(b, shifted)), shifted)


def cos(b: Builder, x: Value) -> Guarded:
    """The cosine within 3 ulp, as the sine half of half a turn away."""
    return trigonometric.of_angle(b, x, "cos", _cos)


def tan(b: Builder, x: Value) -> Guarded:
    """The tangent within 4 ulp: sine and cosine within 1.5 each, and their quotient."""
    return trigonometric.of_angle(b, x, "tan_single")


def atan(b: Builder, x: Value) -> Value:
    """The arc tangent within 3 ulp: of a <= 1 by one polynomial, of others by that of -1/a and a quarter turn."""
    a = magnitude(b, x)
    large = b.compare("ogt", a, 1.0)
    t = b.select(large, b.constant(x.type, -1.0), a) / b.select(large, a, 1.0)
    square = t * t
    value = b.fma(t * square, b.horner(square, tables.polynomial("atan_rest")), t)
    return copysign(b, value + b.select(large, b.constant(x.type, math.pi / 2), 0.0), x)


def _arc(b: Builder, a: Value) -> tuple[Value, Value]:
    """For 0 <= a: whether it is above 1/2, and the arc sine of a, there of sqrt((1 - a)/2), whose double is missing to pi/2."""
    far = b.compare("ogt", a, 0.5)
    square = b.select(far, b.fma(a, -0.5, 0.5), a * a)
    s = b.select(far, b.intrinsic("llvm.sqrt", square), a)
    return far, b.fma(s * square, b.horner(square, tables.polynomial("asin_rest")), s)


def asin(b: Builder, x: Value) -> Value:
    """The arc sine within 3 ulp; NaN beyond 1."""
    far, value = _arc(b, magnitude(b, x))
    return copysign(b, b.select(far, b.fma(value, -2.0, math.pi / 2), value), x)


def acos(b: Builder, x: Value) -> Value:
    """The arc cosine within 3 ulp; NaN beyond 1."""
    far, value = _arc(b, magnitude(b, x))
    negative = b.compare("olt", x, 0.0)
    near = math.pi / 2 - copysign(b, value, x)
    return b.select(far, b.select(negative, b.fma(value, -2.0, math.pi), value * 2.0), near)


FUNCTIONS: dict[str, Callable[[Builder, Value], Value | Guarded]] = {
    "exp": exp, "exp2": exp2, "log": log, "log2": log2, "log10": log10, "tanh": tanh, "erf": erf, "sigmoid": sigmoid, "silu": silu,
    "rsqrt": rsqrt, "sin": sin, "cos": cos, "tan": tan, "atan": atan, "asin": asin, "acos": acos,
}
