"""Reductions over several axes, brought to one axis where a kernel could not walk them as one run of memory.

The order of a sum depends on the extents alone: the elements of the reduced axes count in row-major order, wherever they lie. A dense
operand is walked so as it is. Of one that is sliced, permuted, strided, partly live or counted along an axis, the reduced axes are joined
first.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from pypto_dsl.compiler.graph import Builder, Graph, Op, TensorType, Value
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.shapes import reduced_shape
from pypto_dsl.compiler.passes.rebuild import rebuild
from pypto_dsl.compiler.tile_ir.nodes import ReduceKind

# Operations of one operand and axes, which are kernels of their own, and what Tile IR calls them.
REDUCTIONS: dict[str, ReduceKind] = {"sum": "sum", "amax": "max", "amin": "min", "prod": "prod", "any": "any", "all": "all"}
SCATTERED = frozenset({"permute", "view", "iota"})


def join_axes(graph: Graph) -> Graph:
    """Every reduction over one run of neighbouring axes, whose elements lie in order."""
    dense = {p for p in graph.parameters if p.name not in graph.strides}

    def rewrite(op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
        made: Sequence[Value]
        made = [_joined(op, operands[0], builder, dense)] if op.opcode in REDUCTIONS else builder.clone(op, operands).results
        if op.opcode not in SCATTERED and (_computes_here(op) or all(o in dense for o in operands)):
            dense.update(v for v in made if v.type.valid is None)
        return made

    return rebuild(graph, rewrite)


def _computes_here(op: Op) -> bool:
    """Whether the results lie in tensors of their own, whatever the operands are."""
    definition = REGISTRY.get(op.opcode)
    return definition is None or definition.family not in ("elementwise", "compare", "cast", "layout") or op.opcode == "insert"


def _joined(op: Op, operand: Value, builder: Builder, dense: set[Value]) -> Value:
    kind, result = operand.type, op.results[0]
    axes = [a for a in axes_of(op) if kind.shape[a].constant != 1]
    among = [a for a, e in enumerate(kind.shape) if e.constant != 1]
    places = [among.index(a) for a in axes]
    neighbours = places == list(range(places[0], places[0] + len(places))) if places else True
    if len(axes) < 2 or (neighbours and operand in dense):
        return builder.clone(op, (operand,)).result
    kept = [a for a in range(kind.rank) if a not in axes]
    at = sum(a < axes[0] for a in kept) if neighbours else len(kept)
    order = (*kept[:at], *axes, *kept[at:])
    if order != tuple(range(kind.rank)):
        operand = builder.add("permute", (operand,), (_arranged(kind, order),), {"perm": order}).result
    parts = (order[:at], axes, order[at + len(axes):])
    shape, live = (tuple(_product(e, part) if part is parts[1] else e[part[0]] for part in _split(parts)) for e in (kind.shape, kind.live))
    attributes = {"shape": shape} if kind.valid is None else {"shape": shape, "valid": live}
    joined = TensorType(kind.dtype, shape, False, None if live == shape else live)
    operand = builder.add("reshape", (operand,), (joined,), attributes).result
    left = TensorType(result.type.dtype, reduced_shape(shape, (at,), False), False, None)
    if joined.valid is not None and (tail := reduced_shape(joined.live, (at,), False)) != left.shape:
        left = TensorType(left.dtype, left.shape, False, tail)
    made = builder.add(op.opcode, (operand,), (left,), {**op.attributes, "dim": at, "keepdim": False}, names=[result.name]).result
    if left.shape == result.type.shape:
        return made
    return builder.add("reshape", (made,), (result.type,), {"shape": result.type.shape}, names=[result.name]).result


def _split(parts: tuple[Sequence[int], Sequence[int], Sequence[int]]) -> list[Sequence[int]]:
    """Every kept axis alone, the reduced ones together."""
    return [*([a] for a in parts[0]), parts[1], *([a] for a in parts[2])]


def _product(extents: tuple[Index, ...], axes: Sequence[int]) -> Index:
    return prod((extents[a] for a in axes), start=as_index(1))


def _arranged(kind: TensorType, order: tuple[int, ...]) -> TensorType:
    valid = None if kind.valid is None else tuple(kind.valid[a] for a in order)
    return TensorType(kind.dtype, tuple(kind.shape[a] for a in order), False, valid)


def axes_of(op: Op) -> list[int]:
    """The axes that a reduction runs over, ascending."""
    rank, dim = op.operands[0].type.rank, op.attributes.get("dim")
    if dim is None:
        return list(range(rank))
    given = dim if isinstance(dim, tuple) else (dim,)
    return sorted({cast(int, d) % rank for d in given})
