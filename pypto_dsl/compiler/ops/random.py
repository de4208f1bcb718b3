"""Random numbers that are a function of key and counter: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, SC11)."""
from __future__ import annotations

from pypto_dsl.compiler.dtypes import F32, DType
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.ops import index_rules, shapes, typing
from pypto_dsl.compiler.ops.core import lt, mul, where
from pypto_dsl.compiler.ops.definition import Tensor, op
from pypto_dsl.compiler.ops.references import random


@op(types=index_rules.generated, shape=shapes.from_attribute, reference=random.uniform, family="generator", widens=False)
def uniform(shape: tuple[Index, ...] = (), key: tuple[int, ...] = (0,), counter: tuple[int, ...] = (0,), alg: str = "PHILOX",
            dtype: DType | None = None) -> Tensor:
    """Numbers in [0, 1), evenly spaced: the top bits of each word, as many as ``dtype`` has (at most 24).

    ``key`` has one or two words, ``counter`` up to four, the lowest first; elements take the words in row-major order, whatever the tile.
    """
    ...


@op(types=index_rules.generated, shape=shapes.from_attribute, reference=random.normal, family="generator", widens=False,
    bound={"f32": 0.5}, derivation="computed in f64 and rounded once")
def normal(shape: tuple[Index, ...] = (), key: tuple[int, ...] = (0,), counter: tuple[int, ...] = (0,), alg: str = "PHILOX",
           dtype: DType | None = None) -> Tensor:
    """Numbers of the normal distribution, by Box and Muller's transform of pairs of words; ``key`` and ``counter`` as for `uniform`."""
    ...


@op(types=typing.keep, shape=index_rules.dropout, reference=random.dropout, family="elementwise", bound={"f32": 1.5},
    derivation="the factor's rounding and one product", dtypes=typing.FLOATS)
def dropout(input: Tensor, probability: float = 0.5, key: tuple[int, ...] = (0,), counter: tuple[int, ...] = (0,)) -> Tensor:
    """0 with ``probability``, else ``input / (1 - probability)``; element i is dropped where number i of `uniform` is below it."""
    dropped = lt(uniform(input.type.shape, key, counter, "PHILOX", F32), probability)
    return where(dropped, 0.0, mul(input, 1.0 / (1.0 - probability)))
