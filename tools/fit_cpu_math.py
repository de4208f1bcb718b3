"""Derives the constants of the CPU math library: ``python tools/fit_cpu_math.py`` rewrites ``coefficients.json``.

Method: weighted minimax on mpmath samples by Lawson's iteration; coefficients are rounded to float32 one at a time from the
lowest degree, and the rest is refitted after each rounding, so that later coefficients absorb the rounding of earlier ones.
Each line printed is one fit with log2 of its largest weighted error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 50
TARGET = Path(__file__).resolve().parent.parent / "pypto_dsl/codegen/llvm/math/coefficients.json"
Function = Callable[[mp.mpf], mp.mpf]
LN2 = mp.log(2)


def f32(x: mp.mpf) -> mp.mpf:
    """``x`` rounded to float32 (through double; the double rounding is harmless here: fits absorb it)."""
    return mp.mpf(float(np.float32(float(x))))


def split(x: mp.mpf, parts: int, bits: int = 24) -> list[float]:
    """``x`` as a sum of float32 numbers; every part but the last has ``bits`` significant bits."""
    result = []
    for part in range(parts):
        if part == parts - 1:
            piece = f32(x)
        else:
            exponent = mp.floor(mp.log(abs(x), 2))
            step = mp.mpf(2) ** (exponent - bits + 1)
            piece = mp.nint(x / step) * step
        result.append(float(piece))
        x -= piece
    return result


def split_down(x: mp.mpf, parts: int) -> list[float]:
    """A positive ``x`` as a sum of positive float32 numbers, each the rest rounded down."""
    result = []
    for _ in range(parts):
        step = mp.mpf(2) ** (mp.floor(mp.log(x, 2)) - 23)
        result.append(float(mp.floor(x / step) * step))
        x -= mp.mpf(result[-1])
    return result


def minimax(values: np.ndarray, weights: np.ndarray, xs: np.ndarray, powers: Sequence[int]) -> np.ndarray:
    """Lawson: iteratively reweighted least squares converging to the weighted minimax fit on the grid."""
    largest = max(abs(xs))
    basis = np.stack([(xs / largest) ** p for p in powers], 1)
    lawson = np.ones(len(xs))
    best, chosen = np.inf, np.zeros(len(powers))
    for _ in range(80):
        q = np.sqrt(lawson) * weights
        c = np.linalg.lstsq(basis * q[:, None], values * q, rcond=None)[0]
        e = np.abs(weights * (basis @ c - values))
        if e.max() < best:
            best, chosen = e.max(), c.copy()
        lawson = lawson * (e / e.max() + 1e-6)
        lawson /= lawson.max()
    return chosen / np.array([largest**p for p in powers])


def fit(name: str, f: Function, weight: Function, powers: Sequence[int], low: float | str, high: float | str,
        fixed: dict[int, mp.mpf] | None = None) -> list[float]:
    """float32 coefficients of ``sum c_p x^p`` close to ``f`` on [low, high]; ``fixed`` coefficients are kept."""
    count, a, b = 400, mp.mpf(low), mp.mpf(high)
    samples = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * i / count) for i in range(count + 1)]
    exact, weights = [f(x) for x in samples], [weight(x) for x in samples]
    xs, ws = np.array([float(x) for x in samples]), np.array([float(w) for w in weights])
    found: dict[int, mp.mpf] = dict(fixed or {})
    todo = [p for p in powers if p not in found]
    while todo:
        rest = np.array([float(y - sum(c * x**p for p, c in found.items())) for y, x in zip(exact, samples, strict=True)])
        found[todo[0]] = f32(mp.mpf(minimax(rest, ws, xs, todo)[0]))
        todo.pop(0)
    error = max(abs(w * (sum(c * x**p for p, c in found.items()) - y)) for w, y, x in zip(weights, exact, samples, strict=True))
    print(f"{name:14s} degree {max(powers)}: {float(mp.log(error, 2)):.2f}")
    return [float(found[p]) for p in powers]


def without_pole(f: Function, at_zero: mp.mpf) -> Function:
    return lambda x: at_zero if abs(x) < mp.mpf(10) ** -20 else f(x)


def log_table() -> dict[str, list[float] | int | float]:
    """32 intervals of the significand around 1: c with m*c - 1 exact in float32, and -log2(c) in two parts."""
    offset, shift = 0x3F350000, 18
    table: dict[str, list[float]] = {"c": [], "hi": [], "lo": []}
    radius = 0.0
    for i in range(32):
        first, last = offset + (i << shift), offset + ((i + 1) << shift) - 1
        a, b = (float(np.array([v], np.uint32).view(np.float32)[0]) for v in (first, last))
        c = mp.mpf(round(float(2 / (mp.mpf(a) + mp.mpf(b))) * 32)) / 32
        if abs(a - 1) < 0.04 and abs(b - 1) < 0.04:
            c = mp.mpf(1)  # no cancellation between table and remainder beside x = 1
        for q in range(first, last, 977):
            m = float(np.array([q], np.uint32).view(np.float32)[0])
            assert float(np.float32(m * float(c) - 1)) == m * float(c) - 1, (i, m)
        value = -mp.log(c, 2)
        high = mp.nint(value * 2**15) / 2**15
        table["c"].append(float(c))
        table["hi"].append(float(high))
        table["lo"].append(float(f32(value - high)))
        radius = max(radius, abs(a * float(c) - 1), abs(b * float(c) - 1))
    return {"offset": offset, "radius": radius, **table}


def intervals(name: str, f: Function, width: float, degree: int = 6, count: int = 32) -> dict[str, object]:
    """Polynomials around ``count`` centres ``width`` apart from 0 on, as one table per coefficient; ``f`` is 0 at 0."""
    half = mp.mpf(width) / 2

    def around(centre: float, powers: Sequence[int], low: mp.mpf) -> list[float]:
        return fit(f"{name} {centre}", lambda t: f(centre + t), lambda t: 1 / f(centre + t), powers, low, half)

    found = [[0.0, *around(0.0, range(1, degree + 1), half * mp.mpf("1e-6"))]]
    found += [around(i * width, range(degree + 1), -half) for i in range(1, count)]
    return {"width": width, "tables": [list(column) for column in zip(*found, strict=True)]}


def natural_table(count: int, scale: mp.mpf) -> dict[str, list[float] | float]:
    """Intervals of the significand in [1, 2): c with m*c - 1 exact in float32, and -``scale`` log(c) in two parts.

    The first part is a multiple of 2^-16, as that of log(2) is, so that multiples of this can be added to it exactly.
    c is 1 at the lower end and 1/2 at the upper one, so that nothing cancels beside x = 1.
    """
    table: dict[str, list[float]] = {"c": [], "hi": [], "lo": []}
    grid = [k / (2 * count) for k in range(count, 2 * count + 1)]
    low, high = 0.0, 0.0
    for i in range(count):
        a, b = 1 + i / count, 1 + (i + 1) / count - 2**-23
        c = {0: 1.0, count - 1: 0.5}.get(i) or min(grid, key=lambda c: max(abs(a * c - 1), abs(b * c - 1)))
        value = -mp.log(c) * scale
        upper = mp.nint(value * 2**16) / 2**16
        table["c"].append(c)
        table["hi"].append(float(upper))
        table["lo"].append(float(f32(value - upper)))
        low, high = min(low, a * c - 1), max(high, b * c - 1)
    return {"low": low, "high": high, **table}


def power_tables() -> dict[str, object]:
    """pow: ``scale`` log x as a table and a polynomial, and e^(p / scale) as a sixteenth power of two and a polynomial.

    ``step`` is ``scale`` log(2)/16 and has 13 bits: its multiples up to those of all results are exact, and ``scale``, next to 1/2, is
    what makes it so. With q = r/2, ``scale`` log(1 + r) = q - q^2 + q P(q). The sixteenth powers 2^(j/16) are kept as the bits of the
    nearest float32 less j 2^19, and what is missing beside it in relation to it: adding n 2^19 to the bits gives 2^(n/16).
    """
    step = mp.nint(LN2 / 32 * 2**18) / 2**18
    scale = 16 * step / LN2
    table = natural_table(16, scale)
    low, high = mp.mpf(table["low"]) / 2, mp.mpf(table["high"]) / 2  # type: ignore[arg-type]
    rest = without_pole(lambda q: (mp.log1p(2 * q) * scale - q + q**2) / q, 2 * scale - 1)
    # below the last interval the table's part is larger than q
    weight = lambda q: mp.mpf(1) if q >= -mp.mpf(1) / 64 else mp.mpf("0.3")  # noqa: E731
    half = step / 2 * mp.mpf("1.01")
    exponential = without_pole(lambda f: mp.expm1(f / scale) / f, 1 / scale)
    powers = [mp.mpf(2) ** (mp.mpf(j) / 16) for j in range(16)]
    bits = [np.float32(float(p)).view(np.int32) - (j << 19) for j, p in enumerate(powers)]
    return {
        "step": float(step), **table, "rest": fit("power_rest", rest, weight, range(6), low, high),
        "exponential": fit("power_exp", exponential, abs, range(3), -half, half),
        "sixteenths": [float(b.astype(np.int32).view(np.float32)) for b in bits],
        "sixteenths_low": [float(f32((p - f32(p)) / f32(p))) for p in powers],
    }


def main() -> None:
    out: dict[str, object] = {}
    half = LN2 / 2 * mp.mpf("1.002")
    one = mp.mpf(1)
    expm1_rest = without_pole(lambda r: (mp.expm1(r) - r) / r**2, one / 2)
    out["expm1_rest"] = fit("expm1_rest", expm1_rest, lambda r: abs(r) + mp.mpf("1e-3"), range(6), -half, half)
    out["exp"] = fit("exp", mp.exp, lambda r: mp.exp(-r), range(7), -half, half, {0: one, 1: one})
    exp2_rest = without_pole(lambda f: mp.expm1(f * LN2) / f, LN2)
    out["exp2m1"] = fit("exp2m1", exp2_rest, lambda f: one / 2 + abs(f), range(6), "-0.501", "0.501")
    rest = without_pole(lambda f: (mp.expm1(f * LN2) / f - LN2) / f, LN2**2 / 2)
    out["exp2_rest"] = fit("exp2_rest", rest, lambda f: f**2 + mp.mpf("1e-3"), range(5), "-0.501", "0.501")
    out["ln2"] = split(LN2, 2, 12)
    out["ln2_full"] = split(LN2, 2)
    out["log2e"] = split(1 / LN2, 2)
    out["log10_2"] = split(mp.log10(2), 2)
    out["log"] = table = log_table()
    radius = mp.mpf(table["radius"]) * mp.mpf("1.01")  # type: ignore[arg-type]
    log_rest = without_pole(lambda r: (mp.log1p(r) - r) / r**2, -one / 2)
    out["log_rest"] = fit("log_rest", log_rest, lambda r: abs(r) + mp.mpf("1e-4"), range(5), -radius, radius)
    # log2(1 + r) = log2e*(r - r^2/2) + r^3*P(r)
    cube = without_pole(lambda r: (mp.log1p(r) / LN2 - r / LN2 + r**2 / LN2 / 2) / r**3, 1 / LN2 / 3)
    out["log2_cube"] = fit("log2_cube", cube, lambda r: r**2 + mp.mpf("1e-5"), range(4), -radius, radius)
    out["natural"] = table = natural_table(32, one)
    out["ln2_short"] = split(LN2, 2, 16)
    ends = [mp.mpf(table[end]) for end in ("low", "high")]  # type: ignore[arg-type]
    out["log_square"] = fit("log_square", log_rest, lambda r: abs(r) + mp.mpf("1e-4"), range(4), *ends)
    out["power"] = power_tables()
    # erf: x + x*P(x^2) below the cut, 1 - exp(-(a + a*P(a))) above
    cut = mp.mpf("0.927734375")
    small = without_pole(lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1, 2 / mp.sqrt(mp.pi) - 1)
    out["erf_small"] = fit("erf_small", small, lambda s: one, range(6), 0, cut**2)
    large = lambda a: -mp.log(mp.erfc(a)) / a - 1  # noqa: E731
    out["erf_large"] = fit("erf_large", large, lambda a: mp.erfc(a) * a / mp.erf(a), range(7), cut, 4)
    # gelu: Phi(-a) exp(a^2/2) (a + k) as a polynomial in t = (a - k)/(a + k); k balances the two ends
    k = mp.mpf(5)
    out["gelu_centre"] = float(k)
    mills = lambda a: mp.erfc(a / mp.sqrt(2)) / 2 * mp.exp(a * a / 2) * (a + k)  # noqa: E731
    of_t = lambda t: mills(k * (1 + t) / (1 - t))  # noqa: E731
    top = (mp.mpf("14.5") - k) / (mp.mpf("14.5") + k)
    out["gelu_mills"] = fit("gelu_mills", of_t, lambda t: 1 / of_t(t), range(11), -1, top)
    out["gelu_linear"] = split(2 * mp.sqrt(2 / mp.pi), 2)
    out["gelu_cubic"] = split(2 * mp.sqrt(2 / mp.pi) * mp.mpf("0.044715"), 2)
    # both forms of gelu: a Phi(-a) around the centres of 32 intervals of a
    out["gelu_erf_intervals"] = intervals("gelu_erf", lambda a: a * mp.erfc(a / mp.sqrt(2)) / 2, 11 / 64)
    twice = 2 * mp.sqrt(2 / mp.pi)
    out["gelu_tanh_intervals"] = intervals("gelu_tanh", lambda a: a / (1 + mp.exp(twice * (a + mp.mpf("0.044715") * a**3))), 5 / 32)
    # tanh: x + x^3 P(x^2) below the cut
    cut = mp.mpf("0.55")
    tangent = without_pole(lambda s: (mp.tanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, -one / 3)
    out["tanh_rest"] = fit("tanh_rest", tangent, lambda s: s + mp.mpf("1e-3"), range(4), 0, cut**2)
    # sin and cos on [-pi/4, pi/4]
    quarter = mp.pi / 4 * mp.mpf("1.01")
    sine = without_pole(lambda s: (mp.sin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, -one / 6)
    out["sin_rest"] = fit("sin_rest", sine, lambda s: s + mp.mpf("1e-3"), range(3), 0, quarter**2)
    cosine = without_pole(lambda s: (mp.cos(mp.sqrt(s)) - 1 + s / 2) / s**2, one / 24)
    out["cos_rest"] = fit("cos_rest", cosine, lambda s: s**2 + mp.mpf("1e-3"), range(3), 0, quarter**2)
    out["half_pi"] = split_down(mp.pi / 2, 3)
    out["two_over_pi"] = float(f32(2 / mp.pi))
    # atan on [0, 1]: a + a^3 P(a^2)
    arctangent = without_pole(lambda s: (mp.atan(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, -one / 3)
    out["atan_rest"] = fit("atan_rest", arctangent, lambda s: s + mp.mpf("1e-2"), range(9), 0, 1)
    out["half_pi_full"] = split(mp.pi / 2, 2)
    # asin on [0, 1/2]: a + a^3 P(a^2)
    arcsine = without_pole(lambda s: (mp.asin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, one / 6)
    out["asin_rest"] = fit("asin_rest", arcsine, lambda s: s + mp.mpf("1e-3"), range(6), 0, "0.2501")
    TARGET.write_text(json.dumps(out, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
