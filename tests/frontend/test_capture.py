"""Recorded graphs: spans and names, purity, verification, round trip through text, and what capturing loads and costs."""
from __future__ import annotations

import functools
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.graph import Graph, walk
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.compiler.verify import verify
from pypto_dsl.frontend.spans import tree_of

F = np.float32
D, T = pypto.DYNAMIC, pypto.Tensor
jit = functools.partial(pypto.jit, target="interpreter")


def helper(row: Any) -> Any:
    doubled = row * 2
    return doubled + 1


@jit
def spans(x: T([D, 4]), gamma: T([4]), out: T([D, 4])):
    centred = x - gamma
    gain = helper(centred)
    a, b = gain + 1, pypto.exp(gain)
    a += b
    out[:] = pypto.where(a > b,
                         a, b)


def graph_of(kernel: Any, *arrays: Any) -> Graph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph: Graph = kernel.graph(*arrays)
    return graph


def test_operations_carry_the_users_text_and_names() -> None:
    graph = graph_of(spans, np.zeros((3, 4), F), np.zeros(4, F), np.zeros((3, 4), F))
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    found = []
    for op in walk(graph.body):
        if op.opcode == "constant":
            continue
        span = op.span
        assert span is not None and span.file == __file__
        text = lines[span.line - 1][span.column - 1:span.end_column - 1 if span.end_line == span.line else None]
        found.append((op.opcode, op.results[0].name, text))
    assert found == [
        ("sub", "centred", "x - gamma"), ("mul", "doubled", "row * 2"), ("add", "gain", "doubled + 1"), ("add", "a", "gain + 1"),
        ("exp", "b", "pypto.exp(gain)"), ("add", "a", "a += b"), ("gt", "", "a > b"), ("where", "out", "pypto.where(a > b,")]


def test_capturing_does_not_change_the_users_function_or_module() -> None:
    before = spans.function.__code__, dict(spans.function.__globals__)
    graph_of(spans, np.zeros((5, 4), F), np.zeros(4, F), np.zeros((5, 4), F))
    assert (spans.function.__code__, dict(spans.function.__globals__)) == before


def test_two_captures_give_the_same_text() -> None:
    def again() -> str:
        @jit
        def k(x: T([D, 4]), out: T([D, 4])):
            for i in pypto.loop(x.shape[0]):
                if i > 2:
                    out[i:i + 1, :] = x[i:i + 1, :] * 2

        return print_graph(graph_of(k, np.zeros((3, 4), F), np.zeros((3, 4), F)))

    assert again() == again()


def test_dead_operations_and_symbols_are_dropped() -> None:
    @jit
    def k(table: T([D], pypto.DT_INT32), x: T([D, 4]), out: T([D, 4])):
        pypto.exp(x)
        unused = table[0]  # noqa: F841
        for i in pypto.loop(x.shape[0]):
            lost = x[i:i + 1, :]  # noqa: F841
        out[:] = x + 1

    graph = graph_of(k, np.zeros(2, np.int32), np.zeros((3, 4), F), np.zeros((3, 4), F))
    assert [op.opcode for op in walk(graph.body)] == ["constant", "add"]
    assert {s.kind for s in graph.symbols.values()} == {"dim"}


def test_a_whole_write_is_the_value_itself() -> None:
    @jit
    def k(x: T([D, 4]), out: T([D, 4])):
        if x.shape[0] > 2:
            out[:] = x + 1
        out[:] = out + x

    graph = graph_of(k, np.zeros((3, 4), F), np.zeros((3, 4), F))
    assert "insert" not in [op.opcode for op in walk(graph.body)]


def test_a_chain_of_a_thousand_operations() -> None:
    @jit
    def k(x: T(), out: T()):
        y = x
        for _ in range(1000):
            y = y + 1
        out[:] = y

    graph = graph_of(k, np.zeros(4, F), np.zeros(4, F))
    assert sum(op.opcode == "add" for op in walk(graph.body)) == 1000


# ---- every kernel of the examples ------------------------------------------------------------------------------------------------------

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def kernels(path: Path) -> Iterator[tuple[Any, Any]]:
    scope: dict[str, Any] = {"__name__": path.stem}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    for name, kernel in list(scope.items()):
        if type(kernel).__name__ == "Kernel":
            yield kernel, scope.get(f"{name}_inputs", scope["inputs"])


@pytest.mark.parametrize("path", EXAMPLES, ids=[p.stem for p in EXAMPLES])
def test_graphs_of_the_examples_verify_and_survive_their_text(path: Path) -> None:
    for kernel, inputs in kernels(path):
        graph = graph_of(kernel, *inputs(np.random.default_rng(0)))
        verify(graph, "capture")
        text = print_graph(graph)
        assert print_graph(read_graph(text)) == text


# ---- what importing costs -------------------------------------------------------------------------------------------------------------


def loaded(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint([m for m in ('lark', 'networkx', 'llvmlite', 'torch', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(eval(done.stdout))


def test_importing_the_package_loads_nothing() -> None:
    assert loaded("import pypto_dsl") == set()


def test_declaring_a_kernel_loads_neither_the_reader_nor_llvm() -> None:
    assert loaded("import pypto_dsl as pypto\n@pypto.jit\ndef k(x: pypto.Tensor([4], pypto.DT_FP32)): pass") == {"numpy"}


HEAD, END = "@jit\ndef k(x: ROWS, out: ROWS):\n", "    out[:] = doubled + 1\n"
SHAPES_OF_DEFINITIONS = {
    "plain": f"{HEAD}    doubled = x * 2\n{END}",
    "a signature of several lines": f"@jit\ndef k(\n    x: ROWS,\n    out: ROWS,\n):\n    doubled = x * 2\n{END}",
    "comments and brackets at the margin": f"{HEAD}# a comment\n    doubled = (\nx * 2\n)\n\n{END}",
    "text at the margin": f"{HEAD}    \"\"\"Text\nand more\n\"\"\"\n    doubled = x * 2\n{END}",
    "a line that goes on": f"{HEAD}    doubled = x \\\n* 2\n{END}",
    "inside a block": "if True:\n    @jit\n    def k(x: ROWS, out: ROWS):\n        doubled = x * 2\n        out[:] = doubled + 1\n",
    "tabs": "if True:\n\t@jit\n\tdef k(x: ROWS, out: ROWS):\n\t\tdoubled = x * 2\n\t\tout[:] = doubled + 1\n",
    "a helper": f"def twice(v):\n    inner = v * 2\n    return inner\n\n\n{HEAD}    doubled = twice(x)\n{END}",
}


@pytest.mark.parametrize("shape", SHAPES_OF_DEFINITIONS)
@pytest.mark.parametrize("parsed", [False, True])
def test_a_definition_is_found_however_it_is_written(shape: str, parsed: bool, tmp_path: Path) -> None:
    """Only a kernel's own lines are parsed where they show their end; names and places are those of the whole file."""
    before = "import pypto_dsl as pypto\nROWS = pypto.Tensor([2, 4])\njit = pypto.jit(target='interpreter')\n"
    text = f"{before}{SHAPES_OF_DEFINITIONS[shape]}after = 1\n"
    path = tmp_path / "written.py"
    path.write_text(text)
    names: dict[str, Any] = {"__name__": "written", "__file__": str(path)}
    exec(compile(text, str(path), "exec"), names)
    if parsed:
        assert tree_of(str(path)) is not None
    found = names["k"].graph(np.zeros((2, 4), F), np.zeros((2, 4), F))
    (product,) = [op for op in walk(found.body) if op.opcode == "mul"]
    assert product.results[0].name == ("inner" if shape == "a helper" else "doubled")
    place = product.span
    assert place is not None and "* 2" in "\n".join(text.splitlines()[place.line - 1:place.end_line])
