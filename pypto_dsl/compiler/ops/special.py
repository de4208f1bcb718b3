"""The error functions, Bessel functions and the gamma function's relatives.

Coefficients are weighted minimax fits (`tools/fit_expansions.py`); the expansions that use them are typed f32.
"""
from __future__ import annotations

import math

from pypto_dsl.compiler.ops import floats, shapes, typing
from pypto_dsl.compiler.ops.core import abs, add, div, eq, erf, exp, gt, log, lt, minimum, mul, neg, sqrt, sub, where
from pypto_dsl.compiler.ops.definition import Tensor, op
from pypto_dsl.compiler.ops.references import functions

# exp(u**2) erfc(u) (1 + 2 u) as a polynomial in (u - 2) / (u + 2), within 2**-24 for u from 0.4 to 10.2
TAIL = (1.2769783735275269, -0.09276339411735535, -0.16603145003318787, 0.16403788328170776, -0.05420319363474846,
        -0.007921058684587479, 0.00862550176680088, 0.000905332388356328, -0.0012214573798701167)
# erfinv(x) / x by w = -log((1 - x)(1 + x)), within 2**-23.5: in w - 2.5 below 5, in sqrt(w) - 3 above
INVERSE_NEAR = (1.5014094114303589, 0.24664027988910675, -0.004177386872470379, -0.0012527419021353126, 0.00021834444487467408,
                -4.963355877407594e-06, -3.462705535639543e-06, 4.6617242333013564e-07, 2.3232709978060484e-08, -8.791183780942902e-09)
INVERSE_FAR = (2.832976818084717, 1.0016748905181885, 0.009445007890462875, -0.0076363906264305115, 0.005689404439181089,
               -0.0036016416270285845, 0.0014786551473662257, -4.867615643888712e-05, -0.000304366578347981, 0.00011010108573827893)
# I0(x) and I1(x) / x in (x / 8)**2 up to 8; beyond, exp(-x) sqrt(x) I(x) in 1 / x; within 2**-24.5
I0_NEAR = (1.0, 16.0, 64.00000762939453, 113.7775650024414, 113.78024291992188, 72.80221557617188, 32.4218635559082, 10.432734489440918,
           2.8343708515167236, 0.3587062656879425, 0.1564144492149353)
I1_NEAR = (0.5, 4.0, 10.666666984558105, 14.222208023071289, 11.377923011779785, 6.067305564880371, 2.314626932144165,
           0.6540411710739136, 0.1555241495370865, 0.018966248258948326, 0.006879840046167374)
I0_FAR = (0.3989422917366028, 0.04986720532178879, 0.02810770273208618, 0.026909561827778816, 0.0895736813545227, -0.33363980054855347,
          1.8958137035369873)
I1_FAR = (0.3989422917366028, -0.14960269629955292, -0.046815402805805206, -0.038307011127471924, -0.10791578143835068,
          0.36562952399253845, -2.143388271331787)


def tail(u: Tensor, x: Tensor, half: float) -> tuple[Tensor, Tensor]:
    """(smooth, root) with erfc(u) = smooth * root**2, for u >= 0.4 with u**2 = x**2 * half exactly.

    The square is split, so that exp does not enlarge its rounding, and its root is taken, so that nothing is lost in the subnormals.
    """
    high = floats.upper_half(x)
    root = exp(mul(mul(high, high), -0.5 * half))
    rest = exp(mul(mul(sub(x, high), add(x, high)), -half))
    t = div(sub(u, 2.0), add(u, 2.0))
    return mul(rest, div(floats.polynomial(t, TAIL), add(mul(u, 2.0), 1.0))), root


@op(types=typing.float_unary, shape=shapes.same, reference=functions.erfc, family="elementwise", bound={"f32": 8},
    derivation="a root within one ulp counts twice, another exponential, the fit's quotient, and three products", dtypes=typing.FLOATS,
    expands=floats.SINGLE)
def erfc(input: Tensor) -> Tensor:
    """``1 - erf(input)`` without cancellation for large ``input``."""
    u = minimum(abs(input), 10.5)
    smooth, root = tail(u, u, 1.0)
    return where(lt(input, 0.4), sub(1.0, erf(input)), mul(mul(smooth, root), root))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.erfinv, family="elementwise", bound={"f32": 6},
    derivation="the fit's argument is a logarithm within two ulp, which the fit does not enlarge", dtypes=typing.FLOATS,
    expands=floats.SINGLE)
def erfinv(input: Tensor) -> Tensor:
    """The inverse of the error function: infinite at -1 and 1, NaN beyond."""
    w = neg(log(mul(sub(1.0, input), add(input, 1.0))))
    near = floats.polynomial(sub(w, 2.5), INVERSE_NEAR)
    far = floats.polynomial(sub(sqrt(w), 3.0), INVERSE_FAR)
    made = mul(input, where(lt(w, 5.0), near, far))
    return where(eq(abs(input), 1.0), mul(input, math.inf), made)


@op(types=typing.float_unary, shape=shapes.same, reference=functions.bessel_i0, family="elementwise", bound={"f32": 8},
    derivation="positive coefficients: one rounding per step; beyond 8 the square of exp(x/2), whose error doubles", dtypes=typing.FLOATS,
    expands=floats.SINGLE)
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of order 0."""
    size = abs(input)
    return where(gt(size, 8.0), _far(size, I0_FAR), _near(size, I0_NEAR))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.bessel_i1, family="elementwise", bound={"f32": 8},
    derivation="as i0", dtypes=typing.FLOATS, expands=floats.SINGLE)
def i1(input: Tensor) -> Tensor:
    """The modified Bessel function of order 1."""
    size = abs(input)
    far = _far(size, I1_FAR)
    return where(gt(size, 8.0), where(lt(input, 0.0), neg(far), far), mul(input, _near(size, I1_NEAR)))


def _near(size: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    z = mul(minimum(size, 8.0), 0.125)
    return floats.polynomial(mul(z, z), coefficients)


def _far(size: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    root = exp(mul(size, 0.5))
    decaying = div(floats.polynomial(div(1.0, size), coefficients), sqrt(size))
    return where(lt(size, 200.0), mul(mul(root, decaying), root), mul(size, math.inf))


@op(types=typing.float_unary, shape=shapes.same, reference=functions.lgamma, family="elementwise", bound={"f32": 2},
    derivation="the C library's", dtypes=typing.FLOATS)
def lgamma(input: Tensor) -> Tensor:
    """The logarithm of the gamma function's magnitude; inf at 0 and the negative integers."""
    ...


@op(types=typing.float_unary, shape=shapes.same, reference=functions.digamma, family="elementwise", bound={"f32": 2},
    derivation="the recurrence and the asymptotic series in float64; of negative numbers counted in ulp of the larger of its two terms",
    scale=functions.digamma_terms, dtypes=typing.FLOATS)
def digamma(input: Tensor) -> Tensor:
    """The logarithmic derivative of the gamma function; NaN at the negative integers, infinite at 0 with the sign of -input."""
    ...
