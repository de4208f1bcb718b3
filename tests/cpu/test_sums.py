"""Every reduction on every dtype: the same bits for all thread counts, chunks, tiles and widths; sums within the bound of their order."""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cpu_programs import Array, Executable

from pypto_dsl.compiler import targets
from pypto_dsl.compiler.dtypes import BY_NAME, DType
from pypto_dsl.compiler.graph import Builder, Graph, Value, tensor_type
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.passes.fuse import fuse
from pypto_dsl.compiler.passes.legalize import legalize
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.passes.sink import sink
from pypto_dsl.compiler.passes.tile import tile
from pypto_dsl.compiler.targets import TileChoices
from pypto_dsl.compiler.tile_ir.nodes import Program
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.pool import Pool

TARGET = targets.load("llvm-cpu")
LEVELS = [level.name for level in jit.host_levels()]
POOLS = (1, 5)
SHARE_ALL = {"serial_elements": 0, "chunk_elements": 1, "chunks_per_thread": 64}
OTHER_TILE = replace(TARGET.tile, rows=3, column_cols=64, flat=1024, plane=(2, 128))
SHAPE = (290, 4200)  # more than a block of rows, more than one of columns
MAIN = ("f32", "bf16", "i32")  # with another tile and every width
COMPUTED = ("f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16")
EPSILON = {"f32": 2.0**-24, "f64": 2.0**-53, "f16": 2.0**-11, "bf16": 2.0**-8}


def rows() -> list[tuple[str, str]]:
    """(operation, dtype) of every reduction and row operation of the op table; what is composed of others on the dtypes that differ."""
    found = []
    for name, definition in REGISTRY.items():
        if definition.family in ("reduce", "row"):
            names = ("bool",) if name in ("any", "all") else COMPUTED if name in TARGET.ops else (*MAIN, "f64")
            found += [(name, d) for d in names if not definition.dtypes or BY_NAME[d] in definition.dtypes]
    return found


def graph(name: str, dtype: DType, shape: tuple[int, int]) -> Graph:
    """The operation along the columns and along the rows, and the primitives over both."""
    made = Graph(name)
    made.parameters.append(Value(tensor_type(dtype, list(shape)), "x"))
    single = REGISTRY[name].family == "row" or name.endswith(("argmax", "argmin"))
    dims: tuple[Any, ...] = (0, -1) if "dim" in {p.name for p in REGISTRY[name].parameters} else (None,)
    for number, dim in enumerate(dims if single or name not in TARGET.ops else (*dims, None)):
        with building(Builder(made)):
            value = REGISTRY[name](made.parameters[0], **({} if len(dims) == 1 else {"dim": dim}))
        made.parameters.append(Value(value.type.with_dtype(value.type.dtype), f"out{number}"))
        made.outputs[f"out{number}"] = value
    return made


def program(made: Graph, choices: TileChoices) -> Program:
    lowered = sink(legalize(promote(made), TARGET))
    return tile(lowered, fuse(lowered), TARGET, choices)


def contents(dtype: DType, shape: tuple[int, int]) -> Array:
    rng = np.random.default_rng(7)
    if dtype.kind == "bool":
        return rng.random(shape) < 0.001
    if dtype.is_integer:
        low, high = dtype.range
        return rng.integers(max(low, -9), min(high, 9), shape).astype(dtype.numpy)
    return (1 + rng.normal(size=shape) / 100).astype(np.float32).astype(dtype.numpy)


def results(executable: Executable, x: Array) -> bytes:
    outs = {a.name: np.zeros([int(e.evaluate({})) for e in a.shape], a.dtype.numpy) for a in executable.program.arguments if a.name != "x"}
    executable.run({"x": x, **outs})
    return b"".join(o.tobytes() for o in outs.values())


@pytest.fixture(scope="module")
def pools() -> list[Pool]:
    return [Pool(count) for count in POOLS]


@pytest.mark.parametrize(("name", "dtype"), rows(), ids=lambda v: str(v))
def test_the_same_bits_however_it_is_cut(name: str, dtype: str, pools: list[Pool]) -> None:
    made, x = graph(name, BY_NAME[dtype], SHAPE), contents(BY_NAME[dtype], SHAPE)
    first = program(made, TARGET.tile)
    found = {results(Executable(first, pool=pool, launch=SHARE_ALL if pool.threads > 1 else {}), x) for pool in pools}
    if dtype in MAIN and name in TARGET.ops:
        found.add(results(Executable(program(made, OTHER_TILE), pool=pools[-1], launch=SHARE_ALL), x))
        found |= {results(Executable(first, level=level), x) for level in LEVELS[1:]}
    assert len(found) == 1


def terms(extent: int, columns: bool) -> int:
    """How many roundings a summand of the defined order may go through: its partial or block, the halving tree, the pairwise merges."""
    block = 256 if columns else 4096
    inside = min(extent, block) if columns else math.ceil(min(extent, block) / 64) + 6
    return inside + math.ceil(math.log2(max(1, math.ceil(extent / block)))) + 1


@pytest.mark.parametrize("kind", ["alike", "cancelling", "growing"])
@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize(("shape", "dim"), [((3, 100), 1), ((3, 4096), 1), ((2, 100000), 1), ((300, 33), 0), ((9000, 16), 0)])
def test_sums_are_within_the_bound_of_their_order(shape: tuple[int, int], dim: int, dtype: str, kind: str) -> None:
    """|sum - exact| <= h u (|x0| + |x1| + ...) with h roundings on the longest way, u of the dtype it is summed in (Higham 1993)."""
    rng = np.random.default_rng(3)
    drawn = {"alike": np.abs(rng.normal(size=shape)), "cancelling": rng.normal(size=shape),
             "growing": np.exp(rng.uniform(-8, 8, shape)) * rng.choice([-1, 1], shape)}[kind]
    x = (drawn / 64).astype(BY_NAME[dtype].numpy)
    made = Graph("total")
    made.parameters.append(Value(tensor_type(BY_NAME[dtype], list(shape)), "x"))
    with building(Builder(made)):
        value = REGISTRY["sum"](made.parameters[0], dim=dim)
    made.parameters.append(Value(value.type.with_dtype(value.type.dtype), "out0"))
    made.outputs["out0"] = value
    got = np.frombuffer(results(Executable(program(made, TARGET.tile)), x), BY_NAME[dtype].numpy).astype(np.longdouble)
    wide = x.astype(np.longdouble)
    exact, size = wide.sum(dim), np.abs(wide).sum(dim)
    inner = terms(shape[dim], dim == 0) * EPSILON["f64" if dtype == "f64" else "f32"] * size
    once = 0 if dtype in ("f32", "f64") else EPSILON[dtype] * (np.abs(exact) + inner) + 2.0**-25
    assert (np.abs(got - exact) <= inner + once).all()
