"""Every kernel case, emitted and executed in the emulator over ragged shapes, cores and interleavings, against NumPy."""
from __future__ import annotations

import re

import kernels
import pytest

from pypto_dsl.codegen.ttmetal import emit
from pypto_dsl.compiler.targets import load
from pypto_dsl.compiler.tile_ir.reader import read_program
from pypto_dsl.compiler.tile_ir.text import print_program

TARGETS = ("tt-wormhole", "tt-blackhole")


@pytest.mark.parametrize("name", kernels.CASES)
def test_emulated_result(name: str) -> None:
    """Within the case's bound for every shape on 1, 2 and 7 cores, in fixed and in mixed order; the same bits on any of them."""
    for shape in kernels.CASES[name].shapes:
        first = None
        for cores in kernels.CORES:
            got, reference = kernels.execute(name, shape, cores, seed=cores - 1)
            assert kernels.error(name, got, reference) <= 1, f"{shape} on {cores} cores"
            first = got if first is None else first
            assert got.tobytes() == first.tobytes(), f"{shape}: {cores} cores give other bits than one"


LONG_ROWS = ("softmax_f32", "softmax_bf16", "layernorm_bf16", "rowmax_bf16", "rowmax_f32", "rowsum_bf16")


@pytest.mark.parametrize("name", LONG_ROWS)
def test_long_rows_take_the_split_kernel(name: str) -> None:
    """One column more than the whole-row kernel keeps, and a ragged tail beyond."""
    whole, split = kernels.emitted(name).manifest["steps"][0]
    limit = int(whole["requires"][0].removesuffix(" - N"))
    assert split["requires"] == []
    for shape in ((5, limit + 70), (40, limit + 1)):
        got, reference = kernels.execute(name, shape, 2, seed=1)
        assert kernels.error(name, got, reference) <= 1, shape


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", kernels.CASES)
def test_emitter_reads_tile_ir_alone(name: str, target: str) -> None:
    """The printed and re-read Tile IR gives the same bytes in every file."""
    program = kernels.placed(name, target)
    again = read_program(print_program(program))
    assert emit(again, load(target)).files == kernels.emitted(name, target).files


@pytest.mark.parametrize("name", kernels.CASES)
def test_both_chips_get_the_same_kernels(name: str) -> None:
    """Wormhole and Blackhole differ in memories and grid, not in the text of kernels that fit both."""
    first, second = (kernels.emitted(name, t).files for t in TARGETS)
    assert {p: t for p, t in first.items() if p.endswith(".cpp")} == {p: t for p, t in second.items() if p.endswith(".cpp")}


@pytest.mark.parametrize("name", kernels.CASES)
def test_emitted_files_name_no_place(name: str) -> None:
    """No absolute path, no denied call, no line beyond what a person reads."""
    denied = load("tt-wormhole").table("deny")["calls"]
    for path, text in kernels.emitted(name).files.items():
        assert not re.search(r"(?<![\w./*<])/\w+/\w", text), f"{path} names an absolute path"
        assert not [call for call in denied if call + "(" in text or f" {call} " in text], path
        if path.endswith(".cpp"):
            assert max(map(len, text.splitlines())) <= 180, path


@pytest.mark.parametrize("name", kernels.CASES)
def test_host_program_compiles(name: str) -> None:
    """host.py is Python that compiles, and its source map points at lines that carry a user's line."""
    made = kernels.emitted(name)
    compile(made.files["host.py"], "host.py", "exec")
    for step in made.manifest["steps"]:
        for kernel in step:
            for file, origins in kernel["source_map"].items():
                lines = made.files[f"{kernel['name']}/{file}"].splitlines()
                assert all(f"{user}:{number}" in lines[at - 1] for at, user, number in origins)
