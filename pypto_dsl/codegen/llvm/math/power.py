"""pow: f32 as e^(y log x) with log x in two parts, C99 special cases mended behind it; integers.

x = 2^e m with m in [1, 2); a table gives c close to 1/m, so r = m c - 1 is exact in f32, and log x = e log 2 - log c + log(1 + r).
"""

from __future__ import annotations

from collections.abc import Callable

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Value
from pypto_dsl.codegen.llvm.math.exponential import LOG2_E
from pypto_dsl.codegen.llvm.math.logarithm import apart
from pypto_dsl.codegen.llvm.math.root import rsqrt
from pypto_dsl.codegen.llvm.math.tables import (
    INFINITY,
    NAN,
    ROUNDING,
    coefficients,
    constant_pair,
    copysign,
    look_up,
    magnitude,
    nearest,
    polynomial,
    scale,
)

# A result whose logarithm's half is below this in magnitude is a normal number: its power of two is added to the exponent's bits.
NORMAL_RESULT = 43.375
# A result whose logarithm's half is beyond this is 0 or inf; within, `scale` rounds it right, into the subnormals too.
LARGE_RESULT = 86.5


def _half_log(b: Builder, x: Value) -> tuple[Value, Value]:
    """(log |x|)/2 as high + low with a relative error of about 2^-33.

    With q = r/2 it is (e log 2 - log c)/2 + (q - q^2) + q^3 P(q), whose first three terms need no other factor than q.
    """
    table = coefficients()["natural"]
    exponent, significand = apart(b, x)
    index = b.bits(significand).lshr(18)
    step, step_low = constant_pair("half_ln2")
    whole = b.fma(exponent, step, look_up(b, "half_high", table["hi"], index))  # exact, as q is
    whole_low = b.fma(exponent, step_low, look_up(b, "half_low", table["lo"], index))
    q = b.fma(significand, look_up(b, "half_c", table["half_c"], index), -0.5)
    minus = -q
    high = whole + b.fma(minus, q, q)
    high_low = b.fma(minus, q, q - (high - whole))  # what both sums lost: the differences are exact
    square = q * q
    c0, c1, c2, c3 = polynomial("power_cube")
    cube = b.fma(square, b.fma(q, c3, c2), b.fma(q, c1, c0))
    return high, high_low + b.fma(square * q, cube, whole_low)


def pow(b: Builder, x: Value, y: Value) -> Guarded:
    """x^y by C99, at most 1 ulp.

    At most 0.95 ulp where the result is a normal number: half an ulp of the sum, a quarter of the polynomial and an eighth of f.
    Exact wherever the result is an f32.
    """
    high, low = _half_log(b, x)
    product = y * high
    rest = b.fma(y, low, b.fma(y, high, -product))
    shifted = b.fma(product, 2 * LOG2_E, ROUNDING)
    n = nearest(b, shifted)
    step, step_low = constant_pair("half_ln2")
    f = b.fma(n, -step, product) + b.fma(n, -step_low, rest)  # the first one is exact
    power = b.horner(f, [c * 2.0**k for k, c in enumerate(polynomial("exp"))])  # e^(2f)
    fast = b.from_bits(b.bits(power) + (b.bits(shifted) << 23), "float")

    def mended() -> Value:
        return _special(b, x, y, product, scale(b, power, shifted, n))

    return Guarded(fast, _size(b, x, product), b.bits(b.constant(x.type, NORMAL_RESULT)), mended, "pow")


def _size(b: Builder, x: Value, product: Value) -> Value:
    """What is below the bits of NORMAL_RESULT where `_special` has nothing to do: bases are positive and finite, results normal numbers."""
    if b.level.takes_apart:  # the exponents of 0 and infinities are infinite
        return b.bits(copysign(b, product, x))
    outside = b.compare("uge", b.bits(x) - 1, 0x7F7FFFFF)
    return b.select(outside, -1, b.bits(magnitude(b, product)))


def _special(b: Builder, x: Value, y: Value, product: Value, power: Value) -> Value:
    """x^y by ``power``, which is |x|^y where ``product``, half its logarithm, is within LARGE_RESULT; ordinary lanes keep their bits.

    Bases are told apart by their bits, because floating-point operations on subnormals are slow. NaN in y needs no test.
    """
    type, word = x.type, b.bits(x)
    size = word & 0x7FFFFFFF
    zero, infinite = b.compare("eq", size, 0), b.compare("eq", size, 0x7F800000)
    logarithm = b.select(zero, b.constant(type, -INFINITY), INFINITY)
    product = b.select(zero | infinite, y * logarithm, product)
    limit = b.select(b.compare("ogt", product, 0.0), b.constant(type, INFINITY), 0.0)
    size_of_result = b.select(b.compare("oge", magnitude(b, product), LARGE_RESULT), limit, power)
    whole, odd = _parity(b, y)
    signed = b.from_bits(b.bits(size_of_result) ^ b.select(odd, word & -0x80000000, 0), "float")
    root_of_negative = b.compare("slt", word, 0) & ~(whole | zero | infinite)
    value = b.select(root_of_negative | b.compare("ugt", size, 0x7F800000), b.constant(type, NAN), signed)
    infinite_power = b.compare("eq", b.bits(y) & 0x7FFFFFFF, 0x7F800000)
    one = b.compare("eq", word, 0x3F800000) | b.compare("oeq", y, 0.0) | (b.compare("eq", size, 0x3F800000) & infinite_power)
    return b.select(one, b.constant(type, 1.0), value)


def _parity(b: Builder, y: Value) -> tuple[Value, Value]:
    """Whether y is an integer, and whether it is an odd one."""
    half = y * 0.5
    whole = b.compare("oeq", b.intrinsic("llvm.rint", y), y)
    return whole, whole & b.compare("one", b.intrinsic("llvm.rint", half), half)


# ---- scalar exponents: one uniform choice, the same bits for a literal and for a run-time number ------------------------


def _in_double(b: Builder, x: Value, compute: Callable[[Value], Value]) -> Value:
    """``compute`` on ``x`` as f64, rounded to f32 once more: two roundings of 2^-53 in between cost nothing."""
    return b.convert("fptrunc", compute(b.convert("fpext", x, "double")), "float")


def _square_root(b: Builder, x: Value) -> Value:
    """x^0.5 by C99: unlike sqrt, +0 at -0 and inf at -inf."""
    value = b.intrinsic("llvm.sqrt", x) + 0.0
    return b.select(b.compare("oeq", x, -INFINITY), b.constant(x.type, INFINITY), value)


def _inverse_root(b: Builder, x: Value) -> Value:
    """x^-0.5 by C99: inf at -0 and 0 at -inf."""
    value = rsqrt(b, x + 0.0)
    return b.select(b.compare("oeq", x, -INFINITY), b.constant(x.type, 0.0), value)


SPECIAL_EXPONENTS: dict[float, Callable[[Builder, Value], Value]] = {
    0.0: lambda b, x: b.constant(x.type, 1.0),
    1.0: lambda b, x: x,
    -1.0: lambda b, x: 1.0 / x,
    2.0: lambda b, x: x * x,
    -2.0: lambda b, x: _in_double(b, x, lambda d: 1.0 / (d * d)),
    3.0: lambda b, x: _in_double(b, x, lambda d: (d * d) * d),
    0.5: _square_root,
    -0.5: _inverse_root,
}


def pow_literal(b: Builder, x: Value, exponent: float) -> Value | Guarded:
    """x^exponent for an exponent known now; ``exponent`` is an f32 number."""
    special = SPECIAL_EXPONENTS.get(exponent)
    if special is None:
        return pow(b, x, b.constant(x.type, exponent))
    return special(b, x)


def pow_uniform(b: Builder, x: Value, exponent: Value) -> Value:
    """x^exponent for one run-time f32 exponent (a scalar): the branch is the same for every lane and every turn."""
    after = b.label("pow.end")
    results: list[tuple[Value, str]] = []
    for number, special in SPECIAL_EXPONENTS.items():
        here, other = b.label("pow.special"), b.label("pow.other")
        b.branch(b.compare("oeq", exponent, number), here, other)
        b.place(here)
        results.append((special(b, x), b.block))
        b.jump(after)
        b.place(other)
    other_power = b.settled([pow(b, x, b.splat(exponent, x.type.lanes))])[0]
    results.append((other_power, b.block))
    b.jump(after)
    b.place(after)
    return b.phi(x.type, results)


# ---- integers ----------------------------------------------------------------------------------------------------------


def pow_integer(b: Builder, x: Value, y: Value, signed: bool) -> Value:
    """x^y with wrapping products; 0^0 is 1; a negative exponent gives 0 except for the bases 1 and -1."""
    one = b.constant(x.type, 1)
    negative = b.compare("slt", y, 0) if signed else b.constant(x.type.of("i1"), 0)
    left = b.select(negative, b.constant(y.type, 0), y)

    def turn(values: list[Value]) -> tuple[Value, list[Value]]:
        result, base, rest = values
        multiplied = b.select(b.compare("ne", rest & 1, 0), result * base, result)
        shorter = rest.lshr(1)
        return b.any(b.compare("ne", shorter, 0)), [multiplied, base * base, shorter]

    result = b.repeat(turn, [one, x, left], "power")[0]
    if not signed:
        return result
    alternating = b.select(b.compare("ne", y & 1, 0), b.constant(x.type, -1), 1)
    inverse = b.select(b.compare("eq", x, -1), alternating, b.select(b.compare("eq", x, 1), one, 0))
    return b.select(negative, inverse, result)
