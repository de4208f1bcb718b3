"""`ptc run`: a file's kernel on generated inputs; its numbers, its error against float64, its time beside NumPy's."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from pypto_dsl import check, measure
from pypto_dsl.check import Subject, Verdict
from pypto_dsl.cli import kernels, sarif, terminal
from pypto_dsl.cli.kernels import Source
from pypto_dsl.cli.outcome import ExitCode
from pypto_dsl.compiler import targets as registry
from pypto_dsl.compiler.dtypes import of_numpy
from pypto_dsl.compiler.graph import Graph, Value, walk
from pypto_dsl.explain import known_differences
from pypto_dsl.frontend import targets
from pypto_dsl.frontend.arguments import check_extents, symbol_values
from pypto_dsl.measure import Array
from pypto_dsl.runtime import interpreter

INTERPRETER = "interpreter"
# An element this much smaller than the largest one, and further off than this, is what terms that cancel have left.
SMALL, MOST_ULP = 1 / 16, 16.0


@dataclass(frozen=True)
class Outcome:
    """One run: results by name, what they are beside float64, known differences of the device, seconds of one call here and in NumPy
    (None: not timed).

    ``inputs`` are the arguments that the kernel reads, those that it writes too among them.
    """

    inputs: Mapping[str, Any]
    results: Mapping[str, Array]
    verdicts: tuple[Verdict, ...]
    differences: tuple[str, ...]
    here: float | None
    numpy: float | None


@click.command("run")
@click.argument("kernel")
@click.option("--target", metavar="NAME", callback=kernels.checked_target(targets.runnable, targets.runs),
              help="llvm-cpu, interpreter, ascend-a2-emu, tt-wormhole-emu, ...  [default: the kernel's own, else llvm-cpu]")
@kernels.shape_option
@click.option("--seed", default=0, show_default=True, help="Seed of the generated inputs.")
@click.option("--time/--no-time", "timed", default=True, help="Whether to measure times (never on emulators).")
@terminal.json_option
@terminal.sarif_option
@click.pass_context
def command(ctx: click.Context, kernel: str, target: str | None, shapes: tuple[kernels.Shape, ...], seed: int, timed: bool,
            as_json: bool, as_sarif: bool) -> None:
    """Run a file's kernel on generated inputs and report numbers, error and time.

    KERNEL is FILE.py, FILE.py:NAME or FILE.ptir. Inputs come from the file's function `inputs(generator)` where it has one (a dict, or a
    tuple in the order of the parameters), else they are drawn at random from the parameters' annotations; `--shape` fixes what an
    annotation leaves open. DYNAMIC axes, and symbols of a text kernel, that nothing fixes are 100.

    The error is measured against the same kernel evaluated in float64, in units of the last place (ulp) of each result's dtype. The
    run fails with exit code 3 when a NaN or an infinity is wrong, or an error is beyond the tolerance that `ptc check` derives from
    the kernel's operations. Where the file has a function `reference`, which takes the same arguments as the kernel and
    computes with NumPy, its time is shown beside the kernel's.

    \b
      ptc run examples/softmax.py
      ptc run examples/softmax.py --target ascend-a2-emu
      ptc run kernel.ptir --shape x=64x128
    """
    source = kernels.find(kernel)
    target = target or (source.kernel.options.target if source.kernel is not None else "") or targets.DEFAULT
    given = kernels.arguments(source, shapes, seed)
    with terminal.progress(f"running {source.name} on {target}"):
        outcome = run(source, given, target, timed and not target.endswith("-emu"))
    passed = all(v.ok for v in outcome.verdicts)
    if as_sarif:
        sarif.emit(source, [f"{v.name} of {source.name} on {target}: {_verdict(v)}" for v in outcome.verdicts if not v.ok])
    elif as_json:
        terminal.emit_json(_document(source, given, target, outcome, passed))
    else:
        click.echo("\n".join(_lines(source, given, target, outcome)))
    if not passed:
        if not as_json and not as_sarif:
            click.echo(terminal.paint(f"error: {source.name} on {target} is wrong: see above"), err=True)
            for difference in outcome.differences:
                click.echo(terminal.paint(f"   = note: known difference of the device: {difference}"), err=True)
        ctx.exit(ExitCode.NUMERIC)


def run(source: Source, given: Mapping[str, Any], target: str, timed: bool) -> Outcome:
    """Run a kernel on copies of ``given`` and compare every result with the kernel in float64.

    Raises KernelError as the kernel's call does.
    """
    graph, results, verdicts = check.given(subject(source, target), given)
    known = () if target == INTERPRETER else known_differences(graph, registry.load(target.removesuffix("-emu")))
    return Outcome(_read(graph, given), results, verdicts, known, *(_times(source, given, target, graph) if timed else (None, None)))


def subject(source: Source, target: str) -> Subject:
    """A kernel on a target, to be held against a reference."""
    found = None if target == INTERPRETER else registry.load(target.removesuffix("-emu"))

    def prepare(arguments: Mapping[str, Any]) -> tuple[Graph, Mapping[str, int]]:
        graph = graph_of(source, arguments)
        symbols = symbols_of(graph, arguments)
        check_extents(graph, symbols)
        return graph, symbols

    def expanded(graph: Graph) -> Graph:
        made: Graph = graph if found is None else targets.graph_after(graph, "legalize", found.name)
        return made

    return Subject(prepare, lambda arguments: computed(source, arguments, target)[1], found, expanded)


def computed(source: Source, given: Mapping[str, Any], target: str) -> tuple[Graph, dict[str, Array]]:
    """The graph of a kernel for these arguments, and its results by name on copies. Raises KernelError as the kernel's call does."""
    graph = graph_of(source, given)
    if source.kernel is None:
        return graph, _execute(graph, _copies(given), target)
    calls = _copies(given)
    returned = source.kernel.run(**calls, target=target)
    values = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
    return graph, {**{name: calls[name] for name in graph.outputs}, **dict(zip(interpreter.return_names(graph), values, strict=True))}


def graph_of(source: Source, given: Mapping[str, Any]) -> Graph:
    """The graph of a kernel for these arguments; a text kernel's own. Raises KernelError as reading the kernel does."""
    return source.graph or Graph(source.name) if source.kernel is None else source.kernel.specialise(**given).graph


def _copies(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in given.items()}


def symbols_of(graph: Graph, given: Mapping[str, Any]) -> dict[str, int]:
    """The value of every dimension and integer of a call."""
    return symbol_values(graph, given, {name: value for name, value in given.items() if isinstance(value, int)})


def _execute(graph: Graph, arrays: dict[str, Any], target: str) -> dict[str, Array]:
    returned = targets.executor(target, graph)(arrays, symbols_of(graph, arrays))
    return {name: arrays[name] for name in graph.outputs} | dict(zip(interpreter.return_names(graph), returned, strict=True))


def _times(source: Source, given: Mapping[str, Any], target: str, graph: Graph) -> tuple[float, float | None]:
    arrays = _copies(given)
    if source.kernel is None:
        execute, symbols = targets.executor(target, graph), symbols_of(graph, arrays)
        return measure.seconds(lambda: execute(arrays, symbols)), None
    kernel, reference = source.kernel, source.member("reference")
    here = measure.seconds(lambda: kernel.run(**arrays, target=target))
    if reference is None:
        return here, None
    others = _copies(given)
    with np.errstate(all="ignore"):
        return here, measure.seconds(lambda: reference(**others))


# ---- what is printed -----------------------------------------------------------------------------------------------------


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        dtype = of_numpy(value.dtype)
        return f"{dtype.name if dtype else value.dtype}[{', '.join(map(str, value.shape))}]"
    return repr(value)


def _read(graph: Graph, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those that are only written."""
    written = {p.name for p in graph.parameters if p.name in graph.outputs and not _is_read(graph, p)}
    return {name: value for name, value in given.items() if name not in written}


def _is_read(graph: Graph, parameter: Value) -> bool:
    """Whether anything but writes into it, and loops and branches that hand it on, takes what a parameter holds."""
    own, before = {parameter}, 0
    while len(own) > before:
        before = len(own)
        for op in walk(graph.body):
            for position in (i for i, operand in enumerate(op.operands) if operand in own):
                if op.opcode == "loop":
                    own |= {op.regions[0].arguments[position], op.results[position]}
                elif op.opcode == "insert" and position == 0:
                    own.add(op.result)
                else:
                    return True
            own |= {op.results[i] for region in op.regions for i, value in enumerate(region.yields) if value in own}
    return not own.isdisjoint(graph.returns) or any(v in own for name, v in graph.outputs.items() if name != parameter.name)


def _lines(source: Source, given: Mapping[str, Any], target: str, outcome: Outcome) -> list[str]:
    inputs = ", ".join(f"{name} {_described(value)}" for name, value in outcome.inputs.items())
    lines = [f"{source.name}({inputs}) on {target}"]
    for verdict in outcome.verdicts:
        value = np.asarray(outcome.results[verdict.name])
        lines.append(f"  {verdict.name} {_described(value)}: {_verdict(verdict)}")
        with np.printoptions(threshold=12, edgeitems=2, precision=6, suppress=False):
            shown = value.astype(np.float32) if value.dtype.kind == "V" else value  # ml_dtypes print through float32
            lines += [f"    {line}" for line in str(shown).split("\n")]
    if outcome.here is not None:
        line = f"  one call takes {_duration(outcome.here)}"
        if outcome.numpy is not None:
            line += f", NumPy's {_duration(outcome.numpy)} ({outcome.numpy / outcome.here:.2f} times as long)"
        lines.append(line)
    return lines


def _verdict(v: Verdict) -> str:
    kinds = v.nan_extra + v.nan_missing + v.infinite
    if kinds:
        return f"{kinds} elements are NaN or infinite where they should not be, or the other way round"
    if not v.is_float:
        return "exact" if not v.different else f"{v.different} elements differ" + ("" if v.ok else f", and should be {v.allowed()}")
    where = f" at [{', '.join(map(str, v.worst.at))}]" if v.worst is not None and v.worst.at else ""
    most = f"at most {_relative(v):.1e} of the largest magnitude"
    text = f"error {most}, largest{where}, where terms cancel" if _cancels(v) else f"largest error {_ulp(v):.3g} ulp{where}, {most}"
    return text if v.ok else f"{text}; {v.wrong} elements are off by more than {v.limit / v.scale if v.scale else v.limit:.1e}"


def _cancels(v: Verdict) -> bool:
    """Whether the worst element is the small difference of larger ones: its own ulp then says nothing of what its terms lost."""
    return v.worst is not None and _ulp(v) > MOST_ULP and abs(v.worst.expected) < v.scale * SMALL


def _ulp(v: Verdict) -> float:
    return 0.0 if v.worst is None or v.worst.ulp is None else v.worst.ulp


def _relative(v: Verdict) -> float:
    return v.error / v.scale if v.scale else v.error


def _duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds} s"


def _document(source: Source, given: Mapping[str, Any], target: str, outcome: Outcome, passed: bool) -> dict[str, Any]:
    first = {name: np.asarray(value).reshape(-1)[:8].astype(np.float64).tolist() for name, value in outcome.results.items()}
    results = [{"name": v.name, "dtype": v.dtype, "shape": list(v.shape), "ok": v.ok, "ulp": _ulp(v),
                "at": [] if v.worst is None else list(v.worst.at), "relative": _relative(v),
                "limit": v.limit / v.scale if v.scale else v.limit, "wrong": v.wrong,
                "wrong_kind": v.nan_extra + v.nan_missing + v.infinite, "different": v.different, "first": first[v.name]}
               for v in outcome.verdicts]
    return {"ok": passed, "exit": int(ExitCode.OK if passed else ExitCode.NUMERIC), "kernel": source.name, "target": target,
            "inputs": {name: _described(value) for name, value in outcome.inputs.items()}, "results": results,
            "known_differences": list(outcome.differences), "seconds": outcome.here, "numpy_seconds": outcome.numpy}
