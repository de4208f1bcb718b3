"""Operations over whole rows: mean, softmax, normalisations, and the triangular masks."""
from __future__ import annotations

import numpy as np

from pypto_dsl.compiler.dtypes import I32
from pypto_dsl.compiler.graph import Attribute
from pypto_dsl.compiler.ops import reference, shapes, typing
from pypto_dsl.compiler.ops.core import add, amax, div, exp, extent, iota, le, mul, sub, where
from pypto_dsl.compiler.ops.core import sum as sum_
from pypto_dsl.compiler.ops.definition import Tensor, op
from pypto_dsl.compiler.ops.elementwise import reciprocal, rsqrt
from pypto_dsl.compiler.ops.references import reductions
from pypto_dsl.compiler.ops.shapes import element_count


def count(x: Tensor, dim: Attribute) -> Tensor:
    """How many elements a reduction over ``dim`` takes, as a scalar of x's dtype."""
    rank = x.type.rank
    axes = range(rank) if dim is None else [d % rank for d in (dim if isinstance(dim, tuple) else (dim,)) if isinstance(d, int)]
    return extent(element_count([x.type.shape[a] for a in axes]), x.type.dtype)


@op(types=typing.mean, shape=shapes.reduce, reference=reference.mean, family="reduce", bound={"f32": 5},
    derivation="the sum's 4 and a quotient; counted in ulp of the mean of magnitudes", dtypes=typing.FLOATS,
    scale=lambda x, dim=None, keepdim=False, **_: reference.mean(np.abs(x), dim, keepdim), variants={("nan", "ignore"): "nanmean"})
def mean(input: Tensor, dim: Attribute = None, keepdim: bool = False, nan: str = "propagate") -> Tensor:
    """The mean along ``dim``: the sum, divided once. Integers give f32; of nothing NaN. ``nan="ignore"`` passes over NaN."""
    return div(sum_(input, dim, keepdim), count(input, dim))


@op(types=typing.float_unary, shape=shapes.along_axis, reference=reference.softmax, family="row", bound={"f32": 8},
    derivation="exp's 1, the sum's 4, a reciprocal, a product; exp enlarges the half ulp of a distance by the distance, as `scale` counts",
    scale=reductions.softmax_scale, dtypes=typing.FLOATS)
def softmax(input: Tensor, dim: int = -1) -> Tensor:
    """``exp(input - max) * (1 / sum(exp(input - max)))`` along ``dim``. A row of -inf is NaN."""
    shifted = exp(sub(input, amax(input, dim, True)))
    return mul(shifted, reciprocal(sum_(shifted, dim, True)))


@op(types=typing.float_unary, shape=shapes.last_axis_parameters, reference=reference.layer_norm, family="row", bound={"f32": 12},
    derivation="std's, the mean's 5 ulp against the distance from it, a reciprocal, two products and a sum",
    scale=reductions.layer_norm_scale,
    dtypes=typing.FLOATS)
def layer_norm(input: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, epsilon: float = 1e-5) -> Tensor:
    """``(input - mean) * rsqrt(var + epsilon) * gamma + beta`` over the last axis, with the two-pass variance (divided by N)."""
    centred = sub(input, mean(input, -1, True))
    result = mul(centred, rsqrt(add(mean(mul(centred, centred), -1, True), epsilon)))
    if gamma is not None:
        result = mul(result, gamma)
    return result if beta is None else add(result, beta)


@op(types=typing.float_unary, shape=shapes.last_axis_parameters, reference=reference.rms_norm, family="row", bound={"f32": 6},
    derivation="half of the mean's 5 and of a square's, the reciprocal root's 1.5, two products", dtypes=typing.FLOATS)
def rms_norm(input: Tensor, gamma: Tensor | None = None, epsilon: float = 1e-6) -> Tensor:
    """``input * rsqrt(mean(input**2) + epsilon) * gamma`` over the last axis."""
    result = mul(input, rsqrt(add(mean(mul(input, input), -1, True), epsilon)))
    return result if gamma is None else mul(result, gamma)


def _position(x: Tensor, axis: int) -> Tensor:
    return iota(x.type.shape, x.type.rank + axis, I32)


@op(types=typing.keep, shape=shapes.at_least_matrix, reference=reference.tril, family="elementwise", bound={"f32": 0},
    derivation="selects")
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two axes: elements with column - row <= diagonal, others 0."""
    return where(le(sub(_position(input, -1), _position(input, -2)), diagonal), input, 0)


@op(types=typing.keep, shape=shapes.at_least_matrix, reference=reference.triu, family="elementwise", bound={"f32": 0},
    derivation="selects")
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two axes: elements with column - row >= diagonal, others 0."""
    return where(le(diagonal, sub(_position(input, -1), _position(input, -2))), input, 0)
