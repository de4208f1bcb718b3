"""pow: f32 as 2^(y log2 x) with log2 x and the product in two parts, C99 special cases in a vectorised cold path; integers."""

from __future__ import annotations

from collections.abc import Callable

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Module, Type, Value
from pypto_dsl.codegen.llvm.math.logarithm import Split, log2_parts, split
from pypto_dsl.codegen.llvm.math.root import rsqrt
from pypto_dsl.codegen.llvm.math.tables import (
    INFINITY,
    NAN,
    ROUNDING,
    clamp,
    magnitude,
    nearest,
    polynomial,
    scale,
)

# Results whose log2 is beyond this take the cold path, which also limits y: NaN, infinities and overflow need no test of their own.
ORDINARY_RESULT = 120.0
LARGE_EXPONENT = 2.0**90


def _product(b: Builder, part: Split, y: Value) -> tuple[Value, Value]:
    """y log2 x as high + low, for positive normal x."""
    high, low = log2_parts(b, part)
    product = y * high
    return product, b.fma(y, low, b.fma(y, high, -product))


def _power(b: Builder, product: Value, rest: Value) -> Value:
    """2^(product + rest); with the parts above less than 1 ulp in all, and exact wherever the exact result is an f32."""
    shifted = (product + rest) + ROUNDING
    n = nearest(b, shifted)
    f = (product - n) + rest
    return scale(b, b.fma(f, b.horner(f, polynomial("exp2m1")), 1.0), shifted, n)


def _cold(module: Module) -> str:
    """Every lane by the full rules; ordinary lanes get exactly the bits of the fast path."""
    b = Builder(module)
    type = Type("float", module.level.float_lanes)
    x, y = b.named(type, "%x"), b.named(type, "%y")
    one, nan = b.constant(type, 1.0), b.constant(type, NAN)
    a = magnitude(b, x)
    is_zero, is_infinite = b.compare("oeq", a, 0.0), b.compare("oeq", a, INFINITY)
    subnormal = b.compare("olt", a, 2.0**-126)
    ordinary = b.select(is_zero | is_infinite, one, b.select(subnormal, a * 2.0**32, a))
    adjust = b.select(subnormal & ~is_zero, b.constant(type, -32.0), 0.0)
    product, rest = _product(b, split(b, ordinary, adjust), clamp(b, y, -LARGE_EXPONENT, LARGE_EXPONENT))
    rest = b.select(b.compare("ogt", magnitude(b, product), 200.0), b.constant(type, 0.0), rest)
    value = _power(b, clamp(b, product, -200.0, 200.0), rest)
    # |x| of 0 or inf: 0 or inf by the sign of y
    grows = is_infinite ^ b.compare("olt", y, 0.0)
    value = b.select(is_zero | is_infinite, b.select(grows, b.constant(type, INFINITY), 0.0), value)
    whole, odd = _parity(b, y)
    negative = b.compare("slt", b.bits(x), 0)
    value = b.select(negative & odd, -value, value)
    value = b.select(b.compare("olt", x, 0.0) & ~(whole | is_infinite), nan, value)
    value = b.select(b.compare("uno", x, y), nan, value)
    value = b.select(b.compare("oeq", x, 1.0) | b.compare("oeq", y, 0.0), one, value)
    return b.finish(f"internal {type} @pow_cold({type} %x, {type} %y) noinline cold", value)


def pow(b: Builder, x: Value, y: Value) -> Guarded:
    """x^y by C99, at most 1 ulp. Negative bases only need a sign or a NaN, so they are mended in place; the rest is recomputed."""
    size = magnitude(b, x)
    product, rest = _product(b, split(b, size), y)
    outside = b.compare("uge", b.bits(x) - 0x00800000, 0x7F000000)
    large = b.compare("uge", magnitude(b, product), ORDINARY_RESULT)  # unordered: NaN too
    fast = _power(b, product, rest)

    def mended() -> Value:
        special = b.compare("uge", b.bits(size) - 0x00800000, 0x7F000000)
        signed = _with_sign(b, fast, b.compare("slt", b.bits(x), 0), y)
        full = Guarded(signed, special | large, lambda: b.call(x.type, b.module.define("pow_cold", _cold), x, y), "pow.full")
        return b.settled([full])[0]

    return Guarded(fast, outside | large, mended, "pow")


def _with_sign(b: Builder, value: Value, negative: Value, y: Value) -> Value:
    """|x|^y as x^y: negated for odd y, NaN for a negative finite x and a fractional y."""
    whole, odd = _parity(b, y)
    value = b.select(negative & odd, -value, value)
    return b.select(negative & ~whole, b.constant(value.type, NAN), value)


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
    results.append((b.settled([pow(b, x, b.splat(exponent, x.type.lanes))])[0], b.block))
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
