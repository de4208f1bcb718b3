"""Activation functions, each with its expansion into primitives."""
from __future__ import annotations

import math

import numpy as np

from pypto_dsl.compiler.ops import floats, reference, shapes, typing
from pypto_dsl.compiler.ops.core import (
    abs,
    add,
    div,
    erf,
    exp,
    ge,
    gt,
    le,
    log,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    reshape,
    sub,
    tanh,
    where,
)
from pypto_dsl.compiler.ops.definition import Number, Tensor, op
from pypto_dsl.compiler.ops.elementwise import fmax
from pypto_dsl.compiler.ops.exponential import expm1, log1p
from pypto_dsl.compiler.ops.references import activation_functions as ref
from pypto_dsl.compiler.ops.references.functions import quiet
from pypto_dsl.compiler.ops.special import tail

PRODUCT = "the factor's error, and one product"


@op(types=typing.float_unary, shape=shapes.same, reference=reference.sigmoid, family="elementwise", bound={"f32": 3},
    derivation="exp within one ulp, a sum and a quotient",
    dtypes=typing.FLOATS)
def sigmoid(input: Tensor) -> Tensor:
    """The logistic function, 1 / (1 + exp(-input))."""
    e = exp(neg(abs(input)))
    return div(where(lt(input, 0.0), e, 1.0), add(e, 1.0))


def _gated(sign: Tensor, x: Tensor, root: Tensor) -> Tensor:
    """``x`` times the logistic function of y, for y of the sign of ``sign`` and root = exp(-|y| / 2).

    Below 0 the root is a factor before and after the quotient, so that only the last product may round into the subnormals.
    """
    factor = where(lt(sign, 0.0), root, 1.0)
    return mul(div(mul(x, factor), add(mul(root, root), 1.0)), factor)


def _weighted(x: Tensor, root: Tensor, factor: Tensor) -> Tensor:
    """``x * root**2 * factor`` with a small factor last, so that only the last product may round into the subnormals."""
    return mul(mul(mul(x, root), factor), root)


@op(types=typing.float_unary, shape=shapes.same, reference=reference.silu, family="elementwise", bound={"f32": 6},
    derivation="below 0 the square of exp(x/2), whose error doubles, a sum, a quotient and two products", dtypes=typing.FLOATS)
def silu(input: Tensor) -> Tensor:
    """``input * sigmoid(input)``; of -inf it is NaN, as -inf * 0 is."""
    return _gated(input, input, exp(mul(abs(input), -0.5)))


@op(types=typing.keep, shape=shapes.same, reference=ref.relu, family="elementwise", bound={"f32": 0}, derivation="selects",
    dtypes=typing.NUMBERS, variants={("nan", "ignore"): "fmax_zero"})
def relu(input: Tensor, nan: str = "propagate") -> Tensor:
    """``maximum(input, 0)``; NaN stays NaN, unless ``nan="ignore"`` makes it 0."""
    return maximum(input, 0)


@op(types=typing.keep, shape=shapes.same, reference=quiet(lambda x: np.where(x > 0, x, np.zeros_like(x))), family="elementwise",
    bound={"f32": 0}, derivation="selects", dtypes=typing.NUMBERS)
def fmax_zero(input: Tensor) -> Tensor:
    """``input`` where it is positive, else 0, of NaN too: `relu` with nan="ignore"."""
    return fmax(input, 0)


@op(types=typing.float_unary, shape=shapes.same, reference=reference.gelu, family="elementwise", bound={"f32": 10},
    derivation="erfc's 8 and two products; the tanh form: exp enlarges its argument's error by the argument, as `scale` counts it",
    scale=ref.gelu_scale, dtypes=typing.FLOATS, expands=floats.SINGLE)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``input * Phi(input)`` with the normal distribution function; ``approximate="tanh"`` is the usual tanh form. Of -inf it is -0."""
    finite = where(lt(input, -16.0), -0.0, input)  # 0 in f32 from there on; a clamped tail times -1e18 is not
    if approximate == "tanh":
        inner = mul(add(input, mul(mul(mul(input, input), input), 0.044715)), math.sqrt(2.0 / math.pi))
        return _gated(input, finite, exp(neg(abs(inner))))
    size = minimum(abs(input), 14.8)
    u = mul(size, math.sqrt(0.5))
    smooth, root = tail(u, size, 0.5)
    far = gt(u, 0.4)
    centre = erf(minimum(u, 0.4))
    beyond = where(far, mul(mul(smooth, root), root), sub(1.0, centre))  # erfc(u)
    low = where(far, _weighted(finite, root, mul(smooth, 0.5)), mul(mul(input, 0.5), beyond))
    return where(lt(input, 0.0), low, mul(input, sub(1.0, mul(beyond, 0.5))))


@op(types=typing.float_unary, shape=shapes.same, reference=ref.softplus, family="elementwise", bound={"f32": 4},
    derivation="log1p's 3 and one quotient; exp's error is not enlarged", dtypes=typing.FLOATS)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``; ``input`` itself where ``beta * input`` is above ``threshold``."""
    scaled = input if beta == 1.0 else mul(input, beta)
    made = add(maximum(scaled, 0.0), log1p(exp(neg(abs(scaled)))))
    return where(gt(scaled, threshold), input, made if beta == 1.0 else div(made, beta))


@op(types=typing.float_unary, shape=shapes.same, reference=ref.log_sigmoid, family="elementwise", bound={"f32": 4},
    derivation="as softplus", dtypes=typing.FLOATS)
def log_sigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(input))``, without cancellation."""
    return neg(add(maximum(neg(input), 0.0), log1p(exp(neg(abs(input))))))


@op(types=typing.float_unary, shape=shapes.same, reference=ref.elu, family="elementwise", bound={"f32": 5},
    derivation="expm1's 4 and a product", dtypes=typing.FLOATS)
def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """``input`` where it is positive, else ``alpha * (exp(input) - 1)``."""
    low = expm1(input)
    return where(gt(input, 0.0), input, low if alpha == 1.0 else mul(low, alpha))


@op(types=typing.float_unary, shape=shapes.same, reference=ref.celu, family="elementwise", bound={"f32": 6},
    derivation="expm1's 4, a quotient before it and a product", dtypes=typing.FLOATS)
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """``input`` where it is positive, else ``alpha * (exp(input / alpha) - 1)``."""
    return where(gt(input, 0.0), input, mul(expm1(div(minimum(input, 0.0), alpha)), alpha))


@op(types=typing.float_unary, shape=shapes.same, reference=ref.selu, family="elementwise", bound={"f32": 6},
    derivation="expm1's 4, a product and its constant", dtypes=typing.FLOATS)
def selu(input: Tensor) -> Tensor:
    """`elu` with alpha 1.67326..., times 1.05070... (Klambauer, Unterthiner, Mayr, Hochreiter 2017)."""
    return where(gt(input, 0.0), mul(input, ref.SELU_SCALE), mul(expm1(input), ref.SELU_SCALE * ref.SELU_ALPHA))


@op(types=typing.float_unary, shape=shapes.same, reference=ref.mish, family="elementwise", bound={"f32": 8},
    derivation="exp's error up to four times, and seven roundings", dtypes=typing.FLOATS)
def mish(input: Tensor) -> Tensor:
    """``input * tanh(softplus(input))``, as n / (n + 2) with n = e**x (e**x + 2). Of -inf it is NaN, as -inf * 0 is."""
    root = exp(mul(minimum(input, 20.0), 0.5))
    e = mul(root, root)
    more = add(e, 2.0)
    made = _weighted(input, root, div(more, add(mul(e, more), 2.0)))
    return where(gt(input, 20.0), input, made)  # within 2**-56 of it


@op(types=typing.float_unary, shape=shapes.same, reference=ref.hardsigmoid, family="elementwise", bound={"f32": 2},
    derivation="a product with the constant 1/6 and a sum", dtypes=typing.FLOATS, scale=lambda x, **_: np.full_like(x, 0.5))
def hardsigmoid(input: Tensor) -> Tensor:
    """``clip(input / 6 + 1/2, 0, 1)``."""
    return minimum(maximum(add(div(input, 6.0), 0.5), 0.0), 1.0)


@op(types=typing.float_unary, shape=shapes.same, reference=ref.hardswish, family="elementwise", bound={"f32": 3}, derivation=PRODUCT,
    dtypes=typing.FLOATS, scale=lambda x, **_: np.where(np.abs(x) < 3, np.abs(x), 0.0))
def hardswish(input: Tensor) -> Tensor:
    """``input * hardsigmoid(input)``."""
    return where(le(input, -3.0), -0.0, mul(input, hardsigmoid(input)))


@op(types=typing.keep, shape=shapes.same, reference=ref.hardtanh, family="elementwise", bound={"f32": 0}, derivation="selects",
    dtypes=typing.FLOATS)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """``clip(input, min_val, max_val)``."""
    return minimum(maximum(input, min_val), max_val)


@op(types=typing.keep, shape=shapes.same, reference=lambda x, **_: ref.hardtanh(x, 0.0, 6.0), family="elementwise", bound={"f32": 0},
    derivation="selects", dtypes=typing.FLOATS)
def relu6(input: Tensor) -> Tensor:
    """``clip(input, 0, 6)``."""
    return minimum(maximum(input, 0.0), 6.0)


@op(types=typing.keep, shape=shapes.same, reference=ref.hardshrink, family="elementwise", bound={"f32": 0}, derivation="selects",
    dtypes=typing.FLOATS)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``input`` outside [-lambd, lambd], else 0."""
    return where(le(abs(input), lambd), 0.0, input)


@op(types=typing.keep, shape=shapes.same, reference=ref.softshrink, family="elementwise", bound={"f32": 0.5}, derivation="one sum",
    dtypes=typing.FLOATS)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``input`` moved towards 0 by ``lambd``, and 0 within."""
    inside = where(ne(input, input), input, 0.0)
    return where(gt(input, lambd), sub(input, lambd), where(lt(input, -lambd), add(input, lambd), inside))


@op(types=typing.float_unary, shape=shapes.same, reference=ref.softsign, family="elementwise", bound={"f32": 1.5},
    derivation="a sum and a quotient", dtypes=typing.FLOATS)
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``; 1 and -1 at the infinities."""
    bounded = minimum(maximum(input, -2.0**100), 2.0**100)
    return div(bounded, add(abs(bounded), 1.0))


# (x - tanh(x)) / x**3 in x**2, within 2**-23.7 up to 1 (the constants, rounded to f32)
SHRINK = (0.3333333432674408, -0.13333310186862946, 0.053963419049978256, -0.02182958275079727, 0.00869794376194477, -0.0032069426961243153,
          0.000923601386602968, -0.00014282172196544707)


@op(types=typing.float_unary, shape=shapes.same, reference=ref.tanhshrink, family="elementwise", bound={"f32": 9},
    derivation="the fit and its products; beyond 1, tanh's 2 ulp against a difference of a third of it, and the difference's half",
    dtypes=typing.FLOATS, expands=floats.SINGLE)
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``, without cancellation near 0."""
    z = mul(input, input)
    near = mul(mul(input, z), floats.polynomial(z, SHRINK))
    return where(lt(abs(input), 1.0), near, sub(input, tanh(input)))


@op(types=typing.keep, shape=shapes.same, reference=ref.threshold, family="elementwise", bound={"f32": 0}, derivation="selects",
    dtypes=typing.FLOATS)
def threshold(input: Tensor, threshold: float = 0.0, value: float = 0.0) -> Tensor:
    """``input`` where it is above ``threshold``, else ``value``; NaN stays."""
    return where(le(input, threshold), value, input)


@op(types=typing.keep, shape=shapes.same, reference=ref.leaky_relu, family="elementwise", bound={"f32": 1.5},
    derivation="the slope's rounding and one product", dtypes=typing.FLOATS)
def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """``input`` where it is positive, else ``negative_slope * input``."""
    return where(gt(input, 0.0), input, mul(input, negative_slope))


@op(types=typing.keep, shape=shapes.same, reference=ref.leaky_relu, family="elementwise", bound={"f32": 1.5},
    derivation="the slope's rounding and one product", dtypes=typing.FLOATS)
def lrelu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """PyPTO's name of `leaky_relu`."""
    return leaky_relu(input, negative_slope)


@op(types=typing.float_unary, shape=shapes.prelu, reference=ref.prelu, family="elementwise", bound={"f32": 0.5}, derivation="one product",
    dtypes=typing.FLOATS)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``input`` where it is positive, else ``weight * input``: one weight for all, or one per element of axis 1."""
    rank = input.type.rank
    lined = weight if rank < 2 else reshape(weight, (weight.type.shape[0], *(1,) * (rank - 2)))
    return where(gt(input, 0.0), input, mul(input, lined))


@op(types=typing.float_unary, shape=shapes.same, reference=ref.logit, family="elementwise", bound={"f32": 6},
    derivation="log1p's 3 and a quotient near 1/2; elsewhere log's 1 and two roundings", dtypes=typing.FLOATS)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(input / (1 - input))``, of ``input`` clipped to [eps, 1 - eps] when given; NaN outside [0, 1].

    FP32 has no number between 1 - 2**-24 and 1: a smaller ``eps`` leaves 1, whose logit is inf.
    """
    x = input
    if eps is not None:
        low, high = ref.clipping(eps, input.type.dtype)
        x = minimum(maximum(input, low), high)
    rest = sub(1.0, x)
    near = log1p(div(mul(sub(x, 0.5), 2.0), rest))
    far = sub(log(x), log1p(neg(x)))
    made = where(lt(abs(sub(x, 0.5)), 0.25), near, far)
    return where(ge(x, 0.0), where(le(x, 1.0), made, math.nan), where(lt(x, 0.0), math.nan, x))


@op(types=typing.float_unary, shape=shapes.broadcast, reference=ref.bias_gelu, family="elementwise", bound={"f32": 11},
    derivation="gelu's; the sum's half ulp, which a slope of at most 1.13 hardly enlarges, except in the far tail",
    scale=lambda x, bias, **_: np.maximum(np.abs(x), np.abs(bias)), dtypes=typing.FLOATS)
def bias_gelu(input: Tensor, bias: Tensor | Number, approximate: str = "none") -> Tensor:
    """``gelu(input + bias)``."""
    return gelu(add(input, bias), approximate)
