"""The verifier: a well-formed graph passes, and every way of breaking one is found and named."""
from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from random_graphs import graphs

from pypto_dsl.compiler.dtypes import BF16, F32
from pypto_dsl.compiler.errors import CompilerBug, KernelError
from pypto_dsl.compiler.graph import Check, Graph, Op, Region, Symbol, TensorType, Value, tensor_type
from pypto_dsl.compiler.index import as_index, var
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.compiler.verify import problems, require_valid, verify

TEXT = """kernel k(%x: f32[M, 8], %y: f32[M, 8], %w: f32[K, 8]) {
  symbol M: dim of x axis 0
  symbol K: dim of w axis 0
  symbol i: loop
  symbol n: element
  %a = amax(%x, dim = -1, keepdim = True)
  %b = sub(%x, %a)
  %l = cast(%b, dtype = i32)
  %s = load_scalar(%l, offsets = [0, 0], symbol = "n")
  %c = loop i in 0 to M step 4 (%acc: f32[M, 8] = %b) {
    %d = exp(%acc)
    %v = view(%d, shape = [1, 8], offsets = [i, 0])
    %o = full(shape = [1, 8], value = 0.0, dtype = f32)
    %u = insert(%d, %o, offsets = [i + n, 0])
    yield %u
  }
  %g = gt(%s, %s)
  %f = if %g {
    yield %c
  } else {
    %h = neg(%c)
    yield %h
  }
  %e = add(%f, %w)
  write y <- %e
  return %a
}
"""


def op(graph: Graph, opcode: str) -> Op:
    stack = [graph.body]
    while stack:
        region = stack.pop()
        for found in region.ops:
            if found.opcode == opcode:
                return found
            stack += found.regions
    raise LookupError(opcode)


def _swap(graph: Graph) -> None:
    graph.body.ops[0], graph.body.ops[1] = graph.body.ops[1], graph.body.ops[0]


def _escape(graph: Graph) -> None:
    graph.returns = [op(graph, "exp").result]


def _twice(graph: Graph) -> None:
    graph.body.ops.append(graph.body.ops[0])


def _retype(graph: Graph, type_: TensorType) -> None:
    op(graph, "sub").result.type = type_


def _attribute(graph: Graph, opcode: str, **changes: object) -> None:
    attributes = op(graph, opcode).attributes
    for key, value in changes.items():
        if value is ...:
            del attributes[key]
        else:
            attributes[key] = value  # type: ignore[assignment]


def _operands(graph: Graph, opcode: str, *operands: Value) -> None:
    op(graph, opcode).operands = operands


BREAKS: dict[str, tuple[Callable[[Graph], object], str]] = {
    "use before definition": (_swap, "is not defined above"),
    "use outside the region": (_escape, "is not defined above"),
    "operation twice": (_twice, "stands twice"),
    "wrong dtype": (lambda g: _retype(g, tensor_type(BF16, (var("M"), 8))), "the op table gives f32[M, 8]"),
    "wrong shape": (lambda g: _retype(g, tensor_type(F32, (var("M"), 9))), "the op table gives f32[M, 8]"),
    "wrong weakness": (lambda g: _retype(g, tensor_type(F32, (var("M"), 8), weak=True)), "the op table gives f32[M, 8]"),
    "wrong live part": (lambda g: _retype(g, TensorType(F32, (var("M"), as_index(8)), valid=(as_index(1), as_index(8)))), "op table gives"),
    "missing attribute": (lambda g: _attribute(g, "amax", keepdim=...), "lacks its attribute `keepdim`"),
    "unknown attribute": (lambda g: _attribute(g, "amax", axis=1), "has an attribute `axis`"),
    "object as attribute": (lambda g: _attribute(g, "amax", dim=object()), "no plain data"),
    "refused attribute": (lambda g: _attribute(g, "amax", dim=7), "[PT302]"),
    "missing operand": (lambda g: _operands(g, "sub", g.parameters[0]), "has 1 operands, and its signature 2"),
    "unknown operation": (lambda g: setattr(op(g, "sub"), "opcode", "subtract"), "no operation of the table"),
    "unknown symbol": (lambda g: g.symbols.pop("K"), "`K`, which is no symbol of the kernel"),
    "loop symbol outside": (lambda g: _attribute(g, "load_scalar", offsets=(var("i"), as_index(0))), "`i`, which is not visible here"),
    "element before it is read": (lambda g: _attribute(g, "load_scalar", offsets=(var("n"), as_index(0))), "`n`, which is not visible"),
    "undeclared element": (lambda g: g.symbols.update(n=Symbol("n", "scalar")), "not declared as an element"),
    "lost check": (lambda g: g.checks.clear(), "needs M == K, which no check of the kernel tests"),
    "check of unknown symbol": (lambda g: g.checks.append(Check(var("Z"), var("M"))), "unknown symbol Z"),
    "loop without bounds": (lambda g: _attribute(g, "loop", stop=...), "needs one region and the attributes"),
    "loop index undeclared": (lambda g: _attribute(g, "loop", index="M"), "not declared as a loop symbol"),
    "loop yields less": (lambda g: op(g, "loop").regions[0].yields.clear(), "must be equally many"),
    "loop yields another type": (lambda g: op(g, "loop").regions[0].yields.__setitem__(0, op(g, "view").result), "is yielded as f32[1, 8]"),
    "loop enters with another type": (lambda g: _operands(g, "loop", op(g, "amax").result), "enters as f32[M, 1]"),
    "if without condition": (lambda g: _operands(g, "if", g.parameters[0]), "must be a BOOL scalar"),
    "if yields another type": (lambda g: op(g, "if").regions[1].yields.__setitem__(0, op(g, "amax").result), "region yields f32[M, 1]"),
    "if with arguments": (lambda g: op(g, "if").regions[0].arguments.append(Value(tensor_type(F32))), "has 1 arguments"),
    "region of a plain operation": (lambda g: setattr(op(g, "sub"), "regions", (Region(),)), "only loop and if may"),
    "write to a stranger": (lambda g: g.outputs.update(z=g.parameters[0]), "z is written and is no parameter"),
    "write of another type": (lambda g: g.outputs.update(y=op(g, "amax").result), "f32[M, 1] is written to y"),
    "insert outside": (lambda g: _attribute(g, "insert", offsets=(var("M"), as_index(0))), "1 elements are written at M"),
    "insert before": (lambda g: _attribute(g, "insert", offsets=(as_index(-1), as_index(0))), "[PT314]"),
    "parameter twice": (lambda g: g.parameters.append(g.parameters[0]), "parameters need different names"),
    "constant of another kind": (lambda g: _constant(g, 1), "holds int 1, and its dtype is f32"),
    "constant tensor": (lambda g: _constant(g, 1.0, (4,)), "constants are scalars"),
    "yields of the kernel": (lambda g: g.body.yields.append(g.parameters[0]), "body has arguments or yields"),
}


def _constant(graph: Graph, value: float, shape: tuple[int, ...] = ()) -> None:
    graph.body.ops.insert(0, Op("constant", (), [tensor_type(F32, shape)], {"value": value}))


def test_the_whole_graph_is_well_formed() -> None:
    assert list(problems(read_graph(TEXT))) == []


@pytest.mark.parametrize("how", BREAKS)
def test_a_broken_graph_is_refused(how: str) -> None:
    """Once as a pass's fault, naming the pass, once as the fault of the text's writer."""
    graph = read_graph(TEXT)
    break_, words = BREAKS[how]
    break_(graph)
    with pytest.raises(CompilerBug) as bug:
        verify(graph, "some pass")
    assert "`some pass`" in str(bug.value)
    assert any(words in str(p) for p in problems(graph)), list(map(str, problems(graph)))
    with pytest.raises(KernelError) as refused:
        require_valid(graph)
    assert refused.value.code == "PT606"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(graphs())
def test_recorded_graphs_are_well_formed(graph: Graph) -> None:
    assert list(map(str, problems(graph))) == []
