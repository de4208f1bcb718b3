"""Running cells on the interpreter and on the CPU."""
from __future__ import annotations

from collections.abc import Callable, Mapping

import mpmath
import numpy as np
from cells import ELEMENTWISE, Array, Cell, M, N, arrays, exact, inputs, outputs, record
from errors import Worst, allowed, worst

from pypto_dsl.compiler.dtypes import F64, of_numpy
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.targets import Target, load
from pypto_dsl.runtime.cpu.executable import Executable
from pypto_dsl.runtime.interpreter import run

CPU = load("llvm-cpu")
MATRIX_FAMILIES = ("reduce", "row", "scan", "sort")


def interpreted(g: Graph, given: list[Array], symbols: Mapping[str, int]) -> list[Array]:
    """The results on the interpreter: the meaning."""
    made = run(g, {**{k: v.copy() for k, v in inputs(given).items()}, **outputs(g, symbols)}, dict(symbols))
    return [np.asarray(made[name]) for name in g.outputs]


def computed(executable: Executable, g: Graph, given: list[Array], symbols: Mapping[str, int]) -> list[Array]:
    """The results on the CPU."""
    outs = outputs(g, symbols)
    tensors = {name: a for name, a in inputs(given).items() if a.ndim}
    executable.run({**tensors, **outs}, {**symbols, **{name: a.item() for name, a in inputs(given).items() if not a.ndim}})
    return list(outs.values())


def compared(cell: Cell, got: list[Array], g: Graph, given: list[Array], symbols: Mapping[str, int]) -> list[tuple[Worst, Array]]:
    """The worst error of each result, and the result as the interpreter has it."""
    meant = interpreted(g, given, symbols)
    wanted = exact(g, given, symbols)
    if cell.dtype is F64 and cell.name in PRECISE and not cell.attributes.get("approximate"):
        meant = wanted = [np.vectorize(PRECISE[cell.name], otypes=[np.float64])(*given)]
    return [(worst(cell, a, w, r, given), r) for a, w, r in zip(got, wanted, meant, strict=True)]


def check(cell: Cell, got: list[Array], g: Graph, given: list[Array], symbols: Mapping[str, int],
          target: Target | None) -> Worst:
    """The worst error over all results; fails where one is beyond its bound on ``target`` (None: the op table's)."""
    found = Worst(0.0)
    for error, meant in compared(cell, got, g, given, symbols):
        dtype = of_numpy(meant.dtype)
        assert dtype is not None
        limit = allowed(cell, dtype, target)
        where = f"{cell.id} on {'the op table' if target is None else target.name}: {error.where}"
        assert error.ulp <= limit, f"{where}: {error.ulp:.3g} ulp of {dtype}, bound {limit:.3g}"
        found = max(found, error, key=lambda w: w.ulp)
    return found


def log_gamma(x: float) -> float:
    """log |gamma(x)|, infinite at the poles."""
    if np.isnan(x) or np.isinf(x):
        return abs(x)
    with mpmath.workdps(50):
        return np.inf if x <= 0 and x == np.floor(x) else float(mpmath.re(mpmath.loggamma(float(x))))


def digamma(x: float) -> float:
    """The derivative of log gamma; at the poles as the operation has it."""
    if x == 0 or np.isnan(x) or np.isinf(x):
        return float(np.copysign(np.inf, -x)) if x == 0 else float(x) if x > 0 else np.nan
    with mpmath.workdps(50):
        return np.nan if x < 0 and x == np.floor(x) else float(mpmath.digamma(float(x)))


def gelu(x: float) -> float:
    """x times the normal distribution's lower tail; of -inf -0."""
    if not np.isfinite(x):
        return -0.0 if x < 0 else float(x)
    with mpmath.workdps(50):
        made = float(mpmath.mpf(float(x)) * mpmath.erfc(-mpmath.mpf(float(x)) / mpmath.sqrt(2)) / 2)
    return made if made else float(np.copysign(0.0, x))


# Where the references of f64, which are float64 functions themselves, are off by more than their bounds: by mpmath.
PRECISE: dict[str, Callable[..., float]] = {
    "lgamma": log_gamma, "digamma": digamma, "gelu": gelu, "bias_gelu": lambda x, bias: gelu(x + bias)}


def is_matrix(cell: Cell, given: list[Array]) -> bool:
    """Whether the cell takes matrices of any extents, so that one kernel with symbols serves every shape."""
    shaped = cell.name in ELEMENTWISE or REGISTRY[cell.name].family in MATRIX_FAMILIES or cell.name == "where"
    return shaped and bool(given) and all(a.shape == (M, N) for a in given)


def symbols_of(shape: tuple[int, ...]) -> dict[str, int]:
    """The extents that a symbolic matrix operation is run with."""
    return {"M": shape[0], "N": shape[1]}


def prepared(cell: Cell) -> tuple[Graph, Executable, list[Array]]:
    """A cell compiled for the CPU. Raises KernelError where it is refused."""
    given = arrays(cell)
    g = record(cell, given)
    return g, Executable(lower(g, CPU)), given
