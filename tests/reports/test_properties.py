"""The properties at the end of the collected reports, each with a generator: what must not change a result, and what always holds of it."""
from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pypto_dsl as pypto
from pypto_dsl.compiler.dtypes import ALL
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.promotion import RULE_SETS, PromotionError, rule_set
from pypto_dsl.compiler.promotion.atype import AType

Array = np.ndarray[Any, np.dtype[Any]]
BF16 = ml_dtypes.bfloat16
SOME = settings(deadline=None, max_examples=40)
FEW = settings(deadline=None, max_examples=12)


# ---- division --------------------------------------------------------------------------------------------------------------------


@pypto.jit
def divided(a: pypto.Tensor([pypto.DYNAMIC], pypto.DT_INT32), b: pypto.Tensor([pypto.DYNAMIC], pypto.DT_INT32),
            q: pypto.Tensor([pypto.DYNAMIC], pypto.DT_INT32), r: pypto.Tensor([pypto.DYNAMIC], pypto.DT_INT32)):
    q[:] = a // b
    r[:] = a % b


INT32 = st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-9, 9), st.sampled_from([-(2**31), 2**31 - 1, 0, 1, -1]))


@SOME
@given(st.lists(st.tuples(INT32, INT32), min_size=1, max_size=40))
def test_division_identity(pairs: list[tuple[int, int]]) -> None:
    """a == (a // b) * b + a % b modulo 2**32 wherever b is not 0, and a % b has the sign of b and is smaller; by 0 both are 0."""
    a, b = (np.array(v, np.int32) for v in zip(*pairs, strict=True))
    q, r = np.zeros_like(a), np.zeros_like(a)
    divided(a, b, q, r)
    with np.errstate(over="ignore"):
        back = q * b + r
    live = b != 0
    np.testing.assert_array_equal(back[live], a[live])
    assert (np.abs(r[live].astype(np.int64)) < np.abs(b[live].astype(np.int64))).all()
    assert ((r[live] == 0) | ((r[live] < 0) == (b[live] < 0))).all()
    assert not q[~live].any() and not r[~live].any()


# ---- promotion -------------------------------------------------------------------------------------------------------------------


WEAK = ("i32", "i64", "f32", "f64")
NODES = [AType(d, weak) for d in ALL for weak in (False, True) if d.kind != "block" and (not weak or d.name in WEAK)]


@settings(deadline=None, max_examples=300)
@given(st.sampled_from([n for n in RULE_SETS if n != "ttnn"]), st.sampled_from(NODES), st.sampled_from(NODES))
def test_promotion_symmetry(name: str, a: AType, b: AType) -> None:
    """Both orders join alike, or are refused alike; the result is at least each operand."""
    rules = rule_set(name)

    def joined(x: AType, y: AType) -> AType | None:
        try:
            return rules.join(x, y)
        except PromotionError:
            return None

    found = joined(a, b)
    assert found == joined(b, a)
    if found is not None:
        assert joined(found, a) == found == joined(found, b)
    assert joined(a, a) == a or a.weak


# ---- what must not change a result -------------------------------------------------------------------------------------------------


def normalised(x: Any) -> Any:
    """Sums, an exponential, a quotient: everything whose order of rounding could show."""
    centred = x - pypto.mean(x, -1, True)
    weight = pypto.exp(centred * 0.25)
    return weight / pypto.sum(weight, -1, True) + pypto.pow(pypto.abs(centred), 1.5)


@pypto.jit
def dynamic(x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
            out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32)):
    out[:] = normalised(x)


def result(x: Array) -> Array:
    """By the kernel of dynamic extents, compiled once."""
    out = np.zeros(x.shape, np.float32)
    dynamic(x, out)
    return out


def sample(rows: int, cols: int, seed: int = 0) -> Array:
    return (np.random.default_rng(seed).normal(size=(rows, cols)) * 3).astype(np.float32)


@pytest.mark.parametrize("first", range(1, 258, 32))
def test_every_extent_from_1_to_257(first: int) -> None:
    """One compilation serves them all, each right against float64."""
    for n in range(first, min(first + 32, 258)):
        x = sample(3, n, n)
        wide = x.astype(np.float64)
        centred = wide - wide.mean(-1, keepdims=True)
        weight = np.exp(centred * 0.25)
        want = weight / weight.sum(-1, keepdims=True) + np.abs(centred) ** 1.5
        np.testing.assert_allclose(result(x), want, rtol=2e-5, atol=2e-6)
    assert len(dynamic.specializations()) == 1


@FEW
@given(st.integers(1, 40), st.integers(1, 1500))
@example(1, 1)
@example(40, 1024)
def test_static_and_symbolic_extents(rows: int, cols: int) -> None:
    """The same bits whether extents are numbers in the code or arguments."""
    @pypto.jit
    def static(x, out):
        out[:] = normalised(x)

    x = sample(rows, cols, rows * cols)
    out = np.zeros_like(x)
    static(x, out)
    assert out.tobytes() == result(x).tobytes()


@FEW
@given(st.integers(1, 64), st.integers(1, 700))
def test_tiles_of_any_size(rows: int, cols: int) -> None:
    """The user's tile, the order of the grid and the number of threads change no bit on the CPU."""
    @pypto.jit
    def tiled(x, out):
        pypto.set_vec_tile_shapes(rows, cols)
        out[:] = normalised(x)

    x = sample(37, 300)
    out = np.zeros_like(x)
    tiled(x, out)
    assert out.tobytes() == result(x).tobytes()


@functools.cache
def device_results(target: str) -> list[bytes]:
    """A row-wise kernel on a device's emulator under two tiles."""
    found = []
    for tile in ((8, 64), (32, 64)):
        @pypto.jit
        def tiled(x, out, tile=tile):
            pypto.set_vec_tile_shapes(*tile)
            out[:] = pypto.exp(x * 0.5) - pypto.amax(x, -1, True)

        x = sample(33, 64)
        out = np.zeros_like(x)
        tiled.run(x, out, target=target)
        found.append(out.tobytes())
    return found


@pytest.mark.parametrize("target", ["ascend-a2-emu"])
def test_tiles_on_a_device(target: str) -> None:
    assert len(set(device_results(target))) == 1


def test_fused_and_apart() -> None:
    """Storing every intermediate, which ends fusion, gives the bits of the fused kernel; on f16 too, whose rounding points stay."""
    for dtype in (np.float32, np.float16, BF16):
        @pypto.jit
        def apart(x, a, b, c, out):
            a[:] = x * x
            b[:] = pypto.exp(-a)
            c[:] = b + x
            out[:] = pypto.sqrt(pypto.abs(c))

        @pypto.jit
        def fused(x, out):
            out[:] = pypto.sqrt(pypto.abs(pypto.exp(-(x * x)) + x))

        x = sample(9, 133).astype(dtype)
        scratch = [np.zeros_like(x) for _ in range(4)]
        apart(x, *scratch)
        out = np.zeros_like(x)
        fused(x, out)
        assert out.tobytes() == scratch[-1].tobytes()


def test_passes_left_out() -> None:
    """What the interpreter makes of the recorded graph and of the optimised one is the same."""
    x = sample(5, 77)
    out = np.zeros_like(x)
    dynamic.run(x, out, target="interpreter")
    np.testing.assert_allclose(out, result(x), rtol=3e-6, atol=1e-6)


@FEW
@given(st.integers(1, 30), st.integers(1, 90), st.integers(1, 3), st.integers(-3, 3).filter(bool), st.booleans())
def test_contiguous_and_strided(rows: int, cols: int, down: int, across: int, turned: bool) -> None:
    base = sample(rows * down, cols * abs(across))
    x = base[::down, ::across]
    x = x.T if turned else x
    assert result(x).tobytes() == result(np.ascontiguousarray(x)).tobytes()


@FEW
@given(st.sampled_from([0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 0.1, 7.25, 1e-40, 3e38, -0.0]),
       st.sampled_from(["add", "mul", "pow", "div", "maximum"]))
def test_literal_and_named_numbers(number: float, name: str) -> None:
    """A number in the text and one that is an argument give the same bits."""
    @pypto.jit
    def literal(x, out):
        out[:] = getattr(pypto, name)(x, number)

    @pypto.jit
    def named(x, out, n: float):
        out[:] = getattr(pypto, name)(x, n)

    x = sample(4, 33)
    x[0, :6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42]
    first, second = np.zeros_like(x), np.zeros_like(x)
    try:
        literal(x, first)
    except KernelError as no:
        assert no.code in ("PT111", "PT204")
        return
    named(x, second, number)
    same = (first.view(np.int32) == second.view(np.int32)) | (np.isnan(first) & np.isnan(second))
    assert same.all(), (x[~same][:3], first[~same][:3], second[~same][:3])
