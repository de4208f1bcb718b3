"""Where a graph runs: one executor per target, loaded when it is first asked for."""
from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.frontend.arguments import Array
from pypto_dsl.frontend.spans import here
from pypto_dsl.runtime import interpreter

DEFAULT = "interpreter"


class Executor(Protocol):
    """Runs a graph on arrays by parameter name: writes the outputs in place, and gives what the kernel returns."""

    def __call__(self, arrays: Mapping[str, Array], symbols: Mapping[str, int]) -> list[Array]: ...


def _interpreted(graph: Graph) -> Executor:
    def run(arrays: Mapping[str, Array], symbols: Mapping[str, int]) -> list[Array]:
        results = interpreter.run(graph, dict(arrays), dict(symbols))
        for name in graph.outputs:
            arrays[name][...] = results[name]
        return [np.asarray(results[key]) for key in interpreter.return_names(graph)]

    return run


EXECUTORS: dict[str, Callable[[Graph], Executor]] = {"interpreter": _interpreted}


def executor(target: str, graph: Graph) -> Executor:
    """What runs ``graph`` on ``target``. Raises PT501 for a target that is none."""
    if target not in EXECUTORS:
        raise error("PT501", f"there is no target `{target}` that runs kernels", here(),
                    help=f"targets are {', '.join(EXECUTORS)}", target=target)
    return EXECUTORS[target](graph)


def explain(graph: Graph, target: str, hints: Sequence[str], notes: Sequence[str]) -> Any:
    """What the compiler made of a graph for ``target``, and why."""
    return importlib.import_module("pypto_dsl.explain").explain(graph, (target,), hints, notes)


def graph_after(graph: Graph, name: str, target: str) -> Graph:
    """The graph after a pass of ``target``."""
    raise error("PT713", f"there is no pass `{name}`", here())


def source(target: str, graph: Graph) -> str:
    """The emitted text."""
    raise error("PT501", f"there is no target `{target}` that emits source", here())


def write(target: str, graph: Graph, out_dir: Any) -> list[str]:
    """Write the emitted files."""
    raise error("PT501", f"there is no target `{target}` that emits source into {Path(out_dir)}", here())
