"""What the operations mean, in NumPy.

Operands arrive as arrays of the compute dtype, floats as float64; results are rounded by the caller to the declared dtype.
`symbols` gives the value of every Index variable, for the generators.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import F32, DType
from pypto_dsl.compiler.index import Index, as_index

Array = np.ndarray[Any, np.dtype[Any]]


def wrapping(function: Callable[..., Array]) -> Callable[..., Array]:
    """A NumPy function whose integer overflow wraps silently."""

    def wrapped(*operands: Array, **_: Any) -> Array:
        with np.errstate(all="ignore"):
            return function(*operands)

    wrapped.__name__ = function.__name__
    return wrapped


def _value(e: Index | int, symbols: Mapping[str, int]) -> int:
    return as_index(e).evaluate(symbols)


def constant(value: Any, dtype: DType, **_: Any) -> Array:
    return np.asarray(value, dtype=dtype.numpy)


def extent(value: Index, dtype: DType, symbols: Mapping[str, int], **_: Any) -> Array:
    return np.asarray(_value(value, symbols), dtype=dtype.numpy)


def iota(shape: Sequence[Index], axis: int, dtype: DType, symbols: Mapping[str, int], **_: Any) -> Array:
    extents = [_value(e, symbols) for e in shape]
    along = np.arange(extents[axis]).reshape([-1 if i == axis else 1 for i in range(len(extents))])
    return np.broadcast_to(along, extents).astype(dtype.numpy)


def full(shape: Sequence[Index], value: Any, dtype: DType, symbols: Mapping[str, int], **_: Any) -> Array:
    return np.full([_value(e, symbols) for e in shape], value, dtype=dtype.numpy)


# Rounding of floats to integers by CastMode; NONE truncates, ODD is for floats only.
ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "CAST_NONE": np.trunc, "CAST_TRUNC": np.trunc, "CAST_RINT": np.rint, "CAST_FLOOR": np.floor, "CAST_CEIL": np.ceil,
    "CAST_ROUND": lambda x: np.copysign(np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= 0.5), x),
}


def cast(x: Array, dtype: DType, source: DType, mode: str = "CAST_NONE", satmode: str = "OFF", **_: Any) -> Array:
    """``source`` is the operand's dtype (floats arrive as float64)."""
    if dtype.kind == "bool":
        return x != 0
    if dtype.is_float:
        if source.is_float and source is dtype:
            return np.asarray(x).astype(dtype.numpy)
        return narrow(np.asarray(x), dtype, mode, satmode == "ON")
    low, high = dtype.range
    if source.is_float:
        rounded = ROUNDINGS[mode](np.asarray(x, dtype=np.float64))
        clipped = np.clip(np.nan_to_num(rounded, nan=0.0, posinf=np.inf, neginf=-np.inf), float(low), float(high))
        top = clipped >= float(high)
        return np.where(top, np.array(high, dtype=dtype.numpy), np.where(top, 0.0, clipped).astype(dtype.numpy))
    if satmode == "ON":
        return np.array([min(max(int(v), low), high) for v in np.asarray(x).ravel()], dtype=dtype.numpy).reshape(np.shape(x))
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(dtype.numpy)


def narrow(x: Array, dtype: DType, mode: str = "CAST_NONE", saturate: bool = False) -> Array:
    """Floats (as float64) or integers rounded once to a float dtype; NONE and RINT are to nearest even.

    Beyond the largest float is inf, in e4m3fn NaN; with ``saturate`` e4m3fn keeps its largest value, of inf too.
    """
    with np.errstate(all="ignore"):
        if dtype.bits >= 64:
            return x.astype(dtype.numpy)
        odd = _to_odd(x)
        near = (odd if dtype.bits == 32 else _single(odd)).astype(dtype.numpy)
        if mode not in ("CAST_NONE", "CAST_RINT"):
            near = _directed(odd, near, dtype, mode)
        if saturate and dtype.name == "f8e4m3":
            top = 448.0  # the largest e4m3fn
            over = np.abs(odd) > np.where(np.isnan(near.astype(np.float64)), 0.0, top)
            limited = np.where(over & ~np.isnan(odd), np.copysign(top, odd), near.astype(np.float64))
            near = limited.astype(np.float32).astype(dtype.numpy)
        return np.asarray(near)


def _to_odd(x: Array) -> Array:
    """Integers as float64: where that rounds, to the neighbour with an odd significand, so that a second rounding is right."""
    if np.issubdtype(x.dtype, np.floating) or x.dtype.itemsize < 8:
        return x.astype(np.float64)
    wide = x.astype(np.float64)
    # Python compares the exact integers; 2**63 and 2**64 are above every one
    error = [(int(w) > int(v)) - (int(w) < int(v)) for w, v in zip(wide.ravel(), x.ravel(), strict=True)]
    return _oddly(wide, np.array(error, dtype=np.int64).reshape(x.shape))


def _oddly(near: Array, error: Array) -> Array:
    """``near`` where ``error`` (the sign of near minus exact) is 0; else the neighbour of the exact value with an odd significand."""
    integer = np.dtype(np.int32 if near.dtype == np.float32 else np.int64)
    field: Any = near.view(integer)
    # towards the exact value: one step down in magnitude when near is beyond it
    beyond = error * np.where(np.signbit(near), -1, 1) > 0
    even = (error != 0) & ((field & 1) == 0)
    return np.asarray(np.asarray(np.where(even, field + np.where(beyond, -1, 1), field)).astype(integer).view(near.dtype))


def _single(wide: Array) -> Array:
    """float64 to float32, to odd, for a second rounding to 16 bits or fewer."""
    near = np.asarray(wide).astype(np.float32)
    back = near.astype(np.float64)
    finite = np.isfinite(wide) & np.isfinite(back)
    return _oddly(near, np.asarray(np.where(finite, np.sign(back - np.where(finite, wide, 0.0)), 0)).astype(np.int64))


def _directed(exact: Array, near: Array, dtype: DType, mode: str) -> Array:
    """``exact`` rounded by a mode other than nearest even, from its nearest float."""
    back = near.astype(np.float64)
    integer = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[dtype.itemsize]
    field = np.asarray(near).view(integer).astype(np.int64)
    negative = np.signbit(exact)
    error = np.where(negative, -1, 1) * np.sign(np.where(np.isfinite(exact), back - exact, 0.0))  # > 0: near is beyond in magnitude
    inner = field - (error > 0)  # the neighbour towards zero
    outer = inner + (error != 0)
    low = inner.astype(integer).view(dtype.numpy).astype(np.float64)
    high = outer.astype(integer).view(dtype.numpy).astype(np.float64)
    half = np.isinf(near.astype(np.float64)) | (np.abs(exact) - np.abs(low) >= np.abs(high) - np.abs(exact))
    choose_outer = {"CAST_TRUNC": np.zeros_like(negative), "CAST_FLOOR": negative, "CAST_CEIL": ~negative, "CAST_ROUND": half,
                    "CAST_ODD": (inner & 1) == 0}[mode]
    made = np.asarray(np.where((error != 0) & choose_outer, outer, inner)).astype(integer).view(dtype.numpy)
    return np.asarray(np.where(np.isfinite(exact), made, near)).astype(dtype.numpy)


def round_to(x: Array, dtype: DType) -> Array:
    """float64 to ``dtype``, nearest even; 16-bit dtypes by way of f32, as a device that computes in f32 does."""
    with np.errstate(all="ignore"):
        if dtype.bits <= 16:
            return np.asarray(x, dtype=np.float64).astype(np.float32).astype(dtype.numpy)
        return np.asarray(x, dtype=np.float64).astype(dtype.numpy)


# From here on a float64 rounds to an infinite f32: the largest f32 and half a unit in its last place.
BEYOND_SINGLE = 2.0**128 - 2.0**103


def within(x: Array, source: DType) -> Array:
    """A step of a computation as far as its dtype reaches: inf beyond f32's range, a multiple of the smallest subnormal below it.

    Steps in f64 are what they are; floats of 16 bits are computed in f32. Inside the range the step is not rounded: only what it does to
    later steps by leaving the range belongs to the meaning.
    """
    if not source.is_float or source.bits >= 64:
        return x
    small = np.abs(x) < 2.0**-126
    whole = np.rint(np.where(small, x, 0.0) * 2.0**149) * 2.0**-149
    return np.where(small, whole, np.where(np.abs(x) >= BEYOND_SINGLE, np.copysign(np.inf, x), x))


def bitcast(x: Array, dtype: DType, source: DType, **_: Any) -> Array:
    return np.asarray(np.asarray(x).astype(source.numpy), order="C").view(dtype.numpy)  # ascontiguousarray would make a scalar a vector


def maximum(a: Array, b: Array, **_: Any) -> Array:
    result = np.maximum(a, b)
    if not np.issubdtype(result.dtype, np.floating):
        return result
    return np.where((a == b) & (result == 0), np.where(np.signbit(a) & np.signbit(b), -0.0, 0.0), result)


def minimum(a: Array, b: Array, **_: Any) -> Array:
    result = np.minimum(a, b)
    if not np.issubdtype(result.dtype, np.floating):
        return result
    return np.where((a == b) & (result == 0), np.where(np.signbit(a) | np.signbit(b), -0.0, 0.0), result)


def power(a: Array, b: Array, **_: Any) -> Array:
    """C99 pow for floats (the exponent as an array: NumPy's scalar fast paths are wrong at -0 and -inf); wrapping integers."""
    with np.errstate(all="ignore"):
        if np.issubdtype(np.asarray(a).dtype, np.floating):
            a, b = np.broadcast_arrays(a, b)
            return np.power(a, np.array(b))
        a, b = (np.array(v) for v in np.broadcast_arrays(a, b))
        negative = b < 0
        result = np.ones_like(a)
        base, left = a.copy(), np.where(negative, 0, b).astype(np.uint64)
        while left.any():
            result = np.where((left & np.uint64(1)).astype(bool), result * base, result)
            base, left = base * base, left >> np.uint64(1)
        minus_one = (a == -1) if np.issubdtype(a.dtype, np.signedinteger) else False
        inverse = np.where(a == 1, 1, np.where(minus_one, np.where(b % 2 == 0, 1, -1), 0))
        return np.where(negative, inverse.astype(a.dtype), result).astype(a.dtype)


_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array, **_: Any) -> Array:
    return np.asarray(_erf(x), dtype=np.float64)


_erfc = np.frompyfunc(math.erfc, 1, 1)


def gelu(x: Array, approximate: str = "none", **_: Any) -> Array:
    """x * Phi(x) through erfc, which keeps the negative tail; the tanh form through the logistic function, for the same reason."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(all="ignore"):
        if approximate == "tanh":
            u = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
            result = x / (1.0 + np.exp(-2.0 * u))
        else:
            result = 0.5 * x * np.asarray(_erfc(-x * math.sqrt(0.5)), dtype=np.float64)
    return np.where(np.isneginf(x), -0.0, result)


def sigmoid(x: Array, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return 1.0 / (1.0 + np.exp(-np.asarray(x, dtype=np.float64)))


def silu(x: Array, **_: Any) -> Array:
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(all="ignore"):
        return x / (1.0 + np.exp(-x))


def ldexp(x: Array, b: Array, **_: Any) -> Array:
    """x * 2**b in float64, in three exact steps for integers; for real b the fraction is an exp2 of its own."""
    with np.errstate(all="ignore"):
        bounded = np.clip(b, -5000, 5000)  # beyond, every float that is neither 0 nor infinite is 0 or inf
        whole = np.rint(bounded).astype(np.int64)
        fraction = np.where(np.isfinite(b), np.asarray(bounded, dtype=np.float64) - whole, 0.0)
        large = np.abs(x) > 1.0  # the fraction's factor neither overflows nor is it lost in the subnormals
        centred = np.asarray(x, dtype=np.float64) * np.where(large, 0.25, 4.0**32)
        result = np.ldexp(centred * np.exp2(fraction), whole + np.where(large, 2, -64))
        infinite = x * np.exp2(np.where(np.isfinite(b), 0.0, np.asarray(b, dtype=np.float64)))
        return np.where(np.isfinite(b), result, infinite)


def shift_left(a: Array, b: Array, **_: Any) -> Array:
    bits = a.dtype.itemsize * 8
    fits = (b >= 0) & (b < bits)
    return np.where(fits, np.left_shift(a, np.where(fits, b, 0).astype(a.dtype)), 0).astype(a.dtype)


def shift_right(a: Array, b: Array, **_: Any) -> Array:
    bits = a.dtype.itemsize * 8
    fits = (b >= 0) & (b < bits)
    fill = np.where(a < 0, -1, 0).astype(a.dtype)
    return np.where(fits, np.right_shift(a, np.where(fits, b, 0).astype(a.dtype)), fill).astype(a.dtype)


def _axes(x: Array, dim: Any) -> tuple[int, ...]:
    if dim is None:
        return tuple(range(x.ndim))
    return tuple(d % x.ndim for d in (dim if isinstance(dim, tuple) else (dim,)))


def sum(x: Array, dim: Any = None, keepdim: bool = False, **_: Any) -> Array:
    """Floats in float64 by math-exact pairwise NumPy sums; integers wrap in the result's dtype, which the caller applies."""
    if np.issubdtype(x.dtype, np.floating):
        with np.errstate(all="ignore"):
            return np.asarray(np.sum(x.astype(np.longdouble), axis=_axes(x, dim), keepdims=keepdim), dtype=np.float64)
    return np.asarray(np.sum(x.astype(np.uint64 if x.dtype.kind == "u" else np.int64), axis=_axes(x, dim), keepdims=keepdim))


def _extreme(x: Array, dim: Any, keepdim: bool, largest: bool) -> Array:
    axes = _axes(x, dim)
    if not np.issubdtype(x.dtype, np.floating):
        return np.asarray((np.amax if largest else np.amin)(x, axis=axes, keepdims=keepdim))
    with np.errstate(all="ignore"):
        best = np.asarray((np.amax if largest else np.amin)(x, axis=axes, keepdims=keepdim))
        # a zero result carries the sign of the larger (smaller) zero among the elements
        positive = np.any((x == 0) & ~np.signbit(x), axis=axes, keepdims=keepdim)
        negative = np.any((x == 0) & np.signbit(x), axis=axes, keepdims=keepdim)
    zero = np.where(positive, 0.0, -0.0) if largest else np.where(negative, -0.0, 0.0)
    return np.where(best == 0, zero, best)


def amax(x: Array, dim: Any = None, keepdim: bool = False, **_: Any) -> Array:
    return _extreme(x, dim, keepdim, largest=True)


def amin(x: Array, dim: Any = None, keepdim: bool = False, **_: Any) -> Array:
    return _extreme(x, dim, keepdim, largest=False)


def mean(x: Array, dim: Any = None, keepdim: bool = False, source: DType = F32, **_: Any) -> Array:
    count = math.prod(x.shape[a] for a in _axes(x, dim))
    with np.errstate(all="ignore"):
        return np.asarray(within(sum(np.asarray(x, dtype=np.float64), dim, keepdim), source) / np.float64(count))


def matmul(a: Array, b: Array, a_trans: bool = False, b_trans: bool = False, source: DType = F32, **_: Any) -> Array:
    """Floats in float64, where a product that leaves f32's range is inf; integers in 64 bits."""
    a, b = (np.swapaxes(v, -1, -2) if t else v for v, t in ((a, a_trans), (b, b_trans)))
    with np.errstate(all="ignore"):
        if not np.issubdtype(a.dtype, np.floating):
            return np.asarray(np.matmul(a.astype(np.int64), b.astype(np.int64)))
        if source.bits >= 64 or _largest(a) * _largest(b) < BEYOND_SINGLE:
            return np.asarray(np.matmul(a, b))
        rows = [np.sum(within(a[..., i, :, None] * b, source), axis=-2) for i in range(a.shape[-2])]
        return np.stack(rows, axis=-2)


def _largest(x: Array) -> float:
    """The largest finite magnitude, 0 of nothing."""
    return float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x)))


def reshape(x: Array, shape: Sequence[Index], symbols: Mapping[str, int], **_: Any) -> Array:
    return x.reshape([_value(e, symbols) for e in shape])


def permute(x: Array, perm: Sequence[int], **_: Any) -> Array:
    return np.transpose(x, perm)


def softmax(x: Array, dim: int = -1, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        e = np.exp(x - np.amax(x, axis=dim, keepdims=True)) if x.shape[dim] else x
        return np.asarray(e / np.sum(e, axis=dim, keepdims=True))


def mean_square(x: Array, source: DType) -> Array:
    """The mean of the squares along the last axis, kept; each square and their sum as the dtype reaches."""
    return mean(within(x * x, source), -1, True, source)


def layer_norm(x: Array, gamma: Array | None = None, beta: Array | None = None, epsilon: float = 1e-5, source: DType = F32,
               **_: Any) -> Array:
    with np.errstate(all="ignore"):
        centred = within(x - mean(x, -1, True, source), source)
        result = centred / np.sqrt(mean_square(centred, source) + epsilon)
        scaled = within(result * (1.0 if gamma is None else gamma), source)
        return np.asarray(scaled + (0.0 if beta is None else beta))


def rms_norm(x: Array, gamma: Array | None = None, epsilon: float = 1e-6, source: DType = F32, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        result = x / np.sqrt(mean_square(x, source) + epsilon)
        return np.asarray(result * (1.0 if gamma is None else gamma))


def tril(x: Array, diagonal: int = 0, **_: Any) -> Array:
    return np.tril(x, diagonal)


def triu(x: Array, diagonal: int = 0, **_: Any) -> Array:
    return np.triu(x, diagonal)
