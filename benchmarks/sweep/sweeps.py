"""Sweeps of one operation in one dtype, and the record that each leaves."""
from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.sweep import precise
from benchmarks.sweep.cases import Array, Case, Kernel
from benchmarks.sweep.exact import Exact, Report
from benchmarks.sweep.grids import grid
from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.ops import reference
from pypto_dsl.runtime import toolchain

CHUNK = 1 << 16  # inputs and results of a chunk stay in a second-level cache
PAIRS = 1 << 27  # pairs of an operation of two numbers
SAVED_EVERY = 256  # chunks
SAMPLES = 4096  # of f64, where mpmath is the reference
Record = dict[str, Any]


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


def record(case: Case, dtype: str, inputs: str, count: int, report: Report, place: Callable[[int], list[str]], level: str) -> Record:
    """What a finished sweep found, as the data file keeps it."""
    return {
        "operation": case.name, "dtype": dtype, "inputs": inputs, "count": count, "worst": round(report.worst, 5),
        "at": place(report.worst_at), "misrounded": report.misrounded, "wrong": report.wrong,
        "wrong_at": place(report.wrong_at) if report.wrong else None,
        "level": level, "date": time.strftime("%Y-%m-%d"), "revision": revision(),
    }


def revision() -> str:
    """The commit of the working tree, and whether files that decide results differ from it: the compiler and the sweeps, not records."""
    here = Path(__file__).parent

    def git(*command: str) -> str:
        return subprocess.run(["git", *command], capture_output=True, text=True, cwd=here.parent.parent).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "pypto_dsl", "benchmarks/sweep")
    return git("describe", "--always") + ("-dirty" if changed else "")


def single(case: Case, level: str | None, total: int, precision: str = "exact") -> Record:
    """f32: ``total`` inputs, evenly spaced for one number (2^32: all), of the case's grid for two."""
    kernel, exact = Kernel(case, "f32", CHUNK, level, precision), Exact(case)
    own = kernel.executable.machine.level.name
    progress = Progress.of(case, f"{own} {total}\n{kernel.executable.text}")
    report, count, step = progress.report, total // CHUNK, (1 << 32) // total
    turns = count // 2 if case.parity is not None else count
    bits = np.arange(CHUNK, dtype=np.uint32) * np.uint32(step)
    with click.progressbar(range(progress.chunk, turns), label=f"{case.name:18s}", update_min_steps=64) as numbers:
        for number in numbers:
            if case.operands == 1:
                _unary(case, kernel, exact, bits + np.uint32(number * CHUNK * step), step, report)
            else:
                x, y = grid(case.name, number, CHUNK)
                exact.compare_pairs(x, y, kernel(x, y), number * CHUNK, report)
            progress.chunk = number + 1
            if progress.chunk % SAVED_EVERY == 0:
                progress.save()

    def place(number: int) -> list[str]:
        if case.operands == 1:
            return [float(np.array([number], np.uint32).view(np.float32)[0]).hex()]
        return [float(x[number % CHUNK]).hex() for x in grid(case.name, number // CHUNK, CHUNK)]

    inputs = "grid" if case.operands == 2 else "all" if step == 1 else f"every {step}th"
    found = record(case, "f32", inputs, count * CHUNK, report, place, own)
    progress.path.unlink(missing_ok=True)
    return found


def _unary(case: Case, kernel: Kernel, exact: Exact, bits: Array, step: int, report: Report) -> None:
    """One chunk. Of an odd or even function the exact values of the positive numbers are enough: results for the negative ones are the
    same but for the sign, which is cheaper to see; where they are not, they are compared too."""
    before = report.misrounded
    got = kernel(bits.view(np.float32))
    exact.compare(int(bits[0]), step, got, report)
    if case.parity is None:
        return
    word = np.dtype(f"u{got.dtype.itemsize}")
    mirrored = got.view(word) ^ np.array(1 << 31 if case.parity == "odd" else 0).astype(word)
    negative = kernel((bits | np.uint32(1 << 31)).view(np.float32))
    differs = negative.view(word) != mirrored
    if differs.any() and not (differs & np.isnan(negative) & np.isnan(mirrored.view(got.dtype)) == differs).all():
        exact.compare(int(bits[0]) | 1 << 31, step, negative, report)
    else:
        report.misrounded += report.misrounded - before


def every_half(dtype: str) -> Array:
    """All 65,536 numbers of a 16-bit dtype."""
    return np.arange(1 << 16, dtype=np.uint16).view(BY_NAME[dtype].numpy)


def half(case: Case, dtype: str, level: str | None) -> Record:
    """f16 and bf16: all inputs; errors in ulp of the dtype."""
    x = every_half(dtype)
    kernel = Kernel(case, dtype, x.size, level)
    got, exact = kernel(x), Exact(case)(x.astype(np.float64))
    report = compare(got, exact, dtype)
    return record(case, dtype, "all", x.size, report, lambda i: [float(x[i]).hex()], kernel.executable.machine.level.name)


MANTISSAS = {"f16": (10, -14), "bf16": (7, -126)}  # stored bits, smallest exponent


def compare(got: Array, exact: Array, dtype: str) -> Report:
    """16-bit results, bools or integers against float64 values."""
    report = Report()
    if got.dtype.kind in "biu":
        differs = got.astype(np.float64) != exact
    else:
        mantissa, smallest = MANTISSAS[dtype]
        nearest = reference.narrow(exact, BY_NAME[dtype]).astype(np.float64)
        value = got.astype(np.float64)
        same = (value == nearest) & (np.signbit(value) == np.signbit(nearest)) | np.isnan(value) & np.isnan(nearest)
        measured = np.isfinite(value) & np.isfinite(nearest) & ~((value == 0) & (nearest == 0))
        unit = np.ldexp(1.0, np.maximum(np.frexp(np.where(measured, exact, 1.0))[1] - 1, smallest) - mantissa)
        error = np.where(measured, np.abs(value - np.where(measured, exact, 0.0)), 0.0) / unit
        report.worst, report.worst_at, report.misrounded = float(error.max()), int(error.argmax()), int((measured & ~same).sum())
        differs = ~same & ~measured
    report.wrong, report.wrong_at = int(differs.sum()), int(differs.argmax())
    return report


def double(case: Case, level: str | None) -> Record:
    """f64: a sample, against mpmath; special values are not measured."""
    operands = [a.astype(np.float64) for a in doubles(case)]
    kernel = Kernel(case, "f64", SAMPLES, level)
    error = precise.ulps(case.name, kernel(*operands), *operands)
    report = Report(worst=float(error.max()), worst_at=int(error.argmax()), misrounded=int((error > 0.5).sum()))
    level = kernel.executable.machine.level.name
    return record(case, "f64", "sample", SAMPLES, report, lambda i: [float(a[i]).hex() for a in operands], level)


def doubles(case: Case) -> list[Array]:
    """Finite f64 inputs: normal, uniform, and of all magnitudes that f64 results reach."""
    rng = np.random.default_rng(len(case.name))
    quarter = SAMPLES // 4

    def numbers() -> Array:
        wide = np.exp(rng.uniform(-150, 150, quarter)) * rng.choice([-1, 1], quarter)
        return np.concatenate([rng.normal(size=quarter) * 3, rng.uniform(-40, 40, quarter), rng.uniform(-745, 710, quarter), wide])

    if case.operands == 1:
        return [numbers()]
    return [np.abs(numbers()) if case.name == "pow" else numbers(), rng.permutation(numbers()) / (10 if case.name == "pow" else 1)]
