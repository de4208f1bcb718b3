"""Quantization against its formulas, and the MX block formats against the specification's words."""
from __future__ import annotations

import math

import numpy as np
import pytest
from machine import evaluate, execute, expanded, graph_of

from pypto_dsl.compiler.dtypes import BF16, F8E4M3, F8E5M2, F16, F32, I8, U8, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY

RNG = np.random.default_rng(4)


def run(name: str, *arrays: np.ndarray, expand: bool, **attributes: object) -> np.ndarray:
    def call(*p: object) -> object:
        operands = [d.name for d in REGISTRY[name].operands]
        return REGISTRY[name](**dict(zip(operands, p, strict=False)), **attributes)

    return execute((expanded if expand else graph_of)(call, *arrays), *arrays)[0]


@pytest.mark.parametrize("expand", [False, True], ids=["reference", "expansion"])
@pytest.mark.parametrize("otype", (I8, U8), ids=str)
@pytest.mark.parametrize("source", (F32, F16, BF16), ids=str)
def test_quantize(source: DType, otype: DType, expand: bool) -> None:
    """Halves to even, saturation, NaN to 0; a scale per column, per row, or one."""
    x = (RNG.normal(size=(5, 6)) * 80).astype(source.numpy)
    x[0, :4] = [np.nan, np.inf, -np.inf, 2.5]
    low, high = otype.range
    for scale, axis, wide in ((RNG.uniform(0.5, 2, 6), -1, None), (RNG.uniform(0.5, 2, 5), -2, np.s_[:, None]), (np.array([1.0]), -1, None),
                              (RNG.uniform(0.5, 2, (5, 1)), -1, None)):
        s = scale.astype(np.float32)
        product = (x.astype(np.float32) * (s if wide is None else s[wide])).astype(np.float64)
        for zero in (None, np.array([3.0], np.float32)):
            shifted = np.rint(product) + (0 if zero is None else 3.0)
            want = np.where(np.isnan(shifted), 0, np.clip(shifted, low, high)).astype(otype.numpy)
            arrays = [x, s] + ([] if zero is None else [zero])
            np.testing.assert_array_equal(run("quantize", *arrays, expand=expand, otype=otype, axis=axis), want)


@pytest.mark.parametrize("expand", [False, True], ids=["reference", "expansion"])
def test_dequantize(expand: bool) -> None:
    x, scale = RNG.integers(-128, 128, (4, 6)).astype(np.int8), RNG.uniform(0.01, 1, 6).astype(np.float32)
    zero = np.full(6, 5, np.float32)
    np.testing.assert_array_equal(run("dequantize", x, scale, expand=expand), x.astype(np.float32) * scale)
    np.testing.assert_array_equal(run("dequantize", x, scale, zero, expand=expand), (x.astype(np.float32) - 5) * scale)
    for otype in (F16, BF16):
        got = run("dequantize", x, scale, expand=expand, otype=otype)
        np.testing.assert_array_equal(got.astype(np.float32), (x.astype(np.float32) * scale).astype(otype.numpy).astype(np.float32))


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("quant", (F8E4M3, F8E5M2), ids=str)
def test_quant_mx(quant: DType, axis: int) -> None:
    """MX 1.0, 6.3: the shared exponent is floor(log2(max)) - emax; elements saturate and round to nearest even."""
    x = (RNG.normal(size=(64, 64)) * np.exp2(RNG.integers(-20, 20, (64, 64)))).astype(np.float32)
    x[:, :32] *= np.float32(0)
    x[0, 40] = np.nan
    q, scale = evaluate("quant_mx", x, quant_dtype=quant, axis=axis)
    assert q.dtype == quant.numpy and scale.dtype.name == "float8_e8m0fnu"
    rows = np.moveaxis(x, axis, -1).astype(np.float64)
    elements, scales = np.moveaxis(q, axis, -1).astype(np.float64), np.moveaxis(scale, axis, -1).astype(np.float64)
    emax, top = {"f8e4m3": (8, 448.0), "f8e5m2": (15, 57344.0)}[quant.name]
    for row, block in np.ndindex(scales.shape):
        part = rows[row, 32 * block: 32 * block + 32]
        made = elements[row, 32 * block: 32 * block + 32]
        largest = np.abs(part).max()
        if np.isnan(largest):
            assert np.isnan(scales[row, block])
            continue
        want = 2.0**-127 if largest == 0 else 2.0 ** max(-127, math.floor(math.log2(largest)) - emax)
        assert scales[row, block] == want
        np.testing.assert_array_equal(made, np.clip(part / want, -top, top).astype(np.float32).astype(quant.numpy).astype(np.float64))


def test_scaled_mm() -> None:
    a, b = (RNG.normal(size=s).astype(np.float32).astype(F8E4M3.numpy) for s in ((3, 64), (64, 5)))
    sa, sb = np.exp2(RNG.integers(-3, 4, (3, 2))).astype(np.float32), np.exp2(RNG.integers(-3, 4, (2, 5))).astype(np.float32)
    bias = RNG.normal(size=5).astype(np.float32)
    left, right = a.astype(np.float64) * sa.repeat(32, 1), b.astype(np.float64) * sb.repeat(32, 0)
    np.testing.assert_allclose(evaluate("scaled_mm", a, b, sa, sb), left @ right, rtol=1e-6)
    np.testing.assert_allclose(run("scaled_mm", a, b, sa, sb, bias, expand=False), left @ right + bias, rtol=1e-6, atol=1e-6)
    got = run("scaled_mm", np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), sa, sb, expand=False, a_trans=True, b_trans=True,
              out_dtype=F16)
    np.testing.assert_array_equal(got, (left @ right).astype(np.float32).astype(np.float16))


@pytest.mark.parametrize(("code", "name", "arrays", "attributes"), [
    ("PT203", "quantize", (np.ones((2, 2), np.int32), np.ones(2, np.float32)), {}),
    ("PT203", "quantize", (np.ones((2, 2), np.float32), np.ones(2, np.float32)), {"otype": F32}),
    ("PT307", "quantize", (np.ones((2, 2), np.float32), np.ones(3, np.float32)), {}),
    ("PT203", "dequantize", (np.ones((2, 2), np.float32), np.ones(2, np.float32)), {}),
    ("PT317", "quant_mx", (np.ones((2, 33), np.float32),), {}),
    ("PT203", "quant_mx", (np.ones((2, 32), np.float32),), {"quant_dtype": F16}),
    ("PT307", "scaled_mm",
     (np.ones((2, 32), np.float32), np.ones((32, 2), np.float32), np.ones((2, 2), np.float32), np.ones((1, 2), np.float32)), {}),
    ("PT304", "scaled_mm",
     (np.ones((2, 32), np.float32), np.ones((64, 2), np.float32), np.ones((2, 1), np.float32), np.ones((1, 2), np.float32)), {}),
], ids=lambda v: v if isinstance(v, str) else "")
def test_operands_are_checked(code: str, name: str, arrays: tuple[np.ndarray, ...], attributes: dict[str, object]) -> None:
    with pytest.raises(KernelError) as caught:
        run(name, *arrays, expand=False, **attributes)
    assert caught.value.code == code
