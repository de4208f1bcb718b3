"""Liveness over regions: when the old content of a tensor is dead, for deciding what may happen in place."""
from __future__ import annotations

from typing import cast

from pypto_dsl.compiler.graph import Graph, Op, Region, Value, walk
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.passes.fuse import VIEWS


class Liveness:
    """Positions of operations in recorded order, readers of values, and the region nest."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.results = frozenset(graph.results())
        self.position: dict[Op, int] = {}
        self.element_reads: dict[str, int] = {}  # symbols that are elements, and where they are read
        self.region_of: dict[Op, Region] = {}
        self.owner_of: dict[Region, Op] = {}
        self.home: dict[Value, Region] = dict.fromkeys(graph.parameters, graph.body)
        self.reads: dict[Value, list[Op]] = {}
        self.yielded: dict[Value, list[Region]] = {}
        self.views: dict[Value, list[Value]] = {}
        for i, op in enumerate(walk(graph.body)):
            self.position[op] = i
            if op.opcode == "load_scalar" and op.attributes.get("symbol"):
                self.element_reads[str(op.attributes["symbol"])] = i
            for operand in op.operands:
                self.reads.setdefault(operand, []).append(op)
            if op.opcode in VIEWS:
                self.views.setdefault(op.operands[0], []).append(op.results[0])
        stack = [graph.body]
        while stack:
            region = stack.pop()
            for argument in region.arguments:
                self.home[argument] = region
            for value in region.yields:
                self.yielded.setdefault(value, []).append(region)
            for op in region.ops:
                self.region_of[op] = region
                for value in op.results:
                    self.home[value] = region
                for inner in op.regions:
                    self.owner_of[inner] = op
                    stack.append(inner)

    def is_read(self, value: Value) -> bool:
        """Whether anything reads the value, as operand, yield or result."""
        return bool(self.reads.get(value) or self.yielded.get(value)) or value in self.results

    def aliases(self, value: Value) -> set[Value]:
        """The value and every view of it."""
        found, work = {value}, [value]
        while work:
            for view in self.views.get(work.pop(), ()):
                if view not in found:
                    found.add(view)
                    work.append(view)
        return found

    def readers(self, values: set[Value]) -> list[Op]:
        """Operations that read any of the values, in order."""
        found = {op: None for v in values for op in self.reads.get(v, ())}
        return sorted(found, key=lambda o: self.position[o])

    def _end(self, op: Op) -> int:
        """The position of the last operation inside an operation."""
        last = self.position[op]
        stack = [op]
        while stack:
            for region in stack.pop().regions:
                for inner in region.ops:
                    last = max(last, self.position[inner])
                    stack.append(inner)
        return last

    def dead_after(self, value: Value, op: Op) -> bool:
        """Whether nobody needs the value or a view of it once ``op`` has begun (``op`` itself aside)."""
        home = self.home.get(value, self.graph.body)
        region = self.region_of[op]
        while region is not home:
            owner = self.owner_of.get(region)
            if owner is None:
                return False
            if owner.opcode == "loop":
                return False  # the next turn needs it
            region = self.region_of[owner]
        seen = self.aliases(value)
        if not seen.isdisjoint(self.results):
            return False
        end = self._end(op)
        exclusive = self._other_branches(op)
        for reader in self.readers(seen):
            at = self.position[reader]
            if reader is op or at < self.position[op] or reader.opcode in VIEWS or reader in exclusive:
                continue
            if at <= end and op.opcode == "if":
                continue  # writes inside a branch decide for themselves
            return False
        return not any(self._leaves(v, r, op) for v in seen for r in self.yielded.get(v, ()))

    def _leaves(self, value: Value, region: Region, op: Op) -> bool:
        """Whether a yield hands the old value on although ``op`` has overwritten it."""
        owner = self.owner_of.get(region)
        if owner is op:
            return False  # the operation itself yields it: an unchanged carried value
        inside = self.region_of[op]
        while inside is not region:
            above = self.owner_of.get(inside)
            if above is None:
                return owner is not None and not self._exclusive(region, op)
            inside = self.region_of[above]
        return True

    def _exclusive(self, region: Region, op: Op) -> bool:
        """Whether ``region`` is another branch of a branch that ``op`` stands in."""
        owner = self.owner_of.get(region)
        if owner is None or owner.opcode != "if":
            return False
        inside = self.region_of[op]
        while inside is not self.graph.body:
            above = self.owner_of[inside]
            if above is owner:
                return inside is not region
            inside = self.region_of[above]
        return False

    def _other_branches(self, op: Op) -> set[Op]:
        """Operations in branches that exclude the one ``op`` is in."""
        found: set[Op] = set()
        inside = self.region_of[op]
        while inside in self.owner_of:
            owner = self.owner_of[inside]
            if owner.opcode == "if":
                for region in owner.regions:
                    if region is not inside:
                        found.update(walk(region))
            inside = self.region_of[owner]
        return found

    def read_from(self, values: set[Value], start: Op, stop: Op | None, region: Region | None = None) -> list[Op]:
        """Operations that read any of the values (or views) from ``start`` up to ``stop`` (excluded; None: to the region's end)."""
        seen: set[Value] = set()
        for value in values:
            seen |= self.aliases(value)
        begin = self.position[start]
        if stop is not None:
            end = self.position[stop]
        else:
            body = region.ops if region is not None else self.graph.body.ops
            end = max((self._end(o) for o in body), default=begin) + 1
        found = [r for r in self.readers(seen) if begin <= self.position[r] < end and r.opcode not in VIEWS]
        if stop is None and region is not None and seen & set(region.yields):
            found.append(self.owner_of[region])
        return found


def disjoint(a: Op, b: Op) -> bool:
    """Whether two writes into tensors of one shape provably touch no common element."""
    for at_a, at_b, extent_a, extent_b in zip(_offsets(a), _offsets(b), a.operands[1].type.live, b.operands[1].type.live, strict=True):
        for gap in (at_b - at_a - extent_a, at_a - at_b - extent_b):
            if gap.constant is not None and gap.constant >= 0:
                return True
    return False


def _offsets(op: Op) -> tuple[Index, ...]:
    return tuple(as_index(o) for o in cast("tuple[Index | int, ...]", op.attributes["offsets"]))
