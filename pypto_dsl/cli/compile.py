"""`ptc compile`: the sources of a kernel for a target, written into a folder that appears whole or not at all."""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pypto_dsl.cli import kernels, sarif, terminal
from pypto_dsl.compiler import targets as registry
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.explain import SOURCE_MAP, source_lines
from pypto_dsl.frontend import targets

MANIFEST = "manifest.json"
HASHES = "sha256"  # its key for the hash of every file, by which those are known that somebody has changed since


@click.command("compile")
@click.argument("kernel")
@click.option("--target", required=True, metavar="NAME", type=kernels.TargetName(),
              callback=kernels.checked_target(lambda: registry.names()), help="The target; `ptc targets` lists them.")
@click.option("-o", "--output", "output", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder to write.")
@click.option("--force", is_flag=True, help="Replace a folder with files that ptc did not write, or that were changed since.")
@kernels.shape_option
@terminal.json_option
@terminal.sarif_option
def command(kernel: str, target: str, output: Path, force: bool, shapes: tuple[kernels.Shape, ...], as_json: bool,
            as_sarif: bool) -> None:
    """Write the sources of a kernel for a target, with manifest and source map.

    The folder is written whole or not at all: it is filled beside its place and then renamed. A folder that an earlier `ptc compile`
    wrote is replaced; a folder with other files, or with files that were changed since, is left alone (PT721) unless `--force` is given.
    Dimensions that the kernel
    annotates DYNAMIC stay open; `--shape` fixes what annotations leave open otherwise.

    \b
      ptc compile examples/softmax.py --target ascend-a2 -o out/
      ptc compile kernel.py:rows --target tt-wormhole --shape x=64x128,f32 -o out/
    """
    if not force:
        check_replaceable(output)
    source = kernels.find(kernel)
    graph = kernels.recorded(source, shapes)
    with terminal.progress(f"compiling {source.name} for {target}"):
        files = with_records(targets.files(target, graph), graph, target)
    try:
        names = written_whole(output, files)
    except OSError as failure:
        raise click.BadParameter(f"{output} cannot be written: {failure.strerror}", param_hint="-o") from failure
    if as_sarif:
        sarif.emit(source)
        return
    if as_json:
        terminal.emit_json({"ok": True, "kernel": source.name, "target": target, "folder": str(output), "files": names})
        return
    click.echo(f"{source.name} for {target}: {len(names)} files in {output}")
    click.echo("\n".join(f"  {name}" for name in names))


def check_replaceable(output: Path) -> None:
    """PT721 for a folder that holds anything but what an earlier `ptc compile` wrote there, as it wrote it."""
    known = _hashes(output / MANIFEST)
    found = sorted(p for p in output.rglob("*") if not p.is_dir() or p.is_symlink()) if output.is_dir() else []
    names = {p.relative_to(output).as_posix(): p for p in found}
    foreign = [name for name in names if name not in known]
    edited = [name for name, path in names.items() if name in known and _hash_of(path) != known[name]]
    if not foreign and not edited:
        return
    notes = [f"{', '.join(those[:SHOWN])}{', ...' if len(those) > SHOWN else ''}: {what}"
             for those, what in ((edited, "changed since ptc wrote it"), (foreign, "not written by ptc")) if those]
    raise error("PT721", f"`{output}` holds files that would be lost", notes=tuple(notes),
                help="write to another folder with -o, or use --force to replace everything in this one", edited=edited, foreign=foreign)


SHOWN = 5  # files that PT721 lists of each kind


def _hashes(manifest: Path) -> dict[str, str]:
    """What each file of a folder was when it was written; nothing where no manifest says so."""
    try:
        found = json.loads(manifest.read_text(encoding="utf-8"))[HASHES]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _hash_of(path: Path) -> str:
    content = path.read_bytes()
    if path.name != MANIFEST:
        return hashlib.sha256(content).hexdigest()
    document = json.loads(content)
    hashes = {name: known for name, known in document.pop(HASHES).items() if name != MANIFEST}
    return _hash_of_manifest(document, hashes)


def _hash_of_manifest(document: Mapping[str, Any], hashes: Mapping[str, str]) -> str:
    """The manifest's own hash, which covers all of it but itself."""
    return hashlib.sha256(_json({**document, HASHES: hashes}).encode()).hexdigest()


def with_records(files: Mapping[str, str], graph: Graph, target: str) -> dict[str, str]:
    """Emitted files with a manifest, which has their hashes, and a source map: the emitter's own, or made here."""
    made = dict(files)
    if SOURCE_MAP not in made:
        user_file = graph.span.basename if graph.span else ""
        maps: dict[str, list[dict[str, Any]]] = {}
        for entry in source_lines(target, files, user_file):
            maps.setdefault(entry.file, []).append({"line": entry.line, "file": user_file, "user_line": entry.user_line})
        made[SOURCE_MAP] = _json({"version": 1, "files": [{"file": file, "lines": lines} for file, lines in maps.items()]})
    if MANIFEST not in made:
        arguments = [{"name": p.name, "dtype": p.type.dtype.name, "shape": [str(e) for e in p.type.shape],
                      "role": "out" if p.name in graph.outputs else "in"} for p in graph.parameters]
        names = sorted([*made, MANIFEST])
        made[MANIFEST] = _json({"version": 1, "name": graph.name, "target": target, "files": names, "arguments": arguments})
    return with_hashes(made)


def with_hashes(files: Mapping[str, str]) -> dict[str, str]:
    """Files with the hash of each in their manifest."""
    document = json.loads(files[MANIFEST])
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(files.items()) if name != MANIFEST}
    return {**files, MANIFEST: _json({**document, HASHES: {**hashes, MANIFEST: _hash_of_manifest(document, hashes)}})}


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"


def written_whole(output: Path, files: Mapping[str, str]) -> list[str]:
    """Write ``files`` (name to text) into a fresh folder beside ``output`` and rename it into place; on failure ``output`` is as it was.

    Returns the names of the files, sorted.
    """
    output = Path(os.path.abspath(output))
    output.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        fresh = scratch / "new"
        fresh.mkdir()
        for name, text in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        if output.exists():
            output.rename(scratch / "old")
        try:
            fresh.rename(output)
        except OSError:
            if (scratch / "old").exists():
                (scratch / "old").rename(output)
            raise
        return sorted(files)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
