"""Primitives in terms of other primitives: exact ways that `legalize` takes where a target lacks an operation on a dtype.

An alternative means the same bit for bit, or stays within the operation's own bound; `requires` names operations that the target must have
itself, with the dtypes of operands and result. The graph of alternatives and expansions together is acyclic.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pypto_dsl.compiler.dtypes import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, DType
from pypto_dsl.compiler.graph import Attribute
from pypto_dsl.compiler.ops import core
from pypto_dsl.compiler.ops.core import (
    add,
    amax,
    bitwise_and,
    bitwise_left_shift,
    bitwise_right_shift,
    cast,
    div,
    eq,
    gt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    sub,
    where,
)
from pypto_dsl.compiler.ops.core import sum as sum_
from pypto_dsl.compiler.ops.definition import Call, Tensor
from pypto_dsl.compiler.ops.logical import bitwise_not
from pypto_dsl.compiler.ops.shapes import axes_of, element_count
from pypto_dsl.compiler.ops.trigonometric import cos, sin

FLOATS: tuple[DType, ...] = (F32, F64)
INTEGERS: tuple[DType, ...] = (I8, I16, I32, I64, U8, U16, U32, U64)
SIGNED: tuple[DType, ...] = (I8, I16, I32, I64)


@dataclass(frozen=True)
class Alternative:
    """One way to build an operation: from which dtype of the last operand, to which results, where a target has what it requires.

    ``build`` takes the operands, and by name the attributes that it reads. ``holds`` says on which uses it is right (None: on all).
    """

    build: Callable[..., Any]
    dtypes: tuple[DType, ...]
    results: tuple[DType, ...] | None = None
    requires: tuple[tuple[str, DType, DType], ...] = ()
    holds: Callable[[Call], bool] | None = None

    def fits(self, call: Call, result: DType) -> bool:
        """Whether it stands for this use of the operation."""
        computes = call.types[-1].dtype if call.types else result
        if computes not in self.dtypes or (self.results is not None and result not in self.results):
            return False
        return self.holds is None or self.holds(call)


def _number(mask: Tensor) -> Tensor:
    """A mask as 0 and 1 in f32, on which every target computes."""
    return cast(mask, F32)


def _compared(function: Callable[..., Any]) -> Alternative:
    """A comparison of masks, as one of numbers."""
    return Alternative(lambda a, b: function(_number(a), _number(b)), (BOOL,))


def _minimum_along(x: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """The smallest is what the largest of the mirrored values mirrors: NaN stays, -0 and +0 change places; integers mirror about -1/2."""
    mirror = neg if x.type.dtype.is_float else bitwise_not
    return mirror(amax(mirror(x), dim, keepdim))


def _largest_integer(x: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """The upper halves decide, among equal ones the lower halves; each is exact in f32."""
    high = cast(bitwise_right_shift(x, 16), F32)
    low = cast(bitwise_and(x, 0xFFFF), F32)
    highest = amax(high, dim, True)
    lowest = amax(where(eq(high, highest), low, -1.0), dim, keepdim)
    top = highest if keepdim else amax(high, dim, False)
    return add(bitwise_left_shift(cast(top, I32, "CAST_RINT"), 16), cast(lowest, I32, "CAST_RINT"))


# Partial sums of pieces of 11 bits stay below 2**24, so that f32 holds them, for so many terms.
EXACT_TERMS = 1 << 13


def _few_terms(call: Call) -> bool:
    shape = call.types[0].shape
    count = element_count([shape[a] for a in axes_of(call, call.attributes["dim"], len(shape))]).constant
    return count is not None and count <= EXACT_TERMS


def _sum_of_integers(x: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """Pieces of 11 bits are summed exactly in f32, in whatever order, and put together modulo 2**32."""
    pieces = (bitwise_and(x, 0x7FF), bitwise_and(bitwise_right_shift(x, 11), 0x7FF), bitwise_right_shift(x, 22))
    low, middle, high = (cast(sum_(cast(piece, F32), dim, keepdim), I32, "CAST_RINT") for piece in pieces)
    return add(low, add(bitwise_left_shift(middle, 11), bitwise_left_shift(high, 22)))


def _byte(x: Tensor, dtype: DType, mode: str = "CAST_NONE") -> Tensor:
    """A float as an integer of 8 bits by way of INT32 and FP16, both exact there: clamped before it is rounded, NaN as 0."""
    low, high = dtype.range
    bounded = minimum(maximum(where(eq(x, x), x, 0.0), float(low)), float(high))
    return cast(cast(cast(cast(bounded, I32, mode), F32), F16), dtype, "CAST_RINT")


ALTERNATIVES: dict[str, tuple[Alternative, ...]] = {
    "amin": (Alternative(_minimum_along, (*FLOATS, *INTEGERS)),),
    "amax": (Alternative(_largest_integer, (I32,)),),
    "sum": (Alternative(_sum_of_integers, (I32,), holds=_few_terms),),
    "neg": (Alternative(lambda x: sub(0, x), INTEGERS),),
    "abs": (Alternative(lambda x: maximum(x, neg(x)), SIGNED),),
    "tan": (Alternative(lambda x: div(sin(x), cos(x)), (F32,), requires=(("sin", F32, F32), ("cos", F32, F32))),),
    # masks
    "bitwise_and": (Alternative(lambda a, b: gt(mul(_number(a), _number(b)), 0.0), (BOOL,)),),
    "where": (Alternative(lambda c, a, b: gt(where(c, _number(a), _number(b)), 0.0), (BOOL,)),
              Alternative(lambda c, a, b: add(b, mul(sub(a, b), cast(c, b.type.dtype))), INTEGERS)),
    **{name: (_compared(getattr(core, name)),) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "cast": (Alternative(lambda x: ne(x, 0), (F16, BF16, *FLOATS, *INTEGERS), (BOOL,)),
             *(Alternative(_byte, (F32,), (byte,), (("cast", F16, byte),)) for byte in (I8, U8))),
}
