"""`ptc explain`: the page of an error code, or what the compiler made of a kernel and why."""
from __future__ import annotations

import re
from pathlib import Path

import click

from pypto_dsl.cli import kernels, terminal
from pypto_dsl.compiler import catalogue
from pypto_dsl.compiler import targets as registry
from pypto_dsl.explain import Explanation, explain
from pypto_dsl.frontend import targets as backends

CODE = re.compile(r"(?i)PT\w{0,4}$")


@click.command("explain")
@click.argument("subject", metavar="CODE|KERNEL")
@click.option("--target", "targets", multiple=True, metavar="NAME", callback=kernels.checked_target(lambda: registry.names()),
              help="Targets to explain; repeat for several.  [default: llvm-cpu]")
@kernels.shape_option
@terminal.json_option
def command(subject: str, targets: tuple[str, ...], shapes: tuple[kernels.Shape, ...], as_json: bool) -> None:
    """Explain an error code, or what the compiler made of a kernel and why.

    For a CODE such as PT203: when the error is raised, an example, and the example mended.

    For a KERNEL: the type of every value with the rule and the operand that forced it, the fused groups and why they ended, the
    tile and why, the buffers with their bytes and the line they come from, and the steps, for each target.

    \b
      ptc explain PT203
      ptc explain examples/softmax.py --target llvm-cpu --target ascend-a2
    """
    if CODE.match(subject) and not Path(subject).exists():
        _code(subject, as_json)
        return
    explanation = of_kernel(subject, targets or ("llvm-cpu",), shapes)
    if as_json:
        terminal.emit_json({"ok": True, "explanation": explanation.data()})
    else:
        click.echo(explanation.text(), nl=False)


def _code(code: str, as_json: bool) -> None:
    entry = catalogue.find(code)
    if entry is None:
        raise click.BadParameter(f"there is no code {code.upper()}; near it are {', '.join(catalogue.near(code))}; docs/errors.md has all",
                                 param_hint="CODE")
    if as_json:
        terminal.emit_json({"ok": True, "entry": entry.data()})
    else:
        click.echo(entry.page(), nl=False)


def of_kernel(subject: str, targets: tuple[str, ...], shapes: tuple[kernels.Shape, ...]) -> Explanation:
    """The explanation of the kernel that ``subject`` names. Raises KernelError as compiling for those targets does."""
    source = kernels.find(subject)
    hints: list[str] = []
    notes: list[str] = []
    if source.kernel is not None:
        found = kernels.specialised(source, shapes)
        graph = found.graph
        hints, notes = source.kernel.remarks(found)
    elif source.graph is not None:
        graph = source.graph
    else:
        raise TypeError("a source has a kernel or a graph")
    emitted = {name: backends.files(name, graph) for name in targets}
    return explain(graph, targets, hints, notes, emitted)
