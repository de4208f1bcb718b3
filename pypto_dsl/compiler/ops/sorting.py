"""Sorting: NaN is the largest element, -0 and +0 are equal, and equal elements keep their order in both directions."""
from __future__ import annotations

from pypto_dsl.compiler.dtypes import I32
from pypto_dsl.compiler.ops import index_rules, typing
from pypto_dsl.compiler.ops.definition import Tensor, op
from pypto_dsl.compiler.ops.references import ordering


@op(types=typing.keeps_and(I32), shape=index_rules.topk, reference=ordering.topk, family="sort", dtypes=typing.NUMBERS,
    results=("values", "indices"))
def topk(input: Tensor, k: int, dim: int | None = None, largest: bool = True, algo: str = "MERGE_SORT") -> tuple[Tensor, Tensor]:
    """(values, indices) of the ``k`` largest (smallest) elements along ``dim`` (None: the last axis), in order.

    NaN comes first among the largest; of equal elements the first comes first. ``algo`` is a hint for devices.
    """
    ...


@op(types=index_rules.index_result, shape=index_rules.ordered, reference=ordering.argsort, family="sort", dtypes=typing.NUMBERS)
def argsort(input: Tensor, dim: int | None = None, descending: bool = False) -> Tensor:
    """The positions, INT32, that sort ``input`` along ``dim`` (None: the last axis)."""
    ...


@op(types=typing.keeps_and(I32), shape=index_rules.ordered_twice, reference=ordering.sort, family="sort", dtypes=typing.NUMBERS,
    results=("values", "indices"))
def sort(input: Tensor, dim: int | None = None, descending: bool = False) -> tuple[Tensor, Tensor]:
    """(values, indices): ``input`` sorted along ``dim`` (None: the last axis), and where its elements stood."""
    ...
