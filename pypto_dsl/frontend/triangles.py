"""`tril` and `triu`, whose diagonal may be known only when the kernel runs."""
from __future__ import annotations

from typing import Any

from pypto_dsl.compiler.dtypes import I32
from pypto_dsl.compiler.ops.core import iota
from pypto_dsl.frontend.operations import own, recorded, tensor_operand
from pypto_dsl.frontend.scalar import SymbolicScalar
from pypto_dsl.frontend.tensor import Tensor, wrap


def _distance(x: Tensor) -> Any:
    """Column less row of every element."""
    shape, trace = x.type.shape, x.owner
    column = wrap(trace.emit(lambda: iota(shape, len(shape) - 1, I32)))
    row = wrap(trace.emit(lambda: iota(shape, len(shape) - 2, I32)))
    return recorded("sub", column, row)


def _triangle(name: str, input: Any, diagonal: Any, keeps: str) -> Any:
    """The recorded operation; for a symbolic diagonal the elements whose column - row it ``keeps``."""
    x = tensor_operand(input, name)
    if not isinstance(diagonal, SymbolicScalar) or x.dim < 2:
        return recorded(name, x, diagonal)
    return recorded("where", recorded(keeps, _distance(x), diagonal), x, 0)


@own
def tril(input: Any, diagonal: Any = 0) -> Any:
    """The lower triangle of the last two axes: elements with column - row <= diagonal, others 0. ``diagonal`` may be symbolic.

    Raises PT303 for a tensor of fewer axes.
    """
    return _triangle("tril", input, diagonal, "le")


@own
def triu(input: Any, diagonal: Any = 0) -> Any:
    """The upper triangle of the last two axes: elements with column - row >= diagonal, others 0. ``diagonal`` may be symbolic.

    Raises PT303 for a tensor of fewer axes.
    """
    return _triangle("triu", input, diagonal, "ge")


for _function in (tril, triu):
    setattr(Tensor, _function.__name__, _function)
