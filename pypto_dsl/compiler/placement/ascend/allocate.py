"""The pass `allocate`: queue storage and one arena whose views share bytes by lifetime, within the unified buffer.

Buffers get bytes of their own as long as there is room, because shared bytes cost barriers; only a kernel that would not fit shares.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from pypto_dsl.compiler.errors import Label, error
from pypto_dsl.compiler.placement.ascend.lifetimes import Lifetime, lifetimes
from pypto_dsl.compiler.placement.ascend.machine import Machine
from pypto_dsl.compiler.placement.ascend.storage import round_up
from pypto_dsl.compiler.placement.ascend.walk import Body, buffers_of, replace_buffers, statements
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.ascend import Arena, Call, Copy, Position, Queue, View
from pypto_dsl.compiler.tile_ir.nodes import Buffer, Statement

ARENA = "arena"


@dataclass(frozen=True)
class Plan:
    """Where everything is: queue buffers by position, offsets of views in the arena, bytes of the whole."""

    queues: tuple[tuple[Buffer, Position], ...]
    views: tuple[tuple[Buffer, int], ...]
    arena_bytes: int
    total: int
    capacity: int

    @property
    def fits(self) -> bool:
        return self.total <= self.capacity


def stored_bytes(buffer: Buffer, machine: Machine) -> int:
    """Bytes of one slot, in whole data blocks."""
    return round_up(buffer.elements * buffer.dtype.itemsize, machine.block_bytes)


def plan(body: Body, machine: Machine) -> Plan:
    """Place every buffer of a placed body; the result may be over capacity."""
    positions: dict[str, Position] = {}
    for s in statements(body):
        if isinstance(s, Copy):
            positions.setdefault(s.buffer.name, "VECIN" if s.direction == "in" else "VECOUT")
    buffers = {b.name: b for b in buffers_of(body)}
    queued = [(buffers[name], position) for name, position in positions.items()]
    queued = _limit_slots(queued, machine)
    selects = any(isinstance(s, Call) and s.name in ("select", "select_scalar") for s in statements(body))
    capacity = machine.capacity["ub"] - (machine.select_room if selects else 0)
    used = sum(b.slots * stored_bytes(b, machine) for b, _ in queued)
    local = [b for name, b in buffers.items() if name not in positions]
    offsets, arena = _in_a_row(local, machine)
    if used + arena > capacity:
        offsets, arena = _packed(local, lifetimes(body), machine)
    return Plan(tuple(queued), tuple((b, offsets[b.name]) for b in local), arena, used + arena, capacity)


def _limit_slots(queued: list[tuple[Buffer, Position]], machine: Machine) -> list[tuple[Buffer, Position]]:
    """At most so many queue buffers per position: the last ones give up double buffering first."""
    result = list(queued)
    for position in ("VECIN", "VECOUT"):
        here = [i for i, (_, p) in enumerate(result) if p == position]
        while sum(result[i][0].slots for i in here) > machine.max_queue_buffers:
            double = [i for i in here if result[i][0].slots > 1]
            if not double:
                buffer = result[here[-1]][0]
                raise error("PT411", f"the kernel moves {len(here)} tensors of one direction at a time, and the target has queues for "
                            f"{machine.max_queue_buffers}", buffer.span,
                            help="compute with one tensor that holds the pieces (pypto.sum over them, say), or split the kernel in two")
            buffer = result[double[-1]][0]
            result[double[-1]] = (dataclasses.replace(buffer, slots=buffer.slots - 1), position)
    return result


def _in_a_row(local: list[Buffer], machine: Machine) -> tuple[dict[str, int], int]:
    offsets, at = {}, 0
    for buffer in local:
        offsets[buffer.name] = at
        at += stored_bytes(buffer, machine)
    return offsets, at


def _packed(local: list[Buffer], alive: Mapping[str, Lifetime], machine: Machine) -> tuple[dict[str, int], int]:
    """Largest first, each at the lowest offset where nothing alive at the same time lies."""
    order = sorted(local, key=lambda b: (-stored_bytes(b, machine), alive[b.name].first, b.name))
    placed: list[tuple[int, int, Lifetime]] = []
    offsets: dict[str, int] = {}
    for buffer in order:
        size, life = stored_bytes(buffer, machine), alive[buffer.name]
        at = 0
        for start, stop, _ in sorted((p for p in placed if p[2].overlaps(life)), key=lambda p: p[0]):
            if at + size <= start:
                break
            at = max(at, stop)
        offsets[buffer.name] = at
        placed.append((at, at + size, life))
    return offsets, max((stop for _, stop, _ in placed), default=0)


def allocate(body: Body, machine: Machine, title: str, span: Span | None, largest: str = "") -> Body:
    """The body with declarations at its head and offsets in its buffers.

    Raises KernelError PT410 when the kernel does not fit (``largest`` says which tile would), PT411 for too many queues.
    """
    found = plan(body, machine)
    if not found.fits:
        raise over_capacity(found, machine, title, span, largest)
    queue_bytes = found.total - found.arena_bytes
    table: dict[str, Buffer] = {}
    at = 0
    for buffer, _ in found.queues:
        table[buffer.name] = dataclasses.replace(buffer, offset=at)
        at += buffer.slots * stored_bytes(buffer, machine)
    for buffer, offset in found.views:
        table[buffer.name] = dataclasses.replace(buffer, offset=queue_bytes + offset)
    head: list[Statement] = [Queue(table[b.name], position, b.elements * b.dtype.itemsize) for b, position in found.queues]
    if found.views:
        head.append(Arena(ARENA, found.arena_bytes))
    head += [View(table[b.name], ARENA, offset, b.elements) for b, offset in sorted(found.views, key=lambda v: (v[1], v[0].name))]
    if len(found.queues) * 2 + 1 > machine.max_buffers:
        raise error("PT411", f"the kernel needs {len(found.queues)} queues, and a core has {machine.max_buffers} buffers", span)
    return (*head, *replace_buffers(body, table))


def over_capacity(found: Plan, machine: Machine, title: str, span: Span | None, largest: str) -> Exception:
    """PT410: every buffer with its bytes and the user's line, and the largest tile that fits."""
    rows = [(b, b.slots * stored_bytes(b, machine), f"{b.slots} x " if b.slots > 1 else "") for b, _ in found.queues]
    rows += [(b, stored_bytes(b, machine), "") for b, _ in found.views]
    rows.sort(key=lambda row: (-row[1], row[0].name))
    where = {b.name: f", {b.span}" if b.span else "" for b, _, _ in rows}
    notes = [f"{b.holds}: {size} B = {slots}{b.shape[0]} x {b.shape[1]} {b.dtype}{where[b.name]}" for b, size, slots in rows]
    places = {(b.span.file, b.span.line): b.span for b, _, _ in rows if b.span is not None and b.span != span}
    labels = tuple(Label(place, "a buffer of this") for place in list(places.values())[:3])
    room = found.capacity
    message = f"a tile of `{title}` needs {found.total} B of the unified buffer, and {machine.target.name} has {room} B for it"
    return error("PT410", message, span, others=labels, notes=tuple(notes), help=largest or "set_vec_tile_shapes with a smaller tile",
                 needed=found.total, capacity=room, buffers=[[b.name, size] for b, size, _ in rows])
