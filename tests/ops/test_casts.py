"""Casts: one rounding, every mode, saturation and wraps, against exact rationals; what a pair does not have is refused."""
from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from machine import evaluate, graph_of
from samples import INTEGERS, integers

from pypto_dsl.compiler.dtypes import ALL, BF16, BOOL, F8E4M3, F8E5M2, F8E8M0, F16, F32, F64, I8, I32, I64, U8, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY

NARROW = (F32, F16, BF16, F8E5M2, F8E4M3)
MODES = ("CAST_NONE", "CAST_RINT", "CAST_ROUND", "CAST_FLOOR", "CAST_CEIL", "CAST_TRUNC", "CAST_ODD")
STORED = [d for d in ALL if d.kind != "block"]


def neighbours(x: Fraction, dtype: DType) -> tuple[Fraction, Fraction]:
    """The values of ``dtype`` (without an upper end) below and above ``x``."""
    info = ml_dtypes.finfo(dtype.numpy)
    lowest = int(info.minexp) - (dtype.mantissa - 1)
    magnitude = abs(x)
    exponent = math.floor(math.log2(magnitude)) if magnitude else lowest
    while Fraction(2) ** (exponent + 1) <= magnitude:
        exponent += 1
    while magnitude and Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - (dtype.mantissa - 1), lowest)
    count = math.floor(x / unit)
    return count * unit, (count + (count * unit != x)) * unit


def rounded(x: float, dtype: DType, mode: str) -> float:
    """``x`` rounded by ``mode`` in exact rationals; inf beyond the largest finite value of the mode."""
    exact = Fraction(x)
    low, high = neighbours(exact, dtype)
    if low == high:
        return x
    unit = high - low
    inner, outer = (low, high) if exact > 0 else (high, low)
    half = abs(exact - inner) - unit / 2
    chosen = {
        "CAST_FLOOR": low, "CAST_CEIL": high, "CAST_TRUNC": inner, "CAST_ROUND": outer if half >= 0 else inner,
        "CAST_ODD": inner if (abs(inner) / unit) % 2 == 1 else outer,
    }.get(mode)
    if chosen is None:  # nearest even
        even = inner if (abs(inner) / unit) % 2 == 0 else outer
        chosen = outer if half > 0 else inner if half < 0 else even
    return math.copysign(float(chosen), x)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", NARROW, ids=str)
def test_float_to_float_rounds_once(target: DType, mode: str) -> None:
    """From f64, where a step through f32 would round twice: values beside ties included."""
    rng = np.random.default_rng(target.bits)
    top = float(ml_dtypes.finfo(target.numpy).max)
    base = np.concatenate([rng.normal(size=60), rng.normal(size=30) * top * 0.3,
                           rng.normal(size=30) * float(ml_dtypes.finfo(target.numpy).tiny)])
    base = np.clip(base, -top * 0.9, top * 0.9)
    ties = base.astype(np.float32).astype(target.numpy).astype(np.float64)
    unit = np.abs(ties - np.nextafter(ties.astype(np.float32).astype(target.numpy), target.numpy.type(top)).astype(np.float64)) / 2
    x = np.concatenate([base, ties, ties + unit, ties + unit * (1 + 1e-12), ties + unit * (1 - 1e-12), [0.0, -0.0]])
    x = x[np.abs(x) < top * 0.95]
    got = evaluate("cast", x, dtype=target, mode=mode).astype(np.float64)
    want = np.array([rounded(float(v), target, mode) for v in x])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


@pytest.mark.parametrize("source", [d for d in INTEGERS if d.bits > 8], ids=str)
@pytest.mark.parametrize("target", (F64, *NARROW), ids=str)
def test_integer_to_float_rounds_once(source: DType, target: DType) -> None:
    x = integers(source, np.random.default_rng(3), 200)
    near = np.array([(1 << 24) + (1 << 16) + 1, (1 << 25) + (1 << 13) + 1, (1 << 53) + 1, (1 << 62) + (1 << 38) + 1], dtype=object)
    x = np.concatenate([x, np.array([int(v) for v in near if v <= source.range[1]], dtype=source.numpy)])
    got = evaluate("cast", x, dtype=target).astype(np.float64)
    top = float(ml_dtypes.finfo(target.numpy).max)
    for value, made in zip(x, got, strict=True):
        low, high = neighbours(Fraction(int(value)), target)
        want = low if low == high else min((low, high), key=lambda v: (abs(v - int(value)), (abs(v) / (high - low)) % 2))
        if abs(want) > top:
            assert np.isnan(made) if target is F8E4M3 else math.isinf(made), (value, made)
        else:
            assert made == float(want), (int(value), made, float(want))


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", (F16, F32, F64, BF16), ids=str)
@pytest.mark.parametrize("mode", MODES[:-1])
def test_float_to_integer_rounds_then_saturates(source: DType, target: DType, mode: str) -> None:
    """NaN gives 0; the default mode truncates."""
    low, high = target.range
    x = np.array([0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.49999997, 1e9, -1e9, 3e38, -3e38, np.inf, -np.inf, np.nan, 127.5, -128.5,
                  255.5, 510.0, float(low), float(high)])
    with np.errstate(all="ignore"):
        given = x.astype(np.float32 if source.bits < 64 else np.float64).astype(source.numpy)
    wide = given.astype(np.float64)
    step: Callable[[float], int] = {
        "CAST_RINT": lambda v: round(Fraction(v)), "CAST_FLOOR": math.floor, "CAST_CEIL": math.ceil,
        "CAST_ROUND": lambda v: int(math.copysign(math.floor(abs(Fraction(v)) + Fraction(1, 2)), v)),
    }.get(mode, math.trunc)
    want = [0 if math.isnan(v) else (high if v > 0 else low) if math.isinf(v) else min(max(int(step(v)), low), high) for v in wide]
    assert evaluate("cast", given, dtype=target, mode=mode).tolist() == want


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integer_to_integer(source: DType, target: DType) -> None:
    """Wraps; with satmode ON saturates."""
    x = integers(source, np.random.default_rng(1), 60)
    low, high = target.range
    wrap = [((int(v) - low) % (1 << target.bits)) + low for v in x]
    assert evaluate("cast", x, dtype=target).tolist() == wrap
    assert evaluate("cast", x, dtype=target, satmode="ON").tolist() == [min(max(int(v), low), high) for v in x]


def test_to_bool_and_back() -> None:
    x = np.array([0.0, -0.0, 1e-40, np.nan, -3.0], np.float32)
    assert evaluate("cast", x, dtype=BOOL).tolist() == [False, False, True, True, True]
    for target in STORED:
        if target is not F8E8M0:
            assert evaluate("cast", np.array([False, True]), dtype=target).astype(np.float64).tolist() == [0.0, 1.0]


def test_fp8_overflow() -> None:
    """Report B21: e5m2 has inf; e4m3fn has none and gives NaN, or its largest value with satmode ON."""
    x = np.array([np.inf, 1e6, 57344.0, -np.inf, np.nan], np.float32)
    assert evaluate("cast", x, dtype=F8E5M2).astype(np.float64).tolist()[:4] == [np.inf, np.inf, 57344.0, -np.inf]
    y = np.array([448.0, 464.0, 465.0, 1e6, -np.inf, np.nan], np.float32)
    plain = evaluate("cast", y, dtype=F8E4M3).astype(np.float64)
    assert plain[:2].tolist() == [448.0, 448.0] and np.isnan(plain[2:]).all()
    full = evaluate("cast", y, dtype=F8E4M3, satmode="ON").astype(np.float64)
    assert full[:5].tolist() == [448.0, 448.0, 448.0, 448.0, -448.0] and np.isnan(full[5])


def test_report_b23() -> None:
    x = np.array([np.inf, 510, -200, np.nan], np.float16)
    assert evaluate("cast", x, dtype=I8).tolist() == [127, 127, -128, 0]


def test_subnormals_survive_narrowing() -> None:
    x = np.array([9e-41, -9e-41, 2.0**-133, 2.0**-134, 2.0**-134 * 1.01], np.float32)
    assert evaluate("cast", x, dtype=BF16).astype(np.float64).tolist() == [2.0**-133, -(2.0**-133), 2.0**-133, 0.0, 2.0**-133]


@pytest.mark.parametrize("source", STORED, ids=str)
@pytest.mark.parametrize("target", STORED, ids=str)
def test_every_pair_has_its_modes_and_refuses_the_rest(source: DType, target: DType) -> None:
    """A mode either works or is PT111 that lists those that do; never a silent default."""
    x = np.ones(2, source.numpy)
    allowed = []
    for mode in MODES:
        try:
            graph_of(lambda p, m=mode: REGISTRY["cast"](p, target, m), x)
            allowed.append(mode)
        except KernelError as refused:
            assert refused.code == "PT111" and "CAST_RINT" in str(refused)
    assert {"CAST_NONE", "CAST_RINT"} <= set(allowed)
    if source.is_float and target.is_integer:
        assert allowed == list(MODES[:-1])
    if source.is_float and target.is_float and target is not F8E8M0:
        assert allowed == list(MODES)
    if source.is_integer and target.is_float and source.mantissa > target.mantissa:
        assert allowed == ["CAST_NONE", "CAST_RINT"]
    with pytest.raises(KernelError, match="PT111"):
        graph_of(lambda p: REGISTRY["cast"](p, target, "CAST_UP"), x)


@pytest.mark.parametrize("source", STORED, ids=str)
@pytest.mark.parametrize("target", STORED, ids=str)
def test_bitcast_needs_equal_widths(source: DType, target: DType) -> None:
    x = np.arange(4, dtype=np.uint8).repeat(16)[:64].view(np.uint8) % 2
    given = x.astype(source.numpy) if source is BOOL else np.ascontiguousarray(x).view(source.numpy)
    if source.bits != target.bits:
        with pytest.raises(KernelError) as caught:
            graph_of(lambda p: REGISTRY["bitcast"](p, target), given)
        assert caught.value.code == "PT203"
    else:
        assert evaluate("bitcast", given, dtype=target).tobytes() == given.tobytes()


def test_a_cast_is_strong_and_keeps_scalars_scalars() -> None:
    for dtype in (I32, I64, U8, F16, F32):
        g = graph_of(lambda p, d=dtype: REGISTRY["cast"](p, d), np.float32(2.5))
        assert g.returns[0].type.dtype is dtype and not g.returns[0].type.weak and g.returns[0].type.shape == ()
