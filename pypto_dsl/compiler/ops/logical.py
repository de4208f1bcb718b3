"""Logical and bitwise operations beyond the core's `bitwise_and`."""
from __future__ import annotations

import numpy as np

from pypto_dsl.compiler.dtypes import BOOL, F32
from pypto_dsl.compiler.ops import shapes, typing
from pypto_dsl.compiler.ops.core import add, bitwise_and, cast, eq, gt, maximum, ne, neg, sub
from pypto_dsl.compiler.ops.definition import Number, Tensor, op
from pypto_dsl.compiler.ops.references.functions import quiet


def _zero_or_one(mask: Tensor) -> Tensor:
    """A mask as f32, on which every target computes."""
    return cast(mask, F32)


@op(types=typing.logical, shape=shapes.same, reference=quiet(np.logical_not), family="compare")
def logical_not(input: Tensor) -> Tensor:
    """Whether ``input`` is 0."""
    return eq(_zero_or_one(input), 0.0)


@op(types=typing.logical, shape=shapes.broadcast, reference=quiet(np.logical_and), family="compare")
def logical_and(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Whether both are not 0. Dtypes may differ; NaN is not 0."""
    return bitwise_and(input, other)


@op(types=typing.logical, shape=shapes.broadcast, reference=quiet(np.logical_or), family="compare")
def logical_or(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Whether either is not 0. Dtypes may differ."""
    return bitwise_or(input, other)


@op(types=typing.logical, shape=shapes.broadcast, reference=quiet(np.logical_xor), family="compare")
def logical_xor(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Whether exactly one is not 0. Dtypes may differ."""
    return bitwise_xor(input, other)


@op(types=typing.bitwise, shape=shapes.broadcast, reference=quiet(np.bitwise_or), family="elementwise", dtypes=typing.BITS)
def bitwise_or(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Bitwise or of integers or BOOL."""
    if input.type.dtype is BOOL:
        return gt(maximum(_zero_or_one(input), _zero_or_one(other)), 0.0)
    return add(sub(input, bitwise_and(input, other)), other)


@op(types=typing.bitwise, shape=shapes.broadcast, reference=quiet(np.bitwise_xor), family="elementwise", dtypes=typing.BITS)
def bitwise_xor(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Bitwise exclusive or of integers or BOOL."""
    if input.type.dtype is BOOL:
        return ne(_zero_or_one(input), _zero_or_one(other))
    both = bitwise_and(input, other)
    return add(sub(input, both), sub(other, both))


@op(types=typing.bitwise, shape=shapes.same, reference=quiet(np.bitwise_not), family="elementwise", dtypes=typing.BITS)
def bitwise_not(input: Tensor) -> Tensor:
    """Every bit flipped; of BOOL the negation."""
    if input.type.dtype is BOOL:
        return eq(_zero_or_one(input), 0.0)
    return sub(neg(input), 1)  # -x - 1, modulo 2**N
