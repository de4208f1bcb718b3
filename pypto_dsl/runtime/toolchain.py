"""The host C++ compiler: finding one, and building shared objects from generated sources into a content-addressed cache.

The emulators of the device backends compile the very files that an emitter wrote. Everything that can change the result
goes into the cache key: the bytes of every source and header, the flags, and the compiler's own version line.
"""
from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import filelock
import platformdirs

from pypto_dsl.compiler.errors import Diagnostic, KernelError, error

INSTALL_HINT = "install g++ or clang++, or `pip install ziglang` (the `test` extra holds it), or name a compiler in $PTC_CXX"
BUILD_TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class HostCompiler:
    """A C++ compiler that answered ``--version``.

    ``command`` is the argument vector to start it with, ``version`` its own first line, ``family`` one of ``gcc``,
    ``clang`` and ``zig``: the three differ in a few flags only.
    """

    command: tuple[str, ...]
    family: str
    version: str

    @property
    def extra_flags(self) -> tuple[str, ...]:
        """Flags that make the three families behave alike: zig instruments undefined behaviour unless told not to."""
        return ("-fno-sanitize=undefined",) if self.family == "zig" else ()


class BuildFailed(KernelError):
    """The host compiler refused a source. ``output`` is what it printed; an emitted file that fails is our bug."""

    def __init__(self, compiler: HostCompiler, title: str, output: str) -> None:
        self.compiler, self.title, self.output = compiler, title, output
        super().__init__(Diagnostic("PT902", f"{compiler.version} does not compile {title}:\n{output.rstrip()}",
                                    help="this is a mistake of pypto_dsl: please report it, with the archive that `ptc report` writes"))


def candidates() -> tuple[tuple[str, ...], ...]:
    """The commands that are tried, in order: $PTC_CXX alone when it is set, else g++, clang++ and the ziglang wheel."""
    chosen = os.environ.get("PTC_CXX", "").strip()
    if chosen:
        return (tuple(shlex.split(chosen)),)
    found: list[tuple[str, ...]] = [(path,) for path in (shutil.which(name) for name in ("g++", "clang++")) if path]
    if importlib.util.find_spec("ziglang") is not None:
        found.append((sys.executable, "-m", "ziglang", "c++"))
    return tuple(found)


@cache
def _probe(command: tuple[str, ...]) -> HostCompiler | None:
    try:
        answer = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if answer.returncode != 0 or not answer.stdout.strip():
        return None
    version = answer.stdout.strip().splitlines()[0]
    family = "zig" if "ziglang" in command or Path(command[0]).name.startswith("zig") else "clang" if "clang" in version else "gcc"
    return HostCompiler(command, family, version)


def find_compiler() -> HostCompiler:
    """The first C++ compiler that runs. Raises KernelError PT901, saying what to install, when there is none."""
    tried = candidates()
    for command in tried:
        compiler = _probe(command)
        if compiler is not None:
            return compiler
    names = ", ".join(f"`{shlex.join(command)}`" for command in tried) or "g++, clang++ and the ziglang wheel"
    raise error("PT901", f"no C++ compiler runs on this machine (tried {names}), and the emulators need one", help=INSTALL_HINT)


def cache_folder() -> Path:
    """Where built objects are kept: $PTC_CACHE_DIR, else the user's cache folder of the platform."""
    chosen = os.environ.get("PTC_CACHE_DIR", "").strip()
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("pypto_dsl"))


def headers_below(folder: Path) -> tuple[Path, ...]:
    """Every file below an include folder, in one order on every machine."""
    return tuple(sorted(path for path in folder.rglob("*") if path.is_file()))


def build_key(
    compiler: HostCompiler, files: Mapping[str, str], sources: Sequence[str], include_folders: Iterable[Path], flags: Sequence[str]
) -> str:
    """The content address of a build: 32 hexadecimal digits over everything that can change the object."""
    digest = hashlib.sha256()

    def feed(*parts: bytes) -> None:
        for part in parts:  # lengths first, so that no two different lists feed the same bytes
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)

    feed(compiler.version.encode(), sys.platform.encode())
    feed(*(flag.encode() for flag in (*flags, *compiler.extra_flags)))
    feed(*(source.encode() for source in sources))
    for name in sorted(files):
        feed(name.encode(), files[name].encode())
    for folder in include_folders:
        for header in headers_below(folder):
            feed(header.relative_to(folder).as_posix().encode(), header.read_bytes())
    return digest.hexdigest()[:32]


@contextmanager
def locked(folder: Path, timeout: float = -1) -> Iterator[None]:
    """Hold a folder of the cache, made if need be, against every other process that would build in it or remove it.

    Raises filelock.Timeout when somebody holds it for ``timeout`` seconds; below 0 it is waited for.
    """
    lock = filelock.FileLock(folder / ".lock", timeout=timeout)
    while True:  # until the folder is there behind the lock: whoever held it may have removed it
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            lock.acquire()
            if (folder / ".lock").exists():
                break
            lock.release()
    try:
        yield
    finally:
        lock.release()


def build_shared_object(
    title: str,
    files: Mapping[str, str],
    sources: Sequence[str],
    *,
    include_folders: Sequence[Path] = (),
    flags: Sequence[str] = (),
    compiler: HostCompiler | None = None,
) -> Path:
    """Compile ``sources`` (names in ``files``) into a shared object and return its path; a second call finds it built.

    ``files`` maps file names (no folders) to text: they are written side by side next to the object, where traps read
    them back. ``title`` names the build in messages and in the folder's name. ``flags`` are passed as they are;
    ``-shared -fPIC`` are added. Raises BuildFailed (PT902) with the compiler's words, KernelError PT901 without compiler.
    """
    compiler = compiler or find_compiler()
    folder = cache_folder() / "native" / f"{title}-{build_key(compiler, files, sources, include_folders, flags)}"
    library = folder / f"{title}.so"
    if library.exists():
        return library
    with locked(folder):
        if library.exists():
            return library
        for name in sorted(files):
            (folder / name).write_text(files[name], encoding="utf-8", newline="\n")
        unfinished = folder / f"{title}.{os.getpid()}.partial"
        includes = [f"-I{path}" for path in include_folders]
        paths = [str(folder / source) for source in sources]
        command = [*compiler.command, *flags, *compiler.extra_flags, "-shared", "-fPIC", *includes, *paths, "-o", str(unfinished)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_SECONDS)
        if done.returncode != 0:
            unfinished.unlink(missing_ok=True)
            raise BuildFailed(compiler, title, done.stderr)
        os.replace(unfinished, library)
    return library
