"""Keys and values that a target's file may have, learnt from the built-in targets of its family: a misspelt key is an error."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Path = tuple[str, ...]

# Tables whose keys have a meaning each; those of the others are names of operations, dtypes or instructions.
CLOSED = ("limits", "geometry", "memory", "dst", "rings", "device", "cube", "vector", "copy", "launch")
# Tables that a target of any family may have, and `base`.
GENERAL = ("base", "tile", "ops", "limits", "conformance", "bounds")
# Values that the emitted text itself relies on.
FIXED: Mapping[str, Mapping[tuple[str, str], object]] = {"ttmetal": {("geometry", "rows"): 32, ("geometry", "cols"): 32}}


def unknown_keys(data: Mapping[str, Any], siblings: Iterable[Mapping[str, Any]]) -> Iterable[tuple[Path, Path]]:
    """Paths of keys that no target of the family has, each with the keys that there are at its place."""
    known = list(siblings)
    yield from (found for found in _unknown(data, known, ()) if found[0][0] not in GENERAL)
    for name in CLOSED:
        if isinstance(data.get(name), Mapping):
            yield from _below(data[name], [s[name] for s in known if isinstance(s.get(name), Mapping)], (name,))


def _below(table: Mapping[str, Any], known: list[Mapping[str, Any]], path: Path) -> Iterable[tuple[Path, Path]]:
    yield from _unknown(table, known, path)
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _below(value, [s[key] for s in known if isinstance(s.get(key), Mapping)], (*path, key))


def _unknown(table: Mapping[str, Any], known: list[Mapping[str, Any]],
             path: Path) -> Iterable[tuple[Path, Path]]:
    keys = tuple(sorted({key for s in known for key in s}))
    return [((*path, key), keys) for key in table if known and key not in keys]


def unlike(data: Mapping[str, Any], siblings: Iterable[Mapping[str, Any]]) -> Iterable[tuple[Path, str]]:
    """Paths of values that are of another kind than the family's targets have at their place, each with what is wrong."""
    known = list(siblings)
    for name in CLOSED:
        if name in data:
            yield from _unlike(data[name], [s[name] for s in known if name in s], (name,))


def _unlike(value: Any, known: list[Any], path: Path) -> Iterable[tuple[Path, str]]:
    kinds = [_kind(v) for v in known]
    if known and _kind(value) not in kinds and not (type(value) is int and "a number" in kinds):
        yield path, f"is {value!r}, and must be {' or '.join(dict.fromkeys(kinds))}"
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield from _unlike(below, [k[key] for k in known if isinstance(k, Mapping) and key in k], (*path, key))


def _kind(value: Any) -> str:
    kinds = ((bool, "true or false"), (int, "a whole number"), (float, "a number"), (str, "a text"), (Mapping, "a table"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "a list")


def broken(data: Mapping[str, Any], family: str) -> Iterable[tuple[Path, str]]:
    """Paths of values that cannot be, each with what is wrong."""
    for (table, key), value in FIXED.get(family, {}).items():
        given = data.get(table, {}).get(key, value)
        if given != value:
            yield (table, key), f"is {given!r}, and the emitted code and its formats are written for {value}"
    for name, memory in data.get("memory", {}).items():
        if isinstance(memory, Mapping) and memory.get("budget", 0) > memory.get("bytes", memory.get("budget", 0)):
            yield ("memory", name, "budget"), f"is {memory['budget']}, more than the {memory['bytes']} bytes of the memory"
