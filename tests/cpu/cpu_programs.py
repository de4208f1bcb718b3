"""The kernels of these tests: graphs over the op table, lowered for the CPU, with NumPy references in higher precision."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from pypto_dsl.compiler import targets
from pypto_dsl.compiler.dtypes import BF16, F16, F32, I32, DType
from pypto_dsl.compiler.graph import Builder, Graph, Symbol, Value, tensor_type
from pypto_dsl.compiler.index import Index, var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.passes.fuse import fuse
from pypto_dsl.compiler.passes.legalize import legalize
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.passes.sink import sink
from pypto_dsl.compiler.passes.tile import tile
from pypto_dsl.compiler.tile_ir.nodes import Program
from pypto_dsl.runtime.cpu.executable import Executable
from pypto_dsl.runtime.cpu.pool import Pool

Array = np.ndarray[Any, np.dtype[Any]]
Parameter = tuple[str, DType, tuple[int | str, ...]]


@dataclass(frozen=True)
class Kernel:
    """A function over the op table; `reference` takes float64 (or integer) arrays; `bound` is in ulp of the result's dtype at the
    scale that `scale` gives (None: of each element)."""

    function: Callable[..., Any]
    parameters: Sequence[Parameter]
    reference: Callable[..., Array]
    bound: float
    scale: Callable[..., Array] | None = None


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def _layer_norm(x: Array, g: Array, b: Array) -> Array:
    c = x - x.mean(axis=-1, keepdims=True)
    return np.asarray(c / np.sqrt((c * c).mean(axis=-1, keepdims=True) + 1e-5) * g + b)


def _bf16(x: Array) -> Array:
    return np.asarray(x.astype(np.float32).astype(BF16.numpy).astype(np.float64))


def _silu(x: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-x)))


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * np.frompyfunc(math.erfc, 1, 1)(-x * math.sqrt(0.5)).astype(np.float64))


def _ldexp(x: Array, n: Array) -> Array:
    whole = np.rint(n)
    return np.asarray(np.ldexp(x * np.exp2(n - whole), whole.astype(np.int64)))


M, N, K = "M", "N", "K"
KERNELS: dict[str, Kernel] = {
    "add": Kernel(R["add"], (("x", F32, (M, N)), ("y", F32, (M, N))), lambda x, y: x + y, 0.5),
    # exp(x - max): the difference's rounding weighs |x - max| in the result
    "softmax": Kernel(lambda x: R["softmax"](x, -1), (("x", F32, (M, N)),), _softmax, 1,
                      lambda x: _softmax(x) * (8 + np.abs(x - x.max(axis=-1, keepdims=True)))),
    "softmax_bf16": Kernel(lambda x: R["softmax"](x, -1), (("x", BF16, (M, N)),), _softmax, 0.51),
    "layer_norm": Kernel(R["layer_norm"], (("x", F32, (M, N)), ("g", F32, (N,)), ("b", F32, (N,))), _layer_norm, 8,
                         lambda x, g, b: np.abs(_layer_norm(x, g, b)) + np.abs(g) + np.abs(b) + 1),
    "pow_literal": Kernel(lambda x: R["pow"](R["abs"](x), 2.5), (("x", F32, (M, N)),), lambda x: np.abs(x) ** 2.5, 1),
    "square": Kernel(lambda x: R["pow"](x, 2.0), (("x", F32, (M, N)),), lambda x: x * x, 0.5),
    "pow_scalar": Kernel(lambda x, a: R["pow"](R["abs"](x), a), (("x", F32, (M, N)), ("a", F32, ())),
                         lambda x, a: np.abs(x) ** np.full(x.shape, a), 1),
    "pow_tensor": Kernel(lambda x, y: R["pow"](R["abs"](x), y), (("x", F32, (M, N)), ("y", F32, (M, N))), lambda x, y: np.abs(x) ** y, 1),
    "ldexp": Kernel(R["ldexp"], (("x", F32, (M, N)), ("n", I32, (M, N))), _ldexp, 0.5),
    "ldexp_real": Kernel(R["ldexp"], (("x", BF16, (M, N)), ("n", BF16, (M, N))), _ldexp, 0.51),
    "swiglu": Kernel(lambda x, y: R["mul"](R["silu"](x), y), (("x", BF16, (M, N)), ("y", BF16, (M, N))),
                     lambda x, y: _bf16(_silu(x)) * y, 0.51),
    "gelu_f16": Kernel(R["gelu"], (("x", F16, (M, N)),), _gelu, 0.51),
    "row_and_column": Kernel(R["add"], (("r", F32, (1, N)), ("c", F32, (M, 1))), lambda r, c: r + c, 0.5),
    "column_sum": Kernel(lambda x: R["sum"](x, 0), (("x", F32, (M, N)),), lambda x: x.sum(axis=0), 12,
                         lambda x: np.abs(x).sum(axis=0) / 4),
    "row_sum": Kernel(lambda x: R["sum"](x, 1), (("x", F32, (M, N)),), lambda x: x.sum(axis=1), 12,
                      lambda x: np.abs(x).sum(axis=1) / 4),
    "row_max": Kernel(lambda x: R["amax"](x, 1), (("x", F32, (M, N)),), lambda x: x.max(axis=1), 0),
    "column_max": Kernel(lambda x: R["amax"](x, 0), (("x", F32, (M, N)),), lambda x: x.max(axis=0), 0),
    "tril": Kernel(R["tril"], (("x", F32, (M, N)),), np.tril, 0),
    "linear": Kernel(lambda a, b, c: R["gelu"](R["add"](R["matmul"](a, b), c)),
                     (("a", BF16, (M, K)), ("b", BF16, (K, N)), ("c", BF16, (N,))),
                     lambda a, b, c: _gelu(_bf16(_bf16(a @ b) + c)), 1.6,
                     lambda a, b, c: np.abs(_gelu(_bf16(a @ b) + c)) + 2.0**-8 * (np.abs(a) @ np.abs(b))),
    "matmul": Kernel(R["matmul"], (("a", F32, (M, K)), ("b", F32, (K, N))), lambda a, b: a @ b, 8, lambda a, b: np.abs(a) @ np.abs(b)),
    "transposed": Kernel(lambda x, y: R["add"](R["permute"](x, (1, 0)), y), (("x", F32, (M, N)), ("y", F32, (N, M))),
                         lambda x, y: x.T + y, 0.5),
    "integers": Kernel(lambda x, y: R["maximum"](R["mul"](x, y), R["sub"](x, y)), (("x", I32, (M, N)), ("y", I32, (M, N))),
                       lambda x, y: np.maximum(x * y, x - y), 0),
}


def graph(name: str, kernel: Kernel, extents: Mapping[str, int] | None = None) -> Graph:
    """The kernel as a graph; extents given are static, the others symbols. Results go to `out`."""
    g = Graph(name)
    for parameter, dtype, shape in kernel.parameters:
        sizes: list[Index | int] = []
        for axis, extent in enumerate(shape):
            known = (extents or {}).get(extent) if isinstance(extent, str) else extent
            if known is None:
                g.symbols.setdefault(str(extent), Symbol(str(extent), "dim", parameter, axis))
            sizes.append(var(str(extent)) if known is None else known)
        g.parameters.append(Value(tensor_type(dtype, sizes, weak=not shape), parameter))
    with building(Builder(g)):
        value = kernel.function(*g.parameters)
    out = Value(value.type.with_dtype(value.type.dtype), "out")
    g.parameters.append(out)
    g.outputs["out"] = value
    return g


def lower(g: Graph) -> Program:
    """The structured program for the CPU."""
    target = targets.load("llvm-cpu")
    lowered = sink(legalize(promote(g), target))
    return tile(lowered, fuse(lowered), target)


@cache
def executable(name: str, static: tuple[tuple[str, int], ...] = (), level: str | None = None, pool: Pool | None = None) -> Executable:
    """The compiled kernel; ``static`` fixes extents."""
    return Executable(lower(graph(name, KERNELS[name], dict(static))), level=level, pool=pool)


def arguments(name: str, extents: Mapping[str, int], seed: int = 0) -> tuple[dict[str, Array], dict[str, float]]:
    """Random tensors and scalars of a kernel, with the output full of 77."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    scalars: dict[str, float] = {}
    for parameter, dtype, shape in KERNELS[name].parameters:
        if not shape:
            scalars[parameter] = 2.25
            continue
        sizes = [extents[e] if isinstance(e, str) else e for e in shape]
        if dtype.is_float:
            arrays[parameter] = (rng.normal(size=sizes) * 3).astype(np.float32).astype(dtype.numpy)
        else:
            arrays[parameter] = rng.integers(-40, 40, size=sizes).astype(dtype.numpy)
    return arrays, scalars


def run(name: str, arrays: Mapping[str, Array], scalars: Mapping[str, float], program: Executable, out: Array | None = None) -> Array:
    """The output of one call."""
    shape, dtype = output(name, arrays, program)
    out = np.full(shape, 77, dtype=dtype.numpy) if out is None else out
    program.run({**arrays, "out": out}, scalars)
    return out


def output(name: str, arrays: Mapping[str, Array], program: Executable) -> tuple[tuple[int, ...], DType]:
    """Shape and dtype of the output."""
    known: dict[str, int] = {}
    for argument in program.program.arguments:
        for extent, size in zip(argument.shape, arrays[argument.name].shape if argument.name in arrays else (), strict=False):
            if extent.name is not None:
                known[extent.name] = size
    out = next(a for a in program.program.arguments if a.name == "out")
    return tuple(e.evaluate(known) for e in out.shape), out.dtype


def reference(name: str, arrays: Mapping[str, Array], scalars: Mapping[str, float]) -> tuple[Array, Array]:
    """The exact result and the scale that the bound counts in."""
    kernel = KERNELS[name]
    inputs: list[Any] = [arrays[p].astype(np.float64 if d.is_float else np.int64) if p in arrays else scalars[p]
                         for p, d, _ in kernel.parameters]
    with np.errstate(all="ignore"):
        want = kernel.reference(*inputs)
        return want, want if kernel.scale is None else kernel.scale(*inputs)


def assert_within(name: str, got: Array, arrays: Mapping[str, Array], scalars: Mapping[str, float]) -> None:
    """Every element within the kernel's bound, special values exact."""
    want, scale = reference(name, arrays, scalars)
    kernel = KERNELS[name]
    if not np.issubdtype(want.dtype, np.floating):
        assert (got == want.astype(got.dtype)).all()
        return
    digits, smallest = {"float32": (24, -149), "float16": (11, -24), "bfloat16": (8, -133)}[got.dtype.name]
    with np.errstate(all="ignore"):
        unit = np.ldexp(1.0, np.maximum(np.frexp(np.abs(scale))[1] - digits, smallest))
        error = np.abs(got.astype(np.float64) - want) / unit
        rounded = want.astype(np.float32).astype(got.dtype).astype(np.float64)
    finite = np.isfinite(rounded)
    same = (got.astype(np.float64) == rounded) | np.isnan(got.astype(np.float64)) & np.isnan(rounded)
    assert got.shape == want.shape
    assert (same | finite).all(), "special values"
    assert error[finite].max(initial=0.0) <= kernel.bound, (error[finite].max(), name)
