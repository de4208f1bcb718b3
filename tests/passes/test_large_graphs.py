"""Passes over large graphs: 10,000 operations go through all, and the work grows with the graph, not with its square."""
from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from benchmarks.passes import mixed_graph
from pypto_dsl.compiler import pipeline, targets
from pypto_dsl.compiler.dtypes import F32
from pypto_dsl.compiler.graph import Builder, Graph, Region, Symbol, Value, tensor_type, walk
from pypto_dsl.compiler.index import as_index, var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building

Fill = Callable[[Graph, Builder, Value, Value, int], Value]


def _graph(fill: Fill, operations: int, columns: Any = 256) -> Graph:
    graph = Graph("large", symbols={"M": Symbol("M", "dim", "x", 0), "N": Symbol("N", "dim", "x", 1)})
    x, y = (Value(tensor_type(F32, (var("M"), columns)), name) for name in "xy")
    graph.parameters += [x, y]
    builder = Builder(graph)
    with building(builder):
        graph.returns = [fill(graph, builder, x, y, operations)]
    return graph


def _output(graph: Graph, value: Value) -> None:
    out = Value(tensor_type(value.type.dtype, value.type.shape), f"out{len(graph.outputs)}")
    graph.parameters.append(out)
    graph.outputs[out.name] = value


def outputs(graph: Graph, builder: Builder, x: Value, y: Value, count: int) -> Value:
    """Many groups of one operation with an output each."""
    for i in range(count // 2):
        _output(graph, R["add"](x, float(i)))
    return R["exp"](y)


def readers(graph: Graph, builder: Builder, x: Value, y: Value, count: int) -> Value:
    """One value that everything reads, and column sums as outputs."""
    scale = R["exp"](R["sum"](x, 0, True))
    for i in range(count // 4):
        _output(graph, R["sum"](R["add"](R["mul"](y, scale), float(i)), 0, True))
    return scale


def branches(graph: Graph, builder: Builder, x: Value, y: Value, count: int) -> Value:
    """A chain that takes in a new elementwise group at every step: groups merge over and over."""
    value = y
    for _ in range(count // 3):
        value = R["add"](R["mul"](value, R["exp"](x)), y)
    return value


def softmaxes(graph: Graph, builder: Builder, x: Value, y: Value, count: int) -> Value:
    """Row reductions that follow from one another."""
    value = y
    for _ in range(count // 5):
        e = R["exp"](R["sub"](value, R["amax"](value, -1, True)))
        value = R["div"](e, R["sum"](e, -1, True))
    return value


def columns(graph: Graph, builder: Builder, x: Value, y: Value, count: int) -> Value:
    """Column and row reductions in turns: no group takes in the next."""
    value = y
    for _ in range(count // 4):
        value = R["sub"](value, R["sum"](value, 0, True))
        value = R["div"](value, R["amax"](value, -1, True))
    return value


def writes(graph: Graph, builder: Builder, x: Value, y: Value, count: int) -> Value:
    """Rows that are written into a tensor one by one."""
    value: Value = R["empty"]((as_index(count), as_index(256)), F32)
    for i in range(count // 3):
        row = R["view"](R["exp"](x), (as_index(1), as_index(256)), (as_index(0), as_index(0)))
        value = R["insert"](value, row, (as_index(i), as_index(0)))
    return value


def views(graph: Graph, builder: Builder, x: Value, y: Value, count: int) -> Value:
    """Transposed and back, with arithmetic between."""
    value = y
    for _ in range(count // 3):
        value = R["add"](R["permute"](R["permute"](value, (1, 0)), (1, 0)), y)
    return value


def products(graph: Graph, builder: Builder, x: Value, y: Value, count: int) -> Value:
    """Matrix products with what follows them."""
    weights = Value(tensor_type(F32, (256, 256)), "w")
    graph.parameters.append(weights)
    value = y
    for _ in range(count // 3):
        value = R["add"](R["relu"](R["matmul"](value, weights)), y)
    return value


def loops(graph: Graph, builder: Builder, x: Value, y: Value, count: int) -> Value:
    """Loops one after the other that carry a tensor."""
    value = y
    for i in range(count // 5):
        graph.symbols[f"i{i}"] = Symbol(f"i{i}", "loop")
        carried = Value(value.type, "carried")
        region, outer = Region([carried]), builder.region
        builder.region = region
        region.yields = [R["add"](R["mul"](carried, x), 1.0)]
        builder.region = outer
        attributes = {"index": f"i{i}", "start": as_index(0), "stop": as_index(4), "step": as_index(1)}
        value = R["exp"](builder.add("loop", [value], [value.type], attributes, (region,)).result)
    return value


KINDS: dict[str, Callable[[int], Graph]] = {
    "mixed": mixed_graph,
    **{f.__name__: lambda n, f=f: _graph(f, n) for f in (outputs, readers, branches, softmaxes, columns, writes, views, products, loops)},
    "softmaxes over rows of any length": lambda n: _graph(softmaxes, n, var("N")),
}


def work(graph: Graph, target: str) -> int:
    """How many lines the passes run, turns of loops and comprehensions included."""
    lines = 0

    def line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return line

    known = targets.load(target)
    before = sys.gettrace()
    sys.settrace(line)
    try:
        for _ in pipeline.stages(graph, known):
            pass
    finally:
        sys.settrace(before)
    return lines


def test_10000_operations_go_through_every_pass() -> None:
    graph = mixed_graph(10_000)
    stages = list(pipeline.stages(graph, targets.load("llvm-cpu")))
    assert [s.name for s in stages] == list(pipeline.STAGES) and sum(1 for _ in walk(graph.body)) >= 10_000
    assert len(graph.outputs) >= 40


@pytest.mark.parametrize("kind", KINDS)
def test_work_grows_with_the_graph(kind: str) -> None:
    """Four times the operations are about four times the work; were one of the passes quadratic, it would show as up to sixteen."""
    make = KINDS[kind]
    work(make(60), "llvm-cpu")  # fills the caches of rules
    small, large = make(160), make(640)
    sizes = [sum(1 for _ in walk(g.body)) for g in (small, large)]
    few, many = work(small, "llvm-cpu"), work(large, "llvm-cpu")
    assert many / few < 1.15 * sizes[1] / sizes[0]
