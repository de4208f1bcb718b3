"""The constants of expansions against mpmath: every fit is as near as its comment says, and the words of 2 / pi are its bits."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from machine import execute, expanded

from pypto_dsl.compiler.ops import REGISTRY, activations, special, trigonometric


def value(x: Any, coefficients: Sequence[float]) -> Any:
    result = mp.mpf(0)
    for c in reversed(coefficients):
        result = result * x + mp.mpf(c)
    return result


def far(order: int, coefficients: Sequence[float]) -> Callable[[Any], Any]:
    return lambda x: value(1 / x, coefficients) / (mp.besseli(order, x) * mp.exp(-x) * mp.sqrt(x)) - 1


def near(order: int, coefficients: Sequence[float]) -> Callable[[Any], Any]:
    return lambda x: value((x / 8) ** 2, coefficients) * x**order / mp.besseli(order, x) - 1


def inverse(w: Any, found: Any) -> Any:
    x = mp.sqrt(1 - mp.exp(-w))
    return found * x / mp.erfinv(x) - 1


# name -> (relative error at an argument, lowest and highest argument, log2 of the largest error)
FITS: dict[str, tuple[Callable[[Any], Any], float, float, float]] = {
    "sine": (lambda r: (r + r**3 * value(r * r, trigonometric.SINE)) / mp.sin(r) - 1, 1e-3, math.pi / 4, -27),
    "cosine": (lambda r: (1 - r * r / 2 + r**4 * value(r * r, trigonometric.COSINE)) / mp.cos(r) - 1, 1e-3, math.pi / 4, -30),
    "arc tangent": (lambda x: (x + x**3 * value(x * x, trigonometric.ARC_TANGENT)) / mp.atan(x) - 1, 1e-3, math.tan(math.pi / 8), -28),
    "tail": (lambda u: value((u - 2) / (u + 2), special.TAIL) / (mp.exp(u * u) * mp.erfc(u) * (1 + 2 * u)) - 1, 0.4, 10.2, -24),
    "inverse near": (lambda w: inverse(w, value(w - 2.5, special.INVERSE_NEAR)), 1e-4, 5.0, -23.5),
    "inverse far": (lambda w: inverse(w, value(mp.sqrt(w) - 3, special.INVERSE_FAR)), 5.0, 17.0, -23.5),
    "i0 near": (near(0, special.I0_NEAR), 1e-3, 8.0, -24.5), "i1 near": (near(1, special.I1_NEAR), 1e-3, 8.0, -24.5),
    "i0 far": (far(0, special.I0_FAR), 8.0, 100.0, -24.5), "i1 far": (far(1, special.I1_FAR), 8.0, 100.0, -24.5),
    "shrink": (lambda x: x**3 * value(x * x, activations.SHRINK) / (x - mp.tanh(x)) - 1, 1e-2, 1.0, -23.7),
}


@pytest.mark.parametrize("name", FITS)
def test_fit(name: str) -> None:
    """The constants as they stand, rounded to f32, at 100 arguments."""
    error, low, high, limit = FITS[name]
    with mp.workdps(40):
        worst = max(abs(error(mp.mpf(float(x)))) for x in np.linspace(low, high, 100))
    assert mp.log(worst, 2) <= limit, (name, float(mp.log(worst, 2)))


def test_words_of_two_over_pi() -> None:
    words = trigonometric.TWO_OVER_PI[3:]
    with mp.workprec(400):
        scaled = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (12 * len(words))))
    assert trigonometric.TWO_OVER_PI[:3] == (0, 0, 0)
    assert words == tuple((scaled >> (12 * (len(words) - 1 - i))) & 0xFFF for i in range(len(words)))
    assert all((p * 171) >> 11 == p // trigonometric.WORD for p in range(140))


@pytest.mark.parametrize(("pair", "exact"), [(trigonometric.PI, 1), (trigonometric.HALF_PI, 2), (trigonometric.QUARTER_PI, 4)])
def test_pairs(pair: tuple[float, float], exact: int) -> None:
    with mp.workdps(40):
        assert abs(mp.mpf(pair[0]) + mp.mpf(pair[1]) - mp.pi / exact) < mp.mpf(2) ** -48
    assert all(float(np.float32(v)) == v for v in pair)


def test_large_angles() -> None:
    """The reduction is exact for every exponent: the worst cases of float32 and powers of two up to the largest."""

    worst = [16367173 * 2.0**72, 13223885 * 2.0**-1, 1.2966e38, 3.4028234663852886e38, 3.0e10, 710.0, 355.0, 52174.0]
    x = np.concatenate([worst, np.ldexp(1.0, np.arange(-20, 128)), np.ldexp(1.7, np.arange(-20, 127))]).astype(np.float32)
    for name, function in (("sin", mp.sin), ("cos", mp.cos), ("tan", mp.tan)):
        got = execute(expanded(lambda p, n=name: REGISTRY[n](p), x), x)[0]
        with mp.workdps(80):
            want = np.array([float(function(mp.mpf(float(v)))) for v in x])
        error = np.abs(got - want) / np.spacing(np.abs(want).astype(np.float32))
        assert error.max() <= REGISTRY[name].bounds["f32"], (name, x[np.argmax(error)])
