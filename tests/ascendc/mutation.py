"""Running mutants: many to a unit, each in a process of its own, against the results of the unchanged kernels."""
from __future__ import annotations

import hashlib
import multiprocessing
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.runtime.emulator.ascendc.library import FLAGS, EmulatorTrap, KernelLibrary, build_library
from pypto_dsl.runtime.emulator.ascendc.runner import execute
from tests.ascendc.kernels import KERNELS, Array, Kernel, arguments, distance, emitted, expected
from tests.ascendc.mutants import Mutant, mutants

QUIET = (*(flag for flag in FLAGS if flag != "-Werror"), "-w")
BATCH, SECONDS = 24, 20
# Extents large enough that every queue goes round twice on one core, and small ragged ones.
FLAT = [({"M": 1, "N": 1}, 1), ({"M": 3, "N": 11}, 2), ({"M": 5, "N": 2001}, 1)]
ROWS = [({"M": 1, "N": 1}, 1), ({"M": 3, "N": 31}, 2), ({"M": 35, "N": 257}, 1), ({"M": 16, "N": 512}, 1), ({"M": 21, "N": 1100}, 1)]
PLANE = [({"M": 1, "N": 1}, 1), ({"M": 7, "N": 33}, 2), ({"M": 35, "N": 600}, 1)]
MATMUL = [({"M": 1, "N": 1, "K": 1}, 1), ({"M": 7, "N": 31, "K": 33}, 2), ({"M": 130, "N": 40, "K": 100}, 1)]
CHOSEN = {
    "softmax": ROWS, "softmax_static": [({}, 1)], "layer_norm": [({"M": 1}, 1), ({"M": 35}, 1)], "layer_norm_any": ROWS, "row_min": ROWS,
    "row_col": PLANE, "column_sum": PLANE, "column_max": PLANE, "tril": PLANE, "triu_i32": PLANE, "compare_i32": PLANE, "mask_rows": PLANE,
    "bias_gelu": MATMUL, "product": MATMUL, "product_transposed": MATMUL, "attention": MATMUL,
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
    kernel = KERNELS[name]
    cases(name)
    base = _outcome(kernel, _library(name, [source_of(name)]), 0, None)
    assert base[0] == "outputs", f"the unchanged {name} does not run: {base}"
    for start in range(0, len(chosen), BATCH):
        batch = list(chosen[start:start + BATCH])
        yield from _judge_batch(kernel, batch, base[1])


def _judge_batch(kernel: Kernel, batch: list[Mutant], base: Any) -> Iterator[Verdict]:
    try:
        library = _library(kernel.name, [m.text for m in batch])
    except KernelError as refused:
        if len(batch) == 1:
            yield Verdict(kernel.name, batch[0], "compile", str(refused).splitlines()[1])
            return
        half = len(batch) // 2
        yield from _judge_batch(kernel, batch[:half], base)
        yield from _judge_batch(kernel, batch[half:], base)
        return
    for i, mutant in enumerate(batch):
        outcome, detail = _outcome(kernel, library, i, base)
        yield Verdict(kernel.name, mutant, outcome, str(detail))


def entries(name: str) -> list[str]:
    return [kernel["entry"] for variants in emitted(name).manifest["steps"] for kernel in variants]


def _library(name: str, texts: Sequence[str]) -> KernelLibrary:
    """All texts as files of one unit; entry `f` of text i is `f_m<i>`."""
    names = entries(name)
    files = {}
    for i, text in enumerate(texts):
        for entry in names:
            text = re.sub(rf"\b{entry}\(", f"{entry}_m{i}(", text)
        files[f"{name}_{i:02}.cpp"] = text
    every = [f"{entry}_m{i}" for i in range(len(texts)) for entry in names]
    return build_library(f"mutants_{name}", files, every, arch=emitted(name).manifest["architecture"], optimize=0, flags=QUIET)


def _manifest(name: str, i: int) -> dict[str, Any]:
    data = dict(emitted(name).manifest)
    data["steps"] = [[{**kernel, "entry": f"{kernel['entry']}_m{i}"} for kernel in variants] for variants in data["steps"]]
    return data


def _outcome(kernel: Kernel, library: KernelLibrary, i: int, base: Any) -> tuple[str, Any]:
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def work() -> None:
        queue.put(_run(kernel, library, i, base))

    process = context.Process(target=work)
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.terminate()
        return "trap", "did not end"
    return queue.get() if not queue.empty() else ("trap", f"died with {process.exitcode}")


def _run(kernel: Kernel, library: KernelLibrary, i: int, base: Any) -> tuple[str, Any]:
    digests = []
    wrong = ""
    try:
        for arrays, cores, want in cases(kernel.name):
            outputs, _ = execute(library, _manifest(kernel.name, i), arrays, kernel.scalars or {}, cores)
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
