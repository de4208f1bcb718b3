"""Matrices that lie along their columns, copied into rows: squares of whole vectors, transposed in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pypto_dsl.codegen.llvm.builder import Builder, Type, Value
from pypto_dsl.codegen.llvm.indexing import View, address

Conversion = Callable[[Value], Value]


def turn(b: Builder, source: View, target: View, rows: Value, cols: Value, converted: Conversion = lambda value: value) -> None:
    """Copy a matrix whose rows are neighbours into one whose columns are, each element ``converted``; the last rows element by element.

    Whole squares are written: ``target`` has room behind its last column, for what may be anything.
    """
    width = min(b.level.float_lanes, b.level.vector_bits // (8 * max(Type(v.element).bytes for v in (source, target))))
    full = rows & -width
    last = cols - 1

    def square(row: Value, column: Value) -> None:
        lines = []
        for k in range(width):
            place = address(b, source, row, b.intrinsic("llvm.smin", column + k, last) if k else column)
            lines.append(converted(b.load(Type(source.element, width), place)))
        for k, line in enumerate(transposed(b, lines)):
            b.store(line, address(b, target, row + k if k else row, column))

    def single(row: Value, column: Value) -> None:
        element = b.load(Type(source.element), address(b, source, row, column))
        b.store(converted(element), address(b, target, row, column))

    def squares(column: Value, _: list[Value]) -> None:
        b.loop(0, full, width, lambda row, _: square(row, column), hint="square")

    def singles(row: Value, _: list[Value]) -> None:
        b.loop(0, cols, 1, lambda column, _: single(row, column), hint="element")

    b.loop(0, cols, width, squares, hint="columns")
    b.loop(full, rows, 1, singles, hint="last")


def transposed(b: Builder, lines: Sequence[Value]) -> list[Value]:
    """A square of vectors with rows and columns exchanged: as many perfect shuffles of the first half with the second as it takes."""
    count = len(lines)
    low, high = ([n for i in range(start, start + count // 2) for n in (i, count + i)] for start in (0, count // 2))
    every = list(lines)
    for _ in range(count.bit_length() - 1):
        pairs = zip(every[:count // 2], every[count // 2:], strict=True)
        every = [b.shuffle(x, y, order) for x, y in pairs for order in (low, high)]
    return every
