"""What a kernel is tried on beside its own inputs: extents at the edges of its dynamic dimensions, and special values."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.graph import Graph, walk
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.targets import TileChoices

POINTWISE = frozenset({"elementwise", "compare", "cast", "generator"})
MOST_ELEMENTS = 1 << 22  # no array of a trial is larger
EXTREME = "largest"
LARGEST_TILE = 1 << 12  # tails around larger tiles are tails around none in the arrays that a trial has


@dataclass(frozen=True)
class Trial:
    """Arguments to try: ``kind`` is "given", "shape" or "values"."""

    name: str
    kind: str
    arguments: Mapping[str, Any]

    @property
    def is_extreme(self) -> bool:
        """Whether this tries the largest numbers."""
        return self.kind == "values" and self.name.lstrip("-").startswith(EXTREME)


def shapes(graph: Graph, arguments: Mapping[str, Any], tile: TileChoices | None) -> Iterator[Trial]:
    """Every group of dynamic dimensions that must agree at 1, one below, at and one above each tile extent, and twice it plus 1."""
    groups = _groups(graph, arguments)
    for members in groups:
        symbol = graph.symbols[members[0]]
        base = int(np.shape(arguments[symbol.parameter])[symbol.axis])
        axes = ", ".join(f"{graph.symbols[m].parameter}.shape[{graph.symbols[m].axis}]" for m in members)
        for extent in _edges(graph, members, base, tile):
            made = resized(graph, arguments, dict.fromkeys(members, extent))
            if max((np.size(v) for v in made.values() if isinstance(v, np.ndarray)), default=0) <= MOST_ELEMENTS:
                yield Trial(f"{axes} = {extent}", "shape", made)
    if len(groups) > 1:
        every = [member for members in groups for member in members]
        yield Trial("every dynamic extent = 1", "shape", resized(graph, arguments, dict.fromkeys(every, 1)))


def _groups(graph: Graph, arguments: Mapping[str, Any]) -> list[list[str]]:
    """The dynamic dimensions; together those that a check of the kernel holds equal, and those of one axis and one extent.

    Kernels that go through rows in a loop have no check that says that their outputs have as many rows as their inputs.
    """
    dims = [s for s in graph.symbols.values() if s.kind == "dim"]
    leader = {s.name: s.name for s in dims}

    def root(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for check in graph.checks:
        left, right = check.left.name, check.right.name
        if left in leader and right in leader and left is not None and right is not None:
            leader[root(right)] = root(left)
    alike: dict[tuple[int, int], str] = {}
    for symbol in dims:
        first = alike.setdefault((symbol.axis, int(np.shape(arguments[symbol.parameter])[symbol.axis])), symbol.name)
        if root(first) != root(symbol.name):
            leader[root(symbol.name)] = root(first)
    found: dict[str, list[str]] = {}
    for name in leader:
        found.setdefault(root(name), []).append(name)
    return list(found.values())


def _edges(graph: Graph, members: Sequence[str], base: int, tile: TileChoices | None) -> list[int]:
    """The extents to try for dimensions that agree, ascending, without the one that is given."""
    ranks = {p.name: p.type.rank for p in graph.parameters}
    ops = list(walk(graph.body))
    sizes: set[int] = set()
    for member in members:
        from_end = ranks[graph.symbols[member].parameter] - graph.symbols[member].axis
        sizes |= {op.tile[-from_end] for op in ops if op.tile is not None and len(op.tile) >= from_end}
        if tile is not None:
            sizes |= {tile.plane[1], tile.cols, tile.align[1]} if from_end == 1 else {tile.plane[0], tile.rows, tile.align[0]}
            sizes |= {tile.matmul[0] if from_end > 1 else tile.matmul[1]} if any(op.opcode == "matmul" for op in ops) else set()
    tails = {s + step for s in sizes if 1 < s <= LARGEST_TILE for step in (-1, 0, 1)}
    return sorted({1, 2 * base + 1, *tails} - {base})


def resized(graph: Graph, arguments: Mapping[str, Any], extents: Mapping[str, int]) -> dict[str, Any]:
    """Arguments with other values of dimension symbols: rows and columns repeated or left out: values stay what they were made for."""
    symbols = {s.name: int(np.shape(arguments[s.parameter])[s.axis]) for s in graph.symbols.values() if s.kind == "dim"} | dict(extents)
    made = dict(arguments)
    for parameter in graph.parameters:
        if not isinstance(arguments.get(parameter.name), np.ndarray):
            continue
        array = arguments[parameter.name]
        for axis, extent in enumerate(parameter.type.shape):
            if extent.variables() <= symbols.keys():
                array = _along(array, axis, extent.evaluate(symbols))
        made[parameter.name] = np.ascontiguousarray(array).reshape(array.shape)
    return made


def _along(array: Any, axis: int, extent: int) -> Any:
    had = array.shape[axis]
    if had == extent:
        return array
    if had == 0:
        return np.zeros([extent if i == axis else e for i, e in enumerate(array.shape)], array.dtype)
    return np.take(array, np.arange(extent) % had, axis)


def special_values(dtype: DType) -> Mapping[str, float | int]:
    """The values of a dtype at which formulas go wrong, by name."""
    if dtype.is_integer:
        low, high = dtype.range
        return {"0": 0, "1": 1, "smallest": low, "largest": high} | ({"-1": -1} if dtype.signed else {})
    info = dtype.finfo
    found = {"0": 0.0, "-0": -0.0, "inf": np.inf, "-inf": -np.inf, "nan": np.nan, "smallest subnormal": float(info.smallest_subnormal),
             "negative subnormal": -float(info.smallest_normal) / 2, "smallest normal": float(info.smallest_normal),
             EXTREME: float(info.max), f"-{EXTREME}": float(info.min)}
    with np.errstate(all="ignore"):
        return {name: value for name, value in found.items() if _same(float(np.asarray(value).astype(dtype.numpy)), value)}


def _same(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)


def is_pointwise(graph: Graph) -> bool:
    """Whether every element of the results depends on the elements at its own place alone."""
    return all(not op.regions and op.opcode in REGISTRY and REGISTRY[op.opcode].family in POINTWISE for op in walk(graph.body))


def values(graph: Graph, arguments: Mapping[str, Any], integers: bool) -> Iterator[Trial]:
    """Special values in the inputs. A pointwise kernel meets every combination of two; any other, each value once in a row.

    ``integers``: whether integer inputs of pointwise kernels get special values too (elsewhere they may be indices).
    """
    dtypes = {p.name: p.type.dtype for p in graph.parameters
              if p.name not in graph.outputs and isinstance(arguments.get(p.name), np.ndarray) and np.size(arguments[p.name])}
    floats = {name: dtype for name, dtype in dtypes.items() if dtype.is_float}
    pointwise = is_pointwise(graph)
    chosen = floats | {n: d for n, d in dtypes.items() if d.is_integer and integers and pointwise}
    if not chosen:
        return
    if pointwise:
        yield Trial("special values, in all pairs", "values", {**arguments, **_paired(arguments, chosen)})
        if all(np.size(arguments[name]) >= len(special_values(d)) ** min(2, len(chosen)) for name, d in chosen.items()):
            return
    for value in dict.fromkeys(name for dtype in floats.values() for name in special_values(dtype)):
        put = {name: _sprinkled(arguments[name], special_values(d)[value], EXTREME in value)
               for name, d in floats.items() if value in special_values(d)}
        # Two of the largest numbers in one sum overflow in one order and not in another, so these go into one input after the other.
        for names in [[name] for name in put] if EXTREME in value and not pointwise else [list(put)]:
            yield Trial(f"{value} in {', '.join(names)}", "values", {**arguments, **{name: put[name] for name in names}})


def _paired(arguments: Mapping[str, Any], dtypes: Mapping[str, DType]) -> dict[str, Any]:
    made, period = {}, 1
    for name, dtype in dtypes.items():
        array = np.array(arguments[name], order="C")
        pool = np.asarray(list(special_values(dtype).values()), array.dtype)
        array.reshape(-1)[...] = pool[np.arange(array.size) // period % len(pool)]
        made[name], period = array, period * len(pool)
    return made


def _sprinkled(array: Any, value: float, alone: bool) -> Any:
    """A copy with the value once in every row, one place further in each; ``alone``: and in no column twice.

    Two in a column would meet in the sums of a matrix product, where the largest numbers overflow in one order and not in another.
    """
    made = np.array(array, order="C")
    step = max(2, made.shape[-1] + 1) if made.ndim else 1
    end = step * made.shape[-1] if alone and made.ndim else None
    with np.errstate(all="ignore"):
        made.reshape(-1)[:end:step] = np.asarray(value).astype(made.dtype)
    return made
