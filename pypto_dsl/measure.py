"""The numbers of a run: the kernel in float64 as reference, errors in units of the last place, generated inputs, times."""
from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import F64, DType, of_numpy
from pypto_dsl.compiler.graph import Attribute, Graph, Op, Region, TensorType, Value, walk
from pypto_dsl.runtime import interpreter

Array = np.ndarray[Any, np.dtype[Any]]
# Operations that speak of the bits of a dtype, so that the same graph in float64 means something else.
BITWISE = frozenset({"bitcast"})


def in_float64(graph: Graph) -> Graph | None:
    """The same graph with every float type FP64, which the interpreter evaluates without the roundings of the kernel's own dtypes.

    None when the graph speaks of the bits of a narrower dtype. Weak numbers stay weak: they land on FP64 exactly.
    """
    if any(op.opcode in BITWISE for op in walk(graph.body)):
        return None
    values: dict[Value, Value] = {}

    def widened(value: Value) -> Value:
        if value not in values:
            values[value] = Value(_wide_type(value.type), value.name)
        return values[value]

    def region(source: Region) -> Region:
        made = Region([widened(a) for a in source.arguments])
        for op in source.ops:
            new = Op(op.opcode, [widened(o) for o in op.operands], [_wide_type(r.type) for r in op.results],
                     {k: _wide_attribute(v) for k, v in op.attributes.items()}, [region(r) for r in op.regions], op.span, op.tile,
                     [r.name for r in op.results])
            values.update(zip(op.results, new.results, strict=True))
            made.ops.append(new)
        made.yields = [widened(y) for y in source.yields]
        return made

    options = {k: v for k, v in graph.options.items() if k != "promotion"}  # other rule sets may refuse FP64
    parameters, body = [widened(p) for p in graph.parameters], region(graph.body)
    outputs, returns = {name: widened(v) for name, v in graph.outputs.items()}, [widened(v) for v in graph.returns]
    return Graph(graph.name, parameters, dict(graph.symbols), body, outputs, returns, options, list(graph.checks), graph.span)


def _wide_type(t: TensorType) -> TensorType:
    return t if t.weak or t.dtype.kind != "float" else TensorType(F64, t.shape, False, t.valid)


def _wide_attribute(value: Attribute) -> Attribute:
    return F64 if isinstance(value, DType) and value.kind == "float" else value


def reference(graph: Graph, arrays: Mapping[str, Any], symbols: Mapping[str, int]) -> dict[str, Array]:
    """What the kernel computes, by output and returned name, without rounding to its own float dtypes. Nothing is written.

    Raises KernelError as the interpreter does.
    """
    wide = in_float64(graph)
    if wide is None:
        return interpreter.run(graph, dict(arrays), dict(symbols))
    with np.errstate(all="ignore"):  # outputs may hold anything before they are written
        given = {p.name: np.asarray(arrays[p.name]).astype(np.float64) if _is_wide(p) else arrays[p.name]
                 for p in wide.parameters if p.name in arrays}
    return interpreter.run(wide, given, dict(symbols))


def _is_wide(parameter: Value) -> bool:
    return parameter.type.dtype == F64 and not parameter.type.weak


@dataclass(frozen=True)
class Error:
    """The largest error of a result: in units of the last place at the exact value, and as a fraction of the largest exact magnitude."""

    ulp: float
    relative: float


def largest_error(got: Array, exact: Array) -> Error:
    """How far ``got`` is from ``exact``, an array of the same shape, usually float64. Ulp of integers are their differences.

    Elements that are not finite in both count as infinitely far off, unless they are the same.
    """
    dtype = of_numpy(got.dtype) or F64
    a, b = np.asarray(got).astype(np.float64), np.asarray(exact).astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not same[~(np.isfinite(a) & np.isfinite(b))].all():
        return Error(math.inf, math.inf)
    error = np.abs(np.subtract(a, b, where=~same, out=np.zeros(a.shape)))
    units = error / spacing(np.where(np.isfinite(b), b, 1.0), dtype) if dtype.is_float else error
    scale = float(np.max(np.abs(b), where=np.isfinite(b), initial=0.0))
    largest = float(error.max(initial=0.0))
    return Error(float(units.max(initial=0.0)), largest / scale if scale else largest)


def limits(dtype: DType) -> tuple[float, float]:
    """The largest finite number and the smallest subnormal of a float dtype."""
    info = dtype.finfo
    return float(info.max), float(info.smallest_subnormal)


def spacing(x: Array, dtype: DType) -> Array:
    """The distance of neighbours of ``dtype`` (one ulp) at the magnitude of each element of ``x``, a float64 array of finite numbers."""
    _, exponent = np.frexp(np.abs(x))
    found: Array = np.maximum(np.where(x == 0, 0.0, np.ldexp(1.0, exponent - dtype.mantissa)), limits(dtype)[1])
    return found


def generated(shape: Sequence[int], dtype: DType, generator: np.random.Generator) -> Array:
    """Random values: floats normal around 0, integers from -8 to 8 (unsigned: 0 to 15), bool evenly."""
    if dtype.kind == "bool":
        return generator.integers(0, 2, shape).astype(dtype.numpy)
    if dtype.is_integer:
        return generator.integers(*((-8, 9) if dtype.signed else (0, 16)), shape).astype(dtype.numpy)
    return generator.standard_normal(shape).astype(dtype.numpy)


def seconds(call: Callable[[], object], budget: float = 0.25, most: int = 200) -> float:
    """The shortest of several calls in seconds, until ``budget`` seconds are spent; the first one, which compiles, is not timed."""
    call()
    best, spent, count = math.inf, 0.0, 0
    while count < most and (spent < budget or count < 3):
        start = time.perf_counter()
        call()
        taken = time.perf_counter() - start
        best, spent, count = min(best, taken), spent + taken, count + 1
    return best
