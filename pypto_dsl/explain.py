"""What the compiler made of a kernel and why: types and what forced them, fused groups, tiles, memory, steps; as data and as text."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pypto_dsl.compiler.errors import CompilerBug, KernelError
from pypto_dsl.compiler.graph import Graph, Op, Value, describe, walk
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.definition import call_of
from pypto_dsl.compiler.passes.fuse import Group, Partition
from pypto_dsl.compiler.pipeline import stages
from pypto_dsl.compiler.placement.ttmetal.geometry import geometry
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import Target, load
from pypto_dsl.compiler.tile_ir import ascend
from pypto_dsl.compiler.tile_ir.nodes import BranchStep, Buffer, HostCall, LoopStep, Program, ReadElement, Step, TileKernel
from pypto_dsl.compiler.tile_ir.text import buffers

QUIET = frozenset({"constant", "extent", "empty"})  # made by the language itself, not by a line of the user's


@dataclass(frozen=True)
class TypeFact:
    """One value: its type, the operation that made it, the rule that decided its dtype, and the operand that forced it ("" when none)."""

    line: int
    name: str
    type: str
    operation: str
    rule: str
    forced_by: str
    loses: tuple[str, ...] = ()


@dataclass(frozen=True)
class GroupFact:
    """One fused group: its kind, iteration space, the user's values in it with their lines, and why it ended."""

    number: int
    kind: str
    space: tuple[str, ...]
    values: tuple[tuple[str, int], ...]
    ended: str


@dataclass(frozen=True)
class BufferFact:
    """One on-chip buffer: shape, bytes of all its slots (an expression where they depend on the extents), offset, line, what it holds."""

    name: str
    holds: str
    dtype: str
    shape: tuple[str, ...]
    slots: int
    bytes: str
    place: str
    line: int


@dataclass(frozen=True)
class KernelFact:
    """One schedule of a step: when it is taken, its tile and why, its grid, what it reads and writes, its buffers."""

    name: str
    requires: tuple[str, ...]
    tile: str
    why: str
    items: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    buffers: tuple[BufferFact, ...]
    bytes: int | None
    capacity: int | None


@dataclass(frozen=True)
class StepFact:
    """One step of the program: the kernels of a fused group (alternatives in order of preference), or what the host does."""

    kind: str  # "kernel", "host", "read", "loop", "branch"
    title: str
    line: int
    group: int | None = None
    kernels: tuple[KernelFact, ...] = ()
    steps: tuple[StepFact, ...] = ()


@dataclass(frozen=True)
class TargetFacts:
    """What the pipeline made for one target."""

    target: str
    title: str
    groups: tuple[GroupFact, ...]
    steps: tuple[StepFact, ...]
    workspaces: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SourceLine:
    """One line of an emitted file and the line of the user's text that it comes from."""

    target: str
    file: str
    line: int
    user_line: int


@dataclass(frozen=True)
class Explanation:
    """Everything that `k.explain()` tells. ``options`` are those that change meaning, ``hints`` those that PyPTO has and that have
    none here, ``notes`` what is said once (a tile rounded up, a precision that a target does not have)."""

    kernel: str
    file: str
    options: Mapping[str, str]
    hints: tuple[str, ...]
    types: tuple[TypeFact, ...]
    targets: tuple[TargetFacts, ...]
    source_map: tuple[SourceLine, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def data(self) -> dict[str, Any]:
        """Plain data, for ``--json``."""
        return asdict(self)

    def text(self) -> str:
        """The explanation as `ptc explain KERNEL` prints it."""
        return "\n".join(_text(self)) + "\n"

    def __str__(self) -> str:
        return self.text()


def explain(graph: Graph, targets: Sequence[str] = ("llvm-cpu",), hints: Iterable[str] = (), notes: Iterable[str] = ()) -> Explanation:
    """Explain a recorded graph (before any pass) for each of ``targets``; an emulator's name stands for its target.

    The interpreter runs the graph as it is recorded, so there is nothing to tell of it beyond the types.
    Raises KernelError as compiling for that target would: PT501 for a target that does not exist, PT5xx and PT4xx for its limits.
    """
    file = graph.span.basename if graph.span else ""
    compiled = dict.fromkeys(name.removesuffix("-emu") for name in targets if name != "interpreter")
    return Explanation(graph.name, file, dict(graph.options), tuple(hints), tuple(_types(graph)),
                       tuple(_target(graph, load(name)) for name in compiled), (), tuple(notes))


# ---- types -----------------------------------------------------------------------------------------------------------------


def _types(graph: Graph) -> Iterable[TypeFact]:
    for parameter in graph.parameters:
        if parameter.name in graph.outputs and parameter.op is None:
            continue
        yield TypeFact(_line(graph.span), parameter.name, str(parameter.type), "parameter", "as the argument", "")
    for op in walk(graph.body):
        if op.opcode in QUIET:
            continue
        yield from _results(graph, op)


def _results(graph: Graph, op: Op) -> Iterable[TypeFact]:
    shown = f"{op.opcode}({', '.join(_name(o) for o in op.operands)})"
    definition = REGISTRY.get(op.opcode)
    if definition is None:  # loops and branches
        for result in op.results:
            yield TypeFact(_line(op.span), result.name, str(result.type), op.opcode, "the type it has in every turn or branch", "")
        return
    try:  # a graph of its own: dtype rules may record checks of extents
        typing = definition.types(call_of(op, Graph(graph.name, options=graph.options))).typing
    except KernelError:  # an operation whose operands were retyped since it was recorded; its type stands in the graph
        yield from (TypeFact(_line(op.span), r.name, str(r.type), shown, "as recorded", "") for r in op.results)
        return
    forced = "" if typing.forced_by is None or typing.forced_by >= len(op.operands) else _name(op.operands[typing.forced_by])
    loses = tuple(f"`{_name(op.operands[loss.operand])}`: {loss.source} to {loss.target} is exact up to {loss.exact_up_to}"
                  for loss in typing.lossy)
    for result in op.results:
        yield TypeFact(_line(op.span), result.name, str(result.type), shown, typing.rule, forced, loses)


def _name(value: Value) -> str:
    if value.op is not None and value.op.opcode == "constant":
        return repr(value.op.attributes["value"])
    if value.op is not None and value.op.opcode == "extent":
        return describe({"extent": value.op.attributes["value"]}).removeprefix("extent = ")
    return value.name or (f"{value.op.opcode}(...)" if value.op is not None else "_")


def _line(span: Span | None) -> int:
    return span.line if span is not None else 0


# ---- one target ------------------------------------------------------------------------------------------------------------


def _target(graph: Graph, target: Target) -> TargetFacts:
    made = {stage.name: stage.result for stage in stages(graph, target)}
    partition, structured, program = made["fuse"], made["tile"], made["place"]
    if not (isinstance(partition, Partition) and isinstance(structured, Program) and isinstance(program, Program)):
        raise CompilerBug("explain", f"the pipeline's stages are not those that are explained: {sorted(made)}")
    planned = {k.name: k for k in _kernels(structured.steps)}
    groups = {group.number: group for group in partition.groups}
    workspaces = tuple((w.name, f"{w.dtype}[{', '.join(map(str, w.shape))}]") for w in program.workspaces)
    steps = tuple(_step(s, planned, groups, target) for s in program.steps)
    return TargetFacts(target.name, target.title, tuple(map(_group, partition.groups)), steps, workspaces)


def _kernels(steps: Iterable[Step]) -> Iterable[TileKernel]:
    """Every kernel of the steps, those inside loops and branches too."""
    for step in steps:
        if isinstance(step, tuple):
            yield from step
        elif isinstance(step, LoopStep):
            yield from _kernels(step.steps)
        elif isinstance(step, BranchStep):
            yield from _kernels((*step.steps, *step.orelse))


def _step(step: Step, planned: Mapping[str, TileKernel], groups: Mapping[int, Group], target: Target) -> StepFact:
    if isinstance(step, HostCall):
        return StepFact("host", f"{step.opcode}, evaluated on the host", _line(step.span))
    if isinstance(step, ReadElement):
        offsets = ", ".join(map(str, step.offsets))
        return StepFact("read", f"{step.name} = {step.param.bound_to}[{offsets}]", _line(step.span))
    if isinstance(step, LoopStep):
        title = f"for {step.var} in range({step.start}, {step.stop}, {step.step})"
        return StepFact("loop", title, _line(step.span), steps=tuple(_step(s, planned, groups, target) for s in step.steps))
    if isinstance(step, BranchStep):
        inner = tuple(_step(s, planned, groups, target) for s in (*step.steps, *step.orelse))
        return StepFact("branch", f"one of two branches, {len(step.steps)} and {len(step.orelse)} steps", _line(step.span), steps=inner)
    number = _group_number(step[0].name)
    group = groups.get(number) if number is not None else None
    kernels = tuple(_kernel(k, planned.get(k.name), group, target) for k in step)
    return StepFact("kernel", step[0].title, _line(step[0].span), number if group is not None else None, kernels)


def _group_number(kernel: str) -> int | None:
    """A kernel is named after its graph, the number of its group, and the variant."""
    found = re.search(r"_(\d+)[a-z_]*$", kernel)
    return None if found is None else int(found.group(1))


def _group(group: Group) -> GroupFact:
    values = dict.fromkeys((op.results[0].name, _line(op.span)) for op in group.ops if op.results[0].name)
    return GroupFact(group.number, group.kind, tuple(map(str, group.space)), tuple(values), group.why or "nothing more follows from it")


def _kernel(kernel: TileKernel, planned: TileKernel | None, group: Group | None, target: Target) -> KernelFact:
    tile = str(dict(kernel.properties).get("tile", ""))
    wanted = str(dict(planned.properties).get("tile", "")) if planned is not None else tile
    facts = tuple(_buffers(kernel, target))
    known = [int(f.bytes) for f in facts if f.bytes.isdecimal()]
    total = _storage(kernel) or (sum(known) if len(known) == len(facts) else None)
    return KernelFact(kernel.name, tuple(f"{condition} >= 0" for condition in kernel.requires), tile, _why(tile, wanted, group, target),
                      tuple(map(str, kernel.grid.extents)), tuple(p.bound_to for p in kernel.params if p.role in ("in", "inout")),
                      tuple(p.bound_to for p in kernel.params if p.role != "in"), facts, total, _capacity(target))


def _why(tile: str, wanted: str, group: Group | None, target: Target) -> str:
    asked = next((op for op in group.ops if op.tile is not None), None) if group is not None else None
    if asked is not None:
        sizes = ", ".join(map(str, asked.tile or ()))
        return f"asked for: set_vec_tile_shapes({sizes}) at line {_line(asked.span)}, fitted to the space and to {target.name}'s geometry"
    if tile != wanted:
        return f"chosen: {wanted} was made smaller until its buffers fit {target.name}'s memory"
    choices = target.tile
    reasons = {
        "elementwise": f"flat, {choices.flat} elements an item" if choices.flatten else f"planes of {choices.plane[0]}x{choices.plane[1]}",
        "row": f"{choices.rows} rows at a time" + ("" if choices.whole_row is None else f", whole up to {choices.whole_row} columns"),
        "column": f"steps of {choices.column_rows}x{choices.column_cols}",
        "matmul": f"blocks of {'x'.join(map(str, choices.matmul))} (m, n, k)",
    }
    kind = "elementwise" if group is None else group.kind
    return f"chosen: {target.name} takes {reasons.get(kind, reasons['elementwise'])}"


def _storage(kernel: TileKernel) -> int | None:
    """Bytes of queues and arenas, where placement has laid them out."""
    held = [s for s in (*kernel.once, *kernel.body) if isinstance(s, (ascend.Queue, ascend.Arena))]
    if not held:
        return None
    return sum(s.bytes * (s.buffer.slots if isinstance(s, ascend.Queue) else 1) for s in held)


def _buffers(kernel: TileKernel, target: Target) -> Iterable[BufferFact]:
    statements = (*kernel.once, *kernel.body)
    queues = {s.buffer.name: s for s in statements if isinstance(s, ascend.Queue)}
    views = {s.buffer.name: s for s in statements if isinstance(s, ascend.View)}
    for buffer in buffers(kernel):
        if buffer.name in queues:
            queue = queues[buffer.name]
            size, place = as_index(queue.bytes * buffer.slots), f"queue {queue.position}"
        elif buffer.name in views:
            view = views[buffer.name]
            size, place = as_index(view.elements * buffer.dtype.itemsize), f"{view.arena} + {view.offset}"
        elif buffer.tiles is not None:
            tile = geometry(target)
            size, place = buffer.tiles * (buffer.slots * tile.rows * tile.cols * buffer.dtype.itemsize), f"ring {buffer.ring}"
        else:
            size, place = _dense(buffer), buffer.space
        yield BufferFact(buffer.name, buffer.note, str(buffer.dtype), tuple(map(str, buffer.shape)), buffer.slots, str(size), place,
                         _line(buffer.span))


def _dense(buffer: Buffer) -> Index:
    elements = as_index(buffer.elements) if buffer.elements else buffer.shape[0] * buffer.shape[1]
    return elements * (buffer.slots * buffer.dtype.itemsize)


# Which memory of a target's file holds the buffers of a kernel.
_LOCAL_MEMORIES = ("ub", "l1")


def _capacity(target: Target) -> int | None:
    memory = target.table("memory")
    for name in _LOCAL_MEMORIES:
        entry = memory.get(name)
        if isinstance(entry, dict) and "bytes" in entry:
            return int(entry["bytes"])
        if isinstance(entry, int):
            return entry
    return None


# ---- text ------------------------------------------------------------------------------------------------------------------


def _text(e: Explanation) -> Iterable[str]:
    yield f"{e.kernel}" + (f" ({e.file})" if e.file else "")
    for key, value in e.options.items():
        yield f"  {key} = {value}"
    yield "\ntypes"
    yield from _columns([(f"  {_at(f.line)}", f"{f.name or '_'}: {f.type}", f.operation, _decided(f)) for f in e.types])
    for fact in e.types:
        yield from (f"  {_at(fact.line)}  integers can lose bits: {loss}" for loss in fact.loses)
    for target in e.targets:
        yield from _target_text(target)
    if e.source_map:
        yield "\nemitted lines"
        yield from _columns([(f"  {s.target}/{s.file}:{s.line}", f"from line {s.user_line}") for s in e.source_map])
    for title, lines in (("accepted without effect here", e.hints), ("notes", e.notes)):
        if lines:
            yield f"\n{title}"
            yield from (f"  {line}" for line in lines)


def _target_text(t: TargetFacts) -> Iterable[str]:
    yield f"\n{t.target}: {t.title}"
    groups = {group.number: group for group in t.groups}
    for step in t.steps:
        yield from _step_text(step, groups, "  ")
    for name, shape in t.workspaces:
        yield f"  workspace {name}: {shape}"


def _step_text(step: StepFact, groups: Mapping[int, GroupFact], indent: str) -> Iterable[str]:
    group = None if step.group is None else groups[step.group]
    if group is not None:
        values = ", ".join(f"{name} ({_at(line)})" for name, line in group.values)
        yield f"{indent}group {group.number}: {group.kind} over [{', '.join(group.space)}]" + (f": {values}" if values else "")
        yield f"{indent}  ended: {group.ended}"
    else:
        yield f"{indent}{'copy' if step.kind == 'kernel' else step.title} ({_at(step.line)})"
    for number, kernel in enumerate(step.kernels):
        yield from (indent + line for line in _kernel_text(kernel, number, len(step.kernels)))
    for inner in step.steps:
        yield from _step_text(inner, groups, indent + "  ")


def _kernel_text(k: KernelFact, number: int, count: int) -> Iterable[str]:
    when = f", taken when {' and '.join(k.requires)}" if k.requires else ", taken otherwise" if count > 1 and number == count - 1 else ""
    yield f"  kernel {k.name}{when}"
    yield f"    reads {', '.join(k.reads) or 'nothing'}; writes {', '.join(k.writes) or 'nothing'}; {' x '.join(k.items) or '1'} items"
    if k.tile:
        yield f"    tile {k.tile}: {k.why}"
    if k.buffers:
        share = f" of {k.capacity}" if k.capacity is not None else ""
        yield "    buffers" + (f": {k.bytes}{share} bytes" if k.bytes is not None else "")
        yield from _columns([(f"      {b.name}", _shape(b), f"{b.bytes} bytes", b.place, _at(b.line), b.holds) for b in k.buffers])


def _shape(b: BufferFact) -> str:
    return f"{b.dtype}[{', '.join(b.shape)}]" + (f" x{b.slots}" if b.slots > 1 else "")


def _decided(f: TypeFact) -> str:
    return f"{f.rule} (`{f.forced_by}`)" if f.forced_by else f.rule


def _at(line: int) -> str:
    return f"line {line}" if line else "-"


def _columns(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
