"""Trigonometric functions and their inverses, in radians.

The expansions are typed f32. Arguments of any size are reduced exactly (Payne and Hanek 1983): x is an integer of 24 bits times a
power of two, so 2 x / pi modulo 4 needs only a window of the bits of 2 / pi, which 12-bit integer words hold. Coefficients are
weighted minimax fits (`tools/fit_expansions.py`).
"""
from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from pypto_dsl.compiler.dtypes import F32, I32
from pypto_dsl.compiler.ops import floats, shapes, typing
from pypto_dsl.compiler.ops.core import (
    abs,
    add,
    bitwise_and,
    bitwise_left_shift,
    bitwise_right_shift,
    cast,
    div,
    eq,
    gt,
    le,
    lt,
    maximum,
    mul,
    ne,
    neg,
    sqrt,
    sub,
    where,
)
from pypto_dsl.compiler.ops.definition import Number, Tensor, op
from pypto_dsl.compiler.ops.floats import bits, number
from pypto_dsl.compiler.ops.logical import logical_and, logical_xor
from pypto_dsl.compiler.ops.references import functions

WORD = 12
# 2 / pi in words of 12 bits, behind three words of zeros (arguments near 1 begin before its first bit).
TWO_OVER_PI = (
    0x000, 0x000, 0x000, 0xA2F, 0x983, 0x6E4, 0xE44, 0x152, 0x9FC, 0x275, 0x7D1, 0xF53, 0x4DD, 0xC0D, 0xB62, 0x959, 0x93C, 0x439, 0x041)
PRODUCT_WORDS = 7

# sin(r) = r + r**3 P(r**2) within 2**-27 of it, cos(r) = 1 - z/2 + z**2 Q(z) within 2**-30, for |r| <= pi/4 and z = r**2
SINE = (-0.16666655242443085, 0.008332177996635437, -0.000195172950043343)
COSINE = (0.04166664555668831, -0.001388736767694354, 2.443844459776301e-05)
# atan(x) = x + x**3 P(x**2) within 2**-28 of it, for |x| <= tan(pi/8)
ARC_TANGENT = (-0.33333316445350647, 0.1999848335981369, -0.14243736863136292, 0.10595125705003738, -0.06081124022603035)
HALF_PI = (1.5707963705062866, -4.371138828673793e-08)
QUARTER_PI = (0.7853981852531433, -2.1855694143368964e-08)
PI = (3.1415927410125732, -8.742277657347586e-08)


def _window(exponent: Tensor) -> list[Tensor]:
    """Words of 2**exponent * 2 / pi from the bit of weight 2 on, for exponents up to 105."""
    position = maximum(add(exponent, 3 * WORD - 2), 0)
    word = bitwise_right_shift(mul(position, 171), 11)  # position // 12 below 2**11
    by = sub(position, mul(word, WORD))
    table: list[int | Tensor] = [*TWO_OVER_PI, *(0,) * 4]
    for step in (8, 4, 2, 1):
        taken = ne(bitwise_and(word, step), 0)
        table = [where(taken, _word(table[i + step]), _word(table[i])) for i in range(PRODUCT_WORDS + step)]
    rest = sub(WORD, by)
    return [bitwise_and(add(bitwise_left_shift(_word(a), by), bitwise_right_shift(_word(b), rest)), (1 << WORD) - 1)
            for a, b in pairwise(table)][:PRODUCT_WORDS]


def _word(x: int | Tensor) -> Tensor:
    return number(x, I32) if isinstance(x, int) else x


def _reduced(x: Tensor) -> tuple[Tensor, Tensor]:
    """(r, q) with |x| = q pi/2 + r modulo 2 pi and |r| <= pi/4; r within one ulp."""
    size = abs(x)
    field = bits(size)
    significand = add(bitwise_and(field, (1 << 23) - 1), 1 << 23)
    window = _window(sub(bitwise_right_shift(field, 23), 150))
    upper, lower = bitwise_right_shift(significand, WORD), bitwise_and(significand, (1 << WORD) - 1)
    words: list[Tensor] = []
    carry: Tensor | None = None
    for k in reversed(range(PRODUCT_WORDS)):
        column = mul(lower, window[k])
        if k + 1 < PRODUCT_WORDS:
            column = add(column, mul(upper, window[k + 1]))
        column = column if carry is None else add(column, carry)
        words.insert(0, bitwise_and(column, (1 << WORD) - 1))
        carry = bitwise_right_shift(column, WORD)
    quadrant = bitwise_right_shift(add(words[0], 512), 10)
    first = sub(words[0], bitwise_left_shift(quadrant, 10))
    below = lt(first, 0)
    # the fraction's magnitude in pieces of 12 bits, so that its first bits may be zeros
    pieces = [where(below, sub(-1, first), first), *(where(below, sub((1 << WORD) - 1, w), w) for w in words[1:6])]
    parts = [mul(cast(p, F32), 2.0 ** (-10 - WORD * k)) for k, p in enumerate(pieces)]
    high = parts[-1]
    for part in reversed(parts[:-1]):
        high = add(high, part)
    low = sub(parts[0], high)
    for part in parts[1:]:
        low = add(low, part)
    turned = add(mul(high, HALF_PI[0]), add(mul(high, HALF_PI[1]), mul(low, HALF_PI[0])))
    small = le(size, math.pi / 4)
    return where(small, size, where(below, neg(turned), turned)), where(small, 0, quadrant)


def _sine(r: Tensor) -> Tensor:
    z = mul(r, r)
    return add(r, mul(mul(r, z), floats.polynomial(z, SINE)))


def _cosine(r: Tensor) -> Tensor:
    z = mul(r, r)
    half = mul(z, 0.5)
    first = sub(1.0, half)
    return add(first, add(sub(sub(1.0, first), half), mul(mul(z, z), floats.polynomial(z, COSINE))))


def _finite(x: Tensor, made: Tensor) -> Tensor:
    """``made``, and NaN for inf and NaN."""
    return where(lt(abs(x), math.inf), made, sub(x, x))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.sin), family="elementwise", bound={"f32": 3},
    derivation="the reduced argument within one ulp, the fit, and the polynomial's last two roundings", dtypes=typing.FLOATS,
    expands=floats.SINGLE)
def sin(input: Tensor) -> Tensor:
    """The sine of an angle of any size; of inf NaN."""
    r, quadrant = _reduced(input)
    made = where(ne(bitwise_and(quadrant, 1), 0), _cosine(r), _sine(r))
    flipped = logical_xor(floats.is_negative(input), ne(bitwise_and(quadrant, 2), 0))
    return _finite(input, where(flipped, neg(made), made))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.cos), family="elementwise", bound={"f32": 3},
    derivation="as sin", dtypes=typing.FLOATS, expands=floats.SINGLE)
def cos(input: Tensor) -> Tensor:
    """The cosine of an angle of any size; of inf NaN."""
    r, quadrant = _reduced(input)
    made = where(ne(bitwise_and(quadrant, 1), 0), _sine(r), _cosine(r))
    flipped = ne(bitwise_and(add(quadrant, 1), 2), 0)
    return _finite(input, where(flipped, neg(made), made))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.tan), family="elementwise", bound={"f32": 5},
    derivation="sine's and cosine's error on one reduced argument, and a quotient", dtypes=typing.FLOATS, expands=floats.SINGLE)
def tan(input: Tensor) -> Tensor:
    """The tangent of an angle of any size; of inf NaN."""
    r, quadrant = _reduced(input)
    sine, cosine = _sine(r), _cosine(r)
    odd = ne(bitwise_and(quadrant, 1), 0)
    made = div(where(odd, neg(cosine), sine), where(odd, sine, cosine))
    return _finite(input, where(floats.is_negative(input), neg(made), made))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.arctan), family="elementwise", bound={"f32": 3},
    derivation="the reduced quotient's 1.5, the fit, and the polynomial's last two roundings", dtypes=typing.FLOATS, expands=floats.SINGLE)
def atan(input: Tensor) -> Tensor:
    """The angle whose tangent is ``input``, in [-pi/2, pi/2]."""
    size = abs(input)
    far, middle = gt(size, math.tan(3 * math.pi / 8)), gt(size, math.tan(math.pi / 8))
    t = where(far, div(-1.0, size), where(middle, div(sub(size, 1.0), add(size, 1.0)), size))
    z = mul(t, t)
    near = mul(mul(t, z), floats.polynomial(z, ARC_TANGENT))
    upper = where(far, HALF_PI[0], where(middle, QUARTER_PI[0], 0.0))
    lower = where(far, HALF_PI[1], where(middle, QUARTER_PI[1], 0.0))
    return floats.with_sign(add(upper, add(t, add(near, lower))), input)


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.arcsin), family="elementwise", bound={"f32": 5},
    derivation="atan's 3, and its argument's two factors, root and quotient", dtypes=typing.FLOATS, expands=floats.SINGLE)
def asin(input: Tensor) -> Tensor:
    """The angle whose sine is ``input``; NaN outside [-1, 1]."""
    return atan(div(input, sqrt(mul(sub(1.0, input), add(input, 1.0)))))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.arccos), family="elementwise", bound={"f32": 5},
    derivation="as asin", dtypes=typing.FLOATS, expands=floats.SINGLE)
def acos(input: Tensor) -> Tensor:
    """The angle whose cosine is ``input``, in [0, pi]; NaN outside [-1, 1]."""
    return mul(atan(sqrt(div(sub(1.0, input), add(input, 1.0)))), 2.0)


@op(types=typing.float_unary, shape=shapes.broadcast, reference=functions.quiet(np.arctan2), family="elementwise", bound={"f32": 4},
    derivation="atan's 3 and its argument's quotient; the difference from pi rounds once", dtypes=typing.FLOATS, expands=floats.SINGLE)
def atan2(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The angle of the point (other, input), in [-pi, pi], with IEEE 754's signed zeros and infinities."""
    y, x = abs(input), abs(other)
    quotient = div(y, x)
    both_zero = logical_and(eq(y, 0.0), eq(x, 0.0))
    both_infinite = logical_and(eq(y, math.inf), eq(x, math.inf))
    alike = where(both_zero, 0.0, where(both_infinite, 1.0, quotient))
    missing = where(ne(y, y), y, where(ne(x, x), x, alike))
    angle = atan(missing)
    turned = where(floats.is_negative(other), sub(PI[0], sub(angle, PI[1])), angle)
    return floats.with_sign(turned, input)
