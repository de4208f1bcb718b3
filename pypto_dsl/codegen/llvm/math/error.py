"""erf and both forms of gelu on f32 vectors, accurate to 2 ulp in the tails too.

gelu is x Phi(x), where Phi is the normal distribution or its approximation by tanh: -a Phi(-a) for x = -a < 0, x - a Phi(-a) for
x = a > 0. a Phi(-a) is a polynomial around the nearest of 32 centres; lanes below the last centre are computed by a formula.
"""

from __future__ import annotations

from collections.abc import Callable

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Value
from pypto_dsl.codegen.llvm.math.exponential import exp_parts, expm1_reduced, over_one_plus, reduce, scaled_exp
from pypto_dsl.codegen.llvm.math.intervals import Intervals, gated
from pypto_dsl.codegen.llvm.math.tables import (
    INFINITY,
    SINGLE,
    at_most,
    coefficients,
    constant,
    constant_pair,
    copysign,
    magnitude,
    polynomial,
    scale,
    two_product,
    two_sum,
    two_sum_ordered,
)


def erf(b: Builder, x: Value) -> Value:
    """The error function: x + x P(x^2) for small |x|, 1 - exp(-(a + a P(a))) beyond."""
    a = at_most(b, magnitude(b, x), 4.0)
    small = b.fma(x, b.horner(x * x, polynomial("erf_small")), x)
    part = reduce(b, -b.fma(a, b.horner(a, polynomial("erf_large")), a))
    large = 1.0 - scaled_exp(b, part)
    return b.select(b.compare("olt", a, 0.927734375), small, copysign(b, large, x))


def gelu_erf(b: Builder, x: Value) -> Guarded:
    """x Phi(x) with the exact normal distribution."""
    return gelu_by_intervals(b, x, "gelu_erf", SINGLE)


def gelu_tanh(b: Builder, x: Value) -> Guarded:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    return gelu_by_intervals(b, x, "gelu_tanh", SINGLE)


def gelu_by_intervals(b: Builder, x: Value, name: str, file: str) -> Guarded:
    """A form of gelu by the intervals of ``file``."""
    found = coefficients(file)[f"{name}_intervals"]
    return gated(b, x, Intervals(f"{name}_of_{len(found['tables'])}", **found), name, EVERYWHERE[name])


def _gelu_erf_everywhere(b: Builder, x: Value) -> Value:
    """x Phi(x) with the exact normal distribution, for any x.

    Phi(-a) = exp(-a^2/2) P(t)/(a + k), where t = (a - k)/(a + k) and P is a polynomial that hardly changes for large a; so
    a Phi(-a) = exp(-a^2/2) q P(2q - 1) with q = a/(a + k). q and a^2 are kept in two parts, so that the far negative tail keeps
    its last bits. gelu(x) = -a Phi(-a) for x < 0 and x - a Phi(-a) for x > 0.
    """
    a = at_most(b, magnitude(b, x), 14.5)
    k = constant("gelu_centre")
    terms = polynomial("gelu_mills")
    # k is short enough for divisor - k to be exact also where a is the larger one
    divisor, divisor_low = two_sum_ordered(b, b.constant(x.type, k), a)
    reciprocal = 1.0 / divisor
    q = a * reciprocal
    q_low = b.fma(-q, divisor_low, b.fma(-q, divisor, a)) * reciprocal
    t = b.fma(q, 2.0, -1.0)
    t_low = b.fma(q_low, 2.0, b.fma(q, 2.0, -(t + 1.0)))
    # the leading term is added without rounding; the rest of the polynomial is small beside it
    slope = b.horner(t, terms[1:])
    g = b.fma(t, slope, terms[0])
    g_low = b.fma(slope, t_low, b.fma(t, slope, terms[0] - g))
    product, product_low = two_product(b, q, g)
    product_low = b.fma(q, g_low, b.fma(q_low, g, product_low))
    square, square_low = two_product(b, a, a)
    part, e, e_low = exp_parts(b, square * -0.5, square_low * -0.5)
    tail = scale(b, b.fma(product, e, b.fma(product, e_low, product_low * e)), part.shifted, part.number)  # a Phi(-a)
    return b.select(b.compare("oge", x, 0.0), x - tail, -tail)  # zeros keep their sign: the tail of both is +0


def gelu_argument(b: Builder, a: Value, linear: tuple[float, float], cubic: tuple[float, float]) -> tuple[Value, Value]:
    """a (linear + cubic a^2) in two parts, of constants in two parts: twice what gelu takes the tanh of."""
    square, square_low = two_product(b, a, a)
    high, low = two_product(b, cubic[0], square)
    low = b.fma(square, cubic[1], b.fma(square_low, cubic[0], low)) + linear[1]
    inner, inner_low = two_sum(b, b.constant(a.type, linear[0]), high)
    argument, argument_low = two_product(b, a, inner)
    return argument, b.fma(a, inner_low + low, argument_low)


def _gelu_tanh_everywhere(b: Builder, x: Value) -> Value:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), rewritten exactly as x/(1 + exp(-2u)).

    The argument 2u is kept in two parts: at x = -8 an error of one part in 2^24 would be 40 ulp of the result.
    """
    a = at_most(b, magnitude(b, x), 11.0)
    argument, argument_low = gelu_argument(b, a, constant_pair("gelu_linear"), constant_pair("gelu_cubic"))
    part = reduce(b, -argument)
    t = expm1_reduced(b, part.r - argument_low)
    e = scale(b, t + 1.0, part.shifted, part.number)
    negative = -scale(b, b.fma(a, t, a), part.shifted, part.number)
    value = over_one_plus(b, b.select(b.compare("olt", x, 0.0), negative, x), e)
    return b.select(b.compare("ult", x, INFINITY), value, x)


EVERYWHERE: dict[str, Callable[[Builder, Value], Value]] = {"gelu_erf": _gelu_erf_everywhere, "gelu_tanh": _gelu_tanh_everywhere}
