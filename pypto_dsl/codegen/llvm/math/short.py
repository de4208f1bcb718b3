"""Short forms of f32 functions whose operand is a 16-bit float and whose result is rounded to that dtype.

Such a function has few operands. Its short form's polynomials lie so between the results' neighbours that each of the 65,536 operands gives
the same 16-bit number as by the f32 function (`tools/fit_short_math.py`). Whether a function is written so is therefore a matter of time
alone, decided wherever one is written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Value
from pypto_dsl.codegen.llvm.math import error, exponential, logarithm, trigonometric
from pypto_dsl.codegen.llvm.math.intervals import Intervals, gated
from pypto_dsl.codegen.llvm.math.tables import (
    ROUNDING,
    at_most,
    avx512,
    by_interval,
    clamp,
    coefficients,
    copysign,
    magnitude,
    nearest,
    scale,
)
from pypto_dsl.compiler import dtypes
from pypto_dsl.compiler.dtypes import DType

TANH_LIMIT, TANH_SHIFT = 7.25, 20  # beyond the limit tanh rounds to 1; eight intervals in each octave of a + 1/2
SIGNIFICAND_SHIFT = 18  # 32 intervals of a significand in [1, 2)
LOGARITHMS = {"log": 0.6931471805599453, "log2": 1.0, "log10": 0.3010299956639812}  # of 2
PI_HIGH, PI_LOW = 3.1415925025939941, 1.5099579909783765e-07  # the first has 24 bits, both are positive
ONE_OVER_PI = 0.3183098861837907

Short = Callable[[Builder, Value, DType], Value | Guarded]


def form(name: str, dtype: DType) -> Any:
    """The coefficients of a function for a 16-bit dtype."""
    return coefficients("short.json")[name][dtype.name]


def _intervals(name: str, dtype: DType) -> Intervals:
    return Intervals(f"{name}_{dtype.name}", **form(name, dtype))


def tanh(b: Builder, x: Value, dtype: DType) -> Value:
    """tanh x."""
    intervals = _intervals("tanh", dtype)
    a = at_most(b, magnitude(b, x), TANH_LIMIT)
    index = b.bits(a + 0.5).lshr(TANH_SHIFT)
    return copysign(b, by_interval(b, intervals.name, intervals.tables, a, index), x)


def _gated(name: str, everywhere: Callable[[Builder, Value], Value]) -> Short:
    return lambda b, x, dtype: gated(b, x, _intervals(name, dtype), name, everywhere)


def _power(b: Builder, y: Value, name: str, dtype: DType) -> Value:
    """2^y by a polynomial around the nearest integer."""
    if b.level.scales_by_exponent:  # an infinite y has NaN for its fraction, which the instruction scales to inf and 0
        n = b.intrinsic("llvm.rint", y)
        return avx512(b, "scalef", b.horner(y - n, form(name, dtype)), n)
    inside = clamp(b, y, -151.0, 129.0)
    shifted = inside + ROUNDING
    n = nearest(b, shifted)
    return scale(b, b.horner(inside - n, form(name, dtype)), shifted, n)


def exp(b: Builder, x: Value, dtype: DType) -> Value:
    """e^x."""
    return _power(b, x * exponential.LOG2_E, "exp", dtype)


def exp2(b: Builder, x: Value, dtype: DType) -> Value:
    """2^x."""
    return _power(b, x, "exp2", dtype)


def _log(name: str, b: Builder, x: Value, dtype: DType) -> Guarded:
    """The exponent's logarithm, and the significand's by intervals; nothing cancels too much beside x = 1."""
    exponent, significand = logarithm.apart(b, x)
    intervals = _intervals(name, dtype)
    part = by_interval(b, intervals.name, intervals.tables, significand - 1.0, b.bits(significand).lshr(SIGNIFICAND_SHIFT))
    fast = b.fma(exponent, LOGARITHMS[name], part)
    return Guarded(fast, b.bits(x) - 1, logarithm.INFINITE - 1, lambda: logarithm.limits(b, x, fast), name)


def _negated_if_odd(b: Builder, value: Value, shifted: Value) -> Value:
    return b.from_bits(b.bits(value) ^ (b.bits(shifted) << 31), "float")


def _sin(b: Builder, x: Value, dtype: DType) -> Value:
    shifted = b.fma(x, ONE_OVER_PI, ROUNDING)
    n = nearest(b, shifted)
    r = b.fma(n, -PI_LOW, b.fma(n, -PI_HIGH, x))  # the first is exact, a multiple of 2^-22 below 2
    square = r * r
    sine = r * b.fma(square, b.horner(square, form("sin", dtype)), 1.0)  # a product keeps the sign of zeros
    return _negated_if_odd(b, sine, shifted)


def _cos(b: Builder, x: Value, dtype: DType) -> Value:
    """cos a = (-1)^n sin((n + 1/2) pi - a)"""
    a = magnitude(b, x)
    shifted = b.fma(a, ONE_OVER_PI, -0.5) + ROUNDING
    turns = nearest(b, shifted) + 0.5
    r = b.fma(turns, PI_LOW, b.fma(turns, PI_HIGH, -a))
    square = r * r
    return _negated_if_odd(b, b.fma(r * square, b.horner(square, form("cos", dtype)), r), shifted)


def _of_angle(name: str, near: Callable[[Builder, Value, DType], Value]) -> Short:
    """A function of angles; f16 has none beyond the reach of two parts of pi, and NaN is what infinities give."""

    def write(b: Builder, x: Value, dtype: DType) -> Value | Guarded:
        return near(b, x, dtype) if dtype is dtypes.F16 else trigonometric.of_angle(b, x, name, lambda b, x: near(b, x, dtype))

    return write


FUNCTIONS: dict[str, Short] = {
    "tanh": tanh, "exp": exp, "exp2": exp2, **{name: partial(_log, name) for name in LOGARITHMS},
    "sin": _of_angle("sin", _sin), "cos": _of_angle("cos", _cos), "silu": _gated("silu", exponential.LOGISTIC["silu"]),
    **{name: _gated(name, everywhere) for name, everywhere in error.EVERYWHERE.items()},
}
