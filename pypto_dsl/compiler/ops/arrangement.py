"""Padding, joining, reversing and interleaving: layout operations beyond windows, writes and permutations."""
from __future__ import annotations

import numpy as np

from pypto_dsl.compiler.dtypes import U8, DType
from pypto_dsl.compiler.graph import Attribute
from pypto_dsl.compiler.index import as_index
from pypto_dsl.compiler.ops import index_rules as rules
from pypto_dsl.compiler.ops import shapes, typing
from pypto_dsl.compiler.ops.core import full, reshape
from pypto_dsl.compiler.ops.definition import Tensor, op
from pypto_dsl.compiler.ops.layout import concat, insert, unsqueeze
from pypto_dsl.compiler.ops.references import indexing


@op(types=typing.keep, shape=rules.pad, reference=indexing.pad, family="layout")
def pad(input: Tensor, pad: tuple[int, ...] = (), mode: str = "constant", value: Attribute = 0) -> Tensor:
    """``input`` with ``value`` around it: ``pad`` is (before, after) of the last axis, then of the one before it, and so on."""
    rank = input.type.rank
    before, after = [0] * rank, [0] * rank
    for i in range(0, len(pad), 2):
        before[rank - 1 - i // 2], after[rank - 1 - i // 2] = pad[i], pad[i + 1]
    shape = tuple(e + b + a for e, b, a in zip(input.type.shape, before, after, strict=True))
    return insert(full(shape, value, input.type.dtype), input, tuple(as_index(b) for b in before))


@op(types=typing.keep, shape=rules.fillpad, reference=indexing.fillpad, family="layout")
def fillpad(input: Tensor, mode: str = "constant", value: Attribute = 0) -> Tensor:
    """``input`` with ``value`` wherever it is not live; all of the result is."""
    return insert(full(input.type.shape, value, input.type.dtype), input, (as_index(0),) * input.type.rank)


@op(types=typing.both, shape=rules.pair, reference=indexing.interleave, family="index", widens=False, results=("first", "second"))
def interleave(input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """``input[0], other[0], input[1], other[1], ...`` along the last axis, in two halves."""
    ...


@op(types=typing.both, shape=rules.pair, reference=indexing.deinterleave, family="index", widens=False, results=("first", "second"))
def deinterleave(input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The even and the odd elements of ``input`` and ``other``, one behind the other, along the last axis: undoes `interleave`."""
    ...


@op(types=typing.keep, shape=rules.flip, reference=indexing.flip, family="index", widens=False)
def flip(input: Tensor, dims: tuple[int, ...] = (-1,)) -> Tensor:
    """``input`` reversed along the axes ``dims``."""
    ...


@op(types=typing.keep, shape=rules.repeat, reference=indexing.repeat_interleave, family="index", widens=False)
def repeat_interleave(input: Tensor, repeats: int = 1, dim: int = 0) -> Tensor:
    """Every slice along ``dim`` ``repeats`` times, one behind the other."""
    ...


@op(types=typing.concat, shape=rules.stack, reference=indexing.stack, family="layout")
def stack(*tensors: Tensor, dim: int = 0) -> Tensor:
    """The tensors as slices along a new axis ``dim``. Dtypes promote."""
    return concat(*(unsqueeze(t, dim) for t in tensors), dim=dim % (tensors[0].type.rank + 1))


@op(types=typing.keep, shape=rules.squeeze, reference=lambda x, dim=None, **_: np.squeeze(x, axis=dim), family="layout")
def squeeze(input: Tensor, dim: Attribute = None) -> Tensor:
    """``input`` without the axes of extent 1 that ``dim`` names (None: all)."""
    rank = input.type.rank
    named = [i for i, e in enumerate(input.type.shape) if e.constant == 1] if dim is None else [
        d % rank for d in (dim if isinstance(dim, tuple) else (dim,)) if isinstance(d, int)]
    return reshape(input, tuple(e for i, e in enumerate(input.type.shape) if i not in named))


@op(types=typing.gives(U8), shape=rules.packed, reference=indexing.pack, family="index", widens=False)
def pack(input: Tensor) -> Tensor:
    """The bytes of every element, lowest first, along the last axis, as UINT8."""
    ...


@op(types=rules.unpack_types, shape=rules.unpacked, reference=indexing.unpack, family="index", widens=False)
def unpack(input: Tensor, dtype: DType | None = None) -> Tensor:
    """Elements of ``dtype`` from UINT8 bytes, lowest first, along the last axis."""
    ...


@op(types=typing.keep, shape=shapes.same, reference=lambda x, **_: np.zeros_like(x), family="elementwise", bound={"f32": 0},
    derivation="a constant")
def zeros_like(input: Tensor) -> Tensor:
    """Zeros of ``input``'s shape and dtype."""
    return full(input.type.shape, 0, input.type.dtype)


@op(types=typing.keep, shape=shapes.same, reference=lambda x, **_: np.ones_like(x), family="elementwise", bound={"f32": 0},
    derivation="a constant")
def ones_like(input: Tensor) -> Tensor:
    """Ones of ``input``'s shape and dtype."""
    return full(input.type.shape, 1, input.type.dtype)


@op(types=typing.keep, shape=shapes.same, reference=lambda x, value=0, **_: np.full_like(x, value), family="elementwise", bound={"f32": 0},
    derivation="a constant")
def full_like(input: Tensor, value: Attribute = 0) -> Tensor:
    """``value`` in ``input``'s shape and dtype."""
    return full(input.type.shape, value, input.type.dtype)
