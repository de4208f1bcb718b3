"""Relaxation: what `precision="fast"` allows, as far as the target's `[fast]` has it; an exact kernel stays as it is.

1. `unrounded`: a 16-bit float that legalization made of f32 and that is read in f32 again in the same fused group is not rounded between.
   A user's own casts, and what goes through memory, stay rounded.
2. `reciprocals`: a division by a number, by a run-time scalar, by what a row was reduced to, or by a value that divides several, is a
   product with the reciprocal.
3. A product that only a sum or a difference of its group reads is one `mac` with it, where `[fast.bounds]` has that.
4. Every operation that `[fast.bounds]` has on its dtype is taken in that form.

What stands in one group is the fuser's answer, so results may depend on fusion; they depend on nothing else that an exact kernel's do not.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import F32, SIXTEEN_BIT_FLOATS, DType
from pypto_dsl.compiler.graph import EDGE, TIER, Builder, Graph, Op, TensorType, Value, uses, walk
from pypto_dsl.compiler.ops.core import mul
from pypto_dsl.compiler.ops.elementwise import reciprocal
from pypto_dsl.compiler.ops.recording import building, constant
from pypto_dsl.compiler.passes.dead import remove_dead
from pypto_dsl.compiler.passes.fuse import Partition, fuse
from pypto_dsl.compiler.passes.identities import EXPONENTS, number
from pypto_dsl.compiler.passes.promote import cast_to
from pypto_dsl.compiler.passes.rebuild import rebuild
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import Target

FAST = "fast"


@dataclass(frozen=True)
class Relaxation:
    """One thing that was relaxed: what, in words for `explain`, and where the user wrote it."""

    what: str
    span: Span | None


Note = Callable[[str, Op], None]


def relax(graph: Graph, target: Target) -> Graph:
    """``graph`` with what its precision and the target allow."""
    return relaxed(graph, target)[0]


def relaxed(graph: Graph, target: Target) -> tuple[Graph, list[Relaxation]]:
    """`relax`, and what it did in the order of the operations of each of its steps."""
    has, found = target.table(FAST), list[Relaxation]()
    if not graph.is_fast:
        return graph, found

    def note(what: str, op: Op) -> None:
        found.append(Relaxation(what, op.span))

    if has.get("unrounded"):
        graph = _unrounded(graph, note)
    if has.get("reciprocals"):
        graph = _reciprocals(graph, frozenset(has["reciprocals"]), note)
    if has.get("bounds"):
        graph = _contracted(graph, has["bounds"], note)
        graph = _by_tier(graph, has["bounds"], note)
    return graph, found


def _named(name: str, value: Value) -> str:
    """A value by the user's name for it, or by what makes it."""
    return f"`{name}`" if name else f"a result of {value.op.opcode}" if value.op is not None else "an argument"


def _together(partition: Partition, first: Value, second: Value) -> bool:
    """Whether two values are computed in one group, or where they are read."""
    groups = [partition.owner.get(v) for v in (first, second) if v not in partition.cloned]
    return None not in groups and len(set(groups)) <= 1


# ---- 16-bit floats -------------------------------------------------------------------------------------------------------------


def _unrounded(graph: Graph, note: Note) -> Graph:
    partition = fuse(graph)
    told: set[Value] = set()

    def rounded(old: Value, new: Value, reader: Op) -> bool:
        """Whether a value is rounded only at the edge of a user's operation, for a reader in its group."""
        made = new.op
        edge = made is not None and made.opcode == "cast" and bool(made.attributes.get(EDGE))
        return edge and new.type.dtype in SIXTEEN_BIT_FLOATS and _together(partition, old, reader.results[0])

    def before(old: Value, new: Value) -> Value:
        """What a rounded value was made of."""
        assert new.op is not None
        if old not in told:
            told.add(old)
            note(f"{_named(old.name, new.op.operands[0])} stays f32 and is not rounded to {new.type.dtype}", new.op)
        return new.op.operands[0]

    def rewrite(op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
        pairs = list(zip(op.operands, operands, strict=True))
        if op.opcode == "cast" and op.results[0].type.dtype is F32 and rounded(*pairs[0], op):
            return (before(*pairs[0]),)
        if op.opcode == "where" and op.results[0].type.dtype in SIXTEEN_BIT_FLOATS and any(rounded(*p, op) for p in pairs[1:]):
            wide = [before(*p) if rounded(*p, op) else cast_to(p[1], F32, builder) for p in pairs[1:]]
            chosen = builder.clone(op, (operands[0], *wide), [_wide(op.results[0].type)]).result
            narrow = cast_to(chosen, op.results[0].type.dtype, builder)
            assert narrow.op is not None
            narrow.op.attributes[EDGE] = True
            return (narrow,)
        return builder.clone(op, operands).results

    return _without_dead(rebuild(graph, rewrite))


def _wide(t: TensorType) -> TensorType:
    return t.with_dtype(F32)


def _without_dead(graph: Graph) -> Graph:
    remove_dead(graph)
    return graph


# ---- divisions -----------------------------------------------------------------------------------------------------------------


def _reciprocals(graph: Graph, dtypes: frozenset[str], note: Note) -> Graph:
    partition = fuse(graph)
    divides: dict[Value, list[Op]] = {}
    for op in walk(graph.body):
        if op.opcode == "div":
            divides.setdefault(op.operands[1], []).append(op)
    made: dict[tuple[int, Value], Value] = {}  # by region, so that a reciprocal stands where it may be read

    def again(op: Op) -> bool:
        """Whether the divisor is made once for several quotients: it is smaller than they are, or divides more than one of them."""
        divisor, result = op.operands[1], op.results[0]
        if divisor in partition.numbers or divisor in partition.cloned:
            return True
        if partition.owner.get(divisor) is not partition.owner.get(result):
            return False
        repeated = [e.constant == 1 != r.constant for e, r in zip(reversed(divisor.type.live), reversed(result.type.live), strict=False)]
        mine = [d for d in divides[divisor] if partition.owner.get(d.results[0]) is partition.owner.get(result)]
        return any(repeated) or divisor.type.rank < result.type.rank or len(mine) > 1

    def rewrite(op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
        dtype = op.results[0].type.dtype
        if op.opcode != "div" or dtype.name not in dtypes or number(operands[0]) is not None:
            return builder.clone(op, operands).results
        x, y = operands
        known = number(y)
        if known is not None and not y.type.rank:
            inverse = _inverse(float(known), dtype)
            if inverse is None:
                return builder.clone(op, operands).results
            note(f"a division by {known} is a product with {inverse:.9g}", op)
            with building(builder):
                return (mul(x, constant(inverse, builder, dtype)),)
        if not again(op):
            return builder.clone(op, operands).results
        note(f"a division by {_named(op.operands[1].name, y)} is a product with its reciprocal", op)
        key = (id(builder.region), y)
        with building(builder):
            if key not in made:
                made[key] = reciprocal(y)
            return (mul(x, made[key]),)

    return rebuild(graph, rewrite)


def _inverse(divisor: float, dtype: DType) -> float | None:
    """The reciprocal of a number in ``dtype``, when both are normal."""
    smallest = 2.0 ** EXPONENTS[dtype.name][0]
    if not smallest <= abs(divisor) <= 1 / smallest:
        return None
    return float(np.asarray(1 / divisor, dtype.numpy))


# ---- products and sums -----------------------------------------------------------------------------------------------------------


def _contracted(graph: Graph, bounds: Mapping[str, Any], note: Note) -> Graph:
    partition, readers = fuse(graph), uses(graph)
    results = set(graph.results())

    def product(old: Value, reader: Op) -> bool:
        """Whether a value is a product that nothing but ``reader`` reads, in the same group and of the same shape."""
        alone = old.op is not None and old.op.opcode in ("mul", "square") and len(readers[old]) == 1 and old not in results
        return (alone and old.type == reader.results[0].type and old in partition.owner
                and _together(partition, old, reader.results[0]) and reader.operands[0] is not reader.operands[1])

    def rewrite(op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
        t = op.results[0].type if op.results else None
        if t is None or op.opcode not in ("add", "sub") or "mac" not in bounds.get(t.dtype.name, ()):
            return builder.clone(op, operands).results
        at = next((i for i, old in enumerate(op.operands) if product(old, op)), None)
        if at is None:
            return builder.clone(op, operands).results
        factors = operands[at].op
        assert factors is not None
        a, b = factors.operands if factors.opcode == "mul" else factors.operands * 2
        rest = operands[1 - at]
        if op.opcode == "sub":
            a, rest = (_negated(a, builder), rest) if at == 1 else (a, _negated(rest, builder))
        note(f"{factors.opcode} and {op.opcode} round once, as one multiply-add", op)
        return builder.add("mac", (a, b, rest), (t,), {TIER: FAST}, names=[op.results[0].name]).results

    return _without_dead(rebuild(graph, rewrite))


def _negated(value: Value, builder: Builder) -> Value:
    known = number(value)
    if known is not None and value.type.rank == 0:
        return constant(-float(known), builder, value.type.dtype)
    return builder.add("neg", (value,), (value.type,)).result


# ---- cheaper forms ---------------------------------------------------------------------------------------------------------------


def _by_tier(graph: Graph, bounds: Mapping[str, Any], note: Note) -> Graph:
    def rewrite(op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
        own = bounds.get(op.results[0].type.dtype.name, {}).get(op.opcode) if op.results else None
        if own is None or TIER in op.attributes:
            return builder.clone(op, operands).results
        note(f"{op.opcode} within {own:g} ulp", op)
        return builder.clone(op, operands, attributes=op.attributes_with(**{TIER: FAST})).results

    return rebuild(graph, rewrite)
