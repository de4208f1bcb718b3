"""The schedule of row groups: phases over whole rows, or passes over pieces of a row that is too long to keep.

Phase p computes values over the plane and reduces some of them; column stage p turns those results into per-row values that phase
p + 1 may read. A plane value needed in several phases is kept in a buffer, or computed again when it is cheap; in the split
variant every phase starts from the loaded tensors again.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import cast

from pypto_dsl.compiler.graph import Op, Value
from pypto_dsl.compiler.index import Index, as_index, maximum, minimum, var
from pypto_dsl.compiler.passes.blocks import BlockBuilder
from pypto_dsl.compiler.passes.reductions import REDUCTIONS
from pypto_dsl.compiler.passes.schedules import CHEAP, Leaves, describe, step_of
from pypto_dsl.compiler.passes.spaces import Access
from pypto_dsl.compiler.passes.tiling import Axis, Tiling
from pypto_dsl.compiler.targets import TileChoices
from pypto_dsl.compiler.tile_ir import nodes as t

CACHE_LINE = 64  # bytes
LINES_COPIED = 4  # side by side, so that memory is read in runs
PAGE = 4096  # bytes: the longest run, for processors fetch ahead within a page only
SHARES = 4  # items that rows are shared among, before their runs are a page long


@dataclass
class Phases:
    """When everything in a row group is computed. ``compute[v]`` are the phases that compute plane value v, ``kept`` those stored."""

    plane: list[Op] = field(default_factory=list)
    column: list[Op] = field(default_factory=list)
    reductions: list[Op] = field(default_factory=list)
    earliest: dict[Value, int] = field(default_factory=dict)
    stage: dict[Value, int] = field(default_factory=dict)
    compute: dict[Value, set[int]] = field(default_factory=dict)
    kept: set[Value] = field(default_factory=set)
    stored: dict[Value, int] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The last phase with work."""
        return max([0, *self.stage.values(), *(p for phases in self.compute.values() for p in phases)])


def plan(tiling: Tiling, keep: bool, allowance: int, separate: bool = False) -> Phases:
    """Assign phases. ``keep`` False: every phase computes all it needs; ``allowance``: how many cheap operations may be repeated;
    ``separate``: a phase has one reduction, and outputs are computed in phases without."""
    group, phases = tiling.group, Phases()
    live = frozenset(i for i, e in enumerate(group.space) if e.constant != 1)
    cost: dict[Value, int] = {}
    following = 0  # the phase behind every reduction so far
    for op in group.ops:
        value = op.results[0]
        if op.opcode in REDUCTIONS:
            phases.reductions.append(op)
            source = op.operands[0]
            phases.stage[value] = phases.stage[source] + 1 if source in phases.stage else phases.earliest.get(source, 0)
            if separate:
                phases.stage[value] = max(phases.stage[value], following)
            following = max(following, phases.stage[value] + 1)
            continue
        inner = [o for o in op.operands if o in group.axes]
        covered = frozenset(a for a in group.axes[value] if a is not None)
        # without a dimension to reduce over, rows of one element are plane and column at once: keep them columns
        if covered == live - group.reduced and (group.reduced or (all(o in phases.stage for o in inner) and inner)):
            phases.column.append(op)
            phases.stage[value] = max((phases.stage[o] for o in inner), default=-1)
            continue
        phases.plane.append(op)
        phases.earliest[value] = max([0, *(phases.earliest[o] if o in phases.earliest else phases.stage[o] + 1 for o in inner)])
        cost[value] = sum(cost.get(o, 0) for o in inner) + (1 if op.opcode in CHEAP else 1_000_000)
    needed: dict[Value, set[int]] = {op.results[0]: set() for op in phases.plane}
    for op in phases.reductions:
        if op.operands[0] in needed:
            needed[op.operands[0]].add(phases.stage[op.results[0]])
    reducing = frozenset(phases.stage[r.results[0]] for r in phases.reductions) if separate else frozenset()
    for op in reversed(phases.plane):
        value = op.results[0]
        if value in tiling.outputs:
            phases.stored[value] = _output_phase(phases.earliest[value], needed[value], reducing)
            needed[value].add(phases.stored[value])
        again = not keep or cost[value] <= allowance
        phases.compute[value] = set(needed[value]) if again else ({min(needed[value])} if needed[value] else set())
        if not again and len(needed[value]) > 1:
            phases.kept.add(value)
        for operand in op.operands:
            if operand in needed:
                needed[operand] |= phases.compute[value]
    return phases


def _output_phase(earliest: int, needed: set[int], reducing: frozenset[int]) -> int:
    """The phase that stores an output: one that computes it anyway, or the first it can be made in, apart from ``reducing`` ones."""
    phase = min(needed, default=earliest)
    while phase in reducing:
        phase += 1
    return phase


class RowSchedule:
    """Emits the statements of one variant."""

    def __init__(self, tiling: Tiling, choices: TileChoices, phases: Phases, width: Index | None, rows_step: Index | None = None) -> None:
        """``rows_step`` rows of one item, by the choices where it is not given."""
        self.tiling, self.phases = tiling, phases
        folded = tiling.folded
        rows_step = rows_step if rows_step is not None else step_of(folded.rows, choices.rows, choices.align[0])
        self.outer = tiling.outer()
        self.rows = tiling.axis(folded.rows, rows_step, rows_step, "row_block", "row", "rows")
        self.grid, self.lets = tiling.grid(self.outer, self.rows)
        self.cols_step = step_of(folded.cols, choices.cols, choices.align[1])
        self.width = width
        self.targets: dict[Value, t.Buffer] = {}
        self.columns: dict[Value, t.Buffer] = {}
        self.kept: dict[Value, t.Buffer] = {}
        self.stores: list[t.Statement] = []
        self.plane_of = _grouped((p, o) for o in phases.plane for p in phases.compute[o.results[0]])
        self.reductions_of = _grouped((phases.stage[o.results[0]], o) for o in phases.reductions)
        self.column_of = _grouped((phases.stage[o.results[0]], o) for o in phases.column)
        self.read_later = self._read_later()
        one = Axis(as_index(0), as_index(1), as_index(1), as_index(1), "", ())
        self.column_leaves = Leaves(tiling, self.outer, self.rows, one, self.rows.offset, as_index(0))
        self.tile = f"{rows_step}x{width or self.cols_step}"

    # ---- the two variants

    def whole(self) -> list[t.Statement]:
        """Each row is loaded once and stays."""
        folded = self.tiling.folded
        cols = Axis(as_index(0), folded.cols, cast(Index, self.width), as_index(1), "", ())
        leaves = Leaves(self.tiling, self.outer, self.rows, cols, self.rows.offset, as_index(0))
        body = self.column_stage(-1)
        for phase in range(self.phases.last + 1):
            block = self.plane_block(phase, leaves, accumulate=False)
            body += [*leaves.take(), *block, *self._take_stores(), *self.column_stage(phase)]
        return [*body, *self._take_stores()]

    def split(self) -> list[t.Statement]:
        """Each phase walks over the row in pieces and loads them again."""
        folded = self.tiling.folded
        body = self.column_stage(-1)
        buffers: dict[Access, t.Buffer] = {}
        for phase in range(self.phases.last + 1):
            col, live = self.tiling.names.fresh("col"), self.tiling.names.fresh("cols")
            whole = (folded.cols % self.cols_step).constant == 0
            cols = Axis(var(col), self.cols_step if whole else var(live), self.cols_step, as_index(1), "", ())
            leaves = Leaves(self.tiling, self.outer, self.rows, cols, self.rows.offset, cols.offset)
            leaves.buffers = buffers  # a tensor that several phases load has one buffer
            block = self.plane_block(phase, leaves, accumulate=True)
            if not block:
                body += self.column_stage(phase)
                continue
            lets: list[t.Statement] = [] if whole else [t.Let(live, minimum(self.cols_step, folded.cols - var(col)), 32)]
            stores = self._take_stores()
            reduced = self.reductions_of.get(phase, [])
            kind: t.LoopKind = "reduce" if reduced else "serial"
            body += [t.Init(self._kind(o), 1, self.targets[o.results[0]], self.rows.live, folded.cols, o.span) for o in reduced]
            body.append(t.For(col, as_index(0), folded.cols, self.cols_step, kind, (*lets, *leaves.take(), *block, *stores)))
            body += [t.Finish(self._kind(o), 1, self.targets[o.results[0]], self.rows.live, folded.cols, o.span) for o in reduced]
            body += self.column_stage(phase)
        return [*body, *self._take_stores()]

    # ---- Blocks

    def plane_block(self, phase: int, leaves: Leaves, accumulate: bool) -> list[t.Statement]:
        """The Block of a phase: values, outputs, kept values, reductions."""
        def operand(value: Value, reader: Op) -> t.Operand:
            if value in self.columns:
                return t.ReadBuffer(self.columns[value], "col")
            return t.ReadBuffer(self.kept[value], "full") if value in self.kept else leaves.operand(value, reader)

        builder = BlockBuilder(self.tiling.names, self.tiling.partition, operand, leaves.lane)
        ops = self.plane_of.get(phase, [])
        reductions = self.reductions_of.get(phase, [])
        if not ops and not reductions:
            return []
        writes: list[t.Write] = []
        bound = (self.rows.bound, self.width if self.width is not None else self.cols_step)
        for op in ops:
            value = op.results[0]
            result = builder.add(op)
            if value in self.phases.kept and value not in self.kept:
                buffer = t.Buffer(self.tiling.names.fresh(value.name or op.opcode), value.type.dtype, bound, 1, "local", "tile", op.span)
                self.kept[value] = buffer
                writes.append(t.Write(result, buffer))
            if value in self.tiling.outputs and phase == self.phases.stored[value]:
                buffer = self.tiling.buffer(self.tiling.outputs[value], bound, op.span)
                writes.append(t.Write(result, buffer))
                self.stores.append(leaves.store(value, buffer))
        reduces = []
        for op in reductions:
            value = op.results[0]
            target = self._column_buffer(value, op)
            self.targets[value] = self.columns[value] = target
            reduces.append(t.Reduce(self._kind(op), builder.operand(op.operands[0], op), 1, target, accumulate, op.span, value.name))
        everything = [*ops, *reductions]
        span = next((o.span for o in reversed(everything) if o.span), None)
        return [t.Block(self.rows.live, leaves.cols.live, tuple(builder.ops), tuple(writes), tuple(reduces), span, describe(everything))]

    def column_stage(self, stage: int) -> list[t.Statement]:
        """Per-row values of a stage, and stores of those that are outputs."""
        ops, leaves = self.column_of.get(stage, []), self.column_leaves
        results = [o.results[0] for o in self.reductions_of.get(stage, ())]
        stores = [leaves.store(v, self.targets[v]) for v in results if v in self.tiling.outputs and v in self.targets]
        if not ops:
            return list(stores)

        def operand(value: Value, reader: Op) -> t.Operand:
            return t.ReadBuffer(self.columns[value], "full") if value in self.columns else leaves.operand(value, reader, "column")

        builder = BlockBuilder(self.tiling.names, self.tiling.partition, operand, leaves.lane)
        writes = []
        for op in ops:
            value = op.results[0]
            result = builder.add(op)
            if value in self.read_later:
                buffer = self._column_buffer(value, op)
                self.columns[value] = buffer
                writes.append(t.Write(result, buffer))
            if value in self.tiling.outputs:
                access = self.tiling.outputs[value]
                buffer = self.tiling.buffer(access, (self.rows.bound, as_index(1)), op.span)
                writes.append(t.Write(result, buffer))
                stores.append(leaves.store(value, buffer))
        block = t.Block(self.rows.live, as_index(1), tuple(builder.ops), tuple(writes), (), ops[-1].span, describe(ops))
        return [*leaves.take(), block, *stores]

    def _column_buffer(self, value: Value, op: Op) -> t.Buffer:
        """A buffer of one value per row."""
        name = self.tiling.names.fresh(value.name or op.opcode)
        return t.Buffer(name, value.type.dtype, (self.rows.bound, as_index(1)), 1, "local", "column", op.span)

    def _read_later(self) -> set[Value]:
        """Per-row values that a plane operation, a reduction or another stage reads."""
        stage = self.phases.stage
        found = {v for o in (*self.phases.plane, *self.phases.reductions) for v in o.operands}
        return found | {v for o in self.phases.column for v in o.operands if stage.get(v) != stage[o.results[0]]}

    def _take_stores(self) -> list[t.Statement]:
        stores = list(self.stores)
        self.stores.clear()
        return stores

    @staticmethod
    def _kind(op: Op) -> t.ReduceKind:
        return REDUCTIONS[op.opcode]


def _grouped(pairs: Iterable[tuple[int, Op]]) -> dict[int, list[Op]]:
    found: dict[int, list[Op]] = {}
    for key, op in pairs:
        found.setdefault(key, []).append(op)
    return found


def variants(make: Callable[[], Tiling], choices: TileChoices) -> tuple[t.TileKernel, ...]:
    """The whole-row kernel where rows may fit, then the split one where they may not. ``make()`` gives a fresh Tiling."""
    tiling = make()
    turned = tiling.turned() if choices.turned is not None else []
    rows_step = None
    if turned:  # a line of the cache has one element of so many rows; more where they do not stay
        phases = plan(tiling, True, choices.rematerialize)
        lines = 1 if phases.last or phases.stored else LINES_COPIED
        choices = replace(choices, rows=max(lines * CACHE_LINE // a.dtype.itemsize for a in turned))
        tiles = [a for a in tiling.inputs.values() if all(tiling.folded.covers(a)[-2:])]
        if lines > 1 and all(a in turned for a in tiles):  # they are reduced where they lie
            share = tiling.folded.rows // (SHARES * choices.rows) * choices.rows
            rows_step = minimum(max(PAGE // a.dtype.itemsize for a in turned), maximum(choices.rows, share))
    cols = tiling.folded.cols
    known, limit = cols.constant, choices.whole_row
    if not turned and known and known <= choices.short:
        choices = replace(choices, rows=max(choices.rows, 1 << (choices.short // known).bit_length() - 1))
    found: list[t.TileKernel] = []
    if limit is None or known is None or known <= limit:
        width = cols if limit is None else step_of(cols, limit, choices.align[1])
        schedule = RowSchedule(tiling, choices, plan(tiling, True, choices.rematerialize), width, rows_step)
        requires = (width - cols,) if known is None and limit is not None else ()
        found.append(
            tiling.kernel("", schedule.grid, schedule.lets, *_hoisted(schedule.whole(), schedule.grid), requires, tile=schedule.tile)
        )
    if limit is not None and (known is None or known > limit):
        tiling = make()
        schedule = RowSchedule(tiling, choices, plan(tiling, False, 0, choices.separate), None)
        found.append(tiling.kernel("_split" if found else "", schedule.grid, schedule.lets, schedule.split(), [], tile=schedule.tile))
    return tuple(found)


def _hoisted(body: list[t.Statement], grid: t.Grid) -> tuple[list[t.Statement], list[t.Statement]]:
    """Loads that every item shares (no offset depends on the item) move in front of the items: (body, once)."""
    shared = [
        s for s in body if isinstance(s, t.Load) and s.buffer.layout in ("row", "scalar") and all(o.is_constant for o in s.region.offset)
    ]
    once: list[t.Statement] = [t.Load(_single(s.buffer), s.region, s.pads, s.span) for s in shared]
    if not shared or not grid.vars:
        return body, []
    renamed = {s.buffer: _single(s.buffer) for s in shared}
    moved = set(map(id, shared))
    rest = [s for s in body if id(s) not in moved]
    return [_rebuffer(s, renamed) for s in rest], once


def _single(buffer: t.Buffer) -> t.Buffer:
    return t.replace(buffer, slots=1)


def _rebuffer(statement: t.Statement, renamed: dict[t.Buffer, t.Buffer]) -> t.Statement:
    """The statement with buffers replaced in its Block operands."""
    if not isinstance(statement, t.Block):
        return statement

    def operand(o: t.Operand) -> t.Operand:
        return t.ReadBuffer(renamed.get(o.buffer, o.buffer), o.how) if isinstance(o, t.ReadBuffer) else o

    ops = tuple(t.replace(o, operands=tuple(operand(x) for x in o.operands)) for o in statement.ops)
    writes = tuple(t.Write(operand(w.value), w.buffer) for w in statement.writes)
    reduces = tuple(t.replace(r, value=operand(r.value)) for r in statement.reduces)
    return t.replace(statement, ops=ops, writes=writes, reduces=reduces)
