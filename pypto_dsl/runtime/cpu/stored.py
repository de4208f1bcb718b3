"""What the cache keeps of a compiled graph, so that a later process loads it without running a pass: the key, and the record.

The key is the recorded graph's text, the target's data, the level with its tuning, the processor, LLVM, and this package's own sources. The
record says which object it is and what its launcher takes; the program itself is lowered again only where a call cannot use the launcher.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pypto_dsl.compiler import index
from pypto_dsl.compiler.dtypes import BY_NAME, DType
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.tile_ir.nodes import Param
from pypto_dsl.runtime.cpu import jit, shared
from pypto_dsl.runtime.cpu.cache import ObjectCache

_log = logging.getLogger("pypto_dsl.cache")
SUFFIX = ".graph"
_LOADED = time.time()
_SETTLED_SECONDS = 2.0  # sources that are younger than this package's import by less may have been read half new
_SOURCES = ("compiler", "codegen/llvm", "runtime/cpu")


@dataclass(frozen=True)
class Record:
    """A compiled graph: the name of its object's entry and the symbols in it, the program's arguments, what the launcher takes
    (``tensors`` and ``numbers`` by name, None where there is no launcher), and the functions that it shares: (name, entry)."""

    object: str
    exports: tuple[str, ...]
    arguments: tuple[Param, ...]
    tensors: tuple[tuple[str, DType], ...] | None
    numbers: tuple[str, ...]
    shared: tuple[tuple[str, str], ...]

    def text(self) -> str:
        """The record as JSON."""
        arguments = [[a.name, a.dtype.name, [str(e) for e in a.shape], a.role] for a in self.arguments]
        tensors = None if self.tensors is None else [[name, dtype.name] for name, dtype in self.tensors]
        return json.dumps({"object": self.object, "exports": self.exports, "arguments": arguments, "tensors": tensors,
                           "numbers": self.numbers, "shared": self.shared})


def read(text: str) -> Record:
    """The record that `Record.text` wrote."""
    found = json.loads(text)
    arguments = tuple(Param(name, BY_NAME[dtype], tuple(map(index.parse, shape)), role) for name, dtype, shape, role in found["arguments"])
    tensors = None if found["tensors"] is None else tuple((name, BY_NAME[dtype]) for name, dtype in found["tensors"])
    functions = tuple((name, entry) for name, entry in found["shared"])
    return Record(found["object"], tuple(found["exports"]), arguments, tensors, tuple(found["numbers"]), functions)


def key(graph: Graph, target: Target, machine: jit.Machine, extents: Mapping[str, tuple[str, int]]) -> tuple[str, ...] | None:
    """Everything that a compiled graph depends on; None where the compiler's own sources cannot vouch for themselves."""
    version = compiler_version()
    if version is None:
        return None
    return (print_graph(graph, spans=False), target.name, _data(target), json.dumps(extents, sort_keys=True), repr(machine.level),
            machine.fingerprint, version)


_data_of: dict[int, tuple[Target, str]] = {}


def _data(target: Target) -> str:
    """A target's data as text; written once, for a target is loaded once."""
    found = _data_of.get(id(target))
    if found is None:
        found = _data_of[id(target)] = (target, json.dumps(target.data, sort_keys=True, default=str))
    return found[1]


@cache
def compiler_version() -> str | None:
    """A hash of the names, sizes and times of the sources that compile; None when one is younger than this process or none is there."""
    folder = Path(__file__).parents[2]
    digest = hashlib.sha256()
    try:
        files = sorted(_files(folder / part) for part in _SOURCES)
        for name, size, changed in (file for part in files for file in part):
            if changed / 1e9 > _LOADED - _SETTLED_SECONDS:
                _log.debug("%s has changed since it was imported: graphs are compiled anew", name)
                return None
            digest.update(f"{name} {size} {changed}\n".encode())
    except OSError as problem:
        _log.debug("the compiler's sources cannot be listed (%s): graphs are compiled anew", problem)
        return None
    return digest.hexdigest()


def _files(folder: Path) -> list[tuple[str, int, int]]:
    """(path, size, time of change in ns) of every source below a folder, in order."""
    found: list[tuple[str, int, int]] = []
    stack = [folder]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        stack.append(Path(entry.path))
                else:
                    status = entry.stat()
                    found.append((os.path.relpath(entry.path, folder.parent), status.st_size, status.st_mtime_ns))
    return sorted(found)


def find(cache: ObjectCache, parts: tuple[str, ...]) -> tuple[Record, bytes, Mapping[str, int]] | None:
    """The record, the object and the addresses of shared functions for a key, or None when anything is missing."""
    path = cache.path_of(parts, SUFFIX)
    kept = None if path is None else cache.read(path)
    if path is None or kept is None:
        return None
    try:
        record = read(kept.decode())
    except (ValueError, KeyError, TypeError) as problem:
        _log.debug("cache entry %s is of another version: %r", path.name, problem)
        return None
    code = cache.read(path.parent / record.object)
    addresses = shared.addresses(cache, record.shared)
    return None if code is None or addresses is None else (record, code, addresses)


def keep(cache: ObjectCache, parts: tuple[str, ...], record: Record) -> None:
    """Keep a record under its key."""
    path = cache.path_of(parts, SUFFIX)
    if path is not None:
        cache.write(path, record.text().encode())
