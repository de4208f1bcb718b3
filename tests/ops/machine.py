"""Runs single operations on the interpreter, as they stand or expanded for a target that has primitives only, and measures errors."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import ALL, SIXTEEN_BIT_FLOATS, DType, of_numpy
from pypto_dsl.compiler.graph import Builder, Graph, Value, tensor_type
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.passes.legalize import legalize
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.targets.target import Target, from_data
from pypto_dsl.compiler.verify import verify
from pypto_dsl.runtime.interpreter import run

Array = np.ndarray[Any, np.dtype[Any]]
TILE = {"flatten": True, "flat": 64, "rows": 1, "cols": 64, "column_rows": 1, "column_cols": 1, "matmul": [1, 1, 1]}
WIDE = [d.name for d in ALL if d not in SIXTEEN_BIT_FLOATS and d.kind != "block"]


def primitives_target(without: Sequence[str] = ()) -> Target:
    """A target with every primitive on every dtype but the 16-bit floats, and no composite operation."""
    ops: dict[str, list[str]] = {n: list(WIDE) for n, d in REGISTRY.items() if d.is_primitive and n not in without}
    ops |= {name: ["*"] for name in ("cast", "bitcast", "where")}
    ops |= {n: ["*"] for n, d in REGISTRY.items() if d.is_primitive and d.family in ("layout", "generator", "scalar", "index")}
    return from_data({"name": "primitives", "title": "primitives", "family": "none", "tile": TILE, "ops": ops, "limits": {}})


PRIMITIVES = primitives_target()


def graph_of(function: Callable[..., Any], *arrays: Array, rules: str = "pypto") -> Graph:
    """A graph of ``function`` over parameters like ``arrays``, with every result returned."""
    g = Graph("one", options={"promotion": rules})
    for i, array in enumerate(arrays):
        dtype = of_numpy(array.dtype)
        assert dtype is not None
        g.parameters.append(Value(tensor_type(dtype, array.shape), f"p{i}"))
    with building(Builder(g)):
        made = function(*g.parameters)
    g.returns = list(made) if isinstance(made, tuple) else [made]
    return g


def execute(g: Graph, *arrays: Array) -> list[Array]:
    """The graph's results on the interpreter."""
    results = run(g, {f"p{i}": a for i, a in enumerate(arrays)})
    return [results[f"return{i}"] for i in range(len(g.returns))]


def evaluate(name: str, *arrays: Array, rules: str = "pypto", **attributes: Any) -> Any:
    """One operation by its reference: an array, or a list of them."""
    g = graph_of(lambda *p: REGISTRY[name](*p, **attributes), *arrays, rules=rules)
    verify(g, "test")
    results = execute(g, *arrays)
    return results[0] if len(results) == 1 else results


def expanded(function: Callable[..., Any], *arrays: Array, rules: str = "pypto", target: Target = PRIMITIVES) -> Graph:
    """The graph of ``function`` promoted and legalized for ``target``."""
    g = promote(graph_of(function, *arrays, rules=rules))
    verify(g, "promote")
    lowered = legalize(g, target)
    verify(lowered, "legalize")
    return lowered


def bits_apart(got: Array, want: Array) -> Array:
    """How many representable values lie between two arrays of one float dtype (0: the same; -0 and +0 are one apart)."""
    integer = {2: np.int16, 4: np.int32, 8: np.int64, 1: np.int8}[got.dtype.itemsize]
    lowest = np.int64(np.iinfo(integer).min)

    def order(x: Array) -> Array:
        field = np.ascontiguousarray(x).view(integer).astype(np.int64)
        return np.where(field < 0, lowest - field - 1, field)

    return np.abs(order(got) - order(want))


def ulps(got: Array, want: Array, scale: Array | None = None) -> Array:
    """The error in units in the last place of ``want``, or of ``scale`` where that is larger; inf where a special value differs.

    Zeros of different sign (without a scale), NaN against a number and inf against a finite number differ. Beyond the largest float, a
    finite result counts as its neighbour.
    """
    g, w = got.astype(np.float64), want.astype(np.float64)
    info = np.finfo(np.float32) if got.dtype == np.float32 else np.finfo(np.float64) if got.dtype == np.float64 else None
    mantissa = {"float32": 24, "float64": 53, "float16": 11, "bfloat16": 8}[got.dtype.name]
    lowest = {"float32": -149, "float64": -1074, "float16": -24, "bfloat16": -133}[got.dtype.name]
    with np.errstate(all="ignore"):
        magnitude = np.abs(w) if scale is None else np.maximum(np.abs(w), np.where(np.isfinite(scale), scale, 0.0))
        _, exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 1.0))
        unit = np.ldexp(1.0, np.maximum(exponent - mantissa, lowest))
        error = np.abs(g - w) / unit
        same = (np.isnan(g) & np.isnan(w)) | ((g == w) & ((g != 0) | (np.signbit(g) == np.signbit(w))))
        both = np.isfinite(g) & np.isfinite(w)
        edge = (np.isinf(g) != np.isinf(w)) & ~np.isnan(g) & ~np.isnan(w) & (np.sign(g) == np.sign(w))
        largest = float(info.max) if info is not None else float(np.array(_largest(got.dtype.name)))
        near = edge & (np.minimum(np.abs(g), np.abs(w)) > largest * (1 - 2.0 ** (3 - mantissa)))
        zeros = both & (g == 0) & (w == 0) & ~same
    if scale is not None:
        same |= zeros  # a sum that cancels or underflows may lose the sign of its zero
    return np.where(same, 0.0, np.where(near, 1.0, np.where(both & ~zeros, error, np.inf)))


def _largest(name: str) -> float:
    return {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}[name]


def sixteen(dtype: DType) -> bool:
    """Whether results are rounded to 16 bits."""
    return dtype in SIXTEEN_BIT_FLOATS


def rounded(x: Mapping[str, Any] | Array, dtype: DType) -> Array:
    """float64 to an array of ``dtype``."""
    with np.errstate(all="ignore"):
        return np.asarray(x, np.float64).astype(np.float32 if dtype.bits <= 32 else np.float64).astype(dtype.numpy)
