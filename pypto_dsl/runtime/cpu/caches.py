"""How much memory the caches of this machine keep, as Linux tells it."""

from __future__ import annotations

import logging
import os
import re
from functools import cache
from pathlib import Path

_log = logging.getLogger("pypto_dsl.cache")
_CPUS = Path("/sys/devices/system/cpu")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def last_level_bytes(cpus: Path = _CPUS) -> int | None:
    """The size of the last cache between memory and the first processor that this process may run on; None where the machine does not say.

    Processors that share the cache are not counted off: a neighbour may leave it all to us, or take it. (The C library's
    ``sysconf`` is not asked: some versions give the sum of all caches of a package.)
    """
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
    sizes: dict[int, int] = {}
    try:
        for index in (cpus / f"cpu{min(allowed)}" / "cache").glob("index[0-9]*"):
            size = re.fullmatch(r"(\d+)([KMG]?)", (index / "size").read_text().strip())
            if size is not None and (index / "type").read_text().strip() != "Instruction":
                sizes[int((index / "level").read_text())] = int(size[1]) * _UNITS[size[2]]
    except (OSError, ValueError) as problem:
        _log.debug("the sizes of the caches cannot be read: %s", problem)
    return sizes[max(sizes)] if sizes else None
