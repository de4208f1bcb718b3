"""PyPTO's helpers for comparing a kernel with golden data."""
from __future__ import annotations

import contextvars
from collections.abc import Sequence
from typing import Any

from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.trace import current

_GOLDENS: contextvars.ContextVar[Sequence[Any] | None] = contextvars.ContextVar("goldens", default=None)


def set_verify_golden_data(in_out_tensors: Sequence[Any] | None = None, goldens: Sequence[Any] | None = None) -> None:
    """Keep the arrays that the next call's arguments are to be compared with, None where there is none."""
    _GOLDENS.set(goldens)


def golden_data() -> Sequence[Any] | None:
    """What `set_verify_golden_data` was given last."""
    return _GOLDENS.get()


def _note(kind: str, text: str) -> None:
    trace = current()
    if trace is not None:
        trace.hints.append((kind, text, here()))


def pass_verify_print(*values: Any, cond: Any = None) -> None:
    """Note values to look at; shown by `explain`."""
    _note("verify_print", ", ".join(map(repr, values)))


def pass_verify_save(tensor: Any, fname: str = "", cond: Any = None, **_: Any) -> None:
    """Note a tensor to keep; shown by `explain`."""
    _note("verify_save", f"{tensor!r} -> {fname}")
