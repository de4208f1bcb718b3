"""What a specialisation depends on besides its tensors: plain data of arguments, closures and globals, as comparable snapshots."""
from __future__ import annotations

import dataclasses
import dis
import enum
from collections.abc import Hashable, Iterable
from functools import lru_cache
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import DType

DEEPEST = 8
_PLAIN = (bool, int, float, complex, str, bytes, type(None), DType, enum.Enum, np.generic)


class Opaque:
    """A value without a comparable content: equal only to itself, and kept alive so that its identity stays its own."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"<{type(self.value).__name__}>"


def freeze(x: Any, depth: int = 0) -> Hashable:
    """A hashable snapshot of plain data; what is not plain data is `Opaque`. 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(x, float):
        return float, x.hex()
    if isinstance(x, np.generic):
        return str(x.dtype), x.tobytes()
    if isinstance(x, _PLAIN):
        return type(x), x
    if depth > DEEPEST:
        return Opaque(x)
    if isinstance(x, (list, tuple)):
        return type(x), tuple(freeze(v, depth + 1) for v in x)
    if isinstance(x, dict):
        return type(x), tuple((freeze(k, depth + 1), freeze(v, depth + 1)) for k, v in x.items())
    if isinstance(x, (set, frozenset)):
        return type(x), frozenset(freeze(v, depth + 1) for v in x)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return type(x), tuple((f.name, freeze(getattr(x, f.name), depth + 1)) for f in dataclasses.fields(x))
    if isinstance(x, (type, FunctionType, ModuleType)) or callable(x) or not hasattr(x, "__dict__"):
        return Opaque(x)
    return type(x), tuple((k, freeze(v, depth + 1)) for k, v in sorted(vars(x).items()))


@dataclasses.dataclass(frozen=True)
class Read:
    """A global or closure variable that a kernel or one of its helpers reads, as it was when the kernel was captured."""

    kind: str
    name: str
    source: dict[str, Any] | CellType
    seen: object
    frozen: Hashable

    def now(self) -> Any:
        """The variable's value now."""
        if isinstance(self.source, dict):
            return self.source.get(self.name)
        try:
            return self.source.cell_contents
        except ValueError:  # a cell that is empty again
            return None

    def holds(self) -> bool:
        """Whether the variable still has the value: by identity for what cannot change, else by content."""
        value = self.now()
        if value is self.seen and isinstance(value, _PLAIN):
            return True
        return freeze(value) == self.frozen


@lru_cache(maxsize=4096)
def _globals_of(code: CodeType) -> tuple[str, ...]:
    found: dict[str, None] = {}
    stack = [code]
    while stack:
        code = stack.pop()
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and isinstance(instruction.argval, str):
                found[instruction.argval] = None
        stack += [c for c in code.co_consts if isinstance(c, CodeType)]
    return tuple(found)


def reads_of(functions: Iterable[FunctionType]) -> list[Read]:
    """The globals and closure cells that functions read, where they hold data; functions, classes and modules are code."""
    found: list[Read] = []
    seen: set[tuple[int, str]] = set()
    for function in functions:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        sources: list[tuple[str, str, Any]] = [("closure variable", name, cell) for name, cell in cells]
        sources += [("global", n, function.__globals__) for n in _globals_of(function.__code__) if n in function.__globals__]
        for kind, name, source in sources:
            if (id(source), name) in seen:
                continue
            seen.add((id(source), name))
            read = Read(kind, name, source, None, None)
            value = read.now()
            if isinstance(value, (type, ModuleType)) or (callable(value) and (kind == "global" or not isinstance(value, FunctionType))):
                continue
            found.append(dataclasses.replace(read, seen=value, frozen=freeze(value)))
    return found


def shown(x: Any) -> str:
    """A value of a key as a reason writes it."""
    text = repr(x)
    return text if len(text) <= 40 else text[:37] + "..."
