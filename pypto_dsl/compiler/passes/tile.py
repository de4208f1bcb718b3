"""Tiling: every fused group becomes a structured TileKernel (or two variants), and the graph a Program."""
from __future__ import annotations


from pypto_dsl.compiler.dtypes import I64
from pypto_dsl.compiler.graph import Graph, Op, Value
from pypto_dsl.compiler.passes import rows, schedules, storage
from pypto_dsl.compiler.passes.fuse import Group, Partition
from pypto_dsl.compiler.passes.storage import Place, Storage
from pypto_dsl.compiler.passes.tiling import Tiling, scalars_of, variables_of
from pypto_dsl.compiler.targets import Target, TileChoices
from pypto_dsl.compiler.tile_ir import nodes as t


def tile(graph: Graph, partition: Partition, target: Target, choices: TileChoices | None = None) -> t.Program:
    """The program of a partitioned graph under the target's tile choices (or others, tried by placement)."""
    choices = choices or target.tile
    places = storage.assign(graph, partition)
    steps = [group_kernels(graph, g, places, partition, target, choices) for g in partition.groups]
    steps += [_copy(graph, value, name, places, partition, target, choices, len(steps) + i) for i, (value, name) in enumerate(places.copies)]
    scalars = _scalars(graph, steps)
    arguments = tuple(places.arguments)
    return t.Program(graph.name, target.name, arguments, scalars, tuple(places.workspaces), tuple(steps))


def group_kernels(graph: Graph, group: Group, places: Storage, partition: Partition, target: Target, choices: TileChoices) -> tuple[t.TileKernel, ...]:
    """The variants of one group, in order of preference."""

    def tiling() -> Tiling:
        return Tiling(graph, group, places, partition, target)

    if group.kind == "row":
        return rows.variants(tiling, choices)
    if group.kind == "column":
        return (schedules.columns(tiling(), choices),)
    if group.kind == "matmul":
        return (schedules.matmul(tiling(), choices),)
    return (schedules.elementwise(tiling(), choices),)


def _copy(graph: Graph, value: Value, name: str, places: Storage, partition: Partition, target: Target, choices: TileChoices, number: int,
          ) -> tuple[t.TileKernel, ...]:
    """A kernel that copies a placed or generated value into the tensor ``name``."""
    op = Op("clone", (value,), (value.type,), names=(name,))
    result = op.results[0]
    group = Group(number, "elementwise", value.type.shape, [op], {result: tuple(range(value.type.rank))})
    local = Storage({**places.places, result: Place(name, value.type.shape)}, places.arguments, places.workspaces, [], {result: name})
    owner = Partition([group], {**partition.owner, result: group}, partition.cloned)
    return group_kernels(graph, group, local, owner, target, choices)


def _scalars(graph: Graph, steps: list[tuple[t.TileKernel, ...]]) -> tuple[t.Scalar, ...]:
    used = variables_of(tuple(steps)) | variables_of(tuple(p.type.shape for p in graph.parameters))
    numbers = {s.name for s in scalars_of(tuple(steps))}
    extents = [t.Scalar(n, I64) for n in graph.symbols if n in used]
    return (*extents, *(t.Scalar(p.name, p.type.dtype) for p in graph.parameters if p.name in numbers))


