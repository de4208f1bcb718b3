"""Derives the constants of the CPU's fast forms: ``python tools/fit_fast_math.py`` rewrites ``fast.json``.

Method: that of ``fit_cpu_math.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np
from fit_cpu_math import LN2, f32, fit, intervals, log_table, without_pole

TARGET = Path(__file__).resolve().parent.parent / "pypto_dsl/codegen/llvm/math/fast.json"


def saturating(name: str, f: Callable[[mp.mpf], mp.mpf], width: float, degree: int) -> dict[str, object]:
    """Polynomials around 8 centres of a function that grows from 0 to 1; at the limit, next to the end of the last
    interval, it is 1 in float32 arithmetic."""
    found = intervals(name, f, width, degree, 8)
    limit = 7.4375 * width
    *lower, value = (np.float32(column[-1]) for column in found["tables"])  # type: ignore[attr-defined]
    for c in reversed(lower):
        value = np.float32(float(value) * (limit - 7 * width) + float(c))  # the product is exact
    assert value == 1, name
    return {**found, "limit": limit}


def power_tables() -> dict[str, object]:
    """pow: log2 x by 16 intervals of the significand m in [1, 2), and 2^f - 1.

    c next to ``k``/m and ``k`` = 23/16 next to log2 e make q = m c - k exact, or nearly so; log2 (m) = log2 (k / c) + q + q P(q).
    c is k at the lower end and k/2 at the upper one, so that nothing cancels beside x = 1.
    """
    k, grid = mp.mpf(23) / 16, [i / 32 for i in range(23, 47)]
    table: dict[str, list[float]] = {"c": [], "hi": [], "lo": []}
    low, high = 0.0, 0.0
    for i in range(16):
        a, b = 1 + i / 16, 1 + (i + 1) / 16 - 2**-23
        c = {0: float(k), 15: float(k / 2)}.get(i) or min(grid, key=lambda c: max(abs(a * c - k), abs(b * c - k)))
        value = mp.log(k / c, 2)
        upper = mp.nint(value * 2**16) / 2**16
        table["c"].append(c)
        table["hi"].append(float(upper))
        table["lo"].append(float(f32(value - upper)))
        low, high = min(low, a * c - float(k)), max(high, b * c - float(k))
    rest = without_pole(lambda q: (mp.log1p(q / k) / LN2 - q) / q, 1 / LN2 / k - 1)
    exponential = without_pole(lambda f: mp.expm1(f * LN2) / f, LN2)
    half = mp.mpf("0.0315")
    return {"k": float(k), **table, "rest": fit("power_rest", rest, lambda q: mp.mpf(1), range(6), low, high),
            "exponential": fit("power_exp", exponential, abs, range(3), -half, half)}


def main() -> None:
    out: dict[str, object] = {}
    half = LN2 / 2 * mp.mpf("1.002")
    one = mp.mpf(1)
    out["exp"] = fit("exp", mp.exp, lambda r: mp.exp(-r), range(6), -half, half, {0: one})
    exp2m1 = without_pole(lambda f: mp.expm1(f * LN2) / f, LN2)
    out["exp2m1"] = fit("exp2m1", exp2m1, lambda f: abs(f) + mp.mpf("1e-2"), range(5), "-0.501", "0.501")
    table = log_table()
    radius = mp.mpf(table["radius"]) * mp.mpf("1.01")  # type: ignore[arg-type]
    c = [mp.mpf(v) for v in table["c"]]  # type: ignore[union-attr]
    bases = {"log": one, "log2": LN2, "log10": mp.log(10)}
    for name, base in bases.items():
        values = without_pole(lambda r, base=base: mp.log1p(r) / r / base, 1 / base)
        out[name] = {"unit": float(np.float32(float(LN2 / base))), "table": [float(np.float32(float(-mp.log(v) / base))) for v in c],
                     "polynomial": fit(name, values, lambda r: one, range(4), -radius, radius)}
    # sin on [-pi/2, pi/2]
    quarter = (mp.pi / 2 * mp.mpf("1.001")) ** 2
    sine = without_pole(lambda s: (mp.sin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, -one / 6)
    out["sin_rest"] = fit("sin_rest", sine, lambda s: s / mp.sin(mp.sqrt(s)) * mp.sqrt(s) if s > 0 else mp.mpf("1e-6"), range(4),
                          mp.mpf("1e-6"), quarter)
    expm1 = without_pole(lambda r: (mp.expm1(r) - r) / r**2, one / 2)
    out["expm1_rest"] = fit("expm1_rest", expm1, lambda r: abs(r) + mp.mpf("1e-2"), range(5), -half, half)
    out["erf"] = saturating("erf", mp.erf, 17 / 32, 6)
    out["gelu_erf_intervals"] = intervals("gelu_erf", lambda a: a * mp.erfc(a / mp.sqrt(2)) / 2, 43 / 256, 5)
    twice = 2 * mp.sqrt(2 / mp.pi)
    tangent = lambda a: a / (1 + mp.exp(twice * (a + mp.mpf("0.044715") * a**3)))  # noqa: E731
    out["gelu_tanh_intervals"] = intervals("gelu_tanh", tangent, 77 / 512, 5)
    out["power"] = power_tables()
    TARGET.write_text(json.dumps(out, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
