"""Derives the coefficients that expansions of the op table use: ``python tools/fit_expansions.py`` prints them with their errors.

Method: weighted least squares in Chebyshev's basis over Chebyshev's nodes, reweighted towards the minimax fit (Lawson 1961), in 60
decimal digits of mpmath for the functions; coefficients are rounded to float32. tests/ops/test_coefficients.py measures what stands in
the modules, so nothing depends on this script.
"""
from __future__ import annotations

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np

mp.mp.dps = 60
Function = Callable[[mp.mpf], mp.mpf]


def fit(function: Function, low: float, high: float, degree: int, weight: Function, nodes: int = 400) -> tuple[list[float], float]:
    """Coefficients in rising powers, and the largest weighted error of the fit before they are rounded."""
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    at = [mp.cos(mp.pi * (2 * k + 1) / (2 * nodes)) for k in range(nodes)]
    values = np.array([float(function(middle + half * t)) for t in at])
    weights = np.array([float(weight(middle + half * t)) for t in at])
    basis = np.polynomial.chebyshev.chebvander(np.array([float(t) for t in at]), degree)
    lawson = np.ones(nodes)
    for _ in range(30):
        root = np.sqrt(lawson) * weights
        c, *_ = np.linalg.lstsq(basis * root[:, None], values * root, rcond=None)
        error = np.abs(basis @ c - values) * weights
        lawson *= error / error.max() + 1e-3
        lawson /= lawson.mean()
    series = np.polynomial.chebyshev.Chebyshev(c, domain=[low, high])
    plain = series.convert(kind=np.polynomial.Polynomial, domain=[-1, 1], window=[-1, 1]).coef
    return [float(np.float32(v)) for v in plain], float(error.max())


def _near_zero(value: Function, limit: float, otherwise: float) -> Function:
    """A quotient that is 0 / 0 at 0."""
    return lambda z: value(z) if z > limit else mp.mpf(otherwise)


def _shrink(z: mp.mpf) -> mp.mpf:
    x = mp.sqrt(z)
    return (x - mp.tanh(x)) / x**3


def _tail(t: mp.mpf) -> mp.mpf:
    u = 2 * (1 + t) / (1 - t)
    return mp.exp(u * u) * mp.erfc(u) * (1 + 2 * u)


def _inverse(w: mp.mpf) -> mp.mpf:
    """erfinv(x) / x by w = -log((1 - x)(1 + x))."""
    x = mp.sqrt(1 - mp.exp(-w))
    return mp.erfinv(x) / x if w > 1e-12 else mp.sqrt(mp.pi) / 2


def _bessel_near(order: int) -> Function:
    return lambda z: mp.besseli(order, 8 * mp.sqrt(z)) / (8 * mp.sqrt(z)) ** order if z > 0 else mp.mpf(1) / 2**order


def _bessel_far(order: int) -> Function:
    return lambda t: mp.besseli(order, 1 / t) * mp.exp(-1 / t) / mp.sqrt(t)


# name -> (function, interval, degree, weight)
FITS: dict[str, tuple[Function, float, float, int, Function]] = {
    "SINE": (_near_zero(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 1e-12, -1 / 6), 0.0, (math.pi / 4) ** 2, 2, lambda z: z),
    "COSINE": (_near_zero(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, 1e-8, 1 / 24), 0.0, (math.pi / 4) ** 2, 2, lambda z: z * z),
    "ARC_TANGENT": (_near_zero(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 1e-12, -1 / 3), 0.0,
                    1.001 * math.tan(math.pi / 8) ** 2, 4, lambda z: z),
    "SHRINK": (_near_zero(_shrink, 1e-10, 1 / 3), 0.0, 1.0, 7, lambda z: 1 / _shrink(z)),
    "TAIL": (_tail, (0.4 - 2) / 2.4, 8.2 / 12.2, 8, lambda t: 1 / _tail(t)),
    "INVERSE_NEAR": (lambda s: _inverse(s + 2.5), -2.5, 2.5, 9, lambda s: 1 / _inverse(s + 2.5)),
    "INVERSE_FAR": (lambda s: _inverse((s + 3) ** 2), math.sqrt(5) - 3, math.sqrt(17) - 3, 9, lambda s: 1 / _inverse((s + 3) ** 2)),
    "I0_NEAR": (_bessel_near(0), 0.0, 1.0, 10, lambda z: 1 / _bessel_near(0)(z)),
    "I1_NEAR": (_bessel_near(1), 0.0, 1.0, 10, lambda z: 1 / _bessel_near(1)(z)),
    "I0_FAR": (_bessel_far(0), 1 / 400, 1 / 8, 6, lambda t: mp.mpf(2.5)),
    "I1_FAR": (_bessel_far(1), 1 / 400, 1 / 8, 6, lambda t: mp.mpf(2.5)),
}


# Nodes by the first letters of a name: inverse functions and Bessel functions are slow in mpmath.
NODES = {"IN": 200, "I0": 120, "I1": 120}


def two_over_pi(words: int = 16, bits: int = 12) -> list[int]:
    """The bits of 2 / pi in words, the highest first."""
    with mp.workprec(words * bits + 64):
        scaled = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (words * bits)))
    return [(scaled >> (bits * (words - 1 - i))) & ((1 << bits) - 1) for i in range(words)]


def main() -> None:
    """Print every fit."""
    for name, (function, low, high, degree, weight) in FITS.items():
        coefficients, error = fit(function, low, high, degree, weight, 200 if "INVERSE" in name or name[0] == "I" else 400)
        print(f"{name}: 2**{math.log2(error):.1f}\n    {', '.join(map(repr, coefficients))}")
    print("TWO_OVER_PI:", ", ".join(f"0x{w:03X}" for w in two_over_pi()))


if __name__ == "__main__":
    main()
