"""Canonicalization: folding, identities, cast and layout chains, common subexpressions, dead code; linear in the graph, idempotent.

Everything here keeps every bit of every result (law 3): only exactly rounded operations are folded, by the evaluator that the
interpreter runs, and an identity is one for NaN and -0 too.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Builder, Graph, Op, Region, TensorType, Value
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops.evaluate import evaluate, plan
from pypto_dsl.compiler.passes.dead import remove_dead
from pypto_dsl.compiler.passes.identities import IDENTITIES

# Operations whose result is the exact one rounded once (integers: exact modulo 2**N), so that folding gives the run-time bits.
EXACTLY_ROUNDED = frozenset({
    "add", "sub", "mul", "div", "neg", "abs", "maximum", "minimum", "sqrt", "rint", "eq", "ne", "lt", "le", "gt", "ge", "where",
    "bitwise_and", "bitwise_left_shift", "bitwise_right_shift", "cast", "bitcast"})
EXACT_CASTS = ("CAST_NONE", "CAST_TRUNC", "CAST_RINT", "CAST_FLOOR", "CAST_CEIL")
# Operations of which two with equal operands are not the same: each makes its own symbol.
# (an `empty` is a place of its own: two that loops carry must not become one).
UNIQUE = frozenset({"load_scalar", "empty"})


def canonicalize(graph: Graph) -> Graph:
    """The canonical form of a graph: the same bits of every result, with less to compute."""
    while True:
        rewriter = _Rewriter(graph)
        graph = rewriter.run()
        if not rewriter.again:
            return graph


class _Rewriter:
    """Rebuilds a graph once, in order, so that every operand is canonical before its user is looked at."""

    def __init__(self, source: Graph) -> None:
        self.source = source
        self.graph = Graph(source.name, list(source.parameters), dict(source.symbols), Region(), {}, [], dict(source.options),
                           list(source.checks), source.span, dict(source.strides))
        self.values: dict[Value, Value] = {}
        self.known: dict[Any, tuple[Value, ...]] = {}
        self.scopes: list[list[Any]] = []
        self.again = False

    def run(self) -> Graph:
        self.region(self.source.body, self.graph.body)
        self.graph.outputs = {name: self.value(v) for name, v in self.source.outputs.items()}
        self.graph.returns = [self.value(v) for v in self.source.returns]
        self.again |= remove_dead(self.graph)
        return self.graph

    def value(self, old: Value) -> Value:
        return self.values.get(old, old)

    def region(self, source: Region, target: Region) -> None:
        """Rebuild a region. What is computed in it is known in it only; recursion is over nested regions."""
        self.scopes.append([])
        builder = Builder(self.graph, target)
        for op in source.ops:
            operands = tuple(map(self.value, op.operands))
            builder.span, builder.tile = op.span, op.tile
            if op.opcode == "loop":
                made = self.loop(op, operands, builder)
            elif op.opcode == "if":
                made = self.branch(op, operands, builder)
            else:
                made = self.emit(op, operands, builder)
            for old, new in zip(op.results, made, strict=True):
                self.values[old] = new
                if old.name and not new.name:
                    new.name = old.name
        target.yields = [self.value(y) for y in source.yields]
        for key in self.scopes.pop():
            del self.known[key]

    # ---- single operations ---------------------------------------------------------------------------------------------------

    def emit(self, op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
        """The values that stand for an operation: folded, simplified, known already, or recorded."""
        made = Op(op.opcode, operands, [r.type for r in op.results], op.attributes, (), op.span, op.tile, [r.name for r in op.results])
        while True:
            folded = _fold(made, self.graph)
            if folded is not None:
                made = folded
            rule = IDENTITIES.get(made.opcode)
            simpler = rule(made) if rule is not None else None
            if simpler is None:
                break
            if isinstance(simpler, Value):
                return (simpler,)
            made = simpler
        if made.opcode in UNIQUE:
            builder.region.ops.append(made)
            return made.results
        key = _key(made)
        known = self.known.get(key)
        if known is not None:
            return known
        builder.region.ops.append(made)
        self.known[key] = made.results
        self.scopes[-1].append(key)
        return made.results

    # ---- regions -------------------------------------------------------------------------------------------------------------

    def loop(self, op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
        """A loop without the carried values that never change; a loop without turns is its operands."""
        (region,) = op.regions
        carried = list(zip(operands, region.arguments, region.yields, op.results, strict=True))
        if _trips(op) == 0 and all(_same_type(o, r) for o, _, _, r in carried):
            return operands
        constant = {a for o, a, y, r in carried if y is a and _same_type(o, a) and _same_type(o, r)}
        inner = Region()
        for operand, argument, _, _ in carried:
            if argument in constant:
                self.values[argument] = operand
            else:
                self.values[argument] = Value(argument.type, argument.name)
                inner.arguments.append(self.values[argument])
        self.region(region, inner)
        kept = [(o, y, r) for (o, a, _, r), y in zip(carried, inner.yields, strict=True) if a not in constant]
        inner.yields = [y for _, y, _ in kept]
        self.again |= any(y is a and _same_type(o, a) for (o, y, _), a in zip(kept, inner.arguments, strict=True))
        made = builder.add(op.opcode, [o for o, _, _ in kept], [r.type for _, _, r in kept], op.attributes, (inner,),
                           names=[r.name for _, _, r in kept])
        fresh = iter(made.results)
        return [o if a in constant else next(fresh) for o, a, _, _ in carried]

    def branch(self, op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
        """An if; the body that is taken where its condition is known."""
        condition = operands[0].op
        if condition is not None and condition.opcode == "constant" and self._inlined(op, bool(condition.attributes["value"]), builder):
            taken = op.regions[0 if condition.attributes["value"] else 1]
            return [self.value(y) for y in taken.yields]
        regions = []
        for region in op.regions:
            target = Region()
            self.region(region, target)
            regions.append(target)
        if _chooses_nothing(op, regions):
            return regions[0].yields
        types, names = [r.type for r in op.results], [r.name for r in op.results]
        return builder.add(op.opcode, operands, types, op.attributes, regions, names=names).results

    def _inlined(self, op: Op, condition: bool, builder: Builder) -> bool:
        """Rebuild the taken region in place of its if; False when its values have other types than the results."""
        taken = op.regions[0 if condition else 1]
        if not all(_same_type(y, r) for y, r in zip(taken.yields, op.results, strict=True)):
            return False
        inner = Region()
        self.region(taken, inner)
        builder.region.ops += inner.ops
        return True


def _chooses_nothing(op: Op, regions: Sequence[Region]) -> bool:
    """Whether both regions of an if yield the same values from outside, and read no elements as symbols."""
    first, second = regions
    same = all(a is b and _same_type(a, r) for a, b, r in zip(first.yields, second.yields, op.results, strict=True))
    inside = {r for region in regions for made in region.ops for r in made.results}
    makes_symbols = any(made.opcode == "load_scalar" for region in regions for made in region.ops)
    return same and not makes_symbols and not any(y in inside for y in first.yields)


def _same_type(a: Value, b: Value) -> bool:
    return a.type == b.type


def _trips(op: Op) -> int | None:
    """The number of turns of a loop, when it is known."""
    bounds: list[Any] = [op.attributes.get(k) for k in ("start", "stop", "step")]
    numbers = [as_index(b).constant for b in bounds if isinstance(b, (int, Index))]
    if len(numbers) != 3 or None in numbers:
        return None
    start, stop, step = (n for n in numbers if n is not None)
    return max(0, -((start - stop) // step)) if step else None


# ---- folding ---------------------------------------------------------------------------------------------------------------


def _fold(op: Op, graph: Graph) -> Op | None:
    """A constant in place of an exactly rounded operation on strong scalar constants, or of a known extent.

    NaN results are left to the machine, whose NaN has its own sign and payload.
    """
    if op.opcode == "extent":
        value: Any = op.attributes["value"]
        return None if as_index(value).constant is None else _evaluated(op, graph)
    if op.opcode not in EXACTLY_ROUNDED or op.results[0].type.rank or op.results[0].type.weak:
        return None
    if not all(o.op is not None and o.op.opcode == "constant" and not o.type.weak for o in op.operands):
        return None
    if op.opcode == "cast" and op.attributes.get("mode", "CAST_NONE") not in EXACT_CASTS:
        return None
    return _evaluated(op, graph)


def _evaluated(op: Op, graph: Graph) -> Op | None:
    t = op.results[0].type
    if t.weak or t.dtype.kind == "block" or (t.dtype.is_float and t.dtype.bits < 16):
        return None
    try:
        how = plan(op, graph)
        operands = [evaluate(o.op, plan(o.op, graph), (), {})[0] for o in op.operands if o.op is not None]
        (result,) = evaluate(op, how, operands, {})
    except KernelError:
        return None
    number: Any = result.item() if t.dtype.kind != "float" else float(result)
    if number != number:
        return None
    return Op("constant", (), (TensorType(t.dtype, ()),), {"dtype": t.dtype, "value": number}, span=op.span, names=[op.results[0].name])


# ---- common subexpressions ---------------------------------------------------------------------------------------------------


def _key(op: Op) -> tuple[Any, ...]:
    """Equal for operations that compute the same: opcode, operands by identity, attributes and result types."""
    attributes = tuple((name, exact(value)) for name, value in op.attributes.items())
    return op.opcode, tuple(map(id, op.operands)), attributes, tuple(r.type for r in op.results), op.tile if op.operands else None


def exact(value: Any) -> Any:
    """An attribute as a key under which 0, 0.0, -0.0 and False differ and NaN equals itself."""
    if isinstance(value, tuple):
        return tuple(map(exact, value))
    if isinstance(value, (bool, int, float)):
        return type(value).__name__, np.float64(value).tobytes() if isinstance(value, float) else value
    return value

