"""The Target record and its loader.

A target file has `name`, `title`, `family`, then the tables
`[tile]` (what the tile pass needs, see `TileChoices`), `[ops]` (operation -> dtypes it has natively), `[limits]` (rank, elements,
emptiness), `[memory.*]`, `[bounds.*]` and whatever the family's placement passes read through `Target.data`. Every number carries
its source in a comment. No chip number stands in code.
"""
from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata, resources
from typing import Any

from pypto_dsl.compiler.dtypes import BY_NAME, DType
from pypto_dsl.compiler.errors import error


@dataclass(frozen=True)
class TileChoices:
    """How the tile pass cuts iteration spaces for a target. Extents in elements.

    ``flatten``: purely elementwise groups become one long row, cut every ``flat``; ``plane`` (rows, cols) is the default tile of
    those that stay two-dimensional. Groups with reductions along rows take ``rows`` rows at a time, whole up to ``whole_row`` columns
    (None: any length), and split every ``cols`` beyond.
    ``column_rows`` x ``column_cols`` is the step of reductions along rows (axis 0). ``matmul`` is (m, n, k) of one item's block.
    ``align`` (rows, cols): tile extents are multiples of these. ``rematerialize``: how many cheap operations may be computed again
    instead of keeping a value between the Blocks of a row. ``obey``: the user's vector tile shape is used (rounded up to ``align``).
    ``separate``: a loop over pieces holds one reduction and no stores (the accumulator owns the registers meanwhile).
    ``across``: a reduction takes at most so many rows (columns, when it runs along rows) at a time, whatever the user's tile: the
    tile is walked in strips of it (None: the whole tile at once).
    """

    flatten: bool
    flat: int
    rows: int
    cols: int
    whole_row: int | None
    column_rows: int
    column_cols: int
    matmul: tuple[int, int, int]
    plane: tuple[int, int]
    align: tuple[int, int] = (1, 1)
    rematerialize: int = 0
    obey: bool = True
    separate: bool = False
    across: int | None = None


@dataclass(frozen=True)
class Target:
    """One target; ``data`` is the whole file for family-specific readers."""

    name: str
    title: str
    family: str
    tile: TileChoices
    ops: Mapping[str, frozenset[str]]
    data: Mapping[str, Any] = field(compare=False)

    def native(self, opcode: str, operands: tuple[DType, ...], result: DType) -> bool:
        """Whether the target has the operation on these dtypes.

        An entry names the first operand's dtype ("f32"), or a pair "f32->bf16" / "f32,i32" where one name is not enough:
        a pair with `->` is (first operand, result), one with `,` lists the operands. "*" admits every dtype.
        """
        entries = self.ops.get(opcode, frozenset())
        if "*" in entries:
            return True
        first = operands[0].name if operands else result.name
        listed = ",".join(d.name for d in operands)
        pairs = {e for e in entries if "->" in e or "," in e}
        if f"{first}->{result.name}" in pairs or listed in pairs:
            return True
        return first in entries

    def limit(self, name: str) -> Any:
        """A row of `[limits]`, or None."""
        return self.data.get("limits", {}).get(name)

    def table(self, name: str) -> Mapping[str, Any]:
        """A table of the file, empty when absent."""
        table: Mapping[str, Any] = self.data.get(name, {})
        return table


def _files() -> dict[str, Any]:
    """Target name -> file, the built-in ones and those of the entry-point group `pypto_dsl.targets` (a callable giving a path)."""
    found: dict[str, Any] = {}
    for entry in resources.files(__package__).iterdir():
        if entry.name.endswith(".toml"):
            found[entry.name.removesuffix(".toml")] = entry
    for point in metadata.entry_points(group="pypto_dsl.targets"):
        found.setdefault(point.name, point.load()())
    return dict(sorted(found.items()))


def names() -> tuple[str, ...]:
    """Names of every target there is."""
    return tuple(_files())


@lru_cache
def load(name: str) -> Target:
    """Read a target; PT501 for a name that is none."""
    files = _files()
    if name not in files:
        raise error("PT501", f"there is no target `{name}`", help=f"targets are {', '.join(files)}", target=name)
    return from_data(tomllib.loads(files[name].read_text(encoding="utf-8")))


def from_data(data: Mapping[str, Any]) -> Target:
    """A Target from parsed TOML; ValueError for a dtype that does not exist."""
    choices = dict(data["tile"])
    for key in ("matmul", "align", "plane"):
        if key in choices:
            choices[key] = tuple(choices[key])
    choices.setdefault("whole_row", None)
    choices.setdefault("plane", (choices["rows"], choices["cols"]))
    ops = {name: frozenset(entries) for name, entries in data.get("ops", {}).items()}
    for opcode, entries in ops.items():
        for entry in entries:
            for part in entry.replace("->", ",").split(","):
                if part != "*" and part not in BY_NAME:
                    raise ValueError(f"target {data['name']}: operation {opcode} lists the unknown dtype {part!r}")
    return Target(data["name"], data["title"], data["family"], TileChoices(**choices), ops, data)
