"""Reductions as calls: the partial result between steps, its first value, one step, and the last fold."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.index import Index, as_index, minimum, var
from pypto_dsl.compiler.placement.ascend.block import ZERO, BlockSelector, KernelState
from pypto_dsl.compiler.placement.ascend.extents import Bounds, block_bounds
from pypto_dsl.compiler.placement.ascend.storage import round_up, static
from pypto_dsl.compiler.placement.ascend.walk import statements
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.ascend import Call, Repeat
from pypto_dsl.compiler.tile_ir.nodes import Block, Buffer, Constant, Finish, For, Init, Reduce, ReduceKind, Statement
from pypto_dsl.compiler.tile_ir.placed import BufferRef

COMBINE: Mapping[ReduceKind, str] = {"sum": "add", "max": "maximum", "min": "minimum"}
WHOLE: Mapping[ReduceKind, str] = {"sum": "row_sum", "max": "row_max", "min": "row_min"}


def partials(body: Iterable[Statement], state: KernelState) -> dict[str, Buffer]:
    """The partial of every reduction, by its target's name: one repeat of lanes per row (axis 1), a whole tile (axis 0).

    Raises KernelError PT502 for a reduction that the target cannot compute.
    """
    found: dict[str, Buffer] = {}
    for block in (s for s in statements(tuple(body)) if isinstance(s, Block)):
        for reduce in block.reduces:
            _check(reduce, state)
            found.setdefault(reduce.target.name, _partial(reduce, block_bounds(block), state))
    return found


def _check(reduce: Reduce, state: KernelState) -> None:
    dtype, has = reduce.target.dtype, state.machine.has
    if reduce.kind in COMBINE and has(COMBINE[reduce.kind], dtype) and (reduce.axis == 0 or has(WHOLE[reduce.kind], dtype)):
        return
    target = state.machine.target.name
    where = "along rows" if reduce.axis == 0 else "along columns"
    raise error("PT502", f"{reduce.kind} of {dtype} {where} is not supported on target {target}", reduce.span,
                help="cast to f32 before reducing", target=target, op=reduce.kind)


def _partial(reduce: Reduce, bounds: Bounds, state: KernelState) -> Buffer:
    target = reduce.target
    width = state.machine.repeat_lanes(target.dtype) if reduce.axis == 1 else bounds.cols
    name = state.fresh(f"{target.name}Partial")
    buffer = Buffer(name, target.dtype, (as_index(bounds.rows), as_index(width)), span=target.span)
    if reduce.axis == 1:
        return dataclasses.replace(buffer, pitch=width, elements=bounds.rows * width)
    return state.storage.sized(buffer)


def identity(kind: ReduceKind, dtype: DType) -> Constant:
    """What a reduction starts from."""
    low, high = (float("-inf"), float("inf")) if dtype.is_float else dtype.range
    return Constant({"sum": type(low)(0), "max": low, "min": high}[kind], dtype)


def init(s: Init | Finish, state: KernelState) -> Call:
    """The partial holds the identity, in every lane."""
    buffer = state.partials[s.target.name]
    first, note = identity(s.kind, buffer.dtype), f"{s.target.name}: nothing seen yet"
    return Call("fill", (BufferRef(buffer, ZERO),), arguments=(first,), count=as_index(buffer.elements), span=s.span, note=note)


def step(s: BlockSelector, reduce: Reduce) -> None:
    """Combine a Block's value into the partial, over the valid lanes (axis 1) or the valid rows (axis 0)."""
    part = BufferRef(s.state.partials[reduce.target.name], ZERO)
    value, name = s.at(reduce.value, "full"), COMBINE[reduce.kind]
    rows, cols, dtype = s.block.rows, s.block.cols, reduce.target.dtype
    if reduce.axis == 0:  # rows stay apart until the last fold: one call for the whole tile
        s.note = f"{reduce.target.name}: {reduce.kind}, row by row"
        s.call(name, part, part, value, count=s.count("full"))
        return
    lanes, step_ = s.machine.repeat_lanes(dtype), s.machine.repeat_bytes // s.machine.block_bytes
    note = f"{reduce.target.name}: {lanes} partial results of the {reduce.kind} per row"
    c = s.state.fresh("c")
    chunk = minimum(lanes, cols - var(c))
    stride = value.buffer.pitch * dtype.itemsize // s.machine.block_bytes
    if s.bounds.rows > 1 and stride <= s.machine.max_stride:
        form = Repeat(chunk, rows, (1, 1, 1), (step_, step_, stride))
        call = Call(name, (part,), (part, _at(value, var(c))), repeat=form, span=reduce.span)
        s.out.append(For(c, ZERO, cols, as_index(lanes), "reduce", (call,), note))
        return
    if s.bounds.rows == 1:
        call = Call(name, (part,), (part, _at(value, var(c))), count=chunk, span=reduce.span)
        s.out.append(For(c, ZERO, cols, as_index(lanes), "reduce", (call,), note))
        return
    r = s.state.fresh("r")
    at_row = _at(part, var(r) * lanes)
    call = Call(name, (at_row,), (at_row, _at(value, var(r) * value.buffer.pitch + var(c))), count=chunk, span=reduce.span)
    inner = For(c, ZERO, cols, as_index(lanes), "reduce", (call,))
    s.out.append(For(r, ZERO, rows, as_index(1), "serial", (inner,), note))


def finish(s: Finish, state: KernelState) -> list[Statement]:
    """The partial becomes the result: lanes of each row to one value, or all rows to one row."""
    part = state.partials[s.target.name]
    target = BufferRef(s.target, ZERO)
    if s.axis == 1:
        lanes, step_ = state.machine.repeat_lanes(part.dtype), state.machine.repeat_bytes // state.machine.block_bytes
        form = Repeat(as_index(lanes), s.rows, (1, 1), (1, step_))
        note = f"{s.target.name}: {lanes} to 1 per row"
        call = Call(WHOLE[s.kind], (target,), (BufferRef(part, ZERO),), repeat=form, span=s.span, note=note)
        return [call, *spread(s.target, s.rows, state, s.span)]
    return _fold_rows(part, target, COMBINE[s.kind], s.span, state)


def _fold_rows(part: Buffer, target: BufferRef, name: str, span: Span | None, state: KernelState) -> list[Statement]:
    """Halve the rows until one is left; an odd row is added to the first."""
    out: list[Statement] = []
    rows, pitch = static(part.shape[0]), part.pitch
    width = round_up(static(part.shape[1]), state.machine.block_lanes(part.dtype))
    first, title = BufferRef(part, ZERO), target.buffer.name
    if rows == 1:
        return [Call("copy", (target,), (first,), count=as_index(width), span=span, note=f"{title}: its only row")]
    while rows > 1:
        if rows % 2 and rows > 2:
            last = BufferRef(part, as_index((rows - 1) * pitch))
            out.append(Call(name, (first,), (first, last), count=as_index(width), span=span, note=f"{title}: row {rows - 1} to row 0"))
            rows -= 1
        half = rows // 2
        dst, count = (first, half * pitch) if half > 1 else (target, width)
        other = BufferRef(part, as_index(half * pitch))
        out.append(Call(name, (dst,), (first, other), count=as_index(count), span=span, note=f"{title}: {rows} rows to {half}"))
        rows = half
    return out


def spread(buffer: Buffer, rows: Index, state: KernelState, span: Span | None) -> list[Statement]:
    """The spread twin of a column that some Block broadcasts, else nothing."""
    return [state.spread_call(BufferRef(buffer, ZERO), rows, span)] if buffer.name in state.spread_at_producer else []


def _at(ref: BufferRef, offset: Index) -> BufferRef:
    return BufferRef(ref.buffer, ref.offset + offset, ref.dtype)
