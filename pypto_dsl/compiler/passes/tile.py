"""Tiling: every fused group becomes a structured TileKernel (or two variants), and the graph a Program."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from pypto_dsl.compiler.dtypes import I64
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.graph import COMMON_ATTRIBUTES, Graph, Op, Value, walk
from pypto_dsl.compiler.index import Index, as_index, maximum
from pypto_dsl.compiler.ops.bounds import repeated, unproved
from pypto_dsl.compiler.ops.live import is_never_negative
from pypto_dsl.compiler.passes import rows, schedules, storage
from pypto_dsl.compiler.passes.blocks import BlockBuilder, Names
from pypto_dsl.compiler.passes.fuse import VIEWS, Group, Item, Nested, Partition, Single
from pypto_dsl.compiler.passes.numbers import host_numbers
from pypto_dsl.compiler.passes.spaces import Folded
from pypto_dsl.compiler.passes.storage import Storage
from pypto_dsl.compiler.passes.tiling import Tiling, Uses
from pypto_dsl.compiler.targets import Target, TileChoices
from pypto_dsl.compiler.tile_ir import nodes as t


def tile(graph: Graph, partition: Partition, target: Target, choices: TileChoices | None = None) -> t.Program:
    """The program of a partitioned graph under the target's tile choices (or others, tried by placement)."""
    places = storage.assign(graph, partition)
    steps, workspaces = host_numbers(_Steps(graph, partition, places, target, choices or target.tile).program(), places.workspaces)
    checks = tuple((c.left, c.right, c.span) for c in graph.checks)
    scalars = _scalars(graph, steps, checks)
    return t.Program(graph.name, target.name, tuple(places.arguments), scalars, workspaces, steps, checks)


class _Steps:
    """Turns items into steps, regions inside."""

    def __init__(self, graph: Graph, partition: Partition, places: Storage, target: Target, choices: TileChoices) -> None:
        self.graph, self.partition, self.places, self.target, self.choices = graph, partition, places, target, choices
        self.copied = self.read = 0
        self.order = {op: i for i, op in enumerate(walk(graph.body))}
        self.checked = {(c.left, c.right) for c in graph.checks}

    def program(self) -> tuple[t.Step, ...]:
        return (*self.items(self.partition.items), *map(self.copy, self.places.copies))

    def items(self, items: list[Item]) -> tuple[t.Step, ...]:
        found: list[t.Step] = []
        direct = self.direct(items)
        for item in items:
            found += self.guards(item, direct)
            if isinstance(item, Group):
                found.append(group_kernels(self.graph, item, self.places, self.partition, self.target, self.choices))
                continue
            found += map(self.copy, self.places.instead.get(item.op, ()))
            if isinstance(item, Nested):
                found += self.nested(item)
            elif item.op.opcode == "load_scalar":
                found.append(self.element(item.op))
            elif item.op.opcode not in ("insert", "empty", *VIEWS):
                found.append(self.host(item.op))
        return tuple(found)

    def direct(self, items: list[Item]) -> dict[Group, list[Op]]:
        """The writes of a region whose values a group of it puts straight into their windows."""
        groups = {item for item in items if isinstance(item, Group)}
        found: dict[Group, list[Op]] = {}
        for item in items:
            if isinstance(item, Single) and item.op.opcode == "insert" and item.op.operands[1] in self.places.writes:
                group = self.partition.owner.get(item.op.operands[1])
                if group in groups:
                    found.setdefault(group, []).append(item.op)
        return found

    def guards(self, item: Item, direct: Mapping[Group, Sequence[Op]]) -> list[t.Step]:
        """What must hold before an item touches memory and is not proved: windows it writes, elements it reads, axes it takes one of."""
        if isinstance(item, Nested):
            return []
        ops = list(item.ops) if isinstance(item, Group) else [item.op]
        mine = set(ops)
        if isinstance(item, Group):  # a value that a group writes straight into a window is guarded here, before the write itself
            ops += direct.get(item, ())
        elif item.op.opcode == "insert":
            group = self.partition.owner.get(item.op.operands[1])
            if group is not None and item.op in direct.get(group, ()):
                ops = []
        seen: set[Op] = set()
        while ops:
            op = ops.pop()
            if op in seen:
                continue
            seen.add(op)
            if op in mine or op.opcode in VIEWS:
                ops += [made for o in op.operands if (made := self.partition.cloned.get(o)) is not None and made.opcode in VIEWS]
        return [t.GuardStep(needed, available, op.opcode, op.span) for op in sorted(seen, key=self.order.__getitem__)
                for needed, available in self.unproved(op)]

    def unproved(self, op: Op) -> list[tuple[Index, Index]]:
        """Bounds of an operation that are neither proved nor checked before the program runs."""
        found: list[tuple[Index, Index]] = []
        if op.opcode in ("insert", "load_scalar"):
            offsets = [as_index(o) for o in cast("tuple[Index | int, ...]", op.attributes["offsets"])]
            extents = op.operands[1].type.live if op.opcode == "insert" else (as_index(1),) * len(offsets)
            for offset, extent, have in zip(offsets, extents, op.operands[0].type.shape, strict=True):
                found += unproved(self.graph, offset, extent, have)
        elif op.opcode == "reshape" and (window := op.operands[0].op) is not None and window.opcode == "view":
            seen = op.operands[0].type  # an axis of extent 1 that a reshape drops holds one element, not none
            offsets = [as_index(o) for o in cast("tuple[Index | int, ...]", window.attributes["offsets"])]
            for offset, e, live, have in zip(offsets, seen.shape, seen.live, window.operands[0].type.live, strict=True):
                if e.constant == 1 and live.constant != 1:
                    found += unproved(self.graph, offset, as_index(1), have)
        else:
            for offset, have in repeated(op):
                found += unproved(self.graph, offset, as_index(1), have)
        return [(n, a) for n, a in found if (maximum(n, a), a) not in self.checked and not is_never_negative(a - n, self.graph)]

    def nested(self, item: Nested) -> tuple[t.Step, ...]:
        op = item.op
        bodies = [(*self.items(body), *map(self.copy, self.places.closing.get(region, ())))
                  for body, region in zip(item.bodies, op.regions, strict=True)]
        if op.opcode == "loop":
            start, stop, step = (as_index(cast("Index | int", op.attributes[k])) for k in ("start", "stop", "step"))
            return (t.LoopStep(str(op.attributes["index"]), start, stop, step, bodies[0], op.span),)
        reads: list[t.Step] = []

        def read(value: Value, reader: Op) -> t.Operand:
            """A number that lies in memory."""
            self.read += 1
            name = f"{value.name or 'number'}_read{self.read}"
            reads.append(t.ReadElement(name, "", self.param(value), (), reader.span))
            return t.ScalarRead(name, value.type.dtype)

        builder = BlockBuilder(Names(), self.partition, read, self._no_lane)
        condition = builder.operand(op.operands[0], op)
        return (*reads, t.BranchStep(tuple(builder.ops), condition, bodies[0], bodies[1], op.span))

    def _no_lane(self, value: object, reader: Op) -> t.Operand:
        raise CompilerBug("tile", f"{value!r} is read as a number by `{reader.opcode}`")

    def param(self, value: Value, live: bool = True) -> t.Param:
        place = self.places.places[value]
        shape = value.type.live if live else place.shape
        strides = place.strides if shape == place.shape else place.stride_list()
        return t.Param(place.tensor, value.type.dtype, shape, "in", strides, place.base)

    def element(self, op: Op) -> t.Step:
        symbol = op.attributes.get("symbol")
        offsets = tuple(as_index(o) for o in cast("tuple[Index | int, ...]", op.attributes["offsets"]))
        return t.ReadElement(self.partition.elements[op.results[0]], str(symbol or ""), self.param(op.operands[0]), offsets, op.span)

    def host(self, op: Op) -> t.Step:
        operands: list[t.Param | t.Constant | t.ScalarRead | t.IndexValue] = []
        builder = BlockBuilder(Names(), self.partition, self._no_lane, self._no_lane)
        for operand in op.operands:
            if operand in self.places.places and operand not in self.partition.numbers:
                operands.append(self.param(operand))
            else:
                operands.append(cast(t.Constant, builder.operand(operand, op)))
        attributes = tuple((k, v) for k, v in op.attributes.items() if k not in COMMON_ATTRIBUTES)
        results = tuple(t.replace(self.param(r), role="out") for r in op.results)
        return t.HostCall(op.opcode, tuple(operands), results, attributes, op.span)

    def copy(self, copy: storage.Copy) -> t.Step:
        """A kernel that copies the live part of a placed or generated value into a place."""
        self.copied += 1
        value = copy.value
        op = Op("clone", (value,), (value.type,), names=(copy.place.tensor,), span=value.op.span if value.op is not None else None)
        result = op.results[0]
        space = value.type.live
        group = Group(len(self.partition.groups) + self.copied, "elementwise", space, [op],
                      {result: tuple(None if e.constant == 1 else i for i, e in enumerate(space))})
        self.places.places[result] = self.places.writes[result] = copy.place
        self.partition.owner[result] = group
        return group_kernels(self.graph, group, self.places, self.partition, self.target, self.choices)


def group_kernels(graph: Graph, group: Group, places: Storage, partition: Partition, target: Target, choices: TileChoices,
                  ) -> tuple[t.TileKernel, ...]:
    """The variants of one group, in order of preference."""

    def tiling() -> Tiling:
        return Tiling(graph, group, places, partition, target)

    wish = user_tile(group) if choices.obey else None
    if wish is not None:
        choices = obeying(choices, tiling().folded, wish)
    if group.kind == "row":
        return rows.variants(tiling, choices)
    if group.kind == "column":
        return (schedules.columns(tiling(), choices),)
    if group.kind == "matmul":
        return (schedules.matmul(tiling(), choices),)
    return (schedules.elementwise(tiling(), choices),)


def user_tile(group: Group) -> tuple[int, ...] | None:
    """The vector tile shape that the user set for the group: that of its last operation over the whole space which has one."""
    live = frozenset(i for i, e in enumerate(group.space) if e.constant != 1)
    for op in reversed(group.ops):
        full = frozenset(a for a in group.axes[op.results[0]] if a is not None) == live or not group.reduced
        if op.tile is not None and full and len(op.tile) >= len(group.space):
            return op.tile[len(op.tile) - len(group.space):]
    return next(
        (o.tile[len(o.tile) - len(group.space) :] for o in group.ops if o.tile is not None and len(o.tile) >= len(group.space)), None
    )


def obeying(choices: TileChoices, folded: Folded, wish: tuple[int, ...]) -> TileChoices:
    """The choices with the user's tile, folded like the space and rounded up to the target's geometry.

    Reductions take no more of it at a time than the target can; a row of unknown length stays whole when it fits the tile.
    """

    def size(dims: tuple[int, ...], align: int) -> int:
        total = 1
        for dim in reversed(dims):
            extent = folded.space[dim].constant
            total *= wish[dim] if extent is None else min(wish[dim], extent)
            if extent is None or wish[dim] < extent:
                break
        return -(-total // align) * align

    rows, cols = size(folded.dims[-2], choices.align[0]), size(folded.dims[-1], choices.align[1])
    extent, most = folded.cols.constant, choices.whole_row
    shorter = cols if most is None else min(cols, most)
    whole = shorter if extent is None else most if cols >= extent else 0
    across = max(rows, cols) if choices.across is None else choices.across
    return replace(choices, flat=cols, rows=min(rows, across), cols=cols, plane=(rows, cols), whole_row=whole, column_rows=rows,
                   column_cols=min(cols, across))


def _scalars(graph: Graph, steps: tuple[t.Step, ...], checks: object) -> tuple[t.Scalar, ...]:
    """What the caller must give: extents and the user's numbers. Loop indices and elements are made on the way."""
    shapes = tuple(p.type.shape for p in graph.parameters)
    given = Uses.below((_control(steps), checks, shapes))
    kernels = {s.name: s for kernel in _kernels(steps) for s in kernel.scalars}
    wanted = given.variables | given.numbers.keys() | kernels.keys()
    extents = [t.Scalar(n, I64) for n, s in graph.symbols.items() if n in wanted and s.kind in ("dim", "scalar", "stride")]
    numbers = [t.Scalar(p.name, p.type.dtype) for p in graph.parameters if p.name in wanted]
    return (*extents, *numbers, *(s for s in kernels.values() if s.workers))


def _kernels(steps: tuple[t.Step, ...]) -> list[t.TileKernel]:
    """Every kernel of the steps, those inside loops and branches included."""
    found: list[t.TileKernel] = []
    for step in steps:
        if isinstance(step, tuple):
            found += step
        elif isinstance(step, t.LoopStep):
            found += _kernels(step.steps)
        elif isinstance(step, t.BranchStep):
            found += _kernels((*step.steps, *step.orelse))
    return found


def _control(steps: tuple[t.Step, ...]) -> list[object]:
    """What the host itself evaluates: bounds, conditions, elements, operands of host calls."""
    found: list[object] = []
    for step in steps:
        if isinstance(step, t.LoopStep):
            found += [step.start, step.stop, step.step, *_control(step.steps)]
        elif isinstance(step, t.BranchStep):
            found += [step.ops, step.condition, *_control((*step.steps, *step.orelse))]
        elif not isinstance(step, tuple):
            found.append(step)
    return found
