"""The vector loops of a Block: rows, then vectors of columns with values in registers, masked tails, reductions in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import and_

from pypto_dsl.codegen.llvm import elements, intrinsics, sums
from pypto_dsl.codegen.llvm.along import TOGETHER, reduce_rows
from pypto_dsl.codegen.llvm.bfloat import rounded_once, shortened
from pypto_dsl.codegen.llvm.builder import I64, Builder, Type, Value
from pypto_dsl.codegen.llvm.elements import memory_element
from pypto_dsl.codegen.llvm.indexing import View, address, evaluate, zero
from pypto_dsl.codegen.llvm.lanes import Context, Key, Lanes, Position, key, load_vector, store_vector
from pypto_dsl.compiler import dtypes
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import Index, as_index, var
from pypto_dsl.compiler.summation import COLUMN_BLOCK, PARTIALS, ROW_BLOCK
from pypto_dsl.compiler.tile_ir import nodes as t

ColumnStates = dict[str, "ColumnState"]
UNKNOWN = var("unknown")  # an extent that is not known when code is written


@dataclass(frozen=True)
class ColumnState:
    """A reduction down the rows between Init and Finish: the values of the last block, the merged ones before it, and the number of blocks.

    ``live`` is how many columns are worked on, rounded up to whole vectors; it is known from Init on.
    """

    kind: t.ReduceKind
    dtype: DType
    values: Value
    levels: Value
    count: Value
    pitch: Value
    live: Value | None = None

    def fill(self, b: Builder) -> None:
        """Let the values be those of no row."""
        type = Type(memory_element(self.dtype), b.level.float_lanes)
        start = b.constant(type, sums.identity(self.kind, self.dtype))
        b.loop(0, self._columns, type.lanes, lambda j, _: b.store(start, b.offset(self.values, j, type.element)))

    def push(self, b: Builder, count: Value) -> None:
        """Merge the values, those of block ``count`` - 1, with the blocks before."""
        push = sums.push_function(b.module, self.kind, self.dtype)
        b.call_void(push, self.levels, self.pitch, count - 1, self.values, self._columns)

    def finish(self, b: Builder) -> None:
        """Let the values be those of all blocks: of one they are already."""
        count = b.load(I64, self.count)

        def several() -> None:
            self.push(b, count)
            b.call_void(sums.finish_function(b.module, self.kind, self.dtype), self.levels, self.pitch, count, self.values, self._columns)

        b.when(b.compare("sgt", count, 1), several, "several")
        b.when(b.compare("eq", count, 0), lambda: self.fill(b), "none")

    @property
    def _columns(self) -> Value:
        if self.live is None:
            raise CompilerBug("codegen/llvm", "a reduction down the rows is used before its Init")
        return self.live


def emit_block(b: Builder, block: t.Block, context: Context, columns: ColumnStates) -> None:
    """Write the loops of one Block. ``columns`` holds the states of its reductions down the rows."""
    if block.text:
        b.comment(block.text + (f" ({block.span})" if block.span else ""))
    block = rounded_once(shortened(block, intrinsics.short_at(b.level)))
    turned = not block.reduces and block.cols.constant == 1 and block.rows.constant != 1
    context = replace(context, turned=turned)
    rows, cols = (block.cols, block.rows) if turned else (block.rows, block.cols)
    lanes = Lanes(b, block, context)
    moves = context.alone and lanes.moves()
    with b.vectors_of(b.level.tuning.streaming_bits if moves else b.level.vector_bits):
        _emit(b, lanes, rows, cols, columns)


def _emit(b: Builder, lanes: Lanes, rows: Index, cols: Index, columns: ColumnStates) -> None:
    """The loops over ``rows`` and ``cols``, which are turned where the lanes are."""
    block, context = lanes.block, lanes.context
    lanes.before_loops()
    row_count, column_count = evaluate(b, rows, context.scope), evaluate(b, cols, context.scope)
    down = [r for r in block.reduces if r.axis == 0]
    if down and len(down) != len(block.reduces):
        raise CompilerBug("codegen/llvm", "a Block reduces along rows and along columns at once")

    def reduced_columns(large: bool) -> None:
        together = 1 if lanes.heavy() else _ROWS_FROM_MEMORY if large else _ROWS_TOGETHER
        _columns(b, lanes, row_count, column_count, rows, [(r, columns[r.target.name]) for r in down], together)

    if down:
        _where(b, context.large, reduced_columns)
        return
    if block.reduces and context.along:
        across = Lanes(b, block, replace(context, turned=True))
        across.before_loops()

        def rows_together(first: Sequence[Value], mask: Value | None) -> None:
            reduce_rows(b, across, first, mask, column_count)

        sweep(b, zero(b), row_count, rows, b.level.float_lanes, rows_together, TOGETHER)
        return

    def row(number: Value) -> None:
        lanes.before_row(number)
        if not block.reduces:
            _row(b, lanes, number, column_count, cols)
        else:
            _where(b, context.large if lanes.fetched() else None, lambda large: reduced(number, large))

    def reduced(number: Value, large: bool) -> None:
        lanes.fetches = large
        _reduced_row(b, lanes, number, column_count, cols, context)

    each(b, row_count, rows, row, "row")


def _where(b: Builder, condition: Value | None, body: Callable[[bool], None]) -> None:
    """``body`` in two versions, for when the condition holds and for when not; where there is none, it does not."""
    if condition is None:
        body(False)
    else:
        b.either(condition, lambda: body(True), lambda: body(False), "large")


def each(b: Builder, count: Value, extent: Index, body: Callable[[Value], None], hint: str) -> None:
    """``for i in range(count)``, straight-line when the count is known to be 1."""
    if extent.constant == 1:
        body(zero(b))
        return
    b.loop(0, count, 1, lambda i, _: body(i), hint=hint)


def _row(b: Builder, lanes: Lanes, row: Value, count: Value, extent: Index) -> None:
    width = b.level.float_lanes
    paired = lanes.paired()
    together = max(lanes.together(), 2 if paired or lanes.context.ahead else 1)
    short = extent.constant is not None and extent.constant < _SHORT_ROW

    def step(columns: Sequence[Value], mask: Value | None, past_caches: bool = False) -> None:
        for view in lanes.context.ahead if mask is None and not short else ():
            _fetch(b, view, row, columns)
        _written(lanes, row, columns, mask, past_caches)

    output = lanes.single_output()
    streaming = lanes.context.streaming
    if streaming is None or output is None or (extent.constant is not None and extent.constant < _LONG_ROW):
        sweep(b, zero(b), count, extent, width, step, together)
        return

    def aligned() -> list[Value]:
        """Write up to the first column whose address is a multiple of the vector."""
        size = output.dtype.itemsize
        start = b.convert("ptrtoint", address(b, output, row, zero(b)), "i64")
        unit = 2 * width if output.dtype is dtypes.BF16 else width
        head = b.intrinsic("llvm.smin", ((-start).lshr(size.bit_length() - 1)) & (unit - 1), count)
        if unit > width:
            b.loop(0, head, width, lambda i, _: step([i], b.lane_mask(i, head, width)), hint="head")
        else:
            b.when(b.compare("ne", head, 0), lambda: step([zero(b)], b.lane_mask(0, head, width)), "head")
        return [head]

    def vectors(past_caches: bool) -> None:
        b.loop(head, full, turn, lambda i, _: step(_neighbours(i, width, together), None, past_caches), hint="vector")

    turn = width * together
    (head,) = b.chosen(streaming, aligned, [zero(b)], "aligned")
    full = head + ((count - head) & -turn)
    _where(b, streaming, vectors)
    b.loop(full, count, width, lambda i, _: step([i], b.lane_mask(i, count, width)), hint="tail")


_SHORT_ROW = 256  # elements: shorter rows are not fetched ahead
_LONG_ROW = 1024  # elements from which a row is worth aligning its stores


Step = Callable[[Sequence[Value], Value | None], None]


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
    b.loop(start, full, turn, lambda i, _: step(_neighbours(i, width, together), None), hint="vector", at_least_once=known is not None)
    if full is stop:
        return
    if known is None or known % turn > width:
        b.loop(full, stop, width, lambda i, _: step([i], b.lane_mask(i, stop, width)), hint="tail", at_least_once=known is not None)
        return
    step([full], b.lane_mask(full, stop, width))


def _written(lanes: Lanes, row: Value, columns: Sequence[Value], mask: Value | None,
             past_caches: bool = False) -> list[Mapping[Key, Value]]:
    """Values of the vectors at ``columns``, with the outputs stored."""
    if mask is None and len(columns) % 2 == 0 and lanes.paired():
        positions = [Position(row, first, None, half) for first in columns[::2] for half in (0, 1)]
        every = lanes.at(*positions)
        for k in range(0, len(every), 2):
            lanes.write_pair(every[k], every[k + 1], positions[k], past_caches)
        return every
    positions = [Position(row, column, mask) for column in columns]
    every = lanes.at(*positions)
    together = 2 if mask is None and len(columns) % 2 == 0 else 1
    for k in range(0, len(every), together):
        lanes.write(every[k:k + together], positions[k], past_caches)
    return every


def _fetch(b: Builder, view: View, row: Value, columns: Sequence[Value]) -> None:
    """Ask for the cache lines that hold the vectors at ``columns``."""
    step = max(1, CACHE_LINE // (b.level.float_lanes * view.dtype.itemsize))
    for column in columns[::step]:
        b.prefetch(address(b, view, row, column))


def _neighbours(first: Value, width: int, count: int) -> list[Value]:
    """The first columns of vectors side by side."""
    return [first, *(first + k * width for k in range(1, count))]


# ---- reductions along a row ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RowState:
    """One reduction along a row. Memory for it is made where it is asked for: 64 partials and, over several blocks, what is merged: the
    binary counter of ordered kinds, else the result so far."""

    b: Builder
    reduce: t.Reduce
    dtype: DType

    @property
    def kind(self) -> t.ReduceKind:
        return self.reduce.kind

    @property
    def apart(self) -> bool:
        """Whether NaN is kept apart, in masks beside the partials in registers."""
        return sums.keeps_nan_apart(self.b, self.kind, self.dtype)

    @cached_property
    def partials(self) -> Value:
        return self.b.alloca(f"[{PARTIALS} x {memory_element(self.dtype)}]")

    @cached_property
    def merged(self) -> Value:
        type = Type(memory_element(self.dtype))
        return self.b.alloca(f"[{sums.LEVELS + 1} x {type}]" if self.kind in sums.ORDERED else str(type), type.bytes)


def _reduced_row(b: Builder, lanes: Lanes, row: Value, count: Value, extent: Index, context: Context) -> None:
    ordered = any(r.kind in sums.ORDERED for r in lanes.block.reduces)
    single = not ordered or (extent.constant is not None and extent.constant <= ROW_BLOCK)
    states = [_RowState(b, r, lanes.dtype(r.value)) for r in lanes.block.reduces]
    if single:
        results = _row_block(b, lanes, row, zero(b), count, extent, states)
    else:
        results = _blocks(b, lanes, row, count, states)
    for state, result in zip(states, results, strict=True):
        view = context.views[state.reduce.target.name]
        b.store(elements.to_memory(b, _register(b, result, state.dtype), state.dtype), address(b, view, row, zero(b)))


def _register(b: Builder, value: Value, dtype: DType) -> Value:
    return elements.from_memory(b, value, dtype)


def _blocks(b: Builder, lanes: Lanes, row: Value, count: Value, states: Sequence[_RowState]) -> list[Value]:
    """The row in blocks of 4096, merged pairwise; a single block is the result."""
    for s in states:
        b.store(b.constant(Type(memory_element(s.dtype)), sums.identity(s.kind, s.dtype)), s.merged)

    def block(start: Value, _: list[Value]) -> None:
        stop = b.intrinsic("llvm.smin", start + ROW_BLOCK, count)
        for s, result in zip(states, _row_block(b, lanes, row, start, stop, UNKNOWN, states), strict=True):
            if s.kind in sums.ORDERED:
                sums.add_block(b, s.kind, s.dtype, s.merged, start.lshr(ROW_BLOCK.bit_length() - 1), result)
            else:
                b.store(sums.combine(b, s.kind, s.dtype, b.load(result.type, s.merged), result), s.merged)

    b.loop(0, count, ROW_BLOCK, block, hint="block")
    blocks = (count + (ROW_BLOCK - 1)).lshr(ROW_BLOCK.bit_length() - 1)
    return [sums.all_blocks(b, s.kind, s.dtype, s.merged, blocks) if s.kind in sums.ORDERED
            else b.load(Type(memory_element(s.dtype)), s.merged) for s in states]


def _tree_of(b: Builder, s: _RowState) -> Value:
    type = Type(memory_element(s.dtype), b.level.float_lanes)
    vectors = [b.load(type, b.offset(s.partials, i, type.element)) for i in range(0, PARTIALS, type.lanes)]
    return sums.tree(b, s.kind, s.dtype, vectors)


def _row_block(b: Builder, lanes: Lanes, row: Value, start: Value, stop: Value, extent: Index, states: Sequence[_RowState]) -> list[Value]:
    """The reductions of the columns [start, stop) of a row; ``start`` is a multiple of 64, and there are at most 4096 columns for
    kinds with an order."""
    width = b.level.float_lanes
    types = [Type(memory_element(s.dtype), width) for s in states]
    fresh = [b.constant(ty, sums.identity(s.kind, s.dtype)) for ty, s in zip(types, states, strict=True)]
    known = extent.constant
    if known is not None and known <= _STRAIGHT * width:
        return _straight(b, lanes, row, start, stop, known, states, fresh)
    after = start
    if (lanes.heavy() and lanes.together() < PARTIALS // width) or (known is not None and known < PARTIALS):
        for s, ty, value in zip(states, types, fresh, strict=True):
            for i in range(0, PARTIALS, width):
                b.store(value, b.offset(s.partials, i, ty.element))
    else:
        after, carried = _unrolled(b, lanes, row, start, stop, extent, states, fresh)
        parts = PARTIALS // width
        if after is not stop and parts <= _PARTS_OF_TAIL:
            carried = _tail(b, lanes, row, after, stop, extent, states, carried)
        partials = carried[:len(states) * parts]
        for s, masks in zip(_apart(states), _pieces(carried[len(partials):], parts // 2), strict=True):
            first = states.index(s) * parts
            partials[first] = b.select(reduce(and_, masks), partials[first], float("nan"))
        if after is stop or parts <= _PARTS_OF_TAIL:
            return [sums.tree(b, s.kind, s.dtype, partials[k * parts:(k + 1) * parts]) for k, s in enumerate(states)]
        for k, s in enumerate(states):
            for part, value in enumerate(partials[k * parts:(k + 1) * parts]):
                b.store(value, b.offset(s.partials, part * width, value.type.element))

    def step(columns: Sequence[Value], mask: Value | None) -> None:
        for column, values in zip(columns, _written(lanes, row, columns, mask), strict=True):
            for s, ty in zip(states, types, strict=True):
                place = b.offset(s.partials, column & (PARTIALS - 1), ty.element)
                before = b.load(ty, place)
                value = elements.to_memory(b, values[key(s.reduce.value)], s.dtype)
                merged = sums.combine(b, s.kind, s.dtype, before, value)
                b.store(merged if mask is None else b.select(mask, merged, before), place)

    rest = UNKNOWN if known is None else as_index(known if after is start else known % PARTIALS)
    sweep(b, after, stop, rest, width, step, lanes.together() if after is start else 1)
    return [_tree_of(b, s) for s in states]


CACHE_LINE = 64  # bytes
_FAR = 4096  # elements: as far ahead as memory is fetched
_STRAIGHT = 8  # vectors: rows of up to so many are written without a loop
_PARTS_OF_TAIL = 4  # masked vectors: behind the loop of 64 columns up to so many are written without a loop


def _apart(states: Sequence[_RowState]) -> list[_RowState]:
    return [s for s in states if s.apart]


def _pieces(values: Sequence[Value], length: int) -> list[list[Value]]:
    return [list(values[k:k + length]) for k in range(0, len(values), length)]


def _tail(b: Builder, lanes: Lanes, row: Value, start: Value, stop: Value, extent: Index, states: Sequence[_RowState],
          carried: Sequence[Value]) -> list[Value]:
    """Add the last columns of a row, fewer than 64, to what `_unrolled` carries."""
    width = b.level.float_lanes
    parts = PARTIALS // width
    known = extent.constant

    def value_of(s: _RowState, values: Mapping[Key, Value]) -> Value:
        return elements.to_memory(b, values[key(s.reduce.value)], s.dtype)

    def merged(s: _RowState, before: Value, value: Value, mask: Value | None) -> Value:
        if s.apart:  # where the mask does not hold, the value is one that changes nothing
            return sums.ordered(b, s.kind, s.dtype, before, value)
        after = sums.combine(b, s.kind, s.dtype, before, value)
        return after if mask is None else b.select(mask, after, before)

    def added(groups: list[list[Value]], every: Sequence[Mapping[Key, Value]], masks: Sequence[Value | None]) -> list[Value]:
        """``groups`` are the partials of each state, then the masks of those that keep NaN apart; one partial a vector changes."""
        orders = iter(groups[len(states):])
        for s, partials in zip(states, groups, strict=False):
            values = [value_of(s, v) for v in every]
            if s.apart:
                start = sums.identity(s.kind, s.dtype)
                values = [v if m is None else b.select(m, v, start) for v, m in zip(values, masks, strict=True)]
                order = next(orders)
                pairs = [(values[k], values[min(k + 1, len(values) - 1)]) for k in range(0, len(values), 2)]
                order[:len(pairs)] = sums.still_ordered(b, order[:len(pairs)], [v for pair in pairs for v in pair])
            for part, (value, mask) in enumerate(zip(values, masks, strict=True)):
                partials[part] = merged(s, partials[part], value, mask)
        return [v for group in groups for v in group]

    def grouped(values: Sequence[Value]) -> list[list[Value]]:
        split = len(states) * parts
        return [*_pieces(values[:split], parts), *_pieces(values[split:], parts // 2)]

    def turn(column: Value, values: list[Value]) -> list[Value]:
        """The first partial of each state goes to the end when it has its vector: the loop is one vector long."""
        mask = b.lane_mask(column, stop, width)
        after = grouped(added(grouped(values), _written(lanes, row, [column], mask), [mask]))
        for partials in after[:len(states)]:
            partials.append(partials.pop(0))
        return [v for group in after for v in group]

    def straight(columns: int, exact: bool) -> list[Value]:
        count = -(-columns // width)
        places = _neighbours(start, width, count)
        whole = columns // width if exact else 0
        masks = [None] * whole + (b.lane_masks(start, stop, width, count) if not exact else
                                  [b.lane_mask(places[-1], stop, width)] if whole < count else [])
        written = [values for place, mask in zip(places, masks, strict=True) for values in _written(lanes, row, [place], mask)]
        return added(grouped(carried), written, masks)

    def rest() -> list[Value]:
        if not lanes.heavy():
            return straight(PARTIALS, exact=False)
        return b.loop(start, start + PARTIALS, width, turn, carried, "rest", at_least_once=True)

    if known is not None:
        return straight(known % PARTIALS, exact=True)
    return b.chosen(b.compare("slt", start, stop), rest, carried, "rest")


def _straight(b: Builder, lanes: Lanes, row: Value, start: Value, stop: Value, known: int, states: Sequence[_RowState],
              fresh: Sequence[Value]) -> list[Value]:
    """A short row without loops, partials in registers."""
    width = b.level.float_lanes
    parts = PARTIALS // width
    partials = [[value] * parts for value in fresh]
    whole = [start + at if at else start for at in range(0, known - width + 1, width)]
    together = lanes.together()
    everything = [v for k in range(0, len(whole), together) for v in _written(lanes, row, whole[k:k + together], None)]
    masks: list[Value | None] = [None] * len(everything)
    if known % width:
        column = start + known // width * width if whole else start
        masks.append(b.lane_mask(column, stop, width))
        everything += _written(lanes, row, [column], masks[-1])
    for number, (values, mask) in enumerate(zip(everything, masks, strict=True)):
        for mine, s in zip(partials, states, strict=True):
            part = number % parts
            merged = sums.combine(b, s.kind, s.dtype, mine[part], elements.to_memory(b, values[key(s.reduce.value)], s.dtype))
            mine[part] = merged if mask is None else b.select(mask, merged, mine[part])
    return [sums.tree(b, s.kind, s.dtype, mine) for mine, s in zip(partials, states, strict=True)]


def _unrolled(b: Builder, lanes: Lanes, row: Value, start: Value, stop: Value, extent: Index, states: Sequence[_RowState],
              fresh: Sequence[Value]) -> tuple[Value, list[Value]]:
    """64 columns a turn with the partials in registers; returns the first column that is left, and what is carried: the partials, and
    for each state that keeps NaN apart a mask per two of them, which holds where there was none."""
    width = b.level.float_lanes
    known = extent.constant
    full = stop if known is not None and known % PARTIALS == 0 else start + ((stop - start) & -PARTIALS)
    parts = PARTIALS // width

    apart, pairs = _apart(states), parts // 2

    # the next row, or what is farther on in a long one: processors do not look beyond a page
    fetched = [(view, b.intrinsic("llvm.smin", view.row_stride, _FAR)) for view in (lanes.fetched() if lanes.fetches else ())]

    def turn(column: Value, carried: list[Value]) -> list[Value]:
        result: list[Value] = list(carried)
        for view, distance in fetched:
            ahead = column + distance
            _fetch(b, view, row, [ahead + k for k in range(0, PARTIALS, width)])
        every = _written(lanes, row, _neighbours(column, width, parts), None)
        for k, s in enumerate(states):
            values = [elements.to_memory(b, v[key(s.reduce.value)], s.dtype) for v in every]
            step = sums.ordered if s in apart else sums.combine
            for part, value in enumerate(values):
                result[k * parts + part] = step(b, s.kind, s.dtype, carried[k * parts + part], value)
            if s in apart:
                first = len(states) * parts + apart.index(s) * pairs
                result[first:first + pairs] = sums.still_ordered(b, carried[first:first + pairs], values)
        return result

    carried = [value for value in fresh for _ in range(parts)] + [b.constant(Type("i1", width), 1) for _ in apart for _ in range(pairs)]
    return full, b.loop(start, full, PARTIALS, turn, carried, "sum", at_least_once=known is not None)


# ---- reductions down the rows -----------------------------------------------------------------------------------------------

_ROWS_TOGETHER = 4  # rows added per visit of an accumulator, in order: as many streams, and a quarter of its traffic
_ROWS_FROM_MEMORY = 8  # the same where rows come from memory: the more streams, the more the processor has fetched by itself


def _columns(b: Builder, lanes: Lanes, rows: Value, cols: Value, extent: Index, targets: Sequence[tuple[t.Reduce, ColumnState]],
             together: int) -> None:
    """Add the Block's rows to the column states, in blocks of 256 rows; memory is read along ``together`` rows at a time."""
    ordered = [state for reduce, state in targets if reduce.kind in sums.ORDERED]
    # one set of per-row values for each row that is in work at the same time
    each_row = [lanes, *(Lanes(b, lanes.block, lanes.context) for _ in range(together - 1))]
    for other in each_row[1:]:
        other.before_loops()

    def block(first: Value, last: Value) -> None:
        counts = [b.load(I64, state.count) for state in ordered]
        for state, count in zip(ordered, counts, strict=True):
            b.when(b.compare("ne", count, 0), lambda: state.push(b, count), "push")  # noqa: B023
            state.fill(b)
            b.store(count + 1, state.count)
        full = first + ((last - first) & -together)
        b.loop(first, full, together, lambda r, _: _add_rows(b, each_row, r, cols, targets), hint="rows")
        b.loop(full, last, 1, lambda r, _: _add_rows(b, each_row[:1], r, cols, targets), hint="rows")

    if not ordered or (extent.constant is not None and extent.constant <= COLUMN_BLOCK):
        block(zero(b), rows)
        return
    b.loop(0, rows, COLUMN_BLOCK, lambda r, _: block(r, b.intrinsic("llvm.smin", r + COLUMN_BLOCK, rows)), hint="block")


def _add_rows(b: Builder, each_row: Sequence[Lanes], first: Value, cols: Value, targets: Sequence[tuple[t.Reduce, ColumnState]]) -> None:
    """Add neighbouring rows, in order, to the accumulators of all columns."""
    width = b.level.float_lanes
    numbers = [first + k if k else first for k in range(len(each_row))]
    for lanes, number in zip(each_row, numbers, strict=True):
        lanes.before_row(number)

    def step(columns: Sequence[Value], mask: Value | None) -> None:
        types = [Type(memory_element(state.dtype), width) for _, state in targets]
        places = [[b.offset(state.values, column, ty.element) for (_, state), ty in zip(targets, types, strict=True)] for column in columns]
        accumulators = [[b.load(ty, place) for ty, place in zip(types, mine, strict=True)] for mine in places]
        rows = [_written(lanes, number, columns, mask) for lanes, number in zip(each_row, numbers, strict=True)]
        for at, mine in enumerate(accumulators):
            for k, (reduction, state) in enumerate(targets):
                values = [elements.to_memory(b, row[at][key(reduction.value)], state.dtype) for row in rows]
                mine[k] = sums.combined(b, state.kind, state.dtype, mine[k], values)
        for mine, sums_here in zip(places, accumulators, strict=True):
            for place, value in zip(mine, sums_here, strict=True):
                b.store(value, place)

    sweep(b, zero(b), cols, UNKNOWN, width, step, each_row[0].together())


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
