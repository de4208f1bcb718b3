"""Kernels that break naive front ends: each runs interpreted and compiled and is compared with NumPy, or is refused with its code."""
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


def helper_with_if(x, i):
    if i == 0:
        y = x + 1
    elif i < 3:
        y = x * 2
    else:
        y = x
    return y


@case()
def symbolic_if_in_a_plain_helper():
    @jit
    def k(x: T([D, 4]), out: T([D, 4])):
        for i in pypto.loop(x.shape[0]):
            out[i:i + 1, :] = helper_with_if(x[i:i + 1, :], i)
    x, out = rand(5, 4), np.zeros((5, 4), F)
    k(x, out)
    check(out, np.concatenate([x[:1] + 1, x[1:3] * 2, x[3:]]))


def early_return(x, i):
    if i == 0:
        return x + 1
    return x


@case("PT141")
def return_under_a_symbolic_if():
    @jit
    def k(x: T(), out: T()):
        for i in pypto.loop(4):
            out[i:i + 1, :] = early_return(x[i:i + 1, :], i)
    k(rand(4, 4), np.zeros((4, 4), F))


@case("PT104")
def out_is_rebound():
    @jit
    def k(x: T(), out: T()):
        out = x + 1  # noqa: F841
    k(rand(2, 2), rand(2, 2))


@case("PT104")
def inout_is_rebound_and_the_result_lost():
    @jit
    def k(x: T(), y: T()):
        y = y + x
    k(rand(2, 2), rand(2, 2))


@case()
def input_is_rebound_and_used():
    @jit
    def k(x: T(), out: T()):
        x = pypto.reshape(x, [1, 4], inplace=True)
        out[:] = x + 1
    x, out = rand(4, 1), np.zeros((1, 4), F)
    k(x, out)
    check(out, x.reshape(1, 4) + 1)


@case("PT105")
def writing_a_view_does_not_write_its_source():
    @jit
    def k(x: T(), out: T()):
        v = out[0:2, :]
        v[:] = x[0:2, :] + 1
    k(rand(4, 4), rand(4, 4))


@case()
def a_view_is_a_snapshot():
    @jit
    def k(x: T(), out: T()):
        v = x[0:2, :]
        x[0:2, :] = v + 1
        out[:] = v
    x, out = rand(4, 4), np.zeros((2, 4), F)
    old = x.copy()
    k(x, out)
    check(out, old[:2]), check(x[:2], old[:2] + 1), check(x[2:], old[2:])


@case()
def a_view_as_accumulator_in_a_helper():
    def bump(state):
        state[:] = state + 1.0

    @jit
    def k(x: T(), out: T()):
        buf = pypto.view(x, [4, 4], [0, 0])
        for i in pypto.loop(5):
            if pypto.is_loop_end(i):
                bump(buf)
            else:
                bump(buf)
        pypto.assemble(buf, [0, 0], out)
    x, out = rand(4, 4), np.zeros((4, 4), F)
    old = x.copy()
    k(x, out)
    check(out, old + 5), check(x, old)


@case()
def an_in_place_reshape_writes_its_base():
    @jit
    def k(x: T([D, 2, 4]), out: T([D, 2, 4])):
        n = x.shape[0] * 2
        x2, out2 = pypto.reshape(x, [n, 4], inplace=True), pypto.reshape(out, [n, 4], inplace=True)
        for i in pypto.loop(n):
            pypto.assemble(x2[i:i + 1, :] + 1, [i, 0], out2)
    x, out = rand(3, 2, 4), np.zeros((3, 2, 4), F)
    k(x, out)
    check(out, x + 1)


@case()
def a_tail_of_one_row_is_not_broadcast():
    @jit
    def k(x: T([D, 4]), out: T([D, 4])):
        scratch = pypto.full([4, 4], 10.0, pypto.DT_FP32)
        n = x.shape[0]
        for i in pypto.loop((n + 3) // 4):
            t = pypto.view(x, [4, 4], [i * 4, 0], valid_shape=[pypto.min(4, n - i * 4), 4])
            pypto.assemble(t + scratch, [i * 4, 0], out)
    x, out = rand(5, 4), np.zeros((5, 4), F)
    k(x, out)
    check(out, x + 10)


@case()
def same_tensor_read_and_written():
    @jit
    def k(x: T(), out: T()):
        for _ in range(2):
            b = x + 1
            x[:] = x + 1
        out[:] = b * 1.0 + x
    x, out = rand(4, 4), np.zeros((4, 4), F)
    old = x.copy()
    k(x, out)
    check(x, old + 2), check(out, 2 * old + 4)


@case()
def online_softmax_with_loop_begin():
    @jit
    def k(x: T([4, D]), out: T([4, 1])):
        m, s = pypto.tensor([4, 1], pypto.DT_FP32), pypto.tensor([4, 1], pypto.DT_FP32)
        n = x.shape[1]
        for i in pypto.loop((n + 2) // 3):
            t = pypto.view(x, [4, 3], [0, i * 3], valid_shape=[4, (n - i * 3).min(3)])
            tm = t.amax(-1, True)
            if pypto.is_loop_begin(i):
                m[:], s[:] = tm, pypto.exp(t - tm).sum(-1, True)
            else:
                new = pypto.maximum(m, tm)
                s[:] = s * pypto.exp(m - new) + pypto.exp(t - new).sum(-1, True)
                m[:] = new
            if pypto.is_loop_end(i):
                out[:] = pypto.log(s) + m
    for n in (7, 3, 1):
        x, out = rand(4, n), np.zeros((4, 1), F)
        k(x, out)
        check(out, np.log(np.exp(x).sum(-1, keepdims=True)))
    assert len(k.specializations()) == 1


@case()
def accumulator_starts_as_none():
    @jit
    def k(x: T(), out: T()):
        acc = None
        for i in pypto.loop(4):
            if acc is None:
                acc = x[i:i + 1, :]
            else:
                acc = acc + x[i:i + 1, :]
        out[:] = acc
    x, out = rand(4, 4), np.zeros((1, 4), F)
    k(x, out)
    check(out, x.sum(0, keepdims=True))


@case("PT143")
def accumulator_starts_as_none_and_there_may_be_no_turn():
    @jit
    def k(x: T([D, 4]), out: T()):
        acc = None
        for i in pypto.loop(x.shape[0]):
            if acc is None:
                acc = x[i:i + 1, :]
            else:
                acc = acc + x[i:i + 1, :]
        out[:] = acc
    k(rand(4, 4), np.zeros((1, 4), F))


@case("PT120")
def a_list_collects_tensors_in_a_loop():
    @jit
    def k(x: T(), out: T()):
        rows = []
        for i in pypto.loop(4):
            rows.append(x[i:i + 1, :])
        out[:] = pypto.concat(rows + rows)
    k(rand(4, 4), np.zeros((2, 4), F))


@case()
def value_dependent_bounds_and_offsets():
    @jit
    def k(table: T([D], pypto.DT_INT32), x: T([D, 4]), out: T([1, 4])):
        acc = pypto.full([1, 4], 0.0, pypto.DT_FP32)
        for i in pypto.loop(table[0]):
            row = table[i + 1]
            if row >= 0 and row < 5:
                acc = acc + x[row:row + 1, :]
        out[:] = acc
    x, out = rand(5, 4), np.zeros((1, 4), F)
    k(np.array([3, 4, -1, 2, 0], np.int32), x, out)
    check(out, x[4:5] + x[2:3])


@case()
def swap_and_alias_in_a_loop():
    @jit
    def k(x: T(), out: T(), out2: T()):
        a, b = x + 0.0, x * 2
        z = a
        for _ in pypto.loop(3):
            a, b = b, a
            a = a + z
        out[:], out2[:] = a, b
    x, out, out2 = rand(2, 2), np.zeros((2, 2), F), np.zeros((2, 2), F)
    k(x, out, out2)
    a, b, z = x.copy(), x * 2, x
    for _ in range(3):
        a, b = b, a
        a = a + z
    check(out, a)
    check(out2, b)


@case()
def two_buffers_from_one_value():
    @jit
    def k(x: T(), out: T(), out2: T()):
        zero = pypto.full([4, 4], 0.0, pypto.DT_FP32)
        a, b = zero, zero
        a = pypto.clone(a)
        p, q = pypto.tensor([4, 4], pypto.DT_FP32), pypto.tensor([4, 4], pypto.DT_FP32)
        p[:], q[:] = zero, zero
        for i in pypto.loop(4):
            p[i:i + 1, :] = x[i:i + 1, :]
            q[i:i + 1, :] = x[i:i + 1, :] * 2
        out[:], out2[:] = p + a, q + b
    x, out, out2 = rand(4, 4), np.zeros((4, 4), F), np.zeros((4, 4), F)
    k(x, out, out2)
    check(out, x), check(out2, 2 * x)


@case()
def zero_trips_keep_the_old_value():
    @jit
    def k(x: T([D, 4]), out: T([1, 4])):
        acc = pypto.full([1, 4], 7.0, pypto.DT_FP32)
        for i in pypto.loop(x.shape[0]):
            acc = acc + x[i:i + 1, :]
        out[:] = acc
    out = np.zeros((1, 4), F)
    k(np.zeros((0, 4), F), out)
    check(out, np.full((1, 4), 7))


@case()
def a_temporary_changes_shape_between_loops():
    @jit
    def k(x: T(), out: T(), out2: T()):
        for i in pypto.loop(4):
            t = x[i:i + 1, :] + 1
            out[i:i + 1, :] = t
        for i in pypto.loop(2):
            t = x[:, i * 2:i * 2 + 2] + 1
            out2[:, i * 2:i * 2 + 2] = t
    x, out, out2 = rand(4, 4), np.zeros((4, 4), F), np.zeros((4, 4), F)
    k(x, out, out2)
    check(out, x + 1), check(out2, x + 1)


@case()
def counters_count():
    @jit
    def k(x: T(), out: T()):
        n = 0
        for i in pypto.loop(6):
            if i % 2 == 0:
                n += 1
        out[:] = x * n
    x, out = rand(2, 2), np.zeros((2, 2), F)
    k(x, out)
    check(out, x * 3)


@case()
def unroll_covers_the_remainder():
    @jit
    def k(x: T([D, 4]), out: T([D, 4])):
        for i, u in pypto.loop_unroll(0, x.shape[0], 1, unroll_list=[8, 2, 1]):
            out[i:i + u, :] = x[i:i + u, :] + 1
    for n in (0, 1, 7, 8, 21):
        x, out = rand(n, 4), np.zeros((n, 4), F)
        k(x, out)
        check(out, x + 1)


@case()
def bound_in_one_branch_only():
    @jit
    def k(x: T([D, 4]), out: T([D, 4])):
        for i in pypto.loop(x.shape[0]):
            if i < 2:
                y = x[i:i + 1, :] + 1
            if i < 2:
                out[i:i + 1, :] = y
    x, out = rand(4, 4), np.zeros((4, 4), F)
    k(x, out)
    check(out[:2], x[:2] + 1), check(out[2:], 0)


@case("PT107")
def negative_slices_and_negative_index():
    @jit
    def k(x: T(), out: T()):
        out[-2:, :] = x[-3:-1, :]
        out[0, 1:3] = x[-1, 0:2]
    x, out = rand(4, 4), np.zeros((4, 4), F)
    k(x, out)
    want = np.zeros((4, 4), F)
    want[-2:], want[0, 1:3] = x[-3:-1], x[-1, 0:2]
    check(out, want)


@case("PT133")
def strided_slice():
    @jit
    def k(x: T(), out: T()):
        out[:] = x[::2, :]
    k(rand(4, 4), rand(2, 4))


@case("PT144")
def while_on_a_symbol():
    @jit
    def k(x: T([D, 4]), out: T([D, 4])):
        n = x.shape[0]
        while n > 0:
            n = n - 1
        out[:] = x
    k(rand(4, 4), rand(4, 4))


@case()
def closures_are_part_of_the_key():
    def make():
        scale = 1.0

        @jit
        def k(x: T(), out: T()):
            out[:] = x * scale

        def set_scale(v):
            nonlocal scale
            scale = v
        return k, set_scale
    k, set_scale = make()
    x, out = rand(2, 2), np.zeros((2, 2), F)
    for v in (2.0, 3.0):
        set_scale(v)
        k(x, out)
        check(out, x * F(v))


@case("PT142")
def a_loop_without_source():
    scope = {"pypto": pypto, "T": T}
    exec("def k(x: T(), out: T()):\n    for i in pypto.loop(2):\n        out[i:i+1, :] = x[i:i+1, :]\n", scope)
    jit(scope["k"])(rand(2, 2), rand(2, 2))


@case()
def straight_line_without_source_and_lambda():
    scope = {"pypto": pypto, "T": T}
    exec("def k(x: T(), out: T()):\n    out[:] = x + 1\n", scope)
    x, out = rand(2, 2), np.zeros((2, 2), F)
    jit(scope["k"])(x, out)
    check(out, x + 1)
    check(jit(lambda a: pypto.exp(a))(x), np.exp(x))


@case()
def chains_ternaries_and_short_circuits():
    @jit
    def k(x: T([D, 4]), out: T([D, 4]), flag=None):
        for i in pypto.loop(x.shape[0]):
            gain = 2 if 1 <= i < 3 else 5
            row = x[i:i + 1, :]
            row = row + 1 if i == 0 or i == 3 else row
            if flag is not None and flag > i or not i != 2:  # noqa: RUF021, SIM202
                row = row * 10
            out[i:i + 1, :] = row * gain
    x, out = rand(5, 4), np.zeros((5, 4), F)
    k(x, out)
    want = x.copy()
    want[[0, 3]] += 1
    want[2] *= 10
    want *= np.array([5, 2, 2, 5, 5], F)[:, None]
    check(out, want)


@case()
def scalars_merge_at_a_branch():
    @jit
    def k(x: T([D, 4]), out: T([D, 4])):
        n = x.shape[0]
        for i in pypto.loop(n):
            if i == 0:
                src = n - 1
            else:
                src = i - 1
            out[i:i + 1, :] = x[src:src + 1, :]
    x, out = rand(5, 4), np.zeros((5, 4), F)
    k(x, out)
    check(out, np.roll(x, 1, 0))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("function", "expect"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_pitfall(function: Callable[[], None], expect: str | None, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
