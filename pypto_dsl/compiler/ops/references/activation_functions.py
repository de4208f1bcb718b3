"""Activation functions in float64, in forms that neither cancel nor overflow."""
from __future__ import annotations

from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import F32, DType
from pypto_dsl.compiler.ops import reference
from pypto_dsl.compiler.ops.references.functions import Array

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


def gelu_scale(x: Array, approximate: str = "none", **_: Any) -> Array:
    """The tanh form's exponential enlarges an error of its argument u by |2 u|."""
    if approximate != "tanh":
        return np.zeros_like(x)
    argument = 2.0 * np.sqrt(2.0 / np.pi) * np.abs(x + 0.044715 * x**3)
    return np.abs(reference.gelu(x, "tanh")) * (1.0 + argument)


def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0, **_: Any) -> Array:
    """log(1 + exp(beta x)) / beta; x itself where beta x is above ``threshold``."""
    with np.errstate(all="ignore"):
        return np.where(x * beta > threshold, x, np.logaddexp(0.0, x * beta) / beta)


def log_sigmoid(x: Array, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return -np.logaddexp(0.0, -np.asarray(x))


def elu(x: Array, alpha: float = 1.0, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.where(x > 0, x, alpha * np.expm1(x))


def celu(x: Array, alpha: float = 1.0, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.where(x > 0, x, alpha * np.expm1(x / alpha))


def selu(x: Array, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(x))


def mish(x: Array, **_: Any) -> Array:
    """x * tanh(softplus(x)), by the rational form in e**x: n / (n + 2) with n = e**x (e**x + 2); in long double, then rounded once."""
    with np.errstate(all="ignore"):
        e = np.exp(np.minimum(np.asarray(x, dtype=np.longdouble), 100.0))
        n = e * (e + 2.0)
        return np.asarray(x * (n / (n + 2.0))).astype(np.float64)


def hardsigmoid(x: Array, **_: Any) -> Array:
    """clip(x / 6 + 1/2, 0, 1)."""
    return np.clip(x / 6.0 + 0.5, 0.0, 1.0)


def hardswish(x: Array, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.where(x <= -3, -0.0, x * np.clip(x / 6.0 + 0.5, 0.0, 1.0))


def hardtanh(x: Array, min_val: float = -1.0, max_val: float = 1.0, **_: Any) -> Array:
    return reference.minimum(reference.maximum(x, np.full_like(x, min_val)), np.full_like(x, max_val))


def hardshrink(x: Array, lambd: float = 0.5, **_: Any) -> Array:
    """x outside [-lambd, lambd], else 0."""
    return np.where(np.abs(x) <= lambd, 0.0, x)


def softshrink(x: Array, lambd: float = 0.5, **_: Any) -> Array:
    """x moved towards 0 by lambd, and 0 within."""
    with np.errstate(all="ignore"):
        return np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, np.where(np.isnan(x), x, 0.0)))


def softsign(x: Array, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.where(np.isinf(x), np.sign(x), x / (1.0 + np.abs(x)))


def tanhshrink(x: Array, **_: Any) -> Array:
    """x - tanh(x): the series near 0, where the difference cancels; in long double, because it cancels a little beyond."""
    with np.errstate(all="ignore"):
        wide = np.asarray(x).astype(np.longdouble)
        z = wide * wide
        terms = (np.longdouble(1) / 3, 2 / 15, 17 / 315, 62 / 2835, 1382 / 155925, 21844 / 6081075, 929569 / 638512875)
        factor = np.zeros_like(z)
        for term in reversed(terms):
            factor = term - z * factor
        return np.where(np.abs(x) < 0.1, wide * z * factor, wide - np.tanh(wide)).astype(np.float64)


def threshold(x: Array, threshold: float = 0.0, value: float = 0.0, **_: Any) -> Array:
    """x above ``threshold``, else ``value``; NaN stays."""
    return np.where(x <= threshold, value, x)


def leaky_relu(x: Array, negative_slope: float = 0.01, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.where(x > 0, x, x * negative_slope)


def prelu(x: Array, weight: Array, **_: Any) -> Array:
    """``weight`` is one number, or one per element of axis 1."""
    shape = [-1 if axis == 1 and weight.size > 1 else 1 for axis in range(x.ndim)]
    with np.errstate(all="ignore"):
        return np.where(x > 0, x, x * weight.reshape(shape if x.ndim else ()))


def relu(x: Array, **_: Any) -> Array:
    if not np.issubdtype(np.asarray(x).dtype, np.floating):
        return np.maximum(x, np.zeros_like(x))
    return reference.maximum(x, np.zeros_like(x))


def clipping(eps: float, source: DType) -> tuple[float, float]:
    """(eps, 1 - eps) as the dtype has them: in f32 the upper one is 1 below 2**-25."""
    if source.bits >= 64:
        return eps, 1.0 - eps
    low = np.float32(eps)
    return float(low), float(np.float32(1.0) - low)


def logit(x: Array, eps: float | None = None, source: DType = F32, **_: Any) -> Array:
    """log(x / (1 - x)), of x clipped to [eps, 1 - eps] when given."""
    inside = np.asarray(x if eps is None else np.clip(x, *clipping(eps, source)), dtype=np.longdouble)
    with np.errstate(all="ignore"):
        centred = inside - 0.5
        near = 2.0 * np.arctanh(2.0 * centred)
        made = np.where(np.abs(centred) < 0.25, near, np.log(inside) - np.log1p(-inside))
        return np.where((inside < 0) | (inside > 1), np.nan, made).astype(np.float64)


def heaviside(x: Array, values: Array, **_: Any) -> Array:
    """0 below zero, 1 above, ``values`` at zero."""
    return np.where(np.isnan(x), np.nan, np.where(x == 0, values, np.where(x > 0, 1.0, 0.0)))


def bias_gelu(x: Array, bias: Array, approximate: str = "none", **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return reference.gelu(x + bias, approximate)
