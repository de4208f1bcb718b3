"""Reading and writing by index tensors. Writes go in row-major order of the index, so the last of equal targets wins; sums and products
of equal targets take all of them, in that order."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.graph import TensorType
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops.references.functions import Array


def positions(index: Array, extent: int, what: str) -> Array:
    """Indices in [0, extent). Raises IndexError for others: nothing is clamped, and nothing counts from the end."""
    wide = index.astype(np.int64)
    outside = (wide < 0) | (wide >= extent)
    if outside.any():
        raise IndexError(f"index {int(wide[outside][0])} is outside {what} of extent {extent}")
    return wide


def gather(x: Array, index: Array, dim: int = 0, **_: Any) -> Array:
    """result[i, j, ...] = x[index[i, j, ...], j, ...] for dim 0; the index may be shorter than x along the other axes."""
    at = positions(index, x.shape[dim], f"axis {dim}")
    window = x[tuple(slice(None) if i == dim % x.ndim else slice(0, n) for i, n in enumerate(index.shape))]
    return np.take_along_axis(window, at, axis=dim)


def index_select(x: Array, index: Array, dim: int = 0, **_: Any) -> Array:
    """Whole slices of x along ``dim``; a index of rank r puts r axes in its place."""
    return np.take(x, positions(index, x.shape[dim], f"axis {dim}"), axis=dim)


# gathermask's patterns: which of every two or four elements are kept
MASKS: dict[int, tuple[int, tuple[int, ...]]] = {
    1: (2, (0,)), 2: (2, (1,)), 3: (4, (0,)), 4: (4, (1,)), 5: (4, (2,)), 6: (4, (3,)), 7: (1, (0,)),
}


def gathermask(x: Array, pattern_mode: int = 7, **_: Any) -> Array:
    period, (start,) = MASKS[pattern_mode]
    return x[..., start::period]


COMBINE: dict[str | None, Callable[[Any, Any], Any]] = {
    None: lambda old, new: new, "NONE": lambda old, new: new, "ADD": lambda old, new: old + new, "add": lambda old, new: old + new,
    "MULTIPLY": lambda old, new: old * new, "multiply": lambda old, new: old * new,
}


def scatter(x: Array, index: Array, src: Array, dim: int = 0, reduce: str | None = None, **_: Any) -> Array:
    """result = x; result[index[i, j], j] = src[i, j] for dim 0, for every element of the index."""
    at = positions(index, x.shape[dim], f"axis {dim}")
    result = x.copy()
    combine = COMBINE[reduce]
    values = np.broadcast_to(src, index.shape) if src.ndim == 0 else src
    with np.errstate(all="ignore"):
        for place in np.ndindex(index.shape):
            target = tuple(int(at[place]) if axis == dim % x.ndim else p for axis, p in enumerate(place))
            result[target] = combine(result[target], values[place])
    return result


def index_add(x: Array, index: Array, src: Array, dim: int = 0, alpha: float = 1, **_: Any) -> Array:
    """result = x; result[index[i]] += alpha * source[i] along ``dim``."""
    at = positions(index, x.shape[dim], f"axis {dim}")
    result = np.moveaxis(x.copy(), dim, 0)
    rows = np.moveaxis(src, dim, 0)
    with np.errstate(all="ignore"):
        for i, place in enumerate(at):
            result[place] = result[place] + rows[i] * np.asarray(alpha, dtype=x.dtype)
    return np.moveaxis(result, 0, dim)


def index_put(x: Array, values: Array, *indices: Array, accumulate: bool = False, **_: Any) -> Array:
    """result = x; result[indices[0][i], indices[1][i], ...] = values[i], or += when ``accumulate``."""
    at = [positions(i, x.shape[axis], f"axis {axis}") for axis, i in enumerate(indices)]
    shape = np.broadcast_shapes(*(a.shape for a in at))
    at = [np.broadcast_to(a, shape) for a in at]
    placed = np.broadcast_to(values, (*shape, *x.shape[len(indices):]))
    result = x.copy()
    with np.errstate(all="ignore"):
        for place in np.ndindex(shape):
            target = tuple(int(a[place]) for a in at)
            result[target] = result[target] + placed[place] if accumulate else placed[place]
    return result


def scatter_update(x: Array, index: Array, src: Array, dim: int = -2, **_: Any) -> Array:
    """result = x; row index[i, j] of x's rows becomes row (i, j) of src. x of rank 4 is addressed as blocks: index = block * size + row."""
    if x.ndim == 2:
        result = x.copy()
        rows = positions(index, x.shape[0], "the rows")
        result[rows.reshape(-1)] = src.reshape(-1, x.shape[1])
        return result
    flat = x.reshape(x.shape[0] * x.shape[1], -1).copy()
    rows = positions(index, flat.shape[0], "the rows of all blocks")
    flat[rows.reshape(-1)] = src.reshape(-1, flat.shape[1])
    return flat.reshape(x.shape)


def atomic_add(src: Array, x: Array, offsets: Sequence[Index] = (), symbols: Mapping[str, int] | None = None, **_: Any) -> Array:
    begins = [as_index(o).evaluate(symbols or {}) for o in offsets]
    for axis, (begin, extent, have) in enumerate(zip(begins, src.shape, x.shape, strict=True)):
        if begin < 0 or begin + extent > have:
            raise IndexError(f"axis {axis} of the destination has extent {have}, and {extent} elements are added at {begin}")
    result = x.copy()
    window = tuple(slice(b, b + e) for b, e in zip(begins, src.shape, strict=True))
    with np.errstate(all="ignore"):
        result[window] = result[window] + src
    return result


def one_hot(x: Array, num_classes: int, **_: Any) -> Array:
    """1 at the class of each element, else 0; a class outside [0, num_classes) has a row of zeros."""
    return (x[..., None] == np.arange(num_classes)).astype(np.int64)


def pad(x: Array, pad: Sequence[int] = (), mode: str = "constant", value: float = 0, **_: Any) -> Array:
    """``pad`` is (before, after) of the last axis, then of the one before it, and so on, as in torch."""
    pairs = [(0, 0)] * x.ndim
    for i in range(0, len(pad), 2):
        pairs[x.ndim - 1 - i // 2] = (pad[i], pad[i + 1])
    return np.pad(x, pairs, constant_values=np.asarray(value).astype(x.dtype))


def fillpad(x: Array, type: TensorType, symbols: Mapping[str, int], value: float = 0, **_: Any) -> Array:
    """``x`` (its live part) at the front of a tensor of ``value`` of the result's type."""
    result = np.full([e.evaluate(symbols) for e in type.shape], value, dtype=x.dtype)
    result[tuple(slice(0, n) for n in x.shape)] = x
    return result


def interleave(a: Array, b: Array, **_: Any) -> tuple[Array, Array]:
    """a0 b0 a1 b1 ... along the last axis, cut into two halves of the operands' shape."""
    woven = np.stack([a, b], axis=-1).reshape(*a.shape[:-1], 2 * a.shape[-1])
    return woven[..., : a.shape[-1]], woven[..., a.shape[-1]:]


def deinterleave(a: Array, b: Array, **_: Any) -> tuple[Array, Array]:
    """The even, then the odd elements of a and b one after the other along the last axis."""
    joined = np.concatenate([a, b], axis=-1)
    return joined[..., 0::2], joined[..., 1::2]


def flip(x: Array, dims: Sequence[int] = (), **_: Any) -> Array:
    return np.flip(x, axis=tuple(dims))


def repeat_interleave(x: Array, repeats: int = 1, dim: int = 0, **_: Any) -> Array:
    return np.repeat(x, repeats, axis=dim)


def stack(*tensors: Array, dim: int = 0, **_: Any) -> Array:
    return np.stack(tensors, axis=dim)


def pack(x: Array, source: DType, **_: Any) -> Array:
    """The bytes of each element, lowest first, along the last axis."""
    return np.ascontiguousarray(np.asarray(x).astype(source.numpy)).view(np.uint8)


def unpack(x: Array, dtype: DType, **_: Any) -> Array:
    """Elements of ``dtype`` from their bytes, lowest first, along the last axis."""
    return np.ascontiguousarray(x).view(dtype.numpy)
