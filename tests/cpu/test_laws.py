"""Law 1 and law 3 on the CPU: equal text for equal programs, and equal bits whatever the width, threads, chunks and extents' knowledge."""
from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from cpu_programs import KERNELS, Array, Executable, arguments, executable, graph, lower, run

from pypto_dsl.codegen.llvm import kernel as emitter
from pypto_dsl.codegen.llvm.features import feature_levels, tunings
from pypto_dsl.codegen.llvm.kernel import STREAMING
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.caches import last_level_bytes
from pypto_dsl.runtime.cpu.pool import Pool

LEVELS = [level.name for level in jit.host_levels()]
EXTENTS = [{"M": 3, "N": 100, "K": 33}, {"M": 290, "N": 70, "K": 600}, {"M": 5, "N": 9001, "K": 5}]
SHARE_ALL = {"serial_elements": 0, "chunk_elements": 1, "chunks_per_thread": 64}


@pytest.fixture(scope="module")
def pools() -> list[Pool]:
    return [Pool(1), Pool(2), Pool(5)]


@pytest.mark.parametrize("name", KERNELS)
def test_every_width_gives_the_same_bits(name: str) -> None:
    for extents in EXTENTS:
        arrays, scalars = arguments(name, extents, 2)
        first, *others = (run(name, arrays, scalars, executable(name, (), level)).tobytes() for level in LEVELS)
        assert all(other == first for other in others), extents


@pytest.mark.parametrize("name", KERNELS)
def test_threads_and_chunks_do_not_change_bits(name: str, pools: list[Pool]) -> None:
    program = lower(graph(name, KERNELS[name]))
    chunkings = [Executable(program, pool=p, launch=launch) for p in pools
                 for launch in ({}, SHARE_ALL, {**SHARE_ALL, "chunk_elements": 700})]
    for extents in EXTENTS[:2]:
        arrays, scalars = arguments(name, extents, 3)
        first, *others = (run(name, arrays, scalars, e).tobytes() for e in chunkings)
        assert all(other == first for other in others), extents


@pytest.mark.parametrize("name", KERNELS)
def test_what_suits_a_processor_does_not_change_bits(name: str) -> None:
    """Every tuning, of the data as larger than the caches and as smaller."""
    program = lower(graph(name, KERNELS[name]))
    tuned = [Executable(program, tuning=tuning, launch={STREAMING: limit}) for tuning in tunings() for limit in (0, 1 << 62)]
    for extents in EXTENTS:
        arrays, scalars = arguments(name, extents, 5)
        first, *others = (run(name, arrays, scalars, e).tobytes() for e in tuned)
        assert all(other == first for other in others), extents


def test_a_processor_is_tuned_by_its_name() -> None:
    level = feature_levels()["avx512"]
    assert level.tuning == tunings()["default"] == level.tuned("some processor of tomorrow").tuning
    zen4 = level.tuned("znver4")
    assert (zen4.tuning.streaming_bits, zen4.tuning.fetches_ahead) == (256, False)
    assert jit.machine().level.tuning == tunings().get(jit.machine().cpu, tunings()["default"])


def test_tuning_changes_the_code_of_what_moves_and_of_nothing_else() -> None:
    def texts(name: str) -> list[str]:
        kernels = [k for step in lower(graph(name, KERNELS[name])).steps for k in step]
        return [emitter.emit(kernels, feature_levels()["avx512"].tuned(tuning)) for tuning in ("default", "znver4")]

    wide, narrow = texts("add")
    assert "fadd <16 x float>" in wide
    assert "fadd <8 x float>" in narrow and "<16 x float>" not in narrow
    fetching, quiet = texts("row_sum")
    assert "llvm.prefetch" in fetching and "llvm.prefetch" not in quiet
    assert len({*texts("softmax")}) == len({*texts("gelu_f16")}) == 1


@pytest.mark.parametrize("name", KERNELS)
def test_rows_taken_together_do_not_change_bits(name: str) -> None:
    """Short rows whose length is known are taken several at a time: as many as there are, fewer, one more."""
    for extents in ({"M": 3, "N": 24, "K": 9}, {"M": 64, "N": 64, "K": 64}, {"M": 65, "N": 33, "K": 5}, {"M": 5, "N": 600, "K": 5}):
        arrays, scalars = arguments(name, extents, 6)
        rows, known, unknown = (executable(name, tuple((e, n) for e, n in extents.items() if e in fixed)) for fixed in ("NK", "MNK", ""))
        want = run(name, arrays, scalars, unknown).tobytes()
        assert run(name, arrays, scalars, rows).tobytes() == want, extents
        assert run(name, arrays, scalars, known).tobytes() == want, extents


@pytest.mark.parametrize("name", ["column_sum", "column_max"])
def test_few_columns_are_shared_among_threads(name: str, pools: list[Pool]) -> None:
    """An item has fewer columns where threads would have none, but not less than 512; bits are the same, by the launcher and without it."""
    program = lower(graph(name, KERNELS[name]))
    ((kernel,),) = program.steps
    call = emitter.signature(kernel)
    wanted = {0: (0, 0, 0), 1: (1, 1, 1), 512: (1, 1, 1), 1024: (1, 2, 2), 1300: (1, 2, 3), 4096: (2, 2, 4), 9001: (5, 5, 5)}
    for columns, items in wanted.items():
        assert tuple(call.items.evaluate({"M": 9, "N": columns, "workers": pool.threads}) for pool in pools) == items, columns
    for extents in ({"M": 300, "N": 1300}, {"M": 40, "N": 2049}):
        arrays, scalars = arguments(name, extents, 7)
        every = [Executable(lower(graph(name, KERNELS[name], known)), pool=p, launch=SHARE_ALL) for p in pools for known in ({}, extents)]
        first, *others = [run(name, arrays, scalars, e).tobytes() for e in every]
        out = np.empty(extents["N"], np.float32)
        for e in every:
            e.check_and_run({**arrays, "out": out}, scalars)
            others.append(out.tobytes())
        assert all(other == first for other in others), extents


def test_an_extent_may_be_called_as_the_number_of_threads_is(pools: list[Pool]) -> None:
    kernel = KERNELS["column_sum"]
    (parameter, dtype, _), = kernel.parameters
    named = lower(graph("named", replace(kernel, parameters=((parameter, dtype, ("M", "workers")),))))
    assert not any(s.workers for s in named.scalars)
    x = np.random.default_rng(8).normal(size=(30, 1300)).astype(np.float32)
    for pool in pools:
        out = np.empty(1300, np.float32)
        Executable(named, pool=pool, launch=SHARE_ALL).run({"x": x, "out": out}, {})
        assert out.tobytes() == run("column_sum", {"x": x}, {}, executable("column_sum")).tobytes()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", KERNELS)
def test_writing_past_the_caches_does_not_change_bits(name: str, level: str) -> None:
    """Everything and nothing is larger than the caches, with extents that are known and that are not."""
    extents = {"M": 5, "N": 9001, "K": 5}
    arrays, scalars = arguments(name, extents, 4)
    programs = [lower(graph(name, KERNELS[name], known)) for known in ({}, extents)]
    first, *others = (run(name, arrays, scalars, Executable(p, level=level, launch={STREAMING: limit})).tobytes()
                      for p in programs for limit in (0, 1 << 62))
    assert all(other == first for other in others)


@pytest.mark.skipif("avx512" not in LEVELS, reason="LLVM loses the stores of that level")
@pytest.mark.parametrize("name", [name for name in KERNELS if name.startswith(("softmax", "rms_norm"))])
def test_results_of_rows_go_past_the_caches(name: str) -> None:
    program = Executable(lower(graph(name, KERNELS[name])), level="avx512")
    assert "vmovnt" in jit.compile_assembly(program.text, program.machine)


def test_the_module_asks_how_much_is_written_past_the_caches() -> None:
    """The text is the same on every machine: a word holds what fits the usual cache until the loader stores what fits this one."""
    program = Executable(lower(graph("add", KERNELS["add"])))
    assert f"@{STREAMING} = weak global i64 {3 << 23}, align 8" in program.text
    arrays, scalars = arguments("add", {"M": 8, "N": 8})
    run("add", arrays, scalars, program)
    assert stored_word(program, STREAMING) == emitter.streaming_bytes(last_level_bytes())
    assert stored_word(Executable(program.program, launch={STREAMING: 12345}), STREAMING) == 12345


def stored_word(program: Executable, name: str) -> int:
    """What stands in a word of a loaded module."""
    return ctypes.c_int64.from_address(program._library.address(name)).value


def test_the_threshold_follows_the_last_cache() -> None:
    assert emitter.streaming_bytes(64 << 20) == 48 << 20
    assert emitter.streaming_bytes() == emitter.streaming_bytes(None) == 24 << 20
    assert emitter.streaming_bytes(256 << 10) == 1 << 20  # less is not believed


def test_the_last_cache_is_read_as_linux_tells_it(tmp_path: Path) -> None:
    """The highest level that holds data, of the first processor that this process may run on."""
    def cache(cpu: int, index: int, level: str, type: str, size: str) -> None:
        folder = tmp_path / f"cpu{cpu}" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, text in (("level", level), ("type", type), ("size", size)):
            (folder / name).write_text(text + "\n")

    first = min(os.sched_getaffinity(0))
    assert last_level_bytes.__wrapped__(tmp_path) is None
    cache(first, 0, "1", "Data", "32K")
    cache(first, 1, "9", "Instruction", "99M")
    cache(first, 2, "3", "Unified", "8M")
    cache(first + 1, 0, "3", "Unified", "1M")
    assert last_level_bytes.__wrapped__(tmp_path) == 8 << 20
    (tmp_path / f"cpu{first}" / "cache" / "index2" / "size").write_text("plenty\n")
    assert last_level_bytes.__wrapped__(tmp_path) == 32 << 10


# ---- the defined order of sums, written again in NumPy ---------------------------------------------------------------------


def pairwise(blocks: list[Array]) -> Array:
    """Equal-sized neighbours first, as a binary counter carries; the rest from the last to the first."""
    stack: list[tuple[int, Array]] = []
    for block in blocks:
        size = 1
        while stack and stack[-1][0] == size:
            block = stack.pop()[1] + block
            size *= 2
        stack.append((size, block))
    total = stack.pop()[1]
    while stack:
        total = stack.pop()[1] + total
    return total


def row_sum(x: Array) -> Array:
    """Along the last axis: element i to partial i mod 64 in blocks of 4096, partials by a halving tree, blocks pairwise."""
    blocks = []
    for start in range(0, x.shape[1], 4096):
        partials = np.zeros((x.shape[0], 64), x.dtype)
        for at in range(start, min(start + 4096, x.shape[1]), 64):
            part = x[:, at:min(at + 64, start + 4096)]
            partials[:, :part.shape[1]] += part
        while partials.shape[1] > 1:
            half = partials.shape[1] // 2
            partials = partials[:, :half] + partials[:, half:]
        blocks.append(partials[:, 0])
    return pairwise(blocks)


def column_sum(x: Array) -> Array:
    """Along the first axis: blocks of 256 rows in order, blocks pairwise."""
    blocks = []
    for start in range(0, x.shape[0], 256):
        total = np.zeros(x.shape[1], x.dtype)
        for row in x[start:start + 256]:
            total = total + row
        blocks.append(total)
    return pairwise(blocks)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 100, 4095, 4096, 4097, 8192, 12289, 40000])
def test_row_sums_follow_the_defined_order(n: int) -> None:
    x = np.random.default_rng(n).normal(size=(3, n)).astype(np.float32)
    want = row_sum(x).tobytes()
    for level in LEVELS:
        assert run("row_sum", {"x": x}, {}, executable("row_sum", (), level)).tobytes() == want
    assert run("row_sum", {"x": x}, {}, executable("row_sum", (("M", 3), ("N", n)))).tobytes() == want


@pytest.mark.parametrize("m", [1, 2, 255, 256, 257, 512, 1000, 2049])
def test_column_sums_follow_the_defined_order(m: int) -> None:
    x = np.random.default_rng(m).normal(size=(m, 37)).astype(np.float32)
    want = column_sum(x).tobytes()
    for level in LEVELS:
        assert run("column_sum", {"x": x}, {}, executable("column_sum", (), level)).tobytes() == want
    assert run("column_sum", {"x": x}, {}, executable("column_sum", (("M", m), ("N", 37)))).tobytes() == want


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["add", "swiglu", "tril"])
def test_outputs_written_past_the_caches_are_the_same(name: str, level: str) -> None:
    """Arrays larger than the caches, at every alignment of the output, against the same rows computed in the caches."""
    arrays, scalars = arguments(name, {"M": 2100, "N": 3001})
    want = np.concatenate([run(name, {k: v[r:r + 700] for k, v in arrays.items()}, scalars, executable(name, (), level))
                           for r in range(0, 2100, 700)]) if name != "tril" else np.tril(arrays["x"])
    memory = np.empty(want.size + 64, want.dtype)
    for shift in (0, 1, 7):
        out = memory[shift:shift + want.size].reshape(want.shape)
        assert run(name, arrays, scalars, executable(name, (), level), out).tobytes() == want.tobytes()


# ---- text --------------------------------------------------------------------------------------------------------------------


def emitted() -> str:
    """Every kernel at every level, of this architecture or not."""
    programs = [lower(graph(name, kernel)) for name, kernel in KERNELS.items()]
    return "".join(emitter.emit([k for step in p.steps for k in step], level) for p in programs for level in feature_levels().values())


def test_the_same_program_gives_the_same_text_in_every_process() -> None:
    script = "import hashlib, test_laws; print(hashlib.sha256(test_laws.emitted().encode()).hexdigest())"
    found = set()
    for seed in ("1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.path.dirname(__file__)}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
        found.add(done.stdout.strip())
    assert len(found) == 1


def test_no_operation_may_be_contracted_or_reassociated() -> None:
    """No fast-math flag anywhere, and fused multiply-add only by name."""
    text = emitted()
    for flag in (" fast ", " reassoc ", " contract ", " nnan ", " ninf ", " nsz ", " arcp ", " afn ", "llvm.fmuladd", "unsafe-fp-math"):
        assert flag not in text, flag


def test_neon_code_is_accepted_by_llvm() -> None:
    """The arm64 level compiles to assembly on any host whose LLVM has the back end."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(cpu="generic", opt=2)
    for name, kernel in KERNELS.items():
        program = lower(graph(name, kernel))
        text = emitter.emit([k for step in program.steps for k in step], feature_levels()["neon"])
        assert f"{program.steps[0][0].name}:" in target.emit_assembly(llvm.parse_assembly(text))
