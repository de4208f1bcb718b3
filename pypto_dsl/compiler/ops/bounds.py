"""Bounds of writes and elements: proved while recording, tested before the kernel runs, or guarded where a loop decides.

A window that is read is clipped to its source, so it needs no bound; a window that is written, and an element, must lie inside.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pypto_dsl.compiler.graph import Check, Graph, Op, Value
from pypto_dsl.compiler.index import Index, as_index, maximum
from pypto_dsl.compiler.ops.definition import REGISTRY
from pypto_dsl.compiler.ops.live import is_never_negative
from pypto_dsl.compiler.span import Span

LAUNCH = frozenset({"dim", "scalar"})  # kinds of symbols whose values are known before anything runs


def unproved(graph: Graph, offset: Index, extent: Index, have: Index) -> list[tuple[Index, Index]]:
    """Pairs (needed, available) that must satisfy needed <= available so that [offset, offset + extent) lies in [0, have)."""
    found: list[tuple[Index, Index]] = []
    if not is_never_negative(offset, graph):
        found.append((-offset, as_index(0)))
    if not is_never_negative(have - offset - extent, graph):
        found.append((offset + extent, have))
    return found


def stretched(operands: Sequence[Value], shape: Sequence[Index]) -> list[tuple[Index, Index]]:
    """Pairs (offset, available): axes of static extent 1 that are repeated along an axis of ``shape``, and may hold nothing.

    Such an axis is a window of one element (`x[0:1]`) into a tensor that may have none; the element must exist to be repeated.
    """
    found = []
    for operand in operands:
        window = operand.op if operand.op is not None and operand.op.opcode == "view" else None
        for i, wide in enumerate(shape[len(shape) - operand.type.rank:]):
            live = operand.type.live[i]
            if operand.type.shape[i].constant != 1 or live.constant is not None or wide.constant == 1:
                continue
            if window is None or window.attributes.get("valid") is not None:
                found.append((as_index(0), live))
            else:
                offset = cast("tuple[Index | int, ...]", window.attributes["offsets"])[i]
                found.append((as_index(offset), window.operands[0].type.live[i]))
    return found


def repeated(op: Op) -> list[tuple[Index, Index]]:
    """`stretched` for an operation that stands in a graph; nothing for one that repeats no operand."""
    definition = REGISTRY.get(op.opcode)
    if definition is None or (op.opcode != "expand_clone" and definition.family not in ("elementwise", "compare")):
        return []
    return stretched(op.operands, op.results[0].type.shape)


def known_at_launch(graph: Graph, x: Index) -> bool:
    """Whether an Index speaks of dimensions and scalars only."""
    return all(name in graph.symbols and graph.symbols[name].kind in LAUNCH for name in x.variables())


def require_within(graph: Graph, offset: Index, extent: Index, have: Index, span: Span | None, what: str) -> None:
    """Record a check that [offset, offset + extent) lies in [0, have) where that is not proved and the caller's arrays decide it.

    The check is an equality, max(needed, available) == available, like every other one. What a loop or an element decides is guarded when
    tiled (see `passes.tile`).
    """
    for needed, available in unproved(graph, offset, extent, have):
        if known_at_launch(graph, needed - available):
            graph.checks.append(Check(maximum(needed, available), available, span, what))
