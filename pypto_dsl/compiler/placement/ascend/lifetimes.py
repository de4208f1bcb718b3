"""When each buffer holds something: the span of statements from its first access to its last, loops taken whole where needed."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pypto_dsl.compiler.placement.ascend.walk import bodies, reads, writes
from pypto_dsl.compiler.tile_ir.nodes import For, Statement


@dataclass(frozen=True)
class Lifetime:
    """Positions in the flattened statement order, both inclusive."""

    first: int
    last: int

    def overlaps(self, other: Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class _Access:
    position: int
    loops: tuple[int, ...]  # the loops around it, outermost first, by the position of their head
    writes_first: bool


def lifetimes(body: Iterable[Statement]) -> dict[str, Lifetime]:
    """The lifetime of every buffer that calls and copies touch.

    A buffer that is touched inside a loop and outside of it lives through the whole loop; so does one that an iteration reads
    before it writes it, because its value comes from the iteration before.
    """
    accesses: dict[str, list[_Access]] = {}
    ends: dict[int, int] = {}
    position = 0

    def walk(statements: Iterable[Statement], loops: tuple[int, ...]) -> None:
        nonlocal position
        for statement in statements:
            here = position
            position += 1
            read, written = {r.buffer.name for r in reads(statement)}, {w.buffer.name for w in writes(statement)}
            for name in sorted(read | written):
                accesses.setdefault(name, []).append(_Access(here, loops, name in written and name not in read))
            inside = (*loops, here) if isinstance(statement, For) else loops
            for inner in bodies(statement):
                walk(inner, inside)
            if isinstance(statement, For):
                ends[here] = position - 1

    walk(tuple(body), ())
    return {name: _lifetime(found, ends) for name, found in accesses.items()}


def _lifetime(found: list[_Access], ends: dict[int, int]) -> Lifetime:
    first, last = found[0].position, found[-1].position
    common = 0
    while all(len(a.loops) > common and a.loops[common] == found[0].loops[common] for a in found):
        common += 1
    for access in found:
        for loop in access.loops[common:]:  # not all accesses are in this loop
            first, last = min(first, loop), max(last, ends[loop])
    if not found[0].writes_first:
        for loop in found[0].loops[:common]:  # carried from one iteration to the next
            first, last = min(first, loop), max(last, ends[loop])
    return Lifetime(first, last)
