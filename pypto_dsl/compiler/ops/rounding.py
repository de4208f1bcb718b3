"""Rounding to integers, signs, neighbours, and questions about single elements."""
from __future__ import annotations

import builtins
import math

import numpy as np

from pypto_dsl.compiler.dtypes import BF16, F16, F32, F64, I16, I32, DType
from pypto_dsl.compiler.ops import shapes, typing
from pypto_dsl.compiler.ops.core import abs, add, bitcast, bitwise_and, cast, div, eq, ge, gt, le, lt, mul, ne, neg, sub, where
from pypto_dsl.compiler.ops.definition import Call, Number, Tensor, Typing, op
from pypto_dsl.compiler.ops.floats import (
    FORMATS,
    Format,
    is_infinite,
    is_nan,
    is_negative,
    layout,
    split_exponent,
    with_sign,
)
from pypto_dsl.compiler.ops.logical import logical_and, logical_or, logical_xor
from pypto_dsl.compiler.ops.references import functions

EXACT = "selects among exactly computed values"
HALF = Format(I16, 10, 15)  # the layout of FP16


@op(types=typing.keep, shape=shapes.same, reference=functions.on_floats(np.rint), family="elementwise", bound={"f32": 0}, derivation=EXACT,
    dtypes=typing.NUMBERS, expands=(*FORMATS, *typing.INTEGERS))
def rint(input: Tensor) -> Tensor:
    """The nearest integer, halves to even; integers are unchanged.

    Adding the power of two from which on floats are integers rounds to nearest even, and subtracting it again is exact.
    """
    if input.type.dtype.is_integer:
        return input
    form, magnitude = layout(input), abs(input)
    whole = 2.0**form.fraction
    return where(lt(magnitude, whole), with_sign(sub(add(magnitude, whole), whole), input), input)


@op(types=typing.keep, shape=shapes.same, reference=functions.on_floats(np.floor), family="elementwise", bound={"f32": 0},
    derivation=EXACT, dtypes=typing.NUMBERS)
def floor(input: Tensor) -> Tensor:
    """The largest integer that is not above; -0 stays -0, integers are unchanged."""
    if input.type.dtype.is_integer:
        return input
    near = rint(input)
    return where(gt(near, input), sub(near, 1.0), near)


@op(types=typing.keep, shape=shapes.same, reference=functions.on_floats(np.ceil), family="elementwise", bound={"f32": 0},
    derivation=EXACT, dtypes=typing.NUMBERS)
def ceil(input: Tensor) -> Tensor:
    """The smallest integer that is not below; of (-1, 0) it is -0, integers are unchanged."""
    return input if input.type.dtype.is_integer else neg(floor(neg(input)))


@op(types=typing.keep, shape=shapes.same, reference=functions.on_floats(np.trunc), family="elementwise", bound={"f32": 0},
    derivation=EXACT, dtypes=typing.NUMBERS)
def trunc(input: Tensor) -> Tensor:
    """``input`` without its fraction, rounded towards 0 with the sign kept; integers are unchanged."""
    return input if input.type.dtype.is_integer else where(lt(input, 0.0), ceil(input), floor(input))


def _decimals(call: Call) -> Typing:
    """The operand's dtype; powers of ten beyond its range are refused (PT111)."""
    found = typing.keep(call)
    limit = 308 if found.typing.compute is F64 else 38
    given = int(call.attributes["decimals"])
    if not -limit <= given <= limit:
        raise call.refuse("PT111", f"round takes -{limit} to {limit} decimals of {found.results[0].dtype}, and got {given}",
                          help="a float has no digits there: leave the rounding out")
    return found


def _power_of_ten(exponent: int, dtype: DType) -> float:
    """10**exponent as a float of ``dtype``: exact up to 10 in f32 and 22 in f64."""
    return float(np.asarray(float(10**exponent), dtype.numpy).astype(np.float64))


@op(types=_decimals, shape=shapes.same, reference=functions.round_decimals, family="elementwise", bound={"f32": 0.5},
    derivation="the scaled value is the dtype's own, rounded; from there the integer is exact and its quotient or product rounds once",
    dtypes=typing.NUMBERS)
def round(input: Tensor, decimals: int = 0) -> Tensor:
    """``rint(input * 10**decimals) / 10**decimals``, each step in the dtype (16 bits: in FP32), halves to even; integers are unchanged.

    FP32's 2.35 gives 2.4, as in PyPTO and torch: its product with 10 is 23.5, although it lies a little below 2.35. What has no digits
    there any more is itself.
    """
    if input.type.dtype.is_integer:
        return input
    if decimals == 0:
        return rint(input)
    factor = _power_of_ten(builtins.abs(decimals), input.type.dtype)
    whole = 2.0 ** (layout(input).fraction + 1)  # from here on every float is an integer
    scaled = mul(input, factor) if decimals > 0 else div(input, factor)
    near = rint(scaled)
    made = div(near, factor) if decimals > 0 else mul(near, factor)
    return where(lt(abs(scaled), whole), made, input)


@op(types=typing.keep, shape=shapes.same, reference=functions.quiet(lambda x: np.where(np.isinf(x), np.copysign(0.0, x), x - np.trunc(x))),
    family="elementwise", bound={"f32": 0}, derivation="x - trunc(x) is exact (Sterbenz)", dtypes=typing.FLOATS)
def frac(input: Tensor) -> Tensor:
    """``input - trunc(input)``; of inf 0 with its sign."""
    return where(is_infinite(input), mul(sign(input), 0.0), sub(input, trunc(input)))


@op(types=typing.keep, shape=shapes.same, reference=functions.sign, family="elementwise", bound={"f32": 0}, derivation=EXACT,
    dtypes=typing.NUMBERS)
def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1; zeros keep their sign and NaN stays."""
    if input.type.dtype.kind == "uint":
        return where(eq(input, 0), input, add(mul(input, 0), 1))
    if input.type.dtype.is_integer:
        return where(gt(input, 0), add(mul(input, 0), 1), where(lt(input, 0), sub(mul(input, 0), 1), input))
    return where(gt(input, 0.0), 1.0, where(lt(input, 0.0), -1.0, input))


@op(types=typing.predicate, shape=shapes.same, reference=functions.signbit, family="compare", dtypes=typing.NUMBERS)
def signbit(input: Tensor) -> Tensor:
    """Whether the sign bit is set: of -0 too, of NaN never."""
    dtype = input.type.dtype
    if not dtype.is_float:
        return lt(input, 0)
    return logical_and(is_negative(input), eq(input, input))


@op(types=typing.predicate, shape=shapes.same, reference=functions.quiet(np.isnan), family="compare", dtypes=typing.COMPARABLE)
def isnan(input: Tensor) -> Tensor:
    """Whether an element is NaN; integers never are."""
    return ne(input, input)


@op(types=typing.predicate, shape=shapes.same, reference=functions.quiet(np.isinf), family="compare", dtypes=typing.COMPARABLE)
def isinf(input: Tensor) -> Tensor:
    """Whether an element is inf or -inf; integers never are."""
    return is_infinite(input) if input.type.dtype.is_float else ne(input, input)


@op(types=typing.predicate, shape=shapes.same, reference=functions.quiet(np.isfinite), family="compare", dtypes=typing.COMPARABLE)
def isfinite(input: Tensor) -> Tensor:
    """Whether an element is neither NaN nor infinite; integers always are."""
    return lt(abs(input), math.inf) if input.type.dtype.is_float else eq(input, input)


@op(types=typing.predicate, shape=shapes.same, reference=functions.quiet(lambda x: x == np.inf), family="compare", dtypes=typing.FLOATS)
def isposinf(input: Tensor) -> Tensor:
    """Whether an element is +inf."""
    return eq(input, math.inf)


@op(types=typing.predicate, shape=shapes.same, reference=functions.quiet(lambda x: x == -np.inf), family="compare", dtypes=typing.FLOATS)
def isneginf(input: Tensor) -> Tensor:
    """Whether an element is -inf."""
    return eq(input, -math.inf)


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=functions.quiet(np.copysign), family="elementwise", bound={"f32": 0},
    derivation=EXACT, dtypes=typing.FLOATS)
def copysign(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The magnitude of ``input`` with the sign bit of ``other``, of its zeros and NaN too."""
    return where(is_negative(other), neg(abs(input)), abs(input))


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=functions.nextafter, family="elementwise", bound={"f32": 0, "f64": 0},
    derivation=EXACT, dtypes=typing.FLOATS, widens=False, expands=(*FORMATS, F16, BF16))
def nextafter(input: Tensor, other: Tensor | Number) -> Tensor:
    """The neighbour of ``input`` in its own dtype, in the direction of ``other``; ``other`` itself where they are equal."""
    if input.type.dtype is BF16:  # the upper halves of FP32's, which every target computes with
        return cast(_neighbour(cast(input, F32), cast(other, F32), FORMATS[F32], 1 << 16), BF16)
    return _neighbour(input, other, HALF if input.type.dtype is F16 else layout(input), 1)


def _neighbour(x: Tensor, other: Tensor, form: Format, unit: int) -> Tensor:
    """The float whose bits are ``unit`` away from those of x."""
    field = bitcast(x, form.integer)
    step = where(logical_xor(lt(x, other), lt(field, 0)), unit, -unit)
    moved = bitcast(add(field, step if form.integer is I32 else cast(step, form.integer)), x.type.dtype)
    sign = bitwise_and(bitcast(other, form.integer), form.sign)
    stepped = where(eq(x, 0.0), bitcast(add(sign, unit), x.type.dtype), moved)
    equal = where(eq(x, other), other, stepped)
    return where(is_nan(x), x, where(is_nan(other), other, equal))


@op(types=typing.keeps_and(I32), shape=shapes.same_twice, reference=functions.frexp, family="elementwise", bound={"f32": 0},
    derivation=EXACT, dtypes=typing.FLOATS, results=("mantissa", "exponent"), expands=tuple(FORMATS))
def frexp(input: Tensor) -> tuple[Tensor, Tensor]:
    """(mantissa, exponent) with ``input = mantissa * 2**exponent`` and the mantissa's magnitude in [0.5, 1).

    Zeros, inf and NaN are their own mantissa, with exponent 0.
    """
    significand, exponent = split_exponent(input)
    finite = lt(abs(input), math.inf)
    regular = logical_and(finite, ne(input, 0.0))
    return where(regular, mul(significand, 0.5), input), where(regular, add(exponent, 1), 0)


@op(types=typing.compare, shape=shapes.broadcast, reference=functions.isclose, family="compare", dtypes=typing.FLOATS)
def isclose(input: Tensor | Number, other: Tensor | Number, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """``|input - other| <= atol + rtol * |other|``; an infinity is close to itself only, NaN to NaN with ``equal_nan``."""
    near = le(abs(sub(input, other)), add(mul(abs(other), rtol), atol))
    finite = logical_and(lt(abs(input), math.inf), lt(abs(other), math.inf))
    close = logical_or(logical_and(near, finite), eq(input, other))
    return logical_or(close, logical_and(ne(input, input), ne(other, other))) if equal_nan else close


@op(types=typing.arithmetic, shape=shapes.broadcast,
    reference=lambda x, values, **_: np.where(np.isnan(x), np.nan, np.where(x == 0, values, np.where(x > 0, 1.0, 0.0))),
    family="elementwise", bound={"f32": 0}, derivation=EXACT, dtypes=typing.FLOATS)
def heaviside(input: Tensor, values: Tensor | Number) -> Tensor:
    """0 below zero, 1 above, ``values`` at zero; NaN stays."""
    return where(eq(input, 0.0), values, where(gt(input, 0.0), 1.0, where(lt(input, 0.0), 0.0, input)))


@op(types=typing.compare, shape=shapes.same, reference=functions.quiet(lambda x: x == 0), family="compare", dtypes=typing.NUMBERS)
def eqz(input: Tensor) -> Tensor:
    """``input == 0``."""
    return eq(input, 0)


@op(types=typing.compare, shape=shapes.same, reference=functions.quiet(lambda x: x != 0), family="compare", dtypes=typing.NUMBERS)
def nez(input: Tensor) -> Tensor:
    """``input != 0``; true for NaN."""
    return ne(input, 0)


@op(types=typing.compare, shape=shapes.same, reference=functions.quiet(lambda x: x > 0), family="compare", dtypes=typing.NUMBERS)
def gtz(input: Tensor) -> Tensor:
    """``input > 0``."""
    return gt(input, 0)


@op(types=typing.compare, shape=shapes.same, reference=functions.quiet(lambda x: x >= 0), family="compare", dtypes=typing.NUMBERS)
def gez(input: Tensor) -> Tensor:
    """``input >= 0``."""
    return ge(input, 0)


@op(types=typing.compare, shape=shapes.same, reference=functions.quiet(lambda x: x < 0), family="compare", dtypes=typing.NUMBERS)
def ltz(input: Tensor) -> Tensor:
    """``input < 0``."""
    return lt(input, 0)


@op(types=typing.compare, shape=shapes.same, reference=functions.quiet(lambda x: x <= 0), family="compare", dtypes=typing.NUMBERS)
def lez(input: Tensor) -> Tensor:
    """``input <= 0``."""
    return le(input, 0)
