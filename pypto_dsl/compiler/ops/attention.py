"""Attention as an operation: what a target may lower to its own fused kernel."""
from __future__ import annotations

import math

from pypto_dsl.compiler.dtypes import BOOL, I32
from pypto_dsl.compiler.ops import index_rules as rules
from pypto_dsl.compiler.ops import typing
from pypto_dsl.compiler.ops.core import add, div, extent, iota, le, matmul, mul, sqrt, sub, where
from pypto_dsl.compiler.ops.definition import Tensor, op
from pypto_dsl.compiler.ops.references import reductions
from pypto_dsl.compiler.ops.rows import softmax


@op(types=rules.attention_types, shape=rules.attention, reference=reductions.attention, family="attention", bound={"f32": 64},
    derivation="softmax's error against rows of weights that sum to 1: scores of k products each, softmax's 8, and a sum of n products; "
    "counted in ulp of the largest magnitude of value; the tests take k and n up to 64", scale=reductions.attention_scale,
    dtypes=typing.COMPARABLE)
def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, scale: float | None = None,
              is_causal: bool = False) -> Tensor:
    """``softmax(query @ key.T * scale + mask) @ value`` over the last two axes.

    ``scale`` is 1 / sqrt(d) when not given. A BOOL mask says what may be seen, another is added to the scores; with ``is_causal`` a row
    sees the columns up to its own, counted from the last ones. A row that sees nothing is NaN.
    """
    scores = matmul(query, key, None, False, True)
    factor = div(1.0, sqrt(extent(query.type.shape[-1], query.type.dtype))) if scale is None else float(scale)
    scores = mul(scores, factor)
    if is_causal:
        shape = scores.type.shape
        rows, cols = iota(shape, len(shape) - 2, I32), iota(shape, len(shape) - 1, I32)
        allowed = le(sub(cols, rows), extent(shape[-1] - shape[-2], I32))
        scores = where(allowed, scores, -math.inf)
    if mask is not None:
        scores = where(mask, scores, -math.inf) if mask.type.dtype is BOOL else add(scores, mask)
    return matmul(softmax(scores, -1), value)
