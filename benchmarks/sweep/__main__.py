"""The command `python -m benchmarks.sweep`: sweep operations and keep the worst error of each with its input."""
from __future__ import annotations

import hashlib
import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.sweep.cases import CASES, Case, Exact, Kernel, Report, grid
from pypto_dsl.runtime import toolchain

RESULTS = Path(__file__).resolve().parent.parent / "results" / "accuracy.json"
CHUNK = 1 << 16  # inputs and results of a chunk stay in a second-level cache
PAIRS = 1 << 27  # pairs of an operation of two numbers
SAVED_EVERY = 256  # chunks


@dataclass
class Progress:
    """A sweep that may have been interrupted: the next chunk and what was found before it."""

    path: Path
    chunk: int
    report: Report

    @staticmethod
    def of(case: Case, code: str) -> Progress:
        """The state of a sweep over the machine code of ``code``; other code, other exact functions and other grids start anew."""
        parts = (code, *(f.read_text("utf-8") for f in sorted(Path(__file__).parent.iterdir()) if f.suffix in (".py", ".cpp")))
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        path = toolchain.cache_folder() / "sweeps" / f"{case.name}-{key}.json"
        if not path.exists():
            return Progress(path, 0, Report())
        kept = json.loads(path.read_text("utf-8"))
        return Progress(path, kept.pop("chunk"), Report(**kept))

    def save(self) -> None:
        """Write the state."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"chunk": self.chunk, **self.report.numbers()}), "utf-8")


def sweep(case: Case, level: str | None, total: int) -> dict[str, Any]:
    """The record of one case over ``total`` inputs, evenly spaced for one number, of the case's grid for two."""
    kernel, exact = Kernel(case, "f32", CHUNK, level), Exact(case)
    progress = Progress.of(case, f"{kernel.executable.machine.level.name} {total}\n{kernel.executable.text}")
    report, first, began = progress.report, progress.chunk, time.process_time()
    step = (1 << 32) // total
    bits = np.arange(CHUNK, dtype=np.uint32) * np.uint32(step)
    count = total // CHUNK
    with click.progressbar(range(first, count), label=f"{case.name:18s}", update_min_steps=64) as numbers:
        for number in numbers:
            start = number * CHUNK * step
            if case.operands == 1:
                exact.compare(start, step, kernel((bits + np.uint32(start)).view(np.float32)), report)
            else:
                x, y = grid(case.name, number, CHUNK)
                exact.compare_pairs(x, y, kernel(x, y), number * CHUNK, report)
            progress.chunk = number + 1
            if progress.chunk % SAVED_EVERY == 0:
                progress.save()
    spent = time.process_time() - began
    progress.path.unlink(missing_ok=True)
    swept = max(1, count - first) * CHUNK
    return {
        "operation": case.name, "dtype": "f32", "inputs": "all" if case.operands == 1 else "grid", "count": count * CHUNK,
        "worst": round(report.worst, 5), "at": place(case, report.worst_at), "misrounded": report.misrounded,
        "wrong": report.wrong, "wrong_at": place(case, report.wrong_at) if report.wrong else None,
        "level": kernel.executable.machine.level.name, "nanoseconds": round(spent * 1e9 / swept, 1),
        "date": time.strftime("%Y-%m-%d"), "revision": revision(),
    }


def place(case: Case, number: int) -> list[str]:
    """The input with a number, in hexadecimal."""
    if case.operands == 1:
        return [float(np.array([number], np.uint32).view(np.float32)[0]).hex()]
    pair = grid(case.name, number // CHUNK, CHUNK)
    return [float(x[number % CHUNK]).hex() for x in pair]


def revision() -> str:
    """The commit of the working tree, and whether files differ from it."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=RESULTS.parent)
    return done.stdout.strip()


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The records of a file by operation."""
    return {r["operation"]: r for r in json.loads(path.read_text("utf-8"))} if path.exists() else {}


def write(path: Path, records: dict[str, dict[str, Any]]) -> None:
    """One record a line, in the op table's order."""
    ordered = [records[name] for name in CASES if name in records]
    path.write_text("[\n" + ",\n".join(json.dumps(r) for r in ordered) + "\n]\n", "utf-8")


@click.command()
@click.argument("names", nargs=-1)
@click.option("--level", help="A feature level instead of this processor's best: avx512, avx2, baseline.")
@click.option("--output", default=RESULTS, type=click.Path(dir_okay=False, path_type=Path), show_default=True,
              help="The records; those of other operations stay.")
@click.option("--inputs", default=0, help="So many inputs only (a power of two), for a quick look; nothing is recorded.")
@click.option("--missing", is_flag=True, help="Only operations without a record.")
@click.option("--list", "only_list", is_flag=True, help="Print the names and stop.")
def main(names: tuple[str, ...], level: str | None, output: Path, inputs: int, missing: bool, only_list: bool) -> None:
    """Sweep operations over all 2^32 f32 inputs, or over a grid of 2^27 pairs, and record the worst errors.

    Without NAMES all of them. An interrupted sweep goes on where it was. On one thread.
    """
    known = read(output)
    chosen = [name for name in names or CASES if not (missing and name in known)]
    unknown = [name for name in chosen if name not in CASES]
    if unknown:
        raise click.UsageError(f"no operation {unknown[0]!r}; `--list` prints them")
    if only_list:
        click.echo("\n".join(chosen))
        return
    for name in chosen:
        case = CASES[name]
        total = inputs or (1 << 32 if case.operands == 1 else PAIRS)
        record = sweep(case, level, total)
        wrong = f"; {record['wrong']} wrong, first {', '.join(record['wrong_at'])}" if record["wrong"] else ""
        click.echo(f"{name}: {record['worst']} ulp at {', '.join(record['at'])}; {record['misrounded']} of {record['count']} not nearest; "
                   f"{record['nanoseconds']} ns each{wrong}")
        if not inputs:
            write(output, {**read(output), name: record})


if __name__ == "__main__":
    main()
