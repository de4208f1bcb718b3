"""Bounds of writes and elements: proved while recording, tested before the kernel runs, or guarded where a loop decides.

A window that is read is clipped to its source, so it needs no bound; a window that is written, and an element, must lie inside.
"""
from __future__ import annotations

from pypto_dsl.compiler.graph import Check, Graph
from pypto_dsl.compiler.index import Index, as_index, maximum
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
