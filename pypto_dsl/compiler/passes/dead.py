"""Dead code: what no result needs is removed, carried values of loops and results of ifs one by one."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pypto_dsl.compiler.graph import Graph, Op, Region, Value, leaves, walk
from pypto_dsl.compiler.index import Index


def remove_dead(graph: Graph) -> bool:
    """Remove dead operations and slots in place (the graph is the caller's own); whether a slot went, which may uncover more."""
    live = _Live(graph)
    live.mark()
    removed = live.sweep(graph.body)
    made = {str(op.attributes["symbol"]) for op in walk(graph.body) if op.opcode == "load_scalar" and op.attributes.get("symbol")}
    looped = {str(op.attributes["index"]) for op in walk(graph.body) if op.opcode == "loop"}
    graph.symbols = {name: s for name, s in graph.symbols.items()
                     if not (s.kind == "loop" and name not in looped) and not (s.kind == "element" and name not in made)}
    return removed


class _Live:
    """One backward walk over values; a loop or an if is live slot by slot."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.values: set[Value] = set()
        self.ops: set[Op] = set()
        self.arguments: dict[Value, tuple[Op, int]] = {}
        self.owner: dict[Op, Op] = {}
        self.makers: dict[str, Op] = {}
        self.work: list[Value] = []
        for op in walk(graph.body):
            for region in op.regions:
                self.arguments.update((a, (op, i)) for i, a in enumerate(region.arguments))
                self.owner.update((inner, op) for inner in region.ops)
            if op.opcode == "load_scalar" and op.attributes.get("symbol"):
                self.makers[str(op.attributes["symbol"])] = op

    def mark(self) -> None:
        self.work += self.graph.results()
        while self.work:
            value = self.work.pop()
            if value in self.values:
                continue
            self.values.add(value)
            self.symbols((value.type.shape, value.type.valid))
            if value in self.arguments:
                op, slot = self.arguments[value]
                self.slot(op, slot)
            elif value.op is not None:
                self.result(value.op, value)

    def result(self, op: Op, value: Value) -> None:
        if op.regions:
            self.slot(op, op.results.index(value))
        else:
            self.use(op)

    def use(self, op: Op) -> None:
        """An operation without regions, with its operands, symbols and the regions around it."""
        if op in self.ops:
            return
        self.ops.add(op)
        self.work += op.operands
        self.symbols(tuple(op.attributes.values()))
        self.around(op)

    def around(self, op: Op) -> None:
        owner = self.owner.get(op)
        while owner is not None and owner not in self.ops:
            self.ops.add(owner)
            self.symbols(tuple(owner.attributes.values()))
            if owner.opcode == "if":
                self.work += owner.operands
            owner = self.owner.get(owner)

    def slot(self, op: Op, slot: int) -> None:
        """One carried value of a loop, or one result of an if."""
        if op not in self.ops:
            self.ops.add(op)
            self.symbols(tuple(op.attributes.values()))
            self.around(op)
            if op.opcode == "if":
                self.work += op.operands
        self.work += [r.yields[slot] for r in op.regions]
        self.work.append(op.results[slot])
        if op.opcode == "loop":
            self.work += [op.operands[slot], *(r.arguments[slot] for r in op.regions)]

    def symbols(self, data: Any) -> None:
        """Elements that attributes and types mention are read by operations, which are thereby live."""
        if not self.makers:
            return
        for item in leaves(data):
            if isinstance(item, Index):
                for name in item.variables() & self.makers.keys():
                    self.use(self.makers[name])

    def sweep(self, body: Region) -> bool:
        """Keep what is live; whether a slot was removed."""
        removed = False
        regions = [body]
        while regions:
            region = regions.pop()
            region.ops = [op for op in region.ops if op in self.ops]
            for op in region.ops:
                if not op.regions:
                    continue
                kept = [r in self.values for r in op.results]
                if not all(kept):
                    removed = True
                    _drop_slots(op, kept)
                regions += op.regions
        return removed


def _drop_slots(op: Op, kept: Sequence[bool]) -> None:
    op.results = tuple(_only(op.results, kept))
    if op.opcode == "loop":
        op.operands = tuple(_only(op.operands, kept))
    for region in op.regions:
        region.yields = _only(region.yields, kept)
        if op.opcode == "loop":
            region.arguments = _only(region.arguments, kept)


def _only(values: Iterable[Value], kept: Sequence[bool]) -> list[Value]:
    return [v for v, keep in zip(values, kept, strict=True) if keep]
