"""What the devices build of other operations, run in the emulators: reductions of integers, masks, roundings, conversions to bytes."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.errors import KernelError

BF16 = ml_dtypes.bfloat16
pytestmark = pytest.mark.parametrize("target", ["ascend-a2-emu", "tt-wormhole-emu"])


def computed(kernel: Any, target: str, arrays: list[Any], *outs: tuple[tuple[int, ...], Any]) -> list[Any]:
    """The outputs of a kernel over ``arrays``; each output is a shape and a dtype."""
    made = [np.full(shape, 3, dtype) for shape, dtype in outs]
    kernel.run(*arrays, *made, target=target)
    return made


def test_functions_and_roundings(target: str) -> None:
    """Circular functions over documented angles; roundings and neighbours of ties bit for bit."""
    @pypto.jit
    def k(x, s, c, t, f, e, r, d, i):
        s[:] = pypto.sin(x)
        c[:] = pypto.cos(x)
        t[:] = pypto.tan(x)
        f[:] = pypto.floor(x)
        e[:] = pypto.ceil(x)
        r[:] = pypto.trunc(x)
        d[:] = pypto.round(x, 1)
        i[:] = pypto.i1(x)

    x = (np.random.default_rng(0).normal(size=(33, 40)) * 9).astype(np.float32)
    x[0, :8] = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 2.35, -2.35]
    s, c, t, f, e, r, d, i = computed(k, target, [x], *[(x.shape, np.float32)] * 8)
    wide = x.astype(np.float64)
    for got, want in ((s, np.sin(wide)), (c, np.cos(wide)), (t, np.tan(wide))):
        np.testing.assert_allclose(got, want, rtol=4e-7, atol=1e-30)
    for got, want in ((f, np.floor(x)), (e, np.ceil(x)), (r, np.trunc(x))):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    assert d[0, :8].tolist() == np.float32([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 2.4, -2.4]).tolist() and np.isfinite(i).all()


def test_reductions_of_integers(target: str) -> None:
    """INT32 over its whole range, and the positions of its extremes."""
    @pypto.jit
    def k(x, total, largest, smallest):
        total[:] = pypto.sum(x, -1, True)
        largest[:] = pypto.amax(x, -1, True)
        smallest[:] = pypto.amin(x, -1, True)

    x = np.random.default_rng(1).integers(-2**31, 2**31, (33, 64)).astype(np.int32)
    x[1], x[2], x[3] = x[1] % 7, -(2**31), 2**31 - 1
    total, largest, smallest = computed(k, target, [x], *[((33, 1), np.int32)] * 3)
    np.testing.assert_array_equal(total, x.sum(-1, keepdims=True, dtype=np.int32))
    np.testing.assert_array_equal(largest, x.max(-1, keepdims=True))
    np.testing.assert_array_equal(smallest, x.min(-1, keepdims=True))


def test_truths_and_what_passes_over_nan(target: str) -> None:
    """any, all, argmin and variances; NaN is true, and is passed over when asked."""
    @pypto.jit
    def k(x, every, some, first, spread):
        every[:] = pypto.where(pypto.all(x, -1, True), 1.0, 0.0)
        some[:] = pypto.where(pypto.any(x, -1, True), 1.0, 0.0)
        first[:] = pypto.argmin(x, -1, True)
        spread[:] = pypto.var(x, -1, 1, True, nan="ignore")

    x = np.random.default_rng(2).normal(size=(33, 64)).astype(np.float32)
    x[3], x[4, :], x[4, 9], x[5, 7], x[6, 3] = 0, 0, 1, np.nan, 0
    outs = [((33, 1), dtype) for dtype in (np.float32, np.float32, np.int32, np.float32)]
    every, some, first, spread = computed(k, target, [x], *outs)
    np.testing.assert_array_equal(every, (x != 0).all(-1, keepdims=True))
    np.testing.assert_array_equal(some, (x != 0).any(-1, keepdims=True))
    np.testing.assert_array_equal(first, np.argmin(x, -1, keepdims=True))
    np.testing.assert_allclose(spread, np.nanvar(x.astype(np.float64), axis=-1, ddof=1, keepdims=True), rtol=2e-5, atol=1e-7)


def test_masks_of_bf16(target: str) -> None:
    @pypto.jit
    def k(x, y, out):
        out[:] = pypto.where(pypto.logical_xor(x, y), x, y)

    rng = np.random.default_rng(3)
    x, y = (np.where(rng.random((33, 40)) < 0.3, 0, rng.normal(size=(33, 40))).astype(np.float32).astype(BF16) for _ in range(2))
    (out,) = computed(k, target, [x, y], (x.shape, BF16))
    np.testing.assert_array_equal(out, np.where((x != 0) ^ (y != 0), x, y))


def test_bytes(target: str) -> None:
    """Quantised rows, clamped and rounded to even, where the device moves bytes; elsewhere a refusal that names the dtype."""
    @pypto.jit
    def k(x, scale, out):
        out[:] = pypto.quantize(x, scale, pypto.DT_INT8)

    x = (np.random.default_rng(4).normal(size=(33, 64)) * 3).astype(np.float32)
    x[0, :4] = [np.inf, -np.inf, np.nan, 0.05]
    scale = np.full(64, 30, np.float32)
    if target.startswith("tt"):
        with pytest.raises(KernelError, match="i8") as caught:
            computed(k, target, [x, scale], (x.shape, np.int8))
        assert caught.value.code == "PT502"
        return
    (out,) = computed(k, target, [x, scale], (x.shape, np.int8))
    np.testing.assert_array_equal(out, np.nan_to_num(np.clip(np.rint(x * np.float32(30)), -128, 127), nan=0).astype(np.int8))


def test_bits_and_counts(target: str) -> None:
    """Bits of floats that were loaded, of whole tiles and of columns beside their values; shifts whose counts differ by element."""
    @pypto.jit
    def k(x, n, left, right):
        left[:] = n << (n & 31)
        right[:] = n >> pypto.clip(pypto.cast(x, pypto.DT_INT32), -2, 40)

    @pypto.jit
    def b(x, column, bits, sums, values):
        bits[:] = pypto.bitcast(x, pypto.DT_INT32)
        whole = pypto.bitcast(column, pypto.DT_INT32)
        sums[:] = pypto.bitcast(x, pypto.DT_INT32) + whole
        values[:] = x * column

    rng = np.random.default_rng(3)
    x = (rng.normal(size=(33, 40)) * 20).astype(np.float32)
    n = rng.integers(-2**31, 2**31, x.shape).astype(np.int32)
    left, right = computed(k, target, [x, n], (x.shape, np.int32), (x.shape, np.int32))
    np.testing.assert_array_equal(left, n << (n & 31))
    counts = np.clip(np.trunc(x), -2, 40).astype(np.int64)
    np.testing.assert_array_equal(right, n >> np.where((counts < 0) | (counts > 31), 31, counts).astype(np.int32))
    column = x[:, :1].copy()
    if target.startswith("tt"):
        with pytest.raises(KernelError) as caught:
            computed(b, target, [x, column], (x.shape, np.int32), (x.shape, np.int32), (x.shape, np.float32))
        assert caught.value.code == "PT502" and "bitcast" in str(caught.value)
        return
    bits, sums, values = computed(b, target, [x, column], (x.shape, np.int32), (x.shape, np.int32), (x.shape, np.float32))
    np.testing.assert_array_equal(bits, x.view(np.int32))
    np.testing.assert_array_equal(sums, x.view(np.int32) + column.view(np.int32))
    np.testing.assert_array_equal(values, x * column)


def test_short_integers(target: str) -> None:
    """Operations on INT16, INT8 and UINT8 wrap as they do on the host; TT-Metal has no tiles of them and says so."""
    @pypto.jit
    def k(x, y, total, product, larger, less, shifted, smallest, chosen):
        total[:] = x + y
        product[:] = x * y
        larger[:] = pypto.maximum(x, y)
        less[:] = x < y
        shifted[:] = x >> 3
        smallest[:] = pypto.amin(x, -1, True)
        chosen[:] = pypto.where(x > y, x, y - x)

    rng = np.random.default_rng(4)
    for dtype in (np.int16, np.int8, np.uint8):
        info = np.iinfo(dtype)
        x, y = (rng.integers(info.min, info.max + 1, (33, 40)).astype(dtype) for _ in range(2))
        same = (x.shape, dtype)
        outs = [same, same, same, (x.shape, np.bool_), same, ((33, 1), dtype), same]
        if target.startswith("tt"):
            with pytest.raises(KernelError) as caught:
                computed(k, target, [x, y], *outs)
            assert caught.value.code == "PT502"
            continue
        got = computed(k, target, [x, y], *outs)
        for made, want in zip(got, (x + y, x * y, np.maximum(x, y), x < y, x >> 3, x.min(-1, keepdims=True), np.where(x > y, x, y - x)),
                              strict=True):
            np.testing.assert_array_equal(made, want)


def test_products_and_scans(target: str) -> None:
    """Along either axis, of every small extent: built of halves and steps where windows lie anywhere; TT-Metal moves whole tiles."""
    @pypto.jit
    def k(x, product, sums, products):
        product[:] = pypto.prod(x, -1, True)
        sums[:] = pypto.cumsum(x, -1)
        products[:] = pypto.cumprod(x, 0)

    rng = np.random.default_rng(5)
    for shape in ((5, 1), (5, 2), (7, 3), (3, 17), (33, 64), (2, 65)):
        x = (rng.uniform(0.8, 1.25, shape) * rng.choice([-1, 1], shape)).astype(np.float32)
        outs = (((shape[0], 1), np.float32), (shape, np.float32), (shape, np.float32))
        if target.startswith("tt"):
            with pytest.raises(KernelError) as caught:
                computed(k, target, [x], *outs)
            assert caught.value.code == "PT502" and "prod" in str(caught.value)
            return
        product, sums, products = computed(k, target, [x], *outs)
        wide = x.astype(np.float64)
        np.testing.assert_allclose(product, wide.prod(-1, keepdims=True), rtol=4e-6)
        np.testing.assert_allclose(products, wide.cumprod(0), rtol=4e-6)
        assert (np.abs(sums - wide.cumsum(-1)) <= 4 * np.spacing(np.abs(x).cumsum(-1))).all()
