"""`ptc cache`: what is kept on disk, how much, and from when; clearing it; which entry a kernel has."""
from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from pypto_dsl.cli import kernels, terminal
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.runtime.cpu.cache import ObjectCache, default_directory
from pypto_dsl.runtime.cpu.executable import Executable
from pypto_dsl.runtime.toolchain import cache_folder


@dataclass(frozen=True)
class CacheEntry:
    """One entry: what kind of thing it is (the folder below the cache it lies in), its name, bytes, and when it was written."""

    kind: str
    name: str
    bytes: int
    written: float


def cached() -> list[CacheEntry]:
    """Every entry, newest first."""
    root = cache_folder()
    found = []
    for kind in sorted(p for p in root.iterdir() if p.is_dir()) if root.is_dir() else ():
        for path in sorted(kind.iterdir()):
            files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
            found.append(CacheEntry(kind.name, path.name, sum(f.stat().st_size for f in files), path.stat().st_mtime))
    return sorted(found, key=lambda e: (-e.written, e.kind, e.name))


@click.group("cache")
def command() -> None:
    """List, clear or question the compiled kernels kept on disk.

    The folder is $PTC_CACHE_DIR, or this platform's cache folder. Entries are found by their contents: the key of an entry covers
    everything that can change it, so clearing is never needed for right results.
    """


@command.command("ls")
@terminal.json_option
def ls(as_json: bool) -> None:
    """List what is kept, newest first."""
    entries = cached()
    if as_json:
        terminal.emit_json({"ok": True, "folder": str(cache_folder()), "entries": [asdict(e) for e in entries]})
        return
    total = sum(e.bytes for e in entries)
    click.echo(f"{cache_folder()}: {len(entries)} entries, {_size(total)}")
    now = time.time()
    if entries:
        rows = [(e.kind, e.name, _size(e.bytes), _age(now - e.written)) for e in entries]
        click.echo(terminal.table(rows, head=("kind", "name", "size", "age")))


@command.command("clear")
@click.option("--kind", help="Only entries of this kind.")
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Only entries older than so many days.")
@terminal.json_option
def clear(kind: str | None, older_than: float | None, as_json: bool) -> None:
    """Remove what is kept."""
    limit = time.time() - (older_than or 0) * 86400
    chosen = [e for e in cached() if kind in (None, e.kind) and (older_than is None or e.written < limit)]
    for entry in chosen:
        remove(cache_folder() / entry.kind / entry.name)
    if as_json:
        terminal.emit_json({"ok": True, "removed": len(chosen), "bytes": sum(e.bytes for e in chosen)})
    else:
        click.echo(f"removed {len(chosen)} entries, {_size(sum(e.bytes for e in chosen))}")


def remove(path: Path) -> None:
    """Remove one entry, a file or a folder; one that another process removed first is fine."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _size(count: int) -> str:
    return f"{count} B" if count < 1024 else f"{count / 1024:.0f} KiB" if count < 1024 ** 2 else f"{count / 1024 ** 2:.1f} MiB"


def _age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


class _Asked(ObjectCache):
    """Notes which entry was asked for, and writes nothing."""

    path: Path | None = None
    found = False

    def get(self, parts: tuple[str, ...], make: Callable[[], bytes]) -> bytes:
        """The entry if it is there, else made and not kept."""
        self.path = self.path_of(parts)
        kept = None if self.path is None else self.read(self.path)
        self.found = kept is not None
        return make() if kept is None else kept


@command.command("why")
@click.argument("kernel")
@kernels.shape_option
@terminal.json_option
def why(kernel: str, shapes: tuple[kernels.Shape, ...], as_json: bool) -> None:
    """Say which entry a kernel has, whether it is there, and why.

    An entry is found by the hash of the emitted code and of the machine that it was compiled for. Run-time numbers and DYNAMIC extents
    are in neither, so they never make another one.
    """
    source = kernels.find(kernel)
    if source.kernel is not None:
        form = source.kernel.specialise(**kernels.arguments(source, shapes, 0))
        graph, described = form.graph, form.describe()
    elif source.graph is not None:
        graph = source.graph
        described = ", ".join(f"{p.name} {p.type}" for p in graph.parameters)
    else:
        raise TypeError("a source has a kernel or a graph")
    asked = _Asked(default_directory())
    made = Executable(lower(graph, "llvm-cpu"), cache=asked)
    document = {"kernel": source.name, "form": described, "entry": str(asked.path), "found": asked.found, "code_bytes": len(made.text),
                "machine": made.machine.fingerprint, "options": dict(graph.options)}
    if as_json:
        terminal.emit_json({"ok": True, **document})
        return
    click.echo(f"{source.name}({described})")
    click.echo(f"  entry {asked.path}: " + ("found" if asked.found else "not there, so the next call compiles"))
    click.echo(f"  its key: {document['code_bytes']} bytes of code, and the machine {'; '.join(made.machine.fingerprint.split('; ')[:3])}")
    click.echo("  another dtype, static extent, option, promotion rule, version of this package or kind of processor makes another entry")
