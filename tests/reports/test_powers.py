"""Reports on ldexp, pow and weak numbers whose rows are values, run as a user's kernel on the interpreter and on the CPU."""
from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.dtypes import BF16 as DT_BF16
from pypto_dsl.compiler.dtypes import BOOL, F16, F32, F64, I8, I32, DType
from pypto_dsl.compiler.errors import KernelError

BF16 = ml_dtypes.bfloat16
TARGETS = ("interpreter", "llvm-cpu")
pytestmark = pytest.mark.parametrize("target", TARGETS)


def binary(name: str, target: str, x: np.ndarray, y: Any, dtype: Any = None) -> np.ndarray:
    """One operation over two arrays, or an array and a number."""
    array = isinstance(y, np.ndarray)

    @pypto.jit
    def with_array(x, y, out):
        out[:] = getattr(pypto, name)(x, y)

    @pypto.jit
    def with_number(x, out):
        out[:] = getattr(pypto, name)(x, y)

    out = np.zeros(np.broadcast_shapes(x.shape, np.shape(y)), x.dtype if dtype is None else dtype)
    if array:
        with_array.run(x, y, out, target=target)
    else:
        with_number.run(x, out, target=target)
    return out


def test_p01_p03_ldexp_has_the_dtype_of_its_first_operand(target: str) -> None:
    assert binary("ldexp", target, np.float16([1.5]), np.int8([2])).tolist() == [6.0]
    assert binary("ldexp", target, np.ones(1), np.int32([128])).tolist() == [2.0**128]


@pytest.mark.parametrize(("a", "b"), [(BOOL, F16), (F16, F32), (F16, I8), (DT_BF16, F32), (F64, I32)], ids=str)
def test_p05_compiled_and_eager_dtypes_agree(target: str, a: DType, b: DType) -> None:
    """What a kernel computes is what the operation gives on arrays, or both refuse with one code."""
    x, y = np.ones(3, a.numpy), np.full(3, 2, b.numpy)

    @pypto.jit
    def k(x, y):
        return pypto.ldexp(x, y)

    results: list[Any] = []
    for call in (lambda: pypto.ldexp(x, y), lambda: k.run(x, y, target=target)):
        try:
            made = call()
            results.append((made.dtype, made.tolist()))
        except KernelError as no:
            results.append(no.code)
    assert results[0] == results[1]


def test_p07_a_python_int_is_no_f16(target: str) -> None:
    assert binary("ldexp", target, np.ones(1, np.float32), 16).tolist() == [65536.0]
    assert pypto.ldexp(np.float32(1) * np.ones(1, np.float32), np.int32(16)).tolist() == [65536.0]


def test_p09_large_exponents(target: str) -> None:
    """exp2 and ldexp by real exponents are finite as long as the result is, of both signs."""
    b = np.array([-126, -100.5, -20, -10, 10, 20, 100.5, 127, 128, 200, -200], np.float32)
    with np.errstate(over="ignore"):
        want = np.exp2(b.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(binary("ldexp", target, np.ones_like(b), b), want, rtol=3e-7)

    @pypto.jit
    def k(x, out):
        out[:] = pypto.exp2(x)

    out = np.zeros_like(b)
    k.run(b, out, target=target)
    np.testing.assert_allclose(out, want, rtol=3e-7)
    narrow = binary("ldexp", target, np.ones(3, BF16), np.array([-20, 20, 100], BF16))
    assert narrow.astype(np.float64).tolist() == [2.0**-20, 2.0**20, 2.0**100]


def test_p11_pow_of_bf16(target: str) -> None:
    base = np.full(3, 2, BF16)
    got = binary("pow", target, base, np.array([15, 128, 100], BF16)).astype(np.float64)
    assert got.tolist() == [32768.0, math.inf, 2.0**100]
    small = binary("pow", target, np.array([0.99609375], BF16), np.array([100], BF16)).astype(np.float64)
    assert small == np.float64(0.99609375**100).astype(np.float32).astype(BF16).astype(np.float64)


def test_p13_pow_beyond_one_tile(target: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.5, 2, (65, 70)).astype(np.float32), rng.uniform(-3, 3, (65, 70)).astype(np.float32)
    whole = binary("pow", target, x, y)
    for rows, cols in ((slice(0, 32), slice(0, 32)), (slice(32, 64), slice(32, 64)), (slice(64, 65), slice(64, 70))):
        part = binary("pow", target, np.ascontiguousarray(x[rows, cols]), np.ascontiguousarray(y[rows, cols]))
        assert whole[rows, cols].tobytes() == part.tobytes()


def test_p17_p19_integers_to_negative_powers(target: str) -> None:
    """A constant negative exponent is an error; at run time 1 gives 1, -1 its sign, everything else 0. Nothing loops for ever."""
    with pytest.raises(KernelError) as caught:
        binary("pow", target, np.int32([5]), -2)
    assert caught.value.code == "PT111"
    got = binary("pow", target, np.int32([5, 1, -1, -1, 0, 2]), np.int32([-2, -2, -2, -3, -1, 3]))
    assert got.tolist() == [0, 1, 1, -1, 0, 8]


def test_p29_subnormals_are_kept(target: str) -> None:
    got = binary("ldexp", target, np.ones(3, np.float32), np.int32([-149, -140, -127]))
    assert got.tolist() == [2.0**-149, 2.0**-140, 2.0**-127]
    x = np.array([1e-40, -3e-39], np.float32)
    np.testing.assert_array_equal(binary("mul", target, x, 0.5), x * np.float32(0.5))
    tiny = np.array([2.0**-133, 2.0**-130], np.float32).astype(BF16)
    np.testing.assert_array_equal(binary("add", target, tiny, tiny).astype(np.float32), tiny.astype(np.float32) * 2)


def test_p37_a_number_as_argument(target: str) -> None:
    @pypto.jit
    def k(x, out, n: float):
        out[:] = x + n

    out = np.zeros(2, np.float16)
    k.run(np.full(2, 1, np.float16), out, float(np.float16(2)), target=target)
    assert out.tolist() == [3.0, 3.0]


def test_p39_bf16_plus_a_half(target: str) -> None:
    @pypto.jit
    def k(x, out):
        out[:] = x + 0.5

    out = np.zeros(2, BF16)
    k.run(np.ones(2, BF16), out, target=target)
    assert out.astype(np.float32).tolist() == [1.5, 1.5]
    assert "f64" not in str(k.graph(out, out, after="legalize", target="llvm-cpu"))


def test_p43_p47_p49_values_of_powers(target: str) -> None:
    assert binary("pow", target, np.int32([10]), np.int32([-127])).tolist() == [0]
    assert np.isnan(binary("pow", target, np.float32([-4]), np.float32([2.2])))
    assert binary("pow", target, np.int32([256]), np.int32([4])).tolist() == [0]


def test_p45_a_number_beyond_the_range(target: str) -> None:
    for value in (128, -129, 300, 2**40):
        with pytest.raises(KernelError) as caught:
            binary("add", target, np.zeros(2, np.int8), value)
        assert caught.value.code == "PT204"
