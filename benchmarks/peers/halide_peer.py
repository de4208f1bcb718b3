"""Halide: float32 pipelines with schedules of ours, some minutes of work each and not an expert's."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import halide
import numpy as np

from benchmarks.peers import Inputs, Prepare, Prepared
from benchmarks.workloads import Workload

F = halide.f32
LANES = 16
SERIAL_ELEMENTS = 4096
LOWEST = -3e38
Target = Any


def _tanh(z: Any) -> Any:
    grown = halide.exp(F(2) * halide.clamp(z, F(-15), F(15)))
    return (grown - F(1)) / (grown + F(1))


def _gelu(x: Any) -> Any:
    return F(0.5) * x * (F(1) + _tanh(F(math.sqrt(2 / math.pi)) * (x + F(0.044715) * x * x * x)))


ELEMENTS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "fma_relu": lambda a, b, c: halide.max(a * b + c, F(0)),
    "exp": lambda x: halide.exp(x),
    "log": lambda x: halide.log(x),
    "tanh": _tanh,
    "sin": lambda x: halide.sin(x),
    "gelu": _gelu,
    "swiglu": lambda a, b: a / (F(1) + halide.exp(-a)) * b,
    "pow": lambda x, y: halide.pow(x, y),
    "pow_2": lambda x: x * x,
    "pow_half": lambda x: halide.sqrt(x),
    "pow_2p7": lambda x: halide.pow(x, F(2.7)),
}


def _elementwise(name: str) -> Callable[[Any, Any, dict[str, Any], tuple[int, ...]], None]:
    def build(result: Any, _: Target, operands: dict[str, Any], shape: tuple[int, ...]) -> None:
        x, y = halide.Var("x"), halide.Var("y")
        result[x, y] = ELEMENTS[name](*[b[x, y] for b in operands.values()])
        result.vectorize(x, LANES)
        if shape[0] * shape[1] > SERIAL_ELEMENTS:
            outer, inner = halide.Var("outer"), halide.Var("inner")
            result.split(y, outer, inner, 16).parallel(outer)

    return build


def _softmax(result: Any, _: Target, operands: dict[str, Any], shape: tuple[int, ...]) -> None:
    source, width = operands["x"], shape[1]
    x, y, u = halide.Var("x"), halide.Var("y"), halide.Var("u")
    steps, lanes = halide.RDom([(0, width // LANES)]), halide.RDom([(0, LANES)])
    maxima, largest, weight, sums, total, scale = (halide.Func(n) for n in ("maxima", "largest", "weight", "sums", "total", "scale"))
    maxima[u, y] = F(LOWEST)
    maxima[u, y] = halide.max(maxima[u, y], source[steps * LANES + u, y])
    largest[y] = F(LOWEST)
    largest[y] = halide.max(largest[y], maxima[lanes, y])
    weight[x, y] = halide.exp(source[x, y] - largest[y])
    sums[u, y] = F(0)
    sums[u, y] += weight[steps * LANES + u, y]
    total[y] = F(0)
    total[y] += sums[lanes, y]
    scale[y] = F(1) / total[y]
    result[x, y] = weight[x, y] * scale[y]
    result.vectorize(x, LANES)
    if shape[0] * shape[1] > SERIAL_ELEMENTS:
        result.parallel(y, 8)
    for stage in (maxima, sums):
        stage.compute_at(result, y).bound(u, 0, LANES).vectorize(u)
        stage.update().vectorize(u)
    for stage in (largest, total, scale):
        stage.compute_at(result, y)
    weight.compute_at(result, y).vectorize(x, LANES)


def _last(combine: Callable[[Any, Any], Any], identity: float) -> Callable[..., None]:
    def build(result: Any, _: Target, operands: dict[str, Any], shape: tuple[int, ...]) -> None:
        source, width = operands["x"], 64
        u, y = halide.Var("u"), halide.Var("y")
        steps, lanes = halide.RDom([(0, shape[1] // width)]), halide.RDom([(0, width)])
        partial = halide.Func("partial")
        partial[u, y] = F(identity)
        partial[u, y] = combine(partial[u, y], source[steps * width + u, y])
        result[y] = F(identity)
        result[y] = combine(result[y], partial[lanes, y])
        if shape[0] * shape[1] > SERIAL_ELEMENTS:
            result.parallel(y, 16)
            result.update().parallel(y, 16)
        partial.compute_at(result, y).bound(u, 0, width).vectorize(u, LANES).unroll(u)
        partial.update().reorder(u, steps.x).vectorize(u, LANES).unroll(u)

    return build


def _first(combine: Callable[[Any, Any], Any], identity: float) -> Callable[..., None]:
    def build(result: Any, _: Target, operands: dict[str, Any], shape: tuple[int, ...]) -> None:
        x, outer, inner = halide.Var("x"), halide.Var("outer"), halide.Var("inner")
        rows = halide.RDom([(0, shape[0])])
        result[x] = F(identity)
        result[x] = combine(result[x], operands["x"][x, rows])
        update = result.update().split(x, outer, inner, min(512, shape[1])).reorder(inner, rows.x, outer).vectorize(inner, LANES)
        if shape[0] * shape[1] > SERIAL_ELEMENTS:
            update.parallel(outer)

    return build


def _matmul(epilogue: Callable[..., Any]) -> Callable[..., None]:
    def build(result: Any, _: Target, operands: dict[str, Any], shape: tuple[int, ...]) -> None:
        height, width = shape
        x, y = halide.Var("x"), halide.Var("y")
        k = halide.RDom([(0, width)])
        product = halide.Func("product")
        product[x, y] = F(0)
        product[x, y] += operands["a"][k, y] * operands["b"][x, k]
        result[x, y] = epilogue(product[x, y], *([operands["bias"][x]] if "bias" in operands else []))
        xo, yo, xi, yi = (halide.Var(n) for n in ("xo", "yo", "xi", "yi"))
        result.tile(x, y, xo, yo, xi, yi, 64, 8).vectorize(xi, LANES).unroll(xi).unroll(yi)
        if height * width > SERIAL_ELEMENTS:
            inner = halide.Var("inner")
            result.split(yo, yo, inner, 8).parallel(yo)
        product.compute_at(result, xo).vectorize(x, LANES).unroll(x).unroll(y)
        product.update().reorder(x, y, k.x).vectorize(x, LANES).unroll(x).unroll(y).unroll(k.x, 2)

    return build


BUILDERS: dict[str, Callable[..., None]] = {
    **{name: _elementwise(name) for name in ELEMENTS},
    "softmax": _softmax,
    "sum_last": _last(lambda a, b: a + b, 0.0),
    "max_last": _last(lambda a, b: halide.max(a, b), LOWEST),
    "sum_first": _first(lambda a, b: a + b, 0.0),
    "matmul": _matmul(lambda product: product),
    "matmul_bias_gelu": _matmul(lambda product, bias: _gelu(product + bias)),
}  # the maximum of columns is absent: its schedule crashed Halide 21


def load(threads: int) -> Prepare:
    """Threads are set by the environment."""
    return prepare


def prepare(workload: Workload, inputs: Inputs) -> Prepared | None:
    """The compiled pipeline, realized into preallocated memory; None for other dtypes and what has no schedule."""
    build = BUILDERS.get(workload.operation.name)
    if build is None or workload.dtype != "f32":
        return None
    result, target = halide.Func("result"), halide.get_host_target()
    build(result, target, {name: halide.Buffer(a) for name, a in inputs.items()}, workload.shape)
    result.compile_jit(target)
    out = np.ascontiguousarray(workload.output())
    buffer = halide.Buffer(out)
    return Prepared(lambda: result.realize(buffer), lambda _: out)
