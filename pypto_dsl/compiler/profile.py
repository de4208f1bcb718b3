"""Where the time of a compilation goes: stages are timed, and printed on stderr where PTC_PROFILE=1 is set."""
from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar

VARIABLE = "PTC_PROFILE"
_stages: ContextVar[dict[str, float] | None] = ContextVar("stages", default=None)


@contextlib.contextmanager
def profiled(what: str) -> Iterator[None]:
    """Collect the stages inside and print them under ``what``; inside another profile they are part of that."""
    if os.environ.get(VARIABLE, "") in ("", "0") or _stages.get() is not None:
        yield
        return
    found: dict[str, float] = {}
    token = _stages.set(found)
    began = time.perf_counter()
    try:
        yield
    finally:
        total = time.perf_counter() - began
        _stages.reset(token)
        if found:  # a call that compiled nothing says nothing
            print(_report(what, found, total), file=sys.stderr)


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """Count what runs inside to ``name``, but for stages inside it, which count themselves."""
    found = _stages.get()
    if found is None:
        yield
        return
    others = sum(found.values()) - found.get(name, 0.0)
    began = time.perf_counter()
    try:
        yield
    finally:
        inner = sum(found.values()) - found.get(name, 0.0) - others
        found[name] = found.get(name, 0.0) + time.perf_counter() - began - inner


def _report(what: str, found: dict[str, float], total: float) -> str:
    rows = [*found.items(), ("other", total - sum(found.values()))]
    lines = [f"ptc profile: {what}: {total * 1e3:.2f} ms", *(f"  {name:<14}{seconds * 1e3:9.2f} ms" for name, seconds in rows)]
    return "\n".join(lines)
