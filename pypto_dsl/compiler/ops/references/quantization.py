"""Quantization, the Philox random numbers, and bytes."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import F32, DType
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops import reference
from pypto_dsl.compiler.ops.references.functions import Array


def along(scale: Array, x: Array, axis: int) -> Array:
    """Scales of one number per slice along ``axis`` (or one for all) against ``x``."""
    if scale.ndim == x.ndim or scale.size == 1:
        return scale
    shape = [1] * x.ndim
    shape[axis] = -1
    return scale.reshape(shape)


def quantize(x: Array, scale: Array, zero_points: Array | None = None, dtype: DType = F32, axis: int = -1, **_: Any) -> Array:
    """saturate(rint(x * scale) + zero_points)."""
    low, high = dtype.range
    with np.errstate(all="ignore"):
        scaled = np.rint((x * along(scale, x, axis)).astype(np.float32).astype(np.float64))
        shifted = scaled if zero_points is None else scaled + along(zero_points, x, axis)
        return np.clip(np.nan_to_num(shifted, nan=0.0, posinf=np.inf, neginf=-np.inf), low, high)


def dequantize(x: Array, scale: Array, zero_points: Array | None = None, axis: int = -1, **_: Any) -> Array:
    """(x - zero_points) * scale."""
    with np.errstate(all="ignore"):
        shifted = x if zero_points is None else x - along(zero_points, x, axis)
        return np.asarray(shifted * along(scale, x, axis))


# Exponent of the largest finite value of the element dtypes of the OCP Microscaling Formats (MX) 1.0 specification, section 5.
EMAX = {"f8e4m3": 8, "f8e5m2": 15}
LARGEST = {"f8e4m3": 448.0, "f8e5m2": 57344.0}
BLOCK = 32


def quant_mx(x: Array, quant_dtype: DType, axis: int = -1, **_: Any) -> tuple[Array, Array]:
    """Blocks of 32 along ``axis`` share a power of two: 2**(floor(log2(largest magnitude)) - emax) (MX 1.0, section 6.3).

    Elements are x / scale rounded to nearest even, saturated at the largest finite value. A block of zeros has the smallest scale; a NaN
    in a block makes its scale NaN.
    """
    rows = np.moveaxis(np.asarray(x, dtype=np.float64), axis, -1)
    blocks = rows.reshape(*rows.shape[:-1], -1, BLOCK)
    with np.errstate(all="ignore"):
        largest = np.amax(np.abs(blocks), axis=-1)
        _, exponent = np.frexp(largest)
        power = np.clip(exponent - 1 - EMAX[quant_dtype.name], -127, 127)
        power = np.where(largest == 0, -127, np.where(np.isinf(largest), 127, power))
        scale = np.where(np.isnan(largest), np.nan, np.ldexp(1.0, power))
        top = LARGEST[quant_dtype.name]
        scaled = np.clip(np.ldexp(blocks, -power[..., None]), -top, top)
    q = reference.round_to(scaled, quant_dtype).astype(np.float64).reshape(rows.shape)
    return np.moveaxis(q, -1, axis), np.moveaxis(scale, -1, axis)


def expand_scale(scale: Array, extent: int, axis: int) -> Array:
    """One scale per element from one per block of 32 along ``axis``."""
    wide = np.repeat(scale, BLOCK, axis=axis)
    return np.take(wide, np.arange(extent), axis=axis)


def scaled_mm(a: Array, b: Array, scale_a: Array, scale_b: Array, bias: Array | None = None, a_trans: bool = False, b_trans: bool = False,
              **_: Any) -> Array:
    """The product of block-scaled matrices: scale_a has one power of two per 32 columns of a, scale_b one per 32 rows of b."""
    left, right = (np.swapaxes(v, -1, -2) if t else v for v, t in ((a, a_trans), (b, b_trans)))
    depth = left.shape[-1]
    with np.errstate(all="ignore"):
        product = np.matmul(left * expand_scale(scale_a, depth, -1), right * expand_scale(scale_b, depth, -2))
        return np.asarray(product if bias is None else product + bias)


# ---- Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11 -------------------------------

_M = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_W = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)


def philox(key: Sequence[int], counter: Sequence[int], blocks: int) -> Array:
    """``blocks`` x 4 words: ten rounds over the counter, the counter's first word and then its second advancing from block to block."""
    start = counter[0] + (counter[1] << 32)
    position = (np.arange(blocks, dtype=np.uint64) + np.uint64(start))
    c = [position & _LOW, position >> np.uint64(32), np.full(blocks, counter[2], np.uint64), np.full(blocks, counter[3], np.uint64)]
    k = [int(key[0]), int(key[1])]
    for _ in range(10):
        first, second = c[0] * _M[0], c[2] * _M[1]
        c = [(second >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), second & _LOW, (first >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), first & _LOW]
        k = [(k[0] + _W[0]) & 0xFFFFFFFF, (k[1] + _W[1]) & 0xFFFFFFFF]
    return np.stack(c, axis=-1).astype(np.uint32)


def words(key: Sequence[int], counter: Sequence[int], count: int) -> Array:
    """The first ``count`` words of the stream."""
    key = [*key, 0, 0][:2]
    counter = [*counter, 0, 0, 0, 0][:4]
    return philox([k & 0xFFFFFFFF for k in key], [c & 0xFFFFFFFF for c in counter], -(-count // 4)).reshape(-1)[:count]


def _extents(shape: Sequence[Index], symbols: Mapping[str, int] | None) -> list[int]:
    return [as_index(e).evaluate(symbols or {}) for e in shape]


def uniform(shape: Sequence[Index] = (), key: Sequence[int] = (0,), counter: Sequence[int] = (0,), dtype: DType = F32,
            symbols: Mapping[str, int] | None = None, **_: Any) -> Array:
    """Multiples of 2**-p in [0, 1), p the dtype's precision: the word's top p bits. So 1 is never rounded to."""
    extents = _extents(shape, symbols)
    bits = min(dtype.mantissa, 24)
    top = words(key, counter, math.prod(extents)) >> np.uint32(32 - bits)
    return (top.astype(np.float64) * 2.0**-bits).reshape(extents)


def normal(shape: Sequence[Index] = (), key: Sequence[int] = (0,), counter: Sequence[int] = (0,), dtype: DType = F32,
           symbols: Mapping[str, int] | None = None, **_: Any) -> Array:
    """Box and Muller's transform of pairs of words: sqrt(-2 ln u1) times cos and sin of 2 pi u2, with u1 = (word + 1) / 2**32."""
    extents = _extents(shape, symbols)
    count = math.prod(extents)
    pairs = words(key, counter, 2 * -(-count // 2)).reshape(-1, 2).astype(np.float64)
    radius = np.sqrt(-2.0 * np.log((pairs[:, 0] + 1.0) * 2.0**-32))
    angle = 2.0 * np.pi * pairs[:, 1] * 2.0**-32
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).reshape(-1)[:count].reshape(extents)


def pack(x: Array, source: DType, **_: Any) -> Array:
    """The bytes of each element, lowest first, along the last axis."""
    return np.ascontiguousarray(np.asarray(x).astype(source.numpy)).view(np.uint8)


def unpack(x: Array, dtype: DType, **_: Any) -> Array:
    """Elements of ``dtype`` from their bytes, lowest first, along the last axis."""
    return np.ascontiguousarray(x).view(dtype.numpy)


