"""Quantization, and products of block-scaled matrices."""
from __future__ import annotations

from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import F32, DType
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
    """(x - zero_points) * scale, the integers read as f32."""
    x = x.astype(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        shifted = x if zero_points is None else x - along(zero_points, x, axis)
        return np.asarray(shifted * along(scale, x, axis))


def dequantize_scale(x: Array, scale: Array, zero_points: Array | None = None, axis: int = -1, **_: Any) -> Array:
    x = x.astype(np.float64)
    return np.asarray((np.abs(x) + (0.0 if zero_points is None else np.abs(along(zero_points, x, axis)))) * np.abs(along(scale, x, axis)))


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


def scaled_mm_scale(a: Array, b: Array, scale_a: Array, scale_b: Array, bias: Array | None = None, **keywords: Any) -> Array:
    """The same sum of magnitudes."""
    return scaled_mm(np.abs(a), np.abs(b), np.abs(scale_a), np.abs(scale_b), None if bias is None else np.abs(bias), **keywords)
