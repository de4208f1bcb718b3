"""The vector loops of a Block: rows, then vectors of columns with values in registers, masked tails, reductions in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import and_

from pypto_dsl.codegen.llvm import elements, intrinsics, sums
from pypto_dsl.codegen.llvm.bfloat import rounded_once, shortened
from pypto_dsl.codegen.llvm.builder import Builder, Type, Value
from pypto_dsl.codegen.llvm.columns import ROWS_FROM_MEMORY, ROWS_TOGETHER, ColumnStates, reduce_along, reduce_rows, reduce_squares
from pypto_dsl.codegen.llvm.elements import memory_element
from pypto_dsl.codegen.llvm.indexing import View, address, evaluate, zero
from pypto_dsl.codegen.llvm.lanes import Context, Key, Lanes, key
from pypto_dsl.codegen.llvm.layout import reads
from pypto_dsl.codegen.llvm.loops import UNKNOWN, each, neighbours, sweep
from pypto_dsl.compiler import dtypes
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.summation import PARTIALS, ROW_BLOCK
from pypto_dsl.compiler.tile_ir import nodes as t


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

    targets = [(r, columns[r.target.name]) for r in block.reduces if r.target.name in columns]
    lying = list(dict.fromkeys(r for r in reads(block) if r.buffer.name in context.lying))

    def reduced_columns(large: bool) -> None:
        together = 1 if lanes.heavy() else ROWS_FROM_MEMORY if large else ROWS_TOGETHER
        reduce_rows(b, lanes, row_count, column_count, rows, targets, together)

    if down and lying:
        reduce_squares(b, lanes, lying, row_count, column_count, rows, targets)
        return
    if down:
        _where(b, context.large, reduced_columns)
        return
    if lying:
        across = Lanes(b, block, replace(context, turned=True))
        across.before_loops()
        reduce_along(b, across, column_count, row_count, cols, targets)
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


def _row(b: Builder, lanes: Lanes, row: Value, count: Value, extent: Index) -> None:
    width = b.level.float_lanes
    paired = lanes.paired()
    together = max(lanes.together(), 2 if paired or lanes.context.ahead else 1)
    short = extent.constant is not None and extent.constant < _SHORT_ROW

    def step(columns: Sequence[Value], mask: Value | None, past_caches: bool = False) -> None:
        for view in lanes.context.ahead if mask is None and not short else ():
            _fetch(b, view, row, columns)
        lanes.written(row, columns, mask, past_caches)

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
        b.loop(head, full, turn, lambda i, _: step(neighbours(i, width, together), None, past_caches), hint="vector")

    turn = width * together
    (head,) = b.chosen(streaming, aligned, [zero(b)], "aligned")
    full = head + ((count - head) & -turn)
    _where(b, streaming, vectors)
    b.loop(full, count, width, lambda i, _: step([i], b.lane_mask(i, count, width)), hint="tail")


_SHORT_ROW = 256  # elements: shorter rows are not fetched ahead
_LONG_ROW = 1024  # elements from which a row is worth aligning its stores


def _fetch(b: Builder, view: View, row: Value, columns: Sequence[Value]) -> None:
    """Ask for the cache lines that hold the vectors at ``columns``."""
    step = max(1, CACHE_LINE // (b.level.float_lanes * view.dtype.itemsize))
    for column in columns[::step]:
        b.prefetch(address(b, view, row, column))


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
        for column, values in zip(columns, lanes.written(row, columns, mask), strict=True):
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
        after = grouped(added(grouped(values), lanes.written(row, [column], mask), [mask]))
        for partials in after[:len(states)]:
            partials.append(partials.pop(0))
        return [v for group in after for v in group]

    def straight(columns: int, exact: bool) -> list[Value]:
        count = -(-columns // width)
        places = neighbours(start, width, count)
        whole = columns // width if exact else 0
        masks = [None] * whole + (b.lane_masks(start, stop, width, count) if not exact else
                                  [b.lane_mask(places[-1], stop, width)] if whole < count else [])
        written = [values for place, mask in zip(places, masks, strict=True) for values in lanes.written(row, [place], mask)]
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
    everything = [v for k in range(0, len(whole), together) for v in lanes.written(row, whole[k:k + together], None)]
    masks: list[Value | None] = [None] * len(everything)
    if known % width:
        column = start + known // width * width if whole else start
        masks.append(b.lane_mask(column, stop, width))
        everything += lanes.written(row, [column], masks[-1])
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
        every = lanes.written(row, neighbours(column, width, parts), None)
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
