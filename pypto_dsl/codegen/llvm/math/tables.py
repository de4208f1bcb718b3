"""Vector primitives that the math functions share: range clamps, rounding by magic number, scaling by 2^n, table look-up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from pypto_dsl.codegen.llvm.builder import I32, PTR, Builder, Operand, Type, Value

ROUNDING = 12582912.0  # 1.5 * 2^23: adding it leaves an f32's nearest integer (|x| < 2^22) in the low mantissa bits
ROUNDING_BITS = 0x4B400000
NAN = float("nan")
INFINITY = float("inf")


SINGLE = "coefficients.json"  # what functions in f32 are made of; ``tools/fit_cpu_math.py`` derives and writes it


@cache
def coefficients(file: str = SINGLE) -> dict[str, Any]:
    """Fitted polynomials and tables by name."""
    data: dict[str, Any] = json.loads(files("pypto_dsl.codegen.llvm.math").joinpath(file).read_text("utf-8"))
    return data


def polynomial(name: str, file: str = SINGLE) -> list[float]:
    """The coefficients of a fitted polynomial, lowest degree first, or a constant's parts."""
    result: list[float] = coefficients(file)[name]
    return result


def constant(name: str, file: str = SINGLE) -> float:
    """A fitted or rounded constant."""
    result: float = coefficients(file)[name]
    return result


def constant_pair(name: str) -> tuple[float, float]:
    """A constant as the sum of two f32 numbers."""
    high, low = polynomial(name)
    return high, low


def clamp(b: Builder, x: Value, low: float, high: float) -> Value:
    """``x`` limited to [low, high]; a NaN stays (the comparisons are ordered and false for it)."""
    return at_least(b, at_most(b, x, high), low)


def at_least(b: Builder, x: Value, low: float) -> Value:
    """``x``, but not below ``low``; a NaN stays."""
    return b.select(b.compare("olt", x, low), low, x)


def at_most(b: Builder, x: Value, high: float) -> Value:
    """``x``, but not above ``high``; a NaN stays."""
    return b.select(b.compare("ogt", x, high), high, x)


def magnitude(b: Builder, x: Value) -> Value:
    """``x`` without its sign."""
    return b.intrinsic("llvm.fabs", x)


def copysign(b: Builder, x: Operand, sign: Value) -> Value:
    """``x`` with the sign of ``sign``."""
    return b.intrinsic("llvm.copysign", b.value(sign.type, x), sign)


def nearest(b: Builder, shifted: Value) -> Value:
    """The integer n (as a float) of ``shifted = value + ROUNDING``."""
    return shifted - ROUNDING


def scale(b: Builder, x: Value, shifted: Value, number: Value) -> Value:
    """``x * 2^n`` rounded once, for |n| <= 252, where ``shifted = n + ROUNDING`` and ``number = n``.

    Without an instruction for it: two exact powers whose product is 2^n; only the last product can round, because ``x``
    lies in [2^-60, 2^60] at every caller.
    """
    if b.level.scales_by_exponent:
        return avx512(b, "scalef", x, number)
    n = b.bits(shifted) - ROUNDING_BITS
    first = n >> 1
    return x * power_of_two(b, first) * power_of_two(b, n - first)


def avx512(b: Builder, name: str, x: Value, *operands: Value) -> Value:
    """An instruction of AVX-512 on f32 vectors, without a mask; those of 512 bits say how they round."""
    lanes = x.type.lanes
    rounding = [b.constant(I32, 4)] if lanes == 16 else []
    unmasked = (b.constant(x.type, 0.0), b.constant(Type(f"i{max(8, lanes)}"), -1))
    return b.call(x.type, f"llvm.x86.avx512.mask.{name}.ps.{32 * lanes}", x, *operands, *unmasked, *rounding)


def power_of_two(b: Builder, n: Value) -> Value:
    """``2^n`` for integer n in [-126, 127]."""
    return b.from_bits((n + 127) << 23, "float")


def power_from_shifted(b: Builder, shifted: Value) -> Value:
    """``2^n`` from ``shifted = n + ROUNDING``, n in [-126, 127]: the magic number's own bits leave at the top."""
    return b.from_bits((b.bits(shifted) << 23) + 0x3F800000, "float")


def look_up(b: Builder, name: str, numbers: Sequence[float], index: Value) -> Value:
    """``numbers[index & (len - 1)]`` per lane; ``numbers`` has 8, 16 or 32 entries."""
    if b.level.permutes_tables and len(numbers) == 8:
        numbers = [*numbers, *numbers]
    count = len(numbers)
    if b.level.permutes_tables and count == 16:
        return b.call(index.type.of("float"), "llvm.x86.avx512.permvar.sf.512", b.vector("float", numbers), index)
    if b.level.permutes_tables and count == 32:
        low, high = b.vector("float", numbers[:16]), b.vector("float", numbers[16:])
        return b.call(low.type, "llvm.x86.avx512.vpermi2var.ps.512", low, index, high)
    if b.level.permutes_eights:
        return _by_eights(b, numbers, index)
    table = b.module.table(name, "float", numbers)
    wrapped = index & (count - 1)
    type = index.type.of("float")
    result = b.named(type, "poison")
    for lane in range(type.lanes):
        entry = b.offset(b.named(Type("ptr"), table), b.emit(Type("i64"), f"zext i32 {b.extract(wrapped, lane)} to i64"), "float")
        result = b.insert(result, b.load(Type("float"), entry), lane)
    return result


def _by_eights(b: Builder, numbers: Sequence[float], index: Value) -> Value:
    """Each eight entries by a permutation, and of the results the one that the index's further bits choose."""
    parts = [b.call(index.type.of("float"), "llvm.x86.avx2.permps", b.vector("float", numbers[k:k + 8]), index)
             for k in range(0, len(numbers), 8)]
    bit = 3
    while len(parts) > 1:
        upper = b.compare("slt", index << (31 - bit), 0)
        parts = [b.select(upper, high, low) for low, high in zip(parts[::2], parts[1::2], strict=True)]
        bit += 1
    return parts[0]


def by_interval(b: Builder, name: str, tables: Sequence[Sequence[float]], x: Value, index: Value) -> Value:
    """A polynomial whose coefficients, lowest degree first, are those of the interval ``index``."""
    *lower, result = (look_up(b, f"{name}_{k}", numbers, index) for k, numbers in enumerate(tables))
    for coefficient in reversed(lower):
        result = b.fma(result, x, coefficient)
    return result


def look_up_wide(b: Builder, name: str, numbers: Sequence[float], index: Value) -> Value:
    """f64 ``numbers[index & (len - 1)]`` per lane, from memory; ``len`` is a power of two."""
    table = b.named(PTR, b.module.table(name, "double", numbers))
    type = index.type.of("double")
    pointers = b.emit(index.type.of("ptr"), f"getelementptr double, ptr {table}, {(index & (len(numbers) - 1)).typed}")
    align, every = b.constant(I32, type.bytes), b.constant(type.of("i1"), 1)
    return b.call(type, f"llvm.masked.gather.{type.mangled}.{pointers.type.mangled}", pointers, align, every, b.constant(type, 0.0))


def two_sum_ordered(b: Builder, large: Value, small: Value) -> tuple[Value, Value]:
    """Sum and its rounding error, exact when |large| >= |small| or large is 0 (Dekker)."""
    total = large + small
    return total, small - (total - large)


def two_sum(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """Sum and its rounding error for operands of any order (Knuth)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def two_product(b: Builder, x: Operand, y: Value) -> tuple[Value, Value]:
    """Product and its rounding error (exact unless it underflows)."""
    product = b.value(y.type, x) * y
    return product, b.fma(x, y, -product)
