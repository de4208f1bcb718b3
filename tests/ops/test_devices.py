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
    assert d[0, :8].tolist() == np.float32([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 2.3, -2.3]).tolist() and np.isfinite(i).all()


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
