"""Signs, exponents and significands of floats as operations: the parts that expansions are built of.

Everything here is written for f32 and f64; a 16-bit operation is expanded after it was widened to f32.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto_dsl.compiler.dtypes import F32, F64, I32, I64, DType
from pypto_dsl.compiler.ops.core import (
    abs,
    add,
    bitcast,
    bitwise_and,
    bitwise_left_shift,
    bitwise_right_shift,
    cast,
    eq,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    sub,
    where,
)
from pypto_dsl.compiler.ops.definition import Tensor
from pypto_dsl.compiler.ops.recording import constant, current_builder


@dataclass(frozen=True)
class Format:
    """The layout of an IEEE 754 binary format: its twin of integers, the stored significand's bits, the exponent's bias."""

    integer: DType
    fraction: int
    bias: int

    @property
    def sign(self) -> int:
        """The integer whose only set bit is the sign's."""
        return self.integer.range[0]

    @property
    def infinity(self) -> int:
        """The bits of +inf."""
        return (2 * self.bias + 1) << self.fraction


FORMATS: dict[DType, Format] = {F32: Format(I32, 23, 127), F64: Format(I64, 52, 1023)}
SINGLE: tuple[DType, ...] = (F32,)
WIDE: tuple[DType, ...] = (F32, F64)


def layout(x: Tensor) -> Format:
    """The format of ``x``, which is f32 or f64."""
    return FORMATS[x.type.dtype]


def bits(x: Tensor) -> Tensor:
    """The bits of a float as a signed integer."""
    return bitcast(x, layout(x).integer)


def sign_of(x: Tensor) -> Tensor:
    """An integer with the sign bit of ``x`` alone."""
    return bitwise_and(bits(x), layout(x).sign)


def is_negative(x: Tensor) -> Tensor:
    """Whether the sign bit is set, of zeros and NaN too."""
    return lt(bits(x), 0)


def with_sign(magnitude: Tensor, sign: Tensor) -> Tensor:
    """A magnitude that is not negative, with the sign bit of the float ``sign``. The bits are disjoint, so adding sets them."""
    return bitcast(add(bits(magnitude), sign_of(sign)), magnitude.type.dtype)


def power_of_two(n: Tensor, dtype: DType) -> Tensor:
    """2**n for an I32 n from the smallest to the largest normal exponent."""
    form = FORMATS[dtype]
    biased = add(n, form.bias)
    wide = biased if form.integer is I32 else cast(biased, form.integer)
    return bitcast(bitwise_left_shift(wide, form.fraction), dtype)


def scale(x: Tensor, n: Tensor) -> Tensor:
    """``x`` times 2**n for any I32 n, rounded once.

    n is split into three factors of which the last alone can take the product into the subnormals; three times the exponent range
    reaches from the smallest subnormal beyond the largest float and back.
    """
    form = layout(x)
    low, high = 1 - form.bias, form.bias
    n = minimum(maximum(n, 3 * low), 3 * high)
    last = minimum(maximum(n, low), high)
    rest = sub(n, last)
    first = minimum(maximum(rest, low), high)
    for part in (first, sub(rest, first), last):
        x = mul(x, power_of_two(part, x.type.dtype))
    return x


def split_exponent(x: Tensor) -> tuple[Tensor, Tensor]:
    """(m, e) with x = m * 2**e, m in [1, 2) with the sign of x, e an I32; for finite x that is not 0.

    Subnormals are made normal first, by a power of two.
    """
    form = layout(x)
    lift = form.fraction + 2
    small = lt(abs(x), 2.0 ** (1 - form.bias))
    field = bits(where(small, mul(x, 2.0**lift), x))
    exponent = bitwise_right_shift(bitwise_and(field, form.infinity), form.fraction)
    significand = add(bitwise_and(field, ~form.infinity), form.bias << form.fraction)
    exponent = exponent if form.integer is I32 else cast(exponent, I32)
    return bitcast(significand, x.type.dtype), sub(exponent, where(small, form.bias + lift, form.bias))


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """c0 + c1 x + c2 x**2 + ..., by Horner's rule."""
    result = add(mul(x, coefficients[-1]), coefficients[-2])
    for c in reversed(coefficients[:-2]):
        result = add(mul(result, x), c)
    return result


def upper_half(x: Tensor) -> Tensor:
    """``x`` without the lower half of its significand, so that products of two such are exact."""
    form = layout(x)
    return bitcast(bitwise_and(bits(x), -(1 << (form.fraction // 2 + 1))), x.type.dtype)


def is_nan(x: Tensor) -> Tensor:
    """Whether ``x`` is NaN."""
    return ne(x, x)


def is_infinite(x: Tensor) -> Tensor:
    """Whether ``x`` is inf or -inf."""
    return eq(abs(x), float("inf"))


def product_error(x: Tensor, y: Tensor, product: Tensor) -> Tensor:
    """x * y - product exactly, for a product that was rounded from x * y (Dekker 1971), where no part under- or overflows."""
    xh, yh = upper_half(x), upper_half(y)
    xl, yl = sub(x, xh), sub(y, yh)
    return add(mul(xl, yl), add(add(sub(mul(xh, yh), product), mul(xh, yl)), mul(xl, yh)))


def number(value: float | int, dtype: DType) -> Tensor:
    """A strong constant: two Python numbers in one `where` would be weak, and f32 whatever they meet."""
    builder = current_builder()
    assert builder is not None, "expansions are recorded inside `building`"
    return constant(value, builder, dtype)
