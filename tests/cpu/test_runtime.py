"""Threads, fork, floating-point state, the object cache, and arguments of every layout."""
from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from cpu_programs import KERNELS, Executable, arguments, assert_within, executable, graph, lower, run

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.cache import ObjectCache
from pypto_dsl.runtime.cpu.pool import Pool, pool_text

SHARE_ALL = {"serial_elements": 0, "chunk_elements": 64, "chunks_per_thread": 64}
BIG = {"M": 200, "N": 300}


def shared(name: str, pool: Pool) -> Executable:
    return Executable(lower(graph(name, KERNELS[name])), pool=pool, launch=SHARE_ALL)


# ---- threads ------------------------------------------------------------------------------------------------------------------


def test_many_python_threads_at_once() -> None:
    """Callers that find the pool busy work alone; everybody gets the right numbers."""
    program = shared("softmax", Pool(3))
    inputs = [arguments("softmax", BIG, seed)[0] for seed in range(6)]
    want = [run("softmax", a, {}, executable("softmax")).tobytes() for a in inputs]
    wrong: list[int] = []

    def work(i: int) -> None:
        wrong.extend(i for _ in range(40) if run("softmax", inputs[i], {}, program).tobytes() != want[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_launcher_outlives_its_program_and_pool() -> None:
    program = shared("add", Pool(2))
    arrays, _ = arguments("add", BIG)
    want, out = run("add", arrays, {}, program), np.zeros((200, 300), np.float32)
    launch = program.launch
    assert launch is not None
    given = [{**arrays, "out": out}[argument.name] for argument in program.arguments]
    del program
    gc.collect()
    taken = [(i, bytes(31), 10**9 + i) for i in range(10_000)]  # what was freed is used again
    assert launch(*given) and len(taken) == 10_000
    assert out.tobytes() == want.tobytes()


def test_workers_sleep_and_wake() -> None:
    pool = Pool(2)
    program = shared("add", pool)
    arrays, _ = arguments("add", BIG)
    for pause in (0, 0.02, 0, 0.02):
        time.sleep(pause)
        assert_within("add", run("add", arrays, {}, program), arrays, {})


def test_a_pool_can_be_stopped_and_used_again() -> None:
    pool = Pool(3)
    program = shared("add", pool)
    arrays, _ = arguments("add", BIG)
    for _ in range(3):
        assert_within("add", run("add", arrays, {}, program), arrays, {})
        pool.stop()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere every job runs serially")
def test_little_work_stays_on_the_calling_thread() -> None:
    """Workers start with the first job that is worth sharing: the thresholds are the target's."""
    pool = Pool(3)
    program = Executable(lower(graph("add", KERNELS["add"])), pool=pool)
    for extents, shared_out in (({"M": 8, "N": 8}, False), ({"M": 1200, "N": 1200}, True)):
        arrays, _ = arguments("add", extents)
        assert_within("add", run("add", arrays, {}, program), arrays, {})
        assert pool._started is shared_out
    pool.stop()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this platform has no affinity")
def test_a_pool_has_a_thread_per_processor_that_the_process_may_use() -> None:
    assert Pool().threads == len(os.sched_getaffinity(0))
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        alone = Pool()
        os._exit(0 if alone.threads == 1 and not alone.threaded else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_forked_child_computes() -> None:
    pool = Pool(3)
    program = shared("softmax", pool)
    arrays, _ = arguments("softmax", BIG)
    want = run("softmax", arrays, {}, program).tobytes()
    child = os.fork()
    if child == 0:
        os._exit(0 if all(run("softmax", arrays, {}, program).tobytes() == want for _ in range(20)) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert run("softmax", arrays, {}, program).tobytes() == want


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the threaded pool needs futexes")
def test_the_process_ends_cleanly_with_workers_running(tmp_path: Path) -> None:
    script = ("import numpy as np, cpu_programs as c, test_runtime as t; p = t.Pool(3); e = t.shared('add', p); "
              "a, _ = c.arguments('add', t.BIG); c.run('add', a, {}, e)")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_serial_fallback_runs() -> None:
    """Where there is no futex the same kernels run on the calling thread."""
    architecture = jit.machine().level.architecture
    library = jit.Library(jit.compile_object(pool_text(architecture, False), jit.machine()), ["pool_run"])
    pool = Pool(1)
    pool.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
                                ctypes.c_int64)(library.address("pool_run"))
    arrays, _ = arguments("add", BIG)
    assert_within("add", run("add", arrays, {}, shared("add", pool)), arrays, {})


@pytest.mark.skipif(jit.machine().level.architecture != "x86_64", reason="MXCSR belongs to x86")
def test_the_callers_floating_point_state_is_set_and_restored() -> None:
    """A caller that flushes subnormals still gets them from kernels, and keeps its own setting."""
    text = ("define i32 @get() {\n %p = alloca i32\n call void @llvm.x86.sse.stmxcsr(ptr %p)\n %v = load i32, ptr %p\n ret i32 %v\n}\n"
            "define void @set(i32 %v) {\n %p = alloca i32\n store i32 %v, ptr %p\n call void @llvm.x86.sse.ldmxcsr(ptr %p)\n ret void\n}\n"
            "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n")
    library = jit.Library(jit.compile_object(text, jit.machine()), ["get", "set"])
    get = ctypes.CFUNCTYPE(ctypes.c_uint32)(library.address("get"))
    put = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(library.address("set"))
    tiny = np.full((200, 300), 1e-40, np.float32)
    want = (tiny + tiny).tobytes()
    before = get()
    for pool in (Pool(1), Pool(3)):
        program = shared("add", pool)
        try:
            put(before | 0x8040 | 0x6000)  # flush to zero, denormals are zero, round toward zero
            mine = get()
            got = run("add", {"x": tiny, "y": tiny}, {}, program)
            after = get()
        finally:
            put(before)
        assert got.tobytes() == want and after == mine


# ---- the object cache -----------------------------------------------------------------------------------------------------------


def test_cache_entries_are_reused_and_damage_is_ignored(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        return b"object" * 100

    cache = ObjectCache(tmp_path)
    assert cache.get(("text", "version"), make) == cache.get(("text", "version"), make) == b"object" * 100
    assert len(made) == 1
    cache.get(("textv", "ersion"), make)
    assert len(made) == 2, "parts do not run into each other"
    (entry, _) = sorted(tmp_path.iterdir(), key=lambda p: p.stat().st_mtime)
    for damage in (b"", b"\0" * 50, entry.read_bytes()[:-1], entry.read_bytes() + b"x", b"pypto_dsl object 1\n"):
        entry.write_bytes(damage)
        assert cache.get(("text", "version"), make) == b"object" * 100
        assert len(entry.read_bytes()) > 600, "a damaged entry is written again"


def test_a_cache_that_cannot_be_written_still_compiles(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    assert ObjectCache(blocked / "inside").get(("x",), lambda: b"made") == b"made"
    assert ObjectCache(None).get(("x",), lambda: b"made") == b"made"


def test_cached_objects_compute(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    arrays, _ = arguments("softmax", {"M": 5, "N": 77})
    entries = []
    for _ in range(2):
        program = Executable(lower(graph("softmax", KERNELS["softmax"])), cache=cache)
        assert_within("softmax", run("softmax", arrays, {}, program), arrays, {})
        entries.append(sorted(tmp_path.iterdir()))
    assert entries[0] == entries[1]
    again = cache.path_of(program.parts)
    assert again in entries[0]


# ---- arguments --------------------------------------------------------------------------------------------------------------------


def strided(x: np.ndarray, how: str) -> np.ndarray:
    """``x``'s values under other strides, alignment or byte order."""
    if how == "transposed":
        return np.ascontiguousarray(x.T).T
    if how == "reversed":
        return np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]
    if how == "every other":
        wide = np.zeros((x.shape[0] * 2, x.shape[1] * 3), x.dtype)
        wide[::2, ::3] = x
        return wide[::2, ::3]
    if how == "misaligned":
        raw = np.zeros(x.nbytes + 1, np.uint8)
        view = raw[1:].view(x.dtype).reshape(x.shape)
        view[...] = x
        return view
    if how == "broadcast":
        return np.broadcast_to(x[:1], x.shape)
    read_only = x.copy()
    read_only.flags.writeable = False
    return read_only


@pytest.mark.parametrize("how", ["transposed", "reversed", "every other", "misaligned", "broadcast", "read only"])
def test_inputs_of_any_layout(how: str) -> None:
    arrays, _ = arguments("add", {"M": 37, "N": 41})
    arrays["x"] = strided(arrays["x"], how)
    assert_within("add", run("add", arrays, {}, executable("add")), arrays, {})


@pytest.mark.parametrize("how", ["transposed", "reversed", "every other", "misaligned"])
def test_outputs_of_any_layout(how: str) -> None:
    arrays, _ = arguments("softmax", {"M": 37, "N": 41})
    out = strided(np.full((37, 41), 77, np.float32), how)
    base = out.base if out.base is not None else out
    around = base.copy()
    assert_within("softmax", run("softmax", arrays, {}, executable("softmax"), out), arrays, {})
    if how == "every other":
        changed = np.zeros(around.shape, bool)
        changed[::2, ::3] = True
        assert (base[~changed] == around[~changed]).all(), "elements between are untouched"


def test_the_same_array_as_input_and_output() -> None:
    for name in ("add", "softmax", "transposed"):
        arrays, _ = arguments(name, {"M": 48, "N": 48})
        want = run(name, arrays, {}, executable(name)).tobytes()
        x = arrays["x"]
        assert run(name, arrays, {}, executable(name), x).tobytes() == want


def test_partly_overlapping_arrays() -> None:
    memory = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    x, y, out = memory[:1600].reshape(40, 40), memory[800:2400].reshape(40, 40), memory[400:2000].reshape(40, 40)
    want = x + y
    run("add", {"x": x, "y": y}, {}, executable("add"), out)
    assert out.tobytes() == want.tobytes()


def test_refused_arguments_write_nothing() -> None:
    arrays, _ = arguments("add", {"M": 4, "N": 6})
    good = np.full((4, 6), 77, np.float32)
    frozen = good.copy()
    frozen.flags.writeable = False
    cases = {
        "PT702": ({**arrays, "x": arrays["x"].astype(np.float64)}, good),
        "PT703": ({**arrays, "x": arrays["x"][0]}, good),
        "PT707": ({**arrays, "y": arrays["y"][:3]}, good),
        "PT706": (arrays, frozen),
        "PT709": (arrays, np.lib.stride_tricks.as_strided(good, (4, 6), (0, 4))),
    }
    for code, (given, out) in cases.items():
        with pytest.raises(KernelError) as refused:
            executable("add").run({**given, "out": out})
        assert refused.value.code == code
        assert (out == 77).all()
    fixed = executable("add", (("M", 4), ("N", 5)))
    with pytest.raises(KernelError) as refused:
        fixed.run({**arrays, "out": good})
    assert refused.value.code == "PT704"


def test_an_unknown_feature_level_is_refused() -> None:
    with pytest.raises(KernelError) as refused:
        jit.machine("avx1024")
    assert (refused.value.code == "PT524" and "baseline" in str(refused.value)) or jit.machine().level.architecture != "x86_64"
