"""log, log2, log10 and log1p on f32 vectors.

x = 2^e m; a 32-entry table gives c close to 1/m on the grid 2^-5, so r = m c - 1 is exact in f32, and
log x = (e - log2 c) ln 2 + log(1 + r). The table's value is exactly 0 around x = 1, so nothing cancels there.
Zeros, negatives, subnormals, infinities and NaN take a vectorised cold path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Module, Type, Value
from pypto_dsl.codegen.llvm.math.tables import (
    INFINITY,
    NAN,
    coefficients,
    look_up,
    polynomial,
    two_product,
    two_sum_ordered,
)


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
    table = coefficients()["log"]
    bits = b.bits(x)
    distance = bits - table["offset"]
    index = distance.lshr(18)
    power = distance & -(1 << 23)
    significand = b.from_bits(bits - power, "float")
    exponent = b.convert("sitofp", distance >> 23, "float")
    if adjust is not None:
        exponent = exponent + adjust
    c = look_up(b, "log_c", table["c"], index)
    whole = exponent + look_up(b, "log_high", table["hi"], index)
    return Split(whole, look_up(b, "log_low", table["lo"], index), b.fma(significand, c, -1.0), power, c)


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


def _is_special(b: Builder, x: Value) -> Value:
    """Lanes that are not positive normal numbers."""
    return b.compare("uge", b.bits(x) - 0x00800000, 0x7F000000)


def _limits(b: Builder, x: Value, value: Value) -> Value:
    """The logarithm of zeros, negatives, infinity and NaN in place of ``value``: only subnormals have to be computed again."""
    value = b.select(b.compare("oeq", x, INFINITY), x, value)
    value = b.select(b.compare("oeq", x, 0.0), b.constant(x.type, -INFINITY), value)
    value = b.select(b.compare("olt", x, 0.0), b.constant(x.type, NAN), value)
    return b.select(b.compare("uno", x, x), x, value)


def _guarded(name: str, core: Callable[[Builder, Split], Value]) -> Callable[[Builder, Value], Guarded]:
    def cold(module: Module) -> str:
        b = Builder(module)
        x = b.named(_vector(module), "%x")
        subnormal = b.compare("olt", x, 2.0**-126)
        inside = b.select(subnormal, x * 2.0**32, x)
        value = core(b, split(b, inside, b.select(subnormal, b.constant(x.type, -32.0), 0.0)))
        value = _limits(b, x, value)
        return b.finish(f"{x.type} @{name}_cold({x.type} %x) noinline cold", value)

    def function(b: Builder, x: Value) -> Guarded:
        fast = core(b, split(b, x))

        def mended() -> Value:
            subnormal = b.compare("ult", b.bits(x) - 1, 0x007FFFFF)
            return b.settled([Guarded(_limits(b, x, fast), subnormal, lambda: _call_cold(b, name, cold, x), f"{name}.full")])[0]

        return Guarded(fast, _is_special(b, x), mended, name)

    return function


def _vector(module: Module) -> Type:
    return Type("float", module.level.float_lanes)


def _call_cold(b: Builder, name: str, cold: Callable[[Module], str], *arguments: Value) -> Value:
    return b.call(arguments[0].type, b.module.share(f"{name}_cold", cold), *arguments)


log = _guarded("log", _log)
log2 = _guarded("log2", _log2)
log10 = _guarded("log10", _log10)


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
    return b.select(b.compare("uno", x, x), x, value)
