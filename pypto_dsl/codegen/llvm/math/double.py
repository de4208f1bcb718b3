"""f64 functions, lane by lane through the C library (within 1 ulp there); what it lacks is composed of what it has."""

from __future__ import annotations

from collections.abc import Callable

from pypto_dsl.codegen.llvm.builder import F64, Builder, Type, Value
from pypto_dsl.codegen.llvm.math.error import gelu_argument
from pypto_dsl.codegen.llvm.math.tables import at_least, at_most, copysign, two_product, two_sum
from pypto_dsl.codegen.llvm.math.wide import constant, polynomial

# Operations that are the C library's, lane by lane.
LIBRARY = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "erf", "tanh", "asin", "acos", "atan", "atan2",
           "sinh", "cosh", "asinh", "acosh", "atanh", "hypot", "pow", "lgamma")


def per_lane(b: Builder, name: str, *arguments: Value, through: str | None = None) -> Value:
    """Call the scalar function ``name`` for every lane; it is one of the type ``through`` where that is another one."""
    type = arguments[0].type

    def called(*scalars: Value) -> Value:
        if through is None:
            return b.call(Type(type.element), name, *scalars)
        return b.convert("fptrunc", b.call(Type(through), name, *(b.convert("fpext", s, through) for s in scalars)), type.element)

    if not type.lanes:
        return called(*arguments)
    result = b.named(type, "poison")
    for lane in range(type.lanes):
        result = b.insert(result, called(*(b.extract(a, lane) for a in arguments)), lane)
    return result


def by_libm(name: str) -> Callable[..., Value]:
    """The vector form of a C library function."""
    return lambda b, *arguments: per_lane(b, name, *arguments)


def sigmoid(b: Builder, x: Value) -> Value:
    """e/(1 + e) below 0 and 1/(1 + e) above, with e = e^-|x|."""
    e = per_lane(b, "exp", -b.intrinsic("llvm.fabs", x))
    return b.select(b.compare("olt", x, 0.0), e, b.constant(x.type, 1.0)) / (e + 1.0)


FAR = -700.0  # e^x is close to the subnormals: its root is taken, and used twice


def _gated(b: Builder, x: Value, exponent: Value, low: Value) -> Value:
    """x/(1 + e^-u) for u of the sign of x, with ``exponent`` + ``low`` = -|u|; the last product alone rounds into the subnormals.

    x e^u/(1 + e^u) below 0. What the product, the sum and the quotient q lose is taken back in one step, and ``low`` with it.
    """
    far = b.compare("olt", exponent, FAR)
    e = per_lane(b, "exp", exponent * b.select(far, b.constant(x.type, 0.5), 1.0))
    negative = b.compare("olt", x, 0.0)
    product, product_low = two_product(b, x, e)
    numerator, numerator_low = b.select(negative, product, x), b.select(negative, product_low, b.constant(x.type, 0.0))
    q = numerator / (e + 1.0)
    residue = b.fma(q, e, q - numerator) - numerator_low
    residue = b.fma(b.select(negative, -q, q * e), low, residue)
    near = b.fma(-residue, b.fma(e, -0.5, 1.0), q)
    tail = copysign(b, b.fma(product, e, b.fma(product, low, product_low) * e), x)
    return b.select(far, b.select(negative, tail, x), near)


def silu(b: Builder, x: Value) -> Value:
    """x/(1 + e^-x)"""
    return _gated(b, x, -b.intrinsic("llvm.fabs", x), b.constant(x.type, 0.0))


def _scaled_erfc(b: Builder, u: Value, low: Value) -> tuple[Value, Value]:
    """``erfc(a) e^(a^2)`` of a = u + low >= 0.18 in two parts: q P(1 - 2 k q) with q = 1/(a + k), of which P hardly changes."""
    k, terms = constant("double_erfc_centre"), polynomial("double_erfc")
    divisor, divisor_low = two_sum(b, u, b.constant(u.type, k))
    q = 1.0 / divisor
    q_low = b.fma(-q, divisor_low + low, b.fma(-q, divisor, 1.0)) * q
    t = b.fma(q, -2 * k, 1.0)
    t_low = b.fma(q_low, -2 * k, b.fma(q, -2 * k, 1.0 - t))
    slope = b.horner(t, terms[1:])
    p = b.fma(t, slope, terms[0])
    p_low = b.fma(slope, t_low, b.fma(t, slope, terms[0] - p))
    product, product_low = two_product(b, q, p)
    return product, b.fma(q, p_low, b.fma(q_low, p, product_low))


def _times_exp(b: Builder, x: Value, low: Value, square: Value, square_low: Value) -> Value:
    """``(x + low) e^-(square + square_low)``"""
    e = per_lane(b, "exp", -square)
    return b.fma(e, x, e * b.fma(-x, square_low, low))


def erfc(b: Builder, x: Value) -> Value:
    """1 - erf(x) below 0.45; e^(-x^2) times a polynomial beyond, where the C library is off by up to 5 ulp."""
    a = at_most(b, at_least(b, x, 0.45), 28.0)
    square, square_low = two_product(b, a, a)
    far = _times_exp(b, *_scaled_erfc(b, a, b.constant(x.type, 0.0)), square, square_low)
    return b.select(b.compare("olt", x, 0.45), 1.0 - per_lane(b, "erf", x), far)


def gelu_erf(b: Builder, x: Value) -> Value:
    """x Phi(x) by a Phi(-a) = a erfc(a/sqrt 2)/2 with a = |x|; near 0 by erf."""
    a = at_most(b, at_least(b, b.intrinsic("llvm.fabs", x), 0.27), 40.0)
    root, root_low = polynomial("double_root_half")
    u, u_low = two_product(b, root, a)
    scaled, scaled_low = _scaled_erfc(b, u, b.fma(a, root_low, u_low))
    half = a * 0.5
    product, product_low = two_product(b, half, scaled)
    square, square_low = two_product(b, a, a)
    tail = _times_exp(b, product, b.fma(half, scaled_low, product_low), square * 0.5, square_low * 0.5)
    far = b.select(b.compare("olt", x, 0.0), -tail, x - tail)
    near = (x * 0.5) * (per_lane(b, "erf", x * root) + 1.0)
    return b.select(b.compare("olt", b.intrinsic("llvm.fabs", x), 0.27), near, far)


def gelu_tanh(b: Builder, x: Value) -> Value:
    """x/(1 + e^(-2u)), u = sqrt(2/pi)(x + 0.044715 x^3), with 2u in two parts; -0 at -inf."""
    a = at_most(b, b.intrinsic("llvm.fabs", x), 40.0)
    (linear, linear_low), (cubic, cubic_low) = polynomial("double_gelu_linear"), polynomial("double_gelu_cubic")
    argument, argument_low = gelu_argument(b, a, (linear, linear_low), (cubic, cubic_low))
    finite = b.select(b.compare("olt", x, -40.0), b.constant(x.type, -40.0), x)
    return _gated(b, finite, -argument, -argument_low)


def mish(b: Builder, x: Value) -> Value:
    """x n/(n + 2) with n = e^x (e^x + 2), the quotient corrected for the roundings of product and sum; x e^x far below 0, x far above."""
    far = b.compare("olt", x, -40.0)
    e = per_lane(b, "exp", b.select(far, at_most(b, x, 40.0) * 0.5, at_most(b, x, 40.0)))
    n = b.fma(e, e, e * 2.0)
    product, product_low = two_product(b, x, n)
    divisor, divisor_low = two_sum(b, n, b.constant(x.type, 2.0))
    q = product / divisor
    residue = b.fma(-q, divisor_low, b.fma(-q, divisor, product) + product_low)
    near = copysign(b, q + residue / divisor, x)
    root, root_low = two_product(b, x, e)
    value = b.select(far, copysign(b, b.fma(root, e, root_low * e), x), near)
    return b.select(b.compare("ogt", x, 40.0), x, value)


def logit(b: Builder, x: Value, eps: float | None = None) -> Value:
    """2 atanh(2x - 1) around 1/2, where 2x - 1 is exact, log(x) - log(1 - x) beyond; NaN outside [0, 1]."""
    inside = x if eps is None else at_most(b, at_least(b, x, eps), 1.0 - eps)
    centred = b.fma(inside, 2.0, -1.0)
    near = per_lane(b, "atanh", centred) * 2.0
    far = per_lane(b, "log", inside) - per_lane(b, "log1p", -inside)
    return b.select(b.compare("olt", b.intrinsic("llvm.fabs", centred), 0.5), near, far)


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
    **{name: by_libm(name) for name in LIBRARY}, "cbrt": cbrt, "erfc": erfc, "mish": mish, "logit": logit,
}
