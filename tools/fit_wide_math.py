"""Derives the polynomials of the f32 functions that are computed in f64: ``python tools/fit_wide_math.py`` rewrites ``wide.json``.

Method: Chebyshev interpolation in mpmath, whose error is within a factor of two of the minimax one, of quotients by the leading term, which
are near 1, so that absolute and relative errors are alike; coefficients are rounded to f64. Each line printed is one fit with log2 of
its largest relative error on 2000 points.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import mpmath as mp

mp.mp.dps = 40
TARGET = Path(__file__).resolve().parent.parent / "pypto_dsl/codegen/llvm/math/wide.json"
Function = Callable[[mp.mpf], mp.mpf]


def fit(name: str, f: Function, low: object, high: object, degree: int) -> list[float]:
    """f64 coefficients of a polynomial close to ``f`` on [low, high], lowest degree first."""
    a, b = mp.mpf(low), mp.mpf(high)
    found = [float(c) for c in reversed(mp.chebyfit(f, [a, b], degree + 1))]
    points = [a + (b - a) * i / 2000 for i in range(2001)]
    error = max(abs(mp.polyval(found[::-1], x) / f(x) - 1) for x in points)
    print(f"{name:12s} degree {degree}: {float(mp.log(error, 2)):.2f}")
    return found


def of_square(f: Function, at_zero: float = 1) -> Function:
    """``f(sqrt z) / sqrt z``, whose limit at 0 is ``at_zero``."""
    return lambda z: mp.mpf(at_zero) if z < mp.mpf(10) ** -30 else f(mp.sqrt(z)) / mp.sqrt(z)


def split(x: mp.mpf, bits: int) -> list[float]:
    """``x`` as a sum of two f64 numbers, of which the first has ``bits`` significant bits."""
    step = mp.mpf(2) ** (mp.floor(mp.log(abs(x), 2)) - bits + 1)
    high = mp.nint(x / step) * step
    return [float(high), float(x - high)]


def cube_root_error() -> tuple[mp.mpf, mp.mpf]:
    """The range of 1 - x g^3 for the first guess g of an inverse cube root, from a third of the bits of x."""
    errors = []
    for i in range(3 * 4096):
        exponent, fraction = 1023 + i // 4096, i % 4096 / 4096
        guess = CUBE_ROOT_OFFSET - ((exponent << 20) + int(fraction * 2**20)) // 3
        g = 2.0 ** ((guess >> 20) - 1023) * (1 + (guess & 0xFFFFF) / 2**20)
        errors.append(1 - mp.mpf(g) ** 3 * 2.0 ** (exponent - 1023) * (1 + fraction))
    return min(errors), max(errors)


CUBE_ROOT_OFFSET = 1430186000  # about 4/3 (1023 - 0.05) 2^20: balances the guess's error


def digamma_table() -> list[list[float]]:
    """The columns of digamma on [1, 16), 16 rows an octave: the point of expansion in two parts, the value there in two parts, the further
    coefficients of the Taylor series. A row expands around its middle, the one with the zero around the zero."""
    zero, rows = mp.findroot(mp.digamma, mp.mpf("1.46")), []
    for first in (mp.mpf(2) ** octave * (16 + k) / 16 for octave in range(4) for k in range(16)):
        width = mp.mpf(2) ** mp.floor(mp.log(first, 2)) / 16
        centre = zero if first <= zero < first + width else first + width / 2
        value = mp.mpf(0) if centre is zero else mp.digamma(centre)
        terms = [mp.polygamma(k, centre) / mp.factorial(k) for k in range(1, 12)]
        rows.append([*split(centre, 53), *(split(value, 53) if value else (0.0, 0.0)), *map(float, terms)])
    return [list(column) for column in zip(*rows, strict=True)]


def main() -> None:
    out: dict[str, object] = {}
    half = mp.log(2) / 2 * mp.mpf("1.0001")
    out["ln2"] = split(mp.log(2), 32)
    out["exp"] = fit("exp", mp.exp, -half, half, 8)
    out["exp_long"] = fit("exp_long", mp.exp, -half, half, 10)
    out["sinh"] = fit("sinh", of_square(mp.sinh), 0, half**2, 4)
    out["cosh"] = fit("cosh", lambda z: mp.cosh(mp.sqrt(z)), 0, half**2, 4)
    quarter = mp.pi / 4 * mp.mpf("1.001")
    out["sin"] = fit("sin", of_square(mp.sin), 0, quarter**2, 5)
    out["cos"] = fit("cos", lambda z: mp.cos(mp.sqrt(z)), 0, quarter**2, 5)
    out["half_pi"] = split(mp.pi / 2, 53)
    # log m = 2 s P(s^2) with s = (m - 1)/(m + 1), for m from sqrt(1/2) to sqrt(2)
    out["log"] = fit("log", of_square(mp.atanh), 0, ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.0001"), 5)
    # log(1 + e) = 2 s P(s^2) with s = e/(2 + e), for e up to 1
    out["log1p"] = fit("log1p", of_square(mp.atanh), 0, mp.mpf(1) / 9, 8)
    out["log1p_long"] = fit("log1p_long", of_square(mp.atanh), 0, mp.mpf(1) / 9, 10)
    out["atan"] = fit("atan", of_square(mp.atan), 0, mp.tan(mp.pi / 8) ** 2 * mp.mpf("1.0001"), 8)
    # erfc(a) = exp(-a^2) q P(1 - 2 k q) with q = 1/(a + k); k balances the two ends
    k = mp.mpf(4)
    out["erfc_centre"] = float(k)
    of_t = lambda t: (lambda a: mp.erfc(a) * mp.exp(a * a) * (a + k))(k * (1 + t) / (1 - t))  # noqa: E731
    out["erfc"] = fit("erfc", of_t, -1, (11 - k) / (11 + k), 14)
    shrink = lambda z: (1 - mp.tanh(mp.sqrt(z)) / mp.sqrt(z)) / z if z > mp.mpf(10) ** -12 else mp.mpf(1) / 3  # noqa: E731
    out["tanhshrink"] = fit("tanhshrink", shrink, 0, "0.0901", 7)
    # of f64: erfc(a) = exp(-a^2) q P(1 - 2 k q) to the last bit
    c = mp.mpf("1.5")
    out["double_erfc_centre"] = float(c)
    precise = lambda t: (lambda a: mp.erfc(a) * mp.exp(a * a) * (a + c))(c * (1 + t) / (1 - t))  # noqa: E731
    low = mp.mpf("0.18")
    out["double_erfc"] = fit("double_erfc", precise, (low - c) / (low + c), (28 - c) / (28 + c), 25)
    two = 2 * mp.sqrt(2 / mp.pi)
    out["double_gelu_linear"], out["double_gelu_cubic"] = split(two, 53), split(two * mp.mpf(0.044715), 53)
    out["double_root_half"] = split(mp.sqrt(mp.mpf(1) / 2), 53)
    # x^(1/3) = x g^2 (1 - u)^(-2/3) with u = 1 - x g^3
    low, high = cube_root_error()
    out["cbrt_offset"] = CUBE_ROOT_OFFSET
    out["cbrt"] = fit("cbrt", lambda u: (1 - u) ** (-mp.mpf(2) / 3), low * mp.mpf("1.01"), high * mp.mpf("1.01"), 8)
    out["digamma"] = digamma_table()
    TARGET.write_text(json.dumps(out, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
