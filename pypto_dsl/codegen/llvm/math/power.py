"""pow: f32 as e^(y log x) with log x in two parts, C99 special cases mended behind it; integers.

x = 2^e m with m in [1, 2); a table gives c close to 1/m, so r = m c - 1 is exact in f32, and log x = e log 2 - log c + log(1 + r).
e^p is a power of two with a table's sixteenths, times a polynomial of what is left. All logarithms are scaled by a number next to
1/2, with which that of a sixteenth has few bits, and the terms of log(1 + r) up to the square one need no factors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Value
from pypto_dsl.codegen.llvm.math.logarithm import apart
from pypto_dsl.codegen.llvm.math.root import rsqrt
from pypto_dsl.codegen.llvm.math.tables import (
    INFINITY,
    NAN,
    ROUNDING,
    ROUNDING_BITS,
    coefficients,
    copysign,
    look_up,
    magnitude,
    scale,
)

# A result whose logarithm to the base 2 is below this in magnitude is a normal number: its power of two is added to the exponent's bits.
NORMAL_RESULT = 125.0
# A result whose logarithm is beyond this is 0 or inf; within, `scale` rounds it right, into the subnormals too.
LARGE_RESULT = 249.5


@dataclass(frozen=True)
class Exponent:
    """y log2 |x| = ``product`` / ``unit``, nearly; and 2^of it = 2^(n/16) (1 + ``growth``), with n in the last bits of ``word``."""

    product: Value
    unit: float
    word: Value
    growth: Value


def _log(b: Builder, x: Value) -> tuple[Value, Value]:
    """scale log |x| as high + low with a relative error of about 2^-33, where ``scale`` is next to 1/2.

    With q = r/2 it is e scale log 2 - scale log c + (q - q^2) + q P(q), of which all but the last add up without rounding.
    """
    table = coefficients()["power"]
    exponent, significand = apart(b, x)
    index = b.bits(significand).lshr(19)
    whole = b.fma(exponent, 16 * table["step"], look_up(b, "power_high", table["hi"], index))  # exact, as q is
    q = b.fma(significand, look_up(b, "power_c", [c / 2 for c in table["c"]], index), -0.5)
    minus = -q
    high = whole + b.fma(minus, q, q)
    lost = b.fma(minus, q, q - (high - whole))  # of both sums: the differences are exact
    return high, b.fma(q, b.horner(q, table["rest"]), lost + look_up(b, "power_low", table["lo"], index))


def _two_to(b: Builder, sixteenths: Value, exponent: Value) -> Value:
    """2^(j/16 + n), j in the last bits of ``sixteenths`` and 16 n + j in ``exponent``."""
    power = look_up(b, "power_sixteenths", coefficients()["power"]["sixteenths"], sixteenths)
    return b.from_bits(b.bits(power) + (exponent << 19), "float")


def pow(b: Builder, x: Value, y: Value) -> Guarded:
    """x^y by C99, at most 1 ulp.

    About 0.7 ulp where the result is a normal number: half an ulp of the last multiply-add, and what the logarithm's error grows to.
    Exact wherever the result is an f32.
    """
    data = coefficients()["power"]
    high, low = _log(b, x)
    product = y * (high + low)
    shifted = b.fma(product, 1 / data["step"], ROUNDING)
    steps = b.fma(shifted, data["step"], -ROUNDING * data["step"])  # exact
    f = b.fma(y, low, b.fma(y, high, -steps))
    word = b.bits(shifted)
    growth = b.fma(f, b.horner(f, data["exponential"]), look_up(b, "power_sixteenths_low", data["sixteenths_low"], word))
    return finished(b, x, y, Exponent(product, 16 * data["step"], word, growth))


def finished(b: Builder, x: Value, y: Value, exponent: Exponent) -> Guarded:
    """x^y by C99 of its logarithm."""
    word, growth = exponent.word, exponent.growth
    power = _two_to(b, word, word)
    fast = b.fma(power, growth, power)

    def mended() -> Value:
        n = (word << 10) >> 14  # without the rounding constant's bits, and without the sixteenths
        root = _two_to(b, word, word & 15)
        scaled = scale(b, b.fma(root, growth, root), b.from_bits(n + ROUNDING_BITS, "float"), b.convert("sitofp", n, "float"))
        return _special(b, x, y, exponent, scaled)

    return Guarded(fast, _size(b, x, exponent.product), b.bits(b.constant(x.type, NORMAL_RESULT * exponent.unit)), mended, "pow")


def _size(b: Builder, x: Value, product: Value) -> Value:
    """What is below the bits of NORMAL_RESULT where `_special` has nothing to do: bases are positive and finite, results normal numbers."""
    if b.level.takes_apart:  # the exponents of 0 and infinities are infinite
        return b.bits(copysign(b, product, x))
    outside = b.compare("uge", b.bits(x) - 1, 0x7F7FFFFF)
    return b.select(outside, -1, b.bits(magnitude(b, product)))


def _special(b: Builder, x: Value, y: Value, exponent: Exponent, power: Value) -> Value:
    """x^y by ``power``, which is |x|^y where its logarithm is within LARGE_RESULT; ordinary lanes keep their bits.

    Bases are told apart by their bits, because floating-point operations on subnormals are slow. NaN in y needs no test.
    """
    type, word = x.type, b.bits(x)
    size = word & 0x7FFFFFFF
    zero, infinite = b.compare("eq", size, 0), b.compare("eq", size, 0x7F800000)
    logarithm = b.select(zero, b.constant(type, -INFINITY), INFINITY)
    product = b.select(zero | infinite, y * logarithm, exponent.product)
    limit = b.select(b.compare("ogt", product, 0.0), b.constant(type, INFINITY), 0.0)
    size_of_result = b.select(b.compare("oge", magnitude(b, product), LARGE_RESULT * exponent.unit), limit, power)
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


Power = Callable[[Builder, Value, Value], Guarded]


def pow_literal(b: Builder, x: Value, exponent: float, other: Power = pow) -> Value | Guarded:
    """x^exponent for an exponent known now, by ``other`` unless it is a special one; ``exponent`` is an f32 number."""
    special = SPECIAL_EXPONENTS.get(exponent)
    if special is None:
        return other(b, x, b.constant(x.type, exponent))
    return special(b, x)


def pow_uniform(b: Builder, x: Value, exponent: Value, other: Power = pow) -> Value:
    """x^exponent for one run-time f32 exponent (a scalar): the branch is the same for every lane and every turn."""
    after = b.label("pow.end")
    results: list[tuple[Value, str]] = []
    for number, special in SPECIAL_EXPONENTS.items():
        here, following = b.label("pow.special"), b.label("pow.other")
        b.branch(b.compare("oeq", exponent, number), here, following)
        b.place(here)
        results.append((special(b, x), b.block))
        b.jump(after)
        b.place(following)
    other_power = b.settled([other(b, x, b.splat(exponent, x.type.lanes))])[0]
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
