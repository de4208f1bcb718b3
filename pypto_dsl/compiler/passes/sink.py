"""Casts of tensors, made by whoever reads them."""
from __future__ import annotations

from collections.abc import Sequence

from pypto_dsl.compiler.graph import Builder, Graph, Op, Value, walk
from pypto_dsl.compiler.passes.fuse import VIEWS
from pypto_dsl.compiler.passes.rebuild import rebuild


def sink(graph: Graph) -> Graph:
    """Give every reader of a cast tensor a cast of its own, so that no group stores what its readers make for nothing.

    Tensors are parameters and views of them; a cast that a region or the caller takes stays what it is.
    """
    tensors = set(graph.parameters)
    taken = set(graph.results())
    for op in walk(graph.body):
        if op.regions:
            taken.update(op.operands, *(r.yields for r in op.regions))

    def rewrite(op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
        if op.opcode in VIEWS and op.operands[0] in tensors:
            tensors.add(op.results[0])
        if op.opcode == "cast" and op.operands[0] in tensors and op.results[0] not in taken and op.results[0].type.rank:
            casts[op.results[0]] = (op, operands)
            return op.results
        own = {o: builder.clone(*casts[o]).result for o in dict.fromkeys(operands) if o in casts}
        return builder.clone(op, tuple(own.get(o, o) for o in operands)).results

    casts: dict[Value, tuple[Op, tuple[Value, ...]]] = {}
    return rebuild(graph, rewrite)
