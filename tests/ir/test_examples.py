"""The hand-written kernels of examples/ptir: read, verified, and executed by the interpreter against plain NumPy."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pypto_dsl.compiler.passes.canonicalize import canonicalize
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.text.reader import read_file, read_graph
from pypto_dsl.compiler.verify import require_valid, verify
from pypto_dsl.runtime.interpreter import run

FOLDER = Path(__file__).parents[2] / "examples" / "ptir"
BF16 = np.dtype(ml_dtypes.bfloat16)
Array = np.ndarray[Any, np.dtype[Any]]
SIZES = ((1, 1, 1), (5, 7, 3), (33, 65, 70), (2, 300, 1))  # M, N, K


def wide(x: Array) -> Array:
    return x.astype(np.float64)


def to_bf16(x: Array) -> Array:
    """Computed in f32, rounded once."""
    return x.astype(np.float32).astype(BF16)


def softmax(x: Array) -> Array:
    e = np.exp(wide((x - x.max(-1, keepdims=True)).astype(np.float32))).astype(np.float32)
    return e / wide(e).sum(-1, keepdims=True).astype(np.float32)


def layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    x = wide(x)
    return ((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta).astype(np.float32)


def gelu(x: Array) -> Array:
    return 0.5 * x * np.vectorize(lambda v: math.erfc(-v / math.sqrt(2.0)), otypes=[float])(x)


def power(x: Array, exponent: Array) -> Array:
    """With the exponent as an array: NumPy's shortcuts for scalar ones are wrong at -0 and -inf."""
    return np.power(wide(x), np.broadcast_to(wide(exponent), x.shape).copy()).astype(np.float32)


def silu_mul(x: Array, y: Array) -> Array:
    return to_bf16(wide(to_bf16(wide(x) / (1 + np.exp(-wide(x))))) * wide(y))


def matmul_bias_gelu(a: Array, b: Array, bias: Array) -> Array:
    product = np.einsum("mk,kn->mn", wide(a), wide(b)).astype(np.float32)
    return to_bf16(gelu(wide((wide(product) + wide(bias)).astype(np.float32))))


F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
Shape = tuple[int | str, ...]
# kernel -> (inputs, output's name, the same in NumPy, ulp of the result's dtype that the two may differ: both round near-exact values)
KERNELS: dict[str, tuple[Sequence[tuple[str, np.dtype[Any], Shape]], str, Callable[..., Array], int]] = {
    "add": ((("x", F32, ("M", "N")), ("y", F32, ("M", "N"))), "z", lambda x, y: x + y, 0),
    "softmax": ((("x", F32, ("M", "N")),), "y", softmax, 0),
    "layer_norm": ((("x", F32, ("M", 100)), ("gamma", F32, (100,)), ("beta", F32, (100,))), "y", layer_norm, 1),
    "pow_scalar": ((("x", F32, ("M", "N")), ("exponent", F32, ())), "y", power, 0),
    "pow_tensor": ((("x", I32, ("M", "N")), ("exponent", F32, ("M", "N"))), "y", power, 0),
    "ldexp_i32": ((("x", F32, ("M", "N")), ("exponent", I32, ("M", "N"))), "y", lambda x, n: np.ldexp(wide(x), n).astype(F32), 0),
    "ldexp_bf16": ((("x", BF16, ("M", "N")), ("exponent", BF16, ("M", "N"))), "y", lambda x, p: to_bf16(wide(x) * np.exp2(wide(p))), 0),
    "silu_mul": ((("x", BF16, ("M", "N")), ("y", BF16, ("M", "N"))), "z", silu_mul, 0),
    "row_column": ((("row", F32, (1, "N")), ("column", F32, ("M", 1))), "y", lambda r, c: r + c, 0),
    "column_sum": ((("x", F32, ("M", "N")),), "y", lambda x: wide(x).sum(0).astype(F32), 0),
    "tril": ((("x", F32, ("M", "N")),), "y", lambda x: np.tril(x, 1), 0),
    "matmul_bias_gelu": ((("a", BF16, ("M", "K")), ("b", BF16, ("K", "N")), ("bias", BF16, ("N",))), "y", matmul_bias_gelu, 0),
}


def array(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    values = rng.integers(-30, 30, size=shape) if dtype == I32 else rng.normal(size=shape) * 2
    return np.asarray(values).astype(np.float32 if dtype == BF16 else dtype).astype(dtype)


def ulps(a: Array, b: Array) -> int:
    """The largest distance in representable numbers; NaN matches NaN."""
    integer = {2: np.int16, 4: np.int32}[a.dtype.itemsize]
    ordered = [np.where(v < 0, np.iinfo(integer).min - v.astype(np.int64), v.astype(np.int64)) for v in (a.view(integer), b.view(integer))]
    nan = np.isnan(wide(a)) & np.isnan(wide(b))
    return int(np.max(np.where(nan, 0, np.abs(ordered[0] - ordered[1])), initial=0))


def test_every_file_is_here() -> None:
    assert {f.stem for f in FOLDER.glob("*.ptir")} == set(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_against_numpy(name: str) -> None:
    graph = read_file(FOLDER / f"{name}.ptir")
    require_valid(graph)
    text = print_graph(graph)
    assert print_graph(read_graph(text)) == text
    inputs, output, function, allowed = KERNELS[name]
    form = canonicalize(promote(graph))
    verify(form, "canonicalize")
    rng = np.random.default_rng(11)
    for sizes in SIZES:
        extents = dict(zip("MNK", sizes, strict=True))
        values = {n: array(rng, dtype, tuple(extents.get(e, e) for e in shape)) for n, dtype, shape in inputs}  # type: ignore[misc,call-overload]
        with np.errstate(all="ignore"):
            expected = function(*values.values())
        for version in (graph, form):
            got = run(version, values)[output]
            assert got.dtype == expected.dtype
            assert got.shape == expected.shape
            assert ulps(got, expected) <= allowed, (name, sizes)
