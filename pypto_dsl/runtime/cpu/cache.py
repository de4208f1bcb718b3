"""The object cache: compiled kernels on disk under a hash of everything their bytes depend on.

Writes are atomic (a temporary file renamed); an entry carries its own digest, so a truncated, corrupt or foreign file is ignored. A
cache that cannot be read or written never fails a compilation: it logs at debug level and the kernel is compiled again. Entries that
were used longest ago go when all together are larger than $PTC_CACHE_SIZE.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pypto_dsl.compiler.profile import stage
from pypto_dsl.runtime.toolchain import cache_folder

_log = logging.getLogger("pypto_dsl.cache")
_MAGIC = b"pypto_dsl object 1\n"
_DIGEST = 32  # bytes of SHA-256
DEFAULT_LIMIT = 1 << 30
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
# A process looks how large a cache is with its first write there, and then after so many, or so much of the limit.
_WRITES_BETWEEN_LOOKS = 256
_SHARE_BETWEEN_LOOKS = 16
_written: dict[tuple[Path, int | None], tuple[int, int]] = {}  # by folder and limit: writes, and bytes since the last look
_ABANDONED_SECONDS = 3600  # a temporary file this old belongs to a process that died


def default_directory() -> Path:
    """The folder `objects` of the cache that the emulators' builds lie in too."""
    return cache_folder() / "objects"


def size_limit() -> int | None:
    """How many bytes entries may have together: $PTC_CACHE_SIZE ("500M", "2GiB"; "0": no limit), 1 GiB when it says nothing."""
    said = os.environ.get("PTC_CACHE_SIZE", "").strip()
    number = re.fullmatch(r"(\d+)\s*([kmg]?)(i?b)?", said.lower())
    if said and number is None:
        _log.debug("PTC_CACHE_SIZE=%s is no size; the limit is 1 GiB", said)
    if number is None:
        return DEFAULT_LIMIT
    return int(number[1]) * _UNITS[number[2]] or None


def entry_name(parts: tuple[str, ...], suffix: str = ".o") -> str:
    """The name of the entry for ``parts``."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part.encode())
    return f"{digest.hexdigest()}{suffix}"


class ObjectCache:
    """A directory of entries; ``directory`` None keeps nothing. ``limit`` in bytes, that of the environment unless given."""

    def __init__(self, directory: Path | None, limit: int | None = None) -> None:
        self.directory = directory
        self.limit = size_limit() if limit is None else limit

    def get(self, parts: tuple[str, ...], make: Callable[[], bytes]) -> bytes:
        """The object for ``parts`` (kernel text, versions, processor, options), made and kept when it is not there."""
        path = self.path_of(parts)
        with stage("cache"):
            found = None if path is None else self.read(path)
        if found is not None:
            return found
        made = make()
        if path is not None:
            with stage("cache"):
                self.write(path, made)
        return made

    def path_of(self, parts: tuple[str, ...], suffix: str = ".o") -> Path | None:
        """Where the entry for ``parts`` is kept."""
        return None if self.directory is None else self.directory / entry_name(parts, suffix)

    def read(self, path: Path) -> bytes | None:
        """An entry's content; None when there is none, or none that can be trusted. It counts as used now."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as problem:
            _log.debug("cache entry %s is unreadable: %s", path.name, problem)
            return None
        body = data[len(_MAGIC) + _DIGEST:]
        if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != data[len(_MAGIC): len(_MAGIC) + _DIGEST]:
            _log.debug("cache entry %s is not one of ours or is damaged; it is ignored", path.name)
            return None
        try:
            os.utime(path)
        except OSError as problem:  # a folder that is only readable, or an entry that another process has just removed
            _log.debug("cache entry %s keeps its time: %s", path.name, problem)
        return body

    def write(self, path: Path, body: bytes) -> None:
        """Keep an entry, all of it or nothing. A failure is logged at debug level."""
        temporary = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(body).digest() + body)
            os.chmod(temporary, 0o644)  # a folder may be shared with users who only read it
            os.replace(temporary, path)
        except OSError as problem:
            _log.debug("cache entry %s was not written: %s", path.name, problem)
            if temporary:
                _remove(Path(temporary))
            return
        self._count(len(body))

    def _count(self, size: int) -> None:
        """Look how large the cache is once in a while: to list a large folder takes longer than to write an entry."""
        if self.directory is None:
            return
        writes, pending = _written.get((self.directory, self.limit), (0, 0))
        pending += size
        look = writes % _WRITES_BETWEEN_LOOKS == 0 or (self.limit is not None and pending * _SHARE_BETWEEN_LOOKS >= self.limit)
        _written[self.directory, self.limit] = writes + 1, 0 if look else pending
        if look:
            self.trim()

    def trim(self) -> int:
        """Remove what was used longest ago until a tenth of the limit is free, and what processes that died have left; bytes removed."""
        if self.directory is None:
            return 0
        entries: list[tuple[float, int, Path]] = []
        try:
            with os.scandir(self.directory) as found:
                for entry in found:
                    with contextlib.suppress(FileNotFoundError):  # another process may remove any entry at any time
                        status = entry.stat()
                        entries.append((status.st_mtime, status.st_size, Path(entry.path)))
        except OSError as problem:
            _log.debug("the cache folder cannot be listed: %s", problem)
            return 0
        abandoned = [e for e in entries if e[2].suffix == ".part" and e[0] < time.time() - _ABANDONED_SECONDS]
        total, removed = sum(size for _, size, _ in entries), 0
        allowed = total if self.limit is None or total <= self.limit else self.limit * 9 // 10
        oldest = sorted(e for e in entries if e[2].suffix != ".part")
        for _, size, path in [*abandoned, *oldest]:
            if path.suffix != ".part" and total - removed <= allowed:
                break
            _remove(path)
            removed += size
        if removed:
            _log.debug("the cache had %d bytes, and %d of them are removed", total, removed)
        return removed


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as problem:
        _log.debug("cache entry %s was not removed: %s", path.name, problem)
