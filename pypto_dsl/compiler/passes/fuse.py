"""Fusion: the operations of a legalized graph, partitioned into groups that one tile kernel computes each.

A group has an iteration space (a shape). Every value inside is mapped onto it: each of its dimensions is a dimension of the space
or has extent 1. A group is elementwise until a reduction joins: over trailing dimensions it becomes a *row* group (several phases
over one row), over leading or middle ones a *column* group; a matrix product starts a *matmul* group that elementwise operations
may follow. Groups run in the order of their numbers; an operation may join the last group it depends on, or an earlier group moves
into that one when nothing between reads it, so the partition is acyclic by construction and found in one walk.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, Union, cast

from pypto_dsl.compiler.errors import CompilerBug, error
from pypto_dsl.compiler.graph import HOST, Graph, Op, Region, Value, uses
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.passes.places import Place, compacted, view_of
from pypto_dsl.compiler.passes.reductions import REDUCTIONS

Kind = Literal["elementwise", "row", "column", "matmul", "copy"]
Axes = tuple[int | None, ...]  # for each dimension of a value: the space's dimension, or None where its extent is 1

GENERATORS = frozenset({"constant", "extent", "iota", "full"})
SINGLES = frozenset({"insert", "empty", "load_scalar"})
VIEWS = frozenset({"reshape", "permute", "view"})
COPIES = frozenset({"clone", "expand_clone"})
# Reductions of a group that follow from one another: where rows do not stay in memory, each computes all before it again.
MOST_IN_SEQUENCE = 8


@dataclass(eq=False)
class Group:
    """One fused group. ``axes`` maps every value computed inside; ``why`` says what ended it, for `explain`."""

    number: int
    kind: Kind
    space: tuple[Index, ...]
    ops: list[Op] = field(default_factory=list)
    axes: dict[Value, Axes] = field(default_factory=dict)
    reduced: frozenset[int] = frozenset()
    after: set[Value] = field(default_factory=set)  # column groups: values that exist only after the reduction
    depth: dict[Value, int] = field(default_factory=dict)  # how many reductions a value stands behind, where it does
    fitting: tuple[frozenset[int], int] = (frozenset(), 0)  # the reduced dimensions that the first so many operations fit
    deepest: int = 0
    why: str = ""


@dataclass(eq=False)
class Single:
    """An operation that is a step of its own: a write into a tensor, an element read, a view that needs a copy, an operation that
    the host evaluates."""

    number: int
    op: Op


@dataclass(eq=False)
class Nested:
    """A loop or a branch with the items of its regions."""

    number: int
    op: Op
    bodies: list[list[Item]]


Item = Union["Group", "Single", "Nested"]


@dataclass(eq=False)
class Partition:
    """``items`` in execution order; ``groups`` are all of them, regions included; ``owner`` is the group of every computed value,
    ``cloned`` what views and generators are (made where they are read), ``numbers`` are parameters that are run-time scalars,
    ``elements`` the names of those that element reads make: the Index variable, or a name of their own."""

    items: list[Item]
    groups: list[Group]
    owner: dict[Value, Group]
    cloned: dict[Value, Op]
    numbers: frozenset[Value]
    elements: dict[Value, str]


def is_elementwise(op: Op) -> bool:
    """Whether the operation computes lane by lane."""
    definition = REGISTRY.get(op.opcode)
    if op.opcode in COPIES:
        return True
    return definition is not None and definition.family in ("elementwise", "compare", "cast")


def fuse(graph: Graph) -> Partition:
    """Partition the operations of ``graph``'s body. PT503 for operations that no compiled target lowers.

    Casts of tensors that exist already should have one reader each (`sink`): they join their reader's group.
    """
    numbers = frozenset(p for p in graph.parameters if not p.type.rank and p.name not in graph.outputs)
    read = [v for v, readers in uses(graph).items() if len(readers) > 1]
    strided = {p: Place("", p.type.shape, graph.strides[p.name]) for p in graph.parameters if p.name in graph.strides}
    fuser = _Fuser({*graph.results(), *read}, numbers, strided)
    items = fuser.region(graph.body)
    groups: list[Group] = []
    _number_groups(items, groups)
    return Partition(items, groups, fuser.owner, fuser.cloned, numbers, fuser.elements)


def _number_groups(items: list[Item], groups: list[Group]) -> None:
    """Number groups in execution order; loops nest only as deep as the user wrote them."""
    for item in items:
        if isinstance(item, Group):
            item.number = len(groups)
            groups.append(item)
        elif isinstance(item, Nested):
            for body in item.bodies:
                _number_groups(body, groups)


class _Fuser:
    """The walk's state."""

    def __init__(self, needed: set[Value], numbers: frozenset[Value], strided: dict[Value, Place]) -> None:
        self.needed = needed  # results of the graph and what several operations read: not for one reader to make on its way
        self.numbers = numbers
        self.pending: dict[Value, Op] = {}
        self.groups: dict[int, Group] = {}
        self.others: dict[int, Single | Nested] = {}
        self.first = 0  # groups below this number are closed: a region began or ended behind them
        self.owner: dict[Value, Group] = {}
        self.cloned: dict[Value, Op] = {}
        self.elements: dict[Value, str] = {}
        self.seen = strided  # and views, as if every other value lay dense in a tensor of its own
        self.readers: dict[int, set[int]] = {}  # group number -> numbers of groups that read it
        self.reads: dict[int, set[int]] = {}  # the reverse
        self.base: dict[Value, Value] = {}  # what a view shows, also under a cast
        self.viewers: dict[int, set[int]] = {}  # group number -> numbers of groups that read it in another order, so from memory
        self.viewed: dict[int, set[int]] = {}  # the reverse
        self.next = 0

    # -- the walk

    def region(self, body: Region) -> list[Item]:
        """The items of one region, in the order they run."""
        outer, above = (self.groups, self.others, self.first), set(self.pending)
        self.groups, self.others, self.first = {}, {}, self.next
        for op in body.ops:
            self.place(op)
        for value in [v for v in (*self.pending, *body.yields) if v not in above]:
            self._settle(value)
        items: dict[int, Item] = {**self.groups, **self.others}
        self.groups, self.others, _ = outer
        self.first = self.next
        return [items[n] for n in sorted(items)]

    def place(self, op: Op) -> None:
        """Give one operation its group."""
        if op.regions:
            self._nested(op)
        elif op.opcode in SINGLES or op.attributes.get(HOST):
            self._single(op)
        elif op.opcode in GENERATORS or (is_elementwise(op) and not op.results[0].type.rank and all(map(self._uniform, op.operands))):
            self.cloned[op.results[0]] = op  # made where it is read
        elif op.opcode == "cast" and self._exists(op.operands[0]) and op.results[0] not in self.needed:
            self.pending[op.results[0]] = op
            self.base[op.results[0]] = self.base.get(op.operands[0], op.operands[0])
        elif op.opcode in VIEWS:
            self._settle(op.operands[0])
            self._view(op)
        elif op.opcode == "matmul":
            for operand in op.operands:
                self._settle(operand)
            self._start(op, "matmul", op.results[0].type.live)
        elif op.opcode in REDUCTIONS:
            self._reduction(op)
        elif is_elementwise(op):
            self._elementwise(op)
        else:
            raise error("PT503", f"`{op.opcode}` is not lowered to compiled targets", op.span,
                        help='run it with target="interpreter", or write it with elementwise operations, reductions and matmul')

    def _nested(self, op: Op) -> None:
        for value in (*op.operands, *(y for r in op.regions for y in r.yields)):
            self._settle(value)
        number, self.next = self.next, self.next + 1
        self.others[number] = Nested(number, op, [self.region(r) for r in op.regions])
        self.first = self.next

    def _single(self, op: Op) -> None:
        for operand in op.operands:
            self._settle(operand)
        if op.opcode == "load_scalar":
            value = op.results[0]
            self.elements[value] = str(op.attributes.get("symbol") or f"{value.name or 'element'}_{self.next}")
        self.others[self.next] = Single(self.next, op)
        self.next += 1
        self.first = self.next

    def _uniform(self, value: Value) -> bool:
        """A run-time scalar, or computed from such: rank 0, in no group, and no element of a tensor."""
        op = self.cloned.get(value, value.op)
        made = value in self.numbers or (value in self.cloned and op is not None and op.opcode not in VIEWS)
        return value.type.rank == 0 and value not in self.owner and (made or (op is not None and op.opcode == "load_scalar"))

    def _exists(self, value: Value) -> bool:
        """A tensor that no group computes."""
        return value.type.rank > 0 and value not in self.owner and value not in self.pending

    def _settle(self, value: Value) -> None:
        """A cast whose reader needs it in memory gets a group of its own."""
        op = self.pending.pop(value, None)
        if op is not None:
            self._start(op, "elementwise", value.type.live)

    def _start(self, op: Op, kind: Kind, space: tuple[Index, ...], why: str = "") -> Group:
        group = Group(self.next, kind, space, why=why)
        self.groups[group.number] = group
        self.next += 1
        self._join(group, op, {op.results[0]: _identity(space)})
        return group

    def _join(self, group: Group, op: Op, axes: dict[Value, Axes]) -> None:
        for operand in op.operands:
            made = self.pending.pop(operand, None)
            if made is not None:
                live = operand.type.live
                mapped = _identity(live) if op.opcode in REDUCTIONS else next(iter(axes.values()))[-len(live):]
                self._join(group, made, {operand: covered(operand, mapped, group.space)})
        group.ops.append(op)
        group.axes.update(axes)
        depth = max((group.depth.get(o, 0) for o in op.operands), default=0) + (op.opcode in REDUCTIONS)
        if depth:
            group.depth.update(dict.fromkeys(axes, depth))
            group.deepest = max(group.deepest, depth)
        for value in op.results:
            self.owner[value] = group
        for operand in op.operands:
            source = self.owner.get(operand)
            shown = self._shown(operand) if source is None else source
            if shown is not None and shown is not group:
                self.readers.setdefault(shown.number, set()).add(group.number)
                self.reads.setdefault(group.number, set()).add(shown.number)
                if source is None or not _lane_by_lane(op, operand, source.axes[operand], next(iter(axes.values())), group.space):
                    self.viewers.setdefault(shown.number, set()).add(group.number)
                    self.viewed.setdefault(group.number, set()).add(shown.number)

    def _shown(self, value: Value) -> Group | None:
        """The group that computes what ``value`` is a view of."""
        return None if value in self.owner or value not in self.base else self.owner.get(self.base[value])

    def _open(self, value: Value) -> Group | None:
        """The group of a value when operations may still join it."""
        group = self.owner.get(value)
        return group if group is not None and group.number >= self.first else None

    def _sources(self, op: Op) -> list[Group]:
        """Groups of the operands, last first."""
        found = {g.number: g for o in op.operands if (g := self.owner.get(o)) is not None and g.number >= self.first}
        return [found[n] for n in sorted(found, reverse=True)]

    # -- one rule per sort of operation

    def _elementwise(self, op: Op) -> None:
        sources = self._sources(op)
        if sources:
            group = sources[0]
            for other in sources[1:]:
                if other.space == group.space and self._merge(other, group):
                    group = self.owner[next(iter(other.axes))]
            axes = self._result_axes(op, group)
            if axes is not None and self._admits(group, op, axes):
                if group.kind == "column" and any(o in group.after for o in op.operands):
                    group.after.add(op.results[0])
                self._join(group, op, {op.results[0]: axes})
                return
            group.why = group.why or f"`{op.opcode}` iterates over another shape or reads what is only known at the end"
        self._start(op, "elementwise", op.results[0].type.live)

    def _reduction(self, op: Op) -> None:
        operand = op.operands[0]
        group = self._open(operand)
        shape = operand.type.live
        dims = _dims(op)
        if group is not None:
            mapped = group.axes[operand]
            reduced = frozenset(a for d in dims if (a := mapped[d]) is not None)
            full = _live(group.space) <= frozenset(a for a in mapped if a is not None)
            kind = _reduction_kind(group.space, reduced)
            fits = group.kind == "elementwise" or (group.kind == kind and group.reduced == reduced and operand not in group.after)
            shallow = group.depth.get(operand, 0) < MOST_IN_SEQUENCE
            if full and kind is not None and fits and shallow and group.kind != "matmul" and self._leaves_fit(group, reduced):
                group.kind, group.reduced = kind, reduced
                self._join(group, op, {op.results[0]: _after_reduction(op, mapped)})
                if kind == "column":
                    group.after.add(op.results[0])
                return
            group.why = group.why or (f"`{op.opcode}` reduces over other dimensions" if shallow else
                                      f"`{op.opcode}` would be reduction {MOST_IN_SEQUENCE + 1} in sequence")
        space_kind = _reduction_kind(shape, frozenset(d for d in dims if shape[d].constant != 1))
        if space_kind is None:
            raise CompilerBug("fuse", f"{op.opcode} over axes {list(dims)}, which legalization joins")
        group = Group(self.next, space_kind, shape)
        self.next += 1
        self.groups[group.number] = group
        mapped = _identity(shape)
        group.reduced = frozenset(a for d in dims if (a := mapped[d]) is not None)
        self._join(group, op, {op.results[0]: _after_reduction(op, mapped)})
        if space_kind == "column":
            group.after.add(op.results[0])

    def _view(self, op: Op) -> None:
        """A reshape that only adds or drops extents of 1 stays inside its group; other views are of materialized values."""
        operand, result = op.operands[0], op.results[0]
        group = self._open(operand)
        if group is not None and op.opcode == "reshape" and group.kind in ("row", "elementwise", "column"):
            real = [a for a, e in zip(group.axes[operand], operand.type.live, strict=True) if e.constant != 1]
            if [e for e in operand.type.live if e.constant != 1] == [e for e in result.type.live if e.constant != 1]:
                queue = iter(real)
                axes = tuple(None if e.constant == 1 else next(queue) for e in result.type.live)
                if operand in group.after:
                    group.after.add(result)
                self._join(group, op, {result: axes})
                return
        generator = self.cloned.get(operand)
        if generator is not None and generator.opcode == "full":
            self.cloned[result] = Op("full", (), (result.type,), {**generator.attributes, "shape": result.type.shape}, span=op.span)
            return
        made = None
        if not self._uniform(operand) and (generator is None or generator.opcode in VIEWS):
            made = view_of(self.seen.get(operand) or Place("", operand.type.shape), op, result)
        self.seen[result] = made or compacted("", result)
        if made is None:
            self._single(op)  # a copy
        else:
            self.base[result] = self.base.get(operand, operand)
            self.cloned[result] = op

    # -- legality

    def _result_axes(self, op: Op, group: Group) -> Axes | None:
        """How the result lies in the group's space, or None when it does not."""
        result = op.results[0].type.live
        axes: list[int | None] = [None] * len(result)
        for operand in op.operands:
            if self.owner.get(operand) is not group:
                continue
            offset = len(result) - operand.type.rank
            for i, axis in enumerate(group.axes[operand]):
                if axis is None or result[offset + i].constant == 1:
                    continue
                if (axes[offset + i] is not None and axes[offset + i] != axis) or result[offset + i] != group.space[axis]:
                    return None
                axes[offset + i] = axis
        for i, extent in enumerate(result):
            if axes[i] is None and extent.constant != 1:
                axes[i] = self._stretched(axes, i, extent, group)
                if axes[i] is None:
                    return None
        used = [a for a in axes if a is not None]
        if len(set(used)) != len(used) or used != sorted(used):
            return None
        return tuple(axes)

    def _stretched(self, axes: list[int | None], at: int, extent: Index, group: Group) -> int | None:
        """The space's dimension that a leaf operand brings at position ``at``: the one aligned from the right with the same extent."""
        axis = at - len(axes) + len(group.space)
        return axis if axis >= 0 and group.space[axis] == extent and axis not in axes else None

    def _admits(self, group: Group, op: Op, axes: Axes) -> bool:
        """Whether the value may live in the group: full over the space, or one of its reduced forms, read where it is known."""
        live = _live(group.space)
        covered = frozenset(a for a in axes if a is not None)
        if any(self._foreign_axes(group, o, op, axes) is None for o in op.operands):
            return False
        late = any(o in group.after for o in op.operands)
        if group.kind in ("elementwise", "matmul"):
            return covered == live
        if group.kind == "row":
            return covered == live or covered == live - group.reduced
        return (covered == live and not late) or (covered == live - group.reduced and late)

    def _foreign_axes(self, group: Group, operand: Value, op: Op, axes: Axes) -> Axes | None:
        """The axes of an operand that is read from outside, () when inside or uniform; None when it cannot be read by this group."""
        shown = self._shown(operand)
        if shown is not None and shown.number >= group.number:
            return None
        if self.owner.get(operand) is group or self._uniform(operand) or operand.type.rank == 0:
            return ()
        shape = operand.type.live
        mapped = axes[len(axes) - len(shape):]
        covered = frozenset(a for a, e in zip(mapped, shape, strict=True) if a is not None and e.constant != 1)
        made = self.cloned.get(operand)
        if made is not None and made.opcode in GENERATORS:
            return mapped
        partly = covered & group.reduced
        return mapped if not partly or partly == group.reduced else None

    def _leaves_fit(self, group: Group, reduced: frozenset[int]) -> bool:
        """Whether every outside operand of an elementwise group covers all of ``reduced`` or none of it. Each operation is asked once."""
        known, count = group.fitting
        for op in islice(group.ops, count if known == reduced else 0, None):
            axes = group.axes[op.results[0]]
            for operand in op.operands:
                if self.owner.get(operand) is group or operand.type.rank == 0:
                    continue
                mapped = axes[len(axes) - operand.type.rank:]
                covered = frozenset(a for a, e in zip(mapped, operand.type.live, strict=True) if a is not None and e.constant != 1)
                partly = covered & reduced
                if partly and partly != reduced:
                    return False
        group.fitting = (reduced, len(group.ops))
        return True

    def _merge(self, early: Group, late: Group) -> bool:
        """Move an earlier group into a later one (or the reverse) when nothing between reads it."""
        whole = {"elementwise", "row"}
        if (early.kind, late.kind) != ("elementwise", "matmul") and not {early.kind, late.kind} <= whole:
            return False
        if early.kind == "row" and late.kind == "row" and early.reduced != late.reduced:
            return False
        if early.deepest + late.deepest > MOST_IN_SEQUENCE and early.kind == late.kind == "row":
            return False
        if any(n < late.number for n in self.readers.get(early.number, ())) or late.number in self.viewers.get(early.number, ()):
            return False
        reduced = early.reduced | late.reduced
        if reduced and not (self._leaves_fit(early, reduced) and self._leaves_fit(late, reduced)):
            return False
        at = 1 if late.kind == "matmul" else 0  # a matmul group begins with its product
        # the smaller moves into the larger, so that a value moves seldom however often groups merge
        kept, moved = (early, late) if len(early.axes) > len(late.axes) and not at else (late, early)
        if kept is early:
            kept.ops += moved.ops
        else:
            kept.ops[at:at] = moved.ops
        for value in moved.axes:
            self.owner[value] = kept
        kept.axes.update(moved.axes)
        kept.depth.update(moved.depth)
        kept.deepest = max(kept.deepest, moved.deepest)
        kept.after |= moved.after
        kept.kind = "row" if "row" in (early.kind, late.kind) else late.kind
        kept.reduced, kept.space, kept.why = reduced, late.space, late.why
        kept.fitting = (reduced, len(kept.ops)) if reduced else (frozenset(), 0)
        del self.groups[early.number]
        self._renumber(early.number, late.number)
        kept.number = late.number
        self.groups[late.number] = kept
        return True

    def _renumber(self, early: int, late: int) -> None:
        """Who read or was read by the group ``early`` does so with ``late``, into which it has gone."""
        pairs = (self.readers, self.reads), (self.viewers, self.viewed)
        for ours, theirs in (*pairs, *((b, a) for a, b in pairs)):
            for other in ours.pop(early, ()):
                theirs[other].discard(early)
                if other != late:
                    theirs[other].add(late)
                    ours.setdefault(late, set()).add(other)


def _lane_by_lane(op: Op, operand: Value, own: Axes, result: Axes, space: tuple[Index, ...]) -> bool:
    """Whether an operation reads an operand of another group in the order in which that group makes it."""
    if op.opcode == "matmul":
        return False
    read = _identity(operand.type.live) if op.opcode in REDUCTIONS else covered(operand, result[len(result) - operand.type.rank:], space)
    return all(a is None or b is None or a == b for a, b in zip(own, read, strict=True))


def _dims(op: Op) -> tuple[int, ...]:
    rank = op.operands[0].type.rank
    dim = op.attributes.get("dim")
    if dim is None:
        return tuple(range(rank))
    given = dim if isinstance(dim, tuple) else (dim,)
    return tuple(sorted(cast(int, d) % rank for d in given))


def covered(value: Value, axes: Iterable[int | None], space: tuple[Index, ...]) -> Axes:
    """``axes`` without those along which the value is repeated: its one element there may be a window that holds one or none."""
    extents = zip(axes, value.type.shape, value.type.live, strict=False)
    return tuple(None if a is None or live.constant == 1 or (e.constant == 1 and live != space[a]) else a for a, e, live in extents)


def _identity(space: tuple[Index, ...]) -> Axes:
    """Every dimension maps to itself, those of extent 1 to none."""
    return tuple(None if e.constant == 1 else i for i, e in enumerate(space))


def _live(space: Iterable[Index]) -> frozenset[int]:
    """The dimensions that are not statically 1."""
    return frozenset(i for i, e in enumerate(space) if e.constant != 1)


def _reduction_kind(space: tuple[Index, ...], reduced: frozenset[int]) -> Kind | None:
    """row: the reduced dimensions end the space (extents of 1 aside); column: neighbours elsewhere; None: not neighbours."""
    live = sorted(_live(space))
    positions = [live.index(a) for a in sorted(reduced)]
    if positions and positions != list(range(positions[0], positions[0] + len(positions))):
        return None
    return "row" if not positions or positions[-1] == len(live) - 1 else "column"


def _after_reduction(op: Op, mapped: Axes) -> Axes:
    dims = set(_dims(op))
    if op.attributes.get("keepdim"):
        return tuple(None if i in dims else a for i, a in enumerate(mapped))
    return tuple(a for i, a in enumerate(mapped) if i not in dims)
