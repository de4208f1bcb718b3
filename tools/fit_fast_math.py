"""Derives the constants of the CPU's fast forms: ``python tools/fit_fast_math.py`` rewrites ``fast.json``.

Method: that of ``fit_cpu_math.py``; quotients of polynomials by Lawson's iteration on ``P - f Q``, weighted by the last denominator (Loeb).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np
from fit_cpu_math import LN2, fit, intervals, log_table, without_pole

TARGET = Path(__file__).resolve().parent.parent / "pypto_dsl/codegen/llvm/math/fast.json"


def rational(name: str, f: Callable[[mp.mpf], mp.mpf], numerator: int, denominator: int, high: float,
             factor: float = 1.0) -> dict[str, object]:
    """float32 coefficients of P(s)/Q(s) close to ``f`` on [0, high], of these degrees, both 1 at 0 as ``f`` is, by relative errors.

    ``x P(x^2)/Q(x^2)`` times ``factor`` is a function that reaches 1.
    """
    s = high / 2 * (1 - np.cos(np.pi * np.arange(2001) / 2000))
    exact = np.array([float(f(mp.mpf(x))) for x in s])
    t = s / high
    above, below = [t**k for k in range(1, numerator + 1)], [-exact * t**k for k in range(1, denominator + 1)]
    basis, lawson, q = np.stack([*above, *below], 1), np.ones(len(s)), np.ones(len(s))
    best, chosen = np.inf, np.zeros(basis.shape[1])
    for _ in range(400):
        weight = np.sqrt(lawson) / (q * exact)
        c = np.linalg.lstsq(basis * weight[:, None], (exact - 1) * weight, rcond=None)[0]
        q = 1 + sum(c[numerator + k] * t ** (k + 1) for k in range(denominator))
        error = np.abs((1 + sum(c[k] * t ** (k + 1) for k in range(numerator))) / q / exact - 1)
        if error.max() < best:
            best, chosen = error.max(), c.copy()
        lawson *= error / error.max() + 1e-6
        lawson /= lawson.max()
    scaled = [float(np.float32(c / high ** (k % numerator + 1 if k < numerator else k - numerator + 1))) for k, c in enumerate(chosen)]
    print(f"{name:14s} degrees {numerator}/{denominator}: {np.log2(best):.2f}")
    found = {"numerator": [1.0, *scaled[:numerator]], "denominator": [1.0, *scaled[numerator:]]}
    return {**found, "limit": limit(factor, found, np.float32(np.sqrt(high) * 0.9))}


def limit(factor: float, found: dict[str, list[float]], x: np.float32) -> float:
    """The first float32 number from ``x`` on of which ``factor x P(x^2)/Q(x^2)`` is at least 1 in float32 arithmetic."""

    def horner(s: np.float32, coefficients: list[float]) -> np.float32:
        value = np.float32(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = np.float32(float(value) * float(s) + c)  # the product is exact
        return value

    def quotient(x: np.float32) -> np.float32:
        s = np.float32(x * x)
        return np.float32(np.float32(np.float32(x * np.float32(factor)) * horner(s, found["numerator"])) / horner(s, found["denominator"]))

    while quotient(x) < 1:
        x = np.nextafter(x, np.float32(np.inf))
    print(f"{'':14s} 1 from {x:.9g} on")
    return float(x)


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
    out["tanh"] = rational("tanh", lambda s: mp.tanh(mp.sqrt(s)) / mp.sqrt(s) if s else one, 4, 4, 9.05**2)
    # erf(x) = x 2/sqrt(pi) P/Q
    scale = mp.sqrt(mp.pi) / 2
    out["erf"] = rational("erf", lambda s: scale * mp.erf(mp.sqrt(s)) / mp.sqrt(s) if s else one, 5, 5, 3.8**2, float(1 / scale))
    out["gelu_erf_intervals"] = intervals("gelu_erf", lambda a: a * mp.erfc(a / mp.sqrt(2)) / 2, 11 / 64, 5)
    twice = 2 * mp.sqrt(2 / mp.pi)
    tangent = lambda a: a / (1 + mp.exp(twice * (a + mp.mpf("0.044715") * a**3)))  # noqa: E731
    out["gelu_tanh_intervals"] = intervals("gelu_tanh", tangent, 5 / 32, 5)
    TARGET.write_text(json.dumps(out, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
