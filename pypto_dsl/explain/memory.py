"""Where the buffers of a kernel are and how many bytes they take, on each family of targets."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from pypto_dsl.codegen.llvm import layout
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.index import Index, as_index, round_up
from pypto_dsl.compiler.placement.ttmetal.geometry import geometry
from pypto_dsl.compiler.placement.ttmetal.rings import page_bytes
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir import ascend
from pypto_dsl.compiler.tile_ir.nodes import Buffer, TileKernel
from pypto_dsl.compiler.tile_ir.text import buffers
from pypto_dsl.explain.facts import BufferFact

# Which memory of a target's file holds the buffers of a kernel.
_LOCAL_MEMORIES = ("ub", "l1")


def capacity(kernel: TileKernel, target: Target) -> int | None:
    """Bytes of the memory that a kernel's buffers share, of its budget where a target gives them a part of it.

    None where the target has no such limit, or the cube unit several memories.
    """
    if kernel.unit != "vector" and target.family == "ascend":
        return None
    memory = target.table("memory")
    for name in _LOCAL_MEMORIES:
        entry = memory.get(name)
        size = entry.get("budget", entry.get("bytes")) if isinstance(entry, dict) else entry
        if isinstance(size, int):
            return size
    return None


def total_bytes(kernel: TileKernel, facts: tuple[BufferFact, ...]) -> int | None:
    """Bytes of all buffers together: of queues and arenas where they are laid out, else the sum; None when extents decide."""
    held = [s for s in (*kernel.once, *kernel.body) if isinstance(s, (ascend.Queue, ascend.Arena))]
    if held:
        return sum(s.bytes * (s.buffer.slots if isinstance(s, ascend.Queue) else 1) for s in held)
    known = [int(f.bytes) for f in facts if f.bytes.isdecimal()]
    return sum(known) if len(known) == len(facts) else None


def buffer_facts(kernel: TileKernel, target: Target) -> Iterable[BufferFact]:
    """Every buffer of a kernel in order of first use."""
    places = FAMILIES.get(target.family, _local)(kernel, target)
    lives = _lives(kernel)
    for buffer in buffers(kernel):
        size, place = places[buffer.name]
        line = buffer.span.line if buffer.span is not None else 0
        shape = _pages(buffer, target) if target.family == "ttmetal" else buffer.shape
        yield BufferFact(buffer.name, buffer.note, str(buffer.dtype), tuple(map(str, shape)), buffer.slots, str(size), place, line,
                         lives.get(buffer.name, (line, line)))


def _lives(kernel: TileKernel) -> dict[str, tuple[int, int]]:
    """The first and last of the user's lines whose operations touch each buffer."""
    found: dict[str, tuple[int, int]] = {}
    stack: list[tuple[object, int]] = [((kernel.once, kernel.body), 0)]
    while stack:
        node, line = stack.pop()
        if isinstance(node, Buffer):
            if line:
                first, last = found.get(node.name, (line, line))
                found[node.name] = min(first, line), max(last, line)
        elif isinstance(node, tuple):
            stack += [(child, line) for child in node]
        elif dataclasses.is_dataclass(node) and not isinstance(node, (Index, Span, DType)):
            span = getattr(node, "span", None)
            line = span.line if isinstance(span, Span) else line
            stack += [(getattr(node, field.name), line) for field in dataclasses.fields(node)]
    return found


# Buffer name -> (bytes of all its slots, where it is).
Places = dict[str, tuple[Index, str]]


def _local(kernel: TileKernel, _: Target) -> Places:
    return {b.name: (b.shape[0] * b.shape[1] * (b.slots * b.dtype.itemsize), b.space) for b in buffers(kernel)}


def _ascend(kernel: TileKernel, target: Target) -> Places:
    """Queues and views of an arena; what the cube unit uses lies in memories of its own."""
    places = _local(kernel, target)
    for s in (*kernel.once, *kernel.body):
        if isinstance(s, ascend.Queue):
            places[s.buffer.name] = as_index(s.bytes * s.buffer.slots), f"queue {s.position}"
        elif isinstance(s, ascend.View):
            places[s.buffer.name] = as_index(s.elements * s.buffer.dtype.itemsize), f"{s.arena} + {s.offset}"
    return places


def _ttmetal(kernel: TileKernel, target: Target) -> Places:
    """Rings of whole tiles, in the format that the target keeps a dtype in."""

    def ring(b: Buffer) -> tuple[Index, str]:
        pages = as_index(1) if b.tiles is None else b.tiles
        return pages * (b.slots * page_bytes(b, target)), f"ring {b.ring}" + (", tile by tile" if b.stream else "")

    return {b.name: ring(b) for b in buffers(kernel)}


def _pages(buffer: Buffer, target: Target) -> tuple[Index, Index]:
    """What one slot of a ring holds, in whole tiles: a single one of a stream, however large what passes through it."""
    tile = geometry(target)
    pages = as_index(1) if buffer.tiles is None else buffer.tiles
    rows, cols = round_up(buffer.shape[0], tile.rows), round_up(buffer.shape[1], tile.cols)
    if rows * cols == pages * (tile.rows * tile.cols):
        return rows, cols
    return as_index(tile.rows), pages * tile.cols


def _llvm(kernel: TileKernel, _: Target) -> Places:
    """Loads read their tensor where it is, outputs are written where they go; only what has several readers needs scratch."""
    plan = layout.plan(kernel)
    places: Places = {}
    for buffer in buffers(kernel):
        row = buffer.shape[0] * buffer.shape[1] * buffer.dtype.itemsize
        if buffer.name in plan.direct:
            places[buffer.name] = as_index(0), f"in {plan.direct[buffer.name].region.param.bound_to}"
        elif buffer.name in plan.slots:
            slot = plan.slots[buffer.name]
            places[buffer.name] = buffer.shape[0] * slot.pitch * buffer.dtype.itemsize, f"scratch + {slot.offset}"
        elif buffer.name in plan.columns:
            places[buffer.name] = row, f"scratch + {plan.columns[buffer.name].values}"
        elif buffer.name in plan.products:
            places[buffer.name] = row, "registers"
        else:
            places[buffer.name] = as_index(0), "read in place"
    return places


FAMILIES: dict[str, Callable[[TileKernel, Target], Places]] = {"ascend": _ascend, "ttmetal": _ttmetal, "llvm": _llvm}
