"""Reductions that expand into the core's sum and extremes, and the scans."""
from __future__ import annotations

import math

import numpy as np

from pypto_dsl.compiler.dtypes import F32, I32
from pypto_dsl.compiler.graph import Attribute
from pypto_dsl.compiler.ops import index_rules, shapes, typing
from pypto_dsl.compiler.ops.core import (
    abs,
    add,
    amax,
    amin,
    cast,
    div,
    eq,
    exp,
    iota,
    log,
    lt,
    maximum,
    mul,
    ne,
    prod,
    reshape,
    sqrt,
    sub,
    where,
)
from pypto_dsl.compiler.ops.core import sum as sum_
from pypto_dsl.compiler.ops.definition import Tensor, op
from pypto_dsl.compiler.ops.logical import logical_not
from pypto_dsl.compiler.ops.references import reductions
from pypto_dsl.compiler.ops.rows import count, mean
from pypto_dsl.compiler.ops.shapes import element_count

SUMS = "sums of 4 ulp of their magnitudes"


@op(types=typing.logical, shape=shapes.reduce, reference=reductions.any_, family="reduce")
def any(input: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """Whether any element along ``dim`` is not 0 (NaN is not); of nothing False."""
    return ne(sum_(cast(input, F32), dim, keepdim), 0.0)


@op(types=typing.logical, shape=shapes.reduce, reference=reductions.all_, family="reduce")
def all(input: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """Whether every element along ``dim`` is not 0; of nothing True."""
    return eq(sum_(cast(logical_not(input), F32), dim, keepdim), 0.0)


@op(types=typing.keep, shape=shapes.reduce_nonempty, reference=reductions.nan_extreme(True), family="reduce", bound={"f32": 0},
    derivation="selects", dtypes=typing.NUMBERS)
def nanmax(input: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """`amax` that passes over NaN; NaN where there is nothing else."""
    if not input.type.dtype.is_float:
        return amax(input, dim, keepdim)
    best = amax(where(ne(input, input), -math.inf, input), dim, keepdim)
    return where(any(eq(input, input), dim, keepdim), best, math.nan)


@op(types=typing.keep, shape=shapes.reduce_nonempty, reference=reductions.nan_extreme(False), family="reduce", bound={"f32": 0},
    derivation="selects", dtypes=typing.NUMBERS)
def nanmin(input: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """`amin` that passes over NaN; NaN where there is nothing else."""
    if not input.type.dtype.is_float:
        return amin(input, dim, keepdim)
    best = amin(where(ne(input, input), math.inf, input), dim, keepdim)
    return where(any(eq(input, input), dim, keepdim), best, math.nan)


@op(types=typing.accumulate, shape=shapes.reduce, reference=reductions.nansum, family="reduce", bound={"f32": 4}, derivation=SUMS,
    dtypes=typing.NUMBERS, scale=lambda x, dim=None, keepdim=False, **_: reductions.nansum(np.abs(x), dim, keepdim))
def nansum(input: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """The sum of the elements that are no NaN: `sum` with nan="ignore"."""
    return sum_(where(ne(input, input), 0, input) if input.type.dtype.is_float else input, dim, keepdim)


@op(types=typing.product, shape=shapes.reduce, reference=reductions.nanprod, family="reduce", bound={"f32": 64},
    derivation="as prod", dtypes=typing.NUMBERS)
def nanprod(input: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """The product of the elements that are no NaN: `prod` with nan="ignore"."""
    return prod(where(ne(input, input), 1, input) if input.type.dtype.is_float else input, dim, keepdim)


@op(types=typing.mean, shape=shapes.reduce, reference=reductions.nanmean, family="reduce", bound={"f32": 5},
    derivation=SUMS + ", and a quotient", dtypes=typing.FLOATS,
    scale=lambda x, dim=None, keepdim=False, **_: reductions.nanmean(np.abs(x), dim, keepdim))
def nanmean(input: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """The mean of the elements that are no NaN; NaN where there is none."""
    missing = ne(input, input)
    return div(sum_(where(missing, 0.0, input), dim, keepdim), sum_(cast(logical_not(missing), input.type.dtype), dim, keepdim))


@op(types=typing.mean, shape=shapes.reduce, reference=reductions.var, family="reduce", bound={"f32": 12},
    derivation="two passes: " + SUMS + " over squares (1.5 each) and a quotient; the mean's error enters squared", dtypes=typing.FLOATS,
    scale=reductions.var_scale, variants={("nan", "ignore"): "nanvar"})
def var(input: Tensor, dim: Attribute = None, correction: float = 1, keepdim: bool = False, nan: str = "propagate") -> Tensor:
    """The variance along ``dim``: squared distances from the mean, in a second pass, divided by max(0, N - ``correction``).

    NaN propagates (``nan="ignore"``: it is passed over, and not counted).
    """
    centred = sub(input, mean(input, dim, True))
    total = sum_(mul(centred, centred), dim, keepdim)
    return div(total, maximum(sub(count(input, dim), float(correction)), 0.0))


@op(types=typing.mean, shape=shapes.reduce, reference=reductions.std, family="reduce", bound={"f32": 12},
    derivation="half of var's, and a root", dtypes=typing.FLOATS, scale=reductions.std_scale, variants={("nan", "ignore"): "nanstd"})
def std(input: Tensor, dim: Attribute = None, correction: float = 1, keepdim: bool = False, nan: str = "propagate") -> Tensor:
    """The standard deviation: the root of `var`."""
    return sqrt(var(input, dim, correction, keepdim))


@op(types=typing.mean, shape=shapes.reduce, reference=reductions.nanvar, family="reduce", bound={"f32": 12}, derivation="as var",
    dtypes=typing.FLOATS, scale=reductions.passing_over_nan(reductions.var_scale))
def nanvar(input: Tensor, dim: Attribute = None, correction: float = 1, keepdim: bool = False) -> Tensor:
    """The variance of the elements that are no NaN: `var` with nan="ignore"; NaN where there are too few."""
    missing = ne(input, input)
    centred = where(missing, 0.0, sub(input, nanmean(input, dim, True)))
    present = sum_(cast(logical_not(missing), input.type.dtype), dim, keepdim)
    return div(sum_(mul(centred, centred), dim, keepdim), maximum(sub(present, float(correction)), 0.0))


@op(types=typing.mean, shape=shapes.reduce, reference=reductions.nanstd, family="reduce", bound={"f32": 12}, derivation="as std",
    dtypes=typing.FLOATS, scale=reductions.passing_over_nan(reductions.std_scale))
def nanstd(input: Tensor, dim: Attribute = None, correction: float = 1, keepdim: bool = False) -> Tensor:
    """The standard deviation of the elements that are no NaN: the root of `nanvar`."""
    return sqrt(nanvar(input, dim, correction, keepdim))


@op(types=typing.mean, shape=shapes.reduce_nonempty, reference=reductions.euclidean_norm, family="reduce", bound={"f32": 6},
    derivation="a quotient and a square per element, half of the sum's 4, a root and a product", dtypes=typing.FLOATS)
def euclidean_norm(input: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """``sqrt(sum(input**2))`` without overflow: elements are divided by the largest magnitude first."""
    largest = amax(abs(input), dim, True)
    regular = where(lt(largest, math.inf), where(eq(largest, 0.0), 1.0, largest), 1.0)
    scaled = div(input, regular)
    if keepdim:
        return mul(sqrt(sum_(mul(scaled, scaled), dim, True)), regular)
    root = sqrt(sum_(mul(scaled, scaled), dim, False))
    return mul(root, reshape(regular, root.type.shape))


@op(types=typing.float_unary, shape=shapes.reduce_nonempty, reference=reductions.logsumexp, family="reduce", bound={"f32": 6},
    derivation="exponentials of differences, a sum, log, and a sum; counted in ulp of the largest magnitude and at least 1",
    scale=reductions.logsumexp_scale, dtypes=typing.FLOATS)
def logsumexp(input: Tensor, dim: Attribute = None, keepdim: bool = False) -> Tensor:
    """``log(sum(exp(input)))``, shifted by the largest element where that is finite."""
    largest = amax(input, dim, True)
    shift = where(lt(abs(largest), math.inf), largest, where(ne(largest, largest), largest, 0.0))
    total = log(sum_(exp(sub(input, shift)), dim, keepdim))
    return add(total, shift if keepdim else reshape(shift, total.type.shape))


@op(types=typing.float_unary, shape=shapes.along_axis, reference=reductions.log_softmax, family="row", bound={"f32": 6},
    derivation="exponentials of differences, a sum, log, and a difference; counted in ulp of the distance from the largest, at least 1",
    scale=reductions.log_softmax_scale, dtypes=typing.FLOATS)
def log_softmax(input: Tensor, dim: int = -1) -> Tensor:
    """``log(softmax(input))``: input - max - log(sum(exp(input - max))) along ``dim``. A row of -inf is NaN."""
    shifted = sub(input, amax(input, dim, True))
    return sub(shifted, log(sum_(exp(shifted), dim, True)))


def _places(x: Tensor, dim: int) -> tuple[Tensor, float]:
    """The position of every element along ``dim``, as f32 while positions are exact there, and a number beyond all of them."""
    length = x.type.shape[dim].constant
    kind = F32 if length is not None and length <= 1 << 24 else I32
    return iota(x.type.shape, dim % x.type.rank, kind), 2.0**24 if kind is F32 else I32.range[1]


def _argument(x: Tensor, dim: Attribute, keepdim: bool, largest: bool, ignores_nan: bool = False) -> Tensor:
    """The first place of the extreme; of a NaN where there is one, or where nothing else is."""
    rank = x.type.rank
    if dim is None:
        x, axis = reshape(x, (element_count(x.type.shape),)), 0
    else:
        axis = dim if isinstance(dim, int) else 0
    position, beyond = _places(x, axis)
    if not x.type.dtype.is_float:
        hit = where(eq(x, (amax if largest else amin)(x, axis, True)), position, beyond)
    elif ignores_nan:
        best = (amax if largest else amin)(where(ne(x, x), -math.inf if largest else math.inf, x), axis, True)
        hit = where(eq(x, best), position, beyond)
    else:
        best = (amax if largest else amin)(x, axis, True)
        hit = where(ne(x, x), position, where(eq(x, best), position, beyond))
    found = amin(hit, axis, keepdim and dim is not None)
    if ignores_nan and x.type.dtype.is_float:
        found = where(lt(found, beyond), found, 0)
    place = cast(found, I32, "CAST_RINT")
    return reshape(place, (1,) * rank) if keepdim and dim is None else place


@op(types=index_rules.index_result, shape=index_rules.argument, reference=reductions.argmax, family="reduce", dtypes=typing.NUMBERS,
    variants={("nan", "ignore"): "nanargmax"})
def argmax(input: Tensor, dim: Attribute = -1, keepdim: bool = False, nan: str = "propagate") -> Tensor:
    """The position of the first NaN, else of the first largest element along ``dim`` (None: of the elements in row-major order).

    ``nan="ignore"`` passes over NaN.
    """
    return _argument(input, dim, keepdim, largest=True)


@op(types=index_rules.index_result, shape=index_rules.argument, reference=reductions.argmin, family="reduce", dtypes=typing.NUMBERS,
    variants={("nan", "ignore"): "nanargmin"})
def argmin(input: Tensor, dim: Attribute = -1, keepdim: bool = False, nan: str = "propagate") -> Tensor:
    """The position of the first NaN, else of the first smallest element along ``dim`` (None: of the elements in row-major order).

    ``nan="ignore"`` passes over NaN.
    """
    return _argument(input, dim, keepdim, largest=False)


@op(types=index_rules.index_result, shape=index_rules.argument, reference=reductions.nanargmax, family="reduce", dtypes=typing.NUMBERS)
def nanargmax(input: Tensor, dim: Attribute = -1, keepdim: bool = False) -> Tensor:
    """The position of the first largest element that is no NaN: `argmax` with nan="ignore"; 0 where there is none."""
    return _argument(input, dim, keepdim, largest=True, ignores_nan=True)


@op(types=index_rules.index_result, shape=index_rules.argument, reference=reductions.nanargmin, family="reduce", dtypes=typing.NUMBERS)
def nanargmin(input: Tensor, dim: Attribute = -1, keepdim: bool = False) -> Tensor:
    """The position of the first smallest element that is no NaN: `argmin` with nan="ignore"; 0 where there is none."""
    return _argument(input, dim, keepdim, largest=False, ignores_nan=True)


@op(types=typing.scan, shape=shapes.along_axis, reference=reductions.cumsum, family="scan", bound={"f32": 4}, derivation=SUMS,
    scale=lambda x, dim=0, **_: reductions.cumsum(np.abs(x), dim), dtypes=typing.NUMBERS)
def cumsum(input: Tensor, dim: int = 0) -> Tensor:
    """Running sums along ``dim``; integers give INT64 under the `pypto` rules."""
    ...


@op(types=typing.scan, shape=shapes.along_axis, reference=reductions.cumprod, family="scan", bound={"f32": 64},
    derivation="one rounding per factor: n / 2 ulp; the tests take up to 128 factors", dtypes=typing.NUMBERS)
def cumprod(input: Tensor, dim: int = 0) -> Tensor:
    """Running products along ``dim``; integers give INT64 under the `pypto` rules."""
    ...


