"""One run: every peer on every workload in one process, interleaved round by round, with the accuracy of each result."""
from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import environment
from benchmarks.accuracy import Reference
from benchmarks.peers import Prepare, Prepared, load
from benchmarks.workloads import Workload, select

SLOW = 4.0  # another library that is this many times slower than the fastest is timed in fewer rounds
SLOW_ROUNDS = 2
ALWAYS_IN_FULL = ("pypto", "pypto_fast", "limit")
QUIET_CHECKS = 3


@dataclass(frozen=True)
class Settings:
    """How to measure.

    ``cpu_time``: the process' processor time instead of the wall's, for one thread on a shared machine. ``sample_seconds``: a sample
    repeats the call at least this long. ``gate_seconds``: how long a sample waits for other processes to be idle.
    """

    peers: tuple[str, ...]
    workloads: tuple[str, ...]
    threads: int = 1
    cpu_time: bool = True
    rounds: int = 7
    sample_seconds: float = 0.006
    gate_seconds: float = 0.0
    accuracy: bool = True


@dataclass
class Entrant:
    """One peer on one workload while it is measured: how often a sample repeats it, and (seconds per call, undisturbed) samples."""

    peer: str
    prepared: Prepared
    first: float
    rough: float
    row: dict[str, Any]
    samples: list[tuple[float, bool]] = field(default_factory=list)


def measure(settings: Settings, report: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """The results of a run as data: its head, and one row per workload and peer. A peer that fails is reported and left out."""
    peers = dict(_loaded(settings, report))
    rows: list[dict[str, Any]] = []
    for workload in select(settings.workloads):
        rows += _workload(workload, peers, settings, report)
    head = environment.description({"threads": settings.threads, "cpu_time": settings.cpu_time, "rounds": settings.rounds,
                                    "sample_seconds": settings.sample_seconds, "gate_seconds": settings.gate_seconds})
    return head | {"rows": rows}


def write(results: dict[str, Any], path: Path) -> None:
    """The results as JSON with one row a line."""
    head = {k: v for k, v in results.items() if k != "rows"}
    lines = ",\n".join(json.dumps(row) for row in results["rows"])
    path.write_text(f"{json.dumps(head, indent=1)[:-2]},\n \"rows\": [\n{lines}\n]}}\n", encoding="utf-8")


def _loaded(settings: Settings, report: Callable[[str], None]) -> Iterator[tuple[str, Prepare]]:
    for name in settings.peers:
        try:
            yield name, load(name, settings.threads)
        except ImportError as absent:
            report(f"{name} is left out: {absent}")


def _workload(workload: Workload, peers: dict[str, Prepare], settings: Settings, report: Callable[[str], None]) -> list[dict[str, Any]]:
    inputs = workload.inputs()
    reference = Reference(workload, inputs) if settings.accuracy else None
    entrants: list[Entrant] = []
    for name, prepare in peers.items():
        try:
            entrant = _entrant(name, prepare, workload, inputs, reference if name != "limit" else None, settings)
        except Exception as failure:  # another library's failure is a line of the report, not the end of the run
            report(f"{workload.name}: {name} is left out: {type(failure).__name__}: {str(failure)[:200]}")
            continue
        if entrant is not None:
            entrants.append(entrant)
    _rounds(entrants, settings)
    traffic = workload.traffic(inputs)
    for entrant in entrants:
        entrant.row |= _statistics(entrant.samples, traffic, workload.flops)
        if settings.cpu_time:
            del entrant.row["clean"]  # other processes do not count in this one's processor time
        report("{workload:28} {peer:14} {best_ms:>11.5g} ms".format(**entrant.row))
    return [e.row for e in entrants]


def _entrant(name: str, prepare: Prepare, workload: Workload, inputs: dict[str, Any], reference: Reference | None,
             settings: Settings) -> Entrant | None:
    clock = _clock(settings)
    start = clock()
    prepared = prepare(workload, inputs)
    if prepared is None:
        return None
    value = prepared.run()
    first = clock() - start
    row: dict[str, Any] = {"workload": workload.name, "group": workload.operation.group, "dtype": workload.dtype, "size": workload.size,
                           "peer": name, "first_ms": _rounded(first * 1e3)}
    if reference is not None:
        error = reference.error(prepared.result(value))
        row |= {"ulp": _rounded(error.ulp), "relative_error": _rounded(error.relative)}
    rough = min(_sample(prepared.run, 1, clock) for _ in range(3))
    return Entrant(name, prepared, first, max(rough, 1e-7), row)


def _rounds(entrants: Sequence[Entrant], settings: Settings) -> None:
    """Round by round, each peer once and another one first; slow peers only in the first rounds."""
    if not entrants:
        return
    clock = _clock(settings)
    fastest = min(e.rough for e in entrants if e.peer != "limit" or len(entrants) == 1)
    gc.collect()
    gc.disable()
    try:
        for number in range(settings.rounds):
            shift = number % len(entrants)
            for entrant in (*entrants[shift:], *entrants[:shift]):
                slow = entrant.rough > SLOW * fastest and entrant.peer not in ALWAYS_IN_FULL
                if slow and number >= SLOW_ROUNDS:
                    continue
                quiet = _quiet(settings.gate_seconds)
                if entrant.rough < settings.sample_seconds:
                    entrant.prepared.run()  # what the peer before left in the caches is not this one's fault
                repeats = max(1, round(settings.sample_seconds / entrant.rough))
                seconds = _sample(entrant.prepared.run, repeats, clock)
                entrant.samples.append((seconds, quiet and _runnable() <= settings.threads))
    finally:
        gc.enable()


def _sample(run: Callable[[], Any], repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        run()
    return (clock() - start) / repeats


def _clock(settings: Settings) -> Callable[[], float]:
    return time.process_time if settings.cpu_time else time.perf_counter


def _statistics(samples: Sequence[tuple[float, bool]], traffic: int, flops: int) -> dict[str, Any]:
    """Best and median of the undisturbed ("clean") samples, or of all when there are fewer than three."""
    clean = [s for s, quiet in samples if quiet]
    seconds = sorted(clean if len(clean) >= 3 else [s for s, _ in samples])
    best, median = seconds[0], seconds[len(seconds) // 2]
    row = {"best_ms": _rounded(best * 1e3), "median_ms": _rounded(median * 1e3), "rounds": len(samples), "clean": len(clean)}
    if traffic:
        row["gb_per_s"] = _rounded(traffic / best / 1e9)
    if flops:
        row["gflop_per_s"] = _rounded(flops / best / 1e9)
    return row


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")


def _runnable() -> int:
    """Processes that want a core at this moment, this one included; 1 where the system does not tell."""
    try:
        return int(Path("/proc/loadavg").read_text(encoding="utf-8").split()[3].split("/")[0])
    except OSError:
        return 1


def _quiet(seconds: float) -> bool:
    """Wait up to ``seconds`` for nobody else to run; whether that came about."""
    end, calm = time.perf_counter() + seconds, 0
    while calm < QUIET_CHECKS:
        calm = calm + 1 if _runnable() <= 1 else 0
        if time.perf_counter() >= end:
            return calm > 0
        time.sleep(0.001)
    return True


def report_to_stderr(line: str) -> None:
    """A line of progress."""
    print(line, file=sys.stderr, flush=True)
