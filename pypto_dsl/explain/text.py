"""An explanation as text, the way `ptc explain KERNEL` prints it."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pypto_dsl.explain.facts import BufferFact, GroupFact, KernelFact, SourceLine, StepFact, TargetFacts, TypeFact


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
        return "\n".join(lines(self)) + "\n"

    def __str__(self) -> str:
        return self.text()


def lines(e: Explanation) -> Iterable[str]:
    """The lines of an explanation: types, each target's steps, the source map, hints and notes."""
    yield f"{e.kernel}" + (f" ({e.file})" if e.file else "")
    for key, value in e.options.items():
        yield f"  {key} = {value}"
    yield "\ntypes"
    yield from _columns([(f"  {_at(f.line)}", f"{f.name or '_'}: {f.type}", f.operation, _decided(f)) for f in e.types])
    for fact in e.types:
        yield from (f"  {_at(fact.line)}  integers can lose bits: {loss}" for loss in fact.loses)
    for target in e.targets:
        yield from _target_text(target)
    yield from _source_map(e.source_map)
    for title, facts in (("accepted without effect here", e.hints), ("notes", e.notes)):
        if facts:
            yield f"\n{title}"
            yield from (f"  {fact}" for fact in facts)


def _source_map(source_map: Sequence[SourceLine]) -> Iterable[str]:
    """For each of the user's lines, the lines of the emitted files that name it."""
    found: dict[tuple[int, str], list[int]] = {}
    for s in sorted(source_map, key=lambda s: s.user_line):
        found.setdefault((s.user_line, f"{s.target}/{s.file}"), []).append(s.line)
    if found:
        yield "\nemitted lines"
        yield from _columns([(f"  {_at(line)}", file, _ranges(numbers)) for (line, file), numbers in found.items()])


def _ranges(numbers: Sequence[int]) -> str:
    """`6, 15-17, 20`."""
    parts: list[list[int]] = []
    for n in numbers:
        if parts and n == parts[-1][-1] + 1:
            parts[-1][1:] = [n]
        else:
            parts.append([n])
    return ", ".join("-".join(map(str, part)) for part in parts)


def _target_text(t: TargetFacts) -> Iterable[str]:
    yield f"\n{t.target}: {t.title}"
    groups = {group.number: group for group in t.groups}
    for step in t.steps:
        yield from _step_text(step, groups, "  ")
    yield from (f"  fast: {_at(line)}  {what}" if line else f"  fast: {what}" for line, what in t.relaxed)
    for name, shape in t.workspaces:
        yield f"  workspace {name}: {shape}"
    yield from (f"  known difference of the device: {difference}" for difference in t.differences)


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
    shared = f", through {', '.join(k.workspaces)}" if k.workspaces else ""
    items = " x ".join(k.items) or "1"
    yield f"    reads {', '.join(k.reads) or 'nothing'}; writes {', '.join(k.writes) or 'nothing'}{shared}; {items} items"
    if k.tile:
        yield f"    tile {k.tile}: {k.why}"
    if k.buffers:
        share = f" of {k.capacity}" if k.capacity is not None else ""
        yield "    buffers" + (f": {k.bytes}{share} bytes" if k.bytes is not None else "")
        yield from _columns([(f"      {b.name}", _shape(b), f"{b.bytes} bytes", b.place, _lines_of(b), b.holds) for b in k.buffers])


def _lines_of(b: BufferFact) -> str:
    first, last = b.lives
    return _at(first) if first == last else f"lines {first} to {last}"


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
