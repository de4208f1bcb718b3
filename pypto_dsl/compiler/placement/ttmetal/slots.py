"""DST slots by linear scan: SFPU results in place on dying operands, row broadcasts in their one legal slot, FPU products in fresh ones."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import as_index, var
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Buffer
from pypto_dsl.compiler.tile_ir.ttmetal import MapTiles, Pack, ReduceTiles, TileOp, TileRef

Spill = Callable[[str], Buffer]  # a ring that holds a value exactly


@dataclass(frozen=True)
class Assigned:
    """Ops with slots, and where values kept to the end are."""

    ops: tuple[TileOp, ...]
    slots: dict[str, int]


def capacity(target: Target, fp32_dest: bool) -> int:
    """Tiles that DST holds."""
    return int(target.table("dst")["tiles_32" if fp32_dest else "tiles_16"])


def assign(ops: Sequence[TileOp], kept: Iterable[str], target: Target, fp32_dest: bool,
           reserved: frozenset[int] = frozenset()) -> Assigned | int:
    """Slots for a straight line of ops; ``kept`` values live to the end. Returns the index of the first op that finds no slot."""
    row_slot = int(target.table("dst")["row_broadcast_slot"])
    pinned = {o.result for o in ops if o.call == "copy_row"}
    everything = [s for s in range(capacity(target, fp32_dest)) if s not in reserved]
    # slots other than the pinned one first, when something needs that one
    order = sorted(everything, key=lambda s: (bool(pinned) and s == row_slot, s))
    last = {v: i for i, o in enumerate(ops) for v in o.values}
    last.update({v: len(ops) for v in kept})
    live: dict[str, int] = {}
    written: set[int] = set()
    result: list[TileOp] = []
    for i, op in enumerate(ops):
        inputs = tuple(live[v] for v in op.values)
        dying = list(dict.fromkeys(v for v in op.values if last.get(v) == i))
        if op.engine == "sfpu" and len(op.values) == 1 and not dying:  # unary routines work in place: on a copy, when the value lives on
            free = [s for s in order if s not in live.values()]
            if not free:
                return i
            result.append(TileOp(f"{op.values[0]}_again", "duplicate", "sfpu", op.values, slot=free[0], inputs=inputs, last=op.last))
            live[op.result] = free[0]
            written.add(free[0])
            result.append(replace(op, slot=free[0], inputs=(free[0],)))
            continue
        slot = _choose(op, dying, live, order, written, row_slot, bool(pinned))
        if slot is None:
            return i
        for v in dying:
            live.pop(v, None)
        if op.result in last:
            live[op.result] = slot
        written.add(slot)
        result.append(replace(op, slot=slot, inputs=inputs))
    return Assigned(tuple(result), live)


def _choose(op: TileOp, dying: list[str], live: dict[str, int], order: list[int], written: set[int], row_slot: int,
            pinned: bool) -> int | None:
    free = [s for s in order if s not in live.values()]
    if op.call == "copy_row":
        return row_slot if row_slot in free else None
    if op.last and op.call == "where":  # where it does not run, the value stays where it was
        return live[op.values[1]]
    if op.engine == "sfpu" and dying:
        candidates = sorted((live[v] for v in dying), key=order.index)
        return candidates[0] if not (pinned and candidates[0] == row_slot and free and free[0] != row_slot) else free[0]
    if op.call.startswith("fpu_mul"):  # the FPU adds its product to what the slot holds
        free = [s for s in free if s not in written]
    return free[0] if free else None


def place_map(statement: MapTiles, target: Target, fp32_dest: bool, spill: Spill) -> list[MapTiles]:
    """Slots of a MapTiles; one that needs more than DST holds is split through buffers that keep its values exactly."""
    found = assign(statement.ops, [p.value for p in statement.packs], target, fp32_dest)
    if isinstance(found, Assigned):
        packs = tuple(replace(p, slot=found.slots[p.value]) for p in statement.packs)
        return [replace(statement, ops=found.ops, packs=packs)]
    for cut in range(found, 0, -1):
        first, rest = _split(statement, cut, spill)
        if isinstance(assign(first.ops, [p.value for p in first.packs], target, fp32_dest), Assigned):
            return [*place_map(first, target, fp32_dest, spill), *place_map(rest, target, fp32_dest, spill)]
    raise CompilerBug("placement.ttmetal.slots", f"one tile operation needs more slots than DST has: {statement.ops[0]}")


def _split(statement: MapTiles, cut: int, spill: Spill) -> tuple[MapTiles, MapTiles]:
    """Ops before and from ``cut``; values that cross are packed, and copied back just before their first use."""
    before, after = statement.ops[:cut], statement.ops[cut:]
    made = {o.result for o in before}
    packed = tuple(p for p in statement.packs if p.value in made)
    crossing = list(dict.fromkeys(v for o in after for v in o.values if v in made))
    buffers = {v: spill(v) for v in crossing}
    row, col = (as_index(0) if a.count.constant == 1 else var(a.var) for a in (statement.rows, statement.cols))
    rest: list[TileOp] = []
    waiting = set(crossing)
    for op in after:
        for v in op.values:
            if v in waiting:
                waiting.discard(v)
                rest.append(TileOp(v, "copy", "copy", tiles=(TileRef(buffers[v], row * statement.cols.count + col),)))
        rest.append(op)
    return (replace(statement, ops=before, packs=(*packed, *(Pack(v, buffers[v]) for v in crossing))),
            replace(statement, ops=tuple(rest), packs=tuple(p for p in statement.packs if p not in packed)))


def place_reduce(statement: ReduceTiles, target: Target, fp32_dest: bool) -> ReduceTiles | None:
    """Slots of a ReduceTiles: the accumulator first, then the value's ops. None when DST has too few."""
    if statement.engine == "fpu":
        return replace(statement, accumulator=0)
    row_slot = int(target.table("dst")["row_broadcast_slot"])
    pinned = any(o.call == "copy_row" for o in statement.ops)
    accumulator = 1 if pinned and row_slot == 0 else 0
    found = assign(statement.ops, [statement.value], target, fp32_dest, frozenset({accumulator}))
    if not isinstance(found, Assigned):
        return None
    return replace(statement, ops=found.ops, accumulator=accumulator)
