"""One operation evaluated by its NumPy reference: operand casts, the meaning in float64, one rounding to the result's dtype.

This is what the interpreter runs and what constant folding computes, so the two cannot differ. A value is an array of its live part;
a weak number that no operation has touched yet is held exactly (float64 or int64) and rounded where it lands.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Graph, Op, TensorType
from pypto_dsl.compiler.ops import reference
from pypto_dsl.compiler.ops.definition import REGISTRY, OpDefinition
from pypto_dsl.compiler.ops.live import BY_FAMILY, BY_NAME
from pypto_dsl.compiler.ops.recording import call_of
from pypto_dsl.compiler.promotion.scalars import misfit

Array = np.ndarray[Any, np.dtype[Any]]

# Operations that read their operands as they are.
UNCONVERTED = frozenset({"constant", "extent", "iota", "full", "cast", "bitcast", "reshape", "permute"})
# Operations that move elements as they are: a window of a tensor of any size costs what the window holds.
MOVED = frozenset({"bitcast", "view", "load_scalar", "gather", "index_select", "gathermask", "scatter_update", "flip", "repeat_interleave"})


@dataclass(frozen=True)
class Plan:
    """How one operation is evaluated: what each operand is cast to, where weak ones land, what the reference's result is rounded to."""

    definition: OpDefinition
    casts: tuple[DType | None, ...]
    landings: tuple[DType | None, ...]
    inside: tuple[DType, ...]


def plan(op: Op, graph: Graph) -> Plan:
    """The plan of an operation of the table, after the op's own dtype rule. Raises what the rule raises."""
    definition = REGISTRY[op.opcode]
    declared = tuple(r.type.dtype for r in op.results)
    if op.opcode in UNCONVERTED or not op.operands:
        kept = (None,) * len(op.operands)
        return Plan(definition, kept, kept, declared)
    typing = definition.types(call_of(op, Graph(graph.name, options=graph.options))).typing
    casts = typing.operand_casts
    inside = typing.compute if typing.rounds_to is not None else declared[0]
    if declared[0].is_float and len({d for d in casts if d.is_float}) > 1:
        # mixed floats are computed from their exact values and rounded once
        casts = tuple(typing.compute if d.is_float else d for d in casts)
        inside = typing.compute
    if op.opcode == "matmul" or len(declared) > 1:
        return Plan(definition, casts, typing.landings, declared)
    return Plan(definition, casts, typing.landings, (inside,))


def evaluate(op: Op, how: Plan, operands: Sequence[Array], symbols: Mapping[str, int]) -> tuple[Array, ...]:
    """The results of an operation over arrays of its operands' dtypes. Raises IndexError for an insert outside its destination."""
    if op.opcode == "constant":
        return (constant(op),)
    results = unrounded(op, how, operands, symbols)
    return tuple(_rounded(r, inside, value.type) for r, inside, value in zip(results, how.inside, op.results, strict=True))


def unrounded(op: Op, how: Plan, operands: Sequence[Array], symbols: Mapping[str, int]) -> tuple[Array, ...]:
    """What the reference makes of the operands before it is rounded to the results' dtypes: floats as float64."""
    arrays = [_operand(op, i, a, how) for i, a in enumerate(operands)]
    dtypes = [target or op.operands[i].type.dtype for i, target in enumerate(how.casts)]
    with np.errstate(all="ignore"):
        wide = [a.astype(np.float64) if d.is_float and op.opcode not in MOVED else a for a, d in zip(arrays, dtypes, strict=True)]
    keywords: dict[str, Any] = {**op.attributes, "symbols": symbols, "dtype": op.results[0].type.dtype, "type": op.results[0].type}
    if dtypes:
        keywords |= {name: _landed(value, dtypes[0]) for name, value in op.attributes.items()}
        keywords["source"] = dtypes[0]
    if op.opcode == "reshape":
        keywords["shape"] = op.results[0].type.live  # the elements of a tail are compacted
    with np.errstate(all="ignore"):
        made = how.definition.meaning(*_placed(op, _aligned(op, how, wide)), **keywords)
    return tuple(np.asarray(r) for r in (made if isinstance(made, tuple) else (made,)))


def _landed(value: Any, dtype: DType) -> Any:
    """An attribute as the operation computes with it: a float beside floats of at most 32 bits is a float of f32."""
    return float(np.float32(value)) if type(value) is float and dtype.is_float and dtype.bits < 64 else value


def constant(op: Op) -> Array:
    """The value of a `constant`: exact when weak, of its dtype when strong."""
    value: Any = op.attributes["value"]
    t = op.results[0].type
    if t.weak:
        return np.asarray(value, np.float64 if t.dtype.is_float else np.int64)
    return reference.round_to(np.asarray(value), t.dtype) if t.dtype.is_float else np.asarray(value, t.dtype.numpy)


def _operand(op: Op, i: int, array: Array, how: Plan) -> Array:
    """Operand ``i`` in the dtype the operation reads it as."""
    t = op.operands[i].type
    target, landing = how.casts[i], how.landings[i]
    if t.weak and t.rank == 0:
        array = _land(op, i, array, landing or t.dtype)
        source = landing or t.dtype
    else:
        source = t.dtype
    return array if target is None or target == source else convert(array, source, target)


def _land(op: Op, i: int, array: Array, landing: DType) -> Array:
    """A weak number as ``landing``; PT204 when a literal does not fit."""
    made = op.operands[i].op
    if made is not None and made.opcode == "constant":
        value: Any = made.attributes["value"]
        if why := misfit(value, landing):
            raise error("PT204", f"the number {value!r} does not land on {landing}: {why}", op.span or made.span)
    source = op.operands[i].type.dtype
    return convert(array, source, landing, exact=array.dtype == np.float64)


def convert(array: Array, source: DType, dtype: DType, exact: bool = False) -> Array:
    """``array`` of dtype ``source`` cast to ``dtype`` by the default mode; ``exact``: its floats are held in float64."""
    if source == dtype and not exact:
        return array
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64) if source.is_float else array
        return np.asarray(reference.cast(wide, dtype=dtype, source=source))


def _placed(op: Op, arrays: Sequence[Array]) -> list[Array | None]:
    """Operands in signature order, None where absent."""
    found: list[Array | None] = list(arrays)
    absent: Any = op.attributes.get("absent", ())
    for position in absent:
        found.insert(position, None)
    return found


def _aligned(op: Op, how: Plan, arrays: list[Array]) -> list[Array]:
    """Operands that broadcast together, cut to their common live extents: an axis stretches by its static extent 1 only."""
    types = [o.type for o in op.operands]
    if all(t.valid is None for t in types) or len(types) < 2:
        return arrays
    if how.definition.family == "matmul":
        return _aligned_matrices(op, types, arrays)
    fixed: int | None = None
    if op.opcode == "concat":
        dim: Any = op.attributes["dim"]
        fixed = dim % types[0].rank - types[0].rank
    elif op.opcode in BY_NAME or how.definition.family in BY_FAMILY:
        return arrays
    return _cut(types, arrays, range(-max(t.rank for t in types), 0), fixed)


def _cut(types: Sequence[TensorType], arrays: Sequence[Array], axes: range, fixed: int | None = None) -> list[Array]:
    cut = list(arrays)
    for axis in axes:
        stretched = [i for i, t in enumerate(types) if t.rank >= -axis and t.shape[axis].constant != 1]
        if axis == fixed or not stretched:
            continue
        common = min(cut[i].shape[axis] for i in stretched)
        for i in stretched:
            cut[i] = _first(cut[i], axis, common)
    return cut


def _first(array: Array, axis: int, count: int) -> Array:
    """The first ``count`` elements along an axis counted from the end."""
    window: Any = (..., slice(0, count), *(slice(None),) * (-axis - 1))
    return np.asarray(array[window])


def _aligned_matrices(op: Op, types: Sequence[TensorType], arrays: Sequence[Array]) -> list[Array]:
    """Matrix operands cut to the common live part of the contracted axis, and of the leading ones."""
    a, b = _cut(types, arrays, range(-max(t.rank for t in types), -2))
    first, second = (-2 if op.attributes.get("a_trans") else -1), (-1 if op.attributes.get("b_trans") else -2)
    depth = min(a.shape[first], b.shape[second])
    return [_first(a, first, depth), _first(b, second, depth)]


def _rounded(value: Array, inside: DType, declared: TensorType) -> Array:
    """The reference's result, rounded once to the dtype it is computed in, then cast to the declared one."""
    dtype = declared.dtype
    exact = reference.round_to(value, inside) if inside.is_float else value.astype(inside.numpy)
    return np.asarray(exact if inside == dtype else convert(exact, inside, dtype))
