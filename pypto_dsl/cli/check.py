"""`ptc check`: a kernel on a target against a reference, on its own inputs, at edge shapes and at special values."""
from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from pypto_dsl import check
from pypto_dsl.check import BUCKETS, MARKS, ReferenceFault, Tried, Verdict
from pypto_dsl.cli import kernels, run, sarif, terminal
from pypto_dsl.cli.kernels import Source
from pypto_dsl.cli.outcome import ExitCode
from pypto_dsl.explain import known_differences
from pypto_dsl.frontend import targets


@click.command("check")
@click.argument("kernel")
@click.option("--ref", "named", metavar="MODULE:FUNCTION", help="The reference: a function of a module or of FILE.py, or `interpreter`.  "
              "[default: the file's `reference`, else the interpreter]")
@click.option("--target", metavar="NAME", callback=kernels.checked_target(targets.runnable, targets.runs),
              help="llvm-cpu, ascend-a2-emu, tt-wormhole-emu, ...  [default: the kernel's own, else llvm-cpu]")
@kernels.shape_option
@click.option("--seed", default=0, show_default=True, help="Seed of the generated inputs.")
@click.option("--edges/--no-edges", default=True, help="Whether to try edge shapes of dynamic dimensions.")
@click.option("--values/--no-values", default=True, help="Whether to try special values.")
@click.option("--strict", is_flag=True, help="Fail at special values too where the kernel's own formula differs from the reference.")
@terminal.json_option
@terminal.sarif_option
@click.pass_context
def command(
    ctx: click.Context,
    kernel: str,
    named: str | None,
    target: str | None,
    shapes: tuple[kernels.Shape, ...],
    seed: int,
    edges: bool,
    values: bool,
    strict: bool,
    as_json: bool,
    as_sarif: bool,
) -> None:
    """Hold a kernel on a target against a reference; exit code 3 when an element is wrong.

    KERNEL and its inputs are as for `ptc run`. The reference takes the kernel's arguments by name and writes or returns results; or takes
    the inputs alone, in their order (`--ref scipy.special:softmax`). It gets float64 copies of float arrays. Without one, the kernel is
    compared with itself on the interpreter, in float64.

    The tolerance is derived, not chosen: along the worst way through the kernel each operation adds its bound in ulp times the ulp of its
    dtype, and each sum of n terms n half-ulps of its accumulator. That is relative to the larger of the element and the largest result.
    Where the formula itself loses more (by cancellation, say), which shows when the interpreter rounds after each operation, four times
    that is added.

    Tried beside the given inputs: each dynamic dimension at 1, around the tile, and beyond twice its extent; and 0, -0, infinities, NaN,
    subnormals and the largest numbers in every float input. At special values an element may differ from a reference where the kernel's own
    formula says so (the interpreter agrees with the target); such elements are counted, and fail with `--strict`.

    Printed are a line for each trial with its worst element, a map of where a wrong result is wrong (N: NaN without cause, n: should be
    NaN, i: infinities differ, x: beyond the tolerance), and how many elements are off by how many ulp.

    \b
      ptc check examples/softmax.py
      ptc check examples/softmax.py --ref scipy.special:softmax --target tt-wormhole-emu
    """
    source = kernels.find(kernel)
    target = target or (source.kernel.options.target if source.kernel is not None else "") or targets.DEFAULT
    called, reference = _reference(source, named)
    given = kernels.arguments(source, shapes, seed)
    subject = run.subject(source, target)
    try:
        with terminal.progress(f"checking {source.name} on {target}"):
            tried = list(check.check(subject, given, reference, shapes=edges, values=values))
    except ReferenceFault as fault:
        raise click.BadParameter(f"{called}: {fault}", param_hint="--ref") from fault
    passed = all(t.ok and not (strict and any(v.formula for v in t.verdicts)) for t in tried)
    differences = () if subject.target is None else known_differences(run.graph_of(source, given), subject.target)
    if as_sarif:
        sarif.emit(source, [f"{v.name} of {source.name} on {target} is not its reference ({t.name}): {_where(v)}"
                            for t in tried for v in t.verdicts if not v.ok or (strict and v.formula)])
    elif as_json:
        terminal.emit_json(_document(source, target, called, tried, passed, differences))
    else:
        click.echo("\n".join(_lines(source, target, called, tried)))
    if passed:
        return
    if not as_json and not as_sarif:
        click.echo(terminal.paint(f"error: {source.name} on {target} is not its reference: see above"), err=True)
        for difference in differences:
            click.echo(terminal.paint(f"   = note: known difference of the device: {difference}"), err=True)
    ctx.exit(ExitCode.NUMERIC)


def _reference(source: Source, named: str | None) -> tuple[str, Callable[..., Any] | None]:
    """What the kernel is compared with: its name, and the function, None for the interpreter."""
    if named is None:
        own = source.member("reference")
        return (run.INTERPRETER, None) if own is None else (f"{source.path.name}:{own.__name__}", own)
    if named == run.INTERPRETER:
        return run.INTERPRETER, None
    where, colon, name = named.rpartition(":")
    if not colon or not where or not name:
        raise click.BadParameter(f"{named!r} is not of the form module:function", param_hint="--ref")
    file = Path(where)
    found = _module(file.stem, file.parent) if file.suffix == ".py" and file.is_file() else _module(where, Path.cwd())
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise click.BadParameter(f"{where} has no function {name}", param_hint="--ref")
    return named, found


def _module(name: str, folder: Path) -> Any:
    """A module by name, ``folder`` searched first, as for a script."""
    if str(folder.resolve()) not in sys.path:
        sys.path.insert(0, str(folder.resolve()))
    try:
        known = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        known = None
    if known is None:
        raise click.BadParameter(f"there is no module {name}", param_hint="--ref")
    return importlib.import_module(name)


# ---- what is printed -----------------------------------------------------------------------------------------------------


def _lines(source: Source, target: str, called: str, tried: Sequence[Tried]) -> list[str]:
    lines = [f"{source.name} on {target} against {called}"]
    for verdict in tried[0].verdicts:
        lines.append(f"  {verdict.name} {verdict.dtype}[{', '.join(map(str, verdict.shape))}]: {verdict.allowed()}")
        if verdict.limit > verdict.tolerance.relative * verdict.scale:
            lines.append(
                f"    the formula rounds to {verdict.limit - verdict.tolerance.relative * verdict.scale:.1e} itself, which is added: "
                f"{verdict.limit:.1e} at {verdict.scale:.3g}"
            )
    lines.append("")
    rows = [row for one in tried for row in _rows(one)]
    lines.append(terminal.table(rows, head=("", "of", "result", "largest error", "where")))
    lines += [line for one in tried for verdict in one.verdicts for line in _map(one, verdict)]
    lines += ["", *_histograms(tried), f"{sum(t.ok for t in tried)} of {len(tried)} trials are right"]
    return lines


def _rows(tried: Tried) -> list[tuple[str, str, str, str, str]]:
    if tried.refused:
        return [(tried.name, "", "not for this kernel", "", tried.refused.split("\n")[0])]
    return [(tried.name if k == 0 else "", v.name, "ok" if v.ok else "WRONG", _error(v), _where(v)) for k, v in enumerate(tried.verdicts)]


def _error(v: Verdict) -> str:
    if not v.is_float:
        return "exact" if not v.different else f"{v.different} differ"
    return "-" if v.worst is None else "not finite" if v.worst.ulp is None else f"{v.worst.ulp:.3g} ulp"


def _where(v: Verdict) -> str:
    parts = []
    if v.worst is not None and (v.worst.ulp is None or v.worst.ulp > 0):
        parts.append(f"{v.name}[{', '.join(map(str, v.worst.at))}] is {v.worst.got:.9g}, expected {v.worst.expected:.9g}")
    counted = ((v.wrong, "beyond the tolerance"), (v.nan_extra, "NaN without cause"), (v.nan_missing, "should be NaN"),
               (v.infinite, "infinities differ"), (v.formula, "as the kernel is written: the interpreter has them too"))
    return "; ".join([*parts, *(f"{count} {what}" for count, what in counted if count)])


def _map(tried: Tried, verdict: Verdict) -> list[str]:
    """The picture of a wrong result, headed by its scale and its letters."""
    if not verdict.map:
        return []
    shape = f"[{', '.join(map(str, verdict.shape))}]"
    letters = {letter for line in verdict.map for letter in line}
    key = ", ".join(f"{letter} {what}" for letter, what in MARKS.items() if letter in letters)
    size = f"{len(verdict.map)} x {len(verdict.map[0])}"
    return ["", f"{verdict.name}{shape} ({tried.name}), drawn {size}: {key}", *(f"  {line}" for line in verdict.map)]


def _histograms(tried: Sequence[Tried]) -> list[str]:
    """How many finite elements are off by how many ulp, for each result, over all trials but those of special values."""
    ordinary = [v for t in tried if t.kind != "values" for v in t.verdicts]
    lines = []
    for name in dict.fromkeys(v.name for v in ordinary):
        counts = np.sum([v.histogram for v in ordinary if v.name == name], axis=0)
        shown = ", ".join(f"{label} {count}" for label, count in zip(_labels(), counts, strict=True) if count)
        lines.append(f"ulp of {name}: {shown or 'no finite elements'}")
    return lines


def _labels() -> list[str]:
    return ["exact:", *(f"<= {b:g}:" for b in BUCKETS[1:-1]), "more:"]


def _document(source: Source, target: str, called: str, tried: Sequence[Tried], passed: bool, differences: Sequence[str]) -> dict[str, Any]:
    def plain(v: Verdict) -> dict[str, Any]:
        worst = None if v.worst is None else {"at": list(v.worst.at), "got": _number(v.worst.got), "expected": _number(v.worst.expected),
                                              "ulp": v.worst.ulp}
        tolerance = {"relative": v.tolerance.relative, "roundings": v.tolerance.roundings, "lengths": list(v.tolerance.lengths),
                     "dtype": None if v.tolerance.coarsest is None else v.tolerance.coarsest.name, "text": v.tolerance.text()}
        return {
            "name": v.name,
            "dtype": v.dtype,
            "shape": list(v.shape),
            "ok": v.ok,
            "tolerance": tolerance,
            "scale": v.scale,
            "limit": v.limit,
            "wrong": v.wrong,
            "nan_extra": v.nan_extra,
            "nan_missing": v.nan_missing,
            "infinite": v.infinite,
            "formula": v.formula,
            "worst": worst,
            "histogram": list(v.histogram),
            "map": list(v.map),
        }

    return {
        "ok": passed,
        "exit": int(ExitCode.OK if passed else ExitCode.NUMERIC),
        "kernel": source.name,
        "target": target,
        "reference": called,
        "buckets": [b if np.isfinite(b) else None for b in BUCKETS],
        "known_differences": list(differences),
        "trials": [
            {"name": t.name, "kind": t.kind, "ok": t.ok, "refused": t.refused or None, "results": [plain(v) for v in t.verdicts]}
            for t in tried
        ],
    }


def _number(x: float) -> float | str:
    """A number that JSON has, else its name."""
    return x if np.isfinite(x) else str(x)
