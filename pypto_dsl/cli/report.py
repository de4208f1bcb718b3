"""`ptc report`: one archive with everything that somebody else needs to see what a kernel does here."""
from __future__ import annotations

import io
import json
import os
import shlex
import sys
import traceback
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from pypto_dsl.cli import doctor, kernels, run, terminal
from pypto_dsl.cli.kernels import Source
from pypto_dsl.cli.versions import versions
from pypto_dsl.compiler import targets as registry
from pypto_dsl.compiler.dtypes import of_numpy
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.tile_ir.text import print_program
from pypto_dsl.frontend import targets

ERRORS = "errors.txt"
REPRODUCE = "reproduce.sh"
T = TypeVar("T")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same report has the same bytes
MOST_SHOWN = 200  # characters of an argument that is no array


@click.command("report")
@click.argument("kernel")
@click.option(
    "-o", "--output", "output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The archive to write (.zip)."
)
@click.option("--target", "chosen", multiple=True, metavar="NAME", callback=kernels.checked_target(targets.runnable),
              help="Targets to compile for; repeat for several.  [default: the kernel's own, else llvm-cpu]")
@kernels.shape_option
@click.option("--seed", default=0, show_default=True, help="Seed of the generated inputs.")
@click.option("--force", is_flag=True, help="Replace an archive that is there.")
@terminal.json_option
def command(
    kernel: str, output: Path, chosen: tuple[str, ...], shapes: tuple[kernels.Shape, ...], seed: int, force: bool, as_json: bool
) -> None:
    """Write an archive with a kernel and all that was made of it, to attach to a bug report.

    It holds the kernel's file and the modules beside it that it imports, dtypes and shapes of its arguments (no contents of arrays), the
    versions of everything, what `ptc doctor` finds, the recorded graph, the Tile IR and the emitted sources for each target, every error
    on the way, and `reproduce.sh`, one command that repeats the run. The kernel is compiled and not run. Paths are written without your
    home folder. Look through the archive before you send it: the kernel's own text is in it.

    \b
      ptc report examples/softmax.py -o softmax.zip
      ptc report kernel.py --target ascend-a2-emu --shape x=64x128,f32 -o kernel.zip
    """
    if output.exists() and not force:
        raise click.BadParameter(f"{output} is there already; use --force to replace it", param_hint="-o")
    with terminal.progress(f"reporting {kernel}"):
        files = contents(kernel, chosen, shapes, seed)
    try:
        write(output, files)
    except OSError as failure:
        raise click.BadParameter(f"{output} cannot be written: {failure.strerror}", param_hint="-o") from failure
    if as_json:
        terminal.emit_json({"ok": True, "archive": str(output), "files": sorted(files), "errors": ERRORS in files})
        return
    click.echo(f"{output}: {len(files)} files" + (f", with errors ({ERRORS})" if ERRORS in files else ""))
    click.echo("\n".join(f"  {name}" for name in sorted(files)))


def contents(kernel: str, chosen: tuple[str, ...], shapes: tuple[kernels.Shape, ...], seed: int) -> dict[str, str]:
    """The files of a report by name. What fails on the way is in `ERRORS`; only a command line that is wrong raises (click's errors)."""
    errors: list[str] = []
    files = {"versions.json": _json(versions()), "doctor.json": _json(doctor.findings())}
    source = _attempt("reading the kernel", errors, lambda: kernels.find(kernel))
    path = Path(kernel.partition(".py:")[0] + ".py" if ".py:" in kernel else kernel)
    files[path.name] = path.read_text(encoding="utf-8")
    files |= {name: text for name, text in _beside(path) if name not in files}
    own = source.kernel.options.target if source is not None and source.kernel is not None else ""
    names = chosen or (own or targets.DEFAULT,)
    if source is not None:
        files |= _made(source, names, shapes, seed, errors)
    subject = f"{path.name}:{source.name}" if source is not None and source.kernel is not None else path.name
    given = [f"--shape={_shape_text(shape)}" for shape in shapes]
    files[REPRODUCE] = "#!/bin/sh\n" + "".join(
        shlex.join(["ptc", "run", subject, "--target", name, "--seed", str(seed), *given]) + "\n" for name in names)
    if errors:
        files[ERRORS] = "\n\n".join(errors) + "\n"
    return {name: without_folders(text, path) for name, text in files.items()}


def _made(source: Source, names: tuple[str, ...], shapes: tuple[kernels.Shape, ...], seed: int, errors: list[str]) -> dict[str, str]:
    """What is made of a kernel: its arguments, its graph, and Tile IR and sources by target."""
    files: dict[str, str] = {}
    graph = source.graph
    if source.kernel is not None:
        given = _attempt("making the arguments", errors, lambda: kernels.arguments(source, shapes, seed))
        if given is None:
            return files
        files["arguments.json"] = _json({name: _described(value) for name, value in given.items()})
        graph = _attempt("reading the kernel's function", errors, lambda: run.graph_of(source, given))
    if graph is None:
        return files
    found: Graph = graph
    files["graph.ptir"] = print_graph(found)
    for name in names:
        if name == targets.INTERPRETER:
            continue
        target = registry.load(name.removesuffix(targets.EMULATED))
        tiles = _attempt(f"lowering for {target.name}", errors, partial(_tiles, found, target.name))
        if tiles is None:
            continue
        files[f"{target.name}/{found.name}.tile"] = tiles
        emitted = _attempt(f"emitting for {target.name}", errors, partial(targets.files, target.name, found))
        files |= {f"{target.name}/sources/{file}": text for file, text in (emitted or {}).items()}
    return files


def _tiles(graph: Graph, target: str) -> str:
    return print_program(targets.graph_after(graph, "place", target))


def _attempt(what: str, errors: list[str], step: Callable[[], T]) -> T | None:
    """The result of a step; None when it fails, with the reason noted."""
    try:
        return step()
    except click.ClickException:
        raise
    except KernelError as refused:
        errors.append(f"{what}:\n{refused.diagnostic.render()}")
    except Exception:  # a report is made for what nobody expects
        errors.append(f"{what}:\n{traceback.format_exc()}")
    return None


def _described(value: Any) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        dtype = of_numpy(value.dtype)
        return {"dtype": dtype.name if dtype else str(value.dtype), "shape": list(value.shape), "strides": list(value.strides)}
    return {"value": repr(value)[:MOST_SHOWN]}


def _shape_text(shape: kernels.Shape) -> str:
    extents = "" if shape.extents is None else "x".join(map(str, shape.extents))
    return f"{shape.name}={extents}" + ("" if shape.dtype is None else f",{shape.dtype.name}")


def _beside(path: Path) -> Iterator[tuple[str, str]]:
    """The modules in the kernel's folder that it has imported, by relative path."""
    folder = path.resolve().parent
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and not _is_installed(file) and Path(file).resolve().is_relative_to(folder):
            yield Path(file).resolve().relative_to(folder).as_posix(), Path(file).read_text(encoding="utf-8")


def _is_installed(file: str) -> bool:
    package = str(Path(doctor.__file__).resolve().parents[1])
    return "site-packages" in file or file.startswith((package, sys.base_prefix + os.sep + "lib", sys.prefix + os.sep + "lib"))


def without_folders(text: str, kernel: Path) -> str:
    """Text without the folders of whoever writes the report: the kernel's and the working one are left out, the home folder is `~`."""
    names: dict[str, str] = {}
    for folder in (kernel.absolute().parent, Path.cwd()):
        names |= {f"{f}{os.sep}": "" for f in (folder, folder.resolve())}
    names |= {str(f): "~" for f in (Path.home(), Path.home().resolve())}
    for folder_text in sorted((n for n in names if len(n) > 2), key=len, reverse=True):  # the root and drives say nothing
        text = text.replace(folder_text, names[folder_text])
    return text


def write(output: Path, files: Mapping[str, str]) -> None:
    """Write the archive whole or not at all."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(f"{output.stem}/{name}", EPOCH)
            entry.external_attr = (0o755 if name == REPRODUCE else 0o644) << 16
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED)
    scratch = output.with_name(f".{output.name}.part")
    try:
        scratch.write_bytes(made.getvalue())
        scratch.replace(output)
    finally:
        scratch.unlink(missing_ok=True)


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"
