"""Calls like the last one go straight to the launcher: the same results and refusals as every other call, and the same specialisations."""
from __future__ import annotations

import contextvars
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.frontend.arguments import Array
from pypto_dsl.frontend.direct import MISSED
from pypto_dsl.frontend.verify import set_verify_golden_data
from pypto_dsl.runtime.cpu import fastcall

pytestmark = pytest.mark.skipif(not fastcall.supported(), reason="this interpreter's objects have another layout: calls take the long way")
D, T, F = pypto.DYNAMIC, pypto.Tensor, np.float32
SCALE = 2.0


def dense(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=F).reshape(shape) + 1


def frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def is_direct(kernel: Any, *args: Any) -> bool:
    """Whether the next call with these arguments goes straight to the launcher. Runs it."""
    return kernel._repeated is not None and kernel._repeated[0].run(args) is not MISSED


def make() -> tuple[Any, Any]:
    @pypto.jit
    def dynamic(a: T([D, D]), b: T([D, D]), out: T([D, D])):
        out[:] = a + b

    @pypto.jit
    def static(a, b, out):
        out[:] = a + b

    x, out = dense(3, 4), dense(3, 4)
    for kernel in (dynamic, static):
        for _ in range(2):
            kernel(x, x, out)
        assert is_direct(kernel, x, x, out)
    return dynamic, static


def test_dynamic_extents_are_read_off_the_arrays() -> None:
    kernel, _ = make()
    for shape in ((7, 9), (1, 1), (0, 5), (200, 3)):
        x, out = dense(*shape), np.zeros(shape, F)
        assert is_direct(kernel, x, x, out) and (out == 2 * x).all()
    assert len(kernel.specializations()) == 1


x, z = dense(3, 4), np.zeros((3, 4), F)
REFUSED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "extent of an input": ("PT707", (x, dense(7, 9), z)), "extent of the output": ("PT707", (x, x, np.zeros((7, 9), F))),
    "rank": ("PT703", (x[0], x, z)), "too few": ("PT714", (x, x)), "too many": ("PT714", (x, x, z, z)), "None": ("PT701", (x, None, z)),
    "read only": ("PT706", (x, x, frozen(z.copy()))), "broadcast": ("PT706", (x, x, np.broadcast_to(z[0], (3, 4)))),
    "a list": ("PT701", (x.tolist(), x, z)),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_wrong_is_said_as_on_the_first_call(why: str) -> None:
    kernel, _ = make()
    code, args = REFUSED[why]
    before = z.copy()
    with pytest.raises(KernelError) as found:
        kernel(*args)
    assert found.value.code == code and (z == before).all()


def test_other_layouts_overlap_and_types_take_the_long_way() -> None:
    for kernel in make():
        x, out = dense(3, 4), np.zeros((3, 4), F)
        kernel(x.T.copy().T, x, out)
        assert (out == 2 * x).all()
        wide = np.zeros((3, 8), F)
        kernel(x, x, wide[:, ::2])
        assert (wide[:, ::2] == 2 * x).all() and (wide[:, 1::2] == 0).all()
        y = x.copy()
        kernel(y, x, y)
        assert (y == 2 * x).all()
        h = x.astype(np.float16)
        half = np.zeros((3, 4), np.float16)
        kernel(h, h, half)
        assert (half == 2 * h).all() and len(kernel.specializations()) == 2
        kernel(x, x, out)
        assert kernel.graph().parameters[0].type.dtype.numpy == F, "the last call is the one that is shown"


def test_two_outputs_that_share_memory_are_refused() -> None:
    @pypto.jit
    def two(a, first, second):
        first[:] = a + 1
        second[:] = a + 2

    a, first, second = dense(4), np.zeros(4, F), np.zeros(4, F)
    for _ in range(2):
        two(a, first, second)
    assert is_direct(two, a, first, second)
    with pytest.raises(KernelError, match="share memory"):
        two(a, first, first)


def test_floats_plain_values_and_defaults() -> None:
    @pypto.jit
    def affine(a, s, out, n=1, shift=0.5):
        out[:] = a * s * n + shift

    a, out = dense(2, 3), np.zeros((2, 3), F)
    calls: list[tuple[tuple[Any, ...], Any]] = [
        ((a, 2.0, out), 2 * a + F(0.5)),
        ((a, -3.0, out), -3 * a + F(0.5)),
        ((a, 2.0, out, 3), 6 * a + F(0.5)),
        ((a, 2.0, out, True), 2 * a + F(0.5)),
        ((a, 2.0, out, 3, 4.0), 6 * a + 4),
        ((a, 5.0, out, 3, 1.0), 15 * a + 1),
        ((a, 2, out), 2 * a + F(0.5)),
        ((a, F(2), out), 2 * a + F(0.5)),
    ]
    for _ in range(2):
        for args, want in calls:
            for _ in range(2):
                out[:] = 77
                affine(*args)
                assert (out == want).all(), args[3:]
        out[:] = 77
        affine(a, 2.0, out, shift=3.0)
        assert (out == 2 * a + 3).all()


def test_a_float_that_overflows_warns_every_time() -> None:
    @pypto.jit
    def scaled(a, s, out):
        out[:] = a * s

    a, out = dense(4), np.zeros(4, F)
    for s in (2.0, 3.0, float("inf")):
        scaled(a, s, out)
        assert (out == a * F(s)).all()
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="overflow"):
            scaled(a, 1e300, out)
        assert np.isinf(out).all()


def test_returned_arrays_are_new_and_fit_the_extents() -> None:
    @pypto.jit
    def pair(a: T([D, D])):
        return a + 1, a + 2

    @pypto.jit
    def one(a: T([D, D])):
        return a + 1

    for shape in ((3, 4), (3, 4), (3, 4), (7, 2), (7, 2)):
        a = dense(*shape)
        first, second = pair(a)
        assert (first == a + 1).all() and (second == a + 2).all()
        mine = one(a)
        assert isinstance(mine, np.ndarray) and (mine == a + 1).all() and not np.shares_memory(mine, one(a))
    assert is_direct(pair, a) and is_direct(one, a)


def test_arrays_as_defaults_and_values_given_only_by_name() -> None:
    weights = dense(4)

    @pypto.jit
    def added(a, out, w=weights):
        out[:] = a + w

    @pypto.jit
    def scaled(a, *numbers, s=2.0):
        return a * s

    a, out = dense(4), np.zeros(4, F)
    for _ in range(3):
        out[:] = 0
        added(a, out)
        assert (out == a + weights).all()
        assert (scaled(a, 1, 7) == 2 * a).all() and (scaled(a, 1, 7, s=3.0) == 3 * a).all()


def test_variables_that_are_read_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    @pypto.jit
    def scaled(a, out):
        out[:] = a * SCALE

    a, out = dense(4), np.zeros(4, F)
    for scale in (2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 2.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        scaled(a, out)
        assert (out == scale * a).all()
    assert len(scaled.specializations()) == 2


def test_tiles_set_outside_golden_data_kernels_inside_and_other_targets() -> None:
    kernel, _ = make()
    a, out = dense(3, 4), np.zeros((3, 4), F)

    def tiled() -> Any:
        pypto.set_vec_tile_shapes(2, 2)
        kernel(a, a, out)
        return kernel.graph().body.ops[-1].tile

    assert contextvars.copy_context().run(tiled) == (2, 2)
    kernel(a, a, out)
    assert kernel.graph().body.ops[-1].tile is None
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        set_verify_golden_data(goldens=[None, None, a])
        kernel(a, a, out)
        kernel(a, a, out)
    assert [w.message.diagnostic.code for w in seen if isinstance(w.message, pypto.KernelWarning)] == ["PT719"]

    @pypto.jit
    def outer(a: T([D, D]), out: T([D, D])):
        kernel(a, a, out)

    outer(a, out)
    assert (out == 2 * a).all()
    before = kernel._repeated
    for _ in range(3):
        out[:] = 0
        kernel.run(a, a, out, target="interpreter")
        assert (out == 2 * a).all() and kernel._repeated is before


def test_threads_with_different_shapes() -> None:
    _, kernel = make()
    wrong: list[int] = []

    def work(n: int) -> None:
        a, out = dense(n, 5), np.zeros((n, 5), F)
        for _ in range(200):
            out[:] = 0
            kernel(a, a, out)
            if not (out == 2 * a).all():
                wrong.append(n)

    started: list[threading.Thread] = [threading.Thread(target=work, args=(n,)) for n in (2, 3, 4, 5)]
    run: list[Callable[[], None]] = [t.start for t in started] + [t.join for t in started]
    for step in run:
        step()
    assert not wrong
