"""The CPU as a target that runs graphs: lowers a graph, compiles it, and calls it with arrays by parameter name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pypto_dsl.codegen.llvm import kernel as emitter
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.arguments import Array
from pypto_dsl.runtime.cpu.cache import ObjectCache, default_directory
from pypto_dsl.runtime.cpu.executable import Executable, kernels_of

TARGET = "llvm-cpu"


class GraphExecutable:
    """A graph compiled for the host. Called with arrays by parameter name (run-time numbers as arrays of rank 0) and extents by
    name, it writes the outputs in place and gives the arrays that the kernel returns."""

    def __init__(self, graph: Graph, cache: ObjectCache | None = None) -> None:
        """Compile ``graph``; objects are kept in the user's cache unless another is given. Raises what lowering and emission refuse."""
        self.graph = graph
        self.executable = Executable(lower(graph, TARGET), cache=cache or ObjectCache(default_directory()))
        named = {p.name for p in graph.parameters}
        self._returned = [a for a in self.executable.program.arguments if a.name not in named]
        self._tensors = {a.name for a in self.executable.program.arguments}

    def __call__(self, arrays: Mapping[str, Array], symbols: Mapping[str, int]) -> list[Array]:
        """Run once."""
        memory = {n: a for n, a in arrays.items() if n in self._tensors}
        scalars: dict[str, float | int] = dict(symbols)
        scalars.update((n, a.item()) for n, a in arrays.items() if n not in self._tensors and a.ndim == 0)
        returned = [np.empty([e.evaluate(symbols) for e in a.shape], a.dtype.numpy) for a in self._returned]
        memory.update(zip((a.name for a in self._returned), returned, strict=True))
        self.executable.run(memory, scalars)
        return returned


def source(graph: Graph, level: str | None = None) -> str:
    """The LLVM IR text of a graph, for the host or one of its smaller feature levels."""
    return emitter.emit(list(kernels_of(lower(graph, TARGET).steps)), jit.machine(level).level)
