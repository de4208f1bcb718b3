"""The vector math library against exact references: bounds of the target's file, special values, the same bits at every width."""
from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest
from vector_functions import LEVELS, Array, bits, function, ulps

from pypto_dsl.compiler import targets

BOUNDS = targets.load("llvm-cpu").data["bounds"]
VALUES = Path(__file__).parent.parent / "data" / "numpy_values"
SPECIAL = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1.4e-45, -1.4e-45, 3.4e38, -3.4e38, 1.1754944e-38, 2.0**-126,
                    0.5, -0.5], np.float32)
LD = np.longdouble
FLOATS = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
SQRT_2_OVER_PI = LD(mpmath.nstr(mpmath.sqrt(2 / mpmath.mp.pi), 25))


def gelu_erf(x: Array) -> Array:
    """x Phi(x) by erfc in float64, whose relative error in the tail is a few 1e-15."""
    erfc = np.frompyfunc(math.erfc, 1, 1)
    value = 0.5 * x.astype(np.float64) * erfc(-x.astype(np.float64) * np.sqrt(0.5)).astype(np.float64)
    return np.where(np.isneginf(x), -0.0, value)


def gelu_tanh(x: Array) -> Array:
    u = SQRT_2_OVER_PI * (x + LD("0.044715") * x * x * x)
    return np.where(np.isneginf(x), LD(-0.0), x / (1 + np.exp(-2 * u)))


ERF = np.frompyfunc(math.erf, 1, 1)
UNARY: dict[str, tuple[str, dict[str, str], Callable[[Array], Array]]] = {
    "exp": ("exp", {}, np.exp), "exp2": ("exp2", {}, np.exp2), "expm1": ("expm1", {}, np.expm1), "log": ("log", {}, np.log),
    "log2": ("log2", {}, np.log2), "log10": ("log10", {}, np.log10), "log1p": ("log1p", {}, np.log1p), "tanh": ("tanh", {}, np.tanh),
    "sigmoid": ("sigmoid", {}, lambda x: 1 / (1 + np.exp(-x))), "silu": ("silu", {}, lambda x: x / (1 + np.exp(-x))),
    "erf": ("erf", {}, lambda x: ERF(x.astype(np.float64)).astype(np.float64)), "gelu": ("gelu", {}, gelu_erf),
    "gelu_tanh": ("gelu", {"approximate": "tanh"}, gelu_tanh), "sqrt": ("sqrt", {}, np.sqrt),
    "sin": ("sin", {}, np.sin), "cos": ("cos", {}, np.cos), "tan": ("tan", {}, np.tan),
    "rsqrt": ("rsqrt", {}, lambda x: 1 / np.sqrt(x)), "reciprocal": ("reciprocal", {}, lambda x: 1 / x),
}


def samples() -> Array:
    """Specials, every 4099th bit pattern, and dense draws where the functions change."""
    rng = np.random.default_rng(11)
    patterns = np.arange(0, 2**32, 26003, dtype=np.uint64).astype(np.uint32).view(np.float32)
    dense = [rng.uniform(-1, 1, 40000), rng.uniform(-20, 20, 40000), rng.uniform(-110, 100, 40000), rng.normal(size=20000) * 0.01,
             rng.uniform(0.4, 2.5, 40000), rng.uniform(-15, -0.1, 30000)]
    return np.concatenate([SPECIAL, patterns, *(d.astype(np.float32) for d in dense)])


SAMPLES = samples()


@pytest.mark.parametrize("case", UNARY)
def test_unary_is_within_its_bound_at_every_width(case: str) -> None:
    name, attributes, reference = UNARY[case]
    with np.errstate(all="ignore"):
        want = reference(SAMPLES.astype(LD))
    results = [function(name, "f32", "f32", level, **attributes)(SAMPLES) for level in LEVELS]
    error, wrong = ulps(results[0], want)
    assert not wrong.any(), [(x, g, w) for x, g, w in zip(SAMPLES[wrong], results[0][wrong], want[wrong], strict=True)][:5]
    worst = error.argmax()
    assert error[worst] <= BOUNDS["f32"][name], (SAMPLES[worst], results[0][worst], want[worst], error[worst])
    for level, other in zip(LEVELS[1:], results[1:], strict=True):
        assert (bits(other) == bits(results[0])).all(), level


# The worst inputs found by searching: they keep the bound honest.
HARD: dict[str, list[float]] = {
    "exp": [16.956106, -16.945282], "exp2": [-4.4999757], "expm1": [0.34872153, 17.091547, 0.347138], "tanh": [0.5452675, 0.49837548],
    "sigmoid": [-3.4372146, -16.945282], "silu": [-5.9387817, -0.29037985], "log": [0.97363806], "log1p": [-9.685411e-08],
    "erf": [0.8970165], "gelu": [0.0004544651, -0.030928629, -11.759238, -13.04676, -1.4238617, -1.8427861],
    "gelu_tanh": [-2.7462265, -1.3856616], "rsqrt": [11.631076],
    "sin": [-67642.42, 2.0086725e12, 7.729e28, 3.4028235e38], "cos": [2.3861773, -3.0434306e37], "tan": [2.3606145, 1.0410258e18],
}


@pytest.mark.parametrize("case", HARD)
def test_hard_inputs_against_mpmath(case: str) -> None:
    name, attributes, _ = UNARY[case]
    m = mpmath.mp
    m.dps = 50
    exact: dict[str, Callable[[Any], Any]] = {
        "exp": m.exp, "exp2": lambda x: m.mpf(2) ** x, "expm1": m.expm1, "tanh": m.tanh, "sigmoid": lambda x: 1 / (1 + m.exp(-x)),
        "silu": lambda x: x / (1 + m.exp(-x)), "log": m.log, "log1p": m.log1p, "erf": m.erf, "gelu": lambda x: x * m.ncdf(x),
        "gelu_tanh": lambda x: x / (1 + m.exp(-2 * m.sqrt(2 / m.pi) * (x + m.mpf("0.044715") * x**3))), "rsqrt": lambda x: 1 / m.sqrt(x),
        "sin": m.sin, "cos": m.cos, "tan": m.tan}
    inputs = np.array(HARD[case], np.float32)
    want = np.array([LD(m.nstr(exact[case](m.mpf(float(x))), 30)) for x in inputs])
    error, wrong = ulps(function(name, "f32", "f32", LEVELS[0], **attributes)(inputs), want)
    assert not wrong.any() and error.max() <= BOUNDS["f32"][name], error


@pytest.mark.parametrize("name", sorted(set(BOUNDS["f64"]) & set(UNARY) - {"sqrt", "gelu"}))
def test_double_precision(name: str) -> None:
    x = np.concatenate([SPECIAL, np.random.default_rng(3).uniform(-8, 8, 600).astype(np.float32)])
    x = x[~(np.abs(x) < 1e-30) | (x == 0)].astype(np.float64)
    with np.errstate(all="ignore"):
        want = UNARY[name][2](x.astype(LD))
    error, wrong = ulps(function(name, "f64", "f64", LEVELS[0])(x), want)
    assert not wrong.any() and error.max() <= BOUNDS["f64"][name]


# ---- pow and ldexp --------------------------------------------------------------------------------------------------------


def pairs(kind: str, count: int = 150000) -> tuple[Array, Array]:
    rng = np.random.default_rng(5)
    if kind == "ordinary":
        x, y = np.exp(rng.uniform(-3, 3, count)), rng.uniform(-6, 6, count)
    elif kind == "near one, large exponent":
        x = (1 + rng.uniform(-0.05, 0.05, count)).astype(np.float32)
        y = rng.uniform(-126, 126, count) / np.log2(x.astype(np.float64) + (x == 1) * 1e-7)
    elif kind == "whole range":
        x = np.exp(rng.uniform(-87, 88, count)).astype(np.float32)
        y = rng.uniform(-150, 128, count) / np.log2(x.astype(np.float64))
    else:
        x, y = np.exp(rng.uniform(-103, -80, count)), rng.uniform(-1.5, 1.5, count)
    return x.astype(np.float32), y.astype(np.float32)


@pytest.mark.parametrize("kind", ["ordinary", "near one, large exponent", "whole range", "subnormal bases"])
def test_pow_is_within_one_ulp(kind: str) -> None:
    x, y = pairs(kind)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(LD), y.astype(LD))
    results = [function("pow", "f32,f32", "f32", level)(x, y) for level in LEVELS]
    error, wrong = ulps(results[0], want)
    assert not wrong.any() and error.max() <= BOUNDS["f32"]["pow"], (error.max(), x[error.argmax()], y[error.argmax()])
    assert all((bits(r) == bits(results[0])).all() for r in results[1:])


GRID = np.concatenate([SPECIAL, np.array([2, -2, 3, -3, 2.5, -2.5, 16777216, 16777217, 8388609, -8388609, 33554433, 1 + 2**-23, 1 - 2**-24,
                                          1e38], np.float32)])


@pytest.mark.parametrize("level", LEVELS)
def test_pow_of_every_pair_of_special_values(level: str) -> None:
    """C99's table by way of the C library in float64, signs of zero included."""
    x, y = (g.ravel().copy() for g in np.meshgrid(GRID, GRID))
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
    error, wrong = ulps(function("pow", "f32,f32", "f32", level)(x, y), want)
    assert not wrong.any() and error.max() <= 1, [(a, b) for a, b in zip(x[wrong], y[wrong], strict=True)]


def test_pow_is_exact_where_the_result_is_an_f32() -> None:
    base = np.arange(-2048, 4097).astype(np.float32) / 8
    for exponent in (2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, -1, -2):
        with np.errstate(all="ignore"):
            exact = np.power(base.astype(LD), LD(exponent))
            fits = np.isfinite(exact) & (exact.astype(np.float32).astype(LD) == exact)
        got = function("pow", "f32,f32", "f32", LEVELS[0])(base, np.full_like(base, exponent))
        assert (got[fits] == exact[fits].astype(np.float32)).all(), exponent
    assert function("pow", "f32,f32", "f32", LEVELS[0])(np.array([3], np.float32), np.array([4], np.float32))[0] == 81


@pytest.mark.parametrize("exponent", [0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 2.7])
@pytest.mark.parametrize("level", LEVELS)
def test_literal_exponents(exponent: float, level: str) -> None:
    exponent = float(np.float32(exponent))
    x = np.concatenate([SPECIAL, GRID, pairs("whole range", 20000)[0], -pairs("ordinary", 2000)[0]])
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), np.full(x.shape, exponent))
        want = np.where(np.isfinite(want) & (x > 0), np.power(np.abs(x).astype(LD), LD(exponent)), want)
    got = function("pow", "f32,f32", "f32", level, literal=exponent)(x, np.full_like(x, exponent))
    error, wrong = ulps(got, want)
    assert not wrong.any() and error.max() <= 1, (x[wrong][:4], got[wrong][:4], error.max())


def stored(name: str) -> dict[str, Array]:
    with np.load(VALUES / f"{name}.npz") as data:
        return {k: data[k] for k in data.files}




def close(got: Array, want: Array, steps: int) -> Array:
    """Where two arrays of floats are at most ``steps`` representable numbers apart, or both NaN."""
    def order(x: Array) -> Array:
        i = x.view(f"i{x.dtype.itemsize}").astype(np.int64)
        low = np.int64(-(1 << (8 * x.dtype.itemsize - 1)))
        return np.where(i < 0, low - i, i)

    with np.errstate(over="ignore"):
        return (np.abs(order(got) - order(want)) <= steps) | np.isnan(got) & np.isnan(want)


def in_f32(name: str, dtype: str, x: Array, y: Array, second: str = "f32") -> Array:
    """The operation of a 16-bit dtype: widened, computed in f32, rounded once."""
    widen = function("cast", dtype, "f32", LEVELS[0])
    other = widen(y) if second == "f32" else y
    return function("cast", "f32", dtype, LEVELS[0])(function(name, f"f32,{second}", "f32", LEVELS[0])(widen(x), other))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_pow_golden_values(dtype: str) -> None:
    data = stored(f"pow_{dtype}")
    x, y, want = (data[k].view(FLOATS[dtype]) for k in ("x", "y", "out"))
    if dtype in ("f32", "f64"):
        assert close(function("pow", f"{dtype},{dtype}", dtype, LEVELS[0])(x, y), want, 1).all()
        return
    got = in_f32("pow", dtype, x, y)
    twice = data["out_via_f32"].view(FLOATS[dtype])
    assert (close(got, want, 0) | close(got, twice, 0)).mean() > 0.999 and close(got, want, 1).all()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_ldexp_by_integers_is_rounded_once(dtype: str, level: str) -> None:
    data = stored(f"ldexp_int_{dtype}")
    x, n, want = data["x"].view(FLOATS[dtype]), data["n"].astype(np.int32), data["out"].view(FLOATS[dtype])
    if dtype in ("f32", "f64"):
        assert close(function("ldexp", f"{dtype},i32", dtype, level)(x, n), want, 0).all()
        return
    got = in_f32("ldexp", dtype, x, n, "i32")
    assert close(got, want, 0).all() if dtype == "f16" else close(got, want, 1).all()


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_ldexp_by_real_exponents(dtype: str) -> None:
    data = stored(f"ldexp_ttnn_{dtype}")
    a, e, want = (data[k].view(FLOATS[dtype]) for k in ("a", "b", "out"))
    got = function("ldexp", "f32,f32", "f32", LEVELS[0])(a, e) if dtype == "f32" else in_f32("ldexp", dtype, a, e)
    assert close(got, want, 1).all()


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "u8"])
def test_integer_powers_wrap(dtype: str) -> None:
    data = stored(f"powint_{dtype}")
    x, y = data["x"].copy(), data["y"].copy()
    if x.dtype != y.dtype:
        fits = (y >= np.iinfo(x.dtype).min) & (y <= np.iinfo(x.dtype).max)
        x, y, want = x[fits], y[fits].astype(x.dtype), data["out"][fits]
    else:
        want = data["out"]
    for level in LEVELS:
        assert (function("pow", f"{dtype},{dtype}", dtype, level)(x, y) == want).all()
