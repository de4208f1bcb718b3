"""Every operation of the table: recorded, printed, read back, verified, promoted, canonicalized; the interpreter gives the same bits."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from random_graphs import EXTENTS, arguments, same_bits

from pypto_dsl.compiler.dtypes import BF16, BOOL, F16, F32, I8, I32, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Builder, Graph, Symbol, Value, tensor_type
from pypto_dsl.compiler.index import Index, as_index, var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building, constant
from pypto_dsl.compiler.passes.canonicalize import canonicalize
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.compiler.verify import verify
from pypto_dsl.runtime.interpreter import run

Shape = tuple[int | str, ...]
SHAPES: tuple[Shape, ...] = (("M", "N"), (4, 6), ("N",))
DTYPES = (F32, BF16, I32, BOOL)
M, N = var("M"), var("N")


def _rows(x: Value) -> Value:
    """[N, N]."""
    return R["matmul"](x, x, None, True, False)


def _scale(x: Value) -> Value:
    return R["add"](R["amax"](R["abs"](x), 1, True), 1.0)


# Operations whose attributes have no default, or whose operands are of different kinds: over x: f32[M, N], n: i32[N] and m: i32[M, N],
# the integers in [0, 2].
WRITTEN: dict[str, Callable[[Value, Value, Value], Any]] = {
    "arange": lambda x, n, m: R["arange"](0, 7, 2, I32),
    "atomic_add": lambda x, n, m: R["atomic_add"](_rows(x), (as_index(1), as_index(0)), x),
    "bitcast": lambda x, n, m: R["bitcast"](x, I32),
    "cast": lambda x, n, m: R["cast"](x, F16, "CAST_RINT"),
    "dequantize": lambda x, n, m: R["dequantize"](R["cast"](x, I8), _scale(x)),
    "empty": lambda x, n, m: R["empty"]((M, as_index(2)), F32),
    "expand_clone": lambda x, n, m: R["expand_clone"](x, (as_index(2), M, N)),
    "extent": lambda x, n, m: R["extent"](M * 2 + N, F32),
    "full": lambda x, n, m: R["full"]((M, as_index(2)), -0.0, F16),
    "gather": lambda x, n, m: R["gather"](x, 0, m),
    "index_add": lambda x, n, m: R["index_add"](x, 0, n, _rows(x)),
    "index_add_": lambda x, n, m: R["index_add_"](x, 0, n, _rows(x)),
    "index_select": lambda x, n, m: R["index_select"](x, 0, n),
    "insert": lambda x, n, m: R["insert"](x, R["view"](x, (as_index(1), N), (as_index(0), as_index(0))), (M - 1, as_index(0))),
    "iota": lambda x, n, m: R["iota"]((M, N), 1, I32),
    "load_scalar": lambda x, n, m: R["load_scalar"](x, (M - 1, N - 1)),
    "normal": lambda x, n, m: R["normal"]((as_index(4), as_index(6)), (1, 2), (3, 4), "PHILOX", F32),
    "one_hot": lambda x, n, m: R["one_hot"](n, 4),
    "permute": lambda x, n, m: R["permute"](x, (1, 0)),
    "quantize": lambda x, n, m: R["quantize"](x, _scale(x)),
    "scatter": lambda x, n, m: R["scatter"](x, 0, m, x),
    "scatter_": lambda x, n, m: R["scatter_"](x, 0, m, x),
    "scatter_update": lambda x, n, m: R["scatter_update"](x, -2, R["reshape"](n, (1, N)), R["reshape"](_rows(x), (N, N))),
    "topk": lambda x, n, m: R["topk"](x, 2, -1),
    "uniform": lambda x, n, m: R["uniform"]((as_index(4), as_index(6)), (1, 2), (3, 4), "PHILOX", F32),
    "view": lambda x, n, m: R["view"](x, (as_index(4), as_index(2)), (as_index(1), as_index(0)), (as_index(3), as_index(2))),
}


def _graph(*parameters: tuple[str, DType, Shape]) -> Graph:
    graph = Graph("one", symbols={"M": Symbol("M", "dim", "x", 0), "N": Symbol("N", "dim", "x", 1)})
    for name, dtype, shape in (("x", F32, ("M", "N")), *parameters):
        extents: list[Index | int] = [var(e) if isinstance(e, str) else e for e in shape]
        graph.parameters.append(Value(tensor_type(dtype, extents), name))
    return graph


def _finished(graph: Graph, made: Any) -> Graph:
    graph.returns = list(made) if isinstance(made, tuple) else [made]
    return graph


def written(name: str) -> Iterator[Graph]:
    """The use of `WRITTEN`."""
    graph = _graph(("n", I32, ("N",)), ("m", I32, ("M", "N")))
    with building(Builder(graph)) as builder:
        x, n, m = graph.parameters
        two = constant(2, builder)
        n, m = (R["minimum"](R["abs"](v), two) for v in (n, m))
        yield _finished(graph, WRITTEN[name](x, n, m))


def uses(name: str) -> Iterator[Graph]:
    """The operation over every pair of dtypes and every shape that it takes, attributes at their defaults."""
    operands = R[name].operands
    for dtypes in itertools.product(DTYPES, repeat=min(len(operands), 2)):
        for shape in SHAPES:
            graph = _graph(*((f"p{i}", dtypes[min(i, len(dtypes) - 1)], shape) for i in range(len(operands))))
            try:
                with building(Builder(graph)):
                    made = R[name](*graph.parameters[1:])
            except KernelError:
                continue
            yield _finished(graph, made)


# No use is made here: `constant` is in every other test, the others take packed or scaled storage formats.
ELSEWHERE = frozenset({"constant", "quant_mx", "scaled_mm", "unpack"})


@pytest.mark.parametrize("name", sorted(R.keys() - ELSEWHERE))
def test_operation(name: str) -> None:
    count = 0
    for graph in written(name) if name in WRITTEN else uses(name):
        count += 1
        text = print_graph(graph)
        assert print_graph(read_graph(text)) == text
        verify(graph, "recorded")
        values = arguments(graph)
        try:
            expected = run(graph, values, EXTENTS)
        except KernelError as refused:  # extents that must agree do not, an index is outside
            assert refused.code in ("PT707", "PT710"), text
            continue
        promoted = promote(graph)
        verify(promoted, "promote")
        form = canonicalize(promoted)
        verify(form, "canonicalize")
        assert print_graph(canonicalize(form)) == print_graph(form)
        for version in (promoted, form):
            assert not same_bits(expected, run(version, values, EXTENTS)), f"{text}\n{print_graph(version)}"
    assert count, f"no use of {name} was made"
