"""The kernels of the Ascend tests: graphs over the op table, inputs with special values, and references in float64 that share no code
with the op table."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from pypto_dsl.codegen.ascendc import Emitted, emit
from pypto_dsl.compiler.dtypes import BF16, F16, F32, I32, DType
from pypto_dsl.compiler.graph import Builder, Graph, Symbol, Value, tensor_type
from pypto_dsl.compiler.index import Index, var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import load
from pypto_dsl.compiler.tile_ir.nodes import Program

Array = npt.NDArray[Any]
Extents = Mapping[str, int]
bfloat16 = ml_dtypes.bfloat16
TARGET = "ascend-a2"


@dataclass(frozen=True)
class Kernel:
    """One kernel under test.

    ``parameters`` are (name, dtype, shape), a str in a shape is a symbolic extent; ``shapes`` are the extents it runs with; ``reference``
    takes the inputs as float64 (integers as they are) and gives the result in float64. ``allowed`` is the largest error, relative to
    max(floor, |result|); at least ``share`` of a 16-bit result must be the reference rounded once, and with a ``floor`` of less than 1
    the sign of its zeros counts.
    """

    name: str
    function: Callable[..., Value]
    parameters: Sequence[tuple[str, DType, tuple[int | str, ...]]]
    shapes: Sequence[Extents]
    reference: Callable[..., Array]
    allowed: float = 0.0
    inputs: Callable[[np.random.Generator, str, DType, tuple[int, ...]], Array] | None = None
    scalars: Mapping[str, float] | None = None
    share: float = 0.0
    floor: float = 1.0


def op(name: str) -> Callable[..., Any]:
    return R[name]


def graph(kernel: Kernel) -> Graph:
    """The kernel as a recorded graph whose result goes to `out`, with a span per operation."""
    g = Graph(kernel.name, span=Span("examples.py", 1))
    for name, dtype, shape in kernel.parameters:
        for axis, extent in enumerate(shape):
            if isinstance(extent, str):
                g.symbols.setdefault(extent, Symbol(extent, "dim", name, axis))
        extents: list[Index | int] = [var(e) if isinstance(e, str) else e for e in shape]
        g.parameters.append(Value(tensor_type(dtype, extents, weak=not shape), name))
    builder = Builder(g)
    builder.span = Span("examples.py", 7, 5)
    with building(builder):
        result = kernel.function(*g.parameters)
    out = Value(result.type.with_dtype(result.type.dtype), "out")
    g.parameters.append(out)
    g.outputs["out"] = result
    return g


@cache
def placed(name: str, target: str = TARGET) -> Program:
    return lower(graph(KERNELS[name]), target)


@cache
def emitted(name: str, target: str = TARGET) -> Emitted:
    return emit(placed(name, target), load(target))


# ---- inputs ----------------------------------------------------------------------------------------------------------------


def normal(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    if dtype.is_integer:
        return rng.integers(-40, 40, shape).astype(dtype.numpy)
    return rng.standard_normal(shape).astype(np.float32).astype(dtype.numpy)


def with_specials(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    x = normal(rng, name, dtype, shape)
    if dtype.is_float:
        special = np.array([-2.0, -0.0, 0.0, np.inf, -np.inf, np.nan, 1.0, 1e-40, 0.5, -1.0], np.float32).astype(dtype.numpy)
        flat = x.reshape(-1)
        at = np.arange(min(flat.size, special.size)) * 7 % max(flat.size, 1)
        flat[at] = special[:at.size]
    return x


def positive(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    x = with_specials(rng, name, dtype, shape)
    return np.where(rng.random(shape) < 0.9, np.abs(x) * 2, x).astype(dtype.numpy)


def scaling(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Any f32 bits; integer exponents up to the limits of int32."""
    if dtype == I32:
        wide = rng.random(shape) < 0.5
        e = np.where(wide, rng.integers(-300, 300, shape), rng.integers(-30, 30, shape)).astype(np.int32)
        e.reshape(-1)[:2] = np.array([-2**31, 2**31 - 1], np.int32)[:e.size]
        e.reshape(-1)[2:4] = np.array([276, -276], np.int32)[:max(0, e.size - 2)]
        return e
    x = rng.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)
    x.reshape(-1)[2:4] = np.array([2.0**-149, -2.0**127], np.float32)[:max(0, x.size - 2)]
    return x


def wide_exponents(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Factors of all sizes, exponents up to infinity; the largest factor and exponents that bring it to the subnormals."""
    x = normal(rng, name, dtype, shape).astype(np.float32)
    flat = x.reshape(-1)
    if name != "e":
        flat[:] = np.where(rng.random(x.size) < 0.5, flat, flat * 2.0**rng.integers(-130, 124, x.size))
        flat[13:18:2] = 2.0**127
        return x.astype(dtype.numpy)
    flat *= rng.choice([1, 60, 900], x.size)
    flat[3:12:3] = np.array([np.inf, -np.inf, np.nan], np.float32)[:flat[3:12:3].size]
    flat[13:18:2] = np.array([-256, -258, -260], np.float32)[:flat[13:18:2].size]
    if flat.size < 100:  # the last lane of a small tensor takes the branch of an infinite exponent, that of a large one does not
        flat[-1] = np.inf
    return x.astype(dtype.numpy)


def maximum_in_last_rows(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The greatest element of every column stands in the last row of a tile."""
    x = normal(rng, name, dtype, shape)
    x[15::16] += 50
    return x


def ones_in_front(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    x = with_specials(rng, name, dtype, shape)
    if name == "x":
        x[:, 0] = 1
    return x


def minimum_at_edges(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The least element stands in the last column of even rows, and in the last lane of the first repeat of odd ones."""
    x = normal(rng, name, dtype, shape)
    x[::2, -1] = -50
    x[1::2, min(63, shape[1] - 1)] = -50
    return x


def rows_apart(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Rows at different heights, so that the maximum of another row would overflow or underflow; a row of -inf; one finite logit.

    A shift also puts values on a coarse grid where x - max is nearly exact, so every third row stays as it is.
    """
    x = rng.standard_normal(shape) * 5
    m, n = shape
    x += np.where(np.arange(m) % 3, 100 * np.arange(m), 0)[:, None]
    if m > 1:
        x[0] -= 1000
    if n > 63:
        x[-1, 63] += 500
    if m > 2:
        x[1] = -np.inf
        x[2, :-1] = -np.inf
    return x.astype(np.float32).astype(dtype.numpy)


def both_tails(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Special values, and numbers up to where silu is 0 or its operand."""
    return (with_specials(rng, name, F32, shape) * rng.choice(np.array([1, 8, 40], np.float32), shape)).astype(dtype.numpy)


def few_bits(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Small integers over 64: the sums of their products are exact in f32 in every order, and seldom exact in bf16."""
    return (rng.integers(-100, 101, shape) / 64.0).astype(np.float32).astype(dtype.numpy)


def attention_inputs(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Every other row of scores is wide enough to overflow unless its maximum is subtracted first."""
    x = few_bits(rng, name, dtype, shape)
    if name == "q":
        x[1::2] *= 512
    if name == "k":
        x[63:64] *= 4  # the maximum of a wide row stands in the last lane of a repeat, or in the last column
        if shape[0] > 64:
            x[-1] = -x[63]
    return x


def gelu_inputs(rng: np.random.Generator, name: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Factors of few bits, so that every order of the product's sums is exact and the result has one right rounding; a wide bias for
    gelu's branches and tails, with special values in front. Column 127, the last lane of a tile's strips, is the first element of a row
    alone: from strip to strip it meets every branch."""
    if name == "c":
        x = rng.standard_normal(shape) * rng.choice([0.3, 2.0, 5.0], shape)
        special = [np.inf, -np.inf, np.nan, -1e18, -1e20, 1e20, -0.0]
        x[1:1 + len(special)] = special[:max(0, x.size - 1)]
        x[127:128] = 0.005  # bf16 does not hold its sum with -12
        return x.astype(np.float32).astype(dtype.numpy)
    x = rng.integers(-20, 21, shape) / 32.0
    if name == "a":
        x[31::32, 0] = np.resize([-12, -1e20, -0.375, 0.25], x[31::32, 0].shape)
        return x.astype(np.float32).astype(dtype.numpy)
    x[0] = 0
    x[:, 127:128] = 0
    x[0, 127:128] = 1
    return x.astype(np.float32).astype(dtype.numpy)


# ---- references ------------------------------------------------------------------------------------------------------------


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    d = x - x.mean(axis=-1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + 1e-5) * gamma + beta


def rounded(x: Array, dtype: Any) -> Array:
    return x.astype(np.float32).astype(dtype).astype(np.float64)


def silu_mul(x: Array, y: Array) -> Array:
    return rounded(x / (1 + np.exp(-x)), bfloat16) * y


def ldexp(x: Array, e: Array) -> Array:
    return np.ldexp(x, np.clip(e, -1000, 1000))


def ldexp_real(x: Array, e: Array) -> Array:
    return x * 2.0**np.where(np.isinf(e), e, np.clip(e, -900, 900))


def c99_pow(x: Array, y: Array | float) -> Array:
    return np.power(x, np.broadcast_to(np.asarray(y, np.float64), x.shape).copy())


def bias_gelu(a: Array, b: Array, c: Array) -> Array:
    h = rounded(rounded(a @ b, bfloat16) + c, bfloat16)
    return np.where(h == -np.inf, -0.0, 0.5 * h * np.vectorize(math.erfc)(-h / math.sqrt(2)))


def attention(q: Array, k: Array, v: Array) -> Array:
    scores = rounded(rounded(q @ np.swapaxes(k, -1, -2), bfloat16) * 0.125, bfloat16)
    return rounded(softmax(scores), bfloat16) @ v


def scale_f16(x: Array, y: Array) -> Array:
    return rounded(1 - np.abs(x), np.float16) / rounded(rounded(np.sqrt(np.abs(y)), np.float16) + 1, np.float16)


# ---- the kernels -----------------------------------------------------------------------------------------------------------

_FLAT = [{"M": 1, "N": 1}, {"M": 3, "N": 11}, {"M": 1, "N": 2049}, {"M": 9, "N": 1001}]
_ROWS = [{"M": 1, "N": 1}, {"M": 3, "N": 31}, {"M": 33, "N": 257}, {"M": 16, "N": 512}, {"M": 9, "N": 513}, {"M": 5, "N": 1100}]
_PLANE = [{"M": 1, "N": 1}, {"M": 7, "N": 33}, {"M": 33, "N": 300}, {"M": 20, "N": 1025}]
_MATMUL = [{"M": 1, "N": 1, "K": 1}, {"M": 7, "N": 31, "K": 33}, {"M": 65, "N": 129, "K": 96}, {"M": 130, "N": 70, "K": 200}]
_TWO, _THREE = ("M", "N"), ("M", "K")

_ALL = [
    Kernel("add", op("add"), [("x", F32, _TWO), ("y", F32, _TWO)], _FLAT, np.add, inputs=with_specials),
    Kernel("softmax", op("softmax"), [("x", F32, _TWO)], _ROWS, softmax, 1e-6, rows_apart),
    Kernel("softmax_static", op("softmax"), [("x", F32, (37, 130))], [{}], softmax, 1e-6, rows_apart),
    Kernel("layer_norm", op("layer_norm"), [("x", F32, ("M", 100)), ("g", F32, (100,)), ("b", F32, (100,))],
           [{"M": 1}, {"M": 3}, {"M": 33}], layer_norm, 4e-6),
    Kernel("layer_norm_any", op("layer_norm"), [("x", F32, _TWO), ("g", F32, ("N",)), ("b", F32, ("N",))], _ROWS, layer_norm, 1e-5),
    Kernel("pow_scalar", lambda x: R["pow"](x, 2.5), [("x", F32, _TWO)], _FLAT, lambda x: c99_pow(x, 2.5), 4e-6, positive),
    Kernel("pow_square", lambda x: R["pow"](x, 2), [("x", F32, _TWO)], _FLAT, lambda x: x * x, 1e-7, with_specials),
    Kernel("pow_inverse", lambda x: R["pow"](x, -1.0), [("x", F32, _TWO)], _FLAT, lambda x: 1 / x, 1e-7, with_specials),
    Kernel("pow_named", op("pow"), [("x", F32, _TWO), ("a", F32, ())], _FLAT, lambda x, a: c99_pow(x, a), 4e-6, positive, {"a": 1.75}),
    Kernel("pow_tensor", op("pow"), [("x", F32, _TWO), ("y", F32, _TWO)], _FLAT, c99_pow, 4e-6, positive),
    Kernel("ldexp_int", op("ldexp"), [("x", F32, _TWO), ("e", I32, _TWO)], _FLAT, ldexp, inputs=scaling),
    Kernel("ldexp_bf16", op("ldexp"), [("x", BF16, _TWO), ("e", BF16, _TWO)], _FLAT, ldexp_real, 2.0**-7, wide_exponents, share=0.9995,
           floor=2.0**-126),
    Kernel("silu_mul", lambda x, y: R["mul"](R["silu"](x), y), [("x", BF16, _TWO), ("y", BF16, _TWO)], _FLAT, silu_mul, 2.0**-7,
           both_tails, share=0.9995, floor=2.0**-126),
    Kernel("row_col", op("add"), [("x", F32, ("M", 1)), ("y", F32, (1, "N"))], _PLANE, np.add),
    Kernel("column_sum", lambda x: R["sum"](x, 0), [("x", F32, _TWO)], _PLANE, lambda x: x.sum(axis=0), 4e-6),
    Kernel("column_max", lambda x: R["amax"](x, 0), [("x", F32, _TWO)], _PLANE, lambda x: x.max(axis=0),
           inputs=maximum_in_last_rows),
    Kernel("row_min", lambda x: R["amin"](x, -1), [("x", F32, _TWO)], _ROWS, lambda x: x.min(axis=-1), inputs=minimum_at_edges),
    Kernel("tril", op("tril"), [("x", F32, _TWO)], _PLANE, np.tril),
    Kernel("triu_i32", lambda x: R["triu"](x, 2), [("x", I32, _TWO)], _PLANE, lambda x: np.triu(x, 2)),
    Kernel("bias_gelu", lambda a, b, c: R["gelu"](R["add"](R["matmul"](a, b), c)),
           [("a", BF16, _THREE), ("b", BF16, ("K", "N")), ("c", BF16, ("N",))], _MATMUL, bias_gelu, 2.0**-7, gelu_inputs, share=0.9998,
           floor=2.0**-126),
    Kernel("product", lambda a, b: R["matmul"](a, b, F32), [("a", F16, _THREE), ("b", F16, ("K", "N"))], _MATMUL, np.matmul, 0.0, few_bits),
    Kernel("product_transposed", lambda a, b: R["matmul"](a, b, F32, True, True),
           [("a", BF16, ("K", "M")), ("b", BF16, ("N", "K"))], _MATMUL, lambda a, b: a.T @ b.T, 0.0, few_bits),
    Kernel("attention", lambda q, k, v: R["matmul"](R["softmax"](R["mul"](R["matmul"](q, k, None, False, True), 0.125)), v),
           [("q", BF16, ("M", "K")), ("k", BF16, ("N", "K")), ("v", BF16, ("N", "K"))], _MATMUL, attention, 2.0**-7, attention_inputs,
           share=0.99),
    Kernel("compare_i32", lambda x, y: R["where"](R["lt"](x, y), R["add"](x, 1), R["where"](R["ge"](x, 3), y, -7)),
           [("x", I32, _TWO), ("y", I32, _TWO)], _PLANE, lambda x, y: np.where(x < y, x + 1, np.where(x >= 3, y, -7))),
    Kernel("mask_rows", lambda x, y: R["where"](R["bitwise_and"](R["gt"](y, 0.0), R["ne"](x, 1.0)), x, R["exp"](y)),
           [("x", F32, _TWO), ("y", F32, ("M", 1))], _PLANE, lambda x, y: np.where((y > 0) & (x != 1), x, np.exp(y)), 1e-6, ones_in_front),
    Kernel("scale_f16", lambda x, y: R["div"](R["sub"](1.0, R["abs"](x)), R["add"](R["sqrt"](R["abs"](y)), 1.0)),
           [("x", F16, _TWO), ("y", F16, _TWO)], _FLAT, scale_f16, 2.0**-10, both_tails, share=0.9995, floor=2.0**-14),
]
KERNELS = {kernel.name: kernel for kernel in _ALL}


# ---- running ---------------------------------------------------------------------------------------------------------------


def arguments(kernel: Kernel, extents: Extents, seed: int = 7) -> dict[str, Array]:
    rng = np.random.default_rng([seed, *extents.values()])
    make = kernel.inputs or normal
    shapes = {name: tuple(e if isinstance(e, int) else extents[e] for e in shape) for name, _, shape in kernel.parameters if shape}
    return {name: make(rng, name, dtype, shapes[name]) for name, dtype, shape in kernel.parameters if shape}


def expected(kernel: Kernel, arrays: Mapping[str, Array]) -> Array:
    with np.errstate(all="ignore"):
        exact = [a.astype(np.float64) if a.dtype.kind not in "iu" else a for a in arrays.values()]
        return np.asarray(kernel.reference(*exact, *(kernel.scalars or {}).values())).astype(np.float64)


def error(kernel: Kernel, got: Array, arrays: Mapping[str, Array]) -> float:
    """The largest error relative to max(floor, |result|); inf where only one of the two is finite."""
    return distance(kernel, got, expected(kernel, arrays))


def distance(kernel: Kernel, got: Array, want: Array) -> float:
    """`error` from a result that was computed before."""
    have = got.astype(np.float64)
    with np.errstate(all="ignore"):
        if kernel.allowed == 0.0 or got.dtype != np.float32:
            want = want.astype(np.float32 if got.dtype.kind not in "iu" else got.dtype).astype(got.dtype).astype(np.float64)
        same = (have == want) | (np.isnan(have) & np.isnan(want)) | ((np.abs(want) > 3.4e38) & (have == np.sign(want) * np.inf))
        if kernel.floor < 1.0:
            same &= (have != 0) | (want != 0) | (np.signbit(have) == np.signbit(want))
        if np.mean(same) < kernel.share:
            return float("inf")
        if kernel.floor < 1.0 and np.any(~same & (have == want)):
            return float("inf")
        off = np.where(same, 0, np.abs(have - want) / np.maximum(np.abs(want), kernel.floor))
    return float(np.max(np.where(np.isnan(off), np.inf, off), initial=0.0))
