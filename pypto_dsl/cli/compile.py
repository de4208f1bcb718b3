"""`ptc compile`: the sources of a kernel for a target, written into a folder that appears whole or not at all."""
from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from pypto_dsl.cli import kernels, terminal
from pypto_dsl.frontend import targets

MARKER = "manifest.json"


@click.command("compile")
@click.argument("kernel")
@click.option("--target", required=True, metavar="NAME", help="The target; `ptc targets` lists them.")
@click.option("-o", "--output", "output", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder to write.")
@click.option("--force", is_flag=True, help="Replace a folder that was not written by ptc.")
@kernels.shape_option
@terminal.json_option
def command(kernel: str, target: str, output: Path, force: bool, shapes: tuple[kernels.Shape, ...], as_json: bool) -> None:
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
    if source.kernel is not None:
        graph = source.kernel.specialise(**kernels.arguments(source, shapes, 0)).graph
    elif source.graph is not None:
        graph = source.graph
    else:
        raise TypeError("a source has a kernel or a graph")
    with terminal.progress(f"compiling {source.name} for {target}"):
        names = written_whole(output, lambda folder: targets.write(target, graph, folder))
    if as_json:
        terminal.emit_json({"ok": True, "kernel": source.name, "target": target, "folder": str(output), "files": names})
        return
    click.echo(f"{source.name} for {target}: {len(names)} files in {output}")
    click.echo("\n".join(f"  {name}" for name in names))


def _refuse_foreign(output: Path, force: bool) -> None:
    if force or not output.exists() or not any(output.iterdir()) or (output / MARKER).exists():
        return
    raise click.BadParameter(f"{output} is not empty and was not written by ptc; use --force to replace it", param_hint="-o")


def written_whole(output: Path, write: Callable[[Path], object]) -> list[str]:
    """Call ``write`` on a fresh folder beside ``output`` and rename it into place; on any failure ``output`` is as it was.

    Returns the names of the files, relative and sorted.
    """
    output = Path(os.path.abspath(output))
    output.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        fresh = scratch / "new"
        fresh.mkdir()
        write(fresh)
        names = sorted(p.relative_to(fresh).as_posix() for p in fresh.rglob("*") if p.is_file())
        if output.exists():
            output.rename(scratch / "old")
        try:
            fresh.rename(output)
        except OSError:
            if (scratch / "old").exists():
                (scratch / "old").rename(output)
            raise
        return names
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
