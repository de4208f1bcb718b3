"""Windows, writes, joins and copies of tensors, and the two regions `loop` and `if`.

A write is a value: `%t1 = insert %t0, %v`. The regions are operations without an entry in the op table:

- `loop {index, start, stop, step}`: operands are the initial values of what the loop carries, the region's arguments the values at
  the top of a turn, its yields those at the bottom, the results those after the last turn (the operands when there is no turn).
  ``index`` names the Index variable of the turn; ``parallel`` promises that turns insert into disjoint places.
- `if`: the operand is a BOOL scalar; two regions without arguments, which hold, and results which of the two yields.

Regions read values of enclosing regions directly. An Index variable of kind "element" is made by `load_scalar`.
"""
from __future__ import annotations

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.graph import Attribute
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops import layout_rules as rules
from pypto_dsl.compiler.ops import typing
from pypto_dsl.compiler.ops.core import permute, reshape
from pypto_dsl.compiler.ops.definition import Tensor, op

REGIONS = ("loop", "if")


@op(types=typing.keep, shape=rules.view, reference=rules.view_reference, family="layout")
def view(input: Tensor, shape: tuple[Index, ...] = (), offsets: tuple[Index, ...] = (), valid: tuple[Index, ...] | None = None) -> Tensor:
    """The window of ``shape`` at ``offsets``, one of each per axis; a snapshot, not an alias.

    Its live part is what lies inside the live part of ``input``, or the smaller ``valid`` when given. Constant offsets outside are refused.
    """
    ...


@op(types=rules.destination, shape=rules.insert, reference=rules.insert_reference, family="layout")
def insert(input: Tensor, value: Tensor, offsets: tuple[Index, ...] = ()) -> Tensor:
    """``input`` with the live part of ``value`` written at ``offsets``; its dtype, shape and live extents stay."""
    ...


@op(types=typing.concat, shape=rules.concat, reference=rules.concat_reference, family="layout")
def concat(*tensors: Tensor, dim: int = 0) -> Tensor:
    """The tensors one after the other along ``dim``; other extents are equal. Dtypes promote."""
    ...


@op(types=typing.keep, shape=rules.expand, reference=rules.expand_reference, family="layout")
def expand_clone(input: Tensor, shape: tuple[Index, ...] = (), valid: tuple[Index, ...] | None = None) -> Tensor:
    """``input`` repeated along its axes of extent 1, and along new leading ones, up to ``shape``."""
    ...


@op(types=typing.keep, shape=rules.same, reference=rules.clone_reference, family="layout")
def clone(input: Tensor) -> Tensor:
    """A copy."""
    ...


@op(types=typing.keep, shape=rules.transpose, reference=rules.transpose_reference, family="layout")
def transpose(input: Tensor, dim0: int = -2, dim1: int = -1) -> Tensor:
    """``input`` with two axes exchanged."""
    perm = list(range(input.type.rank))
    a, b = dim0 % len(perm), dim1 % len(perm)
    perm[a], perm[b] = perm[b], perm[a]
    return permute(input, tuple(perm))


@op(types=typing.keep, shape=rules.unsqueeze, reference=rules.unsqueeze_reference, family="layout")
def unsqueeze(input: Tensor, dim: int = 0) -> Tensor:
    """``input`` with a new axis of extent 1 at ``dim``."""
    shape = list(input.type.shape)
    shape.insert(dim % (len(shape) + 1), as_index(1))
    return reshape(input, tuple(shape))


@op(types=typing.declared, shape=rules.declared, reference=rules.empty_reference, family="generator")
def empty(shape: tuple[Index, ...] = (), dtype: DType | None = None) -> Tensor:
    """A tensor whose elements nobody has written: NaN where executed with checks, anything elsewhere."""
    ...


@op(types=typing.declared, shape=rules.arange, reference=rules.arange_reference, family="generator")
def arange(start: Attribute = 0, stop: Attribute = 0, step: Attribute = 1, dtype: DType | None = None) -> Tensor:
    """``start``, ``start + step``, ... below ``stop`` (above it for a negative step), each computed from its position."""
    ...


@op(types=typing.keep, shape=rules.element, reference=rules.element_reference, family="scalar")
def load_scalar(input: Tensor, offsets: tuple[Index, ...] = (), symbol: str = "") -> Tensor:
    """The element at ``offsets`` as a scalar; of an integer tensor also as the Index variable ``symbol``, when one is named."""
    ...
