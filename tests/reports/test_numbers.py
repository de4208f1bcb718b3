"""Reports whose rows are numbers, each run as a user's kernel on the interpreter and on the compiled CPU back end."""
from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.pipeline import lower

F, I32, U32, I64 = pypto.DT_FP32, pypto.DT_INT32, pypto.DT_UINT32, pypto.DT_INT64
TARGETS = ("interpreter", "llvm-cpu")
BF16 = ml_dtypes.bfloat16


def computed(kernel: Any, target: str, arrays: list[Any], *outs: tuple[tuple[int, ...], Any]) -> list[Any]:
    """The outputs of a kernel over ``arrays``; each output is a shape and a dtype."""
    made = [np.full(shape, 3, dtype) for shape, dtype in outs]
    kernel.run(*arrays, *made, target=target)
    return made


@pytest.mark.parametrize("target", TARGETS)
class TestDivision:
    """Floors, remainders, divisors of zero, shifts."""

    def test_b01_int64_by_a_negative_constant(self, target: str) -> None:
        @pypto.jit
        def k(x, q, r):
            q[:] = x // -2
            r[:] = x % -2

        x = np.arange(-5, 6, dtype=np.int64)
        q, r = computed(k, target, [x], ((11,), np.int64), ((11,), np.int64))
        assert q.tolist() == [2, 2, 1, 1, 0, 0, -1, -1, -2, -2, -3] and r.tolist() == [-1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1]

    def test_b03_signed_run_time_integers(self, target: str) -> None:
        @pypto.jit
        def k(a, b, r, q):
            r[:] = a % b
            q[:] = a // b

        r, q = computed(k, target, [np.int32([-6, 6, -7]), np.int32([5, -5, 3])], ((3,), np.int32), ((3,), np.int32))
        assert r.tolist() == [4, -4, 2] and q.tolist() == [-2, -2, -3]

    def test_b05_ceil_division(self, target: str) -> None:
        @pypto.jit
        def k(a, b, out):
            out[:] = pypto.ceil_div(a, b)

        (out,) = computed(k, target, [np.int32([-36, 7, 24, 2**31 - 1]), np.int32([5, -3, 10, 10])], ((4,), np.int32))
        assert out.tolist() == [-7, -2, 3, 214748365]

    def test_b07_zero_divisors(self, target: str) -> None:
        @pypto.jit
        def both(a, b, r, q):
            r[:] = a % b
            q[:] = a // b

        @pypto.jit
        def alone(a, b, r):
            r[:] = a % b

        a, b = np.int32([2, -2, 0]), np.int32([0, 0, 0])
        r, q = computed(both, target, [a, b], ((3,), np.int32), ((3,), np.int32))
        (single,) = computed(alone, target, [a, b], ((3,), np.int32))
        assert r.tolist() == q.tolist() == single.tolist() == [0, 0, 0]

    def test_b09_shifts(self, target: str) -> None:
        @pypto.jit
        def k(a, b, x, y):
            x[:] = a >> 1
            y[:] = b >> 1

        x, y = computed(k, target, [np.int32([-8, -1, 7]), np.uint32([0x80000000])], ((3,), np.int32), ((1,), np.uint32))
        assert x.tolist() == [-4, -1, 3] and y.tolist() == [0x40000000]

    def test_b33_one_helper_on_both_signs(self, target: str) -> None:
        def halved(x: Any) -> Any:
            return x >> 1

        @pypto.jit
        def k(a, b, x, y):
            x[:] = halved(a)
            y[:] = halved(b)

        x, y = computed(k, target, [np.int32([-8]), np.uint32([0xFFFFFFF8])], ((1,), np.int32), ((1,), np.uint32))
        assert x.tolist() == [-4] and y.tolist() == [0x7FFFFFFC]


@pytest.mark.parametrize("target", TARGETS)
class TestExtremes:
    """NaN, infinities and what merges them."""

    def test_b13_narrow_fills(self, target: str) -> None:
        for dtype, value in ((pypto.DT_INT8, -3), (pypto.DT_INT16, -3), (pypto.DT_UINT8, 200)):
            @pypto.jit
            def k(out, dtype=dtype, value=value):
                out[:] = pypto.full([64], value, dtype)

            (out,) = computed(k, target, [], ((64,), dtype.numpy))
            assert out.tolist() == [value] * 64

    def test_b15_maximum_with_nan(self, target: str) -> None:
        @pypto.jit
        def k(x, largest, smallest, number):
            largest[:] = pypto.amax(x, -1, True)
            smallest[:] = pypto.amin(x, -1, True)
            number[:] = pypto.amax(x, -1, True, nan="ignore")

        x = np.arange(64, dtype=np.float32)[None]
        x[0, 0], x[0, 1] = np.nan, np.inf
        made = computed(k, target, [x], *[((1, 1), np.float32)] * 3)
        assert np.isnan(made[0]) and np.isnan(made[1]) and made[2] == np.inf

    @pytest.mark.parametrize("pieces", [1, 3, 4])
    def test_b17_merged_maxima(self, target: str, pieces: int) -> None:
        @pypto.jit
        def k(x, out):
            acc = pypto.full([1, 1], -1.0, F)
            width = 12 // pieces
            for i in range(pieces):
                acc = pypto.maximum(acc, pypto.amax(x[:, i * width:(i + 1) * width], -1, True))
            out[:] = acc

        x = np.float32([[0, np.nan, 2, 1, 1, 1, 1, 1, 1, 1, 1, 5]])
        assert np.isnan(computed(k, target, [x], ((1, 1), np.float32))[0])

    def test_b19_folded_and_run_time(self, target: str) -> None:
        for a, b in ((1.0, math.nan), (math.nan, 1.0), (0.0, -0.0), (-0.0, 0.0)):
            @pypto.jit
            def folded(x, high, low, a=a, b=b):
                high[:] = pypto.maximum(pypto.constant(a, F), b) + 0 * x
                low[:] = pypto.minimum(pypto.constant(a, F), b) + 0 * x

            @pypto.jit
            def named(x, high, low, a: float, b: float):
                high[:] = pypto.maximum(pypto.full([1], a, F), b) + 0 * x
                low[:] = pypto.minimum(pypto.full([1], a, F), b) + 0 * x

            x = np.zeros(1, np.float32)
            first = computed(folded, target, [x], ((1,), np.float32), ((1,), np.float32))
            second = [np.zeros(1, np.float32), np.zeros(1, np.float32)]
            named.run(x, *second, a, b, target=target)
            for one, other in zip(first, second, strict=True):
                assert one.tobytes() == other.tobytes() or (np.isnan(one) and np.isnan(other))

    def test_b25_a_long_row_with_one_finite_logit(self, target: str) -> None:
        @pypto.jit
        def k(x, out):
            out[:] = pypto.logsumexp(x, -1, True)

        n = 100_000 if target == "llvm-cpu" else 5000
        for hot in {0, 1, 63, 64, 511, 512, 513, n // 2, n - 1}:
            x = np.full((1, n), -np.inf, np.float32)
            x[0, hot] = 10
            assert computed(k, target, [x], ((1, 1), np.float32))[0] == 10.0

    def test_b43_one_maximum_in_576_columns(self, target: str) -> None:
        @pypto.jit
        def k(x, out):
            pypto.set_vec_tile_shapes(8, 768)
            out[:] = pypto.amax(pypto.abs(x), -1, True)

        for start in range(0, 576, 72):
            x = np.random.default_rng(start).uniform(-1, 1, (8, 576)).astype(np.float32)
            for row in range(8):
                x[row, (start + row * 9) % 576] = -7.0 - row
            np.testing.assert_array_equal(computed(k, target, [x], ((8, 1), np.float32))[0][:, 0], 7.0 + np.arange(8))


@pytest.mark.parametrize("target", TARGETS)
class TestCasts:
    """Conversions of what does not fit."""

    def test_b21_to_e5m2(self, target: str) -> None:
        @pypto.jit
        def k(x, out):
            out[:] = pypto.cast(pypto.cast(x, pypto.DT_FP8E5M2), F)

        x = np.float32([np.inf, 1e6, 57344, -np.inf])
        assert computed(k, target, [x], ((4,), np.float32))[0].tolist() == [math.inf, math.inf, 57344.0, -math.inf]

    def test_b23_to_integers(self, target: str) -> None:
        @pypto.jit
        def k(x, out):
            out[:] = pypto.cast(x, pypto.DT_INT8)

        x = np.float16([np.inf, 510, -200, np.nan])
        assert computed(k, target, [x], ((4,), np.int8))[0].tolist() == [127, 127, -128, 0]


@pytest.mark.parametrize("target", TARGETS)
class TestPromotion:
    """Dtypes that users expect."""

    @pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
    def test_b27_python_floats(self, target: str, dtype: Any) -> None:
        @pypto.jit
        def k(x, out, beta: float):
            made = (1 - beta) * x
            assert made.dtype == x.dtype
            out[:] = made

        x = np.linspace(-3, 3, 1000).astype(dtype)
        out = np.zeros_like(x)
        k.run(x, out, 1.5, target=target)
        np.testing.assert_array_equal(out, (x.astype(np.float32) * np.float32(-0.5)).astype(dtype))

    def test_b29_quotients_of_f16(self, target: str) -> None:
        @pypto.jit
        def k(a, b, out):
            c = b
            for _ in pypto.loop(2):
                c = c / a
            assert c.dtype == pypto.DT_FP16
            out[:] = c

        a, b = np.float16([3, 2, 7, 0.1]), np.float16([1, 5, 2, 3])
        once = (b.astype(np.float32) / a.astype(np.float32)).astype(np.float16)
        want = (once.astype(np.float32) / a.astype(np.float32)).astype(np.float16)
        np.testing.assert_array_equal(computed(k, target, [a, b], ((4,), np.float16))[0], want)

    def test_b31_an_integer_with_bf16(self, target: str) -> None:
        """BF16 by the pow page's table, and a lint that says up to which integer that is exact."""
        @pypto.jit
        def k(a, b, out):
            made = a + b
            assert made.dtype == pypto.DT_BF16
            out[:] = made

        with pytest.warns(pypto.KernelWarning, match="256"):
            out = computed(k, target, [np.int32([257]), np.zeros(1, BF16)], ((1,), BF16))[0]
        assert out.astype(np.float32).tolist() == [256.0]

    def test_b35_small_products_wrap_first(self, target: str) -> None:
        @pypto.jit
        def k(a, b, out):
            out[:] = pypto.cast(a * b, I64) * 3

        @pypto.jit
        def apart(a, b, middle, out):
            middle[:] = a * b
            out[:] = pypto.cast(a * b, I64) * 3 + pypto.cast(middle - middle, I64)

        a = np.full(4, 127, np.int8)
        assert computed(k, target, [a, a], ((4,), np.int64))[0].tolist() == [3] * 4
        assert computed(apart, target, [a, a], ((4,), np.int8), ((4,), np.int64))[1].tolist() == [3] * 4


@pytest.mark.parametrize("target", TARGETS)
class TestSums:
    """Accumulators, counts, means."""

    def test_b37_f16_accumulates_in_f32(self, target: str) -> None:
        @pypto.jit
        def k(x, out):
            out[:] = pypto.sum(pypto.cast(x, F), -1, True)

        assert computed(k, target, [np.ones((1, 65536), np.float16)], ((1, 1), np.float32))[0] == 65536.0

        @pypto.jit
        def narrow(x, out):
            out[:] = pypto.sum(x, -1, True)

        assert computed(narrow, target, [np.ones((1, 4100), np.float16)], ((1, 1), np.float16))[0] == 4100.0

    def test_b39_truths_are_counted(self, target: str) -> None:
        @pypto.jit
        def k(x, total, every, some):
            total[:] = pypto.sum(x, -1, True)
            every[:] = pypto.all(x, -1, True)
            some[:] = pypto.any(x, -1, True)

        for n in (255, 256, 257):
            x = np.ones((2, n), bool)
            x[1] = False
            total, every, some = computed(k, target, [x], ((2, 1), np.int32), ((2, 1), bool), ((2, 1), bool))
            assert total.ravel().tolist() == [n, 0] and every.ravel().tolist() == some.ravel().tolist() == [True, False]

    def test_b41_sums_wrap(self, target: str) -> None:
        @pypto.jit
        def k(x, narrow, wide):
            narrow[:] = pypto.sum(x, -1, True)
            wide[:] = pypto.sum(pypto.cast(x, I64), -1, True)

        narrow, wide = computed(k, target, [np.full((1, 128), 2**30, np.int32)], ((1, 1), np.int32), ((1, 1), np.int64))
        assert narrow == 0 and wide == 137438953472

    @pytest.mark.parametrize("n", [800, 3200, 4096])
    def test_b45_means_of_ones(self, target: str, n: int) -> None:
        @pypto.jit
        def k(x, out):
            out[:] = pypto.mean(x, -1, True)

        assert (computed(k, target, [np.ones((12, n), BF16)], ((12, 1), BF16))[0] == 1).all()

    def test_b47_sums_round_to_even(self, target: str) -> None:
        @pypto.jit
        def k(x, out):
            out[:] = pypto.sum(x, -1, True)

        x = np.array([[1.265625, 1.7890625, 0.271484375, 1.671875]], np.float32).astype(BF16)
        assert computed(k, target, [x], ((1, 1), BF16))[0].astype(np.float32) == 5.0


@pytest.mark.parametrize("target", TARGETS)
class TestFunctions:
    """Functions of narrow floats, and normalisations of any width."""

    @pytest.mark.parametrize("name", ["exp", "log", "rsqrt", "tanh", "erf"])
    def test_b51_of_bf16(self, target: str, name: str) -> None:
        @pypto.jit
        def k(x, out):
            out[:] = getattr(pypto, name)(x)

        exact: Callable[[Any], Any] = {"exp": np.exp, "log": np.log, "rsqrt": lambda v: v**-0.5, "tanh": np.tanh,
                                       "erf": np.vectorize(math.erf)}[name]
        x = np.linspace(0.02 if name in ("log", "rsqrt") else -5, 5, 128).astype(np.float32).astype(BF16)
        got = computed(k, target, [x], ((128,), BF16))[0]
        want = exact(x.astype(np.float64)).astype(np.float32).astype(BF16)
        assert (np.abs(got.view(np.int16).astype(int) - want.view(np.int16).astype(int)) <= 1).all()

    def test_b55_rms_norm_of_any_width(self, target: str) -> None:
        @pypto.jit
        def k(x, out):
            out[:] = pypto.rms_norm(x)

        for n in (1, 2, 31, 33, 511, 513, 1025):
            x = np.random.default_rng(n).normal(size=(4, n)).astype(np.float32)
            want = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6)
            np.testing.assert_allclose(computed(k, target, [x], ((4, n), np.float32))[0], want, rtol=1e-5)

    def test_b67_long_rows(self, target: str) -> None:
        @pypto.jit
        def soft(x, out):
            out[:] = pypto.softmax(x, -1)

        @pypto.jit
        def total(x, out):
            out[:] = pypto.sum(x, -1, True)

        n = 102400 if target == "llvm-cpu" else 3000
        x = np.random.default_rng(0).normal(size=(4, n)).astype(np.float16)
        wide = np.exp(x.astype(np.float64) - x.astype(np.float64).max(-1, keepdims=True))
        want = wide / wide.sum(-1, keepdims=True)
        np.testing.assert_allclose(computed(soft, target, [x], ((4, n), np.float16))[0].astype(np.float64), want, rtol=2e-3, atol=6e-8)
        y = np.ones((64, 32768 if target == "llvm-cpu" else 2000), BF16)
        assert (computed(total, target, [y], ((64, 1), BF16))[0].astype(np.float32) == y.shape[1]).all()


@pytest.mark.parametrize("target", TARGETS)
class TestProducts:
    """Tails and padding of matrix products."""

    @pytest.mark.parametrize("shape", [(1000, 999, 1001), (511, 511, 511), (3, 7, 64), (1, 1, 1), (65, 33, 17)])
    def test_b53_extents_that_are_no_tiles(self, target: str, shape: tuple[int, int, int]) -> None:
        @pypto.jit
        def k(a, b, out):
            out[:] = pypto.matmul(a, b, F)

        m, n, depth = shape
        rng = np.random.default_rng(m)
        a, b = rng.normal(size=(m, depth)).astype(np.float16), rng.normal(size=(depth, n)).astype(np.float16)
        got = computed(k, target, [a, b], ((m, n), np.float32))[0]
        np.testing.assert_allclose(got, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-3, atol=1e-3)

    def test_b59_padding_that_holds_nan(self, target: str) -> None:
        @pypto.jit
        def k(a, b, out):
            out[:] = pypto.matmul(a, b, F)

        rng = np.random.default_rng(0)
        whole = np.full((8, 176), np.nan, np.float32)
        whole[:, :161] = rng.normal(size=(8, 161))
        b = rng.normal(size=(161, 5)).astype(np.float32)
        got = computed(k, target, [whole[:, :161], b], ((8, 5), np.float32))[0]
        np.testing.assert_allclose(got, whole[:, :161].astype(np.float64) @ b, rtol=1e-4, atol=1e-4)

    def test_b79_bf16_in_the_interpreter(self, target: str) -> None:
        @pypto.jit
        def k(a, b, out):
            out[:] = pypto.matmul(a, b, F)

        rng = np.random.default_rng(1)
        a, b = (rng.integers(-2, 3, (16, 16)).astype(np.float32) for _ in range(2))
        np.testing.assert_array_equal(computed(k, target, [a.astype(BF16), b.astype(BF16)], ((16, 16), np.float32))[0], a @ b)


@pytest.mark.parametrize("target", TARGETS)
class TestMemory:
    """Empty, strided, shared and huge."""

    def test_b69_empty(self, target: str) -> None:
        @pypto.jit
        def plus(x, out):
            out[:] = x + x

        @pypto.jit
        def total(x, out):
            out[:] = pypto.sum(x, 2)

        @pypto.jit
        def product(a, b, out):
            out[:] = pypto.matmul(a, b, F)

        @pypto.jit
        def largest(x, out):
            out[:] = pypto.amax(x, 2)

        for shape in ((0,), (0, 128), (5, 2, 0)):
            assert computed(plus, target, [np.zeros(shape, np.float32)], (shape, np.float32))[0].shape == shape
        assert computed(total, target, [np.zeros((5, 2, 0), np.float32)], ((5, 2), np.float32))[0].tolist() == [[0.0, 0.0]] * 5
        for m, depth, n in ((0, 3, 4), (3, 4, 0), (3, 0, 4)):
            got = computed(product, target, [np.zeros((m, depth), np.float32), np.zeros((depth, n), np.float32)], ((m, n), np.float32))[0]
            assert got.shape == (m, n) and not got.any()
        with pytest.raises(KernelError) as caught:
            computed(largest, target, [np.zeros((5, 2, 0), np.float32)], ((5, 2), np.float32))
        assert caught.value.code == "PT306"

    def test_b71_strides(self, target: str) -> None:
        @pypto.jit
        def k(x, out):
            out[:] = x * 2

        base = np.arange(60, dtype=np.float32).reshape(6, 10)
        for x in (base[::2], base.T, base[:, 1:5], base[::-1], base[:, ::-3], np.broadcast_to(base[:1], (4, 10)), base[1:2, 2:3]):
            np.testing.assert_array_equal(computed(k, target, [x], (x.shape, np.float32))[0], x * 2)
        line = np.arange(8, dtype=np.float32)
        buf = np.full(16, -1, np.float32)
        k.run(line, buf[::2], target=target)
        assert buf[::2].tolist() == (line * 2).tolist() and (buf[1::2] == -1).all()

    def test_b75_shared_arrays(self, target: str) -> None:
        @pypto.jit
        def twice(x, y, out):
            out[:] = x + y

        @pypto.jit
        def ones(x, out):
            out[:] = x * 0 + 1

        buf = np.arange(5, dtype=np.float32)
        twice.run(buf, buf, buf, target=target)
        assert buf.tolist() == [0, 2, 4, 6, 8]
        ones.run(buf, buf, target=target)
        assert buf.tolist() == [1] * 5
        line = np.arange(9, dtype=np.float32)
        twice.run(line[:-1], line[:-1], line[1:], target=target)
        assert line.tolist() == [0, 0, 2, 4, 6, 8, 10, 12, 14]

    def test_b77_an_assignment_to_the_outputs_name(self, target: str) -> None:
        @pypto.jit
        def k(a, b, out):
            out = a + b  # noqa: F841

        a = np.ones(3, np.float32)
        with pytest.raises(KernelError, match=r"out\[:\] = ") as caught:
            k.run(a, a, np.zeros(3, np.float32), target=target)
        assert caught.value.code == "PT104"


def test_b73_a_grid_of_two_to_the_32() -> None:
    """Items and offsets are counted in 64 bits on the CPU; a device whose words are 32 bits wide refuses before it is launched."""
    @pypto.jit
    def k(x: pypto.Tensor([16384, 16384, 16], F), out: pypto.Tensor([16384, 16384, 16], F)):
        out[:] = x * 2

    program = lower(k.graph(), "llvm-cpu")
    (step,) = program.steps
    (kernel,) = step if isinstance(step, tuple) else (step,)
    items = math.prod(e.evaluate({}) for e in kernel.grid.extents)
    assert items * 65536 == 2**32
    assert not re.search(r"(mul|add) i32", k.source("llvm-cpu"))
    for target in ("ascend-a2", "tt-wormhole"):
        with pytest.raises(KernelError, match="4294967296 elements") as caught:
            k.source(target)
        assert caught.value.code == "PT526"


@pytest.mark.parametrize("target", ["ascend-a2-emu"])
def test_b69_b73_limits_that_only_a_call_knows(target: str) -> None:
    """An empty tensor and too many axes are refused where the vendor documents neither, before anything is written."""
    @pypto.jit
    def k(x: pypto.Tensor([pypto.DYNAMIC, 4], F), out: pypto.Tensor([pypto.DYNAMIC, 4], F)):
        out[:] = x * 2

    with pytest.raises(KernelError, match="no empty tensors") as caught:
        k.run(np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32), target=target)
    assert caught.value.code == "PT526"


@pytest.mark.parametrize(("rank", "size"), itertools.product((1, 2), (1, 31, 32, 33, 257)))
def test_b63_lengths_that_broadcast(rank: int, size: int) -> None:
    """[256] > [1] is taken; [256] > [128] is refused with both shapes (tests/reports/test_diagnostics.py)."""
    @pypto.jit
    def k(x, y, out):
        out[:] = x > y

    x = np.random.default_rng(size).normal(size=(2,) * (rank - 1) + (size,)).astype(np.float32)
    y, out = np.zeros((1,) * rank, np.float32), np.zeros(x.shape, bool)
    k(x, y, out)
    np.testing.assert_array_equal(out, x > 0)
