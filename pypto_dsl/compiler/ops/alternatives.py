"""Primitives in terms of other primitives: exact ways that `legalize` takes where a target lacks an operation on a dtype.

An alternative means the same bit for bit, or stays within the operation's own bound; `requires` names operations that the target must have
itself, with the dtypes of operands and result. The graph of alternatives and expansions together is acyclic.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pypto_dsl.compiler.dtypes import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, DType
from pypto_dsl.compiler.graph import Attribute
from pypto_dsl.compiler.index import as_index
from pypto_dsl.compiler.ops import core
from pypto_dsl.compiler.ops.core import (
    add,
    amax,
    bitcast,
    bitwise_and,
    bitwise_left_shift,
    bitwise_right_shift,
    cast,
    div,
    eq,
    full,
    ge,
    gt,
    iota,
    lt,
    matmul,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    pow,
    prod,
    reshape,
    sub,
    where,
)
from pypto_dsl.compiler.ops.core import sum as sum_
from pypto_dsl.compiler.ops.definition import Call, Tensor
from pypto_dsl.compiler.ops.floats import number
from pypto_dsl.compiler.ops.layout import insert, view
from pypto_dsl.compiler.ops.logical import bitwise_not, logical_or
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


def _of_shorts(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction in INT32, modulo 2**16."""
    return lambda x, dim=None, keepdim=False: cast(function(cast(x, I32), dim, keepdim), I16)


def _part(x: Tensor, axis: int, begin: int, extent: int) -> Tensor:
    """The elements begin .. begin + extent along an axis."""
    shape = tuple(as_index(extent) if a == axis else e for a, e in enumerate(x.type.shape))
    return view(x, shape, tuple(as_index(begin if a == axis else 0) for a in range(x.type.rank)))


def _padded(x: Tensor, axis: int, begin: int, extent: int, value: float) -> Tensor:
    """``x`` at ``begin`` of an axis of ``extent`` elements, the others ``value``."""
    shape = tuple(as_index(extent) if a == axis else e for a, e in enumerate(x.type.shape))
    return insert(full(shape, value, x.type.dtype), x, tuple(as_index(begin if a == axis else 0) for a in range(x.type.rank)))


def _element(x: Tensor, axis: int, at: int) -> Tensor:
    """One element of an axis, of extent 1: the largest where the others are the least that there is."""
    dtype = x.type.dtype
    least = float("-inf") if dtype.is_float else dtype.range[0]
    return amax(where(eq(iota(x.type.shape, axis, I32), at), x, number(least, dtype)), axis, True)


def _product(x: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """The halves of an axis are multiplied until two elements are left. No part is narrower: devices copy no single columns."""
    given = tuple(range(x.type.rank)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    axes = [d % x.type.rank for d in given if isinstance(d, int)]
    kept = tuple(e for a, e in enumerate(x.type.shape) if a not in axes)
    for axis in axes:
        extent = x.type.shape[axis].constant or 1
        while extent > 2:
            if extent % 2:
                x = _padded(x, axis, 0, extent + 1, 1)
            extent = (extent + 1) // 2
            x = mul(_part(x, axis, 0, extent), _part(x, axis, extent, extent))
        if extent == 2:
            x = mul(_element(x, axis, 0), _element(x, axis, 1))
    return x if keepdim else reshape(x, kept)


def _running(function: Callable[..., Any], neutral: float) -> Callable[..., Any]:
    """A scan in steps of 1, 2, 4 and so on: each element joins the one that lies so far before it."""

    def scan(x: Tensor, dim: int = 0) -> Tensor:
        axis, step = dim % x.type.rank, 1
        extent = x.type.shape[axis].constant or 1
        room = extent + (extent > 1 and (extent - 1) & (extent - 2) == 0)  # so that no step leaves a part of one element
        joined = x if room == extent else _padded(x, axis, 0, room, neutral)
        while step < extent:
            joined = function(joined, _padded(_part(joined, axis, 0, room - step), axis, step, room, neutral))
            step *= 2
        return joined if room == extent else _part(joined, axis, 0, extent)

    return scan


# A scan in steps rounds log2(n) times, half an ulp each: within the 4 ulp of running sums for so many terms.
SCANNED = 1 << 8


def _known_extents(call: Call) -> bool:
    found = call.types[0]
    shape = found.static_shape if found.valid is None and found.rank else None
    return shape is not None and min(shape) > 0


def _short_scan(call: Call) -> bool:
    dim = call.attributes["dim"]
    return _known_extents(call) and isinstance(dim, int) and (call.types[0].shape[dim].constant or 0) <= SCANNED


def _byte(x: Tensor, dtype: DType, mode: str = "CAST_NONE") -> Tensor:
    """A float as an integer of 8 bits by way of INT32 and FP16, both exact there: clamped before it is rounded, NaN as 0."""
    low, high = dtype.range
    bounded = minimum(maximum(where(eq(x, x), x, 0.0), float(low)), float(high))
    return cast(cast(cast(cast(bounded, I32, mode), F32), F16), dtype, "CAST_RINT")


def _low_bits(x: Tensor, dtype: DType) -> Tensor:
    """An integer modulo 2**8 or 2**16, by way of floats that hold every integer of that width."""
    above = 8 * (x.type.dtype.itemsize - dtype.itemsize)
    kept = bitwise_and(x, dtype.range[1]) if dtype in (U8, U16) else bitwise_right_shift(bitwise_left_shift(x, above), above)
    exact = cast(kept, F32)
    return cast(cast(exact, F16) if dtype.itemsize == 1 else exact, dtype, "CAST_RINT")


def _in_sixteen_bits(function: Callable[..., Any]) -> Alternative:
    """An operation on bytes in INT16, which holds both kinds, and the low byte of its result."""
    return Alternative(lambda *x: cast(function(*(cast(a, I16) for a in x)), x[0].type.dtype), BYTES, requires=HALF_HOLDS_BYTES)


def _in_floats(function: Callable[..., Any], dtypes: tuple[DType, ...], requires: tuple[tuple[str, DType, DType], ...]) -> Alternative:
    """A comparison of short integers as one of floats, which hold them."""
    return Alternative(lambda a, b: function(cast(a, F32), cast(b, F32)), dtypes, requires=requires)


def _largest_short(x: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """f32 holds every integer of 16 bits."""
    return cast(amax(cast(x, F32), dim, keepdim), x.type.dtype, "CAST_RINT")


def _by_bits_of_counts(shift: Callable[..., Any], fills: bool) -> tuple[Alternative, ...]:
    """Shifts whose counts differ by element: by 1, 2, 4 and so on where the count has that bit.

    ``fills`` says that counts outside [0, width) give the sign's fill, which a shift by all bits but one is; else they give 0.
    """

    def shifted(x: Tensor, count: Tensor) -> Tensor:
        width = 8 * x.type.dtype.itemsize
        beyond = shift(x, width - 1) if fills else 0
        inside = x
        for bit in (1 << k for k in range(width.bit_length() - 1)):
            inside = where(ne(bitwise_and(count, bit), 0), shift(inside, bit), inside)
        return where(logical_or(lt(count, 0), ge(count, width)), beyond, inside)

    name = "bitwise_right_shift" if fills else "bitwise_left_shift"
    return tuple(Alternative(shifted, (integer,), requires=((name, integer, integer),)) for integer in (I16, I32))


def _chosen_bytes(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """FP16 holds every byte."""
    return cast(where(condition, cast(a, F16), cast(b, F16)), b.type.dtype, "CAST_RINT")


def _chosen_bits(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """A choice keeps the bits of what is chosen, whatever they mean."""
    return bitcast(where(condition, bitcast(a, F16), bitcast(b, F16)), b.type.dtype)


def _same_dtype(call: Call) -> bool:
    return call.attributes["dtype"] is call.types[0].dtype


BYTES: tuple[DType, ...] = (I8, U8)
SHORT = ("add", "sub", "mul", "maximum", "minimum")  # right on their low bytes in INT16
HALF_HOLDS_BYTES = (("cast", I8, F16), ("cast", U8, F16))
SINGLE_HOLDS_SHORT = (("cast", I16, F32),)

def _pieces(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """An f32 tensor for products in bf16: its leading 8 bits, and three parts (8 bits, the next 8, the rest) whose sum is x, or 0 where x
    is not finite, since an infinity times another operand's empty part would be NaN."""
    finite = where(eq(sub(x, x), 0.0), x, 0.0)
    high = cast(finite, BF16, "CAST_TRUNC")
    rest = sub(finite, cast(high, F32))
    middle = cast(rest, BF16)
    low = cast(sub(rest, cast(middle, F32)), BF16)
    return cast(x, BF16, "CAST_TRUNC"), high, middle, low


def _product_of_pieces(a: Tensor, b: Tensor, a_trans: bool = False, b_trans: bool = False, **_: Attribute) -> Tensor:
    """A product of f32 as six of bf16, added from the smallest: what is left out is below 2**-22 of the product of the magnitudes.

    Parts of operands below 2**-110 fall out of bf16's range, and count as 0.
    """
    (top_a, high_a, middle_a, low_a), (top_b, high_b, middle_b, low_b) = _pieces(a), _pieces(b)
    smallest = ((high_a, low_b), (middle_a, middle_b), (low_a, high_b))
    pairs = (*smallest, (high_a, middle_b), (middle_a, high_b), (top_a, top_b))
    products = [matmul(x, y, F32, a_trans, b_trans) for x, y in pairs]
    return reduce(add, products)


def _product_of_bytes(a: Tensor, b: Tensor, a_trans: bool = False, b_trans: bool = False, **_: Attribute) -> Tensor:
    """A product of integers of 8 bits, in bf16 and exact: every sum stays below 2**24."""
    wide = [cast(cast(x, F16), F32) for x in (a, b)]
    return cast(matmul(cast(wide[0], BF16), cast(wide[1], BF16), F32, a_trans, b_trans), I32, "CAST_RINT")


BYTE_TERMS = 1 << 10  # products of up to 2**14 each


def _few_products(call: Call) -> bool:
    depth = call.types[0].shape[-2 if call.attributes["a_trans"] else -1].constant
    return depth is not None and depth <= BYTE_TERMS


ALTERNATIVES: dict[str, tuple[Alternative, ...]] = {
    "amin": (Alternative(_minimum_along, (*FLOATS, *INTEGERS)),),
    "amax": (Alternative(_largest_integer, (I32,)),
             Alternative(_largest_short, (I16,), requires=SINGLE_HOLDS_SHORT),
             Alternative(_largest_short, BYTES, requires=HALF_HOLDS_BYTES)),
    "sum": (Alternative(_sum_of_integers, (I32,), holds=_few_terms), Alternative(_of_shorts(sum_), (I16,), (I16,), SINGLE_HOLDS_SHORT)),
    **{name: (_in_sixteen_bits(getattr(core, name)),) for name in SHORT},
    "bitwise_left_shift": (_in_sixteen_bits(bitwise_left_shift), *_by_bits_of_counts(bitwise_left_shift, fills=False)),
    "bitwise_right_shift": (_in_sixteen_bits(bitwise_right_shift), *_by_bits_of_counts(bitwise_right_shift, fills=True)),
    "pow": (Alternative(lambda x, n: cast(pow(cast(x, I32), cast(n, I32)), x.type.dtype), (I8, I16, U8),
                        requires=(("pow", I32, I32), *SINGLE_HOLDS_SHORT)),),
    "prod": (Alternative(_product, (F32, I32), (F32, I32), (("view", F32, F32),), _known_extents),
             Alternative(_of_shorts(prod), (I16,), (I16,), SINGLE_HOLDS_SHORT)),
    "cumsum": (Alternative(_running(add, -0.0), (F32,), (F32,), (("view", F32, F32),), _short_scan),),
    "cumprod": (Alternative(_running(mul, 1.0), (F32,), (F32,), (("view", F32, F32),), _short_scan),),
    "neg": (Alternative(lambda x: sub(0, x), INTEGERS),),
    "abs": (Alternative(lambda x: maximum(x, neg(x)), SIGNED), Alternative(lambda x: maximum(x, 0), (U8,))),
    "tan": (Alternative(lambda x: div(sin(x), cos(x)), (F32,), requires=(("sin", F32, F32), ("cos", F32, F32))),),
    "bitcast": (Alternative(lambda x, dtype: cast(x, dtype), (*FLOATS, F16, BF16, *INTEGERS), holds=_same_dtype),),
    "matmul": (Alternative(_product_of_pieces, (F32,), (F32,), (("matmul", BF16, F32),)),
               Alternative(_product_of_bytes, (I8,), (I32,), (("matmul", BF16, F32),), _few_products)),
    # masks
    "bitwise_and": (Alternative(lambda a, b: gt(mul(_number(a), _number(b)), 0.0), (BOOL,)), _in_sixteen_bits(bitwise_and)),
    "where": (Alternative(lambda c, a, b: gt(where(c, _number(a), _number(b)), 0.0), (BOOL,)),
              Alternative(_chosen_bytes, BYTES, requires=HALF_HOLDS_BYTES),
              Alternative(_chosen_bits, (I16,), requires=(("bitcast", I16, F16), ("bitcast", F16, I16))),
              Alternative(lambda c, a, b: add(b, mul(sub(a, b), cast(c, b.type.dtype))), INTEGERS)),
    **{name: (_compared(getattr(core, name)),
              _in_floats(getattr(core, name), (I16,), SINGLE_HOLDS_SHORT),
              _in_floats(getattr(core, name), BYTES, HALF_HOLDS_BYTES)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "cast": (Alternative(lambda x: ne(x, 0), (F16, BF16, *FLOATS, *INTEGERS), (BOOL,)),
             *(Alternative(_byte, (F32,), (byte,), (("cast", F16, byte),)) for byte in BYTES),
             *(Alternative(lambda x, dtype: bitcast(x, dtype), (a,), (b,), (("bitcast", a, b),))
               for a, b in ((I8, U8), (U8, I8), (I16, U16), (U16, I16), (I32, U32), (U32, I32))),
             Alternative(_low_bits, (I16, I32), BYTES, HALF_HOLDS_BYTES),
             Alternative(_low_bits, (I32,), (I16,), SINGLE_HOLDS_SHORT)),
}
