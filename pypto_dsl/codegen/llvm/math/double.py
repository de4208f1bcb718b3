"""f64 functions, lane by lane through the C library (within 1 ulp there); what it lacks is composed of what it has."""

from __future__ import annotations

from collections.abc import Callable

from pypto_dsl.codegen.llvm.builder import F64, Builder, Type, Value

LIBM = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "erf", "tanh")


def per_lane(b: Builder, name: str, *arguments: Value) -> Value:
    """Call the scalar function ``name`` for every lane."""
    type = arguments[0].type
    scalar = Type(type.element)
    if not type.lanes:
        return b.call(scalar, name, *arguments)
    result = b.named(type, "poison")
    for lane in range(type.lanes):
        result = b.insert(result, b.call(scalar, name, *(b.extract(a, lane) for a in arguments)), lane)
    return result


def library(name: str) -> Callable[..., Value]:
    """The vector form of a C library function."""
    return lambda b, *arguments: per_lane(b, name, *arguments)


def _negative_exp(b: Builder, x: Value) -> Value:
    return per_lane(b, "exp", -x)


def sigmoid(b: Builder, x: Value) -> Value:
    """1/(1 + e^-x)"""
    return 1.0 / (_negative_exp(b, x) + 1.0)


def silu(b: Builder, x: Value) -> Value:
    """x/(1 + e^-x)"""
    return x / (_negative_exp(b, x) + 1.0)


def gelu_erf(b: Builder, x: Value) -> Value:
    """0.5 x erfc(-x/sqrt(2)), -0 at -inf."""
    value = (x * 0.5) * per_lane(b, "erfc", x * -(0.5**0.5))
    return b.select(b.compare("oeq", x, -float("inf")), b.constant(x.type, -0.0), value)


def gelu_tanh(b: Builder, x: Value) -> Value:
    """x/(1 + exp(-2u)), u = sqrt(2/pi)(x + 0.044715 x^3), -0 at -inf."""
    u = (x + ((x * x) * x) * 0.044715) * 0.7978845608028654
    value = x / (per_lane(b, "exp", u * -2.0) + 1.0)
    return b.select(b.compare("oeq", x, -float("inf")), b.constant(x.type, -0.0), value)


def rsqrt(b: Builder, x: Value) -> Value:
    """1/sqrt(x)"""
    return 1.0 / b.intrinsic("llvm.sqrt", x)


def ldexp(b: Builder, x: Value, exponent: Value) -> Value:
    """x * 2^n, rounded once."""
    type = x.type
    result = b.named(type, "poison")
    for lane in range(type.lanes):
        result = b.insert(result, b.call(F64, "ldexp", b.extract(x, lane), b.extract(exponent, lane)), lane)
    return result if type.lanes else b.call(F64, "ldexp", x, exponent)


def ldexp_real(b: Builder, x: Value, exponent: Value) -> Value:
    """x * 2^y: the whole part by ldexp, the fraction by exp2."""
    whole = b.intrinsic("llvm.rint", b.intrinsic("llvm.minnum", b.intrinsic("llvm.maxnum", exponent, -5000.0), 5000.0))
    count = b.call(x.type.of("i32"), f"llvm.fptosi.sat.{x.type.of('i32').mangled}.{x.type.mangled}", whole)
    value = ldexp(b, x * per_lane(b, "exp2", exponent - whole), count)
    infinite = b.compare("oeq", b.intrinsic("llvm.fabs", exponent), float("inf"))
    limit = b.select(b.compare("ogt", exponent, 0.0), b.constant(x.type, float("inf")), 0.0)
    value = b.select(infinite, x * limit, value)
    return b.select(b.compare("uno", x, exponent), x + exponent, value)




# B_2k / 2k of the asymptotic series, DLMF 5.11.2
_DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def digamma(b: Builder, x: Value) -> Value:
    """The logarithmic derivative of the gamma function: the recurrence up to 12, the asymptotic series beyond, reflection below 0
    (DLMF 5.5.4)."""
    type = x.type
    negative = b.compare("olt", x, 0.0)
    a = b.select(negative, 1.0 - x, x)
    shift = b.constant(type, 0.0)
    for _ in range(12):
        small = b.compare("olt", a, 12.0)
        shift = shift - b.select(small, 1.0 / a, 0.0)
        a = a + b.select(small, b.constant(type, 1.0), 0.0)
    z = 1.0 / (a * a)
    series = b.constant(type, _DIGAMMA_SERIES[-1])
    for term in reversed(_DIGAMMA_SERIES[:-1]):
        series = series * z + term
    value = ((shift + per_lane(b, "log", a)) - 0.5 / a) - series * z
    fraction = per_lane(b, "fmod", x, b.constant(type, 1.0))
    reflected = value - 3.141592653589793 / per_lane(b, "tan", fraction * 3.141592653589793)
    value = b.select(negative, reflected, value)
    pole = (negative & b.compare("oeq", fraction, 0.0)) | b.compare("oeq", x, -float("inf"))
    value = b.select(pole, b.constant(type, float("nan")), value)
    at_zero = b.intrinsic("llvm.copysign", b.constant(type, float("inf")), -x)
    return b.select(b.compare("oeq", x, 0.0), at_zero, value)


def cbrt(b: Builder, x: Value) -> Value:
    """The C library's cube root y, and one Newton step with y^3 - x to twice the precision; small x are lifted by 2^600."""
    a = b.intrinsic("llvm.fabs", x)
    small = b.compare("olt", a, 2.0**-300)
    lifted = b.select(small, x * 2.0**600, x)
    y = per_lane(b, "cbrt", lifted)
    square = y * y
    square_low = b.fma(y, y, -square)
    cube = square * y
    residue = (cube - lifted) + b.fma(square_low, y, b.fma(square, y, -cube))
    root = (y - residue / (square * 3.0)) * b.select(small, b.constant(x.type, 2.0**-200), 1.0)
    return b.select(b.compare("ogt", a, 0.0) & b.compare("olt", a, float("inf")), root, x)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "asin": library("asin"), "acos": library("acos"), "atan": library("atan"), "atan2": library("atan2"), "sinh": library("sinh"),
    "cosh": library("cosh"), "asinh": library("asinh"), "acosh": library("acosh"), "atanh": library("atanh"), "hypot": library("hypot"),
    "cbrt": cbrt, "erfc": library("erfc"),
}
