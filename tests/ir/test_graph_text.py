"""Graph IR text: every graph is read back as it was printed; mistakes have a code and a place; hand-written text needs no types."""
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from random_graphs import graphs

from pypto_dsl.compiler.dtypes import F32, I64
from pypto_dsl.compiler.errors import CompilerBug, KernelError
from pypto_dsl.compiler.graph import Builder, Check, Graph, Symbol, Value, tensor_type, walk
from pypto_dsl.compiler.index import as_index, var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.text.reader import read_file, read_graph
from pypto_dsl.compiler.verify import require_valid, verify


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(graphs())
def test_graphs_are_read_back(graph: Graph) -> None:
    """The text is the same, and so is everything the text leaves implicit: attributes with their types, symbols, options, checks."""
    text = print_graph(graph)
    again = read_graph(text)
    assert print_graph(again) == text
    verify(again, "reader")
    assert again.symbols == graph.symbols
    assert again.options == graph.options
    assert again.checks == graph.checks
    for ours, theirs in zip(walk(graph.body), walk(again.body), strict=True):
        assert (ours.opcode, ours.span, ours.tile) == (theirs.opcode, theirs.span, theirs.tile)
        assert [r.type for r in ours.results] == [r.type for r in theirs.results]
        assert [r.name for r in ours.results] == [r.name for r in theirs.results] or ours.regions
        assert {k: repr(v) for k, v in ours.attributes.items()} == {k: repr(v) for k, v in theirs.attributes.items()}


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(graphs(statements=4))
def test_types_may_be_left_out(graph: Graph) -> None:
    """Without the types of table operations the reader works out the same graph (weak constants of an explicit dtype keep theirs)."""
    lines = []
    for line in print_graph(graph).splitlines():
        head, colon, rest = line.rpartition("): ")
        simple = colon and " = " in head and not any(word in head for word in ("constant(", "loop ", "if ", "empty("))
        keep = rest[rest.index(" loc("):] if " loc(" in rest else ""
        tile = rest[rest.index(" tile "):].split(" loc(")[0] if " tile " in rest else ""
        lines.append(f"{head}){tile}{keep}" if simple else line)
    for a, b in zip(walk(read_graph("\n".join(lines)).body), walk(graph.body), strict=True):
        assert [r.type for r in a.results] == [r.type for r in b.results], a


def _chain(length: int) -> Graph:
    graph = Graph("chain", symbols={"M": Symbol("M", "dim", "x", 0)})
    x = Value(tensor_type(F32, (var("M"), 64)), "x")
    graph.parameters.append(x)
    value, builder = x, Builder(graph)
    for _ in range(length):
        value = builder.add("add", (value, x), (x.type,)).result
    graph.returns = [value]
    return graph


def test_a_chain_of_100000_operations_prints_and_verifies() -> None:
    graph = _chain(100_000)
    verify(graph, "test")
    assert print_graph(graph).count("\n") == 100_000 + 4


def test_a_chain_of_2000_operations_is_read() -> None:
    text = print_graph(_chain(2000))
    assert print_graph(read_graph(text)) == text


def test_text_of_a_kernel() -> None:
    graph = Graph("k", symbols={"M": Symbol("M", "dim", "x", 0), "n": Symbol("n", "scalar", minimum=1)}, options={"promotion": "pypto"},
                  checks=[Check(var("M"), var("n") * 2, Span("k.py", 4, 1), "add")], span=Span("k.py", 1, 1))
    x = Value(tensor_type(F32, (var("M"), 8)), "x")
    graph.parameters.append(x)
    with building(Builder(graph)) as builder:
        builder.tile = (4, 8)
        first = R["amax"](x, -1, True)
        first.name = "x"
        second = R["layer_norm"](x, None, R["full"]((as_index(8),), 0.0, F32))
        third = builder.add("constant", (), (tensor_type(I64, (), True),), {"value": 3}, tile=None).result
    graph.outputs["x"] = second
    graph.returns = [first, third]
    assert print_graph(graph) == """\
kernel k(%x: f32[M, 8]) with (promotion = "pypto") loc("k.py":1:1) {
  symbol M: dim of x axis 0
  symbol n: scalar with (minimum = 1)
  check M == n*2 for "add" loc("k.py":4:1)
  %x.1 = amax(%x, dim = -1, keepdim = True): f32[M, 1] tile [4, 8]
  %0 = full(shape = [8], value = 0.0, dtype = f32): f32[8] tile [4, 8]
  %1 = layer_norm(%x, absent, %0): f32[M, 8] tile [4, 8]
  %2 = constant(value = 3): i64* tile [4, 8]
  write x <- %1
  return %x.1, %2
}
"""
    assert 'loc("' not in print_graph(graph, spans=False)


def test_an_object_in_an_attribute_is_our_bug() -> None:
    graph = _chain(1)
    graph.body.ops[0].attributes["note"] = object()  # type: ignore[assignment]
    with pytest.raises(CompilerBug, match="plain data"):
        print_graph(graph)


TEXT = """kernel k(%x: f32[M, 8], %y: f32[M, 8]) {
  symbol M: dim of x axis 0
  symbol i: loop
  %a = amax(%x, dim = -1, keepdim = True)
  %b = sub(%x, %a)
  %c = loop i in 0 to M step 4 (%acc: f32[M, 8] = %b) {
    %d = exp(%acc)
    yield %d
  }
  write y <- %c
}
"""


def test_operations_without_loc_point_into_the_file(tmp_path: Path) -> None:
    file = tmp_path / "k.ptir"
    file.write_text(TEXT, encoding="utf-8")
    graph = read_file(file)
    require_valid(graph)
    assert [op.span.line for op in walk(graph.body) if op.span is not None] == [4, 5, 6, 7]


@pytest.mark.parametrize(("old", "new", "code", "line", "words"), [
    ("sub(%x, %a)", "sub(%x, %aa)", "PT603", 5, "%aa is not defined here"),
    ("%b = sub", "%a = sub", "PT603", 5, "%a is defined twice"),
    ("write y <- %c", "write y <- %d", "PT603", 10, "%d is not defined here"),
    ("write y", "write z", "PT603", 10, "`z` is no parameter"),
    ("write y <- %c", "write y <- %c write y <- %c", "PT603", 10, "written twice"),
    ("exp(%acc)", "expp(%acc)", "PT604", 7, "no operation `expp`"),
    ("exp(%acc)", "exp(%acc, %acc)", "PT604", 7, "takes 1 operands, and here are 2"),
    ("exp(%acc)", "exp(absent)", "PT604", 7, "cannot be left out"),
    ("dim = -1,", "axis = -1,", "PT604", 4, "no attribute `axis`"),
    ("dim = -1,", "dim = -1, dim = 0,", "PT604", 4, "given twice"),
    ("%b = sub", "%b, %e = sub", "PT604", 5, "1 results, and 2 names"),
    ("f32[M, 8], %y", "f32[K, 8], %y", "PT605", 1, "`K` is not declared"),
    ("symbol i: loop", "symbol i: loop symbol i: loop", "PT605", 3, "declared twice"),
    ("symbol i: loop", "symbol i: turn", "PT605", 3, "no kind of symbol"),
    ("symbol i: loop", "", "PT605", 6, "loop index `i` is not declared"),
    ("axis 0", "axis 2", "PT605", 2, "no axis 2"),
    ("dim of x", "dim of z", "PT605", 2, "no parameter"),
    ("f32[M, 8], %y", "f33[M, 8], %y", "PT602", 1, "no dtype"),
    ("%a = amax(%x, dim = -1, keepdim = True)", "%a = cast(%x, dtype = f3)", "PT602", 4, "`f3` is no"),
    ("%a = amax(%x, dim = -1, keepdim = True)", "%a = cast(%x, dtype = f32) tile [M]", "PT602", 4, "`M` is no int"),
    ("step 4", "step 4 // 0", "PT602", 6, "divides by zero"),
    ("sub(%x, %a)", "sub(%x %a)", "PT601", 5, "`%a` where"),
    ("yield %d\n  }", "}", "PT601", 8, "`}` where"),
    ("  }\n  write", "  write", "PT601", 9, "`write` where"),
    ("sub(", "sub!(", "PT601", 5, "`!` where"),
    ("}\n  write y <- %c\n}\n", "}", "PT601", 9, "the text ends"),
    ("sub(%x, %a)", "reshape(%x, shape = [-1, -1])", "PT308", 5, "only one extent can be -1"),
])
def test_mistakes_have_a_code_and_a_place(old: str, new: str, code: str, line: int, words: str) -> None:
    with pytest.raises(KernelError) as caught:
        read_graph(TEXT.replace(old, new, 1), "bad.ptir", places=True)
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == code
    assert words in diagnostic.message
    assert diagnostic.primary is not None
    assert diagnostic.primary.span.line == line
    assert "^" in diagnostic.render()
