"""Public reports of users of other tile languages, restated (the numbers B.. are theirs), as far as one graph shows them.

Those about promotion are in tests/promotion, casts in test_casts, reductions in test_reductions, integers in test_integers.
"""
from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from machine import bits_apart, evaluate, execute, expanded, graph_of

from pypto_dsl.compiler.dtypes import BF16, F16, F32, I64, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY as R


def test_b01_floor_division_of_int64_by_a_negative_constant() -> None:
    x = np.arange(-5, 6, dtype=np.int64)
    g = graph_of(lambda p: (R["floor_div"](p, -2), R["remainder"](p, -2)), x)
    quotient, rest = execute(g, x)
    assert quotient.tolist() == [2, 2, 1, 1, 0, 0, -1, -1, -2, -2, -3] and rest.tolist() == [-1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1]


@pytest.mark.parametrize("expand", [False, True], ids=["reference", "expansion"])
def test_b03_b07_signed_remainders_and_zero_divisors(expand: bool) -> None:
    a, b = np.array([-6, 6, -7, 2, -2, 0], np.int32), np.array([5, -5, 3, 0, 0, 0], np.int32)
    call = lambda p, q: (R["remainder"](p, q), R["floor_div"](p, q))  # noqa: E731
    rest, quotient = execute((expanded if expand else graph_of)(call, a, b), a, b)
    assert rest.tolist() == [4, -4, 2, 0, 0, 0] and quotient.tolist() == [-2, -2, -3, 0, 0, 0]
    alone = execute((expanded if expand else graph_of)(lambda p, q: R["remainder"](p, q), a, b), a, b)[0]
    np.testing.assert_array_equal(alone, rest)


@pytest.mark.parametrize("expand", [False, True], ids=["reference", "expansion"])
def test_b05_ceil_division(expand: bool) -> None:
    a, b = np.array([-36, 7, 24, 2**31 - 1, -(2**31)], np.int32), np.array([5, -3, 10, 10, -1], np.int32)
    got = execute((expanded if expand else graph_of)(lambda p, q: R["ceil_div"](p, q), a, b), a, b)[0]
    assert got.tolist() == [-7, -2, 3, 214748365, -(2**31)]


def test_b09_b33_shifts_follow_the_sign_of_the_dtype() -> None:
    assert evaluate("bitwise_right_shift", np.array([-8, -1, 7], np.int32), np.ones(3, np.int32)).tolist() == [-4, -1, 3]
    big = np.array([0x80000000, 0xFFFFFFF8], np.uint32)
    assert evaluate("bitwise_right_shift", big, np.ones(2, np.uint32)).tolist() == [0x40000000, 0x7FFFFFFC]


def test_b13_full_of_a_negative_byte() -> None:
    for dtype, value in ((np.int8, -3), (np.int16, -3), (np.uint8, 200)):
        assert evaluate("full_like", np.zeros(64, dtype), value=value).tolist() == [value] * 64


def test_b17_merging_extremes_keeps_nan() -> None:
    """However a row is split, the merged maximum is NaN."""
    row = np.array([0, np.nan, 2], np.float32)
    for cut in (1, 2, 3):
        parts = [evaluate("amax", p) for p in np.array_split(row, cut)]
        acc = np.float32(-1)
        for part in parts:
            acc = evaluate("maximum", np.asarray(acc, np.float32), np.asarray(part))
        assert np.isnan(acc)


def test_b19_extremes_of_constants_and_scalars() -> None:
    """Both orders, folded or not: the same bits."""
    for name, (a, b) in itertools.product(("maximum", "minimum"), ((1.0, np.nan), (np.nan, 1.0), (0.0, -0.0), (-0.0, 0.0))):
        x, y = np.full(1, a, np.float32), np.full(1, b, np.float32)
        one = evaluate(name, x, y)
        other = execute(graph_of(lambda p, n=name, v=b: R[n](p, v), x), x)[0]
        assert one.tobytes() == other.tobytes() or (np.isnan(one) and np.isnan(other))


@pytest.mark.parametrize("dtype", (F32, F16, BF16), ids=str)
def test_b27_b29_python_scalars_do_not_widen(dtype: DType) -> None:
    x = np.ones(4, dtype.numpy)
    g = graph_of(lambda p: R["mul"](p, R["sub"](1, R["div"](p, p))), x)
    assert {op.results[0].type.dtype for op in g.body.ops if op.results[0].type.rank} == {dtype}


def test_b35_small_integers_wrap_before_they_are_widened() -> None:
    x = np.full(2, 127, np.int8)
    g = graph_of(lambda p: R["mul"](R["cast"](R["mul"](p, p), I64), 3), x)
    assert execute(g, x)[0].tolist() == [3, 3]
    assert execute(expanded(lambda p: R["mul"](R["cast"](R["square"](p), I64), 3), x), x)[0].tolist() == [3, 3]


@pytest.mark.parametrize("name", ["exp", "log", "rsqrt", "tanh", "erf"])
def test_b51_functions_of_bf16_go_through_f32(name: str) -> None:
    x = np.linspace(0.01, 5, 128).astype(np.float32).astype(BF16.numpy)
    exact = evaluate(name, x.astype(np.float64))
    apart = bits_apart(evaluate(name, x), exact.astype(np.float32).astype(ml_dtypes.bfloat16))
    assert apart.max() <= 1


@pytest.mark.parametrize("n", [1, 2, 31, 33, 511, 513, 1025])
def test_b55_rms_norm_of_any_width(n: int) -> None:
    x = np.random.default_rng(n).normal(size=(4, n)).astype(np.float32)
    want = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(evaluate("rms_norm", x), want, rtol=1e-5)


def test_b63_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(KernelError) as caught:
        evaluate("gt", np.zeros(256, np.float32), np.zeros(128, np.float32))
    assert caught.value.code == "PT301" and "[256]" in str(caught.value) and "[128]" in str(caught.value)
    assert evaluate("gt", np.zeros(256, np.float32), np.zeros(1, np.float32)).shape == (256,)


def test_b69_empty_operands() -> None:
    for shape in ((0,), (0, 128), (5, 2, 0)):
        assert evaluate("add", np.zeros(shape, np.float32), np.zeros(shape, np.float32)).shape == shape
    assert evaluate("sum", np.zeros((5, 2, 0), np.float32), dim=2).tolist() == [[0.0, 0.0]] * 5


def test_b79_bf16_products_are_exact() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (16, 16)).astype(np.float32) for _ in range(2))
    got = evaluate("matmul", a.astype(BF16.numpy), b.astype(BF16.numpy), out_dtype=F32)
    np.testing.assert_array_equal(got, a @ b)


def test_b95_bits_of_floats_are_refused_by_us() -> None:
    with pytest.raises(KernelError) as caught:
        evaluate("bitwise_and", np.zeros(2, np.float32), np.zeros(2, np.float32))
    assert caught.value.code == "PT203"


def test_ldexp_reports() -> None:
    """pytorch#133264, #133267; numpy#29182; tt-metal#52675: the dtype of A, 2**128 in f64, 65536, exact powers."""
    assert evaluate("ldexp", np.ones(1, np.float16), np.ones(1, np.int8)).dtype == np.float16
    assert evaluate("ldexp", np.ones(1), np.array([128], np.int32)).tolist() == [2.0**128]
    assert execute(graph_of(lambda p: R["ldexp"](p, 16), np.ones(1, np.float32)), np.ones(1, np.float32))[0].tolist() == [65536.0]
    base = np.full(2, 2, BF16.numpy)
    assert evaluate("pow", base, np.array([15, 128], BF16.numpy)).astype(np.float32).tolist() == [32768.0, np.inf]
    assert evaluate("ldexp", np.ones(1, np.float32), np.array([-149], np.int32)).tolist() == [2.0**-149]


def test_pow_reports() -> None:
    """numpy#6215: never inf from integers; pytorch#75405: a negative base to a fraction is NaN; jax#8604: INT32 wraps."""
    assert evaluate("pow", np.array([10], np.int32), np.array([-127], np.int32)).tolist() == [0]
    assert np.isnan(evaluate("pow", np.array([-4], np.float32), np.array([2.2], np.float32)))
    assert evaluate("pow", np.array([256], np.int32), np.array([4], np.int32)).tolist() == [0]
