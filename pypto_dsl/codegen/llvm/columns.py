"""Reductions that give every lane a result of its own: down the rows of a Block, and along rows that lie along their columns.

In both, vectors of neighbouring lanes are read along memory and added, row after row, to accumulators that lie along them. What
differs is the order. Down the rows it is that of columns: blocks of 256 rows, one after the other. Along rows the lanes are rows, and the
columns that are added to all of them go to partial i mod 64 in blocks of 4096, as in a row of lanes.

A matrix that lies along its columns and is summed down its rows is read by squares, which are turned in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pypto_dsl.codegen.llvm import elements, sums
from pypto_dsl.codegen.llvm.builder import I64, Builder, Type, Value
from pypto_dsl.codegen.llvm.elements import memory_element
from pypto_dsl.codegen.llvm.indexing import View, zero
from pypto_dsl.codegen.llvm.lanes import Key, Lanes, Position, key
from pypto_dsl.codegen.llvm.loops import UNKNOWN, copy, sweep
from pypto_dsl.codegen.llvm.turning import line_starts, lines, square_side, transposed
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.summation import COLUMN_BLOCK, PARTIALS, ROW_BLOCK
from pypto_dsl.compiler.tile_ir import nodes as t

ROWS_TOGETHER = 4  # rows added per visit of an accumulator, in order: as many streams, and a quarter of its traffic
ROWS_FROM_MEMORY = 8  # the same where rows come from memory: the more streams, the more the processor has fetched by itself
# Columns read at the same time. Where they are a power of two apart, they meet in one set of the first-level cache, which has eight ways.
LINES_TOGETHER = 8
_AHEAD = 256  # bytes that a column is fetched ahead

ColumnStates = dict[str, "ColumnState"]
Target = tuple[t.Reduce, "ColumnState"]
Starts = list[list[Value]]  # by matrix, where columns begin


@dataclass(frozen=True)
class Order:
    """Rows are taken in blocks, and inside one row i goes to partial i mod ``partials``."""

    block: int
    partials: int


DOWN = Order(COLUMN_BLOCK, 1)
ALONG = Order(ROW_BLOCK, PARTIALS)


@dataclass(frozen=True)
class ColumnState:
    """A reduction between Init and Finish: the values of the last block, the merged ones before it, and the number of blocks.

    ``live`` is how many columns are worked on, rounded up to whole vectors; it is known from Init on. Further partials lie behind the
    values, ``pitch`` elements from one to the next.
    """

    kind: t.ReduceKind
    dtype: DType
    values: Value
    levels: Value
    count: Value
    pitch: Value
    live: Value | None = None

    def begun(self, b: Builder, columns: Value) -> ColumnState:
        """The state of so many columns before any row."""
        width = b.level.float_lanes
        b.store(b.constant(I64, 0), self.count)
        return replace(self, live=(columns + (width - 1)) & -width)

    def partial(self, b: Builder, number: Value) -> ColumnState:
        """The state whose values are one of the partials."""
        return replace(self, values=b.offset(self.values, number * self.pitch, memory_element(self.dtype)))

    def fill(self, b: Builder) -> None:
        """Let the values be those of no row."""
        start = b.constant(self._lanes(b), sums.identity(self.kind, self.dtype))
        self._each_vector(b, lambda place: b.store(start, place(self.values)))

    def next_block(self, b: Builder) -> None:
        """Merge the values of a block that ended."""
        count = b.load(I64, self.count)
        b.when(b.compare("ne", count, 0), lambda: self.push(b, count), "push")
        b.store(count + 1, self.count)

    def push(self, b: Builder, count: Value) -> None:
        """Merge the values, those of block ``count`` - 1, with the blocks before."""
        push = sums.push_function(b.module, self.kind, self.dtype)
        b.call_void(push, self.levels, self.pitch, count - 1, self.values, self._columns)

    def halve(self, b: Builder, partials: int) -> None:
        """Let the values be those of all partials: i with i + 32, then with i + 16, and so on."""

        def merged(place: Callable[[Value], Value], number: int, distance: int) -> Value:
            if distance == partials:
                return b.load(self._lanes(b), place(self.partial(b, b.constant(I64, number)).values))
            parts = (merged(place, n, 2 * distance) for n in (number, number + distance))
            return sums.combine(b, self.kind, self.dtype, *parts)

        self._each_vector(b, lambda place: b.store(merged(place, 0, 1), place(self.values)))

    def finish(self, b: Builder) -> None:
        """Let the values be those of all blocks: of one they are already."""
        if self.kind not in sums.ORDERED:
            if self.dtype.is_float:
                self._each_vector(b, lambda place: self._settle(b, place(self.values)))
            return
        count = b.load(I64, self.count)

        def several() -> None:
            self.push(b, count)
            b.call_void(sums.finish_function(b.module, self.kind, self.dtype), self.levels, self.pitch, count, self.values, self._columns)

        b.when(b.compare("sgt", count, 1), several, "several")
        b.when(b.compare("eq", count, 0), lambda: self.fill(b), "none")

    def _settle(self, b: Builder, place: Value) -> None:
        b.store(sums.one_nan(b, b.load(self._lanes(b), place)), place)

    def view(self, b: Builder) -> View:
        """The values as a row."""
        return View(self.values, self.dtype, zero(b), b.constant(I64, 1))

    def _lanes(self, b: Builder) -> Type:
        return Type(memory_element(self.dtype), b.level.float_lanes)

    def _each_vector(self, b: Builder, body: Callable[[Callable[[Value], Value]], None]) -> None:
        """``body`` with the address of each vector of columns behind a pointer."""
        lanes = self._lanes(b)
        b.loop(0, self._columns, lanes.lanes, lambda j, _: body(lambda pointer: b.offset(pointer, j, lanes.element)))

    @property
    def _columns(self) -> Value:
        if self.live is None:
            raise CompilerBug("codegen/llvm", "a reduction down the rows is used before its Init")
        return self.live


def reduce_along(b: Builder, lanes: Lanes, columns: Value, rows: Value, extent: Index, targets: Sequence[Target]) -> None:
    """Reduce all ``columns`` of ``rows`` rows, over which the lanes run, to the targets' buffers."""
    begun = [(reduction, state.begun(b, rows)) for reduction, state in targets]
    reduce_rows(b, lanes, columns, rows, extent, begun, 1 if lanes.heavy() else ROWS_FROM_MEMORY, ALONG)
    for reduction, state in begun:
        state.finish(b)
        target = lanes.context.views[reduction.target.name].turned()
        copy(b, state.view(b), target, b.constant(I64, 1), rows, as_index(1), UNKNOWN)


def reduce_rows(b: Builder, lanes: Lanes, rows: Value, cols: Value, extent: Index, targets: Sequence[Target], together: int,
                order: Order = DOWN) -> None:
    """Add rows to the states in ``order``; memory is read along ``together`` of them at a time."""
    each_row = [lanes, *(lanes.beside() for _ in range(together - 1))]  # per-row values of all rows that are in work at the same time

    def add(first: Value, last: Value, stride: int, targets: Sequence[Target]) -> None:
        count = last - first if stride == 1 else (last - first + (stride - 1)) >> (stride.bit_length() - 1)
        full = first + (count & -together) * stride
        b.loop(first, full, together * stride, lambda r, _: _add_rows(b, each_row, r, stride, cols, targets), hint="rows")
        b.loop(full, last, stride, lambda r, _: _add_rows(b, each_row[:1], r, stride, cols, targets), hint="rows")

    def block(first: Value, last: Value) -> None:
        if order.partials == 1:
            add(first, last, 1, targets)
            return

        def partial(number: Value) -> None:
            own = [(reduction, state.partial(b, number)) for reduction, state in targets]
            for _, state in own:
                state.fill(b)
            add(first + number, last, order.partials, own)

        b.loop(0, order.partials, 1, lambda number, _: partial(number), hint="partial")
        for _, state in targets:
            state.halve(b, order.partials)

    _each_block(b, rows, extent, targets, order, block)


def _each_block(b: Builder, rows: Value, extent: Index, targets: Sequence[Target], order: Order,
                body: Callable[[Value, Value], None]) -> None:
    """``body`` with the first and behind the last row of every block, sums beginning anew in each."""
    ordered = [state for reduction, state in targets if reduction.kind in sums.ORDERED]

    def block(first: Value, last: Value) -> None:
        for state in ordered:
            state.next_block(b)
            state.fill(b)
        body(first, last)

    if not ordered or (extent.constant is not None and extent.constant <= order.block):
        block(zero(b), rows)
        return
    b.loop(0, rows, order.block, lambda r, _: block(r, b.intrinsic("llvm.smin", r + order.block, rows)), hint="block")


def _add_rows(b: Builder, each_row: Sequence[Lanes], first: Value, stride: int, cols: Value, targets: Sequence[Target]) -> None:
    """Add rows that are ``stride`` apart, in order, to the accumulators of all columns."""
    width = b.level.float_lanes
    numbers = [first + k * stride if k else first for k in range(len(each_row))]
    for lanes, number in zip(each_row, numbers, strict=True):
        lanes.before_row(number)

    def step(columns: Sequence[Value], mask: Value | None) -> None:
        types = [Type(memory_element(state.dtype), width) for _, state in targets]
        places = [[b.offset(state.values, column, ty.element) for (_, state), ty in zip(targets, types, strict=True)] for column in columns]
        accumulators = [[b.load(ty, place) for ty, place in zip(types, mine, strict=True)] for mine in places]
        rows = [lanes.written(number, columns, mask) for lanes, number in zip(each_row, numbers, strict=True)]
        for at, mine in enumerate(accumulators):
            for k, (reduction, state) in enumerate(targets):
                mine[k] = sums.combined(b, state.kind, state.dtype, mine[k], [_stored(b, row[at], reduction, state) for row in rows])
        for mine, sums_here in zip(places, accumulators, strict=True):
            for place, value in zip(mine, sums_here, strict=True):
                b.store(value, place)

    sweep(b, zero(b), cols, UNKNOWN, width, step, each_row[0].together())


def _stored(b: Builder, values: Mapping[Key, Value], reduction: t.Reduce, state: ColumnState) -> Value:
    """What a reduction adds, as its accumulators are stored."""
    return elements.to_memory(b, values[key(reduction.value)], state.dtype)


# ---- matrices that lie along their columns, summed down their rows ------------------------------------------------------------------


def reduce_squares(b: Builder, lanes: Lanes, lying: Sequence[t.ReadBuffer], rows: Value, cols: Value, extent: Index,
                   targets: Sequence[Target]) -> None:
    """Add rows to the states; ``lying`` operands lie along their columns. Accumulators stay in registers for a block of rows."""
    views = [lanes.context.views[o.buffer.name] for o in lying]
    side = min(LINES_TOGETHER, *(square_side(b, view) for view in views))
    with b.vectors_of(32 * side):
        narrow = Lanes(b, lanes.block, lanes.context)
        narrow.before_loops()
        _reduce_squares(b, narrow, lying, views, side, rows, cols, extent, targets)


def _reduce_squares(b: Builder, lanes: Lanes, lying: Sequence[t.ReadBuffer], views: Sequence[View], side: int, rows: Value, cols: Value,
                    extent: Index, targets: Sequence[Target]) -> None:
    """The squares have ``side`` rows and columns, as many as vectors have lanes."""
    each_row = [lanes, *(lanes.beside() for _ in range(side - 1))]
    types = [Type(memory_element(state.dtype), side) for _, state in targets]

    def add(row: Value, before: Sequence[Value], column: Value, mask: Value | None, starts: Starts, stop: Value | None = None,
            ) -> list[Value]:
        """The rows of one square, those below ``stop`` if there may be others."""
        live = None if stop is None else b.lane_mask(row, stop, side)
        squares = [transposed(b, lines(b, view, line, row, live, _AHEAD)) for view, line in zip(views, starts, strict=True)]
        every: list[Mapping[Key, Value]] = []
        for k, own in enumerate(each_row):
            number = row + k if k else row
            number = number if stop is None else b.intrinsic("llvm.smin", number, stop - 1)
            own.before_row(number)
            known = {key(o): elements.from_memory(b, square[k], o.buffer.dtype) for o, square in zip(lying, squares, strict=True)}
            every += own.at(Position(number, column, mask), known=known)
        return [_added(b, accumulator, [_stored(b, values, reduction, state) for values in every], state,
                       None if stop is None else stop - row) for accumulator, (reduction, state) in zip(before, targets, strict=True)]

    def block(first: Value, last: Value) -> None:
        full = first + ((last - first) & -side)

        def step(columns: Sequence[Value], mask: Value | None) -> None:
            (column,) = columns
            starts = [line_starts(b, view, column, cols, side) for view in views]
            places = [b.offset(state.values, column, type.element) for (_, state), type in zip(targets, types, strict=True)]
            before = [b.load(type, place) for type, place in zip(types, places, strict=True)]
            if mask is not None:  # rare enough for one form of the code
                after = b.loop(first, last, side, lambda r, carried: add(r, carried, column, mask, starts, last), before, "square")
            else:
                after = b.loop(first, full, side, lambda r, carried: add(r, carried, column, None, starts), before, "square")
                if extent.constant is None or extent.constant % side:
                    after = b.chosen(b.compare("slt", full, last), lambda: add(full, after, column, None, starts, last), after, "rest")
            for place, value in zip(places, after, strict=True):
                b.store(value, place)

        sweep(b, zero(b), cols, UNKNOWN, side, step)

    _each_block(b, rows, extent, targets, DOWN, block)


def _added(b: Builder, before: Value, values: list[Value], state: ColumnState, count: Value | None) -> Value:
    """An accumulator with values, or with the first ``count`` of them."""
    if count is None:
        return sums.combined(b, state.kind, state.dtype, before, values)
    for number, value in enumerate(values):
        before = b.select(b.compare("sgt", count, number), sums.combine(b, state.kind, state.dtype, before, value), before)
    return before
