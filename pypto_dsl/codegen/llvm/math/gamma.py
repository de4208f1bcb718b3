"""lgamma and digamma on f64 vectors, of which f32 results are the rounded ones."""

from __future__ import annotations

from pypto_dsl.codegen.llvm.builder import Builder, Value
from pypto_dsl.codegen.llvm.math.double import per_lane
from pypto_dsl.codegen.llvm.math.tables import NAN, at_most, coefficients, copysign, look_up_wide, magnitude, two_product, two_sum
from pypto_dsl.codegen.llvm.math.wide import WIDE

DIGAMMA_END = 16.0  # of its table
PI, PI_LOW = 3.141592653589793, 1.2246467991473532e-16
# B_2k / 2k of digamma's asymptotic series, DLMF 5.11.2
DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def lgamma(b: Builder, x: Value) -> Value:
    """The C library's, lane by lane, in x87's long double where there is one: its function of doubles is off by up to 4 ulp between
    the poles."""
    return per_lane(b, "lgammal", x, through="x86_fp80") if b.level.architecture == "x86_64" else per_lane(b, "lgamma", x)


def digamma(b: Builder, x: Value) -> Value:
    """The logarithmic derivative of the gamma function.

    With a = |x| it is psi(a) for x >= 1, psi(1 + a) - 1/a for 0 <= x < 1 and psi(1 + a) - pi cot(pi x) below 0 (DLMF 5.5.2, 5.5.4). The
    second terms are known in two parts, so that their sum with the first is rounded once.
    """
    a = magnitude(b, x)
    shifted, negative, tiny = b.compare("olt", x, 1.0), b.compare("olt", x, 0.0), b.compare("olt", a, 2.0**-54)
    sum, sum_low = two_sum(b, a, b.constant(x.type, 1.0))
    regular = _regular(b, b.select(shifted, sum, x), b.select(shifted, sum_low, b.constant(x.type, 0.0)))
    fraction = x - b.intrinsic("llvm.rint", x)  # exact
    inverse = 1.0 / x
    inverse_low = b.fma(-inverse, x, 1.0) * inverse
    cotangent, cotangent_low = _cotangent(b, fraction)
    term, term_low = b.select(negative, cotangent, inverse), b.select(negative, cotangent_low, inverse_low)
    total, total_low = two_sum(b, regular, -term)
    value = b.select(shifted, total + (total_low - term_low), regular)
    pole = negative & b.compare("oeq", fraction, 0.0)
    return b.select(tiny, -inverse, b.select(pole, b.constant(x.type, NAN), value))


def _regular(b: Builder, y: Value, low: Value) -> Value:
    """digamma of y + low >= 1: below 16 its Taylor series around the middle of a row, or around its zero; beyond, the asymptotic series."""
    index = b.bits(at_most(b, y, DIGAMMA_END * 0.99)).lshr(48) - 0x3FF0
    centre, centre_low, value, value_low, *terms = (
        look_up_wide(b, f"digamma_{k}", column, index) for k, column in enumerate(coefficients(WIDE)["digamma"]))
    t = (y - centre) + (low - centre_low)
    slope = terms[-1]
    for term in reversed(terms[:-1]):
        slope = b.fma(slope, t, term)
    near = value + b.fma(slope, t, value_low)
    inverse = 1.0 / y
    z = inverse * inverse
    rest = b.fma(b.horner(z, DIGAMMA_SERIES), -z, (low - 0.5) * inverse)
    return b.select(b.compare("olt", y, DIGAMMA_END), near, per_lane(b, "log", y) + rest)


def _cotangent(b: Builder, fraction: Value) -> tuple[Value, Value]:
    """``pi cot(pi fraction)`` in two parts for |fraction| <= 1/2: by the tangent of at most pi/4, or its inverse."""
    size = magnitude(b, fraction)
    inverted = b.compare("ole", size, 0.25)
    turn = b.select(inverted, size, 0.5 - size)  # exact
    angle, angle_low = two_product(b, PI, turn)
    tangent = per_lane(b, "tan", angle)
    tangent_low = b.fma(turn, PI_LOW, angle_low) * b.fma(tangent, tangent, 1.0)
    product, product_low = two_product(b, PI, tangent)
    product_low = product_low + b.fma(tangent_low, PI, tangent * PI_LOW)
    quotient = PI / tangent
    quotient_low = (b.fma(-quotient, tangent, PI) + b.fma(-quotient, tangent_low, PI_LOW)) / tangent
    high, low = b.select(inverted, quotient, product), b.select(inverted, quotient_low, product_low)
    sign = copysign(b, 1.0, fraction)
    return high * sign, low * sign
