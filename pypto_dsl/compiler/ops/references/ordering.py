"""Sorting: NaN is the largest, equal elements keep their order, -0 and +0 are equal."""
from __future__ import annotations

from typing import Any

import numpy as np

from pypto_dsl.compiler.ops.references.functions import Array


def order(x: Array, dim: int, descending: bool) -> Array:
    """The positions in sorted order along ``dim``, stable in both directions."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    # reversing before and after keeps equal elements in their order
    back = np.argsort(np.flip(x, axis=dim), axis=dim, kind="stable")
    return np.flip(x.shape[dim] - 1 - back, axis=dim)


def _last(dim: int | None) -> int:
    return -1 if dim is None else dim


def argsort(x: Array, dim: int | None = None, descending: bool = False, **_: Any) -> Array:
    return order(x, _last(dim), descending).astype(np.int32)


def sort(x: Array, dim: int | None = None, descending: bool = False, **_: Any) -> tuple[Array, Array]:
    axis = _last(dim)
    positions = order(x, axis, descending)
    return np.take_along_axis(x, positions, axis=axis), positions.astype(np.int32)


def topk(x: Array, k: int, dim: int | None = None, largest: bool = True, **_: Any) -> tuple[Array, Array]:
    """The first ``k`` of the sorted order: NaN comes first among the largest, last among the smallest."""
    axis = _last(dim)
    positions = np.take(order(x, axis, largest), np.arange(k), axis=axis)
    return np.take_along_axis(x, positions, axis=axis), positions.astype(np.int32)
