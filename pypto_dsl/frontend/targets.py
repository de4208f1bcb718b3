"""Where a graph runs, and what is emitted of it: one back end per family of targets, loaded when it is first asked for."""
from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pypto_dsl.compiler import targets
from pypto_dsl.compiler.errors import error, value_text
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.passes.limits import check_limits
from pypto_dsl.compiler.profile import stage
from pypto_dsl.compiler.targets import Target
from pypto_dsl.frontend.arguments import Array
from pypto_dsl.frontend.spans import here
from pypto_dsl.runtime import interpreter

if TYPE_CHECKING:  # what is compiled is loaded when something is compiled
    from pypto_dsl.compiler.tile_ir.nodes import Param, Program

DEFAULT = "llvm-cpu"
INTERPRETER = "interpreter"
EMULATED = "-emu"  # `ascend-a2-emu` runs what is compiled for `ascend-a2` in the emulator

# Family of targets -> (module that emits, module that runs the emitted files in an emulator).
DEVICES = {"ascend": ("pypto_dsl.codegen.ascendc", "pypto_dsl.runtime.emulator.ascendc.runner"),
           "ttmetal": ("pypto_dsl.codegen.ttmetal", "pypto_dsl.runtime.emulator.ttmetal.runner")}


class Executor(Protocol):
    """Runs a graph on arrays and numbers by name: writes the outputs in place, and gives what the kernel returns."""

    def __call__(self, arrays: Mapping[str, Array], symbols: Mapping[str, int]) -> list[Array]: ...


# ---- running ---------------------------------------------------------------------------------------------------------------


def _interpreted(graph: Graph) -> Executor:
    def run(arrays: Mapping[str, Array], symbols: Mapping[str, int]) -> list[Array]:
        native = {n: a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("=")) for n, a in arrays.items()}
        results = interpreter.run(graph, native, dict(symbols))
        for name in graph.outputs:
            arrays[name][...] = results[name]
        return [np.asarray(results[key]) for key in interpreter.return_names(graph)]

    return run


def extents_of(graph: Graph) -> dict[str, tuple[str, int]]:
    """The argument and axis behind every symbol that is an extent."""
    return {s.name: (s.parameter, s.axis) for s in graph.symbols.values() if s.kind == "dim"}


class _Call:
    """The tensors and numbers of one call of a program."""

    def __init__(self, arguments: Sequence[Param], returns: int, arrays: Mapping[str, Array], symbols: Mapping[str, int]) -> None:
        split = len(arguments) - returns
        self.tensors = {a.name: arrays[a.name] for a in arguments[:split]}
        self.returned = {a.name: np.empty([e.evaluate(symbols) for e in a.shape], a.dtype.numpy) for a in arguments[split:]}
        numbers = {n: v.item() for n, v in arrays.items() if n not in self.tensors and v.ndim == 0}
        self.numbers: dict[str, float | int] = {**symbols, **numbers}

    def arrays(self) -> dict[str, Array]:
        return {**self.tensors, **self.returned}


class Compiled:
    """Runs a graph as machine code of the host. ``launch`` takes ``tensors`` and then ``numbers`` by position, see `Executable.launch`."""

    def __init__(self, graph: Graph, target: Target) -> None:
        self.name = graph.name
        self.returns = len(graph.returns)
        extents = extents_of(graph)
        machine = _module("pypto_dsl.runtime.cpu.jit").machine()
        with stage("key"):
            key = _module("pypto_dsl.runtime.cpu.stored").key(graph, target, machine, extents)
        build = _module("pypto_dsl.runtime.cpu.executable").Executable
        lying = _module("pypto_dsl.compiler.layouts").lying
        self.executable = build(lambda: _lower(graph, target), extents=extents, key=key,
                                relaid=lambda layouts: _lower(lying(graph, layouts), target))
        self.arguments: tuple[Param, ...] = self.executable.arguments
        self.launch: Callable[..., bool] | None = self.executable.launch
        self.numbers: tuple[str, ...] = self.executable.numbers

    def __call__(self, arrays: Mapping[str, Array], symbols: Mapping[str, int]) -> list[Array]:
        call = _Call(self.arguments, self.returns, arrays, symbols)
        try:
            self.executable.run(call.arrays(), call.numbers)
        except MemoryError as full:
            raise error("PT720", f"{self.name} does not fit into memory: {full}", here()) from None
        return list(call.returned.values())

    @property
    def tensors(self) -> tuple[Param, ...]:
        """The user's tensors in the order of the signature."""
        return self.arguments[:len(self.arguments) - self.returns]

    @property
    def returned(self) -> tuple[Param, ...]:
        """The tensors that are made in a call and returned."""
        return self.arguments[len(self.arguments) - self.returns:]


def _emulated(graph: Graph, target: Target) -> Executor:
    emitter, runner = (_module(name) for name in DEVICES[target.family])
    program = _lower(graph, target)
    emitted = emitter.emit(program, target)

    def run(arrays: Mapping[str, Array], symbols: Mapping[str, int]) -> list[Array]:
        check_limits(graph, target, symbols)
        call = _Call(program.arguments, len(graph.returns), arrays, symbols)
        results = runner.run(emitted.manifest, emitted.files, call.arrays(), call.numbers)
        for name in graph.outputs:
            arrays[name][...] = results[name]
        return [np.asarray(results[name]) for name in call.returned]

    return run


def compiled_for(name: str) -> str:
    """The target whose sources a name stands for: `ascend-a2` of `ascend-a2-emu`. Raises PT501 for what is no text."""
    if isinstance(name, str):
        return name.removesuffix(EMULATED)
    raise error("PT501", f"a target is named by text, and got {value_text(name)}", here(), help=f"targets are {', '.join(runnable())}")


def executor(name: str, graph: Graph) -> Executor:
    """What runs ``graph`` on the target called ``name``. Raises PT501 for a target that is none, and what compiling for it raises."""
    if name == INTERPRETER:
        return _interpreted(graph)
    if not runs(name):
        other = f"{name}{EMULATED}"
        wanted = f"run it in the emulator: {other}" if runs(other) else f"targets are {', '.join(runnable())}"
        raise error("PT501", f"no target `{name}` runs kernels here", here(), help=wanted, target=name)
    target = targets.load(compiled_for(name))
    return Compiled(graph, target) if target.family == "llvm" else _emulated(graph, target)


def runs(name: str) -> bool:
    """Whether a target of this name, or at this path, runs kernels on this machine. No other is read; PT504 when its file is wrong."""
    if name == INTERPRETER:
        return True
    base = compiled_for(name)
    if not targets.is_built_in(base) and base not in targets.names() and not (targets.is_file(base) and Path(base).is_file()):
        return False
    family = targets.load(base).family
    return family in DEVICES if name.endswith(EMULATED) else family == "llvm"


def runnable() -> list[str]:
    """The names of every target that runs kernels on this machine, the emulated ones with their suffix."""
    loaded = targets.available()
    native = [t.name for t in loaded if t.family == "llvm"]
    return [*native, INTERPRETER, *(t.name + EMULATED for t in loaded if t.family in DEVICES)]


# ---- looking ----------------------------------------------------------------------------------------------------------------


def _module(name: str) -> Any:
    return importlib.import_module(name)


def entered(base: type, slot: str, method: Callable[..., Any], variables: Sequence[Any]) -> Any:
    """A subtype of ``base`` whose call asks the launcher in ``slot`` before ``method``; None where this Python has no such entry."""
    return _module("pypto_dsl.runtime.cpu.entry").entered(base, slot, method, variables)


def _lower(graph: Graph, target: Target) -> Program:
    program: Program = _module("pypto_dsl.compiler.pipeline").lower(graph, target)
    return program


def explain(graph: Graph, target: str, hints: Sequence[str], notes: Sequence[str]) -> Any:
    """What the compiler made of a graph for ``target``, and why."""
    name = compiled_for(target)
    emitted = {} if name == INTERPRETER else {name: files(name, graph)}
    return _module("pypto_dsl.explain").explain(graph, (name,), hints, notes, emitted)


def graph_after(graph: Graph, name: str, target: str) -> Any:
    """What stands after the pass or stage ``name`` of the pipeline of ``target``. Raises PT713 for a name that is none."""
    pipeline = _module("pypto_dsl.compiler.pipeline")
    if name not in pipeline.STAGES:
        raise error("PT713", f"there is no pass `{name}`", here(), help=f"passes are {', '.join(pipeline.STAGES)}")
    for after in pipeline.stages(graph, targets.load(compiled_for(target))):
        if after.name == name:
            return after.result
    raise error("PT713", f"the pipeline of `{target}` has no pass `{name}`", here())


def text(result: Any) -> str:
    """What stands after a stage of the pipeline, in its text form."""
    return str(_module("pypto_dsl.compiler.pipeline").text(result))


def files(name: str, graph: Graph) -> dict[str, str]:
    """The files that are emitted of a graph for a target, by name. Raises PT501 for a target that is none."""
    target = targets.load(compiled_for(name))
    program = _lower(graph, target)
    if target.family == "llvm":
        kernels = list(_module("pypto_dsl.compiler.tile_ir.nodes").kernels_of(program.steps))
        level = _module("pypto_dsl.runtime.cpu.jit").machine().level
        return {f"{program.name}.ll": str(_module("pypto_dsl.codegen.llvm.kernel").emit(kernels, level))}
    return dict(_module(DEVICES[target.family][0]).emit(program, target).files)


def source(name: str, graph: Graph) -> str:
    """The emitted text: one file as it is, several one after the other under their names."""
    emitted = files(name, graph)
    if len(emitted) == 1:
        return next(iter(emitted.values()))
    return "\n".join(f"// ==== {file} ====\n{text}" for file, text in emitted.items())


def write(name: str, graph: Graph, folder: Any) -> list[str]:
    """Write the emitted files below ``folder``; returns their names."""
    emitted = files(name, graph)
    for file, text in emitted.items():
        path = Path(folder) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return list(emitted)


__all__ = ["DEFAULT", "Compiled", "Executor", "executor", "explain", "extents_of", "files", "graph_after", "runnable", "runs", "source",
           "write"]
