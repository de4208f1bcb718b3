"""Reading and writing by index tensors, and masks of classes.

An index is INT32 or INT64 and lies in [0, extent): outside is an error when it runs (PT710), never clamped. Where several elements
are written to one place, the last in row-major order of the index stays; sums and products take all of them, in that order.
The operations that end in an underscore write into their first operand; the others return the result.
"""
from __future__ import annotations

from pypto_dsl.compiler.dtypes import I64
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops import index_rules as rules
from pypto_dsl.compiler.ops import typing
from pypto_dsl.compiler.ops.core import cast, eq, iota, reshape
from pypto_dsl.compiler.ops.definition import Number, Tensor, op
from pypto_dsl.compiler.ops.references import indexing

ADDED = "what is combined in one place is summed in f64 and rounded once; everything else is moved"


@op(types=typing.indexed, shape=rules.gather, reference=indexing.gather, family="index", widens=False)
def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """``result[i, j] = input[index[i, j], j]`` for dim 0, and so on: of the index's shape."""
    ...


@op(types=typing.indexed, shape=rules.index_select, reference=indexing.index_select, family="index", widens=False)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Whole slices of ``input`` along ``dim``; the index's axes stand in place of ``dim``."""
    ...


@op(types=typing.keep, shape=rules.gathermask, reference=indexing.gathermask, family="index", widens=False)
def gathermask(input: Tensor, pattern_mode: int = 7) -> Tensor:
    """Elements of the last axis by pattern: 1 and 2 the even and the odd ones, 3 to 6 every fourth from 0 to 3, 7 all."""
    ...


@op(types=typing.written(2, 1), shape=rules.scatter, reference=indexing.scatter, family="index", widens=False,
    bound={"f32": 0.5}, derivation=ADDED)
def scatter(input: Tensor, dim: int, index: Tensor, src: Tensor | Number, reduce: str | None = None) -> Tensor:
    """``input`` with ``result[index[i, j], j] = src[i, j]`` for dim 0, and so on; "add" and "multiply" combine with what is there."""
    ...


@op(types=typing.written(2, 1), shape=rules.scatter, reference=indexing.scatter, family="index", effects="input",
    bound={"f32": 0.5}, derivation=ADDED)
def scatter_(input: Tensor, dim: int, index: Tensor, src: Tensor | Number, reduce: str | None = None) -> Tensor:
    """`scatter` into ``input``."""
    return scatter(input, dim, index, src, reduce)


@op(types=typing.written(2, 1), shape=rules.index_add, reference=indexing.index_add, family="index", widens=False, dtypes=typing.NUMBERS,
    bound={"f32": 0.5}, derivation=ADDED)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, alpha: float = 1) -> Tensor:
    """``input`` with ``result[index[i]] += alpha * source[i]`` along ``dim``."""
    ...


@op(types=typing.written(2, 1), shape=rules.index_add, reference=indexing.index_add, family="index", dtypes=typing.NUMBERS, effects="input",
    bound={"f32": 0.5}, derivation=ADDED)
def index_add_(input: Tensor, dim: int, index: Tensor, source: Tensor, alpha: float = 1) -> Tensor:
    """`index_add` into ``input``."""
    return index_add(input, dim, index, source, alpha)


@op(types=rules.put_types, shape=rules.index_put, reference=indexing.index_put, family="index", widens=False,
    bound={"f32": 0.5}, derivation=ADDED)
def index_put(input: Tensor, values: Tensor | Number, *indices: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with ``result[indices[0][i], indices[1][i], ...] = values[i]``, or ``+=`` with ``accumulate``."""
    ...


@op(types=rules.put_types, shape=rules.index_put, reference=indexing.index_put, family="index", effects="input",
    bound={"f32": 0.5}, derivation=ADDED)
def index_put_(input: Tensor, values: Tensor | Number, *indices: Tensor, accumulate: bool = False) -> Tensor:
    """`index_put` into ``input``."""
    return index_put(input, values, *indices, accumulate=accumulate)


@op(types=typing.written(2, 1), shape=rules.scatter_update, reference=indexing.scatter_update, family="index", widens=False)
def scatter_update(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with row ``index[a, b]`` replaced by row (a, b) of ``src``.

    Rows [n, d] with src [a * b, d] or [a, b, d]; or blocks of rows [n, s, 1, d], whose index is block * s + row, with src [a, b, 1, d].
    """
    ...


@op(types=rules.atomic_add_types, shape=rules.atomic_add, reference=indexing.atomic_add, family="index", widens=False,
    dtypes=typing.NUMBERS, effects="dst",
    bound={"f32": 0.5}, derivation=ADDED)
def atomic_add(src: Tensor, offsets: tuple[Index, ...], dst: Tensor) -> Tensor:
    """``src`` added into ``dst`` at ``offsets``. Contributions of different turns arrive in the order of the program."""
    ...


@op(types=typing.gives(I64), shape=rules.one_hot, reference=indexing.one_hot, family="compare", dtypes=typing.INTEGERS)
def one_hot(input: Tensor, num_classes: int) -> Tensor:
    """INT64: 1 at the class of each element along a new last axis, else 0; a class outside [0, num_classes) has a row of zeros."""
    shape = (*input.type.shape, as_index(num_classes))
    position = iota(shape, len(shape) - 1, input.type.dtype)
    return cast(eq(reshape(input, (*input.type.shape, 1)), position), I64)
