"""`ptc cache`: what is kept on disk, how much, and from when; clearing it; which entry a kernel has."""
from __future__ import annotations

import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import filelock

from pypto_dsl.cli import kernels, terminal
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.frontend.targets import extents_of
from pypto_dsl.runtime import toolchain
from pypto_dsl.runtime.cpu import jit, stored
from pypto_dsl.runtime.cpu.cache import ObjectCache, default_directory, size_limit
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
    everything that can change it, so clearing is never needed for right results. Compiled kernels may have $PTC_CACHE_SIZE together
    ("500M"; 1 GiB when it is not set, "0" for no limit); those that were used longest ago go.
    """


@command.command("ls")
@terminal.json_option
def ls(as_json: bool) -> None:
    """List what is kept, newest first.

    \b
      ptc cache ls
    """
    entries = cached()
    if as_json:
        terminal.emit_json({"ok": True, "folder": str(cache_folder()), "limit": size_limit(), "entries": [asdict(e) for e in entries]})
        return
    total, limit = sum(e.bytes for e in entries), size_limit()
    most = "" if limit is None else f"; compiled kernels may have {_size(limit)}"
    click.echo(f"{cache_folder()}: {len(entries)} entries, {_size(total)}{most}")
    now = time.time()
    if entries:
        rows = [(e.kind, e.name, _size(e.bytes), _age(now - e.written)) for e in entries]
        click.echo(terminal.table(rows, head=("kind", "name", "size", "age")))


@command.command("clear")
@click.option("--kind", metavar="KIND", help="Only entries of this kind.")
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Only entries older than so many days.")
@terminal.json_option
def clear(kind: str | None, older_than: float | None, as_json: bool) -> None:
    """Remove what is kept.

    Nothing is lost but the time to compile again; what another process is building stays. Kinds are the ones that `ptc cache ls` shows.

    \b
      ptc cache clear
      ptc cache clear --kind objects --older-than 30
    """
    limit = time.time() - (older_than or 0) * 86400
    chosen = [e for e in cached() if kind in (None, e.kind) and (older_than is None or e.written < limit)
              and remove(cache_folder() / e.kind / e.name)]
    if as_json:
        terminal.emit_json({"ok": True, "removed": len(chosen), "bytes": sum(e.bytes for e in chosen)})
    else:
        click.echo(f"removed {len(chosen)} entries, {_size(sum(e.bytes for e in chosen))}")


def remove(path: Path) -> bool:
    """Remove one entry, a file or a folder, and say whether it is gone; a folder in which somebody builds (`toolchain.locked`) stays."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return True
    try:
        with toolchain.locked(path, timeout=0):
            shutil.rmtree(path, ignore_errors=True)
    except (filelock.Timeout, OSError):  # a lock that cannot be made is a folder that cannot be removed
        return False
    return True


def _size(count: int) -> str:
    return f"{count} B" if count < 1024 else f"{count / 1024:.0f} KiB" if count < 1024 ** 2 else f"{count / 1024 ** 2:.1f} MiB"


def _age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


@command.command("why")
@click.argument("kernel")
@kernels.shape_option
@terminal.json_option
def why(kernel: str, shapes: tuple[kernels.Shape, ...], as_json: bool) -> None:
    """Say which entry a kernel has, whether it is there, and why.

    An entry is found by the hash of the recorded graph, the target's data, the machine and the versions that compile for it. Run-time
    numbers and DYNAMIC extents are in none of these, so they never make another one.

    \b
      ptc cache why examples/softmax.py
      ptc cache why kernel.py:rows --shape x=64x128,f32
    """
    source = kernels.find(kernel)
    if source.kernel is not None:
        form = kernels.specialised(source, shapes)
        graph, described = form.graph, form.describe()
    elif source.graph is not None:
        graph = source.graph
        described = ", ".join(f"{p.name} {p.type}" for p in graph.parameters)
    else:
        raise TypeError("a source has a kernel or a graph")
    machine = jit.machine()
    key = stored.key(graph, targets.load("llvm-cpu"), machine, extents_of(graph))
    kept = ObjectCache(default_directory())
    if key is not None:
        entry, what = kept.path_of(key, stored.SUFFIX), f"{len(key[0])} bytes of graph"
        found = stored.find(kept, key) is not None
    else:  # the compiler's own sources have just changed: objects are found by the code they are made of
        parts = Executable(lower(graph, "llvm-cpu"), cache=ObjectCache(None), extents=extents_of(graph)).parts
        entry, what = kept.path_of(parts), f"{len(parts[0])} bytes of code"
        found = entry is not None and kept.read(entry) is not None
    document = {"kernel": source.name, "form": described, "entry": str(entry), "found": found, "key": what,
                "machine": machine.fingerprint, "options": dict(graph.options)}
    if as_json:
        terminal.emit_json({"ok": True, **document})
        return
    click.echo(f"{source.name}({described})")
    click.echo(f"  entry {entry}: " + ("found" if found else "not there, so the next call compiles"))
    click.echo(f"  its key: {what}, and the machine {'; '.join(machine.fingerprint.split('; ')[:3])}")
    click.echo("  another dtype, static extent, option, promotion rule, version of this package or kind of processor makes another entry")
