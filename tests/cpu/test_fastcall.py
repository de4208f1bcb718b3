"""The launcher: the same bits as the long way, and False for everything that is not exactly what it takes, with nothing written."""
from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from cpu_programs import KERNELS, Array, Executable, arguments, executable, graph, lower, output

from pypto_dsl.runtime.cpu import fastcall
from pypto_dsl.runtime.cpu.pool import Pool

pytestmark = pytest.mark.skipif(not fastcall.supported(), reason="this interpreter's objects have another layout: calls take the long way")
EXTENTS = [{"M": 3, "N": 100, "K": 33}, {"M": 290, "N": 70, "K": 600}, {"M": 64, "N": 64, "K": 64}, {"M": 0, "N": 5, "K": 2}]


def launch(name: str, program: Executable, arrays: dict[str, Array], scalars: dict[str, float], out: Array) -> bool:
    assert program.launch is not None
    numbers = [scalars[s.name] for s in program.program.scalars if s.name in scalars]
    return program.launch(*({**arrays, "out": out}[a.name] for a in program.program.arguments), *numbers)


def long_way(name: str, arrays: dict[str, Array], scalars: dict[str, float], program: Executable) -> Array:
    """The output by checks in Python."""
    shape, dtype = output(name, arrays, program)
    out = np.full(shape, 77, dtype.numpy)
    program.check_and_run({**arrays, "out": out}, scalars)
    return out


@pytest.mark.parametrize("name", KERNELS)
def test_the_launcher_gives_the_bits_of_the_long_way(name: str) -> None:
    program = executable(name)
    for extents in EXTENTS:
        arrays, scalars = arguments(name, extents, 5)
        if name == "column_max" and not extents["M"]:  # there is no largest of nothing: PT710 in the long way
            assert not launch(name, program, arrays, scalars, np.full(extents["N"], 77, np.float32))
            continue
        want = long_way(name, arrays, scalars, program)
        out = np.full_like(want, 77)
        assert launch(name, program, arrays, scalars, out)
        assert out.tobytes() == want.tobytes(), extents


@pytest.mark.parametrize("threads", [1, 3])
def test_shared_work(threads: int) -> None:
    """A pool that has not started makes the launcher decline; the long way starts it."""
    pool = Pool(threads)
    for name in ("softmax", "add", "matmul"):
        program = Executable(lower(graph(name, KERNELS[name])), pool=pool, launch={"serial_elements": 0, "chunk_elements": 16})
        arrays, scalars = arguments(name, {"M": 130, "N": 700, "K": 40})
        out = np.full((130, 700), 77, np.float32)
        if threads > 1 and name == "softmax":
            assert not launch(name, program, arrays, scalars, out) and (out == 77).all()
        want = long_way(name, arrays, scalars, program)
        assert launch(name, program, arrays, scalars, out) and out.tobytes() == want.tobytes()


def test_what_it_declines_is_not_written() -> None:
    program = executable("add")
    arrays, _ = arguments("add", {"M": 8, "N": 6})
    x, y, out = arrays["x"], arrays["y"], np.full((8, 6), 77, np.float32)
    frozen = out.copy()
    frozen.flags.writeable = False
    memory = np.zeros(200, np.float32)
    raw = np.zeros(8 * 6 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(8, 6)
    declined = {
        "count": (x, y), "too many": (x, y, out, out), "a list": (x.tolist(), y, out), "None": (None, y, out),
        "dtype": (x.astype(np.float64), y, out), "byte order": (x.astype(">f4"), y, out), "rank": (x[0], y, out),
        "extent": (x[:7], y, out), "transposed": (np.asfortranarray(x), y, out),
        "strided": (np.repeat(x, 2, axis=1)[:, ::2], y, out), "read only": (x, y, frozen), "misaligned": (raw, y, out),
        "the same array": (out, y, out), "overlap": (memory[:48].reshape(8, 6), y, memory[40:88].reshape(8, 6)),
        "a subclass": (x.view(type("Sub", (np.ndarray,), {})), y, out),
    }
    assert program.launch is not None
    for why, given in declined.items():
        assert program.launch(*given) is False, why
    assert (out == 77).all() and (memory == 0).all() and (frozen == 77).all()
    assert program.launch(x, y, out) is True and (out == x + y).all()
    nothing = np.zeros((0, 6), np.float32)
    assert program.launch(nothing, nothing.copy(), nothing.copy()) is True


def test_numbers_are_taken_by_exact_type() -> None:
    program = executable("pow_scalar")
    arrays, _ = arguments("pow_scalar", {"M": 4, "N": 40})
    x, out = arrays["x"], np.empty((4, 40), np.float32)
    assert program.launch is not None
    assert program.launch(x, out, 2.0) is True and (out == x * x).all()
    for other in (2, "2", None, np.float64(2), True):
        assert program.launch(x, out, other) is False


def test_references_are_balanced() -> None:
    program = executable("add")
    arrays, _ = arguments("add", {"M": 4, "N": 4})
    out = np.empty((4, 4), np.float32)
    assert program.launch is not None
    before = sys.getrefcount(True), sys.getrefcount(False), sys.getrefcount(arrays["x"]), sys.getrefcount(out)
    for _ in range(1000):
        program.launch(arrays["x"], arrays["y"], out)
        program.launch(arrays["x"])
    after = sys.getrefcount(True), sys.getrefcount(False), sys.getrefcount(arrays["x"]), sys.getrefcount(out)
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True))


def test_python_threads_launch_at_once() -> None:
    program = Executable(lower(graph("softmax", KERNELS["softmax"])), pool=Pool(2), launch={"serial_elements": 4096, "chunk_elements": 64})
    inputs = [arguments("softmax", {"M": 100, "N": 300}, s)[0] for s in range(4)]
    want = [long_way("softmax", a, {}, program).tobytes() for a in inputs]
    wrong: list[int] = []

    def work(i: int) -> None:
        out = np.empty((100, 300), np.float32)
        for _ in range(60):
            if not launch("softmax", program, inputs[i], {}, out) or out.tobytes() != want[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
