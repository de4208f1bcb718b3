"""The functions of the sweeps in mpmath: what exact.cpp is held against, and what f64 results are measured with."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

from benchmarks.sweep.cases import Array
from pypto_dsl.compiler.ops.references import functions

m = mpmath.mp
DIGITS = 60


def _gelu_tanh(x: Any) -> Any:
    return x / (1 + m.exp(-2 * m.sqrt(2 / m.pi) * (x + m.mpf(0.044715) * x**3)))


def _softplus(x: Any) -> Any:
    return m.log1p(m.exp(-abs(x))) + (x if x > 0 else 0)


def _elu(x: Any) -> Any:
    return x if x > 0 else m.expm1(x)


def _mish(x: Any) -> Any:
    return x * m.tanh(_softplus(x))


def _erfinv(y: Any) -> Any:
    return m.erfinv(y) if abs(y) < 1 else m.nan


def _tanhshrink(x: Any) -> Any:
    with mpmath.workdps(DIGITS + 3 * max(0, -int(m.log10(abs(x))))):  # the difference has three times as many zeros as x
        return x - m.tanh(x)


def _logaddexp(x: Any, y: Any) -> Any:
    return max(x, y) + m.log1p(m.exp(-abs(x - y)))


def _fmod(x: Any, y: Any) -> Any:
    return m.sign(x) * m.fmod(abs(x), abs(y))


def _real_cube_root(x: Any) -> Any:
    return m.sign(x) * m.cbrt(abs(x))


def _within(low: float, high: float, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(x) if low <= x <= high else m.nan


def _positive(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(x) if x > 0 else m.nan


INF = float("inf")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": _positive(m.sqrt), "rsqrt": _positive(lambda x: 1 / m.sqrt(x)), "reciprocal": lambda x: 1 / x, "cbrt": _real_cube_root,
    "exp": m.exp, "exp2": lambda x: m.mpf(2) ** x, "expm1": m.expm1, "log": _positive(m.log), "log2": _positive(lambda x: m.log(x, 2)),
    "log10": _positive(m.log10), "log1p": _within(-1, INF, m.log1p), "sin": m.sin, "cos": m.cos, "tan": m.tan,
    "asin": _within(-1, 1, m.asin), "acos": _within(-1, 1, m.acos), "atan": m.atan, "sinh": m.sinh, "cosh": m.cosh, "tanh": m.tanh,
    "asinh": m.asinh, "acosh": _within(1, INF, m.acosh), "atanh": _within(-1, 1, m.atanh), "erf": m.erf, "erfc": m.erfc,
    "erfinv": _erfinv, "i0": lambda x: m.besseli(0, x), "i1": lambda x: m.besseli(1, x),
    "lgamma": lambda x: m.log(abs(m.gamma(x))) if abs(x) < 1e4 else m.re(m.loggamma(x)), "digamma": m.digamma,
    "sigmoid": lambda x: 1 / (1 + m.exp(-x)), "silu": lambda x: x / (1 + m.exp(-x)), "gelu": lambda x: x * m.erfc(-x / m.sqrt(2)) / 2,
    "gelu_tanh": _gelu_tanh, "softplus": lambda x: x if x > 20 else _softplus(x), "log_sigmoid": lambda x: -_softplus(-x),
    "elu": _elu, "celu": _elu, "selu": lambda x: m.mpf(1.0507009873554805) * (x if x > 0 else m.mpf(1.6732632423543772) * m.expm1(x)),
    "mish": _mish, "softsign": lambda x: x / (1 + abs(x)), "tanhshrink": _tanhshrink,
    "logit": _within(0, 1, lambda x: m.log(x / (1 - x))), "deg2rad": m.radians, "rad2deg": m.degrees,
    "pow": lambda x, y: abs(x) ** y * (-1 if x < 0 and y % 2 == 1 else 1) if x > 0 or y == int(y) else m.nan,
    "ldexp": lambda x, y: x * m.mpf(2) ** y, "atan2": m.atan2, "hypot": m.hypot, "fmod": _fmod, "remainder": m.fmod,
    "logaddexp": _logaddexp,
}


def values(name: str, *arrays: Array) -> list[Any]:
    """The exact values at finite inputs, as mpmath numbers of 60 digits; NaN outside the domain and at poles."""
    function = FUNCTIONS[name]
    found = []
    with mpmath.workdps(DIGITS):
        for operands in zip(*(a.tolist() for a in arrays), strict=True):
            try:
                found.append(function(*(m.mpf(v) for v in operands)))
            except (ZeroDivisionError, ValueError, OverflowError):
                found.append(m.nan)
    return found


# Functions whose terms cancel beside zeros: where results are below this magnitude, errors count in its ulp.
SCALES: dict[str, Callable[..., Array]] = {"logaddexp": lambda x, y: np.ones_like(x), "digamma": functions.digamma_terms}


def ulps(name: str, got: Array, *arrays: Array) -> Array:
    """The error of f64 results in ulp of the exact values, or of their scale where that is larger; 0 where they are NaN or overflow."""
    found = np.zeros(got.size)
    scales = SCALES[name](*arrays) if name in SCALES else np.zeros(got.size)
    with mpmath.workdps(DIGITS):
        for i, (value, target, scale) in enumerate(zip(got.tolist(), values(name, *arrays), scales.tolist(), strict=True)):
            if m.isnan(target) or abs(target) >= m.mpf(2) ** 1024:
                continue
            size = max(abs(target), scale)
            exponent = m.floor(m.log(size, 2)) if size else -1074
            unit = m.mpf(2) ** max(exponent - 52, -1074)
            found[i] = INF if value != value or abs(value) == INF else float(abs(m.mpf(value) - target) / unit)
    return found
