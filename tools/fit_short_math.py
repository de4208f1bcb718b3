"""Derives the polynomials of the 16-bit functions: ``python tools/fit_short_math.py`` rewrites ``short.json``. Needs SciPy.

A 16-bit float has few operands, so a polynomial needs no small error: it has to lie between the two numbers at which the rounding of
each operand's result changes. That is a linear program per interval, whose solution is the polynomial with the most room. What it
rounds to is what the f32 function gives, which is computed with the compiled f32 kernel itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog

from benchmarks.sweep.cases import UNARY, Kernel
from pypto_dsl.codegen.llvm.math.short import TANH_LIMIT, TANH_SHIFT
from pypto_dsl.codegen.llvm.math.tables import ROUNDING
from pypto_dsl.compiler.dtypes import BY_NAME

TARGET = Path(__file__).resolve().parent.parent / "pypto_dsl/codegen/llvm/math/short.json"
Array = np.ndarray[Any, np.dtype[Any]]
INTERVALS = 32
BESIDE_ZERO = {"f16": 2**-7, "bf16": 2**-9}  # up to here a function is x, or x/2, but for its rounding
ROOM = 64  # ulp of f32 between a polynomial and the bounds of a rounding: more is of no use


def operands(dtype: str) -> Array:
    """All finite numbers of a 16-bit dtype, in f32."""
    found: Array = np.arange(1 << 16, dtype=np.uint16).view(BY_NAME[dtype].numpy).astype(np.float32)
    return found[np.isfinite(found)]


def magnitudes(case: str, x: Array) -> Array:
    """Of the f32 function's results."""
    padded = np.concatenate([x, np.zeros((1 << 16) - x.size, np.float32)])
    return np.abs(Kernel(UNARY[case], "f32", padded.size)(padded)[:x.size])


def roundings(case: str, dtype: str, x: Array) -> tuple[Array, Array]:
    """Between which magnitudes the f32 function's results round as they do."""
    kind = BY_NAME[dtype].numpy
    magnitude = magnitudes(case, x).astype(kind)
    bits = magnitude.view(np.uint16).astype(np.int32)
    exact, above = magnitude.astype(np.float64), (bits + 1).astype(np.uint16).view(kind).astype(np.float64)
    below = np.where(bits == 0, -above, np.maximum(bits - 1, 0).astype(np.uint16).view(kind).astype(np.float64))
    return (exact + below) / 2, (exact + above) / 2


def between(x: Array, low: Array, high: Array, size: Array, degree: int, fixed: dict[int, float]) -> Array:
    """Coefficients of the polynomial through all [low, high] with the most room, in units of the results' ``size``."""
    reach, unit = np.abs(x).max(), size * 2.0**-23
    basis = np.stack([(x / reach) ** k for k in range(degree + 1)], 1) * (size.max() / unit)[:, None]
    ones = np.ones((len(x), 1))
    limits = [(c * reach**k / size.max(),) * 2 if (c := fixed.get(k)) is not None else (None, None) for k in range(degree + 1)]
    found = linprog([0.0] * (degree + 1) + [-1.0], A_ub=np.block([[-basis, ones], [basis, ones]]),
                    b_ub=np.concatenate([-low / unit, high / unit]), bounds=[*limits, (None, ROOM)], method="highs")
    room = found.x[-1] if found.status == 0 else -np.inf
    assert room > 1, f"no polynomial of degree {degree}: {room} ulp of room"
    coefficients: Array = found.x[:-1] * size.max() / reach ** np.arange(degree + 1)
    return coefficients.astype(np.float32)


def tables(index: Array, fit: Callable[[Array, int], Array]) -> list[list[float]]:
    """One table per coefficient from the fits of all intervals."""
    return np.stack([fit(index == i, i) for i in range(INTERVALS)], 1).astype(float).tolist()  # type: ignore[no-any-return]


def tanh(dtype: str, degree: int) -> dict[str, Any]:
    """tanh a around a = |x|: the intervals are those of the bits of a + 1/2."""
    x = operands(dtype)
    x = x[x > 0]
    low, high = roundings("tanh", dtype, x)
    a = np.minimum(x, np.float32(TANH_LIMIT))
    index = ((a + np.float32(0.5)).view(np.uint32) >> TANH_SHIFT) & (INTERVALS - 1)
    first = index[0]

    def fit(here: Array, number: int) -> Array:
        if number == first:  # beside 0 nothing but the factor 1 keeps every number
            here = here & (x > BESIDE_ZERO[dtype])
        size = np.tanh(x[here].astype(float))
        return between(a[here].astype(float), low[here], high[here], size, degree, {0: 0.0, 1: 1.0} if number == first else {})

    return {"tables": tables(index, fit)}


def gated(case: str, dtype: str, degree: int, width: float) -> dict[str, Any]:
    """x g(x) by t = a g(-a) around the centres of intervals of a = |x|: both x - t and -t have to be right."""
    x = operands(dtype)
    x = x[(x != 0) & (x > -31.4 * width)]
    low, high = roundings(case, dtype, x)
    a = np.abs(x).astype(float)
    low, high = np.where(x < 0, low, a - high), np.where(x < 0, high, a - low)
    inside = np.minimum(a, 31.4 * width).astype(np.float32)
    tail = magnitudes(case, -inside).astype(float)
    low, high = np.maximum(low, -1000 * tail), np.minimum(high, 1000 * tail)  # for large a any small number will do
    size = np.clip(magnitudes(case, x), tail, 1000 * tail)  # the difference from x is rounded too
    shifted = (inside * np.float64(np.float32(1 / width)) + ROUNDING).astype(np.float32)
    index = shifted.view(np.uint32) & (INTERVALS - 1)
    t = inside - (shifted - np.float32(ROUNDING)).astype(float) * width

    def fit(here: Array, number: int) -> Array:
        if number == 0:  # beside 0 nothing but the factor 1/2 keeps every number
            here = here & (a > BESIDE_ZERO[dtype])
        return between(t[here], low[here], high[here], size[here], degree, {0: 0.0, 1: 0.5} if number == 0 else {})

    return {"width": width, "tables": tables(index, fit)}


def main() -> None:
    """Fit and write the tables by function and dtype, one table per coefficient."""
    found = {
        "tanh": {"f16": tanh("f16", 3), "bf16": tanh("bf16", 2)},
        "gelu_erf": {"f16": gated("gelu", "f16", 4, 21 / 128), "bf16": gated("gelu", "bf16", 2, 11 / 64)},
        "gelu_tanh": {"f16": gated("gelu_tanh", "f16", 4, 19 / 128), "bf16": gated("gelu_tanh", "bf16", 3, 5 / 32)},
        "silu": {"f16": gated("silu", "f16", 4, 15 / 32), "bf16": gated("silu", "bf16", 3, 13 / 32)},
    }
    TARGET.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
