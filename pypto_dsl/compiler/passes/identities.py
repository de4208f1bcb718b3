"""Identities of single operations that keep every bit: neutral elements, inverses, chains of casts, reshapes and permutations.

A rule looks at one operation whose operands are canonical, and returns the value or the simpler operation that stands for it, or
None. Under IEEE arithmetic `x + 0.0` is no identity (it turns -0 into +0), `x - 0.0`, `x * 1` and `x + (-0.0)` are.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pypto_dsl.compiler.dtypes import F32, F64, DType
from pypto_dsl.compiler.graph import Op, Value
from pypto_dsl.compiler.index import as_index

NEAREST = ("CAST_NONE", "CAST_RINT")  # rounding modes of a cast to a float that round to nearest, ties to even
Rule = Callable[[Op], Value | Op | None]

# Largest and smallest exponents of the float dtypes between which lossless conversions are known: (emin, emax).
EXPONENTS = {"f16": (-14, 15), "bf16": (-126, 127), "f32": (-126, 127), "f64": (-1022, 1023), "f8e4m3": (-6, 8), "f8e5m2": (-14, 15)}


def lossless(source: DType, target: DType) -> bool:
    """Whether every value of ``source`` (subnormals, infinities and NaN included) is one of ``target``."""
    if source == target or source.kind == "bool":
        return target.kind != "block"
    if source.is_integer and target.is_integer:
        return target.range[0] <= source.range[0] and source.range[1] <= target.range[1]
    if source.is_integer and target.kind == "float":
        return source.bits <= target.mantissa and EXPONENTS.get(target.name, (0, 0))[1] > source.bits
    if source.name not in EXPONENTS or target.name not in EXPONENTS:
        return False
    (low, high), (wide_low, wide_high) = EXPONENTS[source.name], EXPONENTS[target.name]
    # the smallest subnormal of the source must not vanish in the target
    smallest, wide_smallest = low - source.mantissa + 1, wide_low - target.mantissa + 1
    return source.mantissa <= target.mantissa and high <= wide_high and smallest >= wide_smallest


def number(value: Value) -> bool | int | float | None:
    """The number of a scalar constant, or that every element of a `full` has."""
    made = value.op
    if made is None or made.opcode not in ("constant", "full"):
        return None
    held = made.attributes["value"]
    return held if isinstance(held, (bool, int, float)) else None


def is_number(value: Value, wanted: float) -> bool:
    """Whether ``value`` is everywhere ``wanted``; a float zero is wanted with its sign, which an integer 0 lands on as +0."""
    held = number(value)
    if held is None or held != wanted:
        return False
    return wanted != 0 or isinstance(wanted, int) or math.copysign(1.0, held) == math.copysign(1.0, wanted)


def unchanged(op: Op, operand: Value) -> Value | None:
    """``operand`` when it has the result's very type: nothing is broadcast, promoted or made strong on the way."""
    return operand if operand.type == op.results[0].type else None


def _add(op: Op) -> Value | None:
    for operand, other in (op.operands, op.operands[::-1]):
        neutral = -0.0 if operand.type.dtype.is_float else 0
        if is_number(other, neutral):
            return unchanged(op, operand)
    return None


def _sub(op: Op) -> Value | None:
    return unchanged(op, op.operands[0]) if is_number(op.operands[1], 0.0) else None


def _mul(op: Op) -> Value | None:
    for operand, other in (op.operands, op.operands[::-1]):
        if is_number(other, 1):
            return unchanged(op, operand)
    return None


def _div(op: Op) -> Value | None:
    return unchanged(op, op.operands[0]) if is_number(op.operands[1], 1) else None


def _twice(op: Op) -> Value | None:
    """neg(neg(x)) is x."""
    made = op.operands[0].op
    return unchanged(op, made.operands[0]) if made is not None and made.opcode == op.opcode else None


def _again(op: Op) -> Value | None:
    """abs(abs(x)), rint(rint(x)), relu(relu(x)): the second changes nothing."""
    made = op.operands[0].op
    return unchanged(op, op.operands[0]) if made is not None and made.opcode == op.opcode else None


def _same(op: Op) -> Value | None:
    """maximum(x, x), minimum(x, x), bitwise_and(x, x) are x."""
    a, b = op.operands
    return unchanged(op, a) if a is b else None


def _where(op: Op) -> Value | None:
    condition, yes, no = op.operands
    if yes is no:
        return unchanged(op, yes)
    held = number(condition)
    return None if held is None else unchanged(op, yes if held else no)


def _cast(op: Op) -> Value | Op | None:
    """A cast to the operand's own dtype, a lossless cast undone, and an extent made in the float dtype that it is wanted in."""
    (operand,) = op.operands
    if (same := unchanged(op, operand)) is not None:
        return same
    made = operand.op
    if made is not None and made.opcode == "extent" and op.results[0].type.dtype in (F32, F64) and op.attributes.get("mode") in NEAREST:
        return Op("extent", (), [op.results[0].type], {**made.attributes, "dtype": op.results[0].type.dtype, "weak": False},
                  span=op.span)
    if made is None or made.opcode != "cast":
        return None
    (source,) = made.operands
    return unchanged(op, source) if lossless(source.type.dtype, operand.type.dtype) else None


def _reshape(op: Op) -> Value | Op | None:
    """A reshape to the shape there is, and the first of two reshapes; tails are compacted and stay."""
    (operand,) = op.operands
    if (same := unchanged(op, operand)) is not None and operand.type.valid is None:
        return same
    made = operand.op
    if made is None or made.opcode != "reshape" or operand.type.valid is not None or made.operands[0].type.valid is not None:
        return None
    attributes = {**op.attributes, "shape": op.results[0].type.shape}
    return _with(op, made.operands[0], attributes)


def _permute(op: Op) -> Value | Op | None:
    """A permutation that moves nothing, and two permutations as one."""
    (operand,) = op.operands
    rank = operand.type.rank
    perm = [p % rank for p in _integers(op.attributes["perm"])]
    if perm == list(range(rank)):
        return unchanged(op, operand)
    made = operand.op
    if made is None or made.opcode != "permute":
        return None
    inner = [p % rank for p in _integers(made.attributes["perm"])]
    return _with(op, made.operands[0], {**op.attributes, "perm": tuple(inner[p] for p in perm)})


def _transpose(op: Op) -> Op:
    """An exchange of two axes, as the permutation that it is."""
    perm = list(range(op.operands[0].type.rank))
    first, second = (axis % len(perm) for axis in _integers((op.attributes["dim0"], op.attributes["dim1"])))
    perm[first], perm[second] = perm[second], perm[first]
    names = [r.name for r in op.results]
    return Op("permute", op.operands, [r.type for r in op.results], {"perm": tuple(perm)}, (), op.span, op.tile, names)


def _matmul(op: Op) -> Op | None:
    """A matrix product of a transposed matrix, as one that reads it transposed: the same sums."""
    for position, flag in enumerate(("a_trans", "b_trans")):
        operand = op.operands[position]
        made, rank = operand.op, operand.type.rank
        if made is None or made.opcode != "permute" or operand.type.valid is not None:
            continue
        if [p % rank for p in _integers(made.attributes["perm"])] != [*range(rank - 2), rank - 1, rank - 2]:
            continue
        operands = tuple(made.operands[0] if i == position else o for i, o in enumerate(op.operands))
        attributes = {**op.attributes, flag: not op.attributes[flag]}
        return Op(op.opcode, operands, [r.type for r in op.results], attributes, (), op.span, op.tile, [r.name for r in op.results])
    return None


def _view(op: Op) -> Value | None:
    """A window that is the whole tensor."""
    offsets: Any = op.attributes["offsets"]
    return unchanged(op, op.operands[0]) if all(as_index(o).constant == 0 for o in offsets) else None


def _clone(op: Op) -> Value | None:
    """Values are never written, so a copy is the value."""
    return unchanged(op, op.operands[0])


def _insert(op: Op) -> Value | None:
    """A write of the whole tensor is the value written."""
    target, value = op.operands
    offsets: Any = op.attributes["offsets"]
    whole = value.type.shape == target.type.shape and value.type.valid is None and target.type.valid is None
    return unchanged(op, value) if whole and all(as_index(o).constant == 0 for o in offsets) else None


def _with(op: Op, operand: Value, attributes: dict[str, Any]) -> Op:
    return Op(op.opcode, (operand,), [r.type for r in op.results], attributes, (), op.span, op.tile, [r.name for r in op.results])


def _integers(values: Any) -> tuple[int, ...]:
    return tuple(values)


IDENTITIES: dict[str, Rule] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "neg": _twice, "abs": _again, "rint": _again, "relu": _again, "maximum": _same,
    "minimum": _same, "bitwise_and": _same, "where": _where, "cast": _cast, "reshape": _reshape, "permute": _permute,
    "transpose": _transpose, "view": _view, "matmul": _matmul, "clone": _clone, "expand_clone": _clone, "insert": _insert,
}
