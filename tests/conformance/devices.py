"""Running cells in the emulators of the devices: the cells of a family of operations are one compiled unit per target."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from cells import Array, Cell, arrays, everyday, inputs, outputs, record, taken

from pypto_dsl.codegen import ascendc, ttmetal
from pypto_dsl.compiler.errors import Diagnostic, KernelError
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.targets import load
from pypto_dsl.runtime.emulator.ascendc import runner as ascend_runner
from pypto_dsl.runtime.emulator.ascendc.kernel_library import KernelLibrary, build_library
from pypto_dsl.runtime.emulator.ttmetal import runner as ttmetal_runner
from pypto_dsl.runtime.emulator.ttmetal.batch import Batch
from pypto_dsl.runtime.toolchain import BuildFailed

TARGETS = ("ascend-a2", "tt-wormhole", "tt-blackhole")


@dataclass(frozen=True)
class Prepared:
    """A cell that a target took: its graph and operands, and what was emitted."""

    cell: Cell
    graph: Graph
    given: list[Array]
    emitted: Any


class Unit(Protocol):
    """The compiled kernels of a family."""

    def run(self, prepared: Prepared, given: Mapping[str, Array]) -> Mapping[str, Array]: ...


def apart(given: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Tensors, and the run-time numbers that operands of rank 0 are; a result of rank 0 stays a tensor."""
    numbers = {name: a.item() for name, a in given.items() if not a.ndim and not name.startswith("out")}
    return {name: a for name, a in given.items() if name not in numbers}, numbers


class AscendUnit:
    """One shared library with the kernels of every program."""

    def __init__(self, title: str, programs: Sequence[Prepared]) -> None:
        files, entries = {}, []
        for p in programs:
            name = f"{p.emitted.manifest['name']}.cpp"
            files[name] = p.emitted.files[name]
            entries += [kernel["entry"] for step in p.emitted.manifest["steps"] for kernel in step]
        architecture = load(TARGETS[0]).data["architecture"]
        self.kernels: KernelLibrary = build_library(title, files, entries, arch=architecture, optimize=0)

    def run(self, prepared: Prepared, given: Mapping[str, Array]) -> Mapping[str, Array]:
        tensors, numbers = apart(given)
        return ascend_runner.execute(self.kernels, prepared.emitted.manifest, tensors, numbers, 2)[0]


class TensixUnit:
    """One shared object per role and setting of the cores."""

    def __init__(self, title: str, programs: Sequence[Prepared]) -> None:
        self.batch = Batch(title)
        for p in programs:
            self.batch.add(p.emitted.manifest, p.emitted.files)

    def run(self, prepared: Prepared, given: Mapping[str, Array]) -> Mapping[str, Array]:
        tensors, numbers = apart(given)
        return ttmetal_runner.run(prepared.emitted.manifest, prepared.emitted.files, tensors, numbers, cores=2, seed=1, builder=self.batch)


EMIT = {"ascend": (ascendc.emit, AscendUnit), "ttmetal": (ttmetal.emit, TensixUnit)}


@cache
def prepared(cell: Cell, target: str) -> Prepared | Diagnostic:
    """The emitted cell, or what the target says when it refuses it."""
    given = arrays(cell)
    machine = load(target)
    graph = record(cell, given)
    try:
        return Prepared(cell, graph, given, EMIT[machine.family][0](lower(graph, machine), machine))
    except KernelError as refused:
        return refused.diagnostic


@cache
def unit(family: str, target: str, often: bool) -> Unit | BuildFailed:
    """What the target took of a family of operations, everyday cells or the others, compiled; or why the compiler does not take it."""
    here = (prepared(c, target) for c in taken() if REGISTRY[c.name].family == family and (c in everyday_set()) == often)
    try:
        made: Unit = EMIT[load(target).family][1](family, [p for p in here if isinstance(p, Prepared)])
    except BuildFailed as failed:
        return failed
    return made


@cache
def everyday_set() -> frozenset[Cell]:
    """The everyday cells, to look up."""
    return frozenset(everyday())


def executed(p: Prepared, target: str, given: list[Array]) -> list[Array]:
    """The results of a cell in the emulator. The everyday cells of a family are compiled together, and so are the others."""
    built = unit(REGISTRY[p.cell.name].family, target, p.cell in everyday_set())
    if isinstance(built, BuildFailed):
        raise built
    made = built.run(p, {**inputs(given), **outputs(p.graph, {})})
    return [made[name] for name in p.graph.outputs]
