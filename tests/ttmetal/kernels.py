"""The kernels of the TT-Metal tests: graphs over the op table, inputs that bite, and what the device is documented to compute.

Every case is lowered by the real pipeline. A reference is NumPy in float64 with the device's rounding points (16-bit DST: every
operation; 32-bit DST: where the IR says so); `tolerance` is (ulp of the result's dtype, absolute).
"""
from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from pypto_dsl.codegen.ttmetal import Emitted, emit
from pypto_dsl.compiler.dtypes import BF16, BOOL, F32, I32, DType
from pypto_dsl.compiler.graph import Builder, Graph, Symbol, Value, tensor_type
from pypto_dsl.compiler.index import Index, var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import load
from pypto_dsl.compiler.tile_ir.nodes import Program
from pypto_dsl.runtime.emulator.ttmetal.runner import run
from pypto_dsl.runtime.formats import round_bfloat16

Parameter = tuple[str, DType, tuple["int | str", ...]]
Arrays = Mapping[str, Any]
Reference = Callable[[Arrays], Any]

# ragged on both axes, a whole tile, one element, several tiles
SHAPES = ((1, 1), (7, 33), (31, 32), (65, 100), (128, 256))
FEW = ((7, 33), (65, 100))
BLOCKS = ((7, 33), (65, 100), (33, 90), (5, 215), (3, 260))  # 1 to 9 tiles across blocks of 4
CORES = (1, 2, 7)


@dataclass(frozen=True)
class Case:
    """One kernel: what it does, on which parameters, its reference, and the error that its rounding points allow."""

    function: Callable[..., Any]
    parameters: Sequence[Parameter]
    reference: Reference
    tolerance: tuple[float, float] = (0.0, 0.0)
    inputs: Mapping[str, Callable[[np.random.Generator, tuple[int, ...]], Any]] = field(default_factory=dict)
    extents: Mapping[str, int] = field(default_factory=dict)
    shapes: Sequence[tuple[int, int]] = SHAPES
    scalars: Mapping[str, float] = field(default_factory=dict)


def graph(name: str, case: Case) -> Graph:
    """The recorded graph; names in a shape are symbolic extents, () is a run-time scalar, the result goes to `out`."""
    g = Graph(name, span=Span(f"{name.split('_')[0]}.py", 4))
    for n, dtype, shape in case.parameters:
        for axis, extent in enumerate(shape):
            if isinstance(extent, str):
                g.symbols.setdefault(extent, Symbol(extent, "dim", n, axis))
        extents: list[Index | int] = [var(e) if isinstance(e, str) else e for e in shape]
        g.parameters.append(Value(tensor_type(dtype, extents, weak=not shape), n))
    builder = Builder(g)
    builder.span = Span(f"{name.split('_')[0]}.py", 6)
    with building(builder):
        value = case.function(*g.parameters)
    out = Value(value.type.with_dtype(value.type.dtype), "out")
    g.parameters.append(out)
    g.outputs[out.name] = value
    return g


def seed_of(*parts: object) -> int:
    """A seed that does not depend on the process."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16)


def arrays(name: str, case: Case, shape: tuple[int, int]) -> dict[str, Any]:
    """Inputs of one case over M x N; K is 70."""
    rng = np.random.default_rng(seed_of(name, shape))
    extents = {"M": shape[0], "N": shape[1], "K": 70, **case.extents}
    found: dict[str, Any] = {}
    for n, dtype, dims in case.parameters:
        if not dims:
            continue
        size = tuple(extents[d] if isinstance(d, str) else d for d in dims)
        made = case.inputs[n](rng, size) if n in case.inputs else rng.standard_normal(size) * 2
        found[n] = np.asarray(made).astype(np.float32).astype(dtype.numpy) if dtype.is_float else np.asarray(made).astype(dtype.numpy)
    return found


@cache
def placed(name: str, target: str = "tt-wormhole") -> Program:
    """The placed program of a case."""
    return lower(graph(name, CASES[name]), target)


@cache
def emitted(name: str, target: str = "tt-wormhole") -> Emitted:
    """The emitted files of a case."""
    return emit(placed(name, target), load(target))


def execute(name: str, shape: tuple[int, int], cores: int, seed: int = 0, files: Mapping[str, str] | None = None) -> tuple[Any, Any]:
    """(result, reference) of a case in the emulator; ``files`` replace emitted ones."""
    case, made = CASES[name], emitted(name)
    given = arrays(name, case, shape)
    with np.errstate(all="ignore"):
        exact = {k: v.astype(np.float64) for k, v in given.items()}
        reference = case.reference(exact | {k: np.float64(v) for k, v in case.scalars.items()})
    result = run(made.manifest, {**made.files, **(files or {})}, given, case.scalars, cores=cores, seed=seed)
    return result["out"], reference


def error(name: str, got: Any, reference: Any) -> float:
    """The worst error as a multiple of what is allowed; infinite where NaN or infinity disagree; 0 means equal."""
    ulp, absolute = CASES[name].tolerance
    dtype = got.dtype
    want = np.asarray(reference, np.float64).reshape(got.shape)
    held = want.astype(np.float32).astype(dtype).astype(np.float64) if dtype.itemsize == 2 else want.astype(dtype).astype(np.float64)
    value = got.astype(np.float64)
    step = 2.0**-7 if dtype.itemsize == 2 else 2.0**-23
    with np.errstate(all="ignore"):
        same = (value == held) | (np.isnan(value) & np.isnan(held))
        bound = ulp * step * np.abs(want) + absolute
        worst = np.where(same, 0.0, np.abs(value - want) / np.where(bound > 0, bound, 1e-300))
    return float(np.where(np.isnan(worst), np.inf, worst).max(initial=0.0))


# ---- references ------------------------------------------------------------------------------------------------------------------


def f32(x: Any) -> Any:
    """Rounded to f32."""
    return np.asarray(x).astype(np.float32).astype(np.float64)


def bf16(x: Any) -> Any:
    """Rounded to bf16 by way of f32."""
    return round_bfloat16(np.asarray(x).astype(np.float32)).astype(np.float64)


def exp2_flushed(b: Any) -> Any:
    """The device's 2^b: below the normal range it is 0."""
    power = f32(np.exp2(b))
    return np.where(power < 2.0**-126, 0.0, power)


def softmax(x: Any, axis: int = 1) -> Any:
    """exp(x - max) / sum."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def layer_norm(a: Arrays) -> Any:
    """Two-pass, divided by N."""
    x = a["x"]
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * a["gain"] + a["bias"]


def gelu(x: Any) -> Any:
    """The erf form."""
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2)))


def wide(x: Value, y: Value, count: int) -> Value:
    """More values alive at once than DST has slots: each is used again after all were used."""
    made = [R["maximum"](R["add"](x, float(i)), y) for i in range(count)]
    total = made[0]
    for value in (*made[1:], *made):
        total = R["mul"](R["sub"](value, total), 0.5)
    return total


def wide_reference(a: Arrays, count: int, rounded: Callable[[Any], Any] = f32) -> Any:
    """The same, rounded after every operation."""
    made = [np.maximum(rounded(a["x"] + i), a["y"]) for i in range(count)]
    total = made[0]
    for value in (*made[1:], *made):
        total = rounded(rounded(value - total) * 0.5)
    return total


# ---- inputs ----------------------------------------------------------------------------------------------------------------------


def logits(rng: np.random.Generator, size: tuple[int, ...]) -> Any:
    """Rows that overflow, or vanish, unless their own maximum is subtracted: high and low rows, and a first or last column that towers."""
    x = rng.standard_normal(size) * 4
    x[0::5] += 150
    x[1::5, -1] += 200
    x[2::5] -= 200
    x[3::5, 0] += 200
    return x


def spread(rng: np.random.Generator, size: tuple[int, ...]) -> Any:
    """Rows of unit spread, rows far from zero for their spread, and rows whose variance is no larger than epsilon."""
    x = rng.standard_normal(size)
    x[1::3] = 3 + x[1::3] / 8
    x[2::3] *= 0.003
    return x


def below_zero(rng: np.random.Generator, size: tuple[int, ...]) -> Any:
    """All negative: a pad of 0 would win every maximum."""
    return rng.standard_normal(size) - 8


def positive(rng: np.random.Generator, size: tuple[int, ...]) -> Any:
    """Away from zero."""
    return np.abs(rng.standard_normal(size)) + 0.1


def exponents(rng: np.random.Generator, size: tuple[int, ...]) -> Any:
    """Integers and reals, with the edges of the range where there is room."""
    y = rng.standard_normal(size) * 2
    y = np.where(rng.random(size) < 0.5, np.rint(y * 4), y)
    y.flat[: min(3, max(y.size - 1, 0))] = [200, -140, 127.5][: min(3, max(y.size - 1, 0))]
    return y


def eighths(rng: np.random.Generator, size: tuple[int, ...]) -> Any:
    """Small multiples of 1/8: their products and sums are exact in f32 in any order."""
    return rng.integers(-16, 17, size) / 8


def integers(rng: np.random.Generator, size: tuple[int, ...]) -> Any:
    """Small exponents and two far ones."""
    y = rng.integers(-20, 20, size)
    y.flat[: min(2, y.size - 1)] = [140, -160][: min(2, y.size - 1)]
    return y


FACTORS = {"a": eighths, "b": eighths}
MN = ("M", "N")
X, Y = ("x", F32, MN), ("y", F32, MN)
XB, YB = ("x", BF16, MN), ("y", BF16, MN)

CASES: dict[str, Case] = {
    "add_f32": Case(R["add"], (X, Y), lambda a: f32(a["x"] + a["y"])),
    "add_bf16": Case(R["add"], (XB, YB), lambda a: bf16(a["x"] + a["y"])),
    "chain_bf16": Case(lambda x, y: R["sub"](R["mul"](R["add"](x, y), x), 0.5), (XB, YB),
                       lambda a: bf16(bf16(bf16(a["x"] + a["y"]) * a["x"]) - 0.5)),
    "twice_f32": Case(lambda x, y: R["add"](R["mul"](R["exp"](x), y), R["sub"](R["exp"](x), R["neg"](x))), (X, Y),
                      lambda a: f32(f32(f32(np.exp(a["x"])) * a["y"]) + f32(f32(np.exp(a["x"])) + a["x"])), (4, 1e-6)),
    "again_f32": Case(lambda x: R["mul"](R["exp"](x), R["tanh"](R["exp"](x))), (X,),
                      lambda a: np.exp(a["x"]) * np.tanh(np.exp(a["x"])), (5, 1e-44)),
    "wide_f32": Case(lambda x, y: wide(x, y, 6), (X, Y), lambda a: wide_reference(a, 6), (32, 1e-5)),
    "wide_bf16": Case(lambda x, y: wide(x, y, 11), (XB, YB), lambda a: wide_reference(a, 11, bf16), (0, 0)),
    "less_f32": Case(R["lt"], (X, Y), lambda a: a["x"] < a["y"]),
    "choose_bf16": Case(R["where"], (("c", BOOL, MN), XB, YB), lambda a: np.where(a["c"] != 0, a["x"], a["y"]),
                        inputs={"c": lambda rng, size: rng.integers(0, 2, size)}),
    "maximum_f32": Case(lambda x, y: R["maximum"](R["minimum"](x, y), 0.25), (X, Y),
                        lambda a: np.maximum(np.minimum(a["x"], a["y"]), 0.25)),
    "softmax_f32": Case(lambda x: R["softmax"](x, -1), (X,), lambda a: softmax(a["x"]), (40, 1e-37), {"x": logits}),
    "softmax_bf16": Case(lambda x: R["softmax"](x, -1), (XB,), lambda a: softmax(a["x"]), (0.51, 1e-38), {"x": logits}),
    "layernorm_f32": Case(R["layer_norm"], (("x", F32, ("M", 100)), ("gain", F32, (100,)), ("bias", F32, (100,))), layer_norm, (16, 3e-5),
                          {"x": spread}, shapes=((1, 100), (33, 100), (70, 100))),
    "layernorm_bf16": Case(R["layer_norm"], (("x", BF16, MN), ("gain", BF16, ("N",)), ("bias", BF16, ("N",))), layer_norm,
                           (0.6, 1e-5), {"x": spread}, shapes=FEW),
    "pow_f32": Case(R["pow"], (X, Y), lambda a: np.power(a["x"], a["y"]), (1, 1e-44), {"x": positive}),
    "pow_bf16": Case(R["pow"], (XB, YB), lambda a: np.power(a["x"], a["y"]), (0.51, 1e-38), {"x": positive}),
    "powscalar_f32": Case(R["pow"], (X, ("e", F32, ())), lambda a: np.power(a["x"], f32(a["e"])), (1, 1e-44), {"x": positive},
                          scalars={"e": 1.75}),
    "powconstant_f32": Case(lambda x: R["pow"](x, 2.5), (X,), lambda a: np.power(a["x"], 2.5), (1, 1e-44), {"x": positive}),
    "ldexp_f32": Case(R["ldexp"], (X, Y), lambda a: f32(a["x"] * exp2_flushed(a["y"])), (2, 0), {"y": exponents}),
    "ldexp_bf16": Case(R["ldexp"], (XB, YB), lambda a: bf16(a["x"] * bf16(exp2_flushed(a["y"]))), (0, 0), {"y": exponents}),
    "ldexp_i32": Case(R["ldexp"], (X, ("y", I32, MN)), lambda a: f32(a["x"] * exp2_flushed(a["y"])), (0, 0), {"y": integers}),
    "ldexp_bf16_i32": Case(R["ldexp"], (XB, ("y", I32, MN)), lambda a: bf16(a["x"] * exp2_flushed(a["y"])), (0, 0), {"y": integers}),
    "silu_mul_bf16": Case(lambda x, y: R["mul"](R["silu"](x), y), (XB, YB),
                          lambda a: bf16(bf16(a["x"] / (1 + np.exp(-a["x"]))) * a["y"]), (1, 0)),
    "rowcol_f32": Case(R["add"], (("r", F32, (1, "N")), ("c", F32, ("M", 1))), lambda a: f32(a["r"] + a["c"])),
    "rowcol_bf16": Case(R["add"], (("r", BF16, (1, "N")), ("c", BF16, ("M", 1))), lambda a: bf16(a["r"] + a["c"])),
    "addrow_f32": Case(R["add"], (X, ("r", F32, ("N",))), lambda a: f32(a["x"] + a["r"])),
    "addrow_bf16": Case(R["add"], (XB, ("r", BF16, ("N",))), lambda a: bf16(a["x"] + a["r"])),
    "addcol_bf16": Case(R["sub"], (XB, ("c", BF16, ("M", 1))), lambda a: bf16(a["x"] - a["c"])),
    "addscalar_bf16": Case(R["add"], (XB, ("c", BF16, (1, 1))), lambda a: bf16(a["x"] + a["c"])),
    "colsum_f32": Case(lambda x: R["sum"](x, 0), (X,), lambda a: a["x"].sum(0), (0.5, 2e-5)),
    "colsum_bf16": Case(lambda x: R["sum"](x, 0), (XB,), lambda a: a["x"].sum(0), (0.51, 2e-5)),
    "colsquares_f32": Case(lambda x: R["sum"](R["square"](x), 0, True), (X,), lambda a: (a["x"] ** 2).sum(0, keepdims=True), (8, 2e-5)),
    "rowmax_bf16": Case(lambda x: R["amax"](x, -1, True), (XB,), lambda a: a["x"].max(1, keepdims=True), inputs={"x": below_zero}),
    "rowmax_f32": Case(lambda x: R["amax"](x, -1, True), (X,), lambda a: a["x"].max(1, keepdims=True), inputs={"x": below_zero}),
    "rowsum_bf16": Case(lambda x: R["sum"](x, -1, True), (XB,), lambda a: a["x"].sum(1, keepdims=True), (0.51, 2e-5)),
    "rowsquares_bf16": Case(lambda x: R["sum"](R["mul"](R["cast"](x, F32), R["cast"](x, F32)), -1, True), (XB,),
                            lambda a: (a["x"] ** 2).sum(1, keepdims=True), (8, 2e-5)),
    "tril_f32": Case(lambda x: R["tril"](x, -40), (X,), lambda a: np.tril(a["x"], -40), shapes=(*SHAPES, (170, 130))),
    "tril_bf16": Case(lambda x: R["tril"](x, 3), (XB,), lambda a: np.tril(a["x"], 3)),
    "matmul_bf16": Case(R["matmul"], (("a", BF16, ("M", "K")), ("b", BF16, ("K", "N"))), lambda a: bf16(a["a"] @ a["b"]), (0, 0), FACTORS,
                        shapes=BLOCKS),
    "matmul_transposed": Case(lambda a, b: R["matmul"](a, b, F32, False, True), (("a", BF16, ("M", "K")), ("b", BF16, ("N", "K"))),
                              lambda a: a["a"] @ a["b"].T, (0, 0), FACTORS, shapes=BLOCKS),
    "ffn_bf16": Case(lambda a, b, c: R["gelu"](R["add"](R["matmul"](a, b), c)),
                     (("a", BF16, ("M", "K")), ("b", BF16, ("K", "N")), ("c", BF16, ("N",))),
                     lambda a: gelu(bf16(bf16(a["a"] @ a["b"]) + a["c"])), (0.6, 1e-6), FACTORS, shapes=BLOCKS),
}
