"""Sums along the rows of matrices that lie along their columns: lanes are rows, so that memory is read in runs and nothing is turned.

The order is that of every row: element i goes to partial i mod 64, in blocks of 4096, and each partial is a vector of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto_dsl.codegen.llvm import elements, sums
from pypto_dsl.codegen.llvm.builder import I64, Builder, Type, Value
from pypto_dsl.codegen.llvm.indexing import zero
from pypto_dsl.codegen.llvm.lanes import Lanes, Position, key, store_vector
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.summation import PARTIALS, ROW_BLOCK
from pypto_dsl.compiler.tile_ir import nodes as t

TOGETHER = 4  # vectors of rows: their partials fit the first-level cache


@dataclass(frozen=True)
class _State:
    """One reduction of several vectors of rows: in memory their partials, finished blocks, and results."""

    reduce: t.Reduce
    dtype: DType
    lanes: Type
    partials: Value
    levels: Value
    values: Value

    def vector(self, b: Builder, base: Value, number: Value | int) -> Value:
        """The address of one of the vectors from ``base`` on."""
        return b.offset(base, number * self.lanes.lanes, self.lanes.element)


def reduce_rows(b: Builder, lanes: Lanes, rows: Sequence[Value], mask: Value | None, count: Value) -> None:
    """Reduce ``count`` columns of the vectors of rows that begin at ``rows``; ``lanes`` run over the Block's rows."""
    states = [_state(b, lanes, reduce) for reduce in lanes.block.reduces]
    several = b.compare("sgt", count, ROW_BLOCK)
    vectors = len(rows)
    for s in states:
        for v in range(vectors):
            b.store(b.constant(s.lanes, sums.identity(s.reduce.kind, s.dtype)), s.vector(b, s.values, v))

    def element(column: Value, _: list[Value]) -> None:
        lanes.before_row(column)
        every = lanes.at(*(Position(column, row, mask) for row in rows))
        for s in states:
            first = s.vector(b, s.partials, (column & (PARTIALS - 1)) * vectors)
            for v, values in enumerate(every):
                place = s.vector(b, first, v)
                value = elements.to_memory(b, values[key(s.reduce.value)], s.dtype)
                b.store(sums.combine(b, s.reduce.kind, s.dtype, b.load(s.lanes, place), value), place)

    def block(start: Value, _: list[Value]) -> None:
        for s in states:
            fresh = b.constant(s.lanes, sums.identity(s.reduce.kind, s.dtype))
            b.loop(0, PARTIALS * vectors, 1, lambda i, _: b.store(fresh, s.vector(b, s.partials, i)), hint="fresh")  # noqa: B023
        b.loop(start, b.intrinsic("llvm.smin", start + ROW_BLOCK, count), 1, element, hint="column")
        number = start.lshr(ROW_BLOCK.bit_length() - 1)
        for s in states:
            b.loop(0, vectors, 1, lambda v, _: _tree(b, s, v, vectors), hint="tree")  # noqa: B023
            _merged(b, s, sums.push_function(b.module, s.reduce.kind, s.dtype), number, vectors, several)

    b.loop(0, count, ROW_BLOCK, block, hint="block")
    blocks = (count + (ROW_BLOCK - 1)).lshr(ROW_BLOCK.bit_length() - 1)
    for s in states:
        _merged(b, s, sums.finish_function(b.module, s.reduce.kind, s.dtype), blocks, vectors, several)
        target = lanes.context.views[s.reduce.target.name].turned()
        extreme = s.reduce.kind in ("max", "min") and s.lanes.is_float
        for v, row in enumerate(rows):
            value = b.load(s.lanes, s.vector(b, s.values, v))
            store_vector(b, sums.one_nan(b, value) if extreme else value, target, Position(zero(b), row, mask))


def _state(b: Builder, lanes: Lanes, reduce: t.Reduce) -> _State:
    dtype = lanes.dtype(reduce.value)
    vector = Type(elements.memory_element(dtype), b.level.float_lanes)
    partials, levels, values = (b.alloca(f"[{n * TOGETHER * vector.lanes} x {vector.element}]") for n in (PARTIALS, sums.LEVELS, 1))
    return _State(reduce, dtype, vector, partials, levels, values)


def _tree(b: Builder, s: _State, number: Value, vectors: int) -> None:
    """The partials of one vector of rows, halved to its results."""
    half = PARTIALS // 2
    while half:
        def step(i: Value, _: list[Value]) -> None:
            place = s.vector(b, s.partials, i * vectors + number)
            later = b.load(s.lanes, s.vector(b, place, half * vectors))  # noqa: B023
            merged = sums.combine(b, s.reduce.kind, s.dtype, b.load(s.lanes, place), later)
            b.store(merged, place if half > 1 else s.vector(b, s.values, number))  # noqa: B023

        b.loop(0, half, 1, step, hint="halve")
        half //= 2


def _merged(b: Builder, s: _State, function: str, number: Value, vectors: int, several: Value) -> None:
    """Call a function of the binary counter where there are several blocks."""
    pitch = b.constant(I64, vectors * s.lanes.lanes)
    b.when(several, lambda: b.call_void(function, s.levels, pitch, number, s.values, pitch))
