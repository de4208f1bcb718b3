"""Functions that kernels share (`Module.share`): compiled once for a kind of processor, kept as entries of their own, loaded once per
process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pypto_dsl.codegen.llvm.builder import Module
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.cache import ObjectCache, entry_name

_loaded: dict[str, tuple[bytes, jit.Library]] = {}  # by the entry's name: the object, and its code


def compiled(cache: ObjectCache, module: Module, machine: jit.Machine) -> tuple[tuple[str, str], ...]:
    """Load a module's shared functions, compiled where neither the process nor the cache has them; returns (name, entry) of each."""
    found = []
    for name, function in module.shared.items():
        text = function.text()
        parts = (text, machine.fingerprint)
        entry, path = entry_name(parts), cache.path_of(parts)
        known = _loaded.get(entry)
        if known is None:
            code = cache.get(parts, lambda: jit.compile_object(text, machine))  # noqa: B023
            _loaded[entry] = code, jit.Library(code, [name])
        elif path is not None and not path.exists():
            cache.write(path, known[0])
        found.append((name, entry))
    return tuple(found)


def addresses(cache: ObjectCache, functions: Iterable[tuple[str, str]]) -> Mapping[str, int] | None:
    """Where functions of these (name, entry) are in memory; None when one is neither loaded nor in the cache."""
    found = {}
    for name, entry in functions:
        if entry not in _loaded:
            code = cache.read(cache.directory / entry) if cache.directory is not None else None
            if code is None:
                return None
            _loaded[entry] = code, jit.Library(code, [name])
        found[name] = _loaded[entry][1].address(name)
    return found
