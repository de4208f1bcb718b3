"""Every `.ptir` file of this folder: passes run by name, the printed result against its CHECK lines."""
from __future__ import annotations

from pathlib import Path

import filecheck
import pytest

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.pipeline import GRAPH_PASSES
from pypto_dsl.compiler.targets import load
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.compiler.verify import require_valid, verify

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.ptir"))


def result_of(text: str, name: str, passes: tuple[str, ...], target: str) -> str:
    graph = read_graph(text, name, places=True)
    require_valid(graph)
    for chosen in passes:
        graph = GRAPH_PASSES[chosen](graph, load(target))
        verify(graph, chosen)
    return print_graph(graph, spans=False)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_file(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    script = filecheck.script(text)
    if script.checks[0].kind != "ERROR":
        wrong = filecheck.check(script.checks, result_of(text, file.name, script.passes, script.target))
        assert not wrong, f"{file.name}: {wrong}"
        return
    code, _, words = script.checks[0].text.partition(" ")
    with pytest.raises(KernelError) as refused:
        result_of(text, file.name, script.passes, script.target)
    assert refused.value.code == code
    assert words in refused.value.diagnostic.message


def test_every_pass_has_a_file() -> None:
    run = {name for f in FILES for name in filecheck.script(f.read_text(encoding="utf-8")).passes}
    assert run >= set(GRAPH_PASSES)


PRINTED = "kernel k() {\n  %0 = exp(%x)\n  %1 = add(%0, %0)\n  return %1\n}"


@pytest.mark.parametrize(("lines", "wrong"), [
    (["CHECK: exp(%x)"], ""),
    (["CHECK: [[v:%\\d+]] = exp", "CHECK-NEXT: add([[v]], [[v]])"], ""),
    (["CHECK: exp", "CHECK-NEXT: return"], "CHECK-NEXT: return"),
    (["CHECK: add", "CHECK: exp"], "CHECK: exp"),
    (["CHECK: kernel", "CHECK-NOT: exp", "CHECK: return"], "CHECK-NOT: exp"),
    (["CHECK: kernel", "CHECK-NOT: log", "CHECK: return"], ""),
    (["CHECK: return", "CHECK-NOT: exp"], ""),
    (["CHECK: exp(%{{[a-z]}})"], ""),
    (["CHECK: exp(%{{[0-9]}})"], "CHECK: exp"),
])
def test_the_checker(lines: list[str], wrong: str) -> None:
    directions = filecheck.script("# RUN: canonicalize\n" + "\n".join(f"# {line}" for line in lines)).checks
    found = filecheck.check(directions, PRINTED)
    assert (wrong in found) if wrong else not found


def test_a_file_without_checks_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one CHECK"):
        filecheck.script("# RUN: canonicalize\nkernel k() {}")
