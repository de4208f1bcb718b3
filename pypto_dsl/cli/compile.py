"""`ptc compile`: the sources of a kernel for a target, written into a folder that appears whole or not at all."""
from __future__ import annotations

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
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.explain import SOURCE_MAP, source_lines
from pypto_dsl.frontend import targets

MANIFEST = "manifest.json"


@click.command("compile")
@click.argument("kernel")
@click.option("--target", required=True, metavar="NAME", type=kernels.TargetName(),
              callback=kernels.checked_target(lambda: registry.names()), help="The target; `ptc targets` lists them.")
@click.option("-o", "--output", "output", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder to write.")
@click.option("--force", is_flag=True, help="Replace a folder that was not written by ptc.")
@kernels.shape_option
@terminal.json_option
@terminal.sarif_option
def command(kernel: str, target: str, output: Path, force: bool, shapes: tuple[kernels.Shape, ...], as_json: bool,
            as_sarif: bool) -> None:
    """Write the sources of a kernel for a target, with manifest and source map.

    The folder is written whole or not at all: it is filled beside its place and then renamed. A folder that an earlier `ptc compile`
    wrote is replaced; any other folder that is not empty is left alone unless `--force` is given. Dimensions that the kernel
    annotates DYNAMIC stay open; `--shape` fixes what annotations leave open otherwise.

    \b
      ptc compile examples/softmax.py --target ascend-a2 -o out/
      ptc compile kernel.py:rows --target tt-wormhole --shape x=64x128,f32 -o out/
    """
    _refuse_foreign(output, force)
    source = kernels.find(kernel)
    graph = kernels.recorded(source, shapes)
    with terminal.progress(f"compiling {source.name} for {target}"):
        names = written_whole(output, with_records(targets.files(target, graph), graph, target))
    if as_sarif:
        sarif.emit(source)
        return
    if as_json:
        terminal.emit_json({"ok": True, "kernel": source.name, "target": target, "folder": str(output), "files": names})
        return
    click.echo(f"{source.name} for {target}: {len(names)} files in {output}")
    click.echo("\n".join(f"  {name}" for name in names))


def _refuse_foreign(output: Path, force: bool) -> None:
    if force or not output.exists() or not any(output.iterdir()) or (output / MANIFEST).exists():
        return
    raise click.BadParameter(f"{output} is not empty and was not written by ptc; use --force to replace it", param_hint="-o")


def with_records(files: Mapping[str, str], graph: Graph, target: str) -> dict[str, str]:
    """Emitted files with a manifest and a source map: the emitter's own, or records made here of what every target has."""
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
    return made


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
