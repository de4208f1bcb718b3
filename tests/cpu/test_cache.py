"""The object cache between processes and against damage, its size limit, and compiled graphs that are loaded without running a pass."""
from __future__ import annotations

import logging
import multiprocessing
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.codegen.llvm.features import tunings
from pypto_dsl.compiler import pipeline, targets
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.driver import Kernel
from pypto_dsl.frontend.targets import extents_of
from pypto_dsl.runtime.cpu import jit, shared, stored
from pypto_dsl.runtime.cpu.cache import DEFAULT_LIMIT, ObjectCache, size_limit

D = pypto.DYNAMIC
ROWS = pypto.Tensor([D, 32], pypto.DT_FP32)
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


def softmax(x: ROWS, out: ROWS):
    e = pypto.exp(x - pypto.amax(x, -1, True))
    out[:] = e / pypto.sum(e, -1, True)


def add(x: ROWS, out: ROWS):
    out[:] = x + 1.0


def gelu(x: ROWS, out: ROWS):
    out[:] = pypto.gelu(x)


def norm(x: ROWS, out: ROWS):
    out[:] = x / pypto.sqrt(pypto.mean(x * x, -1, True) + 1e-6)


def column(x: ROWS, out: ROWS):
    out[:] = x - pypto.amax(x, 0, True)


def power(x: ROWS, out: ROWS):
    out[:] = pypto.pow(pypto.abs(x) + 1.0, 1.5)


def ladder(x: ROWS, out: ROWS):
    out[:] = pypto.relu(x * 2.0) - pypto.tanh(x)


def bounded(x: ROWS, out: ROWS):
    out[:] = pypto.clip(x, -1.0, 1.0)


FUNCTIONS = (softmax, add, gelu, norm, column, power, ladder, bounded)
X = np.linspace(-3, 3, 6 * 32, dtype=np.float32).reshape(6, 32)


def fresh(function: Any) -> Kernel:
    """A kernel that knows nothing yet."""
    kernel: Kernel = pypto.jit(function)
    return kernel


def result(kernel: Kernel) -> bytes:
    out = np.zeros_like(X)
    kernel(X, out)
    return out.tobytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a compiler whose sources nobody changes meanwhile."""
    monkeypatch.setenv("PTC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(stored, "compiler_version", lambda: "tested")
    return tmp_path / "objects"


# ---- one folder, many processes -------------------------------------------------------------------------------------------------


def _work(number: int, functions: tuple[Any, ...], want: dict[str, bytes], folder: Path) -> None:
    """A process: every kernel compiled or loaded, in an order of its own; the first one damages entries on its way."""
    order = list(functions)
    random.Random(number).shuffle(order)
    for function in order:
        if number == 0:
            for entry in sorted(folder.glob("*"))[::3]:
                try:
                    entry.write_bytes(entry.read_bytes()[:-7])
                except FileNotFoundError:
                    continue
        if result(fresh(function)) != want[function.__name__]:
            os._exit(3)


def _rounds(processes: int, functions: tuple[Any, ...], rounds: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = multiprocessing.get_context("fork")
    want = {f.__name__: result(fresh(f)) for f in functions}
    for turn in range(rounds):
        monkeypatch.setenv("PTC_CACHE_SIZE", "40k" if turn % 2 else "1G")
        for entry in list(folder.glob("*"))[::2] if turn % 4 else folder.glob("*"):
            entry.unlink(missing_ok=True)
        started = [context.Process(target=_work, args=(i, functions, want, folder)) for i in range(processes)]
        for process in started:
            process.start()
        for process in started:
            process.join()
        assert [p.exitcode for p in started] == [0] * processes, turn
        assert not list(folder.glob("*.part"))


@forks
def test_processes_share_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _rounds(4, FUNCTIONS[:3], 2, folder, monkeypatch)


@forks
@pytest.mark.exhaustive
def test_16_processes_and_8_kernels_share_a_folder_for_20_rounds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _rounds(16, FUNCTIONS, 20, folder, monkeypatch)


# ---- what goes wrong with disks -------------------------------------------------------------------------------------------------


def _in_child(work: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that every user may read."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)
        os.chmod(name, 0o755)


@forks
def test_a_folder_that_may_only_be_read_gives_what_it_has(readable: Path) -> None:
    cache = ObjectCache(readable)
    assert cache.get(("there",), lambda: b"first") == b"first"
    os.chmod(readable, 0o555)

    def reading() -> bool:
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        there = cache.get(("there",), lambda: b"second") == b"first"
        return there and cache.get(("not there",), lambda: b"made") == b"made" and len(list(readable.iterdir())) == 1

    assert _in_child(reading)


@forks
def test_a_full_disk_keeps_nothing_and_leaves_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = ObjectCache(tmp_path / "objects")

    def filling() -> bool:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        with caplog.at_level(logging.DEBUG, "pypto_dsl.cache"):
            made = cache.get(("large",), lambda: b"x" * 5000)
        return made == b"x" * 5000 and "was not written" in caplog.text and not list((tmp_path / "objects").iterdir())

    assert _in_child(filling)


@pytest.mark.parametrize("damage", [b"", b"\0" * 300, b"\x7fELF a foreign object", b"pypto_dsl object 1\n", None])
def test_damaged_entries_are_compiled_again(folder: Path, damage: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    want = result(fresh(softmax))
    entries = list(folder.iterdir())
    assert {e.suffix for e in entries} == {".graph", ".o"}
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:-1] if damage is None else damage)
    with caplog.at_level(logging.DEBUG, "pypto_dsl.cache"):
        assert result(fresh(softmax)) == want
    assert "is damaged; it is ignored" in caplog.text
    assert result(fresh(softmax)) == want and len(list(folder.iterdir())) == len(entries)


# ---- the size limit -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "limit"), [("", DEFAULT_LIMIT), ("4096", 4096), ("64k", 65536), ("500M", 500 << 20), ("2GiB", 2 << 30),
                                             ("1gb", 1 << 30), ("0", None), ("much", DEFAULT_LIMIT), ("-1", DEFAULT_LIMIT)])
def test_sizes(said: str, limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTC_CACHE_SIZE", said)
    assert size_limit() == limit


def test_what_was_used_longest_ago_goes(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, limit=10_000)
    paths = []
    for i in range(9):
        path = cache.path_of((str(i),))
        assert path is not None
        paths.append(path)
        cache.write(path, bytes(1000))
        os.utime(path, (1000 + i, 1000 + i))
    assert cache.trim() == 0
    assert cache.read(paths[0]) is not None, "an entry that is read counts as used"
    cache.write(tmp_path / "late.o", bytes(2000))
    cache.trim()
    assert [p.exists() for p in paths] == [True, *[False] * 3, *[True] * 5]


def test_a_process_looks_with_its_first_write(tmp_path: Path) -> None:
    for i in range(5):
        ObjectCache(tmp_path, limit=3000).get((str(i),), lambda: bytes(1000))
    assert 1 <= len(list(tmp_path.iterdir())) <= 2


def test_what_dead_processes_left_goes(tmp_path: Path) -> None:
    for name, age in (("old.part", 7200), ("young.part", 10)):
        (tmp_path / name).write_bytes(bytes(10))
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    assert ObjectCache(tmp_path).trim() == 10
    assert [p.name for p in tmp_path.iterdir()] == ["young.part"]


# ---- graphs that are there already ----------------------------------------------------------------------------------------------


def _no_pass(*_: object) -> Any:
    raise AssertionError("a pass runs")


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f is not column], ids=lambda f: f.__name__)  # it has a workspace
def test_a_kept_graph_is_loaded_without_running_a_pass(folder: Path, function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    want = result(fresh(function))
    monkeypatch.setattr(pipeline, "lower", _no_pass)
    monkeypatch.setattr(jit, "compile_object", _no_pass)
    assert result(fresh(function)) == want


def test_calls_that_the_launcher_does_not_take_lower_again(folder: Path) -> None:
    wide = np.repeat(X, 2, axis=1)
    result(fresh(softmax))
    kernel, out = fresh(softmax), np.zeros_like(X)
    kernel(wide[:, ::2], out)
    assert out.tobytes() == result(fresh(softmax))


@pytest.mark.parametrize("content", [
    b"no JSON", b"{}", b'{"object": "gone.o", "exports": [], "arguments": [], "tensors": null, "numbers": [], "shared": []}'])
def test_records_that_say_nothing_are_made_again(folder: Path, content: bytes) -> None:
    want = result(fresh(add))
    (record,) = folder.glob("*.graph")
    ObjectCache(folder).write(record, content)
    assert result(fresh(add)) == want
    (record,) = folder.glob("*.graph")
    assert content not in record.read_bytes()


@pytest.mark.parametrize("loaded", [True, False])
def test_shared_functions_are_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch, loaded: bool) -> None:
    """The checks of arrays and the run are no part of a kernel's own text, and a process that has them compiles them no more."""
    want = result(fresh(add))
    before = set(folder.iterdir())
    if not loaded:
        monkeypatch.setattr(shared, "_loaded", {})  # as another process
    compiled: list[str] = []
    compile_object = jit.compile_object

    def counting(text: str, machine: jit.Machine) -> bytes:
        compiled.append(text)
        return compile_object(text, machine)

    monkeypatch.setattr(jit, "compile_object", counting)
    result(fresh(bounded))
    assert len(compiled) == 1 and "declare i1 @launch_arrays(" in compiled[0] and "define i1 @launch_arrays(" not in compiled[0]
    assert len(set(folder.iterdir()) - before) == 2, "the object and its record"
    assert result(fresh(add)) == want


def test_a_record_whose_shared_function_is_gone_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    want = result(fresh(softmax))
    (kept,) = folder.glob("*.graph")
    before = set(folder.iterdir())
    functions = stored.read((ObjectCache(folder).read(kept) or b"").decode()).shared
    assert {name for name, _ in functions} >= {"launch_arrays", "launch_kernels"}
    (folder / functions[0][1]).unlink()
    monkeypatch.setattr(shared, "_loaded", {})  # as another process
    assert result(fresh(softmax)) == want
    assert set(folder.iterdir()) == before


def _key(graph: Graph, target: str = "llvm-cpu", level: str | None = None, tuning: str | None = None) -> tuple[str, ...]:
    found = stored.key(graph, targets.load(target), jit.machine(level, tuning), extents_of(graph))
    assert found is not None
    return found


def test_a_key_holds_what_the_code_depends_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = _key(fresh(softmax).specialise(X, X).graph)
    assert _key(fresh(softmax).specialise(X[:3], X[:3]).graph) == base, "DYNAMIC extents make no other key"
    keys = [base, _key(fresh(add).specialise(X, X).graph), _key(pypto.jit(precision="fast")(softmax).specialise(X, X).graph)]
    keys += [_key(fresh(softmax).specialise(X, X).graph, level=entry.name) for entry in jit.host_levels()[1:]]
    others = tunings().keys() - {jit.machine().level.tuning.name}
    keys += [_key(fresh(softmax).specialise(X, X).graph, tuning=name) for name in others]
    half = X.astype(np.float16)

    @pypto.jit
    def any_dtype(x, out):
        out[:] = x + 1.0

    keys += [_key(any_dtype.specialise(x, x).graph) for x in (X, half, X[:, :5])]
    monkeypatch.setattr(stored, "compiler_version", lambda: "another")
    keys.append(_key(fresh(softmax).specialise(X, X).graph))
    assert len(set(keys)) == len(keys)


def test_a_kernel_that_moves_in_its_file_keeps_its_key(folder: Path, tmp_path: Path) -> None:
    text = "import pypto_dsl as pypto\n{}\n@pypto.jit\ndef k(x: pypto.Tensor([4]), out: pypto.Tensor([4])):\n    out[:] = x + 1.0\n"
    keys = []
    for i, gap in enumerate(("", "\n\n# moved\n")):
        file = tmp_path / f"moved_{i}.py"
        file.write_text(text.format(gap))
        names: dict[str, Any] = {"__name__": f"moved_{i}"}
        exec(compile(file.read_text(), str(file), "exec"), names)
        keys.append(_key(names["k"].specialise(X[0, :4], X[1, :4]).graph))
    assert keys[0] == keys[1]


def test_sources_that_change_under_a_process_vouch_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTC_CACHE_DIR", str(tmp_path))
    stored.compiler_version.cache_clear()
    monkeypatch.setattr(stored, "_LOADED", 0.0)
    try:
        assert stored.compiler_version() is None
        result(fresh(add))
        assert {e.suffix for e in (tmp_path / "objects").iterdir()} == {".o"}
    finally:
        stored.compiler_version.cache_clear()


# ---- where the time goes --------------------------------------------------------------------------------------------------------


def test_a_profile_names_the_stages_of_a_compilation(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result(fresh(add))
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("PTC_PROFILE", "1")
    kernel = fresh(softmax)
    result(kernel)
    said = capsys.readouterr().err
    assert said.startswith("ptc profile: softmax for llvm-cpu: ")
    stages = [line.split()[0] for line in said.splitlines()[1:]]
    assert stages[0] == "capture" and {*pipeline.STAGES, "emit", "machine", "link", "cache"} <= set(stages)
    times = [float(line.split()[-2]) for line in said.splitlines()]
    assert abs(times[0] - sum(times[1:])) < 0.02 * len(times), "the rows add up"
    result(kernel)
    assert capsys.readouterr().err == "", "a call that compiles nothing says nothing"
    result(fresh(softmax))
    assert "fuse" not in capsys.readouterr().err, "what is loaded runs no pass"


