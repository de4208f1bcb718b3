"""How arguments may be spelled besides an operation's own names: keywords of PyPTO's, and the bounds of a range by name."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto_dsl.compiler.errors import error
from pypto_dsl.frontend.spans import here

# Of every operation: the first operand of what PyPTO documents as a method.
_EVERY = {"self": "input"}
# operation -> keyword in PyPTO -> parameter here
_KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "assemble": {"input": "src", "inputs": "src"},
    "atan2": {"y": "input", "x": "other"},
    "atomic_add": {"input": "src"},
    "axpy_": {"y": "input", "x": "other"},
    "move": {"other": "value"},
    "scaled_mm": {"mat_a": "input", "mat_b": "mat2"},
    "unpack": {"dstDataType": "dtype"},
}

# Operations of the op table that only the text form names, and what a kernel writes instead; {x} is a tensor.
TEXT_ONLY: Mapping[str, str] = {
    "empty": "pypto.tensor([64, 64], pypto.DT_FP32)",
    "extent": "{x}.shape[0]",
    "insert": "{x}[0:4, :] = value",
    "iota": "pypto.arange(64)",
    "load_scalar": "{x}[0, 0]",
}


def respelled(name: str, known: Any, keywords: dict[str, Any]) -> dict[str, Any]:
    """``keywords`` of a call of the operation ``name`` under the names that it has among ``known`` here."""
    if not keywords:
        return keywords
    table = _KEYWORDS.get(name, _EVERY)
    if keywords.keys().isdisjoint(table) and keywords.keys().isdisjoint(_EVERY):
        return keywords

    def renamed(keyword: str) -> str:
        return keyword if keyword in known else table.get(keyword, _EVERY.get(keyword, keyword))

    return {renamed(k): v for k, v in keywords.items()}


def bounds_of(args: Sequence[Any], named: Mapping[str, Any], what: str, stop: str) -> tuple[Any, ...]:
    """The one to three bounds of a range, given by position or by the names ``start``, ``stop`` (which it calls so) and ``step``.

    Raises PT110 for other names, a bound given twice, or none.
    """
    names = (stop,) if len(args) == 1 and not named.keys() & {"start", stop} else ("start", stop, "step")
    if set(named) - {"start", stop, "step"} or set(names[:len(args)]) & named.keys():
        raise error("PT110", f"{what} takes (start, {stop}, step), and got {len(args)} by position and {', '.join(named)}", here())
    given = {**dict(zip(names, args, strict=False)), **named} if len(args) <= 3 else {}
    if stop not in given:
        raise error("PT110", f"{what} takes one to three bounds ({stop}; start, {stop}; start, {stop}, step), and got {len(args)}", here(),
                    help=f"{what}(8) or {what}(0, 8, 2)")
    return given.get("start", 0), given[stop], given.get("step", 1)
