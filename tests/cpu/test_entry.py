"""A kernel that is called again is entered without a step of Python, and is in every other way what it was."""
from __future__ import annotations

import contextvars
import copy
import gc
import inspect
import os
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl import driver
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.driver import Kernel
from pypto_dsl.frontend.verify import set_verify_golden_data
from pypto_dsl.runtime.cpu import entry, fastcall

pytestmark = pytest.mark.skipif(not fastcall.supported(), reason="this interpreter's objects have another layout: calls take the long way")
D, T, F = pypto.DYNAMIC, pypto.Tensor, np.float32


@pypto.jit
def added(a: T([D, D]), b: T([D, D]), out: T([D, D])):
    """The sum."""
    out[:] = a + b


def dense(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=F).reshape(shape) + 1


def fresh() -> Any:
    """A kernel that has been called often enough to be entered, and nothing else."""
    kernel = pypto.jit(added.function)
    call(kernel)
    assert enters(kernel)
    return kernel


def call(kernel: Any, rows: int = 3) -> None:
    a, out = dense(rows, 4), np.zeros((rows, 4), F)
    kernel(a, a, out)
    assert (out == 2 * a).all()


A, OUT = dense(3, 4), np.zeros((3, 4), F)


def enters(kernel: Any) -> bool:
    """Whether the second of two calls runs no Python but the lambda."""
    call(kernel)
    return steps(lambda: kernel(A, A, OUT)) == 1


def steps(run: Callable[[], object]) -> int:
    """How many Python functions run, this one's own among them."""
    seen = []
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code) if event == "call" else None)
    try:
        run()
    finally:
        sys.setprofile(None)
    return len(seen)


def test_no_python_runs_between_the_call_and_the_launcher() -> None:
    kernel = fresh()
    assert steps(lambda: kernel(A, A, OUT)) == 1
    assert steps(lambda: kernel(A, b=A, out=OUT)) > 1
    assert steps(lambda: kernel(A, A, OUT)) == 1


def test_it_is_the_kernel_that_it_was() -> None:
    kernel, plain = fresh(), pypto.jit(added.function)
    assert type(kernel) is not Kernel and isinstance(kernel, Kernel) and callable(kernel)
    assert type(kernel).__name__ == "Kernel" and type(kernel).__module__ == Kernel.__module__ and type(kernel).__doc__ == Kernel.__doc__
    assert inspect.signature(kernel) == inspect.signature(plain) == inspect.signature(added.function)
    assert (kernel.__name__, kernel.__doc__, kernel.__wrapped__, repr(kernel)) == ("added", "The sum.", added.function, repr(plain))
    call(added)
    call(added)
    assert pickle.loads(pickle.dumps(added)) is added and copy.copy(added) is added and copy.deepcopy([added])[0] is added
    assert weakref.ref(kernel)() is kernel and "kernel added" in kernel.text()
    kernel.note = "kept"
    assert vars(kernel)["note"] == "kept"
    out = np.zeros((3, 4), F)
    kernel.__call__(A, A, out)
    assert (out == 2 * A).all()
    kernel.run(A, A, out, target="interpreter")
    assert (out == 2 * A).all() and enters(kernel)


def test_the_last_form_used_is_the_one_that_is_explained() -> None:
    kernel = fresh()
    kernel(A, A, OUT)
    first = kernel.specialise()
    second = kernel.specialise(A.astype(np.float64), A.astype(np.float64), OUT.astype(np.float64))
    assert kernel.specialise() is second is not first
    kernel(A, A, OUT)
    assert kernel.specialise() is first and enters(kernel)
    wide = A.astype(np.float64), A.astype(np.float64), OUT.astype(np.float64)
    for _ in range(3):
        kernel(*wide)
        assert kernel.specialise() is second and (wide[2] == 2 * wide[0]).all()
    kernel(A, A, OUT)
    assert kernel.specialise() is first


def test_other_shapes_alternate() -> None:
    kernel = fresh()
    for rows in (3, 5, 3, 0, 7, 3, 3):
        call(kernel, rows)
    assert len(kernel.specialisations()) == 1


def test_what_is_wrong_is_refused_as_ever() -> None:
    kernel = fresh()
    for args, code in (((A, A), "PT714"), ((A, A, OUT, 1), "PT714"), ((A, None, OUT), "PT701"), ((A, dense(2, 4), OUT), "PT707")):
        with pytest.raises(KernelError) as refused:
            kernel(*args)
        assert refused.value.code == code
    with pytest.raises(KernelError) as refused:
        kernel(A, A, wrong=OUT)
    assert refused.value.code == "PT714" and enters(kernel)


def test_a_context_in_which_calls_mean_more_goes_through_python() -> None:
    kernel = fresh()

    def tiled() -> Any:
        pypto.set_vec_tile_shapes(2, 2)
        assert steps(lambda: kernel(A, A, OUT)) > 1
        return kernel.graph().body.ops[-1].tile

    assert contextvars.copy_context().run(tiled) == (2, 2)
    assert enters(kernel) and kernel.graph().body.ops[-1].tile is None
    set_verify_golden_data(goldens=[None, None, A])
    with pytest.warns(pypto.KernelWarning, match="PT719"):
        kernel(A, A, OUT)
    assert enters(kernel)


def test_inside_another_kernel_it_is_inlined() -> None:
    inner = fresh()

    @pypto.jit
    def outer(a: T([D, D]), out: T([D, D])):
        inner(a, a, out)
        inner(out, a, out)

    out = np.zeros((3, 4), F)
    outer(A, out)
    assert (out == 3 * A).all() and [op.opcode for op in outer.graph().body.ops] == ["add", "add"]


def test_a_thread_that_reads_a_kernel_does_not_change_the_calls_of_another() -> None:
    kernel, reading, done = fresh(), threading.Event(), threading.Event()

    @pypto.jit
    def slow(a: T([D, D]), out: T([D, D])):
        reading.set()
        done.wait(10)
        kernel(a, a, out)

    out = np.zeros((3, 4), F)
    thread = threading.Thread(target=slow, args=(A, out))
    thread.start()
    assert reading.wait(10)
    assert steps(lambda: kernel(A, A, OUT)) == 1
    done.set()
    thread.join()
    assert (out == 2 * A).all()


def test_references_are_left_as_they_were() -> None:
    kernel = fresh()
    held = [kernel, A, OUT, type(kernel), kernel._entry]
    before = [sys.getrefcount(x) for x in held]
    single = sys.getrefcount(None), sys.getrefcount(True)
    for _ in range(10000):
        kernel(A, A, OUT)
    assert [sys.getrefcount(x) for x in held] == before
    assert all(abs(now - then) < 100 for now, then in zip((sys.getrefcount(None), sys.getrefcount(True)), single, strict=True))
    for _ in range(1000):
        kernel(A, b=A, out=OUT)
        kernel(OUT, A, OUT)  # in place: the long way
    del held[4]
    assert [sys.getrefcount(x) for x in held] == before[:4]


def test_a_million_calls_hold_no_memory() -> None:
    kernel = fresh()
    kernel(A, A, OUT)
    blocks = sys.getallocatedblocks()
    for _ in range(1_000_000):
        kernel(A, A, OUT)
    assert sys.getallocatedblocks() - blocks < 100


def test_a_kernel_that_nobody_holds_goes() -> None:
    gone = weakref.ref(fresh())
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_after_a_fork() -> None:
    kernel = fresh()
    child = os.fork()
    if child == 0:
        try:
            call(kernel)
            os._exit(0 if steps(lambda: kernel(A, A, OUT)) == 1 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_where_objects_lie_otherwise_calls_stay_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for unlike in ("supported", "_lies_as_read", "_slot_offset"):
        with monkeypatch.context() as patch:
            patch.setattr(fastcall if unlike == "supported" else entry, unlike, lambda *_: None)
            assert entry.entered(Kernel, "_entry", Kernel.__call__, ()) is None
    monkeypatch.setattr(driver, "_entered", lambda: Kernel)
    kernel = pypto.jit(added.function)
    for _ in range(4):
        call(kernel)
    assert type(kernel) is Kernel and steps(lambda: kernel(A, A, OUT)) == 2
