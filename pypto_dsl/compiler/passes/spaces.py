"""Iteration spaces folded for tiles: neighbouring dimensions merged, the last two become rows and columns.

Two neighbouring dimensions merge when every tensor the group touches covers both or neither, both or neither are reduced, no lane
index runs along one of them, and strides allow it. What is left is: outer dimensions (one item each), rows, columns.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.index import Index, as_index, dense_strides
from pypto_dsl.compiler.passes.fuse import Axes
from pypto_dsl.compiler.passes.places import Place
from pypto_dsl.compiler.tile_ir.nodes import Layout, Param, Role


@dataclass(frozen=True)
class Access:
    """One tensor as a group touches it: where it lives and which dimensions of the space it covers."""

    name: str
    dtype: DType
    place: Place
    axes: Axes
    role: Role

    def stride(self, dim: int) -> Index | None:
        """The stride along a dimension of the space, None where the tensor does not cover it."""
        for axis, stride in zip(self.axes, self.place.stride_list(), strict=True):
            if axis == dim:
                return stride
        return None


@dataclass(frozen=True)
class Folded:
    """A folded space. ``dims[k]`` lists the space's dimensions behind kernel dimension k (the last two are rows and columns;
    an empty list is an extent of 1); ``extents`` are their products."""

    dims: tuple[tuple[int, ...], ...]
    extents: tuple[Index, ...]
    space: tuple[Index, ...]

    @property
    def rows(self) -> Index:
        return self.extents[-2]

    @property
    def cols(self) -> Index:
        return self.extents[-1]

    def covers(self, access: Access) -> tuple[bool, ...]:
        """Which kernel dimensions the tensor covers."""
        covered = {a for a in access.axes if a is not None and self.space[a].constant != 1}
        return tuple(bool(covered & set(d)) for d in self.dims)

    def param(self, access: Access) -> Param:
        """The kernel's parameter: one extent per kernel dimension, 1 where the tensor is broadcast."""
        shape = tuple(e if c else as_index(1) for e, c in zip(self.extents, self.covers(access), strict=True))
        tensor = "" if access.name == access.place.tensor else access.place.tensor
        strides = explicit(shape, tuple(self.stride(access, d) for d in self.dims))
        return Param(access.name, access.dtype, shape, access.role, strides, access.place.base, tensor)

    def stride(self, access: Access, dims: tuple[int, ...]) -> Index:
        for dim in reversed(dims):
            stride = access.stride(dim)
            if stride is not None:
                return stride
        return as_index(0)

    def kernel_dim(self, dim: int) -> int | None:
        """The kernel dimension behind which a dimension of the space stands alone; None when it is merged or dropped."""
        for k, dims in enumerate(self.dims):
            if dims == (dim,):
                return k
        return None


def explicit(shape: Sequence[Index], strides: Sequence[Index]) -> tuple[Index, ...] | None:
    """The strides where they say more than the shape does: None for dense row-major (extents of 1 aside)."""
    dense = dense_strides(tuple(shape))
    same = all(e.constant == 1 or s == d for e, s, d in zip(shape, strides, dense, strict=True))
    return None if same else tuple(strides)


def layout_of(covers: Sequence[bool]) -> Layout:
    """The layout of a loaded tile by whether it covers rows and columns."""
    rows, cols = covers[-2], covers[-1]
    return "tile" if rows and cols else "column" if rows else "row" if cols else "scalar"


def fold(space: tuple[Index, ...], accesses: Sequence[Access], lanes: frozenset[int], reduced: frozenset[int] = frozenset(),
         kind: str = "elementwise", merge_last: bool = True, along: int | None = None, columns: int | None = None) -> Folded:
    """Fold a space. ``lanes`` are dimensions that a lane index runs along; ``merge_last`` False keeps the last dimension alone; ``along``
    is the dimension to make rows of and ``columns`` that for columns, if they are free to be."""
    live = [i for i, e in enumerate(space) if e.constant != 1 or (kind == "matmul" and i >= len(space) - 2)]
    last = live[-1] if live else None
    runs: list[list[int]] = []
    for dim in live:
        if (
            runs
            and _mergeable(space, runs[-1][-1], dim, accesses, lanes, reduced)
            and (merge_last or dim != last or runs[-1][-1] in reduced)
        ):
            runs[-1].append(dim)
        else:
            runs.append([dim])
    groups = [tuple(r) for r in runs]
    if kind == "row":
        cols = groups.pop() if groups and set(groups[-1]) & reduced else ()
        rows = _taken(groups, along)
        ordered = (*groups, rows, cols)
    elif kind == "column":
        at = next(i for i, g in enumerate(groups) if set(g) & reduced)
        rows, inner = groups[at], groups[at + 1:]
        cols = inner.pop()
        ordered = (*groups[:at], *inner, rows, cols)
    else:
        cols = _taken(groups, columns if kind == "elementwise" else None)
        rows = _taken(groups, along)
        ordered = (*groups, rows, cols)
    return Folded(ordered, tuple(_extent(space, g) for g in ordered), space)


def _taken(groups: list[tuple[int, ...]], along: int | None) -> tuple[int, ...]:
    """The dimensions whose innermost is ``along``, else the last of those that are left, which they leave."""
    if not groups:
        return ()
    return groups.pop(next((i for i, g in enumerate(groups) if g[-1] == along), len(groups) - 1))


def _extent(space: tuple[Index, ...], dims: tuple[int, ...]) -> Index:
    total = as_index(1)
    for dim in dims:
        total = total * space[dim]
    return total


def _mergeable(
    space: tuple[Index, ...], a: int, b: int, accesses: Sequence[Access], lanes: frozenset[int], reduced: frozenset[int]
) -> bool:
    if a in lanes or b in lanes or (a in reduced) != (b in reduced):
        return False
    if space[a].constant == 1 or space[b].constant == 1:
        return False
    for access in accesses:
        outer, inner = access.stride(a), access.stride(b)
        if (outer is None) != (inner is None):
            return False
        if outer is not None and inner is not None and outer != inner * space[b]:
            return False
    return True
