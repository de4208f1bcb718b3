"""Collects an explanation: runs the pipeline on a recorded graph and notes what each stage decided."""
from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from pypto_dsl.compiler.errors import CompilerBug, KernelError
from pypto_dsl.compiler.graph import Graph, Op, Value, describe, walk
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.recording import call_of
from pypto_dsl.compiler.passes.canonicalize import canonicalize
from pypto_dsl.compiler.passes.fuse import Group, Partition
from pypto_dsl.compiler.passes.legalize import legalize
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.passes.relax import relaxed
from pypto_dsl.compiler.pipeline import stages
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import Target, load
from pypto_dsl.compiler.tile_ir.nodes import (
    BranchStep,
    GuardStep,
    HostCall,
    LoopStep,
    Program,
    ReadElement,
    Step,
    StoreNumber,
    TileKernel,
    kernels_of,
)
from pypto_dsl.explain.facts import GroupFact, KernelFact, SourceLine, StepFact, TargetFacts, TypeFact
from pypto_dsl.explain.memory import buffer_facts, capacity, total_bytes
from pypto_dsl.explain.text import Explanation

QUIET = frozenset({"constant", "extent", "empty"})  # made by the language itself, not by a line of the user's


def explain(graph: Graph, targets: Sequence[str] = ("llvm-cpu",), hints: Iterable[str] = (), notes: Iterable[str] = (),
            emitted: Mapping[str, Mapping[str, str]] | None = None) -> Explanation:
    """Explain a recorded graph (before any pass) for each of ``targets``; an emulator's name stands for its target.

    The interpreter runs the graph as it is recorded, so there is nothing to tell of it beyond the types. ``emitted`` maps targets to the
    files written for them (name to text), from which the source map is read.
    Raises KernelError as compiling for that target would: PT501 for a target that does not exist, PT5xx and PT4xx for its limits.
    """
    file = graph.span.basename if graph.span else ""
    compiled = dict.fromkeys(name.removesuffix("-emu") for name in targets if name != "interpreter")
    return Explanation(graph.name, file, dict(graph.options), tuple(hints), tuple(_types(graph)),
                       tuple(_target(graph, load(name)) for name in compiled),
                       tuple(line for target, files in (emitted or {}).items() for line in source_lines(target, files, file)), tuple(notes))


SOURCE_MAP = "source_map.json"
SOURCES = (".cpp", ".h", ".ll", ".py")


def source_lines(target: str, files: Mapping[str, str], user_file: str) -> Iterable[SourceLine]:
    """The source map of emitted files: the emitter's own, or read from the user's places that comments name (`softmax.py:16`)."""
    if SOURCE_MAP in files:
        own = json.loads(files[SOURCE_MAP])
        yield from (SourceLine(target, own["file"], entry["line"], entry["user_line"]) for entry in own["lines"])
        return
    if not user_file:
        return
    place = re.compile(rf"(?:^|[\s(,]){re.escape(user_file)}:(\d+)")
    for name, text in files.items():
        for number, line in enumerate(text.splitlines() if name.endswith(SOURCES) else (), 1):
            if (found := place.search(line)) is not None:
                yield SourceLine(target, name, number, int(found.group(1)))


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
    planned = {k.name: k for k in kernels_of(structured.steps)}
    groups = {group.number: group for group in partition.groups}
    workspaces = tuple((w.name, f"{w.dtype}[{', '.join(map(str, w.shape))}]") for w in program.workspaces)
    steps = tuple(_step(s, planned, groups, target) for s in program.steps)
    return TargetFacts(target.name, target.title, tuple(map(_group, partition.groups)), steps, workspaces, known_differences(graph, target),
                       _relaxed(made["sink"], target))


def _relaxed(graph: object, target: Target) -> tuple[tuple[int, str], ...]:
    """What a fast kernel's precision came to."""
    if not isinstance(graph, Graph) or not graph.is_fast:
        return ()
    found = tuple(sorted((_line(r.span), r.what) for r in relaxed(graph, target)[1]))
    return found or ((0, f"{target.name} has nothing cheaper for these operations: computed as if exact"),)


def known_differences(graph: Graph, target: Target) -> tuple[str, ...]:
    """Rows of the target's `[conformance]` that speak of this kernel: of its operations, or of those that they are built of there.

    Raises KernelError where the target cannot do an operation.
    """
    if not target.differences:
        return ()
    ops = [*walk(graph.body), *walk(legalize(canonicalize(promote(graph)), target).body)]
    opcodes = {op.opcode for op in ops}
    dtypes = {value.type.dtype.name for op in ops for value in (*op.operands, *op.results)}
    return tuple(f"{row.name}: {row.text}" for row in target.differences if row.concerns(opcodes, dtypes))


def _step(step: Step, planned: Mapping[str, TileKernel], groups: Mapping[int, Group], target: Target) -> StepFact:
    if isinstance(step, HostCall):
        return StepFact("host", f"{step.opcode}, evaluated on the host", _line(step.span))
    if isinstance(step, ReadElement):
        offsets = ", ".join(map(str, step.offsets))
        return StepFact("read", f"{step.name} = {step.param.bound_to}[{offsets}]", _line(step.span))
    if isinstance(step, StoreNumber):
        return StepFact("number", f"{step.name} is a number that the host keeps", _line(step.span))
    if isinstance(step, GuardStep):
        return StepFact("guard", f"{step.what}: {step.needed} is at most {step.available}", _line(step.span))
    if isinstance(step, LoopStep):
        title = f"for {step.var} in range({step.start}, {step.stop}, {step.step})"
        return StepFact("loop", title, _line(step.span), steps=tuple(_step(s, planned, groups, target) for s in step.steps))
    if isinstance(step, BranchStep):
        inner = tuple(_step(s, planned, groups, target) for s in (*step.steps, *step.orelse))
        return StepFact("branch", f"one of two branches, {len(step.steps)} and {len(step.orelse)} steps", _line(step.span), steps=inner)
    number = _group_number(step[0].name)
    group = groups.get(number) if number is not None else None
    kernels = tuple(_kernel(k, _planned(k.name, planned), group, target) for k in step)
    return StepFact("kernel", step[0].title, _line(step[0].span), number if group is not None else None, kernels)


def _planned(kernel: str, planned: Mapping[str, TileKernel]) -> TileKernel | None:
    """The structured kernel that a placed one came from: placement may split it by unit and add a word to its name."""
    return planned.get(kernel) or planned.get(kernel.rpartition("_")[0])


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
    facts = tuple(buffer_facts(kernel, target))
    def tensors(*roles: str) -> tuple[str, ...]:
        return tuple(p.bound_to for p in kernel.params if p.role in roles)

    requires = tuple(f"{condition} >= 0" for condition in kernel.requires)
    items = tuple(map(str, (planned or kernel).grid.extents))
    return KernelFact(kernel.name, requires, tile, _why(tile, wanted, group, target), items, tensors("in", "inout"),
                      tensors("out", "inout"), tensors("workspace"), facts, total_bytes(kernel, facts), capacity(kernel, target))


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


