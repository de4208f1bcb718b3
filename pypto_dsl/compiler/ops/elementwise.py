"""Arithmetic that expands into primitives: powers of two, scaling, quotients, products with a twist."""
from __future__ import annotations

import math

import numpy as np

from pypto_dsl.compiler.dtypes import F64, I32
from pypto_dsl.compiler.ops import floats, reference, shapes, typing
from pypto_dsl.compiler.ops.core import abs, add, cast, div, eq, exp, ge, gt, log, lt, maximum, minimum, mul, ne, pow, sqrt, sub, where
from pypto_dsl.compiler.ops.definition import Number, Tensor, op
from pypto_dsl.compiler.ops.logical import logical_and
from pypto_dsl.compiler.ops.references import functions
from pypto_dsl.compiler.ops.rounding import rint

ONE = "one correctly rounded operation"
SUM = "each product and sum rounds once; half an ulp of the largest term each"


def _beyond(x: Tensor) -> float:
    """An exponent beyond which 2**n is 0 or inf for every x of the dtype."""
    return 5000.0 if x.type.dtype is F64 else 1000.0


@op(types=typing.float_unary, shape=shapes.same, reference=np.exp2, family="elementwise", bound={"f32": 2}, dtypes=typing.FLOATS,
    derivation="the fraction's product with ln 2 is off by half an ulp of 0.35, exp by one ulp, scaling rounds only into the subnormals",
    expands=floats.WIDE)
def exp2(input: Tensor) -> Tensor:
    """2 raised to ``input``; exact at integers."""
    far = _beyond(input)
    whole = rint(minimum(maximum(input, -far), far))
    fraction = exp(mul(sub(input, whole), math.log(2.0)))
    made = floats.scale(fraction, cast(whole, I32, "CAST_RINT"))
    return where(eq(input, -math.inf), 0.0, where(eq(input, math.inf), math.inf, made))


@op(types=typing.keep, shape=shapes.same, reference=reference.wrapping(np.square), family="elementwise", bound={"f32": 0.5}, derivation=ONE,
    dtypes=typing.NUMBERS)
def square(input: Tensor) -> Tensor:
    """``input * input``."""
    return mul(input, input)


@op(types=typing.float_unary, shape=shapes.same, reference=lambda x, **_: 1.0 / x, family="elementwise", bound={"f32": 0.5}, derivation=ONE,
    dtypes=typing.FLOATS)
def reciprocal(input: Tensor, precision_type: str = "HIGH_PRECISION") -> Tensor:
    """``1 / input``, correctly rounded."""
    return div(1.0, input)


@op(types=typing.float_unary, shape=shapes.same, reference=lambda x, **_: 1.0 / np.sqrt(x), family="elementwise", bound={"f32": 1.5},
    derivation="the root is off by half an ulp, which may be a whole one of its reciprocal, and the division by another half",
    dtypes=typing.FLOATS)
def rsqrt(input: Tensor, precision_type: str = "INTRINSIC") -> Tensor:
    """``1 / sqrt(input)``."""
    return div(1.0, sqrt(input))


@op(types=typing.ldexp, shape=shapes.broadcast, reference=reference.ldexp, family="elementwise", bound={"f32": 2.5},
    derivation="an integer exponent rounds once; a real one adds exp of its fraction and the argument's rounding, half an ulp each, which "
    "the product may double, and the product's own", expands=floats.WIDE)
def ldexp(input: Tensor, other: Tensor | Number) -> Tensor:
    """``input * 2**other`` with the dtype of ``input``, under every promotion rule set.

    An integer exponent scales exactly and rounds once, whatever its size; a float exponent is real-valued (2**0.5 is the square
    root of 2).
    """
    if other.type.dtype.is_integer:
        return floats.scale(input, other if other.type.dtype is I32 else cast(other, I32, satmode="ON"))
    far = _beyond(input)
    bounded = minimum(maximum(other, -far), far)
    whole = rint(bounded)
    fraction = exp(mul(sub(bounded, whole), math.log(2.0)))
    # the fraction's factor is applied where neither overflow nor rounding into the subnormals can happen
    large = ge(abs(input), 1.0)
    centred = mul(input, where(large, 0.25, 2.0**64))
    made = floats.scale(mul(centred, fraction), add(cast(whole, I32, "CAST_RINT"), where(large, 2, -64)))
    # 2**inf is inf and 2**-inf is 0, whose products with 0 and inf are NaN
    return where(floats.is_infinite(other), mul(input, where(gt(other, 0.0), math.inf, 0.0)), made)


@op(types=typing.in_place("ldexp"), shape=shapes.in_place, reference=reference.ldexp, family="elementwise", bound={"f32": 2.5},
    derivation="as ldexp", effects="input")
def ldexp_(input: Tensor, other: Tensor | Number) -> Tensor:
    """``input * 2**other`` written into ``input``, whose dtype and shape stay; ``other`` alone is broadcast."""
    return ldexp(input, other)


@op(types=typing.in_place("arithmetic"), shape=shapes.in_place, reference=functions.axpy, family="elementwise",
    bound={"f32": 1.5}, derivation=SUM, scale=lambda y, x, alpha=1.0, **_: np.maximum(np.abs(y), np.abs(x * alpha)), dtypes=typing.FLOATS,
    effects="input")
def axpy_(input: Tensor, other: Tensor, alpha: float = 1.0) -> Tensor:
    """``alpha * other + input`` written into ``input``, whose dtype and shape stay."""
    return add(mul(other, alpha), input)


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=reference.wrapping(lambda a, b: b - a), family="elementwise",
    bound={"f32": 0.5}, derivation=ONE, dtypes=typing.NUMBERS)
def rsub(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``other - input``."""
    return sub(other, input)


@op(types=typing.divide, shape=shapes.broadcast, reference=functions.quiet(lambda a, b: b / a), family="elementwise", bound={"f32": 0.5},
    derivation=ONE, dtypes=typing.FLOATS)
def rdiv(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``other / input``; integers give f32."""
    return div(other, input)


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=reference.wrapping(lambda a, b: np.square(a - b)), family="elementwise",
    bound={"f32": 2}, derivation="the difference's half ulp counts twice in the square, which rounds once more", dtypes=typing.NUMBERS)
def squared_difference(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``(input - other)**2``."""
    difference = sub(input, other)
    return mul(difference, difference)


@op(types=typing.float_unary, shape=shapes.broadcast, reference=functions.lerp, family="elementwise",
    bound={"f32": 2}, derivation=SUM, scale=lambda x, end, weight, **_: np.abs(x) + np.abs(weight) * (np.abs(end) + np.abs(x)),
    dtypes=typing.FLOATS)
def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """``input + weight * (end - input)``."""
    return add(input, mul(weight, sub(end, input)))


@op(types=typing.float_unary, shape=shapes.broadcast, reference=functions.addcmul, family="elementwise",
    bound={"f32": 2}, derivation=SUM, scale=lambda x, a, b, value=1.0, **_: np.maximum(np.abs(x), np.abs(value * a * b)),
    dtypes=typing.FLOATS)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: float = 1.0) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
    product = mul(tensor1, tensor2)
    return add(input, product if value == 1.0 else mul(product, value))


@op(types=typing.float_unary, shape=shapes.broadcast, reference=functions.mac, family="elementwise",
    bound={"f32": 1.5}, derivation=SUM, scale=lambda x, a, b, **_: np.maximum(np.abs(x * a), np.abs(b)), dtypes=typing.FLOATS)
def mac(input: Tensor, tensor1: Tensor | Number, tensor2: Tensor | Number) -> Tensor:
    """``input * tensor1 + tensor2``, rounded after the product and after the sum."""
    return add(mul(input, tensor1), tensor2)


@op(types=typing.float_unary, shape=shapes.broadcast,
    reference=functions.addcdiv, family="elementwise", bound={"f32": 1.5}, derivation=SUM,
    scale=lambda x, a, b, **_: np.maximum(np.abs(x), np.abs(a / b)), dtypes=typing.FLOATS)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor) -> Tensor:
    """``input + tensor1 / tensor2``."""
    return add(input, div(tensor1, tensor2))


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=functions.quiet(lambda a, b: np.exp(a - b)), family="elementwise",
    bound={"f32": 66}, derivation="half an ulp of a difference up to 128 is 64 ulp of its exponential; exp adds its own",
    dtypes=typing.FLOATS)
def expand_exp_dif(input: Tensor, other: Tensor) -> Tensor:
    """``exp(input - other)``."""
    return exp(sub(input, other))


@op(types=typing.float_unary, shape=shapes.broadcast, reference=functions.xlogy, family="elementwise", bound={"f32": 2.5},
    derivation="log within one ulp, and one product", dtypes=typing.FLOATS)
def xlogy(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input * log(other)``, and 0 where ``input`` is 0 (unless ``other`` is NaN)."""
    return where(logical_and(eq(input, 0.0), eq(other, other)), 0.0, mul(input, log(other)))


@op(types=typing.float_unary, shape=shapes.broadcast, reference=functions.quiet(np.hypot), family="elementwise", bound={"f32": 2},
    derivation="the quotient's error is halved by the root; square, sum and root a half each, and one product", dtypes=typing.FLOATS)
def hypot(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``sqrt(input**2 + other**2)`` without overflow on the way; inf if either is, even beside NaN."""
    a, b = abs(input), abs(other)
    larger, smaller = maximum(a, b), minimum(a, b)
    ratio = where(eq(larger, 0.0), 0.0, div(smaller, larger))
    made = mul(larger, sqrt(add(mul(ratio, ratio), 1.0)))
    return where(eq(a, math.inf), math.inf, where(eq(b, math.inf), math.inf, made))


@op(types=typing.divide, shape=shapes.broadcast, reference=functions.quiet(lambda a, b: np.where(b == 0, 0.0, a / b)), family="elementwise",
    bound={"f32": 0.5}, derivation=ONE, dtypes=typing.FLOATS)
def divide_no_nan(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input / other``, and 0 where ``other`` is 0."""
    return where(eq(other, 0.0), 0.0, div(input, other))


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=functions.quiet(lambda a, b: np.where(b == 0, 0.0, a * b)),
    family="elementwise", bound={"f32": 0.5}, derivation=ONE, dtypes=typing.FLOATS)
def multiply_no_nan(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input * other``, and 0 where ``other`` is 0 even if ``input`` is inf or NaN."""
    return where(eq(other, 0.0), 0.0, mul(input, other))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(lambda x: np.where(x == 0, 0.0, 1.0 / x)), family="elementwise",
    bound={"f32": 0.5}, derivation=ONE, dtypes=typing.FLOATS)
def reciprocal_no_nan(input: Tensor) -> Tensor:
    """``1 / input``, and 0 where ``input`` is 0."""
    return where(eq(input, 0.0), 0.0, div(1.0, input))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.deg2rad), family="elementwise", bound={"f32": 1.5},
    derivation="the constant's rounding and one product", dtypes=typing.FLOATS)
def deg2rad(input: Tensor) -> Tensor:
    """``input * pi / 180``."""
    return mul(input, math.pi / 180.0)


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.rad2deg), family="elementwise", bound={"f32": 1.5},
    derivation="the constant's rounding and one product", dtypes=typing.FLOATS)
def rad2deg(input: Tensor) -> Tensor:
    """``input * 180 / pi``."""
    return mul(input, 180.0 / math.pi)


@op(types=typing.float_unary, shape=shapes.broadcast, reference=lambda x, base, **_: reference.power(base, x),
    family="elementwise", bound={"f32": 1}, derivation="as pow", dtypes=typing.FLOATS)
def rpow(input: Tensor, base: Tensor | Number) -> Tensor:
    """``base`` raised to ``input``, in floats."""
    return pow(base, input)


@op(types=typing.float_unary, shape=shapes.same, reference=functions.quiet(np.cbrt), family="elementwise", bound={"f32": 1.5},
    derivation="a Newton step from an approximation within 2**-18 leaves 2**-35 and the roundings of its correction", dtypes=typing.FLOATS,
    expands=floats.WIDE)
def cbrt(input: Tensor) -> Tensor:
    """The cube root, of negative numbers too."""
    size = abs(input)
    # small magnitudes are lifted, so that the cube of the root is a normal number
    lift = where(lt(size, 2.0**-90), 2.0**72, 1.0)
    lifted = mul(size, lift)
    root = exp(div(log(lifted), 3.0))
    for _ in range(2 if input.type.dtype is F64 else 1):
        cube = mul(mul(root, root), root)
        root = sub(root, div(sub(cube, lifted), mul(mul(root, root), 3.0)))
    made = floats.with_sign(mul(root, where(gt(lift, 1.0), 2.0**-24, 1.0)), input)
    return where(logical_and(gt(size, 0.0), lt(size, math.inf)), made, input)


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=functions.clip, family="elementwise", bound={"f32": 0},
    derivation="selects", dtypes=typing.NUMBERS, variants={("nan", "ignore"): "fclip"})
def clip(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None, nan: str = "propagate") -> Tensor:
    """``minimum(maximum(input, min), max)``: ``min > max`` gives ``max``, a NaN anywhere gives NaN; a bound may be missing.

    With ``nan="ignore"`` a NaN loses to a number, as in `fmax` and `fmin`.
    """
    low = input if min is None else maximum(input, min)
    return low if max is None else minimum(low, max)


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=functions.ignoring(reference.maximum), family="elementwise",
    bound={"f32": 0}, derivation="selects", dtypes=typing.NUMBERS)
def fmax(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The larger of the two; a NaN loses to a number: `maximum` with nan="ignore"."""
    if input.type.dtype.is_integer:
        return maximum(input, other)
    return where(ne(input, input), other, where(ne(other, other), input, maximum(input, other)))


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=functions.ignoring(reference.minimum), family="elementwise",
    bound={"f32": 0}, derivation="selects", dtypes=typing.NUMBERS)
def fmin(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The smaller of the two; a NaN loses to a number: `minimum` with nan="ignore"."""
    if input.type.dtype.is_integer:
        return minimum(input, other)
    return where(ne(input, input), other, where(ne(other, other), input, minimum(input, other)))


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=functions.fclip, family="elementwise", bound={"f32": 0},
    derivation="selects", dtypes=typing.NUMBERS)
def fclip(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """``fmin(fmax(input, min), max)``: `clip` with nan="ignore"."""
    low = input if min is None else fmax(input, min)
    return low if max is None else fmin(low, max)
