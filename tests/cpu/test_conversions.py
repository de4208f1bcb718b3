"""Casts between every pair of dtypes: all 16-bit patterns, rounding to nearest even, saturation, NaN, subnormals, every width."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from vector_functions import LEVELS, Array, bits, function

from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.ops import reference

SIXTEEN = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
NAMES = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", SIXTEEN)
def test_every_sixteen_bit_float_widens_exactly(name: str, level: str) -> None:
    x = np.arange(65536, dtype=np.uint16).view(SIXTEEN[name])
    assert (bits(function("cast", name, "f32", level)(x)) == bits(x.astype(np.float32))).all()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", SIXTEEN)
def test_f32_narrows_to_nearest_even(name: str, level: str) -> None:
    """Every 16-bit value, every midpoint between two of them, and both neighbours of each in f32."""
    every = np.arange(65536, dtype=np.uint16).view(SIXTEEN[name]).astype(np.float32)
    shift = 16 if name == "bf16" else 13
    half = 1 << (shift - 1)
    around = every.view(np.uint32)[:, None] + np.array([0, 1, -1, half, half + 1, half - 1]).astype(np.uint32)
    x = np.concatenate([around.ravel(), np.arange(0, 2**32, 65521, dtype=np.uint64).astype(np.uint32)]).view(np.float32)
    with np.errstate(all="ignore"):
        want = x.astype(SIXTEEN[name])
    assert (bits(function("cast", "f32", name, level)(x)) == bits(want)).all()


def values(name: str) -> Array:
    dtype = BY_NAME[name]
    rng = np.random.default_rng(1)
    if dtype.kind == "bool":
        return np.array([False, True] * 20)
    if dtype.is_integer:
        low, high = dtype.range
        edges = [v for w in (8, 16, 32, 64) for v in (2**(w - 1), 2**(w - 1) - 1, -(2**(w - 1)), 2**w - 1) if low <= v <= high]
        return np.concatenate([np.array([low, high, 0, 1, *edges], dtype.numpy), rng.integers(low, high, 200, dtype.numpy, endpoint=True)])
    midpoints = [(1 + 2.0**-bits) * 2**k for bits in (8, 11) for k in range(-3, 4)] + [1 + 2.0**-8 + 2.0**-40]
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, -1.5, -2.5, 0.49999997, 127.5, 128.5, 255.5, -128.5, 32767.5,
               65504.0, 1e-40]
    wide = [2147483647.0, 2147483648.0, -2147483648.0, -2147483904.0, 4294967296.0, 9.2e18, 9.3e18, -9.3e18, 1.9e19, 3e38, -3e38]
    with np.errstate(all="ignore"):
        drawn = [rng.normal(size=100) * 1000, rng.normal(size=100) * 1e10]
        return np.concatenate([np.array(special + wide + midpoints), *drawn]).astype(dtype.numpy)


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_casts_mean_the_reference(source: str, target: str) -> None:
    x = values(source)
    modes = ["CAST_NONE"]
    if BY_NAME[source].is_float and BY_NAME[target].is_integer:
        modes = ["CAST_NONE", "CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC"]
    if BY_NAME[target].is_float:
        modes = ["CAST_NONE", "CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"]
    saturations = ["OFF", "ON"] if BY_NAME[source].is_integer and BY_NAME[target].is_integer else ["OFF"]
    for mode in modes:
        for satmode in saturations:
            want = meaning(x, source, target, mode, satmode)
            for level in LEVELS:
                got = function("cast", source, target, level, mode=mode, satmode=satmode)(x)
                assert got.dtype == want.dtype
                same = bits(got) == bits(want) if BY_NAME[target].is_float else got == want
                assert same.all(), (mode, satmode, level, x[~same][:5], got[~same][:5], want[~same][:5])


def meaning(x: Array, source: str, target: str, mode: str, satmode: str) -> Array:
    """The op table's reference, called as the interpreter calls it."""
    to, since = BY_NAME[target], BY_NAME[source]
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) if since.is_float else x
        return np.asarray(reference.cast(exact, to, since, mode, satmode)).astype(to.numpy)


@pytest.mark.parametrize("level", LEVELS)
def test_bf16_subnormals_survive(level: str) -> None:
    """The processor's own conversion would flush them."""
    x = np.array([1e-40, -1e-40, 9.2e-41, 4.6e-41], np.float32)
    got = function("cast", "f32", "bf16", level)(x)
    assert (got.astype(np.float32) != 0).all()
