"""Random numbers that are a function of key and counter: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, SC11)."""
from __future__ import annotations

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.ops import index_rules, shapes
from pypto_dsl.compiler.ops.definition import Tensor, op
from pypto_dsl.compiler.ops.references import random


@op(types=index_rules.generated, shape=shapes.from_attribute, reference=random.uniform, family="generator", widens=False)
def uniform(shape: tuple[Index, ...] = (), key: tuple[int, ...] = (0,), counter: tuple[int, ...] = (0,), alg: str = "PHILOX",
            dtype: DType | None = None) -> Tensor:
    """Numbers in [0, 1), evenly spaced: the top bits of each word, as many as ``dtype`` has (at most 24).

    ``key`` has one or two words, ``counter`` up to four, the lowest first; elements take the words in row-major order, whatever the tile.
    """
    ...


@op(types=index_rules.generated, shape=shapes.from_attribute, reference=random.normal, family="generator", widens=False)
def normal(shape: tuple[Index, ...] = (), key: tuple[int, ...] = (0,), counter: tuple[int, ...] = (0,), alg: str = "PHILOX",
           dtype: DType | None = None) -> Tensor:
    """Numbers of the normal distribution, by Box and Muller's transform of pairs of words; ``key`` and ``counter`` as for `uniform`."""
    ...
