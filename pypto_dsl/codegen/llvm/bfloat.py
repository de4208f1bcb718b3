"""What is known of the f32 values of a Block that come from 16-bit floats, so that rounding them back takes no more than it must.

Everything here is used only where leaving out a step gives the same bits, signalling NaNs and NaN payloads included.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from enum import Flag
from functools import reduce
from operator import and_

import numpy as np

from pypto_dsl.compiler import dtypes
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.tile_ir import nodes as t


class Known(Flag):
    """Facts about one f32 value."""

    NOTHING = 0
    SHORT = 1  # a NaN has no payload beyond bf16's bits
    QUIET = 2  # a NaN is quiet
    EXACT = 4  # a number is a bf16 number
    UNTIED = 8  # a number is not halfway between two bf16 numbers


ROUNDED_TO = "rounded_to"  # the note that `shortened` makes

BF16_NUMBER = Known.SHORT | Known.EXACT | Known.UNTIED
EVERYTHING = BF16_NUMBER | Known.QUIET

# Operations that give one of their operands, its sign aside.
SELECTING = frozenset({"maximum", "minimum", "abs", "neg", "where", "positive"})
# Operations whose every NaN is an operand's made quiet, or a new one without payload, at every feature level.
ARITHMETIC = frozenset({
    "add", "sub", "mul", "div", "square", "reciprocal", "sqrt", "exp", "exp2", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
    "tanh", "sigmoid", "silu", "gelu", "pow", "mac",
})
# Functions of whose `shortened` results none is halfway between bf16 numbers, as 2^-134, halves of subnormal numbers and the sine of one
# large number are.
UNTIED = frozenset({"exp", "log", "log2", "log10", "cos", "tanh"})


def facts(op: t.BlockOp, known: Mapping[str, Known], sources: Mapping[str, DType]) -> Known:
    """What is known of an operation's result, from what is known of the Block's earlier results."""
    operands = [_operand(o, known, sources) for o in op.operands]
    if op.dtype is dtypes.BF16:
        return EVERYTHING if op.name == "cast" else BF16_NUMBER  # rounding makes every NaN quiet
    if op.dtype is not dtypes.F32:
        return Known.NOTHING
    if op.name == "cast":
        return operands[0]
    if op.name in SELECTING:
        return reduce(and_, operands)
    untied = op.name in UNTIED and dict(op.attributes).get(ROUNDED_TO) == dtypes.BF16.name
    fact = Known.UNTIED if untied else Known.NOTHING
    return fact | Known.SHORT | Known.QUIET if op.name in ARITHMETIC and all(Known.SHORT in o for o in operands) else fact


def _operand(operand: t.Operand, known: Mapping[str, Known], sources: Mapping[str, DType]) -> Known:
    if isinstance(operand, str):
        return _by_dtype(sources[operand], known[operand])
    if isinstance(operand, t.ReadBuffer):
        return _by_dtype(operand.buffer.dtype, BF16_NUMBER if operand.buffer.dtype is dtypes.BF16 else Known.NOTHING)
    if not isinstance(operand, t.Constant) or operand.dtype not in (dtypes.F32, dtypes.BF16):
        return _by_dtype(operand.dtype, Known.NOTHING)
    short = int(np.float32(operand.value).view(np.uint32)) & 0xFFFF == 0
    return EVERYTHING if short else Known.SHORT | Known.QUIET if operand.value == operand.value else Known.NOTHING


def _by_dtype(dtype: DType, known: Known) -> Known:
    """Conditions say nothing about a number, and integers have no NaN."""
    if dtype is dtypes.BOOL:
        return EVERYTHING
    return Known.SHORT | Known.QUIET if dtype.is_integer else known


# ---- functions that are rounded ------------------------------------------------------------------------------------------


def shortened(block: t.Block, names: Container[str]) -> t.Block:
    """The Block with a note at functions of 16-bit numbers whose results are only rounded back: `ROUNDED_TO`, the dtype's name."""
    made = {op.result: op for op in block.ops}
    kept = {o for o in (*(w.value for w in block.writes), *(r.value for r in block.reduces)) if isinstance(o, str)}
    readers = _readers(block)
    ops = []
    for op in block.ops:
        operand = made.get(op.operands[0]) if op.name in names and isinstance(op.operands[0], str) else None
        if operand is not None and operand.name == "cast" and op.dtype is dtypes.F32 and op.result not in kept:
            source = operand.operands[0]
            dtype = source.buffer.dtype if isinstance(source, t.ReadBuffer) else made[source].dtype if isinstance(source, str) else None
            if dtype in dtypes.SIXTEEN_BIT_FLOATS and all(_rounds(r) and r.dtype is dtype for r in readers[op.result]):
                op = replace(op, attributes=(*op.attributes, (ROUNDED_TO, dtype.name)))
        ops.append(op)
    return replace(block, ops=tuple(ops))


# ---- roundings that are repeated -----------------------------------------------------------------------------------------

# Operations that a rounding can go through: it is monotone, and what they give is one of their operands, its sign aside.
_MONOTONE = frozenset({"maximum", "minimum", "abs", "neg"})


def rounded_once(block: t.Block) -> t.Block:
    """The Block with a value that is rounded to 16 bits, selected from and rounded so again taken as it is before: a sum and its relu."""
    made = {op.result: op for op in block.ops}
    kept = {o for o in (*(w.value for w in block.writes), *(r.value for r in block.reduces)) if isinstance(o, str)}
    readers = _readers(block)
    ops = []
    for op in block.ops:
        targets = {reader.dtype for reader in readers[op.result] if _rounds(reader)}
        alone = op.result not in kept and all(_rounds(reader) for reader in readers[op.result])
        if op.name in _MONOTONE and op.dtype is dtypes.F32 and alone and len(targets) == 1:
            operands = [_unrounded(o, made, *targets) for o in op.operands]
            op = op if None in operands else replace(op, operands=tuple(o for o in operands if o is not None))
        ops.append(op)
        made[op.result] = op
    return replace(block, ops=_read(ops, kept))


def _readers(block: t.Block) -> dict[str, list[t.BlockOp]]:
    """The operations that read each result."""
    readers: dict[str, list[t.BlockOp]] = {op.result: [] for op in block.ops}
    for op in block.ops:
        for operand in op.operands:
            if isinstance(operand, str):
                readers[operand].append(op)
    return readers


def _rounds(op: t.BlockOp) -> bool:
    """Whether an operation is a rounding to nearest of f32 to 16 bits."""
    nearest = dict(op.attributes).get("mode", "CAST_NONE") in ("CAST_NONE", "CAST_RINT")
    return op.name == "cast" and op.dtype in dtypes.SIXTEEN_BIT_FLOATS and nearest


def _unrounded(operand: t.Operand, made: Mapping[str, t.BlockOp], dtype: DType) -> t.Operand | None:
    """What a number of ``dtype`` in f32 was before it was rounded, itself where it never was; None where it is no such number."""
    if isinstance(operand, t.Constant):
        return operand if float(np.float32(operand.value)) == float(np.asarray(operand.value, dtype.numpy)) else None
    widening = made.get(operand) if isinstance(operand, str) else None
    if widening is None or widening.name != "cast" or widening.dtype is not dtypes.F32:
        return None
    (narrow,) = widening.operands
    if isinstance(narrow, t.ReadBuffer):
        return operand if narrow.buffer.dtype is dtype else None
    rounding = made.get(narrow) if isinstance(narrow, str) else None
    if rounding is None or rounding.dtype is not dtype or not _rounds(rounding):
        return None
    (before,) = rounding.operands
    source = made.get(before) if isinstance(before, str) else None
    return before if source is not None and source.dtype is dtypes.F32 else operand


def _read(ops: list[t.BlockOp], kept: set[str]) -> tuple[t.BlockOp, ...]:
    """The operations whose results somebody reads."""
    wanted, found = set(kept), []
    for op in reversed(ops):
        if op.result in wanted:
            wanted |= {o for o in op.operands if isinstance(o, str)}
            found.append(op)
    return tuple(reversed(found))
