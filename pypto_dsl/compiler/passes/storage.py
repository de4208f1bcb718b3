"""Where values live: which tensor of the program each materialized value is, and how views see it.

A value that a group hands on is materialized: in the output parameter it is written to, in a returned tensor, or in a workspace.
Reshapes, permutations and slices are views: a base and strides. A write (`insert`), a loop and a branch keep the tensor they work on
when its old content is dead behind them, and copy it first when it is not: in place is a decision here, never a meaning.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.graph import Graph, Op, Region, Value
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.passes.blocks import Names
from pypto_dsl.compiler.passes.fuse import VIEWS, Group, Item, Nested, Partition, Single
from pypto_dsl.compiler.passes.liveness import Liveness, disjoint
from pypto_dsl.compiler.passes.places import Place, compacted, place_at, view_of
from pypto_dsl.compiler.tile_ir.nodes import Param, Role, Workspace


@dataclass(frozen=True)
class Copy:
    """Copy the live part of ``value`` into a place."""

    value: Value
    place: Place


@dataclass
class Storage:
    """Places of values, the program's tensors, which values groups write where, and the copies behind or inside items.

    ``instead[op]`` are copies that stand for a write or go before a loop or branch, ``closing[region]`` those at the end of a region,
    ``copies`` those at the very end. ``reserved`` are names that a kernel must not use for anything else, ``order`` is where the graph
    has its symbols and, behind them, its parameters.
    """

    places: dict[Value, Place] = field(default_factory=dict)
    arguments: list[Param] = field(default_factory=list)
    workspaces: list[Workspace] = field(default_factory=list)
    writes: dict[Value, Place] = field(default_factory=dict)
    instead: dict[Op, list[Copy]] = field(default_factory=dict)
    closing: dict[Region, list[Copy]] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)
    reserved: frozenset[str] = frozenset()
    order: dict[str, int] = field(default_factory=dict)


def assign(graph: Graph, partition: Partition) -> Storage:
    """Give every materialized value its tensor."""
    return _Assigner(graph, partition).run()


class _Assigner:
    """The walk over items, outermost region first."""

    def __init__(self, graph: Graph, partition: Partition) -> None:
        self.graph, self.partition = graph, partition
        self.storage = Storage()
        self.liveness = Liveness(graph)
        self.names = Names({p.name for p in graph.parameters} | set(graph.symbols))
        self.parameters = {p.name: p for p in graph.parameters}
        self.results = frozenset(graph.results())
        self.lying_in: dict[str, set[Value]] = {}  # the values whose places are in a tensor, by its name
        self.last: dict[Group, int] = {}  # where the last operation of a group stands
        self.final: dict[Value, str] = {}  # values that end in an output parameter, by every name on their way
        self.preferred: dict[str, list[Op]] = {}  # by tensor, where groups begin that write a carried value into it

    def run(self) -> Storage:
        storage, graph = self.storage, self.graph
        for p in graph.parameters:
            self._put(p, self._whole(p.name, p))
            if p.type.rank or p.name in graph.outputs:
                storage.arguments.append(self._argument(p))
        for name, value in graph.outputs.items():
            self._chain(name, value)
            self._direct(name, value)
        for i, value in enumerate(graph.returns):
            name = self.names.fresh(f"result{i}" if len(graph.returns) > 1 else "result")
            storage.arguments.append(Param(name, value.type.dtype, value.type.shape, "out"))
            self._direct(name, value)
        self._items(self.partition.items)
        returned = [a.name for a in storage.arguments[len(storage.arguments) - len(graph.returns):]]
        final = [(v, self._whole(n, v)) for n, v in (*graph.outputs.items(), *zip(returned, graph.returns, strict=True))]
        storage.copies = self._exchange([Copy(v, place) for v, place in final if self._elsewhere(v, place)])
        storage.reserved = frozenset({*(a.name for a in storage.arguments), *(w.name for w in storage.workspaces),
                                      *(p.name for p in graph.parameters), *graph.symbols})
        storage.order = {n: i for i, n in enumerate(dict.fromkeys((*graph.symbols, *(p.name for p in graph.parameters))))}
        return storage

    # ---- places

    def _whole(self, name: str, value: Value) -> Place:
        """The place of a value that is a parameter's content or a returned tensor."""
        return Place(name, value.type.shape, self.graph.strides.get(name))

    def _is_whole(self, place: Place) -> bool:
        """Whether a place is its tensor, and no window or other view of it."""
        strides = self.graph.strides.get(place.tensor)
        return not place.base.terms and (place.dense if strides is None else place.strides == strides)

    def _put(self, value: Value, place: Place) -> None:
        before = self.storage.places.get(value)
        if before is not None:
            self.lying_in[before.tensor].discard(value)
        self.storage.places[value] = place
        self.lying_in.setdefault(place.tensor, set()).add(value)

    def place(self, value: Value) -> Place:
        """Where a value is, giving it a workspace when it has no place yet."""
        found = self.storage.places.get(value)
        if found is not None:
            return found
        op = value.op
        if op is not None and op.opcode in VIEWS and self.partition.cloned.get(value) is op:
            seen = view_of(self.place(op.operands[0]), op, value)
            if seen is None:
                raise CompilerBug("storage", f"`{op.opcode}` of a value that does not lie where fusion took it to be")
            self._put(value, seen)
            return seen
        found = self._workspace(value)
        if value in self.partition.owner:
            self.storage.writes[value] = found
        return found

    def _workspace(self, value: Value, name: str = "") -> Place:
        name = self.names.fresh(name or value.name or "work")
        self.storage.workspaces.append(Workspace(name, value.type.dtype, value.type.shape))
        place = Place(name, value.type.shape)
        self._put(value, place)
        return place

    def _argument(self, p: Value) -> Param:
        role: Role = "in"
        if p.name in self.graph.outputs:
            role = "inout" if self.liveness.is_read(p) else "out"
        return Param(p.name, p.type.dtype, p.type.shape, role, self.graph.strides.get(p.name))

    def _chain(self, name: str, value: Value) -> None:
        """Remember every value that becomes an output by writes, loops and branches."""
        work = [value]
        while work:
            v = work.pop()
            if v in self.final:
                continue
            self.final[v] = name
            op = v.op
            if op is None:
                continue
            if op.opcode == "insert":
                work.append(op.operands[0])
            elif op.regions:
                k = op.results.index(v)
                work += [r.yields[k] for r in op.regions]
                if op.opcode == "loop":
                    work += [op.operands[k], op.regions[0].arguments[k]]

    def _direct(self, name: str, value: Value) -> None:
        """Let a group write ``value`` straight into ``name`` where nothing forbids it."""
        group = self.partition.owner.get(value)
        if group is None or value in self.storage.places or self._old_content_read(group, name, value):
            return
        place = self._whole(name, value)
        if value.type.live != value.type.shape:
            return
        self._put(value, place)
        self.storage.writes[value] = place

    def _old_content_read(self, writer: Group, name: str, value: Value) -> bool:
        """Whether the old content of a parameter is still read when a group writes it: later, by other lanes, or by a product."""
        parameter = self.parameters.get(name)
        if parameter is None:
            return False
        seen = self.liveness.aliases(parameter)
        if not seen.isdisjoint(self.results):
            return True
        position = self.liveness.position
        for op in self.liveness.readers(seen):
            last = self.last.get(writer)
            if last is None:
                last = self.last[writer] = max(position[o] for o in writer.ops)
            if self.partition.owner.get(op.results[0]) is writer:
                lanewise = all(o is parameter and o.type.shape == value.type.shape for o in op.operands if o in seen)
                if not lanewise or op.opcode == "matmul" or writer.kind in ("matmul", "column"):
                    return True
            elif op.opcode not in VIEWS and (self.partition.owner.get(op.results[0]) is None or position[op] > last
                                             or self.partition.owner[op.results[0]].number > writer.number):
                return True
        return False

    # ---- items

    def _items(self, items: list[Item]) -> None:
        for item in items:
            if isinstance(item, Group):
                self._group(item)
            elif isinstance(item, Single):
                self._single(item.op)
            else:
                self._nested(item)

    def _group(self, group: Group) -> None:
        """Places of everything the group reads, and of its values that others read and nobody placed yet are given later, on demand."""
        for op in group.ops:
            for operand in op.operands:
                if self.partition.owner.get(operand) is not group and not self._generated(operand):
                    self.place(operand)

    def _single(self, op: Op) -> None:
        if op.opcode == "insert":
            self._insert(op)
            return
        if op.opcode in VIEWS:
            self._copied_view(op)
            return
        for operand in op.operands:
            if not self._generated(operand):
                self.place(operand)
            elif operand.type.rank:  # written out for this reader
                self.storage.instead.setdefault(op, []).append(Copy(operand, self.storage.places.get(operand) or self._workspace(operand)))
        if op.opcode != "load_scalar":
            for value in op.results:
                self._owned(value)

    def _copied_view(self, op: Op) -> None:
        """A view that no strides express: of a generated tensor, which is written out first, or of elements in another order."""
        operand, result = op.operands[0], op.results[0]
        if not self._generated(operand):
            self.place(operand)
            tensor = self._workspace(result).tensor
            self._put(result, compacted(tensor, result))
            self.storage.instead[op] = [Copy(operand, compacted(tensor, operand))]
            return
        written = self._scratch(operand)
        seen = view_of(written, op, result)
        if seen is None:
            raise CompilerBug("storage", f"`{op.opcode}` of a generated tail")
        self._put(result, seen)
        self.storage.instead[op] = [Copy(operand, written)]

    def _generated(self, value: Value) -> bool:
        """Whether the value is made where it is read and lies nowhere."""
        if value in self.partition.numbers or (value.op is not None and value.op.opcode == "load_scalar"):
            return True
        return value in self.partition.cloned and self.partition.cloned[value].opcode not in VIEWS

    def _owned(self, value: Value) -> None:
        """A place for the result of a host operation or an uninitialised tensor: its output where it ends there alone, else a workspace."""
        name = next((n for n, v in self.graph.outputs.items() if v is value), None) if value in self.results else None
        parameter = self.parameters.get(name) if name is not None else None
        if name is not None and parameter is not None and not self.liveness.is_read(parameter) and value.type.live == value.type.shape:
            self._put(value, self._whole(name, value))
            return
        self._workspace(value)

    def _insert(self, op: Op) -> None:
        """A write: into its first operand's tensor when that is dead behind it, else into a copy; from its group if possible."""
        target, value = op.operands
        copies: list[Copy] = []
        place = self._kept(op, target, op.results[0], copies)
        window = place_at(place, cast("tuple[Index | int, ...]", op.attributes["offsets"]), value.type.shape)
        group = self.partition.owner.get(value)
        direct = (
            group is not None
            and self._beside(group, self.liveness.region_of[op])
            and value not in self.storage.places
            and not copies
            and not self._reshaped(value)
            and not self._read_behind(value, op, group)
            and self._known_before(window, group.ops[0])
            and self._made_before(place.tensor, group.ops[0], op)
            and all(
                r.opcode == "insert" and r.operands[1].type.rank and self.storage.places.get(r.operands[0]) == place and disjoint(r, op)
                for r in self.liveness.read_from(self._aliases_of_tensor(place.tensor), group.ops[0], op)
            )
        )
        if direct:
            self._put(value, window)
            self.storage.writes[value] = window
        else:
            if not self._generated(value):
                self.place(value)
            copies.append(Copy(value, window))
        self.storage.instead[op] = copies

    def _beside(self, group: Group, region: Region) -> bool:
        """Whether a group stands in this very region: one further out runs whether a branch is taken or not, and before a loop's turns."""
        return self.liveness.region_of[group.ops[0]] is region

    def _read_behind(self, value: Value, op: Op, group: Group) -> bool:
        """Whether anything but its own group reads the value behind the write ``op``, when the window may hold something newer."""
        seen = self.liveness.aliases(value)
        if any(self.liveness.yielded.get(v) for v in seen) or not seen.isdisjoint(self.results):
            return True
        position, owner = self.liveness.position, self.partition.owner
        return any(position[r] > position[op] and r.opcode not in VIEWS and (not r.results or owner.get(r.results[0]) is not group)
                   for r in self.liveness.readers(seen))

    def _made_before(self, tensor: str, first: Op, write: Op) -> bool:
        """Whether what the tensor holds behind ``write``, apart from disjoint writes, is made before ``first``: later it would cover a
        window that ``first`` fills."""
        lying, position = self._aliases_of_tensor(tensor), self.liveness.position
        apart = [v.op for v in lying if v.op is not None and v.op.opcode == "insert" and disjoint(v.op, write)]
        written = {a for r in apart for a in self.liveness.aliases(r.operands[1])}
        return all(v.op is None or not position[first] <= position[v.op] < position[write] or v in written or v.op in apart
                   or v.op.opcode in VIEWS or v.op.opcode == "empty" for v in lying)

    def _known_before(self, place: Place, op: Op) -> bool:
        """Whether every element read that the place depends on stands before ``op``."""
        used = place.base.variables()
        made, position = self.liveness.element_reads, self.liveness.position
        return all(made[name] < position[op] for name in used if name in made)

    def _reshaped(self, value: Value) -> bool:
        """Whether a reshape sees the value, which a window of a larger tensor would not suit."""
        return any(v.op is not None and v.op.opcode == "reshape" for v in self.liveness.aliases(value) - {value})

    def _aliases_of_tensor(self, tensor: str) -> set[Value]:
        return self.lying_in.get(tensor, set())

    def _kept(self, op: Op, source: Value, result: Value, copies: list[Copy], taken: set[str] | None = None) -> Place:
        """The place of ``result``, which begins as ``source``: the same tensor when nothing needs the old content.

        ``taken`` are tensors of other results of the same operation: two names of one value part here.
        """
        made = source.op
        generated = self._generated(source)
        if not generated and self._may_take(source, op, result):
            place = self.place(source)
            if self._is_whole(place) and place.tensor not in (taken or ()):
                self._put(result, place)
                return place
        place = self._workspace(result)
        if made is None or made.opcode != "empty":
            if not generated:
                self.place(source)
            copies.append(Copy(source, place))
        return place

    def _may_take(self, source: Value, op: Op, result: Value) -> bool:
        """Whether the tensor of ``source`` may be overwritten from ``op`` on."""
        place = self.storage.places.get(source)
        parameter = place is not None and place.tensor in self.parameters
        if parameter and place is not None and self.final.get(result) != place.tensor:
            return False
        if source.op is not None and source.op.opcode in VIEWS:
            return False
        position = self.liveness.position
        if place is not None and any(position[writer] > position[op] for writer in self.preferred.get(place.tensor, ())):
            return False
        return self.liveness.dead_after(source, op)

    def _nested(self, item: Nested) -> None:
        op = item.op
        if op.opcode == "loop":
            self._loop(item)
            return
        self._number(op.operands[0])
        taken: set[str] = set()
        for k, result in enumerate(op.results):
            roots = {self._root(r.yields[k], item) for r in op.regions}
            root = next(iter(roots)) if len(roots) == 1 else None
            keeps = root is not None and not self._generated(root) and self._may_take(root, op, result)
            if root is not None and keeps and self._is_whole(self.place(root)) and self.place(root).tensor not in taken:
                self._put(result, self.place(root))
            else:
                self._workspace(result)
            taken.add(self.storage.places[result].tensor)
        self.storage.instead[op] = []
        for body, region in zip(item.bodies, op.regions, strict=True):
            self._prefer(op, region)
            self._items(body)
            self._close(op, region)

    def _number(self, value: Value) -> None:
        """Places of the values in memory that a host scalar is computed from."""
        work = [value]
        while work:
            v = work.pop()
            made = self.partition.cloned.get(v)
            if made is not None and made.opcode not in VIEWS:
                work += made.operands
            elif v in self.partition.owner or made is not None:
                self.place(v)

    def _root(self, value: Value, item: Nested) -> Value:
        """Where a chain of writes inside a branch begins."""
        while value.op is not None and value.op.opcode == "insert" and self.liveness.region_of[value.op] in item.op.regions:
            value = value.op.operands[0]
        return value

    def _loop(self, item: Nested) -> None:
        op = item.op
        region = op.regions[0]
        copies: list[Copy] = []
        taken: set[str] = set()
        for initial, argument, result in zip(op.operands, region.arguments, op.results, strict=True):
            place = self._kept(op, initial, result, copies, taken)
            taken.add(place.tensor)
            self._put(argument, place)
        self.storage.instead[op] = copies
        self._prefer(op, region)
        self._items(item.bodies[0])
        self._close(op, region)

    def _prefer(self, op: Op, region: Region) -> None:
        """Yielded values that a group of the region computes go straight to the carried tensor when its old content is not read late."""
        for value, result in zip(region.yields, op.results, strict=True):
            group = self.partition.owner.get(value)
            if group is None or not self._beside(group, region) or value in self.storage.places or value.type.live != value.type.shape:
                continue
            place = self.storage.places[result]
            old = self._aliases_of_tensor(place.tensor)
            late = self.liveness.read_from(old, group.ops[0], None, region)
            if not late and op.opcode in ("loop", "if"):
                self._put(value, place)
                self.storage.writes[value] = place
                self.preferred.setdefault(place.tensor, []).append(group.ops[0])

    def _close(self, op: Op, region: Region) -> None:
        """Copies that bring yielded values to the carried tensors."""
        moves = [(v, self.storage.places[r]) for v, r in zip(region.yields, op.results, strict=True)]
        self.storage.closing[region] = self._exchange([Copy(v, place) for v, place in moves if self._elsewhere(v, place)])

    def _exchange(self, copies: list[Copy]) -> list[Copy]:
        """Copies as if made at once: a value that lies in another copy's target goes through a scratch tensor."""
        staged: list[Copy] = []
        final: list[Copy] = []
        for c in copies:
            if self._generated(c.value) or all(o is c or self.place(c.value).tensor != o.place.tensor for o in copies):
                final.append(c)
                continue
            scratch = self._scratch(c.value)
            stand_in = Value(c.value.type, c.value.name)
            self._put(stand_in, scratch)
            staged.append(Copy(c.value, scratch))
            final.append(Copy(stand_in, c.place))
        return [*staged, *final]

    def _scratch(self, value: Value) -> Place:
        name = self.names.fresh(f"{value.name or 'carried'}_next")
        self.storage.workspaces.append(Workspace(name, value.type.dtype, value.type.shape))
        return Place(name, value.type.shape)

    def _elsewhere(self, value: Value, place: Place) -> bool:
        return self._generated(value) or self.place(value) != place
