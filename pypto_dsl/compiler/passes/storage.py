"""Where values live: which tensor of the program each materialized value is, and how views see it.

A value that a group hands to another group or to the caller is materialized: in the output parameter it is written to, in a
returned tensor, or in a workspace. Reshapes, permutations and slices of materialized values are views: a base offset and strides.
Values that must stand in a second place (a parameter returned as it is, an output also needed after it is overwritten) are copied
by groups of their own.
"""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Graph, Op, Value
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.passes.fuse import GENERATORS, Group, Partition
from pypto_dsl.compiler.tile_ir.nodes import Param, Role, Workspace


@dataclass(frozen=True)
class Place:
    """A tensor of the program seen under a shape; ``strides`` None is dense row-major from element ``base`` on."""

    tensor: str
    shape: tuple[Index, ...]
    strides: tuple[Index, ...] | None = None
    base: Index = field(default_factory=lambda: as_index(0))

    def stride_list(self) -> tuple[Index, ...]:
        """The strides in elements, dense ones written out."""
        return dense_strides(self.shape) if self.strides is None else self.strides


@dataclass
class Storage:
    """Places of values, the program's tensors, and copies to make after the groups."""

    places: dict[Value, Place]
    arguments: list[Param]
    workspaces: list[Workspace]
    copies: list[tuple[Value, str]]
    writes: dict[Value, str]


def dense_strides(shape: tuple[Index, ...]) -> tuple[Index, ...]:
    """Row-major strides in elements."""
    strides: list[Index] = []
    step = as_index(1)
    for extent in reversed(shape):
        strides.append(step)
        step = step * extent
    return tuple(reversed(strides))


def assign(graph: Graph, partition: Partition) -> Storage:
    """Give every materialized value its tensor."""
    outside = _read_outside(graph, partition)
    overwritten = {name for name, value in graph.outputs.items() if _is_read(graph, name)}
    places: dict[Value, Place] = {}
    arguments = [_argument(graph, p, overwritten) for p in graph.parameters if p.type.rank or p.name in graph.outputs]
    for p in graph.parameters:
        places[p] = Place(p.name, p.type.shape)
    storage = Storage(places, arguments, [], [], {})
    for name, value in graph.outputs.items():
        _result(storage, graph, partition, name, value)
    taken = {p.name for p in arguments}
    for i, value in enumerate(graph.returns):
        name = f"result{i}" if len(graph.returns) > 1 else "result"
        while name in taken:
            name += "_"
        taken.add(name)
        storage.arguments.append(Param(name, value.type.dtype, value.type.shape, "out"))
        _result(storage, graph, partition, name, value)
    for value in outside:
        if value not in places and value not in partition.cloned:
            name = _unique(value.name or "work", taken)
            storage.workspaces.append(Workspace(name, value.type.dtype, value.type.shape))
            places[value] = Place(name, value.type.shape)
            storage.writes[value] = name
    for value, op in partition.cloned.items():
        if op.opcode not in GENERATORS and op.operands and value.type.rank and op.opcode in ("reshape", "permute", "view"):
            places[value] = view_of(places[op.operands[0]], op, value)
    return storage


def _argument(graph: Graph, p: Value, overwritten: set[str]) -> Param:
    role: Role = "in"
    if p.name in graph.outputs:
        role = "inout" if p.name in overwritten else "out"
    return Param(p.name, p.type.dtype, p.type.shape, role)


def _is_read(graph: Graph, name: str) -> bool:
    parameter = next(p for p in graph.parameters if p.name == name)
    return any(parameter in op.operands for op in graph.body.ops) or parameter in graph.outputs.values() or parameter in graph.returns


def _result(storage: Storage, graph: Graph, partition: Partition, name: str, value: Value) -> None:
    """Let a group write ``value`` straight into ``name`` where nothing forbids it, else copy at the end."""
    group = partition.owner.get(value)
    if group is None or value in storage.places or _conflicts(graph, partition, group, name, value):
        storage.copies.append((value, name))
        return
    storage.places[value] = Place(name, value.type.shape)
    storage.writes[value] = name


def _conflicts(graph: Graph, partition: Partition, writer: Group, name: str, value: Value) -> bool:
    """Whether the old content of ``name`` is still read when the group writes it: later, by other lanes, or by a matrix product."""
    parameter = next((p for p in graph.parameters if p.name == name), None)
    if parameter is None:
        return False
    seen = {parameter}
    for view, op in partition.cloned.items():
        if op.operands and op.operands[0] in seen:
            seen.add(view)
    if seen & ({*graph.outputs.values(), *graph.returns}):
        return True
    for group in partition.groups:
        for op in group.ops:
            for operand in op.operands:
                if operand not in seen:
                    continue
                if group.number > writer.number:
                    return True
                if group is writer and (operand is not parameter or op.opcode == "matmul" or operand.type.shape != value.type.shape
                                        or group.kind in ("matmul", "column")):
                    return True
    return False


def _read_outside(graph: Graph, partition: Partition) -> list[Value]:
    """Values of groups that other groups or views read, in order of their making."""
    wanted: dict[Value, None] = {}
    for group in partition.groups:
        for op in group.ops:
            for operand in op.operands:
                source = partition.owner.get(operand)
                if source is not None and source is not group:
                    wanted.setdefault(operand)
    for op in partition.cloned.values():
        for operand in op.operands:
            if operand in partition.owner:
                wanted.setdefault(operand)
    for value in graph.results():
        if value in partition.owner:
            wanted.setdefault(value)
    order = {v: i for i, v in enumerate(r for g in partition.groups for o in g.ops for r in o.results)}
    return sorted(wanted, key=lambda v: order[v])


def _unique(name: str, taken: set[str]) -> str:
    candidate, n = name, 0
    while candidate in taken:
        n += 1
        candidate = f"{name}_{n}"
    taken.add(candidate)
    return candidate


def view_of(source: Place, op: Op, result: Value) -> Place:
    """How a reshape, permutation or slice sees its operand's place; PT505 for a reshape of a strided place."""
    if op.opcode == "permute":
        perm = cast("tuple[int, ...]", op.attributes["perm"])
        strides = source.stride_list()
        return replace(source, shape=result.type.shape, strides=tuple(strides[p] for p in perm))
    if op.opcode == "view":
        offsets = cast("tuple[Index | int, ...]", op.attributes["offsets"])
        strides = source.stride_list()
        base = source.base
        for offset, stride in zip(offsets, strides, strict=True):
            base = base + as_index(offset) * stride
        return replace(source, shape=result.type.shape, strides=strides, base=base)
    if source.strides is not None and source.strides != dense_strides(source.shape):
        raise error("PT505", "reshape of a permuted or sliced tensor is not lowered to compiled targets", op.span,
                    help="clone it first: pypto.reshape(pypto.clone(x), shape)")
    return replace(source, shape=result.type.shape, strides=None)
