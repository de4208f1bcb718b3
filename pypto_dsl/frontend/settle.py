"""Settles a recorded graph: values of invariant block arguments forwarded, dead operations dropped, equal extents under one name."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Check, Graph, Op, Region, TensorType, Value, walk
from pypto_dsl.compiler.index import Index, as_index, var


def settle(graph: Graph, forwards: Mapping[Value, Value], observed: bool = False) -> None:
    """Bring a graph into its final form, in place; ``observed`` keeps what no result needs.

    Raises PT316 for extents that must agree and are only known inside a loop.
    """
    _forward(graph, forwards)
    if observed:
        return
    prune(graph)
    _unify(graph)
    whole = {op.result: op.operands[1] for op in walk(graph.body) if op.opcode == "insert" and _is_whole(op)}
    if whole:
        _forward(graph, whole)
        prune(graph)


def _is_whole(op: Op) -> bool:
    """Whether a write (an `insert`) replaces every element, so that its value can stand for it."""
    into, value = (o.type for o in op.operands)
    offsets = op.attributes["offsets"]
    return into == value and into.valid is None and all(o == as_index(0) for o in offsets)  # type: ignore[union-attr]


def _forward(graph: Graph, forwards: Mapping[Value, Value]) -> None:
    def resolve(value: Value) -> Value:
        while value in forwards:
            value = forwards[value]
        return value

    if forwards:
        for op in walk(graph.body):
            op.operands = tuple(map(resolve, op.operands))
            for region in op.regions:
                region.yields = list(map(resolve, region.yields))
    graph.outputs = {name: resolve(v) for name, v in graph.outputs.items()}
    graph.returns = list(map(resolve, graph.returns))


# ---- what the results need ---------------------------------------------------------------------------------------------------


def indexes_in(x: Any) -> Iterator[Index]:
    """Every Index in an attribute."""
    stack = [x]
    while stack:
        x = stack.pop()
        if isinstance(x, Index):
            yield x
        elif isinstance(x, tuple):
            stack += x


def _variables(op: Op) -> set[str]:
    found: set[str] = set()
    for attribute in op.attributes.values():
        for index in indexes_in(attribute):
            found |= index.variables()
    for result in op.results:
        for index in (*result.type.shape, *(result.type.valid or ())):
            if index.constant is None:
                found |= index.variables()
    return found


class _Liveness:
    """One backward walk in which a loop or if is live per result."""

    def __init__(self, graph: Graph, forwards: Mapping[Value, Value] | None = None) -> None:
        self.forwards = forwards or {}
        self.slot_of: dict[Value, tuple[Op, int]] = {}
        self.reads: dict[str, Value] = {}
        for op in walk(graph.body):
            if op.regions:
                if op.opcode == "loop":
                    self.slot_of.update({a: (op, k) for k, a in enumerate(op.regions[0].arguments)})
                self.slot_of.update({r: (op, k) for k, r in enumerate(op.results)})
            elif op.opcode == "load_scalar" and op.attributes["symbol"]:
                self.reads[str(op.attributes["symbol"])] = op.result
        self.live: set[Value] = set()
        self.slots: set[tuple[Op, int]] = set()
        self.work = list(graph.results())
        while self.work:
            value = self.work.pop()
            if value not in self.live:
                self.live.add(value)
                self._visit(value)

    def _needs(self, op: Op) -> None:
        if self.reads:
            self.work += [self.reads[n] for n in _variables(op) if n in self.reads]

    def _visit(self, value: Value) -> None:
        if value in self.forwards:
            self.work.append(self.forwards[value])
        slot = self.slot_of.get(value)
        if slot is None:
            if value.op is not None:
                self.work += value.op.operands
                self._needs(value.op)
            return
        if slot in self.slots:
            return
        self.slots.add(slot)
        op, k = slot
        self.work += [r.yields[k] for r in op.regions]
        self.work.append(op.operands[k] if op.opcode == "loop" else op.operands[0])
        self._needs(op)

    def sweep(self, region: Region) -> None:
        """Keep what is live in a region and those below."""
        stack = [region]
        while stack:
            region = stack.pop()
            region.ops = [op for op in region.ops if self._keeps(op)]
            for op in region.ops:
                if not op.regions:
                    continue
                keep = [(op, k) in self.slots for k in range(len(op.results))]
                if op.opcode == "loop":
                    op.operands = tuple(_only(op.operands, keep))
                op.results = tuple(_only(op.results, keep))
                for inner in op.regions:
                    inner.yields, inner.arguments = _only(inner.yields, keep), _only(inner.arguments, keep)
                    stack.append(inner)

    def _keeps(self, op: Op) -> bool:
        if op.regions:
            return any((op, k) in self.slots for k in range(len(op.results)))
        return not self.live.isdisjoint(op.results)


def _only(values: Any, keep: list[bool]) -> list[Value]:
    return [v for v, k in zip(values, keep, strict=False) if k]


def live_values(graph: Graph, forwards: Mapping[Value, Value]) -> set[Value]:
    """The values that a recorded graph's results depend on; ``forwards`` are what a loop's arguments stand for that it only reads."""
    return _Liveness(graph, forwards).live


def prune(graph: Graph) -> None:
    """Drop operations, results of loops and branches, and symbols that no output needs."""
    if _prune_straight(graph):
        return
    liveness = _Liveness(graph)
    liveness.sweep(graph.body)
    loops = {str(op.attributes["index"]) for op in walk(graph.body) if op.opcode == "loop"}
    for symbol in list(graph.symbols.values()):
        unread = symbol.kind == "element" and liveness.reads.get(symbol.name) not in liveness.live
        if unread or (symbol.kind == "loop" and symbol.name not in loops):
            del graph.symbols[symbol.name]


def _prune_straight(graph: Graph) -> bool:
    """`prune` of a graph that is one straight line and reads no elements as extents; False for another, which is left as it is."""
    live = set(graph.results())
    kept = []
    for op in reversed(graph.body.ops):
        if op.regions or op.opcode == "load_scalar":
            return False
        if not live.isdisjoint(op.results):
            live.update(op.operands)
            kept.append(op)
    graph.body.ops = kept[::-1]
    for name in [s.name for s in graph.symbols.values() if s.kind in ("element", "loop")]:
        del graph.symbols[name]
    return True


# ---- extents that must agree -------------------------------------------------------------------------------------------------


def _unify(graph: Graph) -> None:
    """Dimensions that must be equal go under the name of the first; the checks stay and speak of the parameters' own dimensions."""
    known = {n for n, s in graph.symbols.items() if s.kind in ("dim", "scalar")}
    chosen: dict[str, str] = {}
    order = list(graph.symbols)

    def root(name: str) -> str:
        while name in chosen:
            name = chosen[name]
        return name

    kept: dict[tuple[Index, Index], Check] = {}
    for check in graph.checks:
        unknown = (check.left.variables() | check.right.variables()) - known
        if unknown:
            raise error("PT316", f"{check.what} needs `{check.left}` and `{check.right}` to be equal, and `{min(unknown)}` is only known "
                        "inside a loop", check.span, help="give the slices one static extent: x[i:i + 32], with valid_shape for tails")
        left, right = check.left.name, check.right.name
        if left is not None and right is not None:
            a, b = root(left), root(right)
            if a != b:
                first, second = sorted((a, b), key=order.index)
                chosen[second] = first
        kept.setdefault((check.left, check.right), check)
    graph.checks = list(kept.values())
    if chosen:
        _rename(graph, {name: var(root(name)) for name in chosen})


def _rename(graph: Graph, names: dict[str, Index]) -> None:
    values: dict[str, Any] = dict(names)
    kinds: dict[int, tuple[TensorType, TensorType]] = {}  # by identity, which values share: to hash one takes longer than to rename it

    def index(x: Index) -> Index:
        return x if x.constant is not None else x.substitute(values)

    def attribute(x: Any) -> Any:
        if isinstance(x, Index):
            return index(x)
        return tuple(map(attribute, x)) if isinstance(x, tuple) else x

    def renamed(kind: TensorType) -> TensorType:
        if not [e for e in (*kind.shape, *(kind.valid or ())) if e.constant is None]:
            return kind
        shape = tuple(map(index, kind.shape))
        valid = None if kind.valid is None else tuple(map(index, kind.valid))
        return TensorType(kind.dtype, shape, kind.weak, None if valid == shape else valid)

    def retype(value: Value) -> None:
        found = kinds.get(id(value.type))
        if found is None:
            found = kinds[id(value.type)] = value.type, renamed(value.type)
        value.type = found[1]

    for parameter in graph.parameters:
        retype(parameter)
    for op in walk(graph.body):
        for result in op.results:
            retype(result)
        for region in op.regions:
            for argument in region.arguments:
                retype(argument)
        if op.attributes:
            op.attributes = {key: attribute(x) for key, x in op.attributes.items()}


__all__ = ["indexes_in", "live_values", "prune", "settle"]
