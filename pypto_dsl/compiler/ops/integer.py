"""Division of integers and floats with its roundings, and divisors."""
from __future__ import annotations

import math

import numpy as np

from pypto_dsl.compiler.dtypes import F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, DType
from pypto_dsl.compiler.ops import floats, shapes, typing
from pypto_dsl.compiler.ops.core import abs, add, cast, div, eq, le, lt, mul, ne, neg, sub, where
from pypto_dsl.compiler.ops.definition import Number, Tensor, op
from pypto_dsl.compiler.ops.logical import logical_and, logical_xor
from pypto_dsl.compiler.ops.references import functions
from pypto_dsl.compiler.ops.rounding import floor, trunc

EXACT = "the quotient is corrected by the exact remainder"
# Integers whose quotient a float division and a correction give; 64-bit ones need a division of the target's own.
NARROW: tuple[DType, ...] = (I8, I16, U8, U16)
DIVISIBLE: tuple[DType, ...] = (F32, F64, *NARROW, I32, U32)
# Integers of which `trunc_div` and `fmod` are made by `floor_div`, a target's own or its expansion.
WHOLE: tuple[DType, ...] = (*NARROW, I32, U32, I64, U64)


def _narrow_quotient(a: Tensor, b: Tensor, through: DType) -> Tensor:
    """The truncated quotient by way of a float in which it cannot round up to the next integer (twice the integer's bits and one)."""
    quotient = trunc(div(cast(a, through), cast(b, through)))
    if a.type.dtype in NARROW:  # by way of INT32, because the smallest integer by -1 wraps and a cast from a float saturates
        return cast(cast(quotient, I32, "CAST_RINT"), a.type.dtype)
    return cast(quotient, a.type.dtype, "CAST_RINT")


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    """The truncated quotient of integers, up to one off for INT32, which `trunc_div` corrects; b is not 0.

    INT32: the f32 quotient is off by at most 2**8; the remainder's own quotient corrects it to within one.
    """
    if a.type.dtype in NARROW:
        return _narrow_quotient(a, b, F32)
    if a.type.dtype is U32:
        return _narrow_quotient(a, b, F64)
    first = _narrow_quotient(a, b, F32)
    return add(first, _narrow_quotient(sub(a, mul(first, b)), b, F32))


@op(types=typing.integer_division, shape=shapes.broadcast, reference=functions.floor_div, family="elementwise", bound={"f32": 1},
    derivation="floats: the quotient is rounded before its floor; integers: " + EXACT, dtypes=typing.NUMBERS, expands=DIVISIBLE)
def floor_div(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The quotient rounded down: ``input // other``.

    Integers: with b != 0, ``a == (a // b) * b + a % b``; a zero divisor gives 0 and the smallest integer by -1 wraps. Floats: the floor of
    the exact quotient; a zero divisor gives inf or NaN.
    """
    if input.type.dtype.is_float:
        return _floor_quotient(input, other)
    zero = eq(other, 0)
    divisor = where(zero, 1, other)
    quotient = _quotient(input, divisor)
    rest = sub(input, mul(quotient, divisor))
    if input.type.dtype is I32:
        quotient, rest = _settled(quotient, rest, divisor)
    if input.type.dtype.kind == "uint":
        return where(zero, 0, quotient)
    down = logical_and(ne(rest, 0), logical_xor(lt(rest, 0), lt(divisor, 0)))
    return where(zero, 0, where(down, sub(quotient, 1), quotient))


def _settled(quotient: Tensor, rest: Tensor, divisor: Tensor) -> tuple[Tensor, Tensor]:
    """A quotient that is off by at most one, and its remainder, made right: |rest| < |divisor| afterwards (negative magnitudes, which
    cannot wrap)."""
    size, limit = where(lt(rest, 0), rest, neg(rest)), where(lt(divisor, 0), divisor, neg(divisor))
    off = le(size, limit)
    step = where(logical_xor(lt(rest, 0), lt(divisor, 0)), -1, 1)
    return where(off, add(quotient, step), quotient), where(off, sub(rest, mul(step, divisor)), rest)


def _floor_quotient(a: Tensor, b: Tensor) -> Tensor:
    """floor of the exact quotient of floats: where the rounded one is an integer that the exact one does not reach, one less.

    The error of quotient * divisor is computed exactly (`floats.product_error`), on operands lifted out of the subnormals.
    """
    rounded = div(a, b)
    whole = floor(rounded)
    lift = where(logical_and(lt(abs(a), 2.0**-40), lt(abs(b), 1.0)), 2.0**80, 1.0)
    x, y = mul(a, lift), mul(b, lift)
    product = mul(whole, y)
    excess = sub(sub(x, product), floats.product_error(whole, y, product))
    beyond = logical_and(ne(excess, 0.0), logical_xor(lt(y, 0.0), lt(excess, 0.0)))
    exact_integer = logical_and(eq(rounded, whole), lt(abs(whole), 2.0 ** (floats.layout(a).fraction + 1)))
    made = where(logical_and(exact_integer, beyond), sub(whole, 1.0), whole)
    below = where(logical_xor(lt(a, 0.0), lt(b, 0.0)), -1.0, whole)
    finite = where(floats.is_infinite(b), where(eq(a, 0.0), whole, below), made)
    regular = where(lt(abs(rounded), math.inf), finite, rounded)
    return where(logical_and(floats.is_infinite(a), ne(b, 0.0)), math.nan, regular)


@op(types=typing.integer_division, shape=shapes.broadcast, reference=functions.trunc_div, family="elementwise", bound={"f32": 1},
    derivation="floats: the quotient is rounded before it is cut; integers: " + EXACT, dtypes=typing.NUMBERS,
    expands=(F32, F64, *WHOLE))
def trunc_div(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The quotient without its fraction. A zero divisor gives 0 on integers, inf or NaN on floats."""
    if input.type.dtype.is_float:
        magnitude = floor_div(abs(input), abs(other))
        flipped = logical_xor(floats.is_negative(input), floats.is_negative(other))
        return where(flipped, neg(magnitude), magnitude)
    down = floor_div(input, other)
    rest = sub(input, mul(down, other))
    if input.type.dtype.kind == "uint":
        return down
    up = logical_and(logical_and(ne(rest, 0), ne(other, 0)), logical_xor(lt(input, 0), lt(other, 0)))
    return where(up, add(down, 1), down)


@op(types=typing.integer_division, shape=shapes.broadcast, reference=functions.ceil_div, family="elementwise", dtypes=typing.INTEGERS,
    derivation=EXACT)
def ceil_div(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The quotient of integers rounded up; a zero divisor gives 0."""
    down = floor_div(input, other)
    return where(logical_and(ne(other, 0), ne(mul(down, other), input)), add(down, 1), down)


@op(types=typing.integer_division, shape=shapes.broadcast, reference=functions.fmod, family="elementwise", bound={"f32": 0},
    derivation="the remainder of a truncated division is a float", dtypes=typing.NUMBERS, expands=WHOLE)
def fmod(input: Tensor | Number, other: Tensor | Number, precision_type: str = "HIGH_PRECISION") -> Tensor:
    """``input - trunc(input / other) * other``, exactly, with the sign of ``input``. Integers: 0 for a zero divisor.

    Floats need a target's own: the quotient may have hundreds of bits.
    """
    rest = sub(input, mul(trunc_div(input, other), other))
    return where(eq(other, 0), 0, rest)


@op(types=typing.integer_division, shape=shapes.broadcast, reference=functions.remainder, family="elementwise", bound={"f32": 0.5},
    derivation="fmod is exact, and adding the divisor rounds once", dtypes=typing.NUMBERS)
def remainder(input: Tensor | Number, other: Tensor | Number, precision_type: str = "HIGH_PRECISION") -> Tensor:
    """``input - floor(input / other) * other``, with the sign of ``other``: ``input % other``. Integers: 0 for a zero divisor."""
    if not input.type.dtype.is_float:
        return where(eq(other, 0), 0, sub(input, mul(floor_div(input, other), other)))
    rest = fmod(input, other)
    crossed = logical_xor(lt(rest, 0.0), lt(other, 0.0))
    made = where(crossed, add(rest, other), rest)
    return where(eq(rest, 0.0), floats.with_sign(abs(rest), other), made)


@op(types=typing.bitwise, shape=shapes.broadcast, reference=functions.gcd, family="elementwise", dtypes=typing.INTEGERS)
def gcd(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The greatest common divisor, not negative; of 0 and 0 it is 0."""
    ...


@op(types=typing.bitwise, shape=shapes.broadcast, reference=functions.lcm, family="elementwise", dtypes=typing.INTEGERS,
    derivation=EXACT)
def lcm(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The least common multiple, not negative; wraps."""
    made = mul(floor_div(input, gcd(input, other)), other)
    return made if input.type.dtype.kind == "uint" else abs(made)


@op(types=typing.keep, shape=shapes.same, reference=functions.quiet(np.positive), family="elementwise", bound={"f32": 0},
    derivation="a copy", dtypes=typing.NUMBERS)
def positive(input: Tensor) -> Tensor:
    """``input`` itself."""
    return input
