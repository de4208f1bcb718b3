"""`ptc run`: a file's kernel on generated inputs; its numbers, its error against float64, its time beside NumPy's."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from pypto_dsl import measure
from pypto_dsl.cli import kernels, sarif, terminal
from pypto_dsl.cli.kernels import Source
from pypto_dsl.cli.outcome import ExitCode
from pypto_dsl.compiler import targets as registry
from pypto_dsl.compiler.dtypes import of_numpy
from pypto_dsl.compiler.graph import Graph, Value, walk
from pypto_dsl.explain import known_differences
from pypto_dsl.frontend import targets
from pypto_dsl.frontend.arguments import symbol_values
from pypto_dsl.measure import Array, Comparison
from pypto_dsl.runtime import interpreter


@dataclass(frozen=True)
class Outcome:
    """One run: results by name, comparisons, known differences of the device, seconds of one call here and in NumPy (None: not timed).

    ``inputs`` are the arguments that the kernel reads, those that it writes too among them.
    """

    inputs: Mapping[str, Any]
    results: Mapping[str, Array]
    comparisons: tuple[Comparison, ...]
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
    run fails with exit code 3 when a NaN or an infinity is wrong, or when an error is larger than half the digits of the dtype at the
    result's largest magnitude. Where the file has a function `reference`, which takes the same arguments as the kernel and
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
    passed = all(c.ok for c in outcome.comparisons)
    if as_sarif:
        sarif.emit(source, [f"{c.name} of {source.name} on {target}: {_verdict(c)}" for c in outcome.comparisons if not c.ok])
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
    before = _copies(given)
    graph, results = computed(source, before, target)
    exact = measure.reference(graph, before, symbols_of(graph, before))
    comparisons = tuple(measure.compare(name, np.asarray(got), exact[name]) for name, got in results.items())
    known = () if target == "interpreter" else known_differences(graph, registry.load(target.removesuffix("-emu")))
    return Outcome(_read(graph, given), results, comparisons, known, *(_times(source, given, target, graph) if timed else (None, None)))


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
    for comparison in outcome.comparisons:
        value = np.asarray(outcome.results[comparison.name])
        lines.append(f"  {comparison.name} {_described(value)}: {_verdict(comparison)}")
        with np.printoptions(threshold=12, edgeitems=2, precision=6, suppress=False):
            shown = value.astype(np.float32) if value.dtype.kind == "V" else value  # ml_dtypes print through float32
            lines += [f"    {line}" for line in str(shown).split("\n")]
    if outcome.here is not None:
        line = f"  one call takes {_duration(outcome.here)}"
        if outcome.numpy is not None:
            line += f", NumPy's {_duration(outcome.numpy)} ({outcome.numpy / outcome.here:.2f} times as long)"
        lines.append(line)
    return lines


def _verdict(c: Comparison) -> str:
    if c.wrong_kind:
        return f"{c.wrong_kind} elements are NaN or infinite where they should not be, or the other way round"
    where = f" at [{', '.join(map(str, c.at))}]" if c.at else ""
    if c.dtype in ("bool",) or c.dtype[0] in "iu":
        return f"{c.different} elements differ" if c.different else "exact"
    text = f"largest error {c.ulp:.3g} ulp{where}, at most {c.relative:.1e} of the largest magnitude"
    return text if c.ok else f"{text}, which is above {c.limit:.1e}"


def _duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds} s"


def _document(source: Source, given: Mapping[str, Any], target: str, outcome: Outcome, passed: bool) -> dict[str, Any]:
    first = {name: np.asarray(value).reshape(-1)[:8].astype(np.float64).tolist() for name, value in outcome.results.items()}
    results = [c.data() | {"first": first[c.name]} for c in outcome.comparisons]
    return {"ok": passed, "exit": int(ExitCode.OK if passed else ExitCode.NUMERIC), "kernel": source.name, "target": target,
            "inputs": {name: _described(value) for name, value in outcome.inputs.items()}, "results": results,
            "known_differences": list(outcome.differences), "seconds": outcome.here, "numpy_seconds": outcome.numpy}
