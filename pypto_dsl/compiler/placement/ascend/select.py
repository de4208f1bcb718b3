"""The pass `select`: Blocks, fills and reductions of a vector kernel become calls on buffers."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pypto_dsl.compiler.dtypes import BOOL, U8
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.index import as_index
from pypto_dsl.compiler.placement.ascend.block import ZERO, BlockSelector, Held, KernelState
from pypto_dsl.compiler.placement.ascend.extents import Extent, block_bounds, buffer_extent, classify, operand_extent
from pypto_dsl.compiler.placement.ascend.instructions import immediate, rule_of, store_mask
from pypto_dsl.compiler.placement.ascend.machine import Machine
from pypto_dsl.compiler.placement.ascend.reductions import finish, init, partials, spread, step
from pypto_dsl.compiler.placement.ascend.storage import static, storage
from pypto_dsl.compiler.placement.ascend.walk import Body, buffers_of, map_bodies, replace_buffers, statements
from pypto_dsl.compiler.tile_ir.ascend import Call
from pypto_dsl.compiler.tile_ir.nodes import (
    Block,
    BlockOp,
    Buffer,
    Constant,
    Fill,
    Finish,
    For,
    Init,
    LaneIndex,
    Let,
    Load,
    Operand,
    ReadBuffer,
    Reduce,
    Statement,
    TileKernel,
)
from pypto_dsl.compiler.tile_ir.placed import BufferRef


def select(kernel: TileKernel, machine: Machine) -> TileKernel:
    """The kernel with every Block, Fill, Init and Finish replaced by calls; buffers have their pitch and storage.

    Raises KernelError PT502 for what the target cannot compute, PT412 for a tile with more rows than a call can repeat.
    """
    body = (*kernel.once, *kernel.body)
    rules = storage(body, machine)
    sized = {b.name: rules.sized(b) for b in buffers_of(body)}
    for buffer in sized.values():
        _check_rows(buffer, machine)
    once, body = replace_buffers(kernel.once, sized), replace_buffers(kernel.body, sized)
    state = KernelState(machine, rules, _names(kernel))
    state.spread_at_producer = _columns_read_wide((*once, *body))
    state.partials = partials((*once, *body), state)
    selected_once, selected = _select(once, state), _select(body, state)
    sizes = {name: _scratch(name, size) for name, size in state.scratch.items()}
    return dataclasses.replace(kernel, once=replace_buffers(selected_once, sizes), body=replace_buffers(selected, sizes))


def _check_rows(buffer: Buffer, machine: Machine) -> None:
    rows = static(buffer.shape[0])
    if rows > machine.max_repeats and buffer.layout in ("tile", "column"):
        limit = machine.max_repeats
        raise error("PT412", f"`{buffer.holds}` has tiles of {rows} rows, and a call repeats over at most {limit}", buffer.span,
                    help=f"set a tile of at most {limit} rows: pypto.set_vec_tile_shapes({limit // 8 * 8}, "
                    f"{static(buffer.shape[1]) if buffer.layout == 'tile' else 64})", rows=rows, limit=limit)


def _scratch(name: str, size: int) -> Buffer:
    return Buffer(name, U8, (as_index(1), as_index(size)), layout="row", pitch=size, elements=size)


def _names(kernel: TileKernel) -> set[str]:
    names = {p.name for p in kernel.params} | {s.name for s in kernel.scalars} | set(kernel.grid.vars) | {"scratch"}
    for statement in statements((*kernel.once, *kernel.body)):
        if isinstance(statement, Let):
            names.add(statement.name)
        elif isinstance(statement, For):
            names.add(statement.var)
    return names | {b.name for b in buffers_of((*kernel.once, *kernel.body))}


def _columns_read_wide(body: Body) -> set[str]:
    """Column buffers that some Block broadcasts along its columns: they are spread once, where they are made."""
    found: set[str] = set()
    for block in (s for s in statements(body) if isinstance(s, Block)):
        bounds, known = block_bounds(block), classify(block, block_bounds(block))
        uses = [(o, known[op.result]) for op in block.ops for o in op.operands]
        uses += [(w.value, buffer_extent(w.buffer, bounds)) for w in block.writes] + [(r.value, "full") for r in block.reduces]
        for operand, extent in uses:
            if isinstance(operand, ReadBuffer) and operand.buffer.layout in ("column", "scalar") and operand.buffer.dtype != BOOL:
                own = operand_extent(operand, known, bounds)
                if own in ("column", "one") and own != extent:
                    found.add(operand.buffer.name)
    return found


def _select(body: Body, state: KernelState) -> Body:
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, Block):
            out += _block(statement, state)
        elif isinstance(statement, Fill):
            out += _fill(statement, state)
        elif isinstance(statement, Init):
            out.append(init(statement, state))
        elif isinstance(statement, Finish):
            out += finish(statement, state)
        elif isinstance(statement, Load):
            out.append(statement)
            rows = statement.region.extent[-2] if len(statement.region.extent) > 1 else as_index(1)
            out += spread(statement.buffer, rows, state, statement.span)
        else:
            out.append(map_bodies(statement, lambda inner: _select(inner, state)))
    return tuple(out)


def _fill(s: Fill, state: KernelState) -> list[Statement]:
    value = Constant(float(s.value) if s.buffer.dtype.is_float else int(s.value), s.buffer.dtype)
    call = Call("fill", (BufferRef(s.buffer, ZERO),), arguments=(value,), count=as_index(s.buffer.elements), span=s.span,
                note=f"{s.buffer.name} = {s.value}")
    return [call, *spread(s.buffer, s.buffer.shape[0], state, s.span)]


# ---- a Block ---------------------------------------------------------------------------------------------------------------


def _block(block: Block, state: KernelState) -> list[Statement]:
    s = BlockSelector(block, state)
    rows = {op.result: rule_of(s, op) for op in block.ops if not s.is_alias(op)}
    in_place = {op.result: op.result in rows and rows[op.result].in_place(op) for op in block.ops}
    homes = s.homes(in_place)
    for op in block.ops:
        s.span, s.note = op.span or block.span, _note(op)
        extent = s.extents[op.result]
        if s.is_alias(op):
            operand = op.operands[0]
            source = Held(s.at(operand, extent), extent, op.result) if immediate(operand) else s.load(operand)
            ref = BufferRef(source.ref.buffer, source.ref.offset, None if source.ref.buffer.dtype == op.dtype else op.dtype)
            s.held[op.result] = Held(ref, source.extent, source.owner, source.mask)
            continue
        held = _destination(s, op, extent, homes, in_place[op.result])
        rows[op.result].spell(s, op, held.ref, extent)
        s.release(op)
        s.held[op.result] = held
    for write in block.writes:
        _write(s, write.value, write.buffer, homes)
    for reduce in block.reduces:
        _reduce(s, reduce)
    return s.out


def _note(op: BlockOp) -> str:
    return f"{op.source or op.result} = {op.name}({', '.join(_operand_text(o) for o in op.operands)})"


def _operand_text(operand: Operand) -> str:
    if isinstance(operand, str):
        return operand
    if isinstance(operand, ReadBuffer):
        return operand.buffer.name
    if isinstance(operand, Constant):
        return f"{operand.value:g}" if operand.dtype.is_float else str(operand.value)
    if isinstance(operand, LaneIndex):
        return ("row", "column")[operand.axis]
    return str(operand.name if hasattr(operand, "name") else operand.value)


def _destination(s: BlockSelector, op: BlockOp, extent: Extent, homes: Mapping[str, Buffer], in_place: bool) -> Held:
    if op.dtype == BOOL:
        return Held(BufferRef(s.mask_buffer(op.result, extent), ZERO), extent, op.result, mask=True)
    if op.result in homes:
        return Held(BufferRef(homes[op.result], ZERO), extent)
    if in_place:
        for operand in op.operands:
            held = s.held.get(operand) if isinstance(operand, str) else None
            if held is None or not isinstance(operand, str):
                continue
            ours = held.owner and held.extent == extent and held.ref.buffer.dtype == op.dtype and held.ref.dtype is None
            if ours and s.dies_here(op, operand):
                return Held(held.ref, extent, held.owner)
    return Held(BufferRef(s.temporary(op.source or op.result, op.dtype, extent), ZERO), extent, op.result)


def _write(s: BlockSelector, value: Operand, buffer: Buffer, homes: Mapping[str, Buffer]) -> None:
    extent = buffer_extent(buffer, s.bounds)
    dst = BufferRef(buffer, ZERO)
    at_home = isinstance(value, str) and s.held[value].ref == dst
    if buffer.dtype == BOOL:
        store_mask(s, value, dst, extent)
    elif immediate(value):
        s.note = f"{buffer.name} = {_operand_text(value)}"
        s.call("fill", dst, arguments=(value,), count=s.count(extent))  # type: ignore[arg-type]
    elif not at_home:
        held = s.load(value)
        s.note = f"{buffer.name} = {_operand_text(value)}"
        if held.extent != extent and s.machine.has("maximum", buffer.dtype):
            s.broadcast("maximum", dst, (held, held), extent)
        else:
            source = held.ref if held.extent == extent else s.expand(held, extent)
            copy(s, dst, source, extent)
    s.out += spread(buffer, s.block.rows, s.state, s.block.span)


def copy(s: BlockSelector, dst: BufferRef, source: BufferRef, extent: Extent) -> None:
    """A local copy; whole blocks only, so a line's count is rounded up."""
    lanes = s.machine.block_lanes(dst.buffer.dtype)
    count = s.count(extent)
    rounded = count if extent == "full" and s.bounds.rows > 1 else (count + (lanes - 1)) // lanes * lanes
    s.call("copy", dst, source, count=rounded)


def _reduce(s: BlockSelector, reduce: Reduce) -> None:
    """One step on the partial; a reduction that does not accumulate is Init, one step and Finish."""
    s.span = reduce.span or s.block.span
    whole = Finish(reduce.kind, reduce.axis, reduce.target, s.block.rows, s.block.cols, s.span)
    if not reduce.accumulate:
        s.out.append(init(whole, s.state))
    step(s, reduce)
    if not reduce.accumulate:
        s.out += finish(whole, s.state)
