"""The object cache: compiled kernels on disk under a hash of everything their bytes depend on.

Writes are atomic (a temporary file renamed); an entry carries its own digest, so a truncated, corrupt or foreign file is ignored. A
cache that cannot be read or written never fails a compilation: it logs at debug level and the kernel is compiled again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from pypto_dsl.runtime.toolchain import cache_folder

_log = logging.getLogger("pypto_dsl.cache")
_MAGIC = b"pypto_dsl object 1\n"
_DIGEST = 32  # bytes of SHA-256


def default_directory() -> Path:
    """The folder `objects` of the cache that the emulators' builds lie in too."""
    return cache_folder() / "objects"


class ObjectCache:
    """A directory of objects; ``directory`` None keeps nothing."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory

    def get(self, parts: tuple[str, ...], make: Callable[[], bytes]) -> bytes:
        """The object for ``parts`` (kernel text, versions, processor, options), made and kept when it is not there."""
        path = self.path_of(parts)
        if path is None:
            return make()
        found = self.read(path)
        if found is not None:
            return found
        made = make()
        self._write(path, made)
        return made

    def path_of(self, parts: tuple[str, ...]) -> Path | None:
        """Where the object for ``parts`` is kept."""
        if self.directory is None:
            return None
        digest = hashlib.sha256()
        for part in parts:
            digest.update(len(part).to_bytes(8, "little") + part.encode())
        return self.directory / f"{digest.hexdigest()}.o"

    def read(self, path: Path) -> bytes | None:
        """An entry's object; None when there is none, or none that can be trusted."""
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
        return body

    def _write(self, path: Path, body: bytes) -> None:
        temporary = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(body).digest() + body)
            os.replace(temporary, path)
        except OSError as problem:
            _log.debug("cache entry %s was not written: %s", path.name, problem)
            if temporary and os.path.exists(temporary):
                os.unlink(temporary)
