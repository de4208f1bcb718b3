"""Loops over rows and over vectors of columns, with what is left behind the last whole vector under a mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pypto_dsl.codegen.llvm.builder import Builder, Value
from pypto_dsl.codegen.llvm.indexing import View, zero
from pypto_dsl.codegen.llvm.lanes import Position, load_vector, store_vector
from pypto_dsl.compiler.index import Index, var

Step = Callable[[Sequence[Value], Value | None], None]
UNKNOWN = var("unknown")  # an extent that is not known when code is written


def each(b: Builder, count: Value, extent: Index, body: Callable[[Value], None], hint: str) -> None:
    """``for i in range(count)``, straight-line when the count is known to be 1."""
    if extent.constant == 1:
        body(zero(b))
        return
    b.loop(0, count, 1, lambda i, _: body(i), hint=hint)


def sweep(b: Builder, start: Value, stop: Value, extent: Index, width: int, step: Step, together: int = 1) -> None:
    """Vectors over [start, stop): ``together`` of them a turn, then one by one, the last one masked.

    ``step`` gets the first columns of its vectors and their mask; ``extent`` is ``stop - start`` where that is known.
    """
    known = extent.constant
    if known is not None and known < width:
        if known:
            step([start], b.lane_mask(start, stop, width))
        return
    while known is not None and known < width * together:
        together //= 2
    turn = width * together  # a power of two
    full = stop if known is not None and known % turn == 0 else start + ((stop - start) & -turn)
    b.loop(start, full, turn, lambda i, _: step(neighbours(i, width, together), None), hint="vector", at_least_once=known is not None)
    if full is stop:
        return
    if known is None or known % turn > width:
        b.loop(full, stop, width, lambda i, _: step([i], b.lane_mask(i, stop, width)), hint="tail", at_least_once=known is not None)
        return
    step([full], b.lane_mask(full, stop, width))


def neighbours(first: Value, width: int, count: int) -> list[Value]:
    """The first columns of vectors side by side."""
    return [first, *(first + k * width for k in range(1, count))]


def copy(b: Builder, source: View, target: View, rows: Value, cols: Value, rows_extent: Index, cols_extent: Index) -> None:
    """Elements of one view to another of the same dtype."""
    if cols_extent.constant == 1 and rows_extent.constant != 1:
        copy(b, source.turned(), target.turned(), cols, rows, cols_extent, rows_extent)
        return
    width = b.level.float_lanes

    def row(number: Value) -> None:
        def step(columns: Sequence[Value], mask: Value | None) -> None:
            position = Position(number, columns[0], mask)
            store_vector(b, load_vector(b, source, position, width), target, position)

        sweep(b, zero(b), cols, cols_extent, width, step)

    each(b, rows, rows_extent, row, "copy")
