"""Matrices that lie along their columns: squares of them transposed in registers, and their copies into rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pypto_dsl.codegen.llvm.builder import Builder, Type, Value
from pypto_dsl.codegen.llvm.indexing import View, address, zero
from pypto_dsl.codegen.llvm.loops import UNKNOWN, sweep

Conversion = Callable[[Value], Value]


def turn(b: Builder, source: View, target: View, rows: Value, cols: Value, converted: Conversion = lambda value: value,
         exact: bool = False) -> None:
    """Copy a matrix whose rows are neighbours into one whose columns are, each element ``converted``; the last rows element by element.

    Whole squares are written: ``target`` has room behind its last column, for what may be anything, unless it is ``exact``.
    """
    width = min(square_side(b, source), square_side(b, target))
    full = rows & -width

    def squares(column: Value, mask: Value | None) -> None:
        starts = line_starts(b, source, column, cols, width)

        def square(row: Value, _: list[Value]) -> None:
            for k, line in enumerate(transposed(b, [converted(line) for line in lines(b, source, starts, row)])):
                place = address(b, target, row + k if k else row, column)
                b.store(line, place) if mask is None else b.masked_store(line, place, mask)

        b.loop(0, full, width, square, hint="square")

    def single(row: Value, column: Value) -> None:
        element = b.load(Type(source.element), address(b, source, row, column))
        b.store(converted(element), address(b, target, row, column))

    def singles(row: Value, _: list[Value]) -> None:
        b.loop(0, cols, 1, lambda column, _: single(row, column), hint="element")

    if exact:
        sweep(b, zero(b), cols, UNKNOWN, width, lambda columns, mask: squares(columns[0], mask))
    else:
        b.loop(0, cols, width, lambda column, _: squares(column, None), hint="columns")
    b.loop(full, rows, 1, singles, hint="last")


def square_side(b: Builder, view: View) -> int:
    """How many rows and columns of a matrix are transposed at once."""
    return min(b.level.float_lanes, b.level.vector_bits // (8 * Type(view.element).bytes))


def line_starts(b: Builder, view: View, column: Value, cols: Value, count: int) -> list[Value]:
    """The first elements of ``count`` columns; from the last one of ``cols`` on they are that one."""
    columns = [b.intrinsic("llvm.smin", column + k if k else column, cols - 1) for k in range(count)]
    return [address(b, view, zero(b), each) for each in columns]


def lines(b: Builder, view: View, starts: Sequence[Value], row: Value, mask: Value | None = None, ahead: int = 0) -> list[Value]:
    """As many rows of the columns at ``starts`` as there are columns, from ``row`` on, those under the mask. What comes ``ahead`` bytes
    later is asked for."""
    type = Type(view.element, len(starts))
    places = [b.offset(start, row, view.element) for start in starts]
    for place in places if ahead else ():
        b.prefetch(b.offset(place, ahead, "i8"))
    return [b.load(type, place) if mask is None else b.masked_load(type, place, mask, b.constant(type, 1)) for place in places]


def transposed(b: Builder, lines: Sequence[Value]) -> list[Value]:
    """A square of vectors with rows and columns exchanged: as many perfect shuffles of the first half with the second as it takes."""
    count = len(lines)
    low, high = ([n for i in range(start, start + count // 2) for n in (i, count + i)] for start in (0, count // 2))
    every = list(lines)
    for _ in range(count.bit_length() - 1):
        pairs = zip(every[:count // 2], every[count // 2:], strict=True)
        every = [b.shuffle(x, y, order) for x, y in pairs for order in (low, high)]
    return every
