"""Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11; and distributions from its words."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import F32, DType
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops.references.functions import Array

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
        left, right = (second >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), (first >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1])
        c = [left, second & _LOW, right, first & _LOW]
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


def dropout(x: Array, probability: float = 0.5, key: Sequence[int] = (0,), counter: Sequence[int] = (0,), **_: Any) -> Array:
    """0 where the uniform number of the element's position is below ``probability``, else x / (1 - probability)."""
    numbers = uniform([as_index(n) for n in x.shape], key, counter)
    return np.where(numbers < np.float32(probability), 0.0, x * (1.0 / (1.0 - probability)))
