"""The pass `queues`: loads and stores become copies between queue actions, and a buffer never serves two stages.

A Load allocates, copies and enqueues; its buffer is dequeued before the first use and freed behind the last one in the Load's own
body. A Store's buffer is allocated before its first write and enqueued behind its last access; the Store dequeues, copies, frees.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from pypto_dsl.compiler.errors import CompilerBug, KernelError, error
from pypto_dsl.compiler.index import Index, as_index, dense_strides, floordiv, round_up
from pypto_dsl.compiler.placement.ascend.block import ZERO
from pypto_dsl.compiler.placement.ascend.machine import Machine
from pypto_dsl.compiler.placement.ascend.storage import static
from pypto_dsl.compiler.placement.ascend.walk import Body, bodies, buffers_of, map_bodies, read_names, statements, written_names
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.ascend import Call, Copy
from pypto_dsl.compiler.tile_ir.nodes import Buffer, Load, Param, Region, Statement, Store
from pypto_dsl.compiler.tile_ir.placed import BufferRef, QueueAction


def queues(body: Body, machine: Machine) -> Body:
    """The body with every Load and Store placed. Raises KernelError PT525 for a region that no copy can address."""
    return _place(_stage(_drop_unused(body), machine), machine)


# ---- one stage per buffer --------------------------------------------------------------------------------------------------


def _drop_unused(body: Body) -> Body:
    """Loads whose buffer nothing reads would never leave their queue."""
    used = set().union(*(read_names(s) for s in body))

    def keep(inner: Body) -> Body:
        return tuple(map_bodies(s, keep) for s in inner if not (isinstance(s, Load) and s.buffer.name not in used))

    return keep(body)


def _stage(body: Body, machine: Machine) -> Body:
    """Give a Store a buffer of its own where it stores what was loaded, what outlives the Store, or what another Store stores too."""
    every = list(statements(body))
    loaded = {s.buffer.name for s in every if isinstance(s, Load)}
    stores = [s.buffer.name for s in every if isinstance(s, Store)]
    names = {b.name for b in buffers_of(body)}

    def stage(inner: Body) -> Body:
        out: list[Statement] = []
        for i, s in enumerate(inner):
            if isinstance(s, Store):
                name = s.buffer.name
                elsewhere = _accesses(body, name) != _accesses(inner[:i], name) + 1
                if name in loaded or stores.count(name) > 1 or elsewhere:
                    own = dataclasses.replace(s.buffer, name=_fresh(f"{name}Out", names), slots=max(1, s.buffer.slots))
                    out += [_copy_call(own, s, machine), dataclasses.replace(s, buffer=own)]
                    continue
            out.append(map_bodies(s, stage))
        return tuple(out)

    return stage(body)


def _accesses(body: Iterable[Statement], name: str) -> int:
    """How many statements themselves (not through nested bodies) read or write a buffer."""
    count = 0
    for s in statements(body):
        own = _without_bodies(s)
        count += name in read_names(own) or name in written_names(own)
    return count


def _without_bodies(statement: Statement) -> Statement:
    return map_bodies(statement, lambda inner: ()) if bodies(statement) else statement


def _fresh(wish: str, names: set[str]) -> str:
    name, n = wish, 0
    while name in names:
        n += 1
        name = f"{wish}{n}"
    names.add(name)
    return name


def _copy_call(own: Buffer, store: Store, machine: Machine) -> Call:
    rows = store.region.extent[-2] if len(store.region.extent) > 1 else as_index(1)
    lanes = machine.block_lanes(own.dtype)
    if own.layout == "tile" and static(own.shape[0]) > 1:
        count: Index = rows * own.pitch
    else:
        count = round_up(rows if own.layout == "column" else store.region.extent[-1], lanes)
    pair = BufferRef(own, ZERO), BufferRef(store.buffer, ZERO)
    return Call("copy", pair[:1], pair[1:], count=count, span=store.span, note=f"{own.name}: to be stored")


# ---- queue actions ---------------------------------------------------------------------------------------------------------


def _place(body: Body, machine: Machine) -> Body:
    first_use, last_use = _load_uses(body)
    start, stop = _store_uses(body)
    out: list[Statement] = []
    for i, s in enumerate(body):
        out += [QueueAction("deque", b) for b in first_use.get(i, ())]
        out += [QueueAction("alloc", b) for b in start.get(i, ())]
        if isinstance(s, Load):
            out += [QueueAction("alloc", s.buffer), _copy("in", s.buffer, s.region, s.span, machine), QueueAction("enque", s.buffer)]
        elif isinstance(s, Store):
            out += [QueueAction("deque", s.buffer), _copy("out", s.buffer, s.region, s.span, machine), QueueAction("free", s.buffer)]
        else:
            out.append(map_bodies(s, lambda inner: _place(inner, machine)))
        out += [QueueAction("free", b) for b in last_use.get(i, ())]
        out += [QueueAction("enque", b) for b in stop.get(i, ())]
    return tuple(out)


def _load_uses(body: Body) -> tuple[dict[int, list[Buffer]], dict[int, list[Buffer]]]:
    """Where each Load of this body is used first and last: between it and the next Load of the same buffer."""
    first: dict[int, list[Buffer]] = {}
    last: dict[int, list[Buffer]] = {}
    for i, load in enumerate(body):
        if not isinstance(load, Load):
            continue
        name = load.buffer.name
        end = next((j for j in range(i + 1, len(body)) if _loads(body[j], name)), len(body))
        uses = [j for j in range(i + 1, end) if name in read_names(body[j]) or name in written_names(body[j])]
        if not uses:
            raise CompilerBug("ascend.queues", f"the buffer {name} is loaded and used in another body only")
        first.setdefault(uses[0], []).append(load.buffer)
        last.setdefault(uses[-1], []).append(load.buffer)
    return first, last


def _loads(statement: Statement, name: str) -> bool:
    return isinstance(statement, Load) and statement.buffer.name == name


def _store_uses(body: Body) -> tuple[dict[int, list[Buffer]], dict[int, list[Buffer]]]:
    """Where each stored buffer of this body is written first and accessed last before its Store."""
    start: dict[int, list[Buffer]] = {}
    stop: dict[int, list[Buffer]] = {}
    for i, store in enumerate(body):
        if not isinstance(store, Store):
            continue
        name = store.buffer.name
        uses = [j for j in range(i) if name in read_names(body[j]) or name in written_names(body[j])]
        if not uses:
            raise CompilerBug("ascend.queues", f"the buffer {name} is stored and written in another body only")
        start.setdefault(uses[0], []).append(store.buffer)
        stop.setdefault(uses[-1], []).append(store.buffer)
    return start, stop


# ---- copies ----------------------------------------------------------------------------------------------------------------


def address(param: Param, region: Region, span: Span | None) -> tuple[Index, Index]:
    """(first element, elements between rows) of a region in its parameter; PT525 when elements of a row are not adjacent."""
    rank = len(param.shape)
    strides = param.strides or dense_strides(param.shape)
    if strides and strides[-1].constant != 1 and region.extent[-1].constant != 1:
        raise _refuse(param, "has elements of a row that are not adjacent in memory",
                      "make the view before the call, and pass it as an array of its own; a matmul transposes with b_trans=True", span)
    offset = param.base
    for position, stride in zip(region.offset, strides, strict=True):
        offset = offset + position * stride
    return offset, strides[-2] if rank > 1 else as_index(0)


def _refuse(param: Param, what: str, advice: str, span: Span | None) -> KernelError:
    message = f"`{param.name}` {what}, and a copy of this target moves rows of adjacent elements"
    return error("PT525", message, span, help=advice, tensor=param.name)


def _copy(direction: str, buffer: Buffer, region: Region, span: Span | None, machine: Machine) -> Copy:
    """A two-dimensional copy, or one line when the buffer is a row or a dense column."""
    param = region.param
    offset, pitch = address(param, region, span)
    rows = region.extent[-2] if len(region.extent) > 1 else as_index(1)
    cols = region.extent[-1]
    lanes = machine.block_lanes(buffer.dtype)
    if buffer.layout == "column":
        if rows.constant != 1 and pitch.constant != 1:
            raise _refuse(param, "is read as a column that is not dense", "copy the column into a tensor of its own", span)
        rows, cols = as_index(1), rows if cols.constant == 1 else rows * cols
    if buffer.layout != "tile" or static(buffer.shape[0]) == 1:
        return Copy("in" if direction == "in" else "out", buffer, param, offset, as_index(1), cols, cols, ZERO, span)
    gap = floordiv(as_index(buffer.pitch) - round_up(cols, lanes), lanes)
    return Copy("in" if direction == "in" else "out", buffer, param, offset, rows, cols, pitch, gap, span)
