"""pow: f32 as 2^(y log2 x) with log2 x in two parts, C99 special cases by a function of their own; integers.

x = 2^e m with m in [1, 2); a table gives c close to 1/m, so r = m c - 1 is exact in f32, and log2 x = (e - log2 c) + log2(1 + r).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Value
from pypto_dsl.codegen.llvm.math.root import rsqrt
from pypto_dsl.codegen.llvm.math.tables import (
    INFINITY,
    NAN,
    ROUNDING,
    coefficients,
    look_up,
    magnitude,
    nearest,
    polynomial,
    scale,
    two_sum_ordered,
)

# A result whose log2 is beyond this is 0 or inf; within, `scale` rounds it right, into the subnormals too.
LARGE_RESULT = 250.0


def _log2(b: Builder, x: Value, adjust: Value | None = None) -> tuple[Value, Value]:
    """log2 x as high + low with a relative error of about 2^-33, for positive normal x; ``adjust`` is added to the exponent."""
    table = coefficients()["power"]
    bits = b.bits(x)
    index = bits.lshr(18)
    exponent = b.convert("sitofp", bits.lshr(23), "float")
    if adjust is not None:
        exponent = exponent + adjust
    whole = exponent + look_up(b, "power_high", table["hi"], index)  # exact, as r is
    significand = b.from_bits((bits & 0x007FFFFF) | 0x3F800000, "float")
    r = b.fma(significand, look_up(b, "power_c", table["c"], index), -1.0)
    log2e, log2e_low = polynomial("log2e")
    linear = r * log2e
    linear_low = b.fma(r, log2e_low, b.fma(r, log2e, -linear))
    # the term of r^2 is -log2 e r^2/2 = linear * (-r/2), whose second factor is exact
    half = r * -0.5
    near = b.fma(linear, half, linear)
    near_low = b.fma(linear, half, -(near - linear))
    rest = b.fma((r * r) * r, b.horner(r, polynomial("power_cube")), look_up(b, "power_low", table["lo"], index))
    high, high_low = two_sum_ordered(b, whole, near)
    return high, high_low + (near_low + (b.fma(linear_low, half, linear_low) + rest))


def _power(b: Builder, logarithm: tuple[Value, Value], y: Value) -> tuple[Value, Value]:
    """2^(y (high + low)) and y high; the power is right where that product is within LARGE_RESULT.

    At most 0.95 ulp in all: half an ulp of the sum, a quarter of the polynomial and an eighth of f. Exact wherever the result is an f32.
    """
    high, low = logarithm
    product = y * high
    rest = b.fma(y, low, b.fma(y, high, -product))
    shifted = (product + rest) + ROUNDING
    n = nearest(b, shifted)
    f = (product - n) + rest  # the difference is exact, so f is rounded once
    value = b.fma(f, b.horner(f, polynomial("power_exp2")), 1.0)
    return scale(b, value, shifted, n), product


def _limited(b: Builder, value: Value, product: Value) -> Value:
    """``value``, and inf or 0 where ``product`` is beyond LARGE_RESULT."""
    limit = b.select(b.compare("ogt", product, 0.0), b.constant(value.type, INFINITY), 0.0)
    return b.select(b.compare("oge", magnitude(b, product), LARGE_RESULT), limit, value)


def _full(b: Builder, x: Value, y: Value) -> Value:
    """x^y of any operands; ordinary lanes get exactly the bits of the fast path.

    Bases are told apart by their bits, because floating-point operations on subnormals are slow. The logarithms of 0 and infinity are
    infinite, so that the result is 0 or infinity by the signs; NaN in y needs no test.
    """
    type = x.type
    word = b.bits(x)
    size = word & 0x7FFFFFFF
    subnormal = b.compare("ult", size, 0x00800000)
    normal = b.select(subnormal, b.convert("sitofp", size, "float"), b.from_bits(size, "float"))  # 2^149 |x|
    high, low = _log2(b, normal, b.select(subnormal, b.constant(type, -149.0), 0.0))
    zero, infinite = b.compare("eq", size, 0), b.compare("eq", size, 0x7F800000)
    high = b.select(zero, b.constant(type, -INFINITY), b.select(infinite, b.constant(type, INFINITY), high))
    value, product = _power(b, (high, low), y)
    whole, odd = _parity(b, y)
    signed = b.from_bits(b.bits(_limited(b, value, product)) ^ b.select(odd, word & -0x80000000, 0), "float")
    root_of_negative = b.compare("slt", word, 0) & ~(whole | zero | infinite)
    value = b.select(root_of_negative | b.compare("ugt", size, 0x7F800000), b.constant(type, NAN), signed)
    infinite_power = b.compare("eq", b.bits(y) & 0x7FFFFFFF, 0x7F800000)
    one = b.compare("eq", word, 0x3F800000) | b.compare("oeq", y, 0.0) | (b.compare("eq", size, 0x3F800000) & infinite_power)
    return b.select(one, b.constant(type, 1.0), value)


def _fast(b: Builder, x: Value, y: Value) -> Guarded:
    """x^y for positive normal x and any y: what overflows and infinities in y are mended in place."""
    value, product = _power(b, _log2(b, x), y)

    def mended() -> Value:
        return b.select(b.compare("oeq", x, 1.0), b.constant(x.type, 1.0), _limited(b, value, product))

    return Guarded(value, b.compare("uge", magnitude(b, product), LARGE_RESULT), mended, "pow")  # unordered: 1^inf and NaN too


def pow_together(b: Builder, operands: Sequence[tuple[Value, Value]]) -> list[Value]:
    """x^y by C99 at independent places, at most 1 ulp.

    Bases that are not positive normal numbers are known before anything is computed: one of them sends all places to a function
    with the full rules, which costs a third more than the fast path, and not both paths.
    """
    special = [b.compare("uge", b.bits(x) - 0x00800000, 0x7F000000) for x, _ in operands]
    rare, common, done = b.label("pow.full"), b.label("pow.fast"), b.label("pow.done")
    b.branch(b.any(reduce(or_, special)), rare, common, unlikely=True)
    b.place(common)
    fast = b.settled(b.woven([lambda x=x, y=y: _fast(b, x, y) for x, y in operands]))  # type: ignore[misc]
    common = b.block
    b.jump(done)
    b.place(rare)
    full = b.woven([lambda x=x, y=y: _full(b, x, y) for x, y in operands])  # type: ignore[misc]
    b.jump(done)
    b.place(done)
    return [b.phi(f.type, [(f, common), (r, rare)]) for f, r in zip(fast, full, strict=True)]


def pow(b: Builder, x: Value, y: Value) -> Value:
    """x^y at one place."""
    return pow_together(b, [(x, y)])[0]


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


def pow_literal(b: Builder, x: Value, exponent: float) -> Value:
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
    results.append((pow(b, x, b.splat(exponent, x.type.lanes)), b.block))
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
