"""The command `python -m benchmarks.sweep`: sweep operations and keep the worst error of each with its input."""
from __future__ import annotations

import json
from pathlib import Path

import click

from benchmarks.sweep import precise
from benchmarks.sweep.cases import CASES, FAST
from benchmarks.sweep.sweeps import PAIRS, Record, double, half, single

RESULTS = Path(__file__).resolve().parent.parent / "results" / "accuracy.json"
FAST_RESULTS = RESULTS.with_name("accuracy-fast.json")
DTYPES = ("f32", "f16", "bf16", "f64")


def read(path: Path) -> dict[tuple[str, str], Record]:
    """The records of a file by operation and dtype."""
    return {(r["operation"], r["dtype"]): r for r in json.loads(path.read_text("utf-8"))} if path.exists() else {}


def write(path: Path, records: dict[tuple[str, str], Record]) -> None:
    """One record a line, in the op table's order."""
    ordered = [records[name, dtype] for dtype in DTYPES for name in CASES if (name, dtype) in records]
    path.write_text("[\n" + ",\n".join(json.dumps(r) for r in ordered) + "\n]\n", "utf-8")


def candidates(dtype: str) -> list[str]:
    """The cases that a dtype is swept for: of 16 bits those of one number, of f64 those that mpmath has."""
    return [n for n, case in CASES.items() if dtype == "f32" or (n in precise.FUNCTIONS if dtype == "f64" else case.operands == 1)]


@click.command()
@click.argument("names", nargs=-1)
@click.option("--dtype", default="f32", type=click.Choice(DTYPES), show_default=True)
@click.option("--precision", default="exact", type=click.Choice(("exact", "fast")), show_default=True,
              help="fast: the f32 functions that have a form of their own for it.")
@click.option("--level", help="A feature level instead of this processor's best: avx512, avx2, baseline.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), show_default=f"{RESULTS.name}, {FAST_RESULTS.name}",
              help="The records; those of other operations stay.")
@click.option("--inputs", default=0, help="So many f32 inputs only (a power of two), for a quick look; nothing is recorded.")
@click.option("--every", default=1, help="Only every so many-th f32 input of functions of one number (a power of two), recorded as such.")
@click.option("--missing", is_flag=True, help="Only operations without a record.")
@click.option("--list", "only_list", is_flag=True, help="Print the names and stop.")
def main(names: tuple[str, ...], dtype: str, precision: str, level: str | None, output: Path | None, inputs: int, every: int, missing: bool,
         only_list: bool) -> None:
    """Sweep operations and record the worst error of each.

    f32: all 2^32 inputs, or a grid of 2^27 pairs; f16 and bf16: all 2^16; f64: a sample against mpmath. Without NAMES all of them. On one
    thread; an interrupted sweep goes on where it was.
    """
    if precision == "fast" and dtype != "f32":
        raise click.UsageError("the forms of precision=\"fast\" are swept in f32, of which results of 16 bits are rounded")
    output = output or (FAST_RESULTS if precision == "fast" else RESULTS)
    known, there = read(output), list(FAST) if precision == "fast" else candidates(dtype)
    chosen = [name for name in names or there if not (missing and (name, dtype) in known)]
    unknown = [name for name in chosen if name not in there]
    if unknown:
        raise click.UsageError(f"no operation {unknown[0]!r} of {dtype}; `--list` prints them")
    if only_list:
        click.echo("\n".join(chosen))
        return
    for name in chosen:
        case = CASES[name]
        if dtype == "f32":
            found = single(case, level, inputs or ((1 << 32) // every if case.operands == 1 else PAIRS), precision)
        else:
            found = double(case, level) if dtype == "f64" else half(case, dtype, level)
        wrong = f"; {found['wrong']} wrong, first {', '.join(found['wrong_at'])}" if found["wrong"] else ""
        click.echo(f"{name} {dtype}: {found['worst']} ulp at {', '.join(found['at'])}; {found['misrounded']} of {found['count']} "
                   f"not nearest{wrong}")
        if not inputs:
            write(output, {**read(output), (name, dtype): found})


if __name__ == "__main__":
    main()
