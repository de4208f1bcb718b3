"""Running mutants: many to a unit, each in a process of its own, against the results of the unchanged kernels."""
from __future__ import annotations

import hashlib
import multiprocessing
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.runtime.emulator.ascendc.kernel_library import FLAGS, EmulatorTrap, KernelLibrary, build_library
from pypto_dsl.runtime.emulator.ascendc.runner import execute
from tests.ascendc.kernels import KERNELS, Array, arguments, distance, emitted, expected
from tests.ascendc.mutants import Mutant, mutants

QUIET = (*(flag for flag in FLAGS if flag != "-Werror"), "-w")
BATCH, SECONDS = 32, 20
# Extents large enough that every queue goes round twice on one core, and small ragged ones.
FLAT = [({"M": 1, "N": 1}, 1), ({"M": 3, "N": 11}, 2), ({"M": 5, "N": 2001}, 1)]
ROWS = [({"M": 1, "N": 1}, 1), ({"M": 3, "N": 31}, 2), ({"M": 35, "N": 257}, 1), ({"M": 16, "N": 512}, 1), ({"M": 21, "N": 1100}, 1)]
PLANE = [({"M": 1, "N": 1}, 1), ({"M": 7, "N": 33}, 2), ({"M": 35, "N": 1024}, 1), ({"M": 2100, "N": 3}, 1)]
MATMUL = [({"M": 1, "N": 1, "K": 1}, 1), ({"M": 7, "N": 31, "K": 33}, 2), ({"M": 130, "N": 150, "K": 100}, 1)]
CHOSEN = {
    "softmax": ROWS, "softmax_static": [({}, 1)], "layer_norm": [({"M": 1}, 1), ({"M": 35}, 1)], "layer_norm_any": ROWS, "row_min": ROWS,
    "row_col": PLANE, "column_sum": PLANE, "column_max": PLANE, "tril": PLANE, "triu_i32": PLANE, "compare_i32": PLANE, "mask_rows": PLANE,
    "bias_gelu": MATMUL, "product": MATMUL, "product_transposed": MATMUL, "attention": [*MATMUL, ({"M": 8, "N": 700, "K": 20}, 1)],
}


@dataclass(frozen=True)
class Verdict:
    """`compile`, `trap`, `wrong` (beyond the allowed error), `differs` (other bits, within it), or `same`."""

    program: str
    mutant: Mutant
    outcome: str
    detail: str = ""

    @property
    def caught(self) -> bool:
        return self.outcome not in ("same", "differs")


@cache
def cases(name: str) -> list[tuple[dict[str, Array], int, Array]]:
    """Inputs, cores and the expected result of every run; computed once, and inherited by the processes that run mutants."""
    kernel = KERNELS[name]
    inputs = [(arguments(kernel, extents), cores) for extents, cores in CHOSEN.get(name, FLAT)]
    return [(arrays, cores, expected(kernel, arrays)) for arrays, cores in inputs]


def source_of(name: str) -> str:
    return emitted(name).files[f"{name}.cpp"]


def every_mutant(name: str) -> list[Mutant]:
    return list(mutants(source_of(name)))


def judge(name: str, chosen: Sequence[Mutant]) -> Iterator[Verdict]:
    """The verdict on each mutant of a program, in order."""
    cases(name)
    base = _outcome(name, _library(name, []), {}, None)
    assert base[0] == "outputs", f"the unchanged {name} does not run: {base}"
    for start in range(0, len(chosen), BATCH):
        yield from _judge_batch(name, list(chosen[start:start + BATCH]), base[1])


def _judge_batch(name: str, batch: list[Mutant], base: Any) -> Iterator[Verdict]:
    try:
        library = _library(name, batch)
    except KernelError as refused:
        if len(batch) == 1:
            yield Verdict(name, batch[0], "compile", str(refused).splitlines()[1])
            return
        half = len(batch) // 2
        yield from _judge_batch(name, batch[:half], base)
        yield from _judge_batch(name, batch[half:], base)
        return
    for i, mutant in enumerate(batch):
        entry, _ = function_at(mutant.text, mutant.line)
        outcome, detail = _outcome(name, library, {entry: f"{entry}_m{i}"}, base)
        yield Verdict(name, mutant, outcome, str(detail))


def entries(name: str) -> list[str]:
    return [kernel["entry"] for variants in emitted(name).manifest["steps"] for kernel in variants]


def function_at(text: str, line: int) -> tuple[str, str]:
    """The kernel that stands around a line: its entry and its text."""
    lines = text.split("\n")
    first = max(i for i in range(line) if lines[i].startswith('extern "C"'))
    last = next(i for i in range(first, len(lines)) if lines[i] == "}")
    found = re.search(r"void (\w+)\(", lines[first])
    assert found
    return found[1], "\n".join(lines[first:last + 1])


def _library(name: str, batch: Sequence[Mutant]) -> KernelLibrary:
    """The program as it is, and of each mutant the one kernel that it changes: entry `f` of mutant i is `f_m<i>`."""
    files = {f"{name}.cpp": source_of(name)}
    every = entries(name)
    for i, mutant in enumerate(batch):
        entry, text = function_at(mutant.text, mutant.line)
        renamed = text.replace(f"void {entry}(", f"void {entry}_m{i}(", 1)
        files[f"{name}_{i:02}.cpp"] = f'#include "kernel_operator.h"\nusing namespace AscendC;\n{renamed}\n'
        every.append(f"{entry}_m{i}")
    return build_library(f"mutants_{name}", files, every, arch=emitted(name).manifest["architecture"], optimize=0, flags=QUIET)


def _manifest(name: str, renamed: Mapping[str, str]) -> dict[str, Any]:
    data = dict(emitted(name).manifest)
    data["steps"] = [[{**k, "entry": renamed.get(k["entry"], k["entry"])} for k in variants] for variants in data["steps"]]
    return data


def _outcome(name: str, library: KernelLibrary, renamed: Mapping[str, str], base: Any) -> tuple[str, Any]:
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def work() -> None:
        queue.put(_run(name, library, renamed, base))

    process = context.Process(target=work)
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.terminate()
        return "trap", "did not end"
    return queue.get() if not queue.empty() else ("trap", f"died with {process.exitcode}")


def _run(name: str, library: KernelLibrary, renamed: Mapping[str, str], base: Any) -> tuple[str, Any]:
    kernel, manifest = KERNELS[name], _manifest(name, renamed)
    digests = []
    wrong = ""
    try:
        for arrays, cores, want in cases(name):
            outputs, _ = execute(library, manifest, arrays, kernel.scalars or {}, cores)
            off = distance(kernel, outputs["out"], want)
            if not off <= kernel.allowed:
                wrong = wrong or f"{[a.shape for a in arrays.values()]}: error {off:.1e}"
            digests.append(hashlib.sha256(outputs["out"].tobytes()).hexdigest())
    except EmulatorTrap as caught:
        return "trap", caught.trap
    if wrong:
        return "wrong", wrong
    if base is None:
        return "outputs", digests
    return ("same" if digests == base else "differs"), ""
