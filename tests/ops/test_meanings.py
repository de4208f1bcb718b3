"""References against independent formulas: mpmath at 40 digits for functions, `math` and Python integers for the rest."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import mpmath as mp
import numpy as np
import pytest
from machine import evaluate, ulps
from samples import floats

from pypto_dsl.compiler.dtypes import F32
from pypto_dsl.compiler.ops import REGISTRY

SLOPE = float(np.float32(0.01))  # a number of the formula lands on the dtype of the computation
RNG = np.random.default_rng(11)
WIDE = np.concatenate([RNG.uniform(-6, 6, 30), RNG.normal(size=12) * 1e-3, [0.5, -0.5, 1.0, 2.0, 1e-30, 20.0]]).astype(np.float32)
UNIT = np.concatenate([RNG.uniform(-1, 1, 30), [0.5, -0.5, 1e-7, 0.999]]).astype(np.float32)
POSITIVE = np.abs(WIDE)


def _gelu(x: Any) -> Any:
    return x * mp.erfc(-x / mp.sqrt(2)) / 2


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _selu(x: Any) -> Any:
    return mp.mpf("1.0507009873554804934193349852946") * (x if x > 0 else mp.mpf("1.6732632423543772848170429916717") * mp.expm1(x))


def _softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x))


# name -> (formula, samples, attributes)
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "exp": (mp.exp, WIDE), "exp2": (lambda x: mp.mpf(2) ** x, WIDE), "expm1": (mp.expm1, WIDE), "log": (mp.log, POSITIVE),
    "log2": (lambda x: mp.log(x) / mp.log(2), POSITIVE), "log10": (mp.log10, POSITIVE), "log1p": (mp.log1p, POSITIVE),
    "sqrt": (mp.sqrt, POSITIVE), "rsqrt": (lambda x: 1 / mp.sqrt(x), POSITIVE), "reciprocal": (lambda x: 1 / x, WIDE),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), WIDE), "sin": (mp.sin, WIDE), "cos": (mp.cos, WIDE), "tan": (mp.tan, WIDE),
    "asin": (mp.asin, UNIT), "acos": (mp.acos, UNIT), "atan": (mp.atan, WIDE), "sinh": (mp.sinh, WIDE), "cosh": (mp.cosh, WIDE),
    "tanh": (mp.tanh, WIDE), "asinh": (mp.asinh, WIDE), "acosh": (mp.acosh, 1 + POSITIVE), "atanh": (mp.atanh, UNIT), "erf": (mp.erf, WIDE),
    "erfc": (mp.erfc, WIDE), "erfinv": (mp.erfinv, UNIT), "i0": (lambda x: mp.besseli(0, x), WIDE),
    "i1": (lambda x: mp.besseli(1, x), WIDE),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), WIDE), "digamma": (mp.digamma, POSITIVE), "sigmoid": (_sigmoid, WIDE),
    "silu": (lambda x: x * _sigmoid(x), WIDE), "gelu": (_gelu, WIDE), "softplus": (_softplus, WIDE),
    "log_sigmoid": (lambda x: -_softplus(-x), WIDE),
    "elu": (lambda x: x if x > 0 else mp.expm1(x), WIDE), "celu": (lambda x: x if x > 0 else mp.expm1(x), WIDE),
    "mish": (lambda x: x * mp.tanh(_softplus(x)), WIDE), "softsign": (lambda x: x / (1 + abs(x)), WIDE),
    "tanhshrink": (lambda x: x - mp.tanh(x), WIDE), "logit": (lambda x: mp.log(x / (1 - x)), np.abs(UNIT)),
    "selu": (_selu, WIDE),
    "hardsigmoid": (lambda x: min(max(x / 6 + mp.mpf("0.5"), 0), 1), WIDE), "deg2rad": (lambda x: x * mp.pi / 180, WIDE),
    "hardswish": (lambda x: x * min(max(x / 6 + mp.mpf("0.5"), 0), 1), WIDE), "rad2deg": (lambda x: x * 180 / mp.pi, WIDE),
    "square": (lambda x: x * x, WIDE), "frac": (lambda x: x - mp.sign(x) * mp.floor(abs(x)), WIDE), "floor": (mp.floor, WIDE),
    "ceil": (mp.ceil, WIDE),
    "rint": (mp.nint, WIDE), "trunc": (lambda x: mp.sign(x) * mp.floor(abs(x)), WIDE), "neg": (lambda x: -x, WIDE), "abs": (abs, WIDE),
    "sign": (mp.sign, WIDE), "relu": (lambda x: max(x, 0), WIDE), "relu6": (lambda x: min(max(x, 0), 6), WIDE),
    "hardtanh": (lambda x: min(max(x, -1), 1), WIDE), "hardshrink": (lambda x: x if abs(x) > 0.5 else 0, WIDE),
    "softshrink": (lambda x: mp.sign(x) * max(abs(x) - mp.mpf("0.5"), 0), WIDE),
    "leaky_relu": (lambda x: x if x > 0 else x * mp.mpf(SLOPE), WIDE),
    "lrelu": (lambda x: x if x > 0 else x * mp.mpf(SLOPE), WIDE), "threshold": (lambda x: max(x, 0), WIDE), "positive": (lambda x: x, WIDE),
    "reciprocal_no_nan": (lambda x: 1 / x, WIDE), "round": (mp.nint, WIDE), "fmax_zero": (lambda x: max(x, 0), WIDE),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "rsub": lambda a, b: b - a,
    "rdiv": lambda a, b: b / a, "atan2": mp.atan2, "hypot": mp.hypot, "copysign": lambda a, b: abs(a) * mp.sign(b),
    "floor_div": lambda a, b: mp.floor(a / b), "trunc_div": lambda a, b: mp.sign(a / b) * mp.floor(abs(a / b)),
    "remainder": lambda a, b: a - b * mp.floor(a / b), "fmod": lambda a, b: a - b * mp.sign(a / b) * mp.floor(abs(a / b)),
    "maximum": max, "minimum": min, "fmax": max, "fmin": min, "squared_difference": lambda a, b: (a - b) ** 2,
    "logaddexp": lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), "logaddexp2": lambda a, b: mp.log(mp.mpf(2) ** a + mp.mpf(2) ** b) / mp.log(2),
    "ldexp": lambda a, b: a * mp.mpf(2) ** b, "expand_exp_dif": lambda a, b: mp.exp(a - b), "divide_no_nan": lambda a, b: a / b,
    "multiply_no_nan": lambda a, b: a * b, "bias_gelu": lambda a, b: _gelu(a + b), "heaviside": lambda a, b: mp.mpf(1 if a > 0 else 0),
    "axpy_": lambda a, b: a + b, "ldexp_": lambda a, b: a * mp.mpf(2) ** b,
}
ON_POSITIVE: dict[str, Callable[[Any, Any], Any]] = {
    "pow": lambda a, b: a**b, "rpow": lambda a, b: b**a, "xlogy": lambda a, b: a * mp.log(b),
}
# Left out: those that differ from a formula in their special values only, or are compared elsewhere.
ELSEWHERE = {
    "where": "test_selection", "clip": "test_selection", "fclip": "test_clip_bounds", "nextafter": "test_neighbours",
    "frexp": "test_neighbours", "dropout": "test_indexing.py", "lerp": "test_three_operands",
    "addcmul": "test_three_operands", "mac": "test_three_operands", "addcdiv": "test_three_operands",
    "prelu": "test_selection", "tril": "test_triangles", "triu": "test_triangles", "quantize": "test_quantization.py",
    "dequantize": "test_quantization.py", "zeros_like": "test_selection", "ones_like": "test_selection", "full_like": "test_selection",
    "gcd": "test_integers.py", "lcm": "test_integers.py", "bitwise_and": "test_integers.py", "bitwise_or": "test_integers.py",
    "bitwise_xor": "test_integers.py", "bitwise_not": "test_integers.py", "bitwise_left_shift": "test_integers.py",
    "bitwise_right_shift": "test_integers.py", "ceil_div": "test_integers.py",
}


def formula_values(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """The formula on exact operands, rounded once to float32."""
    with mp.workdps(60):
        made = [float(function(*(mp.mpf(float(v)) for v in row))) for row in zip(*(a.ravel() for a in arrays), strict=True)]
    with np.errstate(all="ignore"):
        return np.array(made, np.float64).astype(np.float32)


def check(name: str, function: Callable[..., Any], *arrays: np.ndarray) -> None:
    got = evaluate(name, *arrays)
    want = formula_values(function, *arrays)
    error = ulps(got, np.where(want == 0, np.copysign(want, got), want))  # a formula of numbers has no signed zero
    worst = int(np.argmax(error))
    # a float64 reference is off by a few of its own ulp, which can turn one rounding to f32
    assert error.max() <= 1 and (error > 0).mean() < 0.03, (name, [a[worst] for a in arrays], got[worst], want[worst])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_one_operand(name: str) -> None:
    check(name, *FUNCTIONS[name])


@pytest.mark.parametrize("name", [*BINARY, *ON_POSITIVE])
def test_function_of_two_operands(name: str) -> None:
    a, b = WIDE, np.roll(WIDE, 5)
    if name in ON_POSITIVE:
        a, b = np.abs(a), np.abs(b)
        check(name, ON_POSITIVE[name], a, b)
        return
    check(name, BINARY[name], a, b)


def test_every_elementwise_operation_is_compared_with_a_formula() -> None:
    """A new operation needs a row in one of the tables."""
    names = {n for n, d in REGISTRY.items() if d.family == "elementwise"}
    assert names - set(FUNCTIONS) - set(BINARY) - set(ON_POSITIVE) == set(ELSEWHERE)


COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, "logical_and": lambda a, b: bool(a) and bool(b),
    "logical_or": lambda a, b: bool(a) or bool(b), "logical_xor": lambda a, b: bool(a) != bool(b),
}
TESTS: dict[str, Callable[[float], bool]] = {
    "isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite, "isposinf": lambda x: x == math.inf,
    "isneginf": lambda x: x == -math.inf,
    "signbit": lambda x: math.copysign(1, x) < 0 and not math.isnan(x), "logical_not": lambda x: not x, "eqz": lambda x: x == 0,
    "nez": lambda x: x != 0, "gtz": lambda x: x > 0, "gez": lambda x: x >= 0, "ltz": lambda x: x < 0, "lez": lambda x: x <= 0,
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparison(name: str) -> None:
    """Python's own comparison of every pair of special values: NaN, zeros of both signs, infinities."""
    special = floats(F32, RNG)[:44]
    a, b = (m.ravel() for m in np.meshgrid(special, special))
    assert evaluate(name, a, b).tolist() == [COMPARISONS[name](float(x), float(y)) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("name", TESTS)
def test_question_about_one_element(name: str) -> None:
    x = floats(F32, RNG)
    assert evaluate(name, x).tolist() == [bool(TESTS[name](float(v))) for v in x]


def test_every_comparison_is_compared() -> None:
    names = {n for n, d in REGISTRY.items() if d.family == "compare"}
    assert names - set(COMPARISONS) - set(TESTS) == {"isclose", "one_hot"}


def test_three_operands() -> None:
    x, a, b = WIDE, np.roll(WIDE, 3), np.roll(WIDE, 9)
    for name, function in {"lerp": lambda p, q, r: p + r * (q - p), "addcmul": lambda p, q, r: p + q * r, "mac": lambda p, q, r: p * q + r,
                           "addcdiv": lambda p, q, r: p + q / r}.items():
        check(name, function, x, a, b)
    assert evaluate("addcmul", x[:1], a[:1], b[:1], value=0.5)[0] == np.float32(float(x[0]) + 0.5 * float(a[0]) * float(b[0]))


def test_selection() -> None:
    x = np.array([-3.0, -0.0, 0.5, np.nan, np.inf], np.float32)
    assert evaluate("where", np.array([True, False, True, False, True]), x, -x).tolist()[:3] == [-3.0, 0.0, 0.5]
    np.testing.assert_array_equal(evaluate("clip", x, min=None, max=None), x)
    g = evaluate("isclose", np.array([1.0, 1.0, np.inf, np.nan], np.float32), np.array([1.000001, 1.1, np.inf, np.nan], np.float32))
    assert g.tolist() == [True, False, True, False]
    assert evaluate("isclose", x[3:4], x[3:4], equal_nan=True).tolist() == [True]
    weights = np.array([0.5, 2.0], np.float32)
    rows = np.array([[[-1.0], [-1.0]], [[3.0], [-4.0]]], np.float32)
    assert evaluate("prelu", rows, weights).tolist() == [[[-0.5], [-2.0]], [[3.0], [-8.0]]]
    assert evaluate("prelu", rows, weights[:1]).tolist() == [[[-0.5], [-0.5]], [[3.0], [-2.0]]]
    for name, value in (("zeros_like", 0), ("ones_like", 1)):
        assert evaluate(name, rows).tolist() == np.full(rows.shape, value).tolist()
    assert evaluate("full_like", np.zeros(3, np.int8), value=-3).tolist() == [-3, -3, -3]


def test_clip_bounds() -> None:
    """min > max gives max, a NaN bound NaN, and one bound may be missing."""
    x = np.array([-2.0, 0.0, 2.0, np.nan], np.float32)
    lo, hi = np.full(4, 1.0, np.float32), np.full(4, -1.0, np.float32)
    assert evaluate("clip", x, lo, hi).tolist()[:3] == [-1.0, -1.0, -1.0]
    assert np.isnan(evaluate("clip", x, lo * np.float32(np.nan), hi)).all()
    low = np.array([np.nan, -1.0, 3.0, 1.0], np.float32)
    assert evaluate("clip", x, low, nan="ignore").tolist() == evaluate("fclip", x, low).tolist() == [-2.0, 0.0, 3.0, 1.0]
    assert evaluate("clip", x, lo).tolist()[:3] == [1.0, 1.0, 2.0] and math.isnan(evaluate("clip", x, lo)[3])


def test_neighbours() -> None:
    """nextafter steps once in the operand's own dtype; frexp and ldexp undo each other."""
    for dtype in (np.float16, np.float32, np.float64):
        x = np.array([1.0, -1.0, 0.0, -0.0, 65504.0, 6e-8, np.inf, np.nan, 2.0], dtype)
        y = np.array([2.0, 2.0, 1.0, -1.0, np.inf, 0.0, 0.0, 1.0, 2.0], dtype)
        np.testing.assert_array_equal(evaluate("nextafter", x, y), np.nextafter(x, y))
    bf16 = np.array([1.0, 0.0], np.float32).astype(ml_dtypes.bfloat16)
    up = evaluate("nextafter", bf16, (bf16.astype(np.float32) + 1).astype(bf16.dtype))
    assert up.view(np.int16).tolist() == [0x3F81, 0x0001]
    x = floats(F32, RNG)
    mantissa, exponent = evaluate("frexp", x)
    np.testing.assert_array_equal(mantissa, np.frexp(x)[0])
    finite = np.isfinite(x) & (x != 0)
    np.testing.assert_array_equal(exponent[finite], np.frexp(x)[1][finite])
    assert exponent.dtype == np.int32 and not exponent[~finite].any()




def test_triangles() -> None:
    x = np.arange(1, 13, dtype=np.int32).reshape(3, 4)
    for k in (-2, -1, 0, 1, 5):
        np.testing.assert_array_equal(evaluate("tril", x, diagonal=k), np.tril(x, k))
        np.testing.assert_array_equal(evaluate("triu", x, diagonal=k), np.triu(x, k))


def test_round_to_decimals() -> None:
    x = np.array([1.25, -1.35, 12345.678, 3e38, np.nan, 2.5], np.float32)
    assert evaluate("round", x, decimals=1).tolist()[:3] == np.float32([1.2, -1.4, 12345.7]).tolist()
    assert evaluate("round", x, decimals=-2).tolist()[2] == 12300.0
    assert evaluate("round", x).tolist()[:2] == [1.0, -1.0] and evaluate("round", x)[5] == 2.0
    assert evaluate("round", np.array([15, -7], np.int32)).tolist() == [15, -7]


def test_sixteen_bit_results_are_the_f32_result_rounded_once() -> None:
    for name in FUNCTIONS:
        x = FUNCTIONS[name][1][:24].astype(np.float16)
        with np.errstate(all="ignore"):
            want = evaluate(name, x.astype(np.float32)).astype(np.float16)
        np.testing.assert_array_equal(evaluate(name, x), want, err_msg=name)
