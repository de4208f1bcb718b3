"""Derives the polynomials of the 16-bit functions: ``python tools/fit_short_math.py`` rewrites ``short.json``. Needs SciPy.

A 16-bit float has few operands, so a polynomial needs no small error: it has to lie between the two numbers at which the rounding of
each operand's result changes. That is a linear program, for each interval where there are several, whose solution is the polynomial with
the most room. What it rounds to is what the f32 function gives, which is computed with the compiled f32 kernel itself. Where the room is
less than the roundings of the evaluation, neighbouring coefficients are tried until every operand's result is right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog

from benchmarks.sweep.cases import UNARY, Kernel
from pypto_dsl.codegen.llvm.bfloat import UNTIED
from pypto_dsl.codegen.llvm.math.exponential import LOG2_E
from pypto_dsl.codegen.llvm.math.short import (
    LOGARITHMS,
    ONE_OVER_PI,
    PI_HIGH,
    PI_LOW,
    SIGNIFICAND_SHIFT,
    TANH_LIMIT,
    TANH_SHIFT,
)
from pypto_dsl.codegen.llvm.math.tables import ROUNDING
from pypto_dsl.codegen.llvm.math.trigonometric import REACH
from pypto_dsl.compiler.dtypes import BY_NAME

TARGET = Path(__file__).resolve().parent.parent / "pypto_dsl/codegen/llvm/math/short.json"
Array = np.ndarray[Any, np.dtype[Any]]
INTERVALS = 32
BESIDE_ZERO = {"f16": 2**-7, "bf16": 2**-9}  # up to here a function is x, or x/2, but for its rounding
ROOM = 64  # ulp of f32 between a polynomial and the bounds of a rounding: more is of no use
TRIALS = 20000
STEPS = (2, 3, 8, 64, 256, 1024)  # ulp by which coefficients are changed, by degree


def operands(dtype: str) -> Array:
    """All finite numbers of a 16-bit dtype, in f32."""
    found: Array = np.arange(1 << 16, dtype=np.uint16).view(BY_NAME[dtype].numpy).astype(np.float32)
    return found[np.isfinite(found)]


def function(case: str, x: Array) -> Array:
    """The f32 function's results."""
    padded = np.concatenate([x, np.zeros((1 << 16) - x.size, np.float32)])
    return Kernel(UNARY[case], "f32", padded.size)(padded)[:x.size].copy()


def roundings(results: Array, dtype: str) -> tuple[Array, Array]:
    """Between which magnitudes results round as the f32 ones do; of one that is halfway itself, that are rounded to f32 first."""
    kind = BY_NAME[dtype].numpy
    size = np.abs(results)
    magnitude = size.astype(kind)
    bits = magnitude.view(np.uint16).astype(np.int32)
    exact, above = magnitude.astype(np.float64), (bits + 1).astype(np.uint16).view(kind).astype(np.float64)
    below = np.where(bits == 0, -above, np.maximum(bits - 1, 0).astype(np.uint16).view(kind).astype(np.float64))
    low, high, half = (exact + below) / 2, (exact + above) / 2, np.spacing(size).astype(np.float64) / 2
    return np.where(low == size, low - half, low), np.where(high == size, high + half, high)


def between(x: Array, low: Array, high: Array, size: Array, powers: Sequence[int], fixed: dict[int, float]) -> tuple[Array, float]:
    """Coefficients of the polynomial through all [low, high] with the most room, and the room, in units of the results' ``size``."""
    reach, unit = np.abs(x).max(), size * 2.0**-23
    basis = np.stack([(x / reach) ** k for k in powers], 1) * (size.max() / unit)[:, None]
    ones = np.ones((len(x), 1))
    limits = [(c * reach**k / size.max(),) * 2 if (c := fixed.get(k)) is not None else (None, None) for k in powers]
    found = linprog([0.0] * len(powers) + [-1.0], A_ub=np.block([[-basis, ones], [basis, ones]]),
                    b_ub=np.concatenate([-low / unit, high / unit]), bounds=[*limits, (None, ROOM)], method="highs")
    assert found.status == 0, found.message
    coefficients: Array = found.x[:-1] * size.max() / reach ** np.array(powers, float)
    return coefficients.astype(np.float32), float(found.x[-1])


def roomy(x: Array, low: Array, high: Array, size: Array, degree: int, fixed: dict[int, float]) -> Array:
    """Coefficients by `between` whose room is more than what their evaluation loses."""
    coefficients, room = between(x, low, high, size, range(degree + 1), fixed)
    assert room > 1, f"no polynomial of degree {degree}: {room} ulp of room"
    return coefficients


def fma(a: Array, b: Array | float, c: Array | float) -> Array:
    """``a * b + c`` of f32 numbers, as good as rounded once."""
    with np.errstate(invalid="ignore", over="ignore"):
        result: Array = (a.astype(np.float64) * b + c).astype(np.float32)
    return result


def horner(x: Array, coefficients: Sequence[float]) -> Array:
    """A polynomial in f32, as the kernels evaluate it."""
    result = np.full(x.shape, coefficients[-1], np.float32)
    for c in reversed(coefficients[:-1]):
        result = fma(result, x, c)
    return result


def searched(start: Array, wrong: Callable[[list[float]], int], fixed: Sequence[int] = ()) -> list[float]:
    """Coefficients beside ``start`` of which no operand's result is ``wrong``."""
    random = np.random.default_rng(1)
    best = [float(c) for c in start]
    count = wrong(best)
    for _ in range(TRIALS):
        if not count:
            return best
        steps = [0 if k in fixed or random.random() < 0.5 else int(random.integers(-STEPS[min(k, 5)], STEPS[min(k, 5)] + 1))
                 for k in range(len(best))]
        tried = [float((np.float32(c).view(np.int32) + np.int32(s)).view(np.float32)) for c, s in zip(best, steps, strict=True)]
        now = wrong(tried)
        if now <= count:
            best, count = tried, now
    raise AssertionError(f"{count} results are wrong")


def rounded(values: Array, dtype: str, case: str) -> Array:
    """The bits of a function's f32 results in a 16-bit dtype, as the kernels round them."""
    if dtype == "bf16" and case in UNTIED:
        return ((values.view(np.uint32) + np.uint32(0x8000)) >> 16).astype(np.uint16)
    with np.errstate(over="ignore"):
        bits: Array = values.astype(BY_NAME[dtype].numpy).view(np.uint16)
    return bits


def judge(case: str, expected: Array, dtype: str, value: Callable[[list[float], Array], Array],
          close: Array) -> Callable[[list[float]], int]:
    """A count of the results that ``value`` of coefficients and operands' numbers gives wrong; only if those that are ``close`` to a
    bound are right, all are counted."""
    with np.errstate(over="ignore"):
        bits = expected.astype(BY_NAME[dtype].numpy).view(np.uint16)

    def count(coefficients: list[float], which: Array) -> int:
        return int((rounded(value(coefficients, which), dtype, case) != bits[which]).sum())

    return lambda coefficients: count(coefficients, close) or count(coefficients, np.arange(bits.size))


def tables(index: Array, fit: Callable[[Array, int], Array]) -> list[list[float]]:
    """One table per coefficient from the fits of all intervals."""
    return np.stack([fit(index == i, i) for i in range(INTERVALS)], 1).astype(float).tolist()  # type: ignore[no-any-return]


def tanh(dtype: str, degree: int) -> dict[str, Any]:
    """tanh a around a = |x|: the intervals are those of the bits of a + 1/2."""
    x = operands(dtype)
    x = x[x > 0]
    low, high = roundings(function("tanh", x), dtype)
    a = np.minimum(x, np.float32(TANH_LIMIT))
    index = ((a + np.float32(0.5)).view(np.uint32) >> TANH_SHIFT) & (INTERVALS - 1)
    first = index[0]

    def fit(here: Array, number: int) -> Array:
        if number == first:  # beside 0 nothing but the factor 1 keeps every number
            here = here & (x > BESIDE_ZERO[dtype])
        size = np.tanh(x[here].astype(float))
        return roomy(a[here].astype(float), low[here], high[here], size, degree, {0: 0.0, 1: 1.0} if number == first else {})

    return {"tables": tables(index, fit)}


def gated(case: str, dtype: str, degree: int, width: float) -> dict[str, Any]:
    """x g(x) by t = a g(-a) around the centres of intervals of a = |x|: both x - t and -t have to be right."""
    x = operands(dtype)
    x = x[(x != 0) & (x > -31.4 * width)]
    low, high = roundings(function(case, x), dtype)
    a = np.abs(x).astype(float)
    low, high = np.where(x < 0, low, a - high), np.where(x < 0, high, a - low)
    inside = np.minimum(a, 31.4 * width).astype(np.float32)
    tail = np.abs(function(case, -inside)).astype(float)
    low, high = np.maximum(low, -1000 * tail), np.minimum(high, 1000 * tail)  # for large a any small number will do
    size = np.clip(np.abs(function(case, x)), tail, 1000 * tail)  # the difference from x is rounded too
    shifted = (inside * np.float64(np.float32(1 / width)) + ROUNDING).astype(np.float32)
    index = shifted.view(np.uint32) & (INTERVALS - 1)
    t = inside - (shifted - np.float32(ROUNDING)).astype(float) * width

    def fit(here: Array, number: int) -> Array:
        if number == 0:  # beside 0 nothing but the factor 1/2 keeps every number
            here = here & (a > BESIDE_ZERO[dtype])
        return roomy(t[here], low[here], high[here], size[here], degree, {0: 0.0, 1: 0.5} if number == 0 else {})

    return {"width": width, "tables": tables(index, fit)}


def power(case: str, dtype: str, degree: int, factor: float) -> list[float]:
    """2^y around the nearest integer to y = factor x."""
    x = operands(dtype)
    expected = function(case, x)
    y = fma(x, np.float64(np.float32(factor)), 0.0)
    y = np.clip(y, np.float32(-1e30), np.float32(1e30))
    n = np.clip(np.rint(y), -400, 400).astype(np.int32)
    f = y - np.rint(y)
    inside = (np.abs(y) < 200) & (expected > 0) & np.isfinite(expected.astype(BY_NAME[dtype].numpy).astype(np.float32))
    low, high = roundings(expected[inside], dtype)
    size = np.maximum(np.exp2(f[inside].astype(float)), np.exp2(-126.0 - n[inside]))
    low, high = (bound * np.exp2(-n[inside].astype(float)) for bound in (low, high))
    start, _ = between(f[inside].astype(float), low, np.minimum(high, 1e6), size, range(degree + 1), {})

    def value(coefficients: list[float], which: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.ldexp(horner(f[which], coefficients).astype(float), n[which]).astype(np.float32)

    fitted = horner(f[inside], start.tolist()).astype(float)
    close = np.flatnonzero(inside)[np.minimum(fitted - low, high - fitted) < 12 * 2.0**-23 * size]
    return searched(start, judge(case, expected, dtype, value, close))


def logarithm(case: str, dtype: str, degree: int) -> dict[str, Any]:
    """The significand's logarithm, to which the exponent's is added, by intervals of the significand."""
    x = operands(dtype)
    x = x[x > 0]
    expected = function(case, x)
    low, high = roundings(expected, dtype)
    low, high = np.where(expected < 0, -high, low), np.where(expected < 0, -low, high)
    fraction, exponent = np.frexp(x)
    m, e = 2 * fraction, (exponent - 1).astype(np.float32)
    r = m - np.float32(1)
    index = (m.view(np.uint32) >> SIGNIFICAND_SHIFT) & (INTERVALS - 1)
    unit = np.float64(np.float32(LOGARITHMS[case]))
    low, high = low - e * unit, high - e * unit

    def fit(here: Array, number: int) -> Array:
        size = np.maximum(np.abs(expected[here]), np.maximum(LOGARITHMS[case] * np.log2(m[here]), 2.0**-9)).astype(float)
        inner = expected[here] != 0
        fixed = {} if inner.all() else {0: 0.0}
        start, _ = between(r[here][inner].astype(float), low[here][inner], high[here][inner], size[inner], range(degree + 1), fixed)

        def value(coefficients: list[float], which: Array) -> Array:
            return fma(e[here][which], unit, horner(r[here][which], coefficients))

        return np.array(searched(start, judge(case, expected[here], dtype, value, np.arange(0)), list(fixed)), np.float32)

    return {"tables": tables(index, fit)}


def angle(case: str, dtype: str, terms: int) -> list[float]:
    """sin r = r (1 + r^2 P(r^2)) of angles less multiples of half a turn."""
    x = operands(dtype)
    x = x[np.abs(x) < REACH]
    expected = function(case, x)
    a, back = (x, 0.0) if case == "sin" else (np.abs(x), 0.5)
    turned = fma(a, np.float64(np.float32(ONE_OVER_PI)), 0.0 if case == "sin" else -0.5)
    n = np.rint(turned)
    turns, whole = n + np.float32(back), -a if case == "cos" else a
    sign = 1.0 if case == "cos" else -1.0
    r = fma(turns, sign * PI_LOW, fma(turns, sign * PI_HIGH, whole))
    odd = n.astype(np.int64) & 1 == 1
    low, high = roundings(expected, dtype)
    beside = np.abs(r) > 2.0**-12
    reduced = np.abs(r[beside]).astype(float)
    size = np.abs(expected[beside]).astype(float)
    start, _ = between(reduced, low[beside], high[beside], size, [1, *range(3, 2 * terms + 3, 2)], {1: 1.0})

    def value(coefficients: list[float], which: Array) -> Array:
        angle, square = r[which], r[which] * r[which]
        rest = horner(square, coefficients).astype(float)
        sine = angle * fma(square, rest, 1.0) if case == "sin" else fma(angle * square, rest, angle)
        return np.where(odd[which], -sine, sine)

    fitted = np.abs(value(start[1:].tolist(), np.flatnonzero(beside))).astype(float)
    close = np.flatnonzero(beside)[np.minimum(fitted - low[beside], high[beside] - fitted) < 12 * 2.0**-23 * size]
    return searched(start[1:], judge(case, expected, dtype, value, close))


def main() -> None:
    """Fit and write the coefficients by function and dtype; those of intervals are tables, one per degree."""
    found = {
        "tanh": {"f16": tanh("f16", 3), "bf16": tanh("bf16", 2)},
        "gelu_erf": {"f16": gated("gelu", "f16", 4, 21 / 128), "bf16": gated("gelu", "bf16", 2, 11 / 64)},
        "gelu_tanh": {"f16": gated("gelu_tanh", "f16", 4, 19 / 128), "bf16": gated("gelu_tanh", "bf16", 3, 5 / 32)},
        "silu": {"f16": gated("silu", "f16", 4, 15 / 32), "bf16": gated("silu", "bf16", 3, 13 / 32)},
        "exp": {"f16": power("exp", "f16", 5, LOG2_E), "bf16": power("exp", "bf16", 4, LOG2_E)},
        "exp2": {"f16": power("exp2", "f16", 5, 1.0), "bf16": power("exp2", "bf16", 4, 1.0)},
        **{name: {"f16": logarithm(name, "f16", 3 if name == "log" else 2), "bf16": logarithm(name, "bf16", 2)} for name in LOGARITHMS},
        "sin": {"f16": angle("sin", "f16", 4), "bf16": angle("sin", "bf16", 3)},
        "cos": {"f16": angle("cos", "f16", 4), "bf16": angle("cos", "bf16", 3)},
    }
    TARGET.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
