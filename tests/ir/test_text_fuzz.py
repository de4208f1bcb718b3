"""Damaged texts: whatever a `.ptir` or Tile IR text holds, it is read, or refused with a code; nothing of ours falls over."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import graphs

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.text.reader import read_file, read_graph
from pypto_dsl.compiler.tile_ir.reader import read_program
from pypto_dsl.compiler.tile_ir.text import print_program
from pypto_dsl.compiler.verify import problems

EXAMPLES = Path(__file__).parents[2] / "examples" / "ptir"
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
WORDS = re.compile(r'"(?:\\.|[^"\\])*"|%?[\w.]+|\S|\s+')
STRANGE = (
    "", " ", "%", "0", "-1", "99999999999999999999", "1e999", "nan", "None", "M", "f32", "bfp8_b", "[", "]", "(", ")", "{", "}", "//", ",",
    '"', '"\\q"', "loop", "if", "yield", "absent", "%x", "%x.1", "constant", "layer_norm", "concat", "\0", "é", "loc(", "min(", "#", "= ")


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A text with up to three words dropped, doubled, exchanged or replaced."""
    words = WORDS.findall(text)
    for _ in range(draw(st.integers(1, 3))):
        at, other = draw(st.integers(0, len(words) - 1)), draw(st.integers(0, len(words) - 1))
        kind = draw(st.integers(0, 3))
        if kind == 0:
            words[at] = draw(st.sampled_from(STRANGE))
        elif kind == 1:
            words[at] = words[other]
        elif kind == 2:
            words.insert(at, words[other])
        else:
            del words[at:at + draw(st.integers(1, 4))]
        if not words:
            break
    return "".join(words)


@QUICK
@given(st.data())
def test_damaged_graphs(data: st.DataObject) -> None:
    text = data.draw(damaged(print_graph(data.draw(graphs(statements=5)))))
    try:
        graph = read_graph(text, places=True)
    except KernelError as refused:
        assert refused.code[:2] == "PT"
        assert refused.diagnostic.primary is not None or refused.code[:3] != "PT6"
        return
    if not list(problems(graph)):
        assert print_graph(read_graph(print_graph(graph))) == print_graph(graph)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.ptir")), ids=lambda f: f.stem)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_damaged_examples(file: Path, data: st.DataObject) -> None:
    try:
        graph = read_graph(data.draw(damaged(file.read_text(encoding="utf-8"))), places=True)
    except KernelError as refused:
        assert refused.code[:2] == "PT"
        return
    list(problems(graph))


TARGETS = ("llvm-cpu", "ascend-a2", "tt-wormhole")
PROGRAMS = {target: print_program(lower(read_file(EXAMPLES / "softmax.ptir"), target)) for target in TARGETS}


@pytest.mark.parametrize("target", PROGRAMS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_programs(target: str, data: st.DataObject) -> None:
    try:
        program = read_program(data.draw(damaged(PROGRAMS[target])))
    except KernelError as refused:
        assert refused.code in ("PT601", "PT602")
        assert refused.diagnostic.primary is not None
        return
    assert read_program(print_program(program)) == program
