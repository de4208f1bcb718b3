"""Every operation of the CPU's table on every dtype it lists, against the op table's reference, special values included."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from cpu_programs import Array, Executable, lower

from benchmarks.sweep import precise
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.dtypes import BY_NAME, DType
from pypto_dsl.compiler.graph import Builder, Graph, Symbol, Value, tensor_type
from pypto_dsl.compiler.index import var
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.runtime import interpreter

TARGET = targets.load("llvm-cpu")
REDUCTIONS = ("sum", "amax", "amin", "prod", "any", "all")
ELSEWHERE = {"cast", "bitcast", "matmul", "where"}  # test_conversions, test_products, below
SPECIAL = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 0.5, -0.5, 2.5, 3, -3]


def rows() -> list[tuple[str, str]]:
    """(operation, operand dtypes) of every line of the target's table that the op table knows."""
    found = []
    for opcode, entries in TARGET.ops.items():
        if opcode not in REGISTRY or opcode in ELSEWHERE:
            continue
        operands = sum(p.kind == "tensor" and not p.optional for p in REGISTRY[opcode].parameters)
        for entry in sorted(entries):
            found.append((opcode, entry if "," in entry else ",".join([entry] * operands)))
    return found


def values(dtype: DType, shape: tuple[int, int], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if dtype.kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        low, high = dtype.range
        x = rng.integers(low, high, shape, dtype.numpy, endpoint=True)
        x[::2] = rng.integers(max(low, -9), 9, x[::2].shape)
        x.flat[:4] = [low, high, 0, 1]
        return x
    x = rng.normal(size=shape) * 3
    x.flat[:len(SPECIAL)] = np.roll(SPECIAL, seed * 4)
    return x.astype(np.float32).astype(dtype.numpy)


def graph(opcode: str, dtypes: tuple[str, ...], attributes: Mapping[str, Any]) -> Graph:
    g = Graph(opcode)
    g.symbols.update({"M": Symbol("M", "dim", "x0", 0), "N": Symbol("N", "dim", "x0", 1)})
    g.parameters.extend(Value(tensor_type(BY_NAME[d], [var("M"), var("N")]), f"x{i}") for i, d in enumerate(dtypes))
    with building(Builder(g)):
        value = REGISTRY[opcode](*g.parameters, **attributes)
    out = Value(value.type.with_dtype(value.type.dtype), "out")
    g.parameters.append(out)
    g.outputs["out"] = value
    return g


def both(g: Graph, arrays: dict[str, Array], m: int, n: int) -> tuple[Array, Array]:
    """What the CPU computes and what the operation means."""
    symbols = {"M": m, "N": n}
    shape = [e.evaluate(symbols) for e in g.parameters[-1].type.shape]
    out = np.full(shape, 7, g.parameters[-1].type.dtype.numpy)
    want = interpreter.run(g, {**{k: v.copy() for k, v in arrays.items()}, "out": out.copy()}, symbols)["out"]
    Executable(lower(g)).run({**arrays, "out": out}, symbols)
    return out, np.asarray(want)


def agree(got: Array, want: Array, bound: float) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    if got.dtype.kind in "biu":
        assert (got == want).all(), (got[got != want][:4], want[got != want][:4])
        return
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
    unit = np.spacing(np.abs(np.where(np.isfinite(b), b, 1)).astype(got.dtype)).astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= (bound + 0.5) * unit)
        zeros = (a == 0) & (b == 0)
    assert (same | near & ~zeros).all(), (got[~(same | near & ~zeros)][:4], want[~(same | near & ~zeros)][:4])


def precisely(case: str, got: Array, want: Array, arrays: Sequence[Array], bound: float) -> None:
    """f64 results against mpmath where they are finite, because a reference in float64 has errors of its own; the others against it."""
    inside = np.isfinite(want) & np.logical_and.reduce([np.isfinite(a) for a in arrays])
    assert (precise.ulps(case, got[inside], *(a[inside] for a in arrays)) <= bound).all()
    agree(np.where(inside, want, got), want, 0)


@pytest.mark.parametrize(("opcode", "dtypes"), rows(), ids=lambda v: str(v))
def test_operation_means_its_reference(opcode: str, dtypes: str) -> None:
    names = tuple(dtypes.split(","))
    attributes: list[dict[str, Any]] = [{}]
    if opcode in REDUCTIONS:
        attributes = [{"dim": 1}, {"dim": 0}, {}]
    if opcode == "gelu":
        attributes = [{}, {"approximate": "tanh"}]
    for given in attributes:
        g = graph(opcode, names, given)
        m, n = 9, 37
        arrays = {f"x{i}": values(BY_NAME[d], (m, n), i + 1) for i, d in enumerate(names)}
        if opcode in REDUCTIONS and BY_NAME[names[0]].is_float:
            arrays["x0"] = np.random.default_rng(0).normal(size=(m, n)).astype(BY_NAME[names[0]].numpy)
        got, want = both(g, arrays, m, n)
        bound = TARGET.data["bounds"].get(names[0], {}).get(opcode, 0)
        case = f"{opcode}_tanh" if given.get("approximate") else opcode
        if names[0] == "f64" and case in precise.FUNCTIONS:
            precisely(case, got, want, list(arrays.values()), bound)
            continue
        agree(got, want, max(bound, 64) if opcode in ("sum", "prod") and got.dtype.kind == "f" else bound)


@pytest.mark.parametrize("dtype", [e.split(",")[1] for e in sorted(TARGET.ops["where"])])
def test_where(dtype: str) -> None:
    g = graph("where", ("bool", dtype, dtype), {})
    arrays = {"x0": values(BY_NAME["bool"], (9, 37), 0), "x1": values(BY_NAME[dtype], (9, 37), 1), "x2": values(BY_NAME[dtype], (9, 37), 2)}
    agree(*both(g, arrays, 9, 37), 0)


@pytest.mark.parametrize("pair", sorted(TARGET.ops["bitcast"]))
def test_bitcast(pair: str) -> None:
    source, target = pair.split("->")
    g = graph("bitcast", (source,), {"dtype": BY_NAME[target]})
    x = np.random.default_rng(0).integers(0, 256, (9, 37 * BY_NAME[source].itemsize)).astype(np.uint8).view(BY_NAME[source].numpy)
    out = np.zeros((9, 37), BY_NAME[target].numpy)
    Executable(lower(g)).run({"x0": x, "out": out}, {"M": 9, "N": 37})
    assert out.tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", sorted(TARGET.ops["matmul"]))
def test_products_on_every_dtype(dtype: str) -> None:
    g = Graph("product")
    for name, axis, parameter in (("M", 0, "a"), ("K", 1, "a"), ("N", 1, "b")):
        g.symbols[name] = Symbol(name, "dim", parameter, axis)
    shapes = [("a", ("M", "K")), ("b", ("K", "N"))]
    g.parameters += [Value(tensor_type(BY_NAME[dtype], [var(e) for e in shape]), name) for name, shape in shapes]
    with building(Builder(g)):
        value = REGISTRY["matmul"](*g.parameters)
    g.parameters.append(Value(value.type, "out"))
    g.outputs["out"] = value
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype(BY_NAME[dtype].numpy) for s in ((13, 530), (530, 71)))
    out = np.zeros((13, 71), value.type.dtype.numpy)
    Executable(lower(g)).run({"a": a, "b": b, "out": out}, {"M": 13, "K": 530, "N": 71})
    wide = np.float64 if BY_NAME[dtype].is_float else np.int64
    exact = a.astype(wide) @ b.astype(wide)
    assert (out == (exact.astype(np.float32) if BY_NAME[dtype].is_float and BY_NAME[dtype].bits == 16 else exact).astype(out.dtype)).all()


SMALL = [(1, 1, 1), (2, 2, 1), (1, 3, 2), (7, 5, 1), (17, 40, 1), (3, 1, 18), (5, 33, 3)]


@pytest.mark.parametrize("then", ["stored", "added to its column", "summed"])
@pytest.mark.parametrize("dtype", sorted(TARGET.ops["matmul"]))
def test_products_of_every_small_extent(dtype: str, then: str) -> None:
    """Single rows, columns and terms, written at once and read by what is fused behind the product."""
    rng = np.random.default_rng(0)
    for m, k, n in SMALL:
        g = Graph("product")
        g.parameters += [Value(tensor_type(BY_NAME[dtype], s), name) for name, s in (("a", (m, k)), ("b", (k, n)))]
        with building(Builder(g)):
            value = REGISTRY["matmul"](*g.parameters)
            if then == "added to its column":
                value = REGISTRY["add"](value, REGISTRY["view"](value, (m, 1), (0, 0)))
            elif then == "summed":
                value = REGISTRY["sum"](value, -1, True)
        g.parameters.append(Value(value.type, "out"))
        g.outputs["out"] = value
        a, b = (rng.integers(-2, 3, s).astype(BY_NAME[dtype].numpy) for s in ((m, k), (k, n)))
        out = np.zeros([int(e.constant or 0) for e in value.type.shape], value.type.dtype.numpy)
        Executable(lower(g)).run({"a": a, "b": b, "out": out}, {})
        exact = a.astype(np.int64) @ b.astype(np.int64)
        want = exact + exact[:, :1] if then == "added to its column" else exact.sum(1, keepdims=True) if then == "summed" else exact
        assert (out.astype(np.int64) == want).all(), (m, k, n)
