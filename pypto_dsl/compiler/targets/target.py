"""The Target record and its loader.

A target file has `name` (the file's own), `title`, `family`, then the tables `[tile]` (what the tile pass needs, see `TileChoices`),
`[ops]` (operation -> dtypes it has natively), `[limits]` (rank, elements, emptiness), `[conformance]` (known differences of the device, see
`Difference`), `[memory.*]`, `[bounds.*]` and whatever the family's placement passes read through `Target.table`. Every number carries
its source in a comment. No chip number stands in code. A file with `base`, a target's name or the path of a file beside this one, has what
that one has, but for the keys that it gives itself.
"""
from __future__ import annotations

import difflib
import importlib
import os
import tomllib
import typing
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from pypto_dsl.compiler.dtypes import BY_NAME, DType
from pypto_dsl.compiler.errors import KernelError, error
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.summation import COLUMN_BLOCK, PRODUCT_BLOCK
from pypto_dsl.compiler.targets import schema

# Families of targets; a target of family "none" has passes and no placement: what is lowered for it stays structured Tile IR.
FAMILIES = ("llvm", "ascend", "ttmetal", "none")


class TargetWarning(UserWarning):
    """A target of an installed package that cannot be read, and is left out of lists."""


class Table(dict[str, Any]):
    """A table of a target file. Reading a key that the file lacks raises PT504, which names file, table and key."""

    def __init__(self, rows: Mapping[str, Any], file: str, title: str = "") -> None:
        nested = f"{title}." if title else ""
        super().__init__({k: Table(v, file, nested + k) if isinstance(v, Mapping) else v for k, v in rows.items()})
        self.file = file
        self.title = title

    def __missing__(self, key: str) -> Any:
        raise self.wrong(key, "is missing")

    def wrong(self, key: str, what: str, help: str = "") -> KernelError:
        """PT504: what is wrong with ``key`` of this table."""
        where = f"[{self.title}] {key}" if self.title else key
        return error("PT504", f"{self.file}: {where} {what}", help=help, file=self.file, table=self.title, key=key)


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
    tile is walked in strips of it (None: the whole tile at once). ``turned`` (rows, cols) is the tile of groups that read a tensor whose
    rows, not its columns, are neighbours in memory: reductions along rows take so many columns, those along columns a cache line of rows
    (None: such groups are cut like others). ``short``: rows whose length is known are taken several at a time as long as they have no more
    elements than this together (0: never), so that what is done once a row is done for a vector of rows. ``column_least``: an item of
    reductions along rows has as few columns as this where wider ones would leave workers without any (None: always ``column_cols``).
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
    turned: tuple[int, int] | None = None
    short: int = 0
    column_least: int | None = None


@dataclass(frozen=True)
class Difference:
    """A row of `[conformance]`: how the device is known to differ, in which operations, on which dtypes (None: on all)."""

    name: str
    text: str
    ops: frozenset[str] | None
    dtypes: frozenset[str] | None

    def concerns(self, ops: Set[str], dtypes: Set[str]) -> bool:
        """Whether a kernel of these operations and dtypes is one that the row speaks of."""
        return (self.ops is None or not self.ops.isdisjoint(ops)) and (self.dtypes is None or not self.dtypes.isdisjoint(dtypes))


@dataclass(frozen=True)
class Target:
    """One target; ``data`` is the whole file for family-specific readers."""

    name: str
    title: str
    family: str
    tile: TileChoices
    ops: Mapping[str, frozenset[str]]
    data: Mapping[str, Any] = field(compare=False)
    differences: tuple[Difference, ...] = ()

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
        table: Mapping[str, Any] | None = self.data.get(name)
        return Table({}, self.name, name) if table is None else table


@lru_cache
def _built_in() -> dict[str, Path]:
    return {file.stem: file for file in Path(__file__).parent.glob("*.toml")}


def _installed() -> Any:
    """The module of installed packages' targets."""
    return importlib.import_module("pypto_dsl.compiler.targets.installed")


def names() -> tuple[str, ...]:
    """Names of every target there is: the built-in ones and those of the entry-point group `pypto_dsl.targets`. No file is read."""
    return tuple(sorted({*_built_in(), *(point.name for point in _installed().points())}))


def is_built_in(name: str) -> bool:
    """Whether this package has the target; to ask installed packages takes milliseconds."""
    return name in _built_in()


def is_file(name: str) -> bool:
    """Whether a target is named by the path of its file, `path/to/chip.toml`."""
    return name.endswith(".toml")


def load(name: str) -> Target:
    """Read a target: one of `names`, or the path of a file. PT501 for a name that is none, PT504 for a file that is wrong."""
    if not is_file(name):
        return _named(name)
    path = Path(name)
    if not path.is_file():
        raise error(
            "PT501", f"there is no target file `{name}`", help=f"give the path of a file, or one of {', '.join(names())}", target=name
        )
    return _read(path, os.path.basename(name))


@lru_cache
def _named(name: str) -> Target:
    file = _built_in().get(name)
    if file is not None:
        return _read(file, file.name)
    installed = _installed()
    for point in installed.points():
        if point.name == name:
            return _read(installed.file_of(point), f"{name}.toml of {installed.package(point)}", name)
    raise error("PT501", f"there is no target `{name}`", help=f"targets are {', '.join(names())}", target=name)


def available() -> tuple[Target, ...]:
    """Every target of `names` that can be read; one that cannot is left out with a TargetWarning that names its package."""
    found = [_named(name) for name in sorted(_built_in())]
    installed = _installed()
    for point in installed.points():
        if point.name in _built_in():
            continue
        try:
            found.append(_named(point.name))
        except KernelError as refused:
            note = f"the target {point.name} of the package {installed.package(point)} is left out: {refused.diagnostic.message}"
            warnings.warn_explicit(TargetWarning(note), None, f"entry point {point.value}", 1)
    return tuple(sorted(found, key=lambda target: target.name))


def _read(file: Any, shown: str, name: str | None = None) -> Target:
    """A file's Target. PT504 unless it is called what the file is (``name``: what its entry point is)."""
    own = _parsed(file, shown)
    called = name if name is not None else file.name.removesuffix(".toml")
    if own["name"] != called:
        raise own.wrong("name", f"is {own['name']!r}, and the {'entry point' if name else 'file'} is called {called!r}")
    return from_data(_with_base(own, file, ()), shown)


def _parsed(file: Any, shown: str) -> Table:
    try:
        return Table(tomllib.loads(file.read_text(encoding="utf-8")), shown)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as failure:
        raise error("PT504", f"{shown} cannot be read: {failure}", file=shown, table="", key="") from failure


def _with_base(own: Table, file: Any, above: tuple[Any, ...]) -> Mapping[str, Any]:
    """What a file says over what its base says. PT504 for a base that is no target, cannot be read, or has the file as its own base."""
    if "base" not in own:
        return own
    base, above = _base_of(own, file), (*above, file.resolve() if isinstance(file, Path) else file)
    if base in above:
        raise own.wrong("base", f"is {own['base']!r}, which leads back to itself")
    inherited = _with_base(_parsed(base, base.name), base, above)
    return _over(own, {key: value for key, value in inherited.items() if key not in ("name", "title")})


def _base_of(own: Table, file: Any) -> Any:
    """The file that `base` means: a path beside ``file``, or a target of `names`."""
    given = own["base"]
    if not isinstance(given, str):
        raise own.wrong("base", f"is {given!r}, and must be a target's name or the path of a file")
    if is_file(given):
        beside = file.parent / given if isinstance(file, Path) else None
        if beside is None or not beside.is_file():
            raise own.wrong("base", f"is {given!r}, and there is no such file beside this one")
        return beside.resolve()
    if given in _built_in():
        return _built_in()[given].resolve()
    points = {point.name: point for point in _installed().points()}
    if given not in points:
        raise own.wrong("base", f"is the unknown {given!r}", _meant(given, names(), "targets"))
    return _installed().file_of(points[given])


def _over(own: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of both, those of tables one by one; ``own`` where both have one."""
    merged = dict(base)
    for key, value in own.items():
        below = base.get(key)
        merged[key] = _over(value, below) if isinstance(value, Mapping) and isinstance(below, Mapping) else value
    return merged


def from_data(data: Mapping[str, Any], file: str = "") -> Target:
    """A Target from parsed TOML. PT504, with file, table and key, for what is missing, unknown, or not of its kind."""
    whole = Table(data, file or str(data.get("name", "a target")))
    for key in ("name", "title", "family"):
        if not isinstance(whole[key], str) or not whole[key]:
            raise whole.wrong(key, f"is {whole[key]!r}, and must be a text")
    if whole["family"] not in FAMILIES:
        raise whole.wrong("family", f"is the unknown {whole['family']!r}", _meant(whole["family"], FAMILIES, "families"))
    for key in ("tile", "ops", "limits", "conformance"):
        if not isinstance(whole.get(key, {}), Mapping):
            raise whole.wrong(key, "must be a table")
    _check_tables(whole)
    choices = _choices(whole["tile"])
    if whole["family"] == "llvm":
        _check_blocks(choices, whole["tile"])
    return Target(whole["name"], whole["title"], whole["family"], choices, _operations(whole.get("ops", {}), whole), whole,
                  _differences(whole.get("conformance", {}), whole))


def _check_tables(whole: Table) -> None:
    """PT504 for keys that no built-in target of the family has, and for values that cannot be."""
    siblings = [row for row in map(_sibling, _built_in()) if row["family"] == whole["family"]]
    for path, known in schema.unknown_keys(whole, siblings):
        raise _at(whole, path[:-1]).wrong(path[-1], "is unknown", _meant(path[-1], known, "keys"))
    for path, what in chain(schema.unlike(whole, siblings), schema.broken(whole, whole["family"])):
        raise _at(whole, path[:-1]).wrong(path[-1], what)


def _check_blocks(choices: TileChoices, table: Table) -> None:
    """PT504 for steps that cut the blocks of the CPU's sums: their order is the same for every tile."""
    for key, step, block in (("column_rows", choices.column_rows, COLUMN_BLOCK), ("matmul", choices.matmul[2], PRODUCT_BLOCK)):
        if step % block:
            raise table.wrong(key, f"ends in a step of {step}, and must end in a multiple of {block}, a block of the CPU's sums")


def _at(table: Table, path: Sequence[str]) -> Table:
    for key in path:
        table = table[key]
    return table


@lru_cache
def _sibling(name: str) -> Mapping[str, Any]:
    file = _built_in()[name]
    return _with_base(_parsed(file, file.name), file, ())


def _meant(name: str, known: Iterable[str], kind: str) -> str:
    """A help: the nearest of the names there are, or all of them."""
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else f"{kind} are {', '.join(known)}"


def _operations(rows: Mapping[str, Any], whole: Table) -> dict[str, frozenset[str]]:
    """`[ops]`: operations of the op table, each with dtypes, pairs of them, or "*"."""
    for name, entries in rows.items():
        table = whole["ops"]
        if name not in REGISTRY:
            raise table.wrong(name, "is no operation", _meant(name, sorted(REGISTRY), "operations"))
        if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
            raise table.wrong(name, f'is {entries!r}, and must be a list of dtypes such as ["f32", "f32->bf16"]')
        for entry in entries:
            for part in entry.replace("->", ",").split(","):
                if part != "*" and part not in BY_NAME:
                    raise table.wrong(name, f"lists the unknown dtype {part!r}", _meant(part, BY_NAME, "dtypes"))
    return {name: frozenset(entries) for name, entries in rows.items()}


def _differences(rows: Mapping[str, Any], whole: Table) -> tuple[Difference, ...]:
    """`[conformance]`: each row has a text, the operations that it is about ("*": all), and dtypes where it is not about all."""
    found = []
    for name, row in rows.items():
        table = whole["conformance"]
        keys = set(row) if isinstance(row, Mapping) else set()
        if not {"ops", "text"} <= keys <= {"ops", "dtypes", "text"} or not isinstance(row["text"], str):
            raise table.wrong(name, 'must be a table such as { ops = ["exp"], dtypes = ["f32"], text = "..." }')
        for key, known in (("ops", REGISTRY), ("dtypes", BY_NAME)):
            given = row.get(key, ["*"])
            if not isinstance(given, list) or not given:
                raise table[name].wrong(key, f"is {given!r}, and must be a list of {'operations' if key == 'ops' else key}")
            for entry in given:
                if entry != "*" and entry not in known:
                    raise table[name].wrong(key, f"lists the unknown {entry!r}", _meant(str(entry), sorted(known), key))
        ops, dtypes = (None if "*" in row.get(key, ["*"]) else frozenset(row[key]) for key in ("ops", "dtypes"))
        found.append(Difference(name, row["text"], ops, dtypes))
    return tuple(found)


def _choices(table: Table) -> TileChoices:
    """`[tile]`; `whole_row` may be left out (rows of any length are kept whole), `plane` too (rows x cols)."""
    known = {f.name: f for f in fields(TileChoices)}
    kinds = typing.get_type_hints(TileChoices)
    for key, value in table.items():
        if key not in known:
            raise table.wrong(key, "is unknown", _meant(key, known, "keys"))
        wanted = _unlike(value, kinds[key], least=0 if known[key].default == 0 else 1)
        if wanted:
            raise table.wrong(key, f"is {value!r}, and must be {wanted}")
    required = [f.name for f in known.values() if f.default is MISSING and f.name not in ("whole_row", "plane")]
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    defaults = {"whole_row": None, "plane": (table["rows"], table["cols"])}
    return TileChoices(**{**defaults, **{key: table[key] for key in required}, **given})


def _unlike(value: Any, kind: Any, least: int) -> str:
    """What a field of TileChoices takes instead of ``value``, "" when it takes it."""
    if kind is bool:
        return "" if isinstance(value, bool) else "true or false"
    kind = next((k for k in typing.get_args(kind) if typing.get_origin(k) is tuple), kind)  # a tuple, or none
    members = typing.get_args(kind) if typing.get_origin(kind) is tuple else ()
    numbers: Sequence[Any] = value if members and isinstance(value, (list, tuple)) else [value]
    if len(numbers) == max(1, len(members)) and all(type(n) is int and n >= least for n in numbers):
        return ""
    return f"a list of {len(members)} whole numbers from {least}" if members else f"a whole number from {least}"
