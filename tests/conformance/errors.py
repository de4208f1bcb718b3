"""The error of a result in units in the last place against the exact one, counted as the operation's bound says."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from cells import Array, Cell
from samples import reference_keywords

from pypto_dsl.compiler.accuracy import bound
from pypto_dsl.compiler.dtypes import DType, of_numpy
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.targets import Target

# The smallest exponent (frexp's) of a unit in the last place.
LOWEST = {"f16": -24, "bf16": -133, "f32": -149, "f64": -1074}
LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": float(np.finfo(np.float32).max), "f64": float(np.finfo(np.float64).max)}
OVERFLOWS = 2.0**126  # terms of a sum from here on may leave f32 on the way, which a sum in float64 does not


@dataclass(frozen=True)
class Worst:
    """The largest error of a cell: in ulp (inf: a special value, an integer or a sign differs), and where, in words."""

    ulp: float
    where: str = ""


def ulps(got: Array, want: Array, rounded: Array, dtype: DType, scale: Array | None = None) -> Array:
    """|got - want| in ulp of ``want`` (of ``scale`` where that is larger).

    0 where the result is the exact one rounded once and that is not finite; inf where NaN, infinity or the sign of a zero differs. A finite
    result beside an infinite one counts 1 when it is the largest float, or its neighbour.
    """
    with np.errstate(all="ignore"):
        g, w, r = got.astype(np.float64), np.asarray(want, np.float64), rounded.astype(np.float64)
        magnitude = np.abs(w) if scale is None else np.fmax(np.abs(w), np.where(np.isfinite(scale), scale, 0.0))
        _, exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 1.0))
        unit = np.ldexp(1.0, np.maximum(exponent - dtype.mantissa, LOWEST[dtype.name]))
        error = np.abs(g - w) / unit
        finite = np.isfinite(g) & np.isfinite(r)
        same = (np.isnan(g) & np.isnan(r)) | (~finite & (g == r))
        edge = np.minimum(np.abs(g), np.abs(r)) >= LARGEST[dtype.name] * (1 - 2.0 ** (2 - dtype.mantissa))
        near = ~finite & ~np.isnan(g) & ~np.isnan(r) & (np.sign(g) == np.sign(r)) & edge
        zeros = (g == 0) & (r == 0) & (np.signbit(g) != np.signbit(r))
    if scale is not None:
        zeros &= False  # a sum that cancels or underflows may lose the sign of its zero
    return np.where(same, 0.0, np.where(near, 1.0, np.where(finite & ~zeros, error, np.inf)))


def scale_of(cell: Cell, given: list[Array]) -> Array | None:
    """The magnitudes whose ulp are meant, where the operation names any."""
    definition = REGISTRY[cell.name]
    if definition.scale is None:
        return None
    keywords: dict[str, Any] = {**reference_keywords(definition), **cell.attributes}
    with np.errstate(all="ignore"):
        return np.asarray(definition.scale(*(a.astype(np.float64) for a in given), **keywords))


def worst(cell: Cell, got: Array, want: Array, rounded: Array, given: list[Array]) -> Worst:
    """The largest error of one result. ``want`` is exact, ``rounded`` what the interpreter makes of it."""
    assert got.dtype == rounded.dtype and got.shape == rounded.shape, (got.dtype, got.shape, rounded.dtype, rounded.shape)
    dtype = of_numpy(got.dtype)
    assert dtype is not None
    if not got.size:
        return Worst(0.0)
    if not dtype.is_float or dtype.bits == 8:
        g, r = got.astype(np.float64) if dtype.is_float else got, rounded.astype(np.float64) if dtype.is_float else rounded
        wrong = (g != r) & ~((g != g) & (r != r))
        at = int(np.argmax(wrong))
        return Worst(np.inf, described(at, got, rounded, given)) if wrong.any() else Worst(0.0)
    scale = scale_of(cell, given)
    error = ulps(got, np.broadcast_to(want, got.shape), rounded, dtype, scale)
    if scale is not None:
        error = np.where(np.broadcast_to(scale, error.shape) > OVERFLOWS, 0.0, error)
    at = int(np.argmax(error))
    return Worst(float(error.ravel()[at]), described(at, got, rounded, given))


def described(at: int, got: Array, rounded: Array, given: list[Array]) -> str:
    """`(1.5, -0.0) gives 2.0, not 2.5`, or the element's place where operands have other shapes."""
    place = tuple(int(i) for i in np.unravel_index(at, got.shape))
    if given and all(a.shape == got.shape for a in given):
        here = f"({', '.join(shown(a[place]) for a in given)})"
    else:
        here = f"element {list(place)}"
    return f"{here} gives {shown(got[place])}, not {shown(rounded[place])}"


def shown(number: Any) -> str:
    """A number with the digits that tell it from its neighbours."""
    value = number.item() if hasattr(number, "item") else number
    if isinstance(value, float):
        return f"{value:.17g}" if number.dtype == np.float64 else f"{value:.9g}"
    return str(value)


def allowed(cell: Cell, dtype: DType, target: Target | None) -> float:
    """The bound of a result; it is an error of the tables when there is none."""
    found = bound(REGISTRY[cell.name], dtype, target)
    assert found is not None, f"{cell.name} states no bound for {dtype}"
    # an ulp of the exact result is taken at the exact one; the reference's own float64 is off by less than this
    return found.ulp * (1 + 2.0**-20)
