"""The command `python -m benchmarks`: measure, or show results as a table or a picture."""
from __future__ import annotations

import importlib
import os
import tempfile
from pathlib import Path

import click

from benchmarks import environment
from benchmarks.table import bars, losses, read, summary, table

FILES = click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))


class DefaultsToMeasure(click.Group):
    """A group whose first command is meant when none is named."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Puts `measure` in front of options."""
        if args and args[0].startswith("-") and args[0] != "--help":
            args = ["measure", *args]
        return super().parse_args(context, args)


@click.group(cls=DefaultsToMeasure)
def main() -> None:
    """Measure pypto_dsl beside other array libraries on the CPU. Options without a command measure."""


@main.command()
@click.option("--peers", default="pypto,numpy,numexpr,numba,jax,torch,halide,limit", show_default=True, help="Who takes part.")
@click.option("--workloads", default="all", show_default=True,
              help="Names, or words joined by + (operation, group, dtype, size), separated by commas: elementwise+f32+1M,softmax.")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1), help="Threads of every peer; with 1, one core.")
@click.option("--cpu-time", is_flag=True, help="Processor time of this process instead of the wall's; for one thread.")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(1))
@click.option("--sample-ms", default=6.0, show_default=True, help="A sample repeats the call at least this long.")
@click.option("--gate-s", default=0.0, show_default=True, help="Before each sample wait up to this long for other processes to be idle.")
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path), help="Where the results go.")
@click.option("--list", "only_list", is_flag=True, help="Print the chosen workloads and stop.")
def measure(peers: str, workloads: str, threads: int, cpu_time: bool, rounds: int, sample_ms: float, gate_s: float,
            output: Path | None, only_list: bool) -> None:
    """Run the peers on the workloads in this process and print the table."""
    if cpu_time and threads != 1:
        raise click.UsageError("--cpu-time adds up the threads' times, which says nothing about more than one: use --threads 1")
    environment.set_threads(threads)
    session = importlib.import_module("benchmarks.session")  # loads NumPy, which reads the environment only once
    patterns = tuple(workloads.split(","))
    try:
        chosen = session.select(patterns)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    if only_list:
        click.echo("\n".join(w.name for w in chosen))
        return
    settings = session.Settings(tuple(peers.split(",")), patterns, threads, cpu_time, rounds, sample_ms / 1e3, gate_s)
    with tempfile.TemporaryDirectory() as cache:  # every first call compiles
        os.environ["PTC_CACHE_DIR"] = cache
        try:
            results = session.measure(settings, session.report_to_stderr)
        except ValueError as wrong:
            raise click.UsageError(str(wrong)) from None
    if output is not None:
        session.write(results, output)
        click.echo(table(read([output])[1]))


@main.command("table")
@FILES
@click.option("--only", type=click.Choice(["table", "summary", "losses", "bars"]), help="One part instead of all.")
def show(files: tuple[Path, ...], only: str | None) -> None:
    """Print results as Markdown. A workload in several FILES is taken from the first: ratios stay within one run."""
    _, lines = read(files)
    parts = {"bars": bars, "table": table, "summary": summary, "losses": losses}
    click.echo("\n\n".join(part(lines) for name, part in parts.items() if only in (None, name)))


@main.command("plot")
@FILES
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="PNG, SVG or PDF by its suffix.")
def draw(files: tuple[Path, ...], output: Path) -> None:
    """Draw the ratios to the best peer (needs matplotlib, the extra `bench`)."""
    importlib.import_module("benchmarks.plot").plot(read(files)[1], output)


if __name__ == "__main__":
    main()
