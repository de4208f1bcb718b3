"""The schedules of elementwise, column and matmul groups; rows have a file of their own."""
from __future__ import annotations

from typing import cast

from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.graph import Op, Value
from pypto_dsl.compiler.index import Index, as_index, at_most, ceildiv, maximum, minimum, round_up, var
from pypto_dsl.compiler.passes.blocks import PASSED_THROUGH, BlockBuilder
from pypto_dsl.compiler.passes.reductions import REDUCTIONS
from pypto_dsl.compiler.passes.spaces import Access, explicit
from pypto_dsl.compiler.passes.tiling import WORKERS, Axis, Key, Tiling
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import TileChoices
from pypto_dsl.compiler.tile_ir import nodes as t

Pair = tuple[Index, Index]
# Operations that cost about as much as reading an operand.
CHEAP = PASSED_THROUGH | {"add", "sub", "mul", "neg", "abs", "maximum", "minimum", "cast", "where", "eq", "ne", "lt", "le", "gt", "ge"}
TURNED_ONCE = 16  # columns that lie along memory and are reduced as they are read: as many runs at a time as the widest vector has lanes


class Leaves:
    """Loads of a group's leaves: each tensor once per scope, into its own buffer."""

    def __init__(
        self, tiling: Tiling, outer: tuple[tuple[str, Index], ...], rows: Axis, cols: Axis, lane_rows: Index, lane_cols: Index
    ) -> None:
        self.tiling, self.outer, self.rows, self.cols = tiling, outer, rows, cols
        self.lanes = tiling.lane(lane_rows, lane_cols, outer)
        self.buffers: dict[Access, t.Buffer] = {}
        self.loads: list[t.Load] = []
        self.seen: set[Access] = set()

    def operand(self, value: Value, reader: Op, inside: str = "plane") -> t.Operand:
        """Read a leaf, loading it when this scope has not yet."""
        key: Key = (value, self.tiling.axes_at(value, reader, reader.operands.index(value)))
        access = self.tiling.inputs[key]
        buffer = self.buffers.get(access)
        if buffer is None:
            buffer = self.tiling.buffer(access, (self.rows.bound, self.cols.bound), reader.span)
            self.buffers[access] = buffer
        if access not in self.seen:
            self.seen.add(access)
            region = self.tiling.region(access, self.outer, (self.rows.offset, self.rows.live), (self.cols.offset, self.cols.live))
            self.loads.append(t.Load(buffer, region, (), reader.span))
        return t.ReadBuffer(buffer, self.tiling.reads(key, inside))

    def lane(self, op: Op, reader: Op) -> t.Operand:
        """A lane index in the dtype of its iota."""
        axis = self.tiling.axes_at(op.results[0], reader)[cast(int, op.attributes["axis"])]
        dtype = op.results[0].type.dtype
        if axis is None:
            return t.Constant(0, dtype)
        index = self.lanes[axis]
        if isinstance(index, t.LaneIndex):
            return t.LaneIndex(index.axis, index.base, dtype)
        return t.IndexValue(index.value, dtype) if isinstance(index, t.IndexValue) else t.Constant(0, dtype)

    def take(self) -> list[t.Statement]:
        """The loads not yet placed."""
        loads: list[t.Statement] = list(self.loads)
        self.loads.clear()
        return loads

    def store(self, value: Value, buffer: t.Buffer) -> t.Store:
        """The store of an output from its buffer."""
        region = self.tiling.region(
            self.tiling.outputs[value], self.outer, (self.rows.offset, self.rows.live), (self.cols.offset, self.cols.live)
        )
        return t.Store(region, buffer, _span(value))


def _span(value: Value) -> Span | None:
    return value.op.span if value.op is not None else None


def step_of(extent: Index, step: int, align: int) -> Index:
    """A tile extent: ``step``, or the whole extent rounded up to the geometry when that is known to be smaller."""
    size = extent.constant
    return as_index(step) if size is None or size > step else round_up(max(size, 1), align)


def describe(ops: list[Op]) -> str:
    """The user's names in a Block, for its comment."""
    names = list(dict.fromkeys(o.results[0].name for o in ops if o.results[0].name))
    return ", ".join(names)


def elementwise(tiling: Tiling, choices: TileChoices) -> t.TileKernel:
    """One item per tile; flat when the folded space has one dimension and the target wants it so."""
    flat = choices.flatten and len(tiling.folded.dims) == 2 and not tiling.folded.dims[0]
    plane = choices.turned if choices.turned is not None and tiling.turned() else choices.plane
    step_rows, step_cols = (1, choices.flat) if flat else plane
    align = (1, 1) if flat else choices.align
    rows_step, cols_step = step_of(tiling.folded.rows, step_rows, align[0]), step_of(tiling.folded.cols, step_cols, align[1])
    outer = tiling.outer()
    rows = tiling.axis(tiling.folded.rows, rows_step, rows_step, "row_block", "row", "rows")
    cols = tiling.axis(tiling.folded.cols, cols_step, cols_step, "col_block", "col", "cols")
    grid, lets = tiling.grid(outer, rows, cols)
    leaves = Leaves(tiling, outer, rows, cols, rows.offset, cols.offset)
    block, stores = plane_block(tiling, leaves, tiling.group.ops)
    return tiling.kernel("", grid, lets, [*leaves.take(), block, *stores], [], tile=f"{rows_step}x{cols_step}")


def plane_block(
    tiling: Tiling, leaves: Leaves, ops: list[Op], made: dict[Value, t.Operand] | None = None
) -> tuple[t.Block, list[t.Statement]]:
    """A Block over the whole tile with the stores of its outputs."""
    builder = BlockBuilder(tiling.names, tiling.partition, leaves.operand, leaves.lane)
    builder.made.update(made or {})
    writes: list[t.Write] = []
    stores: list[t.Statement] = []
    for op in ops:
        result = builder.add(op)
        value = op.results[0]
        if value in tiling.outputs:
            covers = tiling.folded.covers(tiling.outputs[value])
            if not all(c or e.constant == 1 for c, e in zip(covers, tiling.folded.extents, strict=True)):
                raise CompilerBug("tile", f"{value!r} is stored by a group of more elements")
            buffer = tiling.buffer(tiling.outputs[value], (leaves.rows.bound, leaves.cols.bound), op.span)
            writes.append(t.Write(result, buffer))
            stores.append(leaves.store(value, buffer))
    span = next((o.span for o in reversed(ops) if o.span), None)
    return t.Block(leaves.rows.live, leaves.cols.live, tuple(builder.ops), tuple(writes), (), span, describe(ops)), stores


def columns(tiling: Tiling, choices: TileChoices) -> t.TileKernel:
    """A core owns columns and walks down the rows: Init, one step per block of rows, Finish, then what follows on one row."""
    group, folded = tiling.group, tiling.folded
    rows_step = step_of(folded.rows, choices.column_rows, choices.align[0])
    turned = choices.turned if tiling.turned() else None
    before = [o for o in group.ops if o.results[0] not in group.after]
    across = choices.column_cols if turned is None else TURNED_ONCE if all(o.opcode in CHEAP for o in before) else turned[0]
    cols_step = step_of(folded.cols, across, choices.align[1])
    outer = tiling.outer()
    cols = tiling.axis(folded.cols, _shared(tiling, cols_step, choices), cols_step, "col_block", "col", "cols")
    grid, lets = tiling.grid(outer, cols)
    after = [o for o in group.ops if o.results[0] in group.after and o.opcode not in REDUCTIONS]
    reductions = [o for o in group.ops if o.opcode in REDUCTIONS]
    targets = {
        o.results[0]: t.Buffer(
            tiling.names.fresh(o.results[0].name or o.opcode), o.results[0].type.dtype, (as_index(1), cols.bound), 1, "local", "row", o.span
        )
        for o in reductions
    }
    parts: list[tuple[list[Op], bool]] = [([o], False) for o in reductions] if choices.separate else [(reductions, True)]
    if choices.separate and any(o.results[0] in tiling.outputs for o in before):
        parts.append(([], True))
    loops: list[t.Statement] = []
    for reduced, storing in parts:
        row, live = tiling.names.fresh("row"), tiling.names.fresh("rows")
        whole = (folded.rows % rows_step).constant == 0
        rows = Axis(var(row), rows_step if whole else var(live), rows_step, as_index(1), "", ())
        leaves = Leaves(tiling, outer, rows, cols, rows.offset, cols.offset)
        builder = BlockBuilder(tiling.names, tiling.partition, leaves.operand, leaves.lane)
        writes: list[t.Write] = []
        stores: list[t.Statement] = []
        for op in _needed(before, reduced, tiling if storing else None):
            result = builder.add(op)
            if storing and op.results[0] in tiling.outputs:
                buffer = tiling.buffer(tiling.outputs[op.results[0]], (rows.bound, cols.bound), op.span)
                writes.append(t.Write(result, buffer))
                stores.append(leaves.store(op.results[0], buffer))
        reduces = tuple(
            t.Reduce(
                REDUCTIONS[o.opcode],
                builder.operand(o.operands[0], o),
                0,
                targets[o.results[0]],
                True,
                o.span,
                o.results[0].name,
            )
            for o in reduced
        )
        span = next((o.span for o in reversed([*before, *reduced]) if o.span), None)
        block = t.Block(rows.live, cols.live, tuple(builder.ops), tuple(writes), reduces, span, describe([*before, *reduced]))
        row_lets: list[t.Statement] = [] if whole else [t.Let(live, minimum(rows_step, folded.rows - var(row)), 32)]
        kind: t.LoopKind = "reduce" if reduced else "serial"
        loop = t.For(row, as_index(0), folded.rows, rows_step, kind, (*row_lets, *leaves.take(), block, *stores))
        ends = [(REDUCTIONS[o.opcode], targets[o.results[0]], o.span) for o in reduced]
        loops += [*(t.Init(k, 0, b, folded.rows, cols.live, s) for k, b, s in ends), loop,
                  *(t.Finish(k, 0, b, folded.rows, cols.live, s) for k, b, s in ends)]
    body = loops
    one = Axis(as_index(0), as_index(1), as_index(1), as_index(1), "", ())
    body += _row_tail(tiling, outer, one, cols, after, targets)
    return tiling.kernel("", grid, lets, body, [], tile=f"{rows_step}x{cols_step}")


def _shared(tiling: Tiling, step: Index, choices: TileChoices) -> Index:
    """How many columns an item has: ``step``, or fewer where some of the run's workers would have none."""
    least = choices.column_least
    if least is None or at_most(step, least) == step or tiling.names.fresh(WORKERS) != WORKERS:
        return step
    return minimum(step, maximum(1, ceildiv(tiling.folded.cols, least * var(WORKERS))) * least)


def _needed(ops: list[Op], reduced: list[Op], tiling: Tiling | None) -> list[Op]:
    """Of ``ops`` those that the reductions need, and with ``tiling`` also those its outputs need."""
    wanted = {o for r in reduced for o in r.operands}
    if tiling is not None:
        wanted |= set(tiling.outputs)
    found: list[Op] = []
    for op in reversed(ops):
        if op.results[0] in wanted:
            wanted |= set(op.operands)
            found.append(op)
    return found[::-1]


def _row_tail(tiling: Tiling, outer: tuple[tuple[str, Index], ...], one: Axis, cols: Axis, ops: list[Op],
              targets: dict[Value, t.Buffer]) -> list[t.Statement]:
    """What follows a column reduction, on the one row of results."""
    leaves = Leaves(tiling, outer, one, cols, one.offset, cols.offset)
    body: list[t.Statement] = []
    stores: list[t.Statement] = [leaves.store(v, b) for v, b in targets.items() if v in tiling.outputs]
    if ops:
        builder = BlockBuilder(tiling.names, tiling.partition, lambda v, reader: leaves.operand(v, reader, "row"), leaves.lane)
        builder.made.update({v: t.ReadBuffer(b, "full") for v, b in targets.items()})
        writes = []
        for op in ops:
            result = builder.add(op)
            if op.results[0] in tiling.outputs:
                buffer = tiling.buffer(tiling.outputs[op.results[0]], (one.bound, cols.bound), op.span)
                writes.append(t.Write(result, buffer))
                stores.append(leaves.store(op.results[0], buffer))
        block = t.Block(as_index(1), cols.live, tuple(builder.ops), tuple(writes), (), ops[-1].span, describe(ops))
        body = [*leaves.take(), block]
    return [*body, *stores]


def matmul(tiling: Tiling, choices: TileChoices) -> t.TileKernel:
    """One item per block of the product: accumulate along k, then what follows, lane by lane."""
    group, folded = tiling.group, tiling.folded
    product = group.ops[0]
    m_step, n_step = (step_of(e, s, a) for e, s, a in zip((folded.rows, folded.cols), choices.matmul[:2], choices.align, strict=True))
    a_trans, b_trans = bool(product.attributes.get("a_trans")), bool(product.attributes.get("b_trans"))
    a, b = product.operands
    depth = minimum(a.type.live[-2 if a_trans else -1], b.type.live[-1 if b_trans else -2])
    k_step = step_of(depth, choices.matmul[2], max(choices.align))
    outer = tiling.outer()
    rows = tiling.axis(folded.rows, m_step, m_step, "row_block", "row", "rows")
    cols = tiling.axis(folded.cols, n_step, n_step, "col_block", "col", "cols")
    grid, lets = tiling.grid(outer, rows, cols)
    k = tiling.names.fresh("k")
    here = var(k), minimum(k_step, depth - var(k)) if (depth % k_step).constant != 0 else k_step
    loads = []
    for position, (value, axis, transposed) in enumerate(((a, rows, a_trans), (b, cols, b_trans))):
        access = tiling.inputs[value, tiling.axes_at(value, product, position)]
        loads.append(
            _operand_load(
                tiling, access, outer, (axis.offset, axis.live), here, (axis.bound, k_step), (position == 1) != transposed, depth, product
            )
        )
    value = product.results[0]
    target = t.Buffer(tiling.names.fresh(value.name or "acc"), value.type.dtype, (rows.bound, cols.bound), 1, "acc", "tile", product.span)
    accumulate = t.Accumulate(
        k,
        depth,
        k_step,
        tuple(loads),
        loads[0].buffer,
        loads[1].buffer,
        target,
        rows.live,
        cols.live,
        a_trans,
        b_trans,
        product.span,
        describe([product]),
    )
    leaves = Leaves(tiling, outer, rows, cols, rows.offset, cols.offset)
    body: list[t.Statement] = [accumulate]
    if value in tiling.outputs:
        body.append(leaves.store(value, target))
    if len(group.ops) > 1:
        block, stores = plane_block(tiling, leaves, group.ops[1:], {value: t.ReadBuffer(target, "full")})
        body += [*leaves.take(), block, *stores]
    return tiling.kernel("", grid, lets, body, [], tile=f"{m_step}x{n_step}x{k_step}")


def _operand_load(
    tiling: Tiling,
    access: Access,
    outer: tuple[tuple[str, Index], ...],
    own: Pair,
    k: Pair,
    bounds: Pair,
    k_first: bool,
    depth: Index,
    op: Op,
) -> t.Load:
    """The load of one step's operand: [own, k], or [k, own] when ``k_first``."""
    covers = tiling.folded.covers(access)
    lead = tuple(e if c else as_index(1) for e, c in zip(tiling.folded.extents[:-2], covers, strict=False))
    mine = tiling.folded.rows if covers[-2] else tiling.folded.cols
    if not (covers[-2] or covers[-1]):
        mine = as_index(1)
    shape = (*lead, *((depth, mine) if k_first else (mine, depth)))
    strides = (*(tiling.folded.stride(access, d) for d in tiling.folded.dims[:-2]), *access.place.stride_list()[-2:])
    tensor = "" if access.name == access.place.tensor else access.place.tensor
    param = t.Param(access.name, access.dtype, shape, access.role, explicit(shape, strides), access.place.base, tensor)
    offsets = [var(n) if c else as_index(0) for (n, _), c in zip(outer, covers, strict=False)]
    parts = (k, own) if k_first else (own, k)
    bound = (bounds[1], bounds[0]) if k_first else bounds
    region = t.Region(param, (*offsets, *(p[0] for p in parts)), (*(as_index(1) for _ in outer), *(p[1] for p in parts)))
    buffer = t.Buffer(tiling.names.fresh(f"{access.name}_tile"), access.dtype, bound, 2, "local", "tile", op.span)
    return t.Load(buffer, region, (), op.span)
