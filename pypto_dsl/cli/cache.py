"""`ptc cache`: what is kept on disk, how much, and from when; clearing it."""
from __future__ import annotations

import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from pypto_dsl.cli import terminal
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
