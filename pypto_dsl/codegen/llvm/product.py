"""Matrix products: panels of packed columns and register tiles, which hold the chain of one block of k (`compiler/summation.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto_dsl.codegen.llvm import elements
from pypto_dsl.codegen.llvm.builder import Builder, Type, Value
from pypto_dsl.codegen.llvm.indexing import View, address, zero
from pypto_dsl.codegen.llvm.lanes import Position, load_vector
from pypto_dsl.codegen.llvm.layout import PANEL
from pypto_dsl.codegen.llvm.loops import UNKNOWN, each, sweep
from pypto_dsl.codegen.llvm.turning import turn
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.summation import PRODUCT_BLOCK

TILE_ROWS = (6, 4, 2, 1)  # of register tiles: as many as fit, then what is left
TILE_VECTORS = {512: 4, 256: 2, 128: 2}  # f32 vectors per row of a register tile: accumulators, operands and a broadcast fit


@dataclass(frozen=True)
class Step:
    """One k-step of a product: views of both operands ([m, k] and [k, n]), room for packed copies, the accumulator, extents.

    ``k`` is above 0, and at most a block where ``single``; ``first`` says whether nothing is in the accumulator yet.
    """

    a: View
    b: View
    packed_a: View
    panel: View
    target: View
    m: Value
    n: Value
    k: Value
    single: bool
    first: Value


def emit_step(b: Builder, step: Step) -> None:
    """Add a @ b over the step's k to the target, block by block: for each panel of columns, packed where it is used next, all rows."""
    left = step.a
    if not (left.dtype is step.target.dtype and left.column_stride.name == "1"):
        _pack(b, step.a, step.packed_a, step.m, step.k)
        left = step.packed_a
    width = b.level.float_lanes
    vectors = max(1, TILE_VECTORS[b.level.vector_bits] * 4 // step.target.dtype.itemsize)
    columns = width * vectors
    assert columns <= PANEL, "a panel has room for a tile's columns"

    def packed(j: Value, count: Value) -> None:
        source = View(address(b, step.b, zero(b), j), step.b.dtype, step.b.row_stride, step.b.column_stride)
        _pack(b, source, step.panel, step.k, count)

    def panel(j: Value, _: list[Value]) -> None:
        packed(j, b.value(j.type, columns))
        _rows(b, step, left, zero(b), j, vectors, TILE_ROWS)

    def rest() -> None:
        packed(full, step.n - full)
        b.loop(full, step.n, width, lambda j, _: _rows(b, step, left, j - full, j, 1, (TILE_ROWS[0], 1)), hint="vector")

    full = step.n & -columns
    b.loop(0, full, columns, panel, hint="panel")
    b.when(b.compare("slt", full, step.n), rest)


def _rows(b: Builder, step: Step, left: View, at: Value, j: Value, vectors: int, sizes: Sequence[int]) -> None:
    """All rows of the columns at ``at`` in the panel, ``j`` in the target."""
    start = zero(b)
    for rows in sizes:
        stop = step.m if rows == 1 else start + b.binary("udiv", step.m - start, rows) * rows
        b.loop(start, stop, rows, lambda i, _, r=rows: _tile(b, step, left, i, at, j, r, vectors), hint="tile")  # type: ignore[misc]
        start = stop


def _tile(b: Builder, step: Step, left: View, i: Value, at: Value, j: Value, rows: int, vectors: int) -> None:
    """``rows`` x ``vectors`` accumulators, from zero in each block of the step's k and then added to the target."""
    width = b.level.float_lanes
    element = step.target.element
    lanes, scalar = Type(element, width), Type(element)
    places = [address(b, step.target, i + r if r else i, j + v * width if v else j) for r in range(rows) for v in range(vectors)]
    starts = [address(b, left, i + r if r else i, zero(b)) for r in range(rows)]

    def turn(k: Value, accumulators: list[Value]) -> list[Value]:
        right = [b.load(lanes, address(b, step.panel, k, at + v * width)) for v in range(vectors)]
        result = []
        for r in range(rows):
            factor = b.splat(b.load(scalar, b.offset(starts[r], k, element)), width)
            for v in range(vectors):
                before = accumulators[r * vectors + v]
                result.append(b.fma(factor, right[v], before) if lanes.is_float else before + factor * right[v])
        return result

    def chains(start: Value, stop: Value) -> list[Value]:
        return b.loop(start, stop, 1, turn, [b.constant(lanes, 0)] * len(places), "k", at_least_once=True)

    def store(values: Sequence[Value]) -> None:
        for place, value in zip(places, values, strict=True):
            b.store(value, place)

    def block(start: Value, _: list[Value]) -> None:
        values = chains(start, b.intrinsic("llvm.smin", start + PRODUCT_BLOCK, step.k))
        b.either(step.first & b.compare("eq", start, 0), lambda: store(values),
                 lambda: store([b.load(lanes, place) + value for place, value in zip(places, values, strict=True)]), "first")

    if step.single:
        store(chains(zero(b), step.k))
    else:
        b.loop(0, step.k, PRODUCT_BLOCK, block, hint="block", at_least_once=True)


# ---- packing ---------------------------------------------------------------------------------------------------------------


def _pack(b: Builder, source: View, target: View, rows: Value, cols: Value) -> None:
    """Copy a matrix into dense rows of the accumulator's dtype; what fills the last vector of a row may be anything."""
    width = b.level.float_lanes
    if source.column_stride.name != "1" and source.row_stride.name == "1":
        turn(b, source, target, rows, cols,
             lambda value: _widened(b, elements.from_memory(b, value, source.dtype), source.dtype, target.dtype))
        return

    def row(number: Value) -> None:
        def part(columns: Sequence[Value], mask: Value | None) -> None:
            for column in columns:
                loaded = elements.from_memory(b, load_vector(b, source, Position(number, column, mask), width), source.dtype)
                b.store(_widened(b, loaded, source.dtype, target.dtype), address(b, target, number, column))

        sweep(b, zero(b), cols, UNKNOWN, width, part, 2)

    each(b, rows, UNKNOWN, row, "pack")


def _widened(b: Builder, value: Value, source: DType, target: DType) -> Value:
    return elements.cast(b, value, source, target, "CAST_NONE", False, None)
