"""f32 functions computed in f64 and rounded once: within 0.51 ulp, by formulas that neither cancel nor leave the range of f64.

Inverse, hyperbolic and error functions and their relatives. The numbers of f32 and their squares are far inside f64's range, so nothing
overflows on the way, and the last conversion rounds gradually into the subnormals. Polynomials are within 2^-40 (`tools/fit_wide_math.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from pypto_dsl.codegen.llvm.builder import Builder, Value
from pypto_dsl.codegen.llvm.math import tables
from pypto_dsl.codegen.llvm.math.tables import INFINITY, NAN, at_least, at_most, copysign, magnitude

ROUNDING = 6755399441055744.0  # 1.5 * 2^52: adding it leaves an f64's nearest integer in the low bits of the significand
LN2 = math.log(2)
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
TAN_EIGHTH, TAN_THREE_EIGHTHS = math.sqrt(2) - 1, math.sqrt(2) + 1  # tan(pi/8) and tan(3 pi/8)
LARGE = 2.0**600  # stands for infinity where quotients of infinities have a limit


WIDE = "wide.json"  # what functions in f64 are made of; ``tools/fit_wide_math.py`` derives and writes it
polynomial = partial(tables.polynomial, file=WIDE)
constant = partial(tables.constant, file=WIDE)


def in_double(function: Callable[..., Value]) -> Callable[..., Value]:
    """``function`` of f64 vectors as one of f32 vectors."""

    def of_single(b: Builder, *arguments: Value, **attributes: float) -> Value:
        return b.convert("fptrunc", function(b, *(b.convert("fpext", a, "double") for a in arguments), **attributes), "float")

    return of_single


# ---- exponentials --------------------------------------------------------------------------------------------------------


def _reduced(b: Builder, x: Value) -> tuple[Value, Value]:
    """x = n ln 2 + r with |r| <= ln2/2: n + ROUNDING, and r. For |x| <= 800."""
    high, low = polynomial("ln2")
    shifted = b.fma(x, 1 / LN2, ROUNDING)
    n = shifted - ROUNDING
    return shifted, b.fma(n, -low, b.fma(n, -high, x))


def _exp(b: Builder, x: Value, fit: str = "exp") -> Value:
    """e^x for |x| <= 700."""
    shifted, r = _reduced(b, x)
    return b.from_bits(b.bits(b.horner(r, polynomial(fit))) + (b.bits(shifted) << 52), "double")


def _hyperbolic(b: Builder, x: Value) -> tuple[Value, Value, Value, Value]:
    """cosh r, sinh r, 2^n / 2 and 2^-n / 2 for x = n ln 2 + r, so that e^x = 2^n (cosh r + sinh r) and nothing cancels."""
    shifted, r = _reduced(b, at_most(b, at_least(b, x, -200.0), 200.0))
    z = r * r
    power = b.bits(shifted) << 52
    half = b.bits(b.constant(x.type, 0.5))
    up, down = b.from_bits(half + power, "double"), b.from_bits(half - power, "double")
    return b.horner(z, polynomial("cosh")), r * b.horner(z, polynomial("sinh")), up, down


def _sinh(b: Builder, x: Value) -> Value:
    cosh, sinh, up, down = _hyperbolic(b, x)
    return copysign(b, b.fma(cosh, up - down, sinh * (up + down)), x)  # the sum of zeros is +0


def _cosh(b: Builder, x: Value) -> Value:
    cosh, sinh, up, down = _hyperbolic(b, x)
    return b.fma(sinh, up - down, cosh * (up + down))


# ---- logarithms ------------------------------------------------------------------------------------------------------------


def _log(b: Builder, y: Value) -> Value:
    """log y of a positive normal number; of the others any number."""
    bits = b.bits(y)
    biased = (bits - (SQRT_HALF_BITS - (1023 << 52))).lshr(52)
    significand = b.from_bits(bits - ((biased - 1023) << 52), "double")
    exponent = b.from_bits(biased | b.bits(b.constant(y.type, 2.0**52)), "double") - (2.0**52 + 1023)
    s = (significand - 1.0) / (significand + 1.0)
    return b.fma(exponent, LN2, (s * 2.0) * b.horner(s * s, polynomial("log")))


def _log1p_of_exp(b: Builder, x: Value, length: str = "") -> Value:
    """log(1 + e^x) for x <= 0; with the polynomials of ``length`` "_long" within 2^-51."""
    e = _exp(b, at_least(b, x, -700.0), f"exp{length}")
    s = e / (e + 2.0)
    return (s * 2.0) * b.horner(s * s, polynomial(f"log1p{length}"))


def _asinh(b: Builder, x: Value) -> Value:
    """log(x + sqrt(x^2 + 1)); near 0 the series, where the logarithm's argument would lose x."""
    a = magnitude(b, x)
    z = a * a
    far = _log(b, a + b.intrinsic("llvm.sqrt", z + 1.0))
    near = b.fma(a * z, b.horner(z, (-1 / 6, 3 / 40)), a)
    value = b.select(b.compare("olt", a, 2.0**-8), near, far)
    return copysign(b, b.select(b.compare("olt", a, INFINITY), value, a), x)


def _acosh(b: Builder, x: Value) -> Value:
    """log(x + sqrt((x - 1)(x + 1))), of which x - 1 is exact."""
    value = _log(b, x + b.intrinsic("llvm.sqrt", (x - 1.0) * (x + 1.0)))
    value = b.select(b.compare("oge", x, 1.0), value, b.constant(x.type, NAN))
    return b.select(b.compare("oeq", x, INFINITY), x, value)


def _atanh(b: Builder, x: Value) -> Value:
    """log((1 + x)/(1 - x)) / 2; near 0 the series."""
    a = magnitude(b, x)
    z = a * a
    far = _log(b, (a + 1.0) / (1.0 - a)) * 0.5
    near = b.fma(a * z, b.horner(z, (1 / 3, 1 / 5)), a)
    value = b.select(b.compare("olt", a, 2.0**-8), near, far)
    value = b.select(b.compare("oeq", a, 1.0), b.constant(x.type, INFINITY), value)
    return copysign(b, b.select(b.compare("ole", a, 1.0), value, b.constant(x.type, NAN)), x)


def _softplus(b: Builder, x: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """(max(s, 0) + log(1 + e^-|s|)) / beta with s = beta x; x above the threshold."""
    scaled = x if beta == 1.0 else x * beta
    value = at_least(b, scaled, 0.0) + _log1p_of_exp(b, -magnitude(b, scaled))
    return b.select(b.compare("ogt", scaled, threshold), x, value if beta == 1.0 else value / beta)


def _log_sigmoid(b: Builder, x: Value) -> Value:
    """-log(1 + e^-x)"""
    return -(at_least(b, -x, 0.0) + _log1p_of_exp(b, -magnitude(b, x)))


def _logaddexp(b: Builder, x: Value, y: Value) -> Value:
    """max + log(1 + e^-|x - y|): where the sum is close to 0 its error is 2^-50, which is little beside an ulp from 2^-24 on."""
    larger = b.select(b.compare("ogt", x, y), x, y)
    value = larger + _log1p_of_exp(b, -magnitude(b, x - y), "_long")
    return b.select(b.compare("oeq", x, y), x + LN2, value)


def _tanhshrink(b: Builder, x: Value) -> Value:
    """x - tanh x: x^3 times a polynomial near 0, where the difference cancels."""
    a = magnitude(b, x)
    z = a * a
    e = _exp(b, at_least(b, a * -2.0, -700.0))
    far = a - (1.0 - e) / (e + 1.0)
    near = (a * z) * b.horner(z, polynomial("tanhshrink"))
    return copysign(b, b.select(b.compare("olt", a, 0.3), near, far), x)


# ---- tangents and angles ----------------------------------------------------------------------------------------------------------------


def turned(b: Builder, x: Value) -> tuple[Value, Value]:
    """The integer n next to x 2/pi, as bits of which the lower are right, and x - n pi/2; for |x| < 2^20."""
    shifted = b.fma(x, 2 / math.pi, ROUNDING)
    n = -(shifted - ROUNDING)
    high, low = polynomial("half_pi")
    return b.bits(shifted), b.fma(n, low, b.fma(n, high, x))


def tangent(b: Builder, odd: Value, r: Value) -> Value:
    """tan r, or where ``odd`` tan(r + pi/2), for |r| <= pi/4."""
    z = r * r
    sine, cosine = r * b.horner(z, polynomial("sin")), b.horner(z, polynomial("cos"))
    return b.select(odd, -cosine, sine) / b.select(odd, sine, cosine)


def _angle(b: Builder, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), neither negative, from 0 to pi/2: that of one quotient within tan(pi/8), and where it starts."""
    far, middle = b.compare("ogt", y, x * TAN_THREE_EIGHTHS), b.compare("ogt", y, x * TAN_EIGHTH)
    upper = b.select(far, -x, b.select(middle, y - x, y))
    lower = b.select(far, y, b.select(middle, y + x, x))
    t = upper / lower
    first = b.select(far, b.constant(x.type, math.pi / 2), b.select(middle, b.constant(x.type, math.pi / 4), 0.0))
    return b.fma(t, b.horner(t * t, polynomial("atan")), first)


def _atan(b: Builder, x: Value) -> Value:
    return copysign(b, _angle(b, magnitude(b, x), b.constant(x.type, 1.0)), x)


def _opposite(b: Builder, a: Value) -> Value:
    """sqrt(1 - a^2), NaN above 1."""
    return b.intrinsic("llvm.sqrt", (1.0 - a) * (a + 1.0))


def _asin(b: Builder, x: Value) -> Value:
    a = magnitude(b, x)
    return copysign(b, _angle(b, a, _opposite(b, a)), x)


def _acos(b: Builder, x: Value) -> Value:
    a = magnitude(b, x)
    angle = _angle(b, _opposite(b, a), a)
    return b.select(b.compare("olt", x, 0.0), math.pi - angle, angle)


def _atan2(b: Builder, y: Value, x: Value) -> Value:
    upper, right = at_most(b, magnitude(b, y), LARGE), at_most(b, magnitude(b, x), LARGE)
    right_or_one = b.select(b.compare("oeq", b.select(b.compare("ogt", upper, right), upper, right), 0.0), b.constant(x.type, 1.0), right)
    angle = _angle(b, upper, right_or_one)
    return copysign(b, b.select(b.compare("slt", b.bits(x), 0), math.pi - angle, angle), y)


# ---- roots and the error function ------------------------------------------------------------------------------------------


def _hypot(b: Builder, x: Value, y: Value) -> Value:
    """sqrt(x^2 + y^2), whose squares are exact; infinite beside NaN too."""
    value = b.intrinsic("llvm.sqrt", b.fma(x, x, y * y))
    infinite = b.compare("oeq", magnitude(b, x), INFINITY) | b.compare("oeq", magnitude(b, y), INFINITY)
    return b.select(infinite, b.constant(x.type, INFINITY), value)


def _cbrt(b: Builder, x: Value) -> Value:
    """x g^2 (1 - u)^(-2/3) for a guess g of x^(-1/3), whose upper bits come from a third of those of x, and u = 1 - x g^3."""
    a = magnitude(b, x)
    upper = b.convert("trunc", b.bits(a).lshr(32), "i32")
    guess = b.constant(upper.type, constant("cbrt_offset")) - b.binary("udiv", upper, 3)
    g = b.from_bits(b.convert("zext", guess, "i64") << 32, "double")
    product = (a * g) * g
    value = copysign(b, product * b.horner(1.0 - product * g, polynomial("cbrt")), x)
    return b.select(b.compare("ogt", a, 0.0) & b.compare("olt", a, INFINITY), value, x)


def _erfc(b: Builder, x: Value) -> Value:
    """exp(-a^2) q P(1 - 2 k q) with a = |x| and q = 1/(a + k), whose polynomial hardly changes for large a; from 2 for x < 0."""
    a = at_most(b, magnitude(b, x), 11.0)
    k = constant("erfc_centre")
    q = 1.0 / (a + k)
    value = (_exp(b, -(a * a)) * q) * b.horner(b.fma(q, -2 * k, 1.0), polynomial("erfc"))
    return b.select(b.compare("olt", x, 0.0), 2.0 - value, value)


_DOUBLE: dict[str, Callable[..., Value]] = {
    "asin": _asin, "acos": _acos, "atan": _atan, "atan2": _atan2, "sinh": _sinh, "cosh": _cosh, "asinh": _asinh, "acosh": _acosh,
    "atanh": _atanh, "softplus": _softplus, "log_sigmoid": _log_sigmoid, "hypot": _hypot, "cbrt": _cbrt, "erfc": _erfc,
    "logaddexp": _logaddexp, "tanhshrink": _tanhshrink,
}
FUNCTIONS = {name: in_double(function) for name, function in _DOUBLE.items()}
