"""Tile IR text of what the compiler really makes: every example kernel on every target is read back equal."""
from __future__ import annotations

from pathlib import Path

import pytest

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.targets import names
from pypto_dsl.compiler.text.reader import read_file
from pypto_dsl.compiler.tile_ir.reader import read_program
from pypto_dsl.compiler.tile_ir.text import print_program

KERNELS = sorted((Path(__file__).parents[2] / "examples" / "ptir").glob("*.ptir"))


@pytest.mark.parametrize("target", names())
@pytest.mark.parametrize("file", KERNELS, ids=lambda f: f.stem)
def test_program_is_read_back(file: Path, target: str) -> None:
    """A program, or a refusal that names what the target lacks."""
    graph = read_file(file)
    try:
        program = lower(graph, target)
    except KernelError as refused:
        assert refused.code.startswith("PT5")
        return
    text = print_program(program)
    again = read_program(text)
    # spans are written by basename: the text's own is the whole truth
    assert print_program(again) == text
    assert read_program(print_program(again)) == again
    assert str(Path(__file__).parents[2]) not in text
