"""Reductions, scans and normalisations."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import F32, DType
from pypto_dsl.compiler.ops import reference
from pypto_dsl.compiler.ops.references.functions import Array

Dim = Any


def axes(x: Array, dim: Dim) -> tuple[int, ...]:
    """The axes that ``dim`` names: None is all of them."""
    if dim is None:
        return tuple(range(x.ndim))
    return tuple(d % x.ndim for d in (dim if isinstance(dim, tuple) else (dim,)))


def prod(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    """Floats in extended precision; integers wrap."""
    with np.errstate(all="ignore"):
        if np.issubdtype(x.dtype, np.floating):
            return np.asarray(np.prod(x.astype(np.longdouble), axis=axes(x, dim), keepdims=keepdim), dtype=np.float64)
        wide = x.astype(np.uint64 if x.dtype.kind == "u" else np.int64)
        return np.asarray(np.prod(wide, axis=axes(x, dim), keepdims=keepdim))


def any_(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    return np.asarray(np.any(x != 0, axis=axes(x, dim), keepdims=keepdim))


def all_(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    return np.asarray(np.all(x != 0, axis=axes(x, dim), keepdims=keepdim))


def nan_extreme(largest: bool) -> Any:
    """amax or amin that passes over NaN; NaN where there is nothing else."""

    def called(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
        core = reference.amax if largest else reference.amin
        if not np.issubdtype(x.dtype, np.floating):
            return core(x, dim, keepdim)
        missing = np.isnan(x)
        best = core(np.where(missing, -np.inf if largest else np.inf, x), dim, keepdim)
        return np.where(np.all(missing, axis=axes(x, dim), keepdims=keepdim), np.nan, best)

    return called


def replacing_nan(x: Array, value: float) -> Array:
    """``x`` with ``value`` in place of NaN; integers as they are."""
    return np.where(np.isnan(x), value, x) if np.issubdtype(x.dtype, np.floating) else x


def nansum(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    return reference.sum(replacing_nan(x, 0.0), dim, keepdim)


def nanprod(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    return prod(replacing_nan(x, 1.0), dim, keepdim)


def nanmean(x: Array, dim: Dim = None, keepdim: bool = False, source: DType = F32, **_: Any) -> Array:
    present = ~np.isnan(x)
    with np.errstate(all="ignore"):
        total = reference.within(reference.sum(np.where(present, x, 0.0), dim, keepdim), source)
        return np.asarray(total / np.sum(present, axis=axes(x, dim), keepdims=keepdim))


def var(x: Array, dim: Dim = None, correction: float = 1, keepdim: bool = False, source: DType = F32, **_: Any) -> Array:
    """Two passes: the mean, then the squared distances from it, divided by max(0, N - correction)."""
    count = math.prod(x.shape[a] for a in axes(x, dim))
    with np.errstate(all="ignore"):
        centred = reference.within(x - reference.mean(x, dim, True, source), source)
        total = reference.within(reference.sum(reference.within(centred * centred, source), dim, keepdim), source)
        return np.asarray(total / np.float64(max(0, count - correction)))


def std(x: Array, dim: Dim = None, correction: float = 1, keepdim: bool = False, source: DType = F32, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.sqrt(reference.within(var(x, dim, correction, keepdim, source), source)))


def nanvar(x: Array, dim: Dim = None, correction: float = 1, keepdim: bool = False, source: DType = F32, **_: Any) -> Array:
    """As `var` over the elements that are no NaN."""
    present = ~np.isnan(x)
    count = np.sum(present, axis=axes(x, dim), keepdims=keepdim)
    with np.errstate(all="ignore"):
        centred = np.where(present, reference.within(x - nanmean(x, dim, True, source), source), 0.0)
        total = reference.within(reference.sum(reference.within(centred * centred, source), dim, keepdim), source)
        return np.asarray(total / np.maximum(0.0, count - correction))


def nanstd(x: Array, dim: Dim = None, correction: float = 1, keepdim: bool = False, source: DType = F32, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.sqrt(reference.within(nanvar(x, dim, correction, keepdim, source), source)))


def euclidean_norm(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    """sqrt(sum(x * x)) without overflow: scaled by the largest magnitude."""
    if not x.size:
        return np.sqrt(reference.sum(x, dim, keepdim))
    with np.errstate(all="ignore"):
        largest = np.amax(np.abs(x), axis=axes(x, dim), keepdims=True)
        scale = np.where((largest == 0) | ~np.isfinite(largest), 1.0, largest)
        total = reference.sum((x / scale) ** 2, dim, True)
        result = np.where(np.isinf(largest) & ~np.isnan(total), np.inf, scale * np.sqrt(total))
    return result if keepdim else np.asarray(np.squeeze(result, axis=axes(x, dim)))


def logsumexp(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    """log(sum(exp(x))), shifted by the largest element where that is finite."""
    with np.errstate(all="ignore"):
        largest = np.amax(x, axis=axes(x, dim), keepdims=True)
        shift = np.where(np.isfinite(largest), largest, 0.0)
        result = shift + np.log(np.sum(np.exp(x - shift), axis=axes(x, dim), keepdims=True))
    return result if keepdim else np.asarray(np.squeeze(result, axis=axes(x, dim)))


# ---- the magnitudes whose ulp the bounds count, where results cancel: derivations stand with the operations -------------------------


def logsumexp_scale(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    return np.maximum(np.amax(np.abs(x), axis=axes(x, dim), keepdims=keepdim), 1.0)


def log_softmax_scale(x: Array, dim: int = -1, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.maximum(np.abs(x - np.amax(x, axis=dim, keepdims=True)), 1.0) if x.shape[dim] else x


def softmax_scale(x: Array, dim: int = -1, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return reference.softmax(x, dim) * (1.0 + np.abs(x - np.amax(x, axis=dim, keepdims=True))) if x.shape[dim] else x


def var_scale(x: Array, dim: Dim = None, correction: float = 1, keepdim: bool = False, **_: Any) -> Array:
    """The mean's error, 5 * 2**-24 of its magnitude, is squared."""
    size = reference.mean(np.abs(x), dim, keepdim)
    return np.asarray(var(x, dim, correction, keepdim) + 2.0**-21 * size * size)


def std_scale(x: Array, dim: Dim = None, correction: float = 1, keepdim: bool = False, **_: Any) -> Array:
    """sqrt(var + e) - sqrt(var) is at most sqrt(e), and at most e / (2 sqrt(var))."""
    size, deviation = reference.mean(np.abs(x), dim, keepdim), std(x, dim, correction, keepdim)
    with np.errstate(all="ignore"):
        return np.asarray(deviation + np.fmin(size / 2, 2.0**-21 * size * size / deviation))


def passing_over_nan(scale: Callable[..., Array]) -> Callable[..., Array]:
    """A scale of the elements that are no NaN: with the largest magnitude in place of the others, which can only make it larger."""

    def called(x: Array, dim: Dim = None, correction: float = 1, keepdim: bool = False, **_: Any) -> Array:
        largest = np.max(np.abs(x), axis=axes(x, dim), keepdims=True, initial=0.0, where=~np.isnan(x))
        return scale(np.where(np.isnan(x), largest, x), dim, correction, keepdim)

    return called


def layer_norm_scale(x: Array, gamma: Array | None = None, beta: Array | None = None, epsilon: float = 1e-5, **_: Any) -> Array:
    """The distance from the mean has the error of the mean, in units of the deviation."""
    with np.errstate(all="ignore"):
        size = np.mean(np.abs(x), axis=-1, keepdims=True)
        deviation = np.sqrt(np.var(x, axis=-1, keepdims=True) + epsilon)
        result = (np.abs(x) + size) / deviation
        return np.asarray(result * (1.0 if gamma is None else np.abs(gamma)) + (0.0 if beta is None else np.abs(beta)))


def log_softmax(x: Array, dim: int = -1, **_: Any) -> Array:
    """x - max - log(sum(exp(x - max))) along ``dim``; a row of -inf is NaN."""
    if not x.shape[dim]:
        return x
    with np.errstate(all="ignore"):
        shifted = x - np.amax(x, axis=dim, keepdims=True)
        return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True)))


def _first_extreme(x: Array, dim: Dim, keepdim: bool, largest: bool) -> Array:
    flat = dim is None
    rows = x.reshape(-1) if flat else np.moveaxis(x, dim, -1)
    position = (np.argmax if largest else np.argmin)(rows, axis=-1)  # both give the first NaN where there is one
    if not keepdim:
        return np.asarray(position)
    return np.asarray(position.reshape((1,) * x.ndim) if flat else np.expand_dims(position, dim))


def argmax(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    """The position of the first NaN, else of the first largest element."""
    return _first_extreme(x, dim, keepdim, largest=True)


def argmin(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    """The position of the first NaN, else of the first smallest element."""
    return _first_extreme(x, dim, keepdim, largest=False)


def _first_without_nan(x: Array, dim: Dim, keepdim: bool, largest: bool) -> Array:
    if not np.issubdtype(x.dtype, np.floating):
        return _first_extreme(x, dim, keepdim, largest)
    rows = x.reshape(-1) if dim is None else np.moveaxis(x, dim, -1)
    missing = np.isnan(rows)
    worst = -np.inf if largest else np.inf
    best = (np.amax if largest else np.amin)(np.where(missing, worst, rows), axis=-1, keepdims=True)
    position = np.argmax(rows == best, axis=-1)  # 0 where nothing is
    if not keepdim:
        return np.asarray(position)
    return np.asarray(position.reshape((1,) * x.ndim) if dim is None else np.expand_dims(position, dim))


def nanargmax(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    """The position of the first largest element that is no NaN; 0 where there is none."""
    return _first_without_nan(x, dim, keepdim, largest=True)


def nanargmin(x: Array, dim: Dim = None, keepdim: bool = False, **_: Any) -> Array:
    """The position of the first smallest element that is no NaN; 0 where there is none."""
    return _first_without_nan(x, dim, keepdim, largest=False)


def cumsum(x: Array, dim: int = 0, **_: Any) -> Array:
    """Running sums in float64, integers in 64 bits."""
    with np.errstate(all="ignore"):
        if np.issubdtype(x.dtype, np.floating):
            return np.asarray(np.cumsum(x.astype(np.longdouble), axis=dim), dtype=np.float64)
        return np.asarray(np.cumsum(x, axis=dim, dtype=np.uint64 if x.dtype.kind == "u" else np.int64))


def cumprod(x: Array, dim: int = 0, **_: Any) -> Array:
    """Running products in float64, integers in 64 bits."""
    with np.errstate(all="ignore"):
        if np.issubdtype(x.dtype, np.floating):
            return np.asarray(np.cumprod(x.astype(np.longdouble), axis=dim), dtype=np.float64)
        return np.asarray(np.cumprod(x, axis=dim, dtype=np.uint64 if x.dtype.kind == "u" else np.int64))


def attention(query: Array, key: Array, value: Array, mask: Array | None = None, scale: float | None = None, is_causal: bool = False,
              source: DType = F32, **_: Any) -> Array:
    """softmax(query @ key.T * scale + mask) @ value; a row that may see nothing is NaN."""
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    with np.errstate(all="ignore"):
        scores = reference.within(reference.matmul(query, np.swapaxes(key, -1, -2), source=source) * factor, source)
        if is_causal:
            rows, cols = scores.shape[-2:]
            scores = np.where(np.arange(cols)[None, :] <= np.arange(rows)[:, None] + (cols - rows), scores, -np.inf)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
        return np.asarray(np.matmul(reference.softmax(scores, -1), value))


def attention_scale(query: Array, key: Array, value: Array, mask: Array | None = None, scale: float | None = None, is_causal: bool = False,
                    **_: Any) -> Array:
    """The largest magnitude of a column of ``value``, times one and the largest score: exp enlarges a score's error by its magnitude."""
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else abs(scale)
    scores = np.matmul(np.abs(query), np.swapaxes(np.abs(key), -1, -2)) * factor
    size = np.amax(np.abs(value), axis=-2, keepdims=True) * (1.0 + np.amax(scores, axis=(-1, -2), keepdims=True))
    return np.asarray(np.broadcast_to(size, (*scores.shape[:-1], value.shape[-1])))
