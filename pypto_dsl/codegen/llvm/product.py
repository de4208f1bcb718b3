"""Matrix products: operands packed and widened, then register tiles of one ascending-k chain of fused multiply-adds per element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pypto_dsl.codegen.llvm import elements
from pypto_dsl.codegen.llvm.block import UNKNOWN, copy_rows, each, sweep
from pypto_dsl.codegen.llvm.builder import Builder, Type, Value
from pypto_dsl.codegen.llvm.indexing import View, address, zero
from pypto_dsl.codegen.llvm.lanes import Position, load_vector
from pypto_dsl.compiler.dtypes import DType

TILE_ROWS = 6
TILE_VECTORS = {512: 4, 256: 2, 128: 2}  # vectors per row of a register tile: accumulators, operands and a broadcast fit


@dataclass(frozen=True)
class Step:
    """One k-step of a product: views of both operands ([m, k] and [k, n]), their packed copies, the accumulator, extents."""

    a: View
    b: View
    packed_a: View
    packed_b: View
    target: View
    m: Value
    n: Value
    k: Value


def emit_step(b: Builder, step: Step) -> None:
    """target += a @ b over the step's k."""
    pack(b, step.b, step.packed_b, step.k, step.n)
    left = step.a
    if not (left.dtype is step.target.dtype and left.column_stride.name == "1"):
        pack(b, step.a, step.packed_a, step.m, step.k)
        left = step.packed_a
    width = b.level.float_lanes
    wide = TILE_VECTORS[b.level.vector_bits]
    full_rows = _multiple(b, step.m, TILE_ROWS)

    def columns(vectors: int) -> Callable[[Value, list[Value]], None]:
        def column(j: Value, _: list[Value]) -> None:
            b.loop(0, full_rows, TILE_ROWS, lambda i, _: _tile(b, step, left, i, j, TILE_ROWS, vectors), hint="tile")
            b.loop(full_rows, step.m, 1, lambda i, _: _tile(b, step, left, i, j, 1, vectors), hint="row")

        return column

    full = step.n & -(width * wide)
    b.loop(0, full, width * wide, columns(wide), hint="panel")
    b.loop(full, step.n, width, columns(1), hint="vector")


def _multiple(b: Builder, value: Value, of: int) -> Value:
    return b.binary("udiv", value, of) * of


def pack(b: Builder, source: View, target: View, rows: Value, cols: Value) -> None:
    """Copy a matrix into dense rows of the accumulator's dtype; the vector of a row's end is padded with anything."""
    width = b.level.float_lanes
    if source.column_stride.name != "1" and source.row_stride.name == "1":
        _pack_transposed(b, source, target, rows, cols)
        return

    def row(number: Value) -> None:
        def part(columns: Sequence[Value], mask: Value | None) -> None:
            (column,) = columns
            loaded = elements.from_memory(b, load_vector(b, source, Position(number, column, mask), width), source.dtype)
            b.store(_widened(b, loaded, source.dtype, target.dtype), address(b, target, number, column))

        sweep(b, zero(b), cols, UNKNOWN, width, part)

    each(b, rows, UNKNOWN, row, "pack")


def _pack_transposed(b: Builder, source: View, target: View, rows: Value, cols: Value) -> None:
    """Read along the contiguous axis, store lane by lane."""
    width = b.level.float_lanes

    def column(number: Value) -> None:
        def part(rows_here: Sequence[Value], mask: Value | None) -> None:
            (row,) = rows_here
            loaded = elements.from_memory(b, load_vector(b, source.turned(), Position(number, row, mask), width), source.dtype)
            wide = _widened(b, loaded, source.dtype, target.dtype)
            copy_rows(b, wide, target, row, number, rows)

        sweep(b, zero(b), rows, UNKNOWN, width, part)

    each(b, cols, UNKNOWN, column, "pack")


def _widened(b: Builder, value: Value, source: DType, target: DType) -> Value:
    return elements.cast(b, value, source, target, "CAST_NONE", False, None)


def _tile(b: Builder, step: Step, left: View, i: Value, j: Value, rows: int, vectors: int) -> None:
    """``rows`` x ``vectors`` accumulators over the step's k, loaded from and stored to the target."""
    width = b.level.float_lanes
    element = step.target.element
    lanes, scalar = Type(element, width), Type(element)
    places = [address(b, step.target, i + r if r else i, j + v * width if v else j) for r in range(rows) for v in range(vectors)]
    carried = [b.load(lanes, place) for place in places]
    starts = [address(b, left, i + r if r else i, zero(b)) for r in range(rows)]

    def turn(k: Value, accumulators: list[Value]) -> list[Value]:
        right = [b.load(lanes, address(b, step.packed_b, k, j + v * width if v else j)) for v in range(vectors)]
        result = []
        for r in range(rows):
            factor = b.splat(b.load(scalar, b.offset(starts[r], k, element)), width)
            for v in range(vectors):
                before = accumulators[r * vectors + v]
                result.append(b.fma(factor, right[v], before) if lanes.is_float else before + factor * right[v])
        return result

    for place, value in zip(places, b.loop(0, step.k, 1, turn, carried, "k"), strict=True):
        b.store(value, place)


