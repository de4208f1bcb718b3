"""Calls like the last one go straight to the launcher: the same results and refusals as every other call, and the same specialisations."""
from __future__ import annotations

import contextvars
import sys
import threading
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
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


# ---- other spellings of the same call -------------------------------------------------------------------------------------------------


def taken(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The kernel, whose calls fail from now on where they take the long way."""

    def long_way(*_: Any) -> Any:
        raise AssertionError("the long way")

    monkeypatch.setattr(kernel, "_run", long_way)
    return kernel


def test_keywords_and_defaults_are_put_in_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    @pypto.jit
    def kernel(a, out, scale=2.0, times=3):
        out[:] = a * scale * float(times)

    x, out = dense(3, 4), np.zeros((3, 4), F)
    for _ in range(2):
        kernel(x, out, 2.0, 3)
    taken(kernel, monkeypatch)
    for call in (lambda: kernel(a=x, out=out), lambda: kernel(x, out=out, times=3), lambda: kernel(out=out, scale=2.0, a=x),
                 lambda: kernel(x, out, scale=2.0)):
        out[:] = 0
        call()
        assert (out == 6 * x).all()
    kernel(x, out=out, scale=0.5)
    assert (out == 1.5 * x).all(), "a float is a run-time number"


@pytest.mark.parametrize("wrong", [lambda k, x: k(x, b=x), lambda k, x: k(x, x, x, a=x), lambda k, x: k(x, x, x, x),
                                   lambda k, x: k(x, x, o=x), lambda k, x: k(a=x, b=x)])
def test_wrong_keywords_are_refused_as_ever(wrong: Callable[[Any, Any], Any]) -> None:
    kernel, _ = make()
    with pytest.raises(KernelError) as refused:
        wrong(kernel, dense(3, 4))
    assert refused.value.code == "PT714"


def test_a_numpy_float_is_a_number_of_its_own_dtype() -> None:
    @pypto.jit
    def kernel(a, scale):
        return a * scale

    x = dense(3, 4).astype(np.float16)
    for scale in (np.float64(1.5), np.float32(1.5), np.float16(1.5), 1.5):
        for value in (scale, type(scale)(2.5)):
            made = kernel(x, value)
            want = kernel.run(x, value, target="interpreter")
            assert made.dtype == want.dtype and made.tobytes() == want.tobytes()
    assert len(kernel.specializations()) == 4, "the dtype specialises, the value does not"


class Held:
    """A torch tensor on the CPU, as far as a call looks at it."""

    def __init__(self, held: Array, dtype: str = "torch.float32", device: str = "cpu") -> None:
        self.held, self.dtype, self.device = held, dtype, SimpleNamespace(type=device)

    def numpy(self) -> Array:
        if self.dtype == "torch.requires_grad":
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.held

    def detach(self) -> Held:
        return Held(self.held)

    def is_conj(self) -> bool:
        return False

    is_neg = is_conj


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Held, from_numpy=Held))


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("dtype", ["torch.float32", "torch.requires_grad"])
def test_torch_tensors_are_seen_as_numpy_arrays(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _ = make()
    taken(kernel, monkeypatch)
    x, out = dense(5, 6), np.zeros((5, 6), F)
    assert kernel(Held(x, dtype), Held(x), Held(out)) is None and (out == 2 * x).all()
    out[:] = 0
    assert kernel(Held(x), b=x, out=out) is None and (out == 2 * x).all()


@pytest.mark.usefixtures("torch")
def test_results_are_of_the_first_arrays_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    @pypto.jit
    def kernel(a, b):
        return a + b

    @pypto.jit
    def both(a, b):
        return a + b, a - b

    x = dense(3, 4)
    for _ in range(2):
        kernel(x, x)
        both(x, x)
    for k in (kernel, both):
        taken(k, monkeypatch)
    made = kernel(Held(x), x)
    assert isinstance(made, Held) and (made.held == 2 * x).all()
    assert isinstance(kernel(x, Held(x)), np.ndarray)
    total, difference = both(Held(x), Held(x))
    assert isinstance(total, Held) and isinstance(difference, Held) and not difference.held.any()


@pytest.mark.usefixtures("torch")
def test_tensors_of_devices_are_refused_as_ever() -> None:
    kernel, _ = make()
    with pytest.raises(KernelError) as refused:
        kernel(Held(dense(3, 4), device="cuda"), dense(3, 4), dense(3, 4))
    assert refused.value.code == "PT705"


def test_numbers_that_only_ml_dtypes_has_are_plain_values() -> None:
    """Repeated calls take the launcher; another value, another dtype, the other zero or a NaN does not run the code of the last one."""
    @pypto.jit
    def kernel(a, scale):
        return a * scale

    x = dense(3, 4)
    numbers = (ml_dtypes.bfloat16(1.5), ml_dtypes.bfloat16(2.5), np.int8(2), np.int16(2), ml_dtypes.bfloat16(0.0), ml_dtypes.bfloat16(-0.0),
               ml_dtypes.bfloat16("nan"), ml_dtypes.bfloat16(1.5))
    for number in numbers:
        want = kernel.run(x, number, target="interpreter")
        for _ in range(3):
            made = kernel(x, number)
            assert made.dtype == want.dtype and made.tobytes() == want.tobytes(), repr(number)
