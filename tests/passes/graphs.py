"""Small graphs over the op table for the tests of passes: built by calling operations, as a kernel would."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import BF16, F32, I32, DType
from pypto_dsl.compiler.graph import Builder, Graph, Symbol, Value, tensor_type
from pypto_dsl.compiler.index import Index, var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building

Parameter = tuple[str, DType, tuple[int | str, ...]]


def graph(name: str, function: Callable[..., Any], *parameters: Parameter, options: Mapping[str, str] | None = None) -> Graph:
    """A graph whose results go to parameters `out`, `out1`, ...; names in a shape are symbolic extents, () is a run-time scalar."""
    g = Graph(name, options=dict(options or {}))
    for n, dtype, shape in parameters:
        for axis, extent in enumerate(shape):
            if isinstance(extent, str):
                g.symbols.setdefault(extent, Symbol(extent, "dim", n, axis))
        extents: list[Index | int] = [var(e) if isinstance(e, str) else e for e in shape]
        g.parameters.append(Value(tensor_type(dtype, extents, weak=not shape), n))
    with building(Builder(g)):
        made = function(*g.parameters)
    for i, value in enumerate(made if isinstance(made, tuple) else (made,)):
        out = Value(value.type.with_dtype(value.type.dtype), "out" if i == 0 else f"out{i}")
        g.parameters.append(out)
        g.outputs[out.name] = value
    return g


def arrays(g: Graph, extents: Mapping[str, int], rng: np.random.Generator) -> dict[str, Any]:
    """Random arguments for every tensor parameter; outputs start as poison."""
    found: dict[str, Any] = {}
    for p in g.parameters:
        shape = tuple(e.evaluate(extents) for e in p.type.shape)
        dtype = p.type.dtype
        if p.name in g.outputs:
            found[p.name] = np.full(shape, 77, dtype=dtype.numpy)
        elif dtype.is_float:
            found[p.name] = rng.normal(size=shape).astype(np.float32).astype(dtype.numpy)
        elif dtype.kind == "bool":
            found[p.name] = rng.integers(0, 2, size=shape).astype(bool)
        else:
            found[p.name] = rng.integers(-9, 9, size=shape).astype(dtype.numpy)
    return found


def op(name: str) -> Callable[..., Any]:
    return R[name]


def sixteen(x: Value) -> Value:
    return R["mul"](R["silu"](x), x)


# name -> (function, parameters); M, N, K, B are symbolic.
CASES: dict[str, tuple[Callable[..., Any], Sequence[Parameter]]] = {
    "add": (op("add"), (("x", F32, ("M", "N")), ("y", F32, ("M", "N")))),
    "add_row": (op("add"), (("x", F32, ("M", "N")), ("y", F32, ("N",)))),
    "row_col": (op("add"), (("r", F32, (1, "N")), ("c", F32, ("M", 1)))),
    "scalar": (op("pow"), (("x", F32, ("M", "N")), ("a", F32, ()))),
    "softmax": (lambda x: R["softmax"](x, -1), (("x", F32, ("M", "N")),)),
    "softmax_first": (lambda x: R["softmax"](x, 0), (("x", F32, ("M", "N")),)),
    "softmax_bf16": (lambda x: R["softmax"](x, -1), (("x", BF16, ("M", "N")),)),
    "layer_norm": (op("layer_norm"), (("x", F32, ("M", "N")), ("g", F32, ("N",)), ("b", F32, ("N",)))),
    "rms_norm_mixed": (op("rms_norm"), (("x", BF16, ("B", "M", "N")), ("g", F32, ("N",)))),
    "swiglu": (lambda x, y: R["mul"](R["silu"](x), y), (("x", BF16, ("M", "N")), ("y", BF16, ("M", "N")))),
    "ldexp": (op("ldexp"), (("x", F32, ("M", "N")), ("b", I32, ("M", "N")))),
    "ldexp_real": (op("ldexp"), (("x", BF16, ("M", "N")), ("b", BF16, ("M", "N")))),
    "column_sum": (lambda x: R["sum"](x, 0), (("x", F32, ("M", "N")),)),
    "middle_sum": (lambda x: R["sum"](x, 1), (("x", F32, ("B", "M", "N")),)),
    "last_two": (lambda x: R["amax"](x, (-1, -2)), (("x", F32, ("B", "M", "N")),)),
    "total": (lambda x: R["sum"](x), (("x", F32, ("M", "N")),)),
    "tril": (op("tril"), (("x", F32, ("B", "M", "N")),)),
    "ffn": (lambda a, b, c: R["gelu"](R["add"](R["matmul"](a, b), c)),
            (("a", BF16, ("M", "K")), ("b", BF16, ("K", "N")), ("c", BF16, ("N",)))),
    "matmul_batched": (op("matmul"), (("a", F32, ("B", "M", "K")), ("b", F32, ("K", "N")))),
    "matmul_stacks": (lambda a, b: R["matmul"](a, b, None, True, True), (("a", F32, ("B", "K", "M")), ("b", F32, ("B", "N", "K")))),
    "broadcast_middle": (op("add"), (("a", F32, (2, 1, 3, "N")), ("b", F32, (2, 4, 3, "N")))),
    "transposed": (lambda a, b: R["add"](R["permute"](a, (1, 0)), b), (("a", F32, ("M", "N")), ("b", F32, ("N", "M")))),
    "centre_columns": (lambda a: R["sub"](a, R["mean"](a, 0, True)), (("a", F32, ("M", "N")),)),
    "no_keepdim": (lambda x: R["sub"](x, R["reshape"](R["mean"](x, -1), (var("M"), 1))), (("x", F32, ("M", "N")),)),
    "two_outputs": (lambda x: (R["exp"](x), R["sum"](R["exp"](x), -1, True)), (("x", F32, ("M", "N")),)),
    "variance_twice": (lambda x: R["add"](R["mean"](R["square"](x), -1, True), R["amax"](x, -1, True)), (("x", F32, ("M", "N")),)),
    "attention": (lambda q, k, v: R["matmul"](R["softmax"](R["mul"](R["matmul"](q, k, None, False, True), 0.125), -1), v),
                  (("q", F32, ("B", "M", "K")), ("k", F32, ("B", "N", "K")), ("v", F32, ("B", "N", "K")))),
    "integer": (lambda x: R["add"](R["maximum"](x, 3), R["mul"](x, x)), (("x", I32, ("M", "N")),)),
    "diamond": (lambda x: R["add"](R["mul"](R["exp"](x), 2.0), R["sub"](R["exp"](x), x)), (("x", F32, ("M", "N")),)),
    "sixteen": (sixteen, (("x", BF16, ("M", "N")),)),
    "reshaped": (lambda x: R["exp"](R["reshape"](R["softmax"](x, -1), (-1,))), (("x", F32, ("M", "N")),)),
    "scaled_bias": (lambda x, b: R["add"](x, R["mul"](b, 2.0)), (("x", F32, ("M", "N")), ("b", F32, ("N",)))),
}
