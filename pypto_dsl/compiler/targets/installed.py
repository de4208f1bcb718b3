"""Targets of installed packages, found by their entry points. Loaded when one is looked for: `importlib.metadata` is slow to import."""
from __future__ import annotations

import sys
from functools import lru_cache
from importlib import metadata
from importlib.resources.abc import Traversable
from pathlib import Path

from pypto_dsl.compiler.errors import error

GROUP = "pypto_dsl.targets"


def points() -> metadata.EntryPoints:
    """The entry points of the group, one for each target. To ask takes milliseconds: it is done once for a search path."""
    return _points(tuple(sys.path))


@lru_cache(maxsize=1)
def _points(path: tuple[str, ...]) -> metadata.EntryPoints:
    return metadata.entry_points(group=GROUP)


def package(point: metadata.EntryPoint) -> str:
    """The name of the package that an entry point is of."""
    return point.dist.name if point.dist is not None else point.value


def file_of(point: metadata.EntryPoint) -> Path | Traversable:
    """The file that an entry point gives: a path as text or object, or a resource of its package. PT504 when it gives none."""
    try:
        given = point.load()()
        return given if isinstance(given, Traversable) else Path(given)
    except Exception as failure:  # code of another package: whatever it raises is its fault
        raise error("PT504", f"the package {package(point)} does not give its target {point.name}: {type(failure).__name__}: {failure}",
                    help=f"update or remove {package(point)}", file=point.value, table="", key="") from failure
