"""round to decimals against rationals: reference, expansion and CPU, over ties, their neighbours and every number of decimals."""
from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from machine import evaluate, execute, expanded, ulps
from test_overflow import on_cpu

from pypto_dsl.compiler.dtypes import BF16, F16, F32, F64, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY

DECIMALS = (1, 2, 3, 5, 10, 11, 15, 25, 37, -1, -2, -5, -10, -11, -23, -37)


def near_ties(decimals: int, dtype: DType) -> np.ndarray:
    """Halves of 10**-decimals, what lies beside them, and numbers of many magnitudes."""
    rng = np.random.default_rng(decimals + 40)
    unit = 10.0**-decimals
    with np.errstate(all="ignore"):
        x = np.concatenate([(rng.integers(-3000, 3000, 150) + 0.5) * unit, rng.integers(-3000, 3000, 50) * unit * 0.1,
                            rng.normal(size=100) * unit * 10.0 ** rng.integers(-2, 9, 100)]).astype(dtype.numpy)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38], dtype.numpy)
        return np.concatenate([x, np.nextafter(x, x.dtype.type(np.inf)), np.nextafter(x, x.dtype.type(-np.inf)), special])


def multiple_of(x: np.floating, decimals: int, dtype: DType) -> Fraction | None:
    """The multiple of the power of ten that the scaled value is nearest to, halves to even; None where no digits are left."""
    factor = dtype.numpy.type(float(10 ** abs(decimals)))
    with np.errstate(all="ignore"):
        scaled = x * factor if decimals > 0 else x / factor
    if not abs(float(scaled)) < 2.0 ** np.finfo(dtype.numpy).nmant * 2:
        return None
    whole = Fraction(round(Fraction(float(scaled))))
    return whole / Fraction(float(factor)) if decimals > 0 else whole * Fraction(float(factor))


@pytest.mark.parametrize("decimals", DECIMALS)
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_against_rationals(dtype: DType, decimals: int) -> None:
    """The multiple, rounded once (the f64 reference once more); the sign stays."""
    x = near_ties(decimals, dtype)
    definition = REGISTRY["round"]
    want = evaluate("round", x, decimals=decimals)
    got = execute(expanded(lambda p: definition(p, decimals=decimals), x), x)[0]
    bound = definition.bound(dtype)
    assert bound is not None and float(ulps(got, want).max()) <= bound
    largest = Fraction(float(np.finfo(dtype.numpy).max))
    for i in np.flatnonzero(np.isfinite(x)):
        multiple = multiple_of(x[i], decimals, dtype)
        assert np.signbit(want[i]) == np.signbit(got[i]) == np.signbit(x[i])
        if multiple is None:
            assert got[i] == want[i] == x[i]
            continue
        if abs(multiple) > largest:
            continue
        unit = Fraction(float(np.spacing(np.abs(x.dtype.type(float(multiple)))))) if multiple else Fraction(1, 2**1074)
        for value in (want[i], got[i]):
            assert abs(Fraction(float(value)) - multiple) <= Fraction(1, 2) * unit, (x[i], value, float(multiple))


@pytest.mark.parametrize("decimals", [1, 2, -1, -2, 11])
@pytest.mark.parametrize("dtype", [F32, F64, F16, BF16], ids=str)
def test_the_cpu_gives_the_references_bits(dtype: DType, decimals: int) -> None:
    """FP32's 2.35 lies below 2.35, and its product with 10 is 23.5: one decimal of it is 2.4, everywhere, as in PyPTO and torch."""
    wide = near_ties(decimals, F64 if dtype is F64 else F32)
    with np.errstate(all="ignore"):
        x = np.concatenate([wide[::3], np.array([2.35, -2.35, 0.25, 1250.0, 35.0])]).astype(dtype.numpy)
    want = evaluate("round", x, decimals=decimals)
    got = on_cpu("round", [x], decimals=decimals)
    assert float(ulps(got, want).max()) <= 0
    if dtype is F32 and decimals == 1:
        assert got[-5:].tolist() == np.float32([2.4, -2.4, 0.2, 1250.0, 35.0]).tolist()


def test_decimals_beyond_the_range_are_refused() -> None:
    for dtype, decimals in ((np.float32, 39), (np.float32, -39), (np.float16, 39), (np.float64, 309)):
        with pytest.raises(KernelError) as caught:
            evaluate("round", np.ones(1, dtype), decimals=decimals)
        assert caught.value.code == "PT111"
    assert evaluate("round", np.ones(1), decimals=308).tolist() == [1.0]
