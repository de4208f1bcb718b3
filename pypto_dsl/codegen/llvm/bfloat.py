"""What is known of the f32 values of a Block that come from bf16, so that rounding them back takes no more than it must.

Both facts are used only where leaving out a step gives the same bits, signalling NaNs and NaN payloads included.
"""

from __future__ import annotations

from collections.abc import Mapping
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


BF16_NUMBER = Known.SHORT | Known.EXACT
EVERYTHING = BF16_NUMBER | Known.QUIET

# Operations that give one of their operands, its sign aside.
SELECTING = frozenset({"maximum", "minimum", "abs", "neg", "where", "positive"})
# Operations whose every NaN is an operand's made quiet, or a new one without payload, at every feature level.
ARITHMETIC = frozenset({
    "add", "sub", "mul", "div", "square", "reciprocal", "sqrt", "exp", "exp2", "tanh", "sigmoid", "silu", "gelu", "pow",
})


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
    return Known.SHORT | Known.QUIET if op.name in ARITHMETIC and all(Known.SHORT in o for o in operands) else Known.NOTHING


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
