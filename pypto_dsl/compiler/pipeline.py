"""The pipeline as a table of contents: from a recorded graph to the program of one target."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.passes.canonicalize import canonicalize
from pypto_dsl.compiler.passes.fuse import Partition, fuse
from pypto_dsl.compiler.passes.legalize import legalize
from pypto_dsl.compiler.passes.limits import check_limits
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.passes.relax import relax
from pypto_dsl.compiler.passes.sink import sink
from pypto_dsl.compiler.passes.tile import tile
from pypto_dsl.compiler.placement import PLACEMENTS
from pypto_dsl.compiler.profile import stage
from pypto_dsl.compiler.targets import Target, TileChoices, load
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.tile_ir.nodes import Program
from pypto_dsl.compiler.tile_ir.text import print_program
from pypto_dsl.compiler.verify import verify

GraphPass = Callable[[Graph, Target], Graph]

# Passes from Graph to Graph, in order. `ptc opt --pass NAME` runs one, `--print-after NAME` stops behind it.
GRAPH_PASSES: dict[str, GraphPass] = {
    "promote": lambda g, _: promote(g),
    "canonicalize": lambda g, _: canonicalize(g),
    "legalize": legalize,
    "simplify": lambda g, _: canonicalize(g),
    "sink": lambda g, _: sink(g),
    "relax": relax,
}
STAGES = (*GRAPH_PASSES, "fuse", "tile", "place")


@dataclass(frozen=True)
class Stage:
    """What stands after one stage: a Graph, a Partition or a Program."""

    name: str
    result: Graph | Partition | Program


def text(result: Graph | Partition | Program) -> str:
    """What stands after a stage, as `ptc opt` prints it."""
    if isinstance(result, Graph):
        return print_graph(result)
    if isinstance(result, Program):
        return print_program(result)
    lines = []
    for group in result.groups:
        lines.append(f"group {group.number} {group.kind} [{', '.join(map(str, group.space))}] {{")
        lines += [f"  {', '.join(repr(r) for r in op.results)} = {op.opcode}" for op in group.ops]
        lines.append("}" + (f" // {group.why}" if group.why else ""))
    return "\n".join(lines) + "\n"


def stages(graph: Graph, target: Target) -> Iterator[Stage]:
    """Run the pipeline stage by stage; every graph is verified before it is handed on.

    Raises PT526 for tensors beyond the target's limits, before anything else.
    """
    check_limits(graph, target)
    for name, apply in GRAPH_PASSES.items():
        with stage(name):
            graph = apply(graph, target)
            verify(graph, name)
        yield Stage(name, graph)
    with stage("fuse"):
        partition = fuse(graph)
    yield Stage("fuse", partition)
    with stage("tile"):
        structured = tile(graph, partition, target)
    yield Stage("tile", structured)
    with stage("place"):
        placed = place(graph, partition, target, structured)
    yield Stage("place", placed)


def lower(graph: Graph, target: Target | str) -> Program:
    """The placed program of ``graph`` for ``target``. Raises KernelError for what the target cannot do."""
    found = load(target) if isinstance(target, str) else target
    *_, last = stages(graph, found)
    if not isinstance(last.result, Program):
        raise TypeError("the pipeline ended without a program")
    return last.result


def place(graph: Graph, partition: Partition, target: Target, structured: Program) -> Program:
    """Place a structured program; a tile that the compiler chose itself is halved until the target's memory takes it.

    Raises KernelError PT503 for steps that the target's host cannot run, and what placement raises (PT410: nothing smaller fits).
    """
    placement = PLACEMENTS.get(target.family)
    if placement is None:
        return structured
    choices = target.tile
    while True:
        try:
            return placement(structured, target)
        except KernelError as refused:
            smaller = halved(choices, target) if refused.code == "PT410" else None
            if smaller is None:
                raise
            choices = smaller
            structured = tile(graph, partition, target, choices)


def halved(choices: TileChoices, target: Target) -> TileChoices | None:
    """The next smaller tile: fewer rows first, then shorter whole rows and narrower pieces; None when nothing is left to halve."""
    align_rows, align_cols = choices.align
    rows = max(align_rows, choices.rows // 2 // align_rows * align_rows)
    plane_rows = max(align_rows, choices.plane[0] // 2 // align_rows * align_rows)
    smaller = replace(choices, flat=max(choices.flat // 2, 64), rows=rows, plane=(plane_rows, max(choices.plane[1] // 2, align_cols)),
                      column_rows=max(align_rows, choices.column_rows // 2), column_cols=max(align_cols, choices.column_cols // 2))
    if rows == choices.rows:
        whole = None if choices.whole_row is None else choices.whole_row // 2
        smaller = replace(smaller, whole_row=whole, cols=max(choices.cols // 2, align_cols))
        if choices.cols == align_cols and (whole is None or whole < align_cols):
            return None
    return smaller
