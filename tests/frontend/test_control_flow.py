"""Loops, branches and names: what regions carry and merge, interpreted and compiled, against NumPy, or refused with its code."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto

F = np.float32
CASES: list[tuple[Callable[[], None], str | None]] = []
TARGETS = ("interpreter", "llvm-cpu")
target_now = TARGETS[0]


def case(expect: str | None = None) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def enter(function: Callable[[], None]) -> Callable[[], None]:
        CASES.append((function, expect))
        return function

    return enter


def jit(function: Any) -> Any:
    return pypto.jit(function, target=target_now)


def check(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def rand(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(0).random(shape, dtype=F)


D = pypto.DYNAMIC
T = pypto.Tensor


@case()
def a_rank_changes_after_the_first_turn():
    @jit
    def k(x: T(), out: T()):
        y = x
        for _ in pypto.loop(3):
            y = pypto.reshape(y, [2, 8]) + 1
        out[:] = y
    x, out = rand(4, 4), np.zeros((2, 8), F)
    k(x, out)
    check(out, x.reshape(2, 8) + 3)


@case("PT122")
def a_shape_changes_in_every_turn():
    @jit
    def k(x: T(), out: T()):
        y = x
        for _ in pypto.loop(3):
            y = pypto.concat([y, y], 0)
        out[:] = y
    k(rand(1, 4), np.zeros((8, 4), F))


@case()
def a_float_is_carried():
    @jit
    def k(x: T(), out: T()):
        scale = 1.0
        for _ in pypto.loop(3):
            scale = scale * 2.0
        out[:] = x * scale
    x, out = rand(4, 4), np.zeros((4, 4), F)
    k(x, out)
    check(out, x * 8)


@case()
def a_loop_over_a_condition_is_an_if():
    @jit
    def k(x: T([D, 4]), out: T([D, 4])):
        for _ in pypto.loop(x.shape[0] > 2):
            out[:] = x
    for n in (2, 3):
        x, out = rand(n, 4), np.zeros((n, 4), F)
        k(x, out)
        check(out, x if n > 2 else 0)


@case()
def loop_of_one_turn_is_a_scope():
    @jit
    def k(x: T(), out: T()):
        for _ in pypto.loop(1):
            x = pypto.reshape(x, [1, 16])
        out[:] = x
    x, out = rand(4, 4), np.zeros((1, 16), F)
    k(x, out)
    check(out, x.reshape(1, 16))


@case()
def or_and_not_on_symbols_and_bool_elements():
    @jit
    def k(flags: T([D], pypto.DT_BOOL), x: T([D, 4]), out: T([D, 4])):
        for i in pypto.loop(x.shape[0]):
            if flags[i] or i == 2:
                out[i:i + 1, :] = x[i:i + 1, :]
            elif not flags[i] and i > 2:
                out[i:i + 1, :] = -x[i:i + 1, :]
    x, out = rand(5, 4), np.zeros((5, 4), F)
    k(np.array([True, False, False, True, False]), x, out)
    check(out, x * np.array([1, 0, 1, 1, -1], F)[:, None])


@case("PT140")
def a_loop_index_after_its_loop():
    @jit
    def k(x: T(), out: T()):
        for i in pypto.loop(4):
            out[i:i + 1, :] = x[i:i + 1, :]
        out[0:1, :] = x[0:1, :] * i
    k(rand(4, 4), rand(4, 4))


@case("PT141")
def break_in_a_recorded_loop():
    @jit
    def k(x: T(), out: T()):
        for i in pypto.loop(4):
            out[i:i + 1, :] = x[i:i + 1, :]
            if i > 2:
                break
    k(rand(4, 4), rand(4, 4))


@case()
def break_in_a_python_loop_inside_a_recorded_one():
    @jit
    def k(x: T(), out: T()):
        for i in pypto.loop(4):
            y = x[i:i + 1, :]
            for turn in range(10):
                if turn == 3:
                    break
                y = y + 1
            out[i:i + 1, :] = y
    x, out = rand(4, 4), rand(4, 4)
    k(x, out)
    check(out, x + 3)


@case("PT145")
def python_min_of_tensors():
    @jit
    def k(x: T(), out: T()):
        out[:] = min(x, out)
    k(rand(4, 4), rand(4, 4))


@case("PT106")
def a_kernel_that_writes_nothing():
    @jit
    def k(x: T(), out: T()):
        pypto.exp(x)
    k(rand(4, 4), rand(4, 4))


@case()
def nested_loops_and_helpers_that_write():
    def add_row(acc, row):
        acc[:] = acc + row

    @jit
    def k(x: T([D, 4, 4]), out: T([D, 4])):
        for b in pypto.loop(x.shape[0]):
            acc = pypto.full([1, 4], 0.0, pypto.DT_FP32)
            for i in pypto.loop(4):
                if i < 3:
                    add_row(acc, pypto.reshape(x[b:b + 1, i:i + 1, :], [1, 4]))
            out[b:b + 1, :] = acc
    x, out = rand(3, 4, 4), np.zeros((3, 4), F)
    k(x, out)
    check(out, x[:, :3].sum(1))


@case()
def tails_are_carried_and_merged():
    @jit
    def k(x: T([D, 8]), n: pypto.SymbolicScalar, out: T([4, 2])):
        acc = pypto.view(x, [4, 2], [0, 0])
        for i in pypto.loop(1, 4):
            tile = pypto.view(x, [4, 2], [0, i * 2], valid_shape=[n, 2])
            if i < 3:
                acc = acc + tile
            else:
                acc = pypto.maximum(acc, 0.0)
            last = tile * 2
        out[:] = 0.0
        pypto.assemble(acc, [0, 0], out)
        out[0:1, :] = last[0:1, :]
    for rows in (1, 3, 4):
        x, out = rand(5, 8), np.full((4, 2), -1, F)
        k(x, rows, out)
        want = np.zeros((4, 2), F)
        want[:rows] = x[:rows, 0:2] + x[:rows, 2:4] + x[:rows, 4:6]
        want[0] = 2 * x[0, 6:8]
        check(out, want)


@case()
def assignment_in_place_rebinds():
    @jit
    def k(x: T(), out: T()):
        y = x
        y += 1
        y *= 2
        out[:] = y - x
    x, out = rand(4, 4), np.zeros((4, 4), F)
    k(x, out)
    check(out, (x + 1) * 2 - x)


@case()
def each_unroll_factor_makes_a_name_of_its_own_shape():
    @jit
    def k(x: T([D, 8]), out: T([D, 8])):
        for i, n in pypto.loop_unroll(x.shape[0], unroll_list=[4, 2]):
            t = pypto.view(x, [n, 8], [i, 0])
            for j in range(3):
                if j == 0:
                    acc = t * 1.0
                else:
                    acc = acc + t
            out[i:, 0:] = acc
    for rows in (1, 2, 6, 7):
        x, out = rand(rows, 8), np.zeros((rows, 8), F)
        k(x, out)
        check(out, 3 * x)


@case("PT122")
def a_name_of_another_shape_begins_a_turn():
    @jit
    def k(x: T([D, 8]), out: T([D, 8])):
        acc = pypto.full([4, 8], 0.0, pypto.DT_FP32)
        for i in pypto.loop(x.shape[0]):
            acc = acc[0:2, :] + x[i:i + 1, :]
        out[0:2, :] = acc
    k(rand(3, 8), np.zeros((3, 8), F))


@case("PT122")
def a_name_of_another_shape_is_read_behind_the_loop():
    @jit
    def k(x: T([D, 8]), out: T([D, 8])):
        for i, n in pypto.loop_unroll(x.shape[0], unroll_list=[2]):
            for j in range(2):
                if j == 0:
                    acc = pypto.view(x, [n, 8], [i, 0])
                else:
                    acc = acc + 1.0
        out[0:1, :] = acc[0:1, :]
    k(rand(3, 8), np.zeros((3, 8), F))


@case()
def a_reshape_in_place_in_a_loop_is_the_same_tensor():
    @jit
    def k(x: T([D, 8]), w: T([16]), out: T([D, 8])):
        total = pypto.full([16], 0.0, pypto.DT_FP32)
        for i in pypto.loop(x.shape[0]):
            for _ in pypto.loop(1):
                w = pypto.reshape(w, [2, 8], inplace=True)
            total = pypto.reshape(total, [2, 8], inplace=True)
            total[0:1, :] = total[0:1, :] + x[i:i + 1, :] + w[1:2, :]
            out[i:i + 1, :] = total[0:1, :]
        out[:] = out + total[0:1, :]
    for rows in (0, 1, 5):
        x, w, out = rand(rows, 8), rand(16), np.zeros((rows, 8), F)
        k(x, w, out)
        added = x + w[8:]
        check(out, np.cumsum(added, 0) + added.sum(0))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("function", "expect"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_control_flow(function: Callable[[], None], expect: str | None, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "target_now", target)
    seen: str | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function()
        except pypto.KernelError as refused:
            seen = refused.code
    lints = [w.message.diagnostic.code for w in caught if isinstance(w.message, pypto.KernelWarning)]
    assert expect in (seen, *lints)
    assert expect is not None or not lints


@pytest.mark.parametrize("target", TARGETS)
def test_min_and_max_of_run_time_numbers(target: str) -> None:
    @pypto.jit(target=target)
    def k(x: T(), out: T(), a: float, b: float = 0.5):
        low = min(a, b, 3)
        out[:] = x * low + max(x.shape[0], a) + max([a, b])

    x, out = rand(3, 4), np.zeros((3, 4), F)
    for a, b in ((2.0, 0.5), (0.25, 0.5), (9.0, 7.0)):
        k(x, out, a, b)
        check(out, x * F(min(a, b, 3)) + max(3, a) + max(a, b))
    assert len(k.specializations()) == 1
