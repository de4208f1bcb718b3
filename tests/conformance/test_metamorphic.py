"""Law 3 over operations: on the CPU a result's bits depend on neither threads, chunks, tiles, vector width, known extents nor fusion."""
from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cells import Array, Cell, arrays, record, taken
from host import CPU, computed, is_matrix, symbols_of

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Builder, Graph, Value
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.targets import Target
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.executable import Executable
from pypto_dsl.runtime.cpu.pool import Pool

LEVELS = [level.name for level in jit.host_levels()]
SHARE_ALL = {"serial_elements": 0, "chunk_elements": 1, "chunks_per_thread": 64}
# Other cuts of every iteration space; those that are the meaning of sums stay.
SMALL = replace(CPU, tile=replace(CPU.tile, flat=130, rows=3, cols=70, plane=(3, 50), column_cols=24, matmul=(8, 32, 256)))
NAMES = sorted({cell.name for cell in taken()})


def in_turn(name: str) -> Cell:
    """One use of the operation on one dtype, uses and dtypes in turn."""
    cells = [cell for cell in taken() if cell.name == name]
    return cells[NAMES.index(name) * 5 % len(cells)]


@cache
def pools() -> tuple[Pool, Pool]:
    return Pool(1), Pool(5)


def bits(g: Graph, given: list[Array], symbols: dict[str, int], target: Target, level: str, pool: Pool,
         launch: dict[str, int]) -> list[bytes]:
    executable = Executable(lower(g, target), level=level, pool=pool, launch=launch)
    return [one_nan(a).tobytes() for a in computed(executable, g, given, symbols)]


def one_nan(x: Array) -> Array:
    """Every NaN as the same: IEEE 754 leaves its sign and payload open."""
    nan = x != x
    return np.where(nan, np.full((), np.nan, x.dtype), x) if nan.any() else x


def beside_others(cell: Cell, given: list[Array]) -> Graph:
    """The operation in a kernel that also computes on its operand before and on its result behind it."""
    g = record(cell, given)
    extra: list[Value] = []
    with building(Builder(g)):
        extra += [REGISTRY["neg"](p) for p in g.parameters[:1] if p.type.dtype.is_float and p.type.dtype.bits > 8]
        extra += [REGISTRY["neg"](v) for v in list(g.outputs.values()) if v.type.dtype.is_float and v.type.dtype.bits > 8]
    for i, value in enumerate(extra):
        out = Value(value.type.with_dtype(value.type.dtype), f"extra{i}")
        g.parameters.append(out)
        g.outputs[out.name] = value
    return g


@pytest.mark.parametrize("name", NAMES)
def test_bits_stay(name: str) -> None:
    """One thread, whole tiles, the widest vectors, static extents; against five threads, small tiles, other widths, symbols, and fused."""
    cell, at = in_turn(name), NAMES.index(name)
    given = arrays(cell)
    one, five = pools()
    g = record(cell, given)
    try:
        first = bits(g, given, {}, CPU, LEVELS[0], one, {})
    except KernelError as refused:
        assert refused.code == "PT204", refused  # a dtype without a zero
        return
    symbolic = is_matrix(cell, given)
    again, symbols = record(cell, given, symbolic=symbolic), symbols_of(given[0].shape) if symbolic else {}
    for level, graph, extents, target in ((LEVELS[at % len(LEVELS)], again, symbols, SMALL),
                                          (LEVELS[(at + 1) % len(LEVELS)], beside_others(cell, given), {}, CPU)):
        other = bits(graph, given, extents, target, level, five, SHARE_ALL)[:len(first)]
        assert other == first, f"{cell.id}: other bits on {level} in {'small tiles' if target is SMALL else 'a fused kernel'}"


def test_every_dtype_has_its_turn() -> None:
    assert len({in_turn(name).dtype for name in NAMES}) > 12
