"""Generated kernels through everything: read, all passes, the text of all targets, the CPU against the interpreter.

A short run stands in the suite; `python -m pytest tests/fuzz -m exhaustive` runs for as long as $PTC_FUZZ_SECONDS says (default 1200).
"""

from __future__ import annotations

import itertools
import linecache
import os
import random
import time
import traceback
import warnings
from pathlib import Path
from types import CodeType
from typing import Any

import grammar
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pypto_dsl as pypto
from pypto_dsl import check
from pypto_dsl.compiler import targets as registry
from pypto_dsl.frontend.arguments import check_extents, symbol_values
from pypto_dsl.frontend.control import FOR_THE_USER
from pypto_dsl.runtime import interpreter

PACKAGE = str(Path(pypto.__file__).parent)
QUICK = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
TARGETS = ("llvm-cpu", "ascend-a2", "tt-wormhole")
EMULATORS = {"ascend-a2-emu": "ascend-a2", "tt-wormhole-emu": "tt-wormhole"}
NUMBER = itertools.count()


def loaded(text: str) -> Any:
    """The kernel of a program whose text can be quoted, as that of a notebook's cell."""
    name = f"<program {next(NUMBER)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    code: CodeType = compile(text, name, "exec", dont_inherit=True)
    module: dict[str, Any] = {"__name__": "program"}
    exec(code, module)
    return module["kernel"]


def is_the_programs(failure: Exception) -> bool:
    """Whether an exception was raised by the program's own Python (a division by zero, a missing file), not by a frame of ours.

    Frames of ours that evaluate a kernel's expression as it stands are the program's, as `ptc` sees it.
    """
    frames = [f.f_code for f, _ in traceback.walk_tb(failure.__traceback__)]
    told = [c for c in frames if c not in FOR_THE_USER]
    return any(c.co_filename.startswith("<program") for c in told) and not told[-1].co_filename.startswith(PACKAGE)


def copies(arguments: dict[str, Any]) -> dict[str, Any]:
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in arguments.items()}


def bits(value: Any) -> Any:
    return value.tobytes() if isinstance(value, np.ndarray) and value.dtype.kind != "O" else None


def tolerated(refused: pypto.KernelError) -> None:
    """A refusal is a record with a code and words; one of the kernel's text carries a caret in it."""
    found = refused.diagnostic
    assert found.message and found.code[:2] == "PT" and "  " not in found.message.strip(), found
    if found.code[:3] in ("PT1", "PT2", "PT3", "PT4"):
        assert found.primary is not None and found.primary.span.file.startswith("<program"), found.render()
    assert found.help or found.notes or found.fix, f"nothing says what to write instead:\n{found.render()}"


def run(program: grammar.Program, emulated: bool = False) -> str:
    """One program through everything; gives how far it came. Asserts what must hold of programs that are right and wrong alike.

    ``emulated`` builds and runs what is computed on the device emulators too, where they have it: a second or more for each.
    """
    try:
        kernel = loaded(program.text)
    except SyntaxError:
        return "no Python"
    except pypto.KernelError as refused:
        tolerated(refused)
        return "refused by its decorator"
    try:
        graph = kernel.graph(**copies(program.arguments))
    except pypto.KernelError as refused:
        tolerated(refused)
        _writes_nothing(kernel, program)
        return f"refused when read: {refused.code}"
    except Exception as failure:
        assert is_the_programs(failure), "a traceback of ours"
        return "the program's own exception"
    for name in TARGETS:
        try:
            assert kernel.source(name, **copies(program.arguments)).strip()
        except pypto.KernelError as refused:
            tolerated(refused)
    end = _compared(kernel, graph, program, "llvm-cpu", "llvm-cpu")
    if emulated and end == "computed":
        return " and ".join(f"{name}: {_compared(kernel, graph, program, name, target)}" for name, target in EMULATORS.items())
    return end


def _writes_nothing(kernel: Any, program: grammar.Program, target: str = "llvm-cpu") -> None:
    given = copies(program.arguments)
    before = {n: bits(v) for n, v in given.items()}
    with pytest.raises(pypto.KernelError):
        kernel.run(**given, target=target)
    assert {n: bits(v) for n, v in given.items()} == before, "written after a failure"


def _compared(kernel: Any, graph: Any, program: grammar.Program, runs: str, target: str) -> str:
    """One target's numbers against the interpreter's."""

    def prepare(arguments: Any) -> Any:
        symbols = symbol_values(graph, arguments, {n: v for n, v in arguments.items() if isinstance(v, int)})
        check_extents(graph, symbols)
        return graph, symbols

    def compute(arguments: Any) -> dict[str, Any]:
        calls = copies(dict(arguments))
        returned = kernel.run(**calls, target=runs)
        values = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
        return {**{n: calls[n] for n in graph.outputs}, **dict(zip(interpreter.return_names(graph), values, strict=True))}

    subject = check.Subject(prepare, compute, registry.load(target))
    try:
        tried = list(check.check(subject, copies(program.arguments), None, shapes=False, values=False))
    except pypto.KernelError as refused:
        tolerated(refused)
        _writes_nothing(kernel, program, runs)
        return f"refused when called: {refused.code}"
    for one in tried:
        assert one.ok, f"{[(v.name, v.worst, v.tolerance.text(), v.limit) for v in one.verdicts if not v.ok]}"
    return "computed"


@QUICK
@given(st.data())
def test_well_formed_kernels(data: st.DataObject) -> None:
    program = grammar.program(lambda n: data.draw(st.integers(0, n - 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(program)


@QUICK
@given(st.data())
def test_kernels_with_mistakes(data: st.DataObject) -> None:
    program = grammar.program(lambda n: data.draw(st.integers(0, n - 1)), wrong=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(program)


def seeded(seed: int) -> grammar.Program:
    chosen = random.Random(seed)
    return grammar.program(chosen.randrange, wrong=(0, 3, 8)[seed % 3])


def test_the_grammar_reaches_the_cpu() -> None:
    """Most well-formed programs come through to numbers; else the tests above would test nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ends = [run(seeded(seed)) for seed in range(0, 60, 3)]
    assert ends.count("computed") >= len(ends) // 3, ends


ON_EVERY_EMULATOR = (183, 225, 348, 417)  # most programs have a dtype or a view that Wormhole refuses; these it takes


def test_the_emulators_compute_what_the_interpreter_does() -> None:
    """A few programs, since each is built by the C++ compiler; the long run has more. Seeds that are no longer computed are replaced."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ends = {seed: run(seeded(seed), emulated=True) for seed in ON_EVERY_EMULATOR}
    assert all(end == " and ".join(f"{name}: computed" for name in EMULATORS) for end in ends.values()), ends


@pytest.mark.exhaustive
def test_for_a_long_time() -> None:
    """Seeds upwards from $PTC_FUZZ_SEED (default 0) until the time is over, every sixteenth on the emulators too.

    The seed and text of each failure are printed.
    """
    until = time.monotonic() + float(os.environ.get("PTC_FUZZ_SECONDS", "1200"))
    failures = []
    seed = int(os.environ.get("PTC_FUZZ_SEED", "0"))
    while time.monotonic() < until and len(failures) < 20:
        program = seeded(seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run(program, emulated=seed % 16 == 0)
        except Exception as failure:
            failures.append(f"seed {seed}: {type(failure).__name__}: {str(failure)[:400]}\n{program.text.split('def kernel')[1]}")
        seed += 1
    assert not failures, f"{len(failures)} of {seed} programs\n" + "\n".join(failures)
