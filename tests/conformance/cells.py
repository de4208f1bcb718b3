"""The cells of the conformance matrix: every use of every operation on every dtype that it takes, with operands that bite.

A use is an operation with the attributes that it needs; a cast is one use per dtype it gives. A cell is a use on one operand dtype.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from samples import elementwise_names, operands
from test_expansion_graph import ATTRIBUTES, operand_arrays

from pypto_dsl.compiler.dtypes import ALL, BOOL, F32, I8, DType, of_numpy
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Builder, Graph, Symbol, Value, tensor_type
from pypto_dsl.compiler.index import Index, var
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.evaluate import plan, unrounded
from pypto_dsl.compiler.ops.recording import building

Array = np.ndarray[Any, np.dtype[Any]]
Maker = Callable[[DType, np.random.Generator], list[Array]]

DTYPES: tuple[DType, ...] = tuple(d for d in ALL if d.kind != "block")
ELEMENTWISE = frozenset(elementwise_names())
# Recorded by the compiler alone; a kernel has them only inside others (`extent` is a shape's number, `constant` a Python number).
INTERNAL = frozenset({"constant", "extent", "empty", "load_scalar", "iota"})
M, N = 37, 67  # ragged in tiles of 8, 16, 32 and 64


@dataclass(frozen=True)
class Cell:
    """One use of an operation on one dtype. ``label`` names the use: the operation, and what its attributes say."""

    name: str
    dtype: DType
    label: str
    attributes: Mapping[str, Any] = field(compare=False)

    @property
    def id(self) -> str:
        return f"{self.label} {self.dtype}"

    @property
    def kernel(self) -> str:
        """A name for the kernel that is an identifier, and no other cell's."""
        return re.sub(r"\W+", "_", self.id.replace("-", "m").replace(".", "p")).strip("_")


def labelled(name: str, attributes: Mapping[str, Any]) -> str:
    """`cast dtype=f32`, `round decimals=-1`; the attributes that every use of the operation needs are left out."""
    if len(ATTRIBUTES.get(name, ({},))) == 1 and name not in GIVEN:
        return name
    return " ".join([name, *(f"{k}={v}" for k, v in attributes.items())])


GIVEN: dict[str, tuple[dict[str, Any], ...]] = {
    "cast": tuple({"dtype": d} for d in DTYPES),
    "bitcast": tuple({"dtype": d} for d in DTYPES),
    "sum": ({"dim": -1}, {"dim": 0}), "amax": ({"dim": -1}, {"dim": 0}), "amin": ({"dim": -1}, {"dim": 0}),
    "mean": ({"dim": -1}, {"dim": 0}),
    "softmax": ({"dim": -1}, {"dim": 0}),
    "cumsum": ({"dim": -1}, {"dim": 0}),
    "topk": ({"k": 5},), "pad": ({"pad": (1, 2)},), "one_hot": ({"num_classes": 5},), "flip": ({"dims": (0, 1)},),
    "expand_clone": ({"shape": (3, M, N)},), "view": ({"shape": (20, 40), "offsets": (10, 20)},), "insert": ({"offsets": (7, 9)},),
    "reshape": ({"shape": (N, M)},), "repeat_interleave": ({"repeats": 3, "dim": 1},), "scatter_update": ({"dim": 0},),
    "atomic_add": ({"offsets": (7, 9)},), "unpack": ({"dtype": F32},), "quantize": ({"otype": I8},),
    "full": ({"shape": (M, N), "value": 3},), "arange": ({"start": 0, "stop": 90, "step": 1},), "uniform": ({"shape": (M, N)},),
    "normal": ({"shape": (M, N)},), "fillpad": ({"value": 1},),
    "matmul": ({}, {"b_trans": True}, {"a_trans": True}),
}
BY_DTYPE_ATTRIBUTE = frozenset({"full", "arange", "uniform", "normal"})  # no operand: the cell's dtype is that of the result


def uses(name: str) -> tuple[dict[str, Any], ...]:
    """The attribute sets with which an operation is tried."""
    return GIVEN.get(name, ATTRIBUTES.get(name, ({},)))


@cache
def cells() -> tuple[Cell, ...]:
    """Every use on every dtype: the first use of an operation on all of them, its others on f32, bf16 and i32 (casts: on all)."""
    found = []
    for name in REGISTRY:
        if name in INTERNAL:
            continue
        for position, attributes in enumerate(uses(name)):
            for dtype in DTYPES:
                if position and name not in ("cast", "bitcast") and dtype.name not in ("f32", "bf16", "i32"):
                    continue
                found.append(Cell(name, dtype, labelled(name, attributes), attributes))
    return tuple(found)


@cache
def taken() -> tuple[Cell, ...]:
    """The cells whose dtype the operation takes."""
    return tuple(cell for cell in cells() if refusal(cell) is None)


@cache
def everyday() -> tuple[Cell, ...]:
    """What the default tests run: all that is taken, but of functions that turn integers into floats only one integer dtype, in turn.

    Their integers are cast and then take the kernel of f32; `-m exhaustive` and tools/conformance.py run all of them.
    """
    found = []
    for name in REGISTRY:
        dtypes = REGISTRY[name].dtypes
        cells = [cell for cell in taken() if cell.name == name]
        turned = [] if dtypes is None else [cell for cell in cells if cell.dtype not in dtypes]
        kept = turned[len(found) % len(turned)] if turned else None
        found += [cell for cell in cells if cell not in turned or cell == kept]
    return tuple(found)


@cache
def refusal(cell: Cell) -> str | None:
    """The code with which the operation itself refuses the dtype, before any target; None where it takes it."""
    try:
        record(cell, arrays(cell))
    except KernelError as refused:
        return refused.code
    return None


# ---- operands --------------------------------------------------------------------------------------------------------------------


def values(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Numbers of moderate size; integers over their whole range where it is narrow, else small ones and the ends."""
    if dtype is BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        low, high = dtype.range
        x = rng.integers(max(low, -100), min(high, 100), shape, endpoint=True).astype(dtype.numpy)
        x.flat[: min(2, x.size)] = [low, high][: min(2, x.size)]
        return x
    scale = np.where(rng.random(shape) < 0.1, 30.0, 2.0) if dtype.bits > 8 else 1.0
    if dtype.name == "f8e8m0":
        return (2.0 ** rng.integers(-3, 4, shape)).astype(dtype.numpy)
    return (rng.normal(size=shape) * scale).astype(np.float32).astype(dtype.numpy)


def with_specials(dtype: DType, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """A matrix with rows of one infinity, of both, of a NaN and of signed zeros, and ties; the other rows are finite."""
    x = values(dtype, shape, rng)
    if dtype.is_float and dtype.bits > 8 and shape[0] > 8:
        x[1, 3], x[2, 5], x[3, 4] = np.inf, -np.inf, np.nan
        x[4, 1], x[4, 9] = np.inf, -np.inf
        x[5, ::2], x[5, 1::2] = 0.0, -0.0
    x[6 % shape[0]] = x[6 % shape[0], 0]
    return x


def small(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Small multiples of 1/4 (integers: small integers), whose sums of products are exact in f32."""
    if dtype is BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if not dtype.signed else -8
    return (rng.integers(low, 9, shape) / (4 if dtype.is_float else 1)).astype(np.float32).astype(dtype.numpy)


def near_one(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Factors whose products stay in range."""
    if not dtype.is_float:
        return small(dtype, shape, rng)
    return rng.uniform(0.8, 1.25, shape).astype(np.float32).astype(dtype.numpy)


def index(high: int, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    return rng.integers(0, high, shape).astype(np.int32)


def distinct(high: int, count: int, rng: np.random.Generator) -> Array:
    return rng.permutation(high)[:count].astype(np.int32)


MAKERS: dict[str, Maker] = {
    "where": lambda d, r: [values(BOOL, (M, N), r), with_specials(d, (M, N), r), values(d, (M, N), r)],
    "layer_norm": lambda d, r: [values(d, (M, N), r), values(d, (N,), r), values(d, (N,), r)],
    "rms_norm": lambda d, r: [values(d, (M, N), r), values(d, (N,), r)],
    "prelu": lambda d, r: [with_specials(d, (M, N), r), values(d, (N,), r)],
    "gather": lambda d, r: [values(d, (M, N), r), index(N, (M, 20), r)],
    "index_select": lambda d, r: [values(d, (M, N), r), index(N, (20,), r)],
    "scatter": lambda d, r: [values(d, (M, N), r), index(N, (M, 5), r), values(d, (M, 5), r)],
    "scatter_": lambda d, r: [values(d, (M, N), r), index(N, (M, 5), r), values(d, (M, 5), r)],
    "index_add": lambda d, r: [small(d, (M, N), r), index(N, (9,), r), small(d, (M, 9), r)],
    "index_add_": lambda d, r: [small(d, (M, N), r), index(N, (9,), r), small(d, (M, 9), r)],
    "index_put": lambda d, r: [values(d, (M, N), r), values(d, (9,), r), distinct(M, 9, r), index(N, (9,), r)],
    "index_put_": lambda d, r: [values(d, (M, N), r), values(d, (9,), r), distinct(M, 9, r), index(N, (9,), r)],
    "scatter_update": lambda d, r: [values(d, (M, N), r), distinct(M, 6, r).reshape(2, 3), values(d, (6, N), r)],
    "insert": lambda d, r: [values(d, (M, N), r), values(d, (11, 30), r)],
    "atomic_add": lambda d, r: [small(d, (11, 30), r), small(d, (M, N), r)],
    "quantize": lambda d, r: [values(d, (M, N), r), values(F32, (N,), r)],
    "dequantize": lambda d, r: [values(d, (M, N), r), values(F32, (N,), r)],
    "attention": lambda d, r: [small(d, (M, 16), r), small(d, (20, 16), r), small(d, (20, 16), r)],
    "quant_mx": lambda d, r: [values(d, (5, 64), r)],
    "unpack": lambda d, r: [r.integers(0, 120, 64).astype(np.uint8)],
    "scaled_mm": lambda d, r: [values(d, (20, 64), r), values(d, (64, 24), r), 2.0 ** r.integers(-2, 3, (20, 2)).astype(np.float32),
                               2.0 ** r.integers(-2, 3, (2, 24)).astype(np.float32)],
    "matmul": lambda d, r: [small(d, (M, 40), r), small(d, (40, N), r)],
    "concat": lambda d, r: [values(d, (M, N), r), values(d, (11, N), r)],
    "stack": lambda d, r: [values(d, (M, N), r), values(d, (M, N), r)],
    "squeeze": lambda d, r: [values(d, (1, N), r)],
    "prod": lambda d, r: [near_one(d, (M, N), r)], "nanprod": lambda d, r: [near_one(d, (M, N), r)],
    "cumprod": lambda d, r: [near_one(d, (M, N), r)],
    "interleave": lambda d, r: [values(d, (M, 64), r), values(d, (M, 64), r)],
    "deinterleave": lambda d, r: [values(d, (M, 64), r), values(d, (M, 64), r)],
    "gathermask": lambda d, r: [values(d, (M, 64), r)],
    "one_hot": lambda d, r: [r.integers(0, 7, (M, 9)).astype(d.numpy)],
    "ldexp": lambda d, r: [with_specials(d, (M, N), r), values(d, (M, N), r)],
    "ldexp_": lambda d, r: [with_specials(d, (M, N), r), values(d, (M, N), r)],
}
TRANSPOSED = {"a_trans": 0, "b_trans": 1}


def arrays(cell: Cell) -> list[Array]:
    """The operands of a cell, the same in every process."""
    rng = np.random.default_rng([len(cell.name), *cell.id.encode()])
    definition = REGISTRY[cell.name]
    if cell.name in BY_DTYPE_ATTRIBUTE:
        return []
    if cell.name in ELEMENTWISE and (cell.dtype.bits > 8 or not cell.dtype.is_float):
        return [np.resize(a, (M, N)) for a in operands(definition, cell.dtype, rng)]
    if cell.name in ("cast", "bitcast"):
        return [castable(cell, rng)]
    if cell.name in MAKERS:
        made = MAKERS[cell.name](cell.dtype, rng)
        for attribute, position in TRANSPOSED.items():
            if cell.attributes.get(attribute):
                made[position] = np.ascontiguousarray(made[position].T)
        return made
    if definition.family in ("reduce", "row", "sort", "scan", "layout", "index", "elementwise", "compare"):
        count = len(operand_arrays(cell.name, F32))
        return [with_specials(cell.dtype, (M, N), rng) if i == 0 else values(cell.dtype, (M, N), rng) for i in range(count)]
    return [values(of_numpy(a.dtype) or F32, a.shape, rng) for a in operand_arrays(cell.name, cell.dtype)]


def castable(cell: Cell, rng: np.random.Generator) -> Array:
    """All bit patterns of 8 and 16 bits; else special values, ties, the ends of every integer range, and random bits."""
    dtype = cell.dtype
    if dtype is BOOL:
        return np.resize(np.array([True, False, True]), (M, N))
    if dtype.bits <= 16:
        return np.arange(2**dtype.bits, dtype=np.uint32).astype(f"u{dtype.itemsize}").view(dtype.numpy).reshape(-1, 64)
    if dtype.is_integer:
        low, high = dtype.range
        powers = [s * 2**k + o for k in range(dtype.bits) for o in (-1, 0, 1) for s in (-1, 1)]
        inside = [v for v in powers if low <= v <= high]
        rest = rng.integers(low, high, M * N - len(inside), dtype=dtype.numpy, endpoint=True)
        return np.concatenate([np.array(inside, dtype.numpy), rest]).reshape(M, N)
    with np.errstate(all="ignore"):
        wide = rng.integers(0, 2**32, 1200, dtype=np.uint32).view(np.float32).astype(np.float64)
    ties = np.concatenate([rng.normal(size=300).astype(t).astype(np.float64) for t in (np.float16, np.float32)])
    halves = np.arange(-300, 300) / 2
    ends = [s * 2.0**k + o for k in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64) for o in (-1, 0, 1) for s in (-1, 1)]
    with np.errstate(all="ignore"):
        x = np.concatenate([[0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 65504.0, 65520.0, 3.4e38, 448, 464, 57344, 61440], ends, wide, ties,
                            ties * (1 + 2.0**-9), ties * (1 + 2.0**-12), halves])
        return np.resize(x, (M, N)).astype(dtype.numpy)


# ---- graphs ----------------------------------------------------------------------------------------------------------------------


def record(cell: Cell, given: list[Array], *, symbolic: bool = False, rules: str = "pypto") -> Graph:
    """A graph of the one operation over parameters like ``given``, its results written to out0, out1, ...

    ``symbolic``: the extents of all operands of rank 2 are the symbols M and N, 1 where they are 1.
    """
    g = Graph(cell.kernel, options={"promotion": rules})
    for i, array in enumerate(given):
        dtype = of_numpy(array.dtype)
        assert dtype is not None
        shape: list[Index | int] = list(array.shape)
        if symbolic:
            for axis, symbol in enumerate("MN"):
                if array.shape[axis] != 1:
                    g.symbols.setdefault(symbol, Symbol(symbol, "dim", f"p{i}", axis))
                    shape[axis] = var(symbol)
        g.parameters.append(Value(tensor_type(dtype, shape), f"p{i}"))
    definition = REGISTRY[cell.name]
    attributes = dict(cell.attributes)
    if cell.name in BY_DTYPE_ATTRIBUTE:
        attributes["dtype"] = cell.dtype
    with building(Builder(g)):
        if any(p.variadic for p in definition.parameters):
            made = definition(*g.parameters, **attributes)
        else:
            made = definition(**dict(zip((p.name for p in definition.operands), g.parameters, strict=False)), **attributes)
    for i, value in enumerate(made if isinstance(made, tuple) else (made,)):
        out = Value(value.type.with_dtype(value.type.dtype), f"out{i}")
        g.parameters.append(out)
        g.outputs[out.name] = value
    return g


def inputs(given: list[Array]) -> dict[str, Array]:
    return {f"p{i}": a for i, a in enumerate(given)}


def outputs(g: Graph, symbols: Mapping[str, int]) -> dict[str, Array]:
    """Arrays for the results, filled with bytes that no kernel leaves standing."""
    made = {}
    for name in g.outputs:
        t = next(p.type for p in g.parameters if p.name == name)
        shape = [e.evaluate(symbols) for e in t.shape]
        made[name] = np.full(int(np.prod(shape)) * t.dtype.itemsize, 0x55, np.uint8).view(t.dtype.numpy).reshape(shape)
    return made


def exact(g: Graph, given: list[Array], symbols: Mapping[str, int]) -> list[Array]:
    """What the operation's reference makes of the operands, floats unrounded in float64."""
    op = g.body.ops[-1]
    assert len(op.operands) == len(given), f"{op.opcode} is recorded with constants of its own"
    order = {p: i for i, p in enumerate(g.parameters)}
    return list(unrounded(op, plan(op, g), [given[order[o]] for o in op.operands], symbols))


