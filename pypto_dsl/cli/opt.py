"""`ptc opt`: single passes on a .ptir file, each verified, the result printed as text."""
from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path

import click

from pypto_dsl.cli import kernels, terminal
from pypto_dsl.compiler import pipeline, targets
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.passes.fuse import fuse
from pypto_dsl.compiler.passes.tile import tile
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.compiler.tile_ir.reader import read_program
from pypto_dsl.compiler.tile_ir.text import print_program
from pypto_dsl.compiler.verify import require_valid, verify

IsProgram = re.compile(r"^\s*(//[^\n]*\n\s*)*program\b")


PLACE = re.compile(r' loc\("(?:\\.|[^"\\])*":\d+:\d+(?: to (?:\d+:)?\d+)?\)')  # where a line of Tile IR comes from


def checked_passes(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of passes; BadParameter for one that is none, with the nearest."""
    for name in names:
        if name not in pipeline.STAGES:
            close = difflib.get_close_matches(name, pipeline.STAGES, 1)
            known = f"did you mean {close[0]}?" if close else f"passes are {', '.join(pipeline.STAGES)}"
            raise click.BadParameter(f"there is no pass {name}; {known}")
    return names


def _passes() -> str:
    graph_passes, endings = ", ".join(pipeline.GRAPH_PASSES), ", ".join(ENDINGS)
    return (
        f"Passes on graphs, in the pipeline's order, are {graph_passes}; one of {endings} may end a list and prints what the graph becomes."
    )


class Opt(click.Command):
    """The command with its passes listed under its help, from the pipeline's table."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The passes there are."""
        with formatter.section("Passes"):
            formatter.write_text(_passes())


@click.command("opt", cls=Opt)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--pass", "passes", multiple=True, callback=checked_passes, metavar="NAME",
              help="A pass to run; repeat for several, in order.")
@click.option("--target", default="llvm-cpu", show_default=True, metavar="NAME", callback=kernels.checked_target(targets.names),
              help="The target whose data the passes read.")
@click.option("--print-after", is_flag=True, help="Print the text after every pass, not only after the last.")
@click.option("--spans/--no-spans", default=True, help="Whether to print where each operation comes from.")
@terminal.json_option
def command(file: Path, passes: tuple[str, ...], target: str, print_after: bool, spans: bool, as_json: bool) -> None:
    """Run single passes on a .ptir file and print the result.

    FILE holds a graph, or a program of Tile IR (which is only read, checked and printed). Without `--pass` the file is printed as the
    compiler reads it. A pass that changes nothing says `unchanged` with `--print-after`.

    \b
      ptc opt softmax.ptir --pass promote --pass legalize --target ascend-a2
      ptc opt softmax.ptir --pass legalize --pass sink --pass place --target tt-wormhole
    """
    if file.suffix == ".py":
        raise click.BadParameter(f"{file} is Python, and passes run on text forms; `ptc report {file} -o k.zip` writes its graph.ptir",
                                 param_hint="FILE")
    text = file.read_text(encoding="utf-8")
    click.get_current_context().find_root().meta.setdefault("kernel files", {})[file.name] = text
    printed = list(results(text, str(file), passes, target, spans))
    if as_json:
        terminal.emit_json({"ok": True, "target": target, "passes": [{"pass": name, "text": t} for name, t in printed]})
        return
    if not print_after:
        click.echo(printed[-1][1], nl=False)
        return
    before = ""
    for name, after in printed:
        click.echo(f"// after {name}" + (": unchanged" if after == before else ""))
        if after != before:
            click.echo(after, nl=False)
        before = after


def results(text: str, file: str, passes: tuple[str, ...], target: str, spans: bool = True) -> list[tuple[str, str]]:
    """The text after reading ("read") and after each pass. Raises KernelError for what the text or a pass refuses."""
    if IsProgram.match(text):
        if passes:
            raise click.UsageError("passes run on graphs, and this file holds a program of Tile IR")
        return [("read", print_program(read_program(text, file)))]
    graph = read_graph(text, file, places=True)
    require_valid(graph)
    chosen = targets.load(target)
    printed = [("read", print_graph(graph, spans=spans))]
    for position, name in enumerate(passes):
        if name in pipeline.GRAPH_PASSES:
            graph = pipeline.GRAPH_PASSES[name](graph, chosen)
            verify(graph, name)
            printed.append((name, print_graph(graph, spans=spans)))
            continue
        if position != len(passes) - 1:
            raise click.UsageError(f"{name} makes no graph, so no pass can follow it")
        ending = ENDINGS[name](graph, chosen)
        printed.append((name, ending if spans else PLACE.sub("", ending)))
    return printed


def _fused(graph: Graph, _: targets.Target) -> str:
    return pipeline.text(fuse(graph))


def _tiled(graph: Graph, target: targets.Target) -> str:
    return pipeline.text(tile(graph, fuse(graph), target))


def _placed(graph: Graph, target: targets.Target) -> str:
    partition = fuse(graph)
    return pipeline.text(pipeline.place(graph, partition, target, tile(graph, partition, target)))


ENDINGS: dict[str, Callable[[Graph, targets.Target], str]] = {"fuse": _fused, "tile": _tiled, "place": _placed}
