"""A closed join table: for every ordered pair of nodes the join, or why there is none."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Cell:
    """One entry. ``result`` is None when the pair is refused; ``candidates`` then lists the minimal upper bounds (none, or several),
    or, with ``masked``, the join that the mask refused."""

    result: str | None
    candidates: tuple[str, ...] = ()
    masked: bool = False

    @staticmethod
    def parse(text: str) -> Cell:
        """Read ``f32`` (join), ``!bf16|f16`` (no unique least upper bound), ``!`` (no upper bound), ``~f32`` (refused by the mask)."""
        if text[0] == "!":
            return Cell(None, tuple(text[1:].split("|")) if len(text) > 1 else ())
        if text[0] == "~":
            return Cell(None, (text[1:],), True)
        return Cell(text)

    def __str__(self) -> str:
        if self.result is not None:
            return self.result
        return ("~" if self.masked else "!") + "|".join(self.candidates)


@dataclass(frozen=True)
class JoinTable:
    """The table of one lattice, row by row over ``nodes``; cells as `Cell.parse` reads them."""

    name: str
    nodes: tuple[str, ...]
    rows: tuple[str, ...]

    @cached_property
    def cells(self) -> dict[tuple[str, str], Cell]:
        """Every ordered pair of nodes with its cell."""
        return {(lhs, rhs): Cell.parse(text) for lhs, row in zip(self.nodes, self.rows, strict=True)
                for rhs, text in zip(self.nodes, row.split(), strict=True)}

    def pairs(self) -> Iterator[tuple[str, str, Cell]]:
        """Every ordered pair in table order."""
        for (lhs, rhs), cell in self.cells.items():
            yield lhs, rhs, cell
