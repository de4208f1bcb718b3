"""Tiling: every fused group becomes a structured TileKernel (or two variants), and the graph a Program."""
from __future__ import annotations


from dataclasses import replace

from pypto_dsl.compiler.dtypes import I64
from pypto_dsl.compiler.graph import Graph, Op, Value
from pypto_dsl.compiler.passes import rows, schedules, storage
from pypto_dsl.compiler.passes.fuse import Group, Partition
from pypto_dsl.compiler.passes.spaces import Folded
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
    return next((o.tile[len(o.tile) - len(group.space):] for o in group.ops if o.tile is not None and len(o.tile) >= len(group.space)), None)


def obeying(choices: TileChoices, folded: Folded, wish: tuple[int, ...]) -> TileChoices:
    """The choices with the user's tile, folded like the space and rounded up to the target's geometry."""

    def size(dims: tuple[int, ...], align: int) -> int:
        total = 1
        for dim in reversed(dims):
            extent = folded.space[dim].constant
            total *= wish[dim] if extent is None else min(wish[dim], extent)
            if extent is None or wish[dim] < extent:
                break
        return -(-total // align) * align

    rows, cols = size(folded.dims[-2], choices.align[0]), size(folded.dims[-1], choices.align[1])
    extent = folded.cols.constant
    whole = choices.whole_row if extent is not None and cols >= extent else 0
    return replace(choices, flat=cols, rows=rows, cols=cols, plane=(rows, cols), whole_row=whole, column_rows=rows, column_cols=cols)


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


