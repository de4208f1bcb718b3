"""Views as parts of whole tensors: tiles are counted in the tensor that has the pages, so a view's offsets go into its regions."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import mul

from pypto_dsl.compiler.index import Index, as_index, dense_strides
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Accumulate, For, If, Load, Param, Region, Statement, Store, TileKernel

Shapes = Mapping[str, tuple[Index, ...]]  # of the program's arguments and workspaces, by name


class Located:
    """Where a view lies in its tensor: an offset per dimension of the tensor, and the view's dimension that runs along it."""

    def __init__(self, whole: Param, offsets: tuple[Index, ...], runs: tuple[int | None, ...]) -> None:
        self.whole, self.offsets, self.runs = whole, offsets, runs

    def region(self, region: Region) -> Region:
        """A region of the view as one of its tensor; the region of the view itself where that is not to be had."""
        if not self.offsets:
            return replace(region, param=self.whole)
        offset = tuple(o if d is None else o + region.offset[d] for o, d in zip(self.offsets, self.runs, strict=True))
        extent = tuple(as_index(1) if d is None else region.extent[d] for d in self.runs)
        return Region(self.whole, offset, extent)


def whole_tensors(kernel: TileKernel, shapes: Shapes, target: Target) -> TileKernel:
    """The kernel with every view that starts at, and runs along, dimensions of its tensor replaced by that tensor.

    A view that is transposed, has steps, or regroups dimensions stays one, with strides; what reads it is refused later (PT522).
    """
    rows = int(target.table("geometry")["rows"])
    views = {p.name: replace(p, strides=_strides(p)) for p in kernel.params if _is_view(p, shapes[p.bound_to])}
    if not views:
        return kernel
    found = {name: _located(view, shapes, rows) or Located(view, (), ()) for name, view in views.items()}
    params = tuple(found[p.name].whole if p.name in found else p for p in kernel.params)
    return replace(kernel, params=params, once=_moved(kernel.once, found), body=_moved(kernel.body, found))


def _is_view(param: Param, shape: tuple[Index, ...]) -> bool:
    """Whether a parameter is less than its tensor, or in another order; a tensor with its dimensions regrouped is none."""
    return param.strides is not None or bool(param.base.terms) or reduce(mul, param.shape, as_index(1)) != reduce(mul, shape, as_index(1))


def _strides(param: Param) -> tuple[Index, ...]:
    return param.strides if param.strides is not None else dense_strides(param.shape)


def _located(param: Param, shapes: Shapes, rows: int) -> Located | None:
    shape = shapes[param.bound_to]
    strides = _strides(param)
    steps = dense_strides(shape)
    runs: list[int | None] = [None] * len(shape)
    below = len(shape)
    for d in reversed(range(len(strides))):
        if param.shape[d].constant == 1:
            continue
        along = next((k for k in reversed(range(below)) if steps[k] == strides[d] and shape[k].constant != 1), None)
        matrix = d - len(strides) if d >= len(strides) - 2 else None  # rows and columns of tiles are rows and columns of the tensor's
        if along is None or (along - len(shape) != matrix if matrix is not None else along >= len(shape) - 2):
            return None
        runs[along], below = d, along
    offsets, rest = [], param.base
    for step in steps:
        taken = _multiples(rest, step)
        offsets.append(taken)
        rest = rest - taken * step
    if rest.terms or not _within(shape, offsets, runs, param, rows):
        return None
    return Located(replace(param, shape=shape, strides=None, base=as_index(0)), tuple(offsets), tuple(runs))


def _multiples(value: Index, step: Index) -> Index:
    """The terms of ``value`` that ``step``, a single product, divides, divided by it."""
    if len(step.terms) != 1:
        return as_index(0)
    (factors, scale), = step.terms
    kept = []
    for monomial, coefficient in value.terms:
        left = list(monomial)
        if coefficient % scale or any(monomial.count(f) < factors.count(f) for f in factors):
            continue
        for factor in factors:
            left.remove(factor)
        kept.append((tuple(left), coefficient // scale))
    return Index(tuple(kept))


def _within(shape: tuple[Index, ...], offsets: list[Index], runs: list[int | None], param: Param, rows: int) -> bool:
    """Whether rows beyond the last of a matrix, if the view has such, are the next matrix's: pages go on where rows fill their tiles."""
    if len(shape) < 2 or all(e.constant == 1 for e in shape[:-2]) or (shape[-2] % rows).constant == 0:
        return True
    along = runs[-2]
    last = offsets[-2] + (as_index(1) if along is None else param.shape[along])
    return last == shape[-2] or (last.constant is not None and shape[-2].constant is not None and last.constant <= shape[-2].constant)


def _moved(body: tuple[Statement, ...], located: Mapping[str, Located]) -> tuple[Statement, ...]:
    return tuple(_statement(s, located) for s in body)


def _statement(s: Statement, located: Mapping[str, Located]) -> Statement:
    if isinstance(s, (Load, Store)):
        found = located.get(s.region.param.name)
        return s if found is None else replace(s, region=found.region(s.region))
    if isinstance(s, For):
        return replace(s, body=_moved(s.body, located))
    if isinstance(s, If):
        return replace(s, body=_moved(s.body, located), orelse=_moved(s.orelse, located))
    if isinstance(s, Accumulate):
        loads = tuple(load if (found := located.get(load.region.param.name)) is None else replace(load, region=found.region(load.region))
                      for load in s.loads)
        return replace(s, loads=loads)
    return s
