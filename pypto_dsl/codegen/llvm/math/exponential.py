"""exp, exp2, expm1, ldexp, tanh, sigmoid and silu on f32 vectors; all branch-free.

Reduction: n = nearest(x log2 e), r = x - n ln 2 in two steps (the first product is exact: ln2_hi has 12 bits), e^r - 1 =
r + r^2 Q(r) with Q fitted on [-ln2/2, ln2/2], and e^x = 2^n (1 + (e^r - 1)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Module, Value
from pypto_dsl.codegen.llvm.math.tables import (
    ROUNDING,
    at_least,
    at_most,
    clamp,
    copysign,
    magnitude,
    nearest,
    polynomial,
    power_from_shifted,
    power_of_two,
    scale,
    two_product,
    two_sum,
    two_sum_ordered,
)

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453


@dataclass(frozen=True)
class Reduced:
    """x = n ln 2 + r + r_low: ``shifted`` is n plus the rounding constant, ``number`` is n."""

    shifted: Value
    number: Value
    r: Value


def reduce(b: Builder, x: Value) -> Reduced:
    """Split ``x`` (|x| <= 2^14); ``r`` carries one rounding."""
    high, low = polynomial("ln2")
    shifted = b.fma(x, LOG2_E, ROUNDING)
    n = nearest(b, shifted)
    return Reduced(shifted, n, b.fma(n, -low, b.fma(n, -high, x)))


def expm1_reduced(b: Builder, r: Value) -> Value:
    """``e^r - 1`` for |r| <= ln2/2."""
    return b.fma(r * r, b.horner(r, polynomial("expm1_rest")), r)


def exp(b: Builder, x: Value) -> Value:
    """e^x, at most 1 ulp; overflow gives inf, underflow is gradual."""
    part = reduce(b, clamp(b, x, -104.0, 89.0))
    return scaled_exp(b, part)


def scaled_exp(b: Builder, part: Reduced) -> Value:
    """e^x of a reduced argument with |n| <= 252."""
    return scale(b, b.horner(part.r, polynomial("exp")), part.shifted, part.number)


def exp_parts(b: Builder, x: Value, x_low: Value) -> tuple[Reduced, Value, Value]:
    """``e^(x + x_low) = 2^n (high + low)`` with a relative error of about 2^-25; ``n`` is in the returned reduction."""
    high, low = polynomial("ln2")
    shifted = b.fma(x, LOG2_E, ROUNDING)
    n = nearest(b, shifted)
    r = b.fma(n, -high, x) + b.fma(n, -low, x_low)
    total, rest = two_sum_ordered(b, b.constant(x.type, 1.0), expm1_reduced(b, r))
    return Reduced(shifted, n, r), total, rest


def exp2(b: Builder, x: Value, rest: Sequence[float] | None = None) -> Value:
    """2^x, at most 1 ulp, or as ``rest``, another polynomial for (2^f - 1) / f, allows; exact for integers."""
    inside = clamp(b, x, -151.0, 129.0)
    shifted = inside + ROUNDING
    n = nearest(b, shifted)
    f = inside - n
    return scale(b, b.fma(f, b.horner(f, rest or polynomial("exp2m1")), 1.0), shifted, n)


def exp2_parts(b: Builder, f: Value) -> tuple[Value, Value]:
    """2^f as high + low for |f| <= 1/2, with a relative error of about 2^-28."""
    ln2, ln2_low = polynomial("ln2_full")
    slope, slope_low = two_sum_ordered(b, b.constant(f.type, ln2), f * b.horner(f, polynomial("exp2_rest")))
    linear, linear_low = two_product(b, f, slope)
    high, low = two_sum_ordered(b, b.constant(f.type, 1.0), linear)
    return high, low + b.fma(f, slope_low + ln2_low, linear_low)


def expm1_parts(b: Builder, x: Value) -> tuple[Value, Value]:
    """``(e^x - 1) / 2`` as a sum high + low, for x in [-20, 89]; halved, so that 2^n never overflows before the result does."""
    high, low = polynomial("ln2")
    shifted = b.fma(x, LOG2_E, ROUNDING)
    n = nearest(b, shifted)
    first = b.fma(n, -high, x)
    r = b.fma(n, -low, first)
    r_low = b.fma(n, -low, first - r)
    half_power = power_of_two(b, b.bits(shifted) - (0x4B400000 + 1))
    base, base_low = two_sum(b, half_power, b.constant(x.type, -0.5))
    total, rest = two_sum_ordered(b, base, half_power * r)
    tail = b.fma(r * r, b.horner(r, polynomial("expm1_rest")), r_low)  # e^r - 1 - r
    return total, b.fma(half_power, tail, rest + base_low)


def expm1(b: Builder, x: Value) -> Value:
    """e^x - 1, at most 1 ulp; keeps -0 and subnormals."""
    high, low = expm1_parts(b, clamp(b, x, -20.0, 89.0))
    result = (high + low) * 2.0
    return b.select(b.compare("olt", magnitude(b, x), 2.0**-26), x, result)


def tanh(b: Builder, x: Value) -> Value:
    """Hyperbolic tangent, at most 2 ulp: x + x^3 P(x^2) for small |x|, 1 - 2/(e^(2|x|) + 1) beyond.

    There the quotient is below 1/2, and the error of the reduction in one step hardly counts.
    """
    a = magnitude(b, x)
    square = a * a
    small = b.fma(a * square, b.horner(square, polynomial("tanh_rest")), a)
    twice = at_most(b, a, 10.0) * 2.0
    shifted = b.fma(twice, LOG2_E, ROUNDING)
    n = nearest(b, shifted)
    power = scale(b, b.horner(b.fma(n, -LN_2, twice), polynomial("exp")), shifted, n)
    large = 1.0 - 2.0 / (power + 1.0)
    return copysign(b, b.select(b.compare("olt", a, 0.55), small, large), x)


def sigmoid(b: Builder, x: Value) -> Guarded:
    """1/(1 + e^-x), at most 2 ulp in both tails."""
    return logistic(b, x, 1.0 / _one_plus_exp(b, x), "sigmoid")


def silu(b: Builder, x: Value) -> Guarded:
    """x/(1 + e^-x), at most 2 ulp in both tails; silu(-inf) is NaN, as inf/inf is."""
    return logistic(b, x, x / _one_plus_exp(b, x), "silu")


def _one_plus_exp(b: Builder, x: Value) -> Value:
    """1 + e^-x with e^-x = 2^n (1 + t), so that (2^n + 1) + 2^n t is rounded once; not for x < -16, where 2^n + 1 would round."""
    part = reduce(b, -at_most(b, x, 80.0))
    power = power_from_shifted(b, part.shifted)
    return b.fma(power, expm1_reduced(b, part.r), power + 1.0)


def logistic(b: Builder, x: Value, fast: Value, name: str) -> Guarded:
    """A function of `LOGISTIC`: ``fast`` from x = -16 on."""
    limit = b.bits(b.constant(x.type, -16.0))  # the bits of negative numbers go up as these go down

    def write(module: Module) -> str:
        inner = Builder(module)
        value = LOGISTIC[name](inner, inner.named(x.type, "%x"))
        return inner.finish(f"{x.type} @{name}_everywhere({x.type} %x) noinline cold", value)

    def cold() -> Value:
        return b.select(guarded.special, b.call(x.type, b.module.share(f"{name}_everywhere", write), x), fast)

    guarded = Guarded(fast, b.bits(x), limit, cold, name)
    return guarded


def _sigmoid_everywhere(b: Builder, x: Value) -> Value:
    e = _exp_of_minus_magnitude(b, x)
    numerator = b.select(b.compare("olt", x, 0.0), e, 1.0)
    return over_one_plus(b, numerator, e)


def _silu_everywhere(b: Builder, x: Value) -> Value:
    part = reduce(b, at_least(b, -magnitude(b, x), -120.0))  # -105 e^-105 is still a subnormal
    t = expm1_reduced(b, part.r)
    e = scale(b, t + 1.0, part.shifted, part.number)
    negative = scale(b, b.fma(x, t, x), part.shifted, part.number)
    value = over_one_plus(b, b.select(b.compare("olt", x, 0.0), negative, x), e)
    # the exponent is limited, x is not: far below the last subnormal the result is x * 0, -0 for finite x and NaN for -inf
    value = b.select(b.compare("olt", x, -150.0), x * 0.0, value)
    # inf - inf of the correction is put right here
    return b.select(b.compare("oeq", x, float("inf")), x, value)


LOGISTIC: dict[str, Callable[[Builder, Value], Value]] = {"sigmoid": _sigmoid_everywhere, "silu": _silu_everywhere}


def _exp_of_minus_magnitude(b: Builder, x: Value) -> Value:
    return scaled_exp(b, reduce(b, at_least(b, -magnitude(b, x), -104.0)))


def over_one_plus(b: Builder, numerator: Value, e: Value) -> Value:
    """``numerator / (1 + e)`` for e in [0, 1] and a finite numerator.

    One step corrects for the roundings of the sum and of the quotient q: ``numerator - q`` is exact, because q lies between half the
    numerator and the numerator (Sterbenz), so the residue ``(numerator - q) - q e`` is rounded once. 1 - e/2 is 1/(1 + e) to a
    tenth, enough for a correction below an ulp. The residue is computed negated, so that it is +0 when exact and the quotient's
    zero keeps its sign.
    """
    q = numerator / (e + 1.0)
    residue = b.fma(q, e, q - numerator)
    return b.fma(-residue, b.fma(e, -0.5, 1.0), q)


def ldexp(b: Builder, x: Value, exponent: Value) -> Value:
    """x * 2^n for any i32 n, rounded once, with gradual underflow."""
    limited = b.intrinsic("llvm.smax", b.intrinsic("llvm.smin", exponent, 400), -400)
    if b.level.scales_by_exponent:
        number = b.convert("sitofp", limited, "float")
        return scale(b, x, number, number)
    last = b.intrinsic("llvm.smax", b.intrinsic("llvm.smin", limited, 127), -126)
    rest = limited - last
    middle = b.intrinsic("llvm.smax", b.intrinsic("llvm.smin", rest, 127), -126)
    third = b.intrinsic("llvm.smax", b.intrinsic("llvm.smin", rest - middle, 127), -126)
    return x * power_of_two(b, third) * power_of_two(b, middle) * power_of_two(b, last)


def ldexp_real(b: Builder, x: Value, exponent: Value) -> Value:
    """x * 2^y for real y, within 1 ulp; 2^y is never formed, so it cannot overflow by itself."""
    y = clamp(b, exponent, -1000.0, 1000.0)
    shifted = y + ROUNDING
    n = nearest(b, shifted)
    f = y - n
    # a subnormal x is lifted, so that the fractional factor meets a full significand
    small = b.compare("olt", magnitude(b, x), 2.0**-100)
    lifted = b.select(small, x * 2.0**64, x)
    # values above 2^100 are lowered, so that 2^f cannot overflow
    large = b.compare("ogt", magnitude(b, x), 2.0**100)
    inside = b.select(large, x * 2.0**-64, lifted)
    correction = b.select(small, b.constant(x.type.of("i32"), -64), b.select(large, b.constant(x.type.of("i32"), 64), 0))
    power, power_low = exp2_parts(b, f)
    product, product_low = two_product(b, inside, power)
    scaled = ldexp(b, product + b.fma(inside, power_low, product_low), (b.bits(shifted) - 0x4B400000) + correction)
    # an infinite exponent is not a large one: 0 * 2^inf and inf * 2^-inf are NaN, and NaN stays
    infinite = b.compare("oeq", magnitude(b, exponent), float("inf"))
    limit = b.select(b.compare("ogt", exponent, 0.0), b.constant(x.type, float("inf")), 0.0)
    # zeros and infinities are their own products; the two-part arithmetic would make NaN of inf - inf
    unchanged = b.compare("oeq", x, 0.0) | b.compare("oeq", magnitude(b, x), float("inf"))
    unordered = b.compare("uno", exponent, x)
    return b.select(unordered, x + exponent, b.select(infinite, x * limit, b.select(unchanged, x, scaled)))
