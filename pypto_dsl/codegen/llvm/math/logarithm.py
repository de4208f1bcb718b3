"""log, log2, log10 and log1p on f32 vectors, by x = 2^e m and a table of c close to 1/m: r = m c - 1 is exact in f32.

log: m in [1, 2), and log x = e log 2 - log c + log(1 + r), where c is 1 at the lower end of m and 1/2 at the upper one.
The others: 32 intervals of m around 1, and log x = (e - log2 c) ln 2 + log(1 + r). In both nothing cancels beside x = 1.
What is no positive normal number takes a vectorised cold path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto_dsl.codegen.llvm.builder import I32, Builder, Guarded, Module, Type, Value
from pypto_dsl.codegen.llvm.math.tables import (
    INFINITY,
    NAN,
    coefficients,
    constant_pair,
    look_up,
    polynomial,
    two_product,
    two_sum_ordered,
)

INFINITE = 0x7F800000  # the bits of infinity, beyond those of all positive numbers
FIRST_NORMAL = 0x00800000
OUTSIDE = 0x7F000000  # from here on the bits less those of the first normal number are not a positive normal number's,
SUBNORMAL = -0x007FFFFF  # and from here on, as an unsigned integer, they are a positive subnormal's


def apart(b: Builder, x: Value) -> tuple[Value, Value]:
    """|x| as exponent and significand in [1, 2), of subnormals too; of zeros, infinities and NaN any numbers."""
    if b.level.takes_apart:
        zero, keep, rounding = b.constant(x.type, 0.0), b.constant(Type("i16"), -1), b.constant(I32, 4)
        exponent = b.call(x.type, "llvm.x86.avx512.mask.getexp.ps.512", x, zero, keep, rounding)
        without_sign = b.constant(I32, 4)
        return exponent, b.call(x.type, "llvm.x86.avx512.mask.getmant.ps.512", x, without_sign, zero, keep, rounding)
    size = b.bits(x) & 0x7FFFFFFF
    subnormal = b.compare("ult", size, 0x00800000)
    normal = b.select(subnormal, b.bits(b.convert("sitofp", size, "float")), size)  # 2^149 |x|
    exponent = normal.lshr(23) - b.select(subnormal, b.constant(size.type, 127 + 149), 127)
    return b.convert("sitofp", exponent, "float"), b.from_bits((normal & 0x007FFFFF) | 0x3F800000, "float")


@dataclass(frozen=True)
class Parts:
    """x = 2^exponent significand, and the significand's interval in the table of c."""

    exponent: Value
    significand: Value
    index: Value
    power: Value  # 2^exponent as bits to subtract


def parts(b: Builder, x: Value, adjust: Value | None = None) -> Parts:
    """A positive normal ``x``; ``adjust`` is added to the exponent (for scaled subnormals)."""
    bits = b.bits(x)
    distance = bits - coefficients()["log"]["offset"]
    power = distance & -(1 << 23)
    exponent = b.convert("sitofp", distance >> 23, "float")
    return Parts(exponent if adjust is None else exponent + adjust, b.from_bits(bits - power, "float"), distance.lshr(18), power)


@dataclass(frozen=True)
class Split:
    """log2 x = whole + rest_of_table + log2(1 + r): ``whole`` and ``r`` are exact."""

    whole: Value
    table_low: Value
    r: Value
    significand_shift: Value  # 2^e as bits to subtract
    c: Value


def split(b: Builder, x: Value, adjust: Value | None = None) -> Split:
    """Take a positive normal ``x`` apart; ``adjust`` is added to the exponent (for scaled subnormals)."""
    table, taken = coefficients()["log"], parts(b, x, adjust)
    c, r = remainder(b, taken)
    whole = taken.exponent + look_up(b, "log2_high", table["hi"], taken.index)
    return Split(whole, look_up(b, "log2_low", table["lo"], taken.index), r, taken.power, c)


def remainder(b: Builder, taken: Parts) -> tuple[Value, Value]:
    """c next to 1/significand, and r = significand c - 1, which is exact."""
    c = look_up(b, "log2_c", coefficients()["log"]["c"], taken.index)
    return c, b.fma(taken.significand, c, -1.0)


def log2_parts(b: Builder, part: Split) -> tuple[Value, Value]:
    """log2 x as high + low with a relative error of about 2^-32, the whole range and close to x = 1 included."""
    r = part.r
    log2e, log2e_low = polynomial("log2e")
    linear, linear_low = two_product(b, log2e, r)
    linear_low = b.fma(r, log2e_low, linear_low)
    # the term of r^2 is -log2 e r^2/2 = linear * (-r/2), whose second factor is exact
    half = r * -0.5
    quadratic, quadratic_low = two_product(b, linear, half)
    low = linear_low + b.fma(linear_low, half, quadratic_low)
    near, near_low = two_sum_ordered(b, linear, quadratic)
    high, high_low = two_sum_ordered(b, part.whole, near)
    rest = b.fma((r * r) * r, b.horner(r, polynomial("log2_cube")), low + part.table_low)
    return high, high_low + (near_low + rest)


def _log(b: Builder, part: Split, extra: Value | None = None) -> Value:
    """log x; ``extra`` is a small amount that belongs to r."""
    ln2, ln2_low = polynomial("ln2_full")
    high = part.whole * ln2
    low = b.fma(part.whole, ln2_low, b.fma(part.whole, ln2, -high))
    low = b.fma(part.table_low, ln2, low)
    if extra is not None:
        low = low + extra
    rest = b.fma(part.r * part.r, b.horner(part.r, polynomial("log_rest")), low)
    total, total_low = two_sum_ordered(b, high, part.r)
    return total + (total_low + rest)


def _log2(b: Builder, part: Split) -> Value:
    high, low = log2_parts(b, part)
    return high + low


def _log10(b: Builder, part: Split) -> Value:
    factor, factor_low = polynomial("log10_2")
    high, low = log2_parts(b, part)
    product, product_low = two_product(b, factor, high)
    return product + (product_low + b.fma(high, factor_low, low * factor))


def limits(b: Builder, x: Value, value: Value) -> Value:
    """The logarithm of zeros, negatives, infinity and NaN in place of ``value``: only subnormals have to be computed again."""
    value = b.select(b.compare("oeq", x, INFINITY), x, value)
    value = b.select(b.compare("oeq", x, 0.0), b.constant(x.type, -INFINITY), value)
    value = b.select(b.compare("olt", x, 0.0), b.constant(x.type, NAN), value)
    return b.select(b.compare("uno", x, x), x + x, value)


Core = Callable[[Builder, Value, Value | None], Value]


def guarded(name: str, core: Core) -> Callable[[Builder, Value], Guarded]:
    """A logarithm by ``core`` of positive normal numbers (and what is added to their exponent), with the rules for all others."""

    def cold(module: Module) -> str:
        b = Builder(module)
        x = b.named(_vector(module), "%x")
        subnormal = b.compare("olt", x, 2.0**-126)
        inside = b.select(subnormal, x * 2.0**32, x)
        value = core(b, inside, b.select(subnormal, b.constant(x.type, -32.0), 0.0))
        value = limits(b, x, value)
        return b.finish(f"{x.type} @{name}_cold({x.type} %x) noinline cold", value)

    def function(b: Builder, x: Value) -> Guarded:
        fast = core(b, x, None)

        def mended() -> Value:
            full = Guarded(limits(b, x, fast), outside, SUBNORMAL, lambda: _call_cold(b, name, cold, x), f"{name}.full")
            return b.settled([full])[0]

        outside = b.bits(x) - FIRST_NORMAL
        return Guarded(fast, outside, OUTSIDE, mended, name)

    return function


def _vector(module: Module) -> Type:
    return Type("float", module.level.float_lanes)


def _call_cold(b: Builder, name: str, cold: Callable[[Module], str], *arguments: Value) -> Value:
    return b.call(arguments[0].type, b.module.share(f"{name}_cold", cold), *arguments)


def log(b: Builder, x: Value) -> Guarded:
    """log x, at most 1 ulp."""
    table = coefficients()["natural"]
    exponent, significand = apart(b, x)
    index = b.bits(significand).lshr(18)
    ln2, ln2_low = constant_pair("ln2_short")
    whole = b.fma(exponent, ln2, look_up(b, "log_high", table["hi"], index))  # exact, as r is
    whole_low = b.fma(exponent, ln2_low, look_up(b, "log_low", table["lo"], index))
    r = b.fma(significand, look_up(b, "log_c", table["c"], index), -1.0)
    total, total_low = two_sum_ordered(b, whole, r)
    fast = total + (total_low + b.fma(r * r, b.horner(r, polynomial("log_square")), whole_low))
    return Guarded(fast, b.bits(x) - 1, INFINITE - 1, lambda: limits(b, x, fast), "log")


log2 = guarded("log2", lambda b, x, adjust: _log2(b, split(b, x, adjust)))
log10 = guarded("log10", lambda b, x, adjust: _log10(b, split(b, x, adjust)))


def log1p(b: Builder, x: Value) -> Value:
    """log(1 + x), at most 1 ulp; what 1 + x loses is carried beside it."""
    one = b.constant(x.type, 1.0)
    u = x + one
    back = u - one
    lost = (x - back) + (one - (u - back))
    part = split(b, u)
    # 2^-e by its bits; for e > 126 the loss is nothing beside log(u), and the power may be 0
    inverse = b.from_bits(b.intrinsic("llvm.smax", 0x3F800000 - part.significand_shift, 0), "float")
    relative = (lost * inverse) * part.c
    value = _log(b, part, b.fma(-relative, part.r, relative))
    value = b.select(b.compare("oeq", x, 0.0), x, value)
    value = b.select(b.compare("oeq", x, INFINITY), x, value)
    value = b.select(b.compare("oeq", x, -1.0), b.constant(x.type, -INFINITY), value)
    value = b.select(b.compare("olt", x, -1.0), b.constant(x.type, NAN), value)
    return b.select(b.compare("uno", x, x), x + x, value)
