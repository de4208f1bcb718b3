"""Division that is exact: the remainder of floats, the floor of a quotient of integers."""

from __future__ import annotations

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Module, Value
from pypto_dsl.codegen.llvm.math.tables import INFINITY, NAN, copysign, magnitude

SMALLEST_NORMAL = 2.0**-1022
STEP = 51  # bits of a quotient that one step in f64 takes off


def floor_quotient(b: Builder, x: Value, y: Value, signed: bool) -> Value:
    """``x // y`` of integers: 0 for a zero divisor, and the smallest by -1 wraps.

    Integers of 64 bits by the processor's own division. Narrower ones in a float whose significand has more than their bits: there, a
    quotient of which the fraction is not 0 does not round to a whole number.
    """
    zero = b.compare("eq", y, 0)
    unfit = zero
    if signed:
        unfit = zero | (b.compare("eq", y, -1) & b.compare("eq", x, -(1 << (8 * x.type.bytes - 1))))
    divisor = b.select(unfit, 1, y)
    if x.type.bytes < 8:
        element, sign = "double" if x.type.bytes == 4 else "float", "s" if signed else "u"
        quotient = b.convert(f"{sign}itofp", x, element) / b.convert(f"{sign}itofp", divisor, element)
        return b.select(zero, 0, b.convert(f"fpto{sign}i", b.intrinsic("llvm.floor", quotient), x.type.element))
    truncated = b.binary("sdiv" if signed else "udiv", x, divisor)
    if not signed:
        return b.select(zero, 0, truncated)
    rest = x - truncated * divisor
    lower = b.compare("ne", rest, 0) & b.compare("slt", rest ^ divisor, 0)
    return b.select(zero, 0, b.select(lower, truncated - 1, truncated))


def fmod(b: Builder, x: Value, y: Value) -> Guarded:
    """``x - trunc(x / y) * y``, with the sign of ``x``. In one step where the quotient is short; else, and of infinities, zero divisors
    and NaN, in f64 and as many steps as it takes."""
    a, d = magnitude(b, x), magnitude(b, y)
    quotient, rest = _step(b, a, d)
    fast = copysign(b, b.select(b.compare("olt", a, d), a, rest), x)  # x also where y is infinite
    limit = b.constant(x.type, 2.0**22 if x.type.element == "float" else 2.0**STEP)
    name = f"fmod_{x.type.mangled}"

    def write(module: Module) -> str:
        inner = Builder(module)
        operands = inner.named(x.type, "%x"), inner.named(x.type, "%y")
        return inner.finish(f"internal {x.type} @{name}({x.type} %x, {x.type} %y) noinline cold", _long(inner, *operands))

    return Guarded(fast, b.bits(quotient), b.bits(limit), lambda: b.call(x.type, b.module.define(name, write), x, y), "fmod")


def _step(b: Builder, a: Value, d: Value) -> tuple[Value, Value]:
    """trunc(a / d) by the rounded quotient, and what it leaves of a.

    Where a quotient has a fraction, its rounding reaches the next integer at most. What either leaves is a float.
    """
    quotient = b.intrinsic("llvm.trunc", a / d)
    rest = b.fma(-quotient, d, a)
    return quotient, b.select(b.compare("olt", rest, 0.0), rest + d, rest)


def _long(b: Builder, x: Value, y: Value) -> Value:
    """Steps by multiples 2^k d of the divisor, until less than d is left."""
    a, d = (magnitude(b, b.convert("fpext", v, "double") if v.type.element == "float" else v) for v in (x, y))
    a = b.select(b.compare("olt", a, INFINITY), a, b.constant(a.type, NAN))
    d = b.select(b.compare("ogt", d, 0.0), d, b.constant(d.type, NAN))
    exponent = _exponent(b, d)

    def turn(values: list[Value]) -> tuple[Value, list[Value]]:
        (left,) = values
        k = b.intrinsic("llvm.smax", _exponent(b, left) - exponent - STEP, 0)
        first = k >> 1  # 2^k itself may be no float
        _, rest = _step(b, left, d * _power(b, first) * _power(b, k - first))
        following = b.select(b.compare("oge", left, d), rest, left)
        return b.any(b.compare("oge", following, d)), [following]

    (left,) = b.repeat(turn, [a], "steps")
    left = b.select(b.compare("uno", d, d), d, left)
    return copysign(b, b.convert("fptrunc", left, "float") if x.type.element == "float" else left, x)


def _exponent(b: Builder, a: Value) -> Value:
    """The exponent of a positive number, as an integer with the bias."""
    subnormal = b.compare("olt", a, SMALLEST_NORMAL)
    exponent = b.bits(b.select(subnormal, a * 2.0**53, a)).lshr(52)
    return exponent - b.select(subnormal, b.constant(exponent.type, 53), 0)


def _power(b: Builder, k: Value) -> Value:
    """2^k for 0 <= k <= 1023."""
    return b.from_bits((k + 1023) << 52, "double")
