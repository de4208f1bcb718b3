"""Promotion made explicit: casts in front of operands, constants landed on their dtype, mixed 16-bit results rounded once.

After this pass every operation's operands have the dtypes it computes on and no value that is not a scalar is weak.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pypto_dsl.compiler.dtypes import BOOL, F32, DType
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Attribute, Builder, Graph, Op, TensorType, Value
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.recording import call_of
from pypto_dsl.compiler.passes.rebuild import rebuild
from pypto_dsl.compiler.promotion.rulesets import rule_set
from pypto_dsl.compiler.promotion.scalars import misfit

# Operations whose operand dtypes are their own business: nothing is inserted around them.
UNTOUCHED = frozenset({"constant", "extent", "iota", "full", "cast", "bitcast", "reshape", "permute"})


def promote(graph: Graph) -> Graph:
    """Insert every cast that the rule set implies. Idempotent.

    Under rules whose masks have the operands' dtype (ttnn) every operation is then restated by the `pypto` rules, with a cast to the
    dtype it was declared with: what follows knows masks as BOOL alone.
    """
    promoted = rebuild(graph, promote_op)
    if not rule_set(graph.rules).results.mask_follows_lhs:
        return promoted
    promoted.options = {**promoted.options, "promotion": "pypto"}
    return rebuild(promoted, _restated)


def _restated(op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
    """A promoted operation as the `pypto` rules type it, and its results cast to the dtypes they had."""
    definition = REGISTRY.get(op.opcode)
    if definition is None or op.opcode in UNTOUCHED or not operands:
        return builder.clone(op, operands).results
    made = Op(op.opcode, operands, [r.type for r in op.results], op.attributes, (), op.span, op.tile)
    found = definition.types(call_of(made, builder.graph))
    if [r.dtype for r in found.results] == [r.type.dtype for r in op.results]:
        return builder.clone(op, operands).results
    converted = [cast_to(o, d, builder) for o, d in zip(operands, found.casts, strict=True)]
    types = [r.type.with_dtype(f.dtype) for r, f in zip(op.results, found.results, strict=True)]
    results = builder.clone(op, converted, types).results
    return [cast_to(value, r.type.dtype, builder) for value, r in zip(results, op.results, strict=True)]


def promote_op(op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
    """One operation over new operands, with its casts."""
    definition = REGISTRY.get(op.opcode)
    if definition is None or op.opcode in UNTOUCHED or not operands:
        # what was weak is strong behind an operand that has become so
        types = [
            TensorType(r.type.dtype, r.type.shape, r.type.weak and all(o.type.weak for o in operands), r.type.valid) for r in op.results
        ]
        return builder.clone(op, operands, types).results
    # by the recorded operands: a weak value's stand-in is strong already, and must not decide anything now
    typing = definition.types(call_of(op, builder.graph)).typing
    declared = op.results[0].type.dtype
    casts, landings = typing.operand_casts, typing.landings
    inside = typing.compute if typing.rounds_to is not None else declared
    floats = {d for d in casts if d.is_float}
    if declared.is_float and len(floats) > 1:  # mixed floats compute from their exact values and round once
        casts = tuple(typing.compute if d.is_float else d for d in casts)
        inside = typing.compute
    converted = tuple(convert(new, old.type.weak, d, landing, builder)
                      for old, new, d, landing in zip(op.operands, operands, casts, landings, strict=True))
    if inside == declared or len(op.results) > 1:
        types = [TensorType(r.type.dtype, r.type.shape, False, r.type.valid) for r in op.results]
        return builder.clone(op, converted, types).results
    if op.opcode == "matmul":  # rounds what it accumulates itself, to the dtype that it now has to be told
        told = {} if casts == tuple(o.type.dtype for o in op.operands) else {"out_dtype": declared}
        return builder.clone(op, converted, attributes=op.attributes_with(**told)).results
    result = op.results[0]
    narrow = builder.add(op.opcode, converted, (result.type.with_dtype(inside),), op.attributes, span=op.span, tile=op.tile).result
    return (cast_to(narrow, declared, builder),)


def convert(value: Value, weak: bool, dtype: DType, landing: DType, builder: Builder) -> Value:
    """``value`` as ``dtype``; a scalar that was recorded as weak is rounded to ``landing`` first."""
    if weak and value.type.rank == 0:
        value = cast_to(value, landing, builder)
    return cast_to(value, dtype, builder)


def cast_to(value: Value, dtype: DType, builder: Builder) -> Value:
    """A strong value of ``dtype``: the value itself, a folded constant, or a cast."""
    if value.type.dtype == dtype and not value.type.weak:
        return value
    if value.op is not None and value.op.opcode == "constant":
        return landed(value.op, dtype, builder)
    attributes: dict[str, Attribute] = {"dtype": dtype, "mode": "CAST_NONE", "satmode": "OFF"}
    return builder.add("cast", (value,), (TensorType(dtype, value.type.shape, False, value.type.valid),), attributes).result


def _rounded(value: int | float, dtype: DType) -> float:
    with np.errstate(over="ignore"):
        return float(np.asarray(float(value), np.float64).astype(dtype.numpy if dtype.bits >= 16 else F32.numpy).astype(np.float64))


def landed(made: Op, dtype: DType, builder: Builder) -> Value:
    """The constant as ``dtype``: rounded to nearest when a float; PT204 when an integer does not fit."""
    value = made.attributes["value"]
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"a constant's value is a number, and this is {value!r}")
    if why := misfit(value, dtype):
        raise error("PT204", f"the number {value!r} does not land on {dtype}: {why}", builder.span or made.span)
    own = made.result.type
    if own.dtype.is_float and not own.weak:
        value = _rounded(value, own.dtype)  # what it is, where more digits were written
    number: bool | int | float
    if dtype is BOOL:
        number = bool(value)
    elif dtype.is_float:
        number = _rounded(value, dtype)
    else:
        number = int(value)
    attributes = {"value": number, "dtype": dtype}
    return builder.add("constant", (), (TensorType(dtype, ()),), attributes, span=made.span).result
