"""Operands for every operation of the table: special values and random ones, by dtype."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, DType
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.definition import OpDefinition

Array = np.ndarray[Any, np.dtype[Any]]
FLOATS = (F32, F64, F16, BF16)
INTEGERS = (I8, I16, I32, I64, U8, U16, U32, U64)
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1.4e-45, -1.4e-45, 3.4e38, -3.4e38, 2.0**-126, 65504.0, 0.5, -0.5,
           1.5, -1.5, 2.5, -2.5, 0.49999997, 2.0, 3.0, -2.0, 8388607.5, 8388608.0, -8388609.0, 88.7, -103.0, 1e9, -1e9, 1e-8, -1e-8,
           0.9999999,
           1.0000001, -0.9999999, 0.25, 0.75, 0.4, 20.0, -20.0, 100.0, -100.0)


def floats(dtype: DType, rng: np.random.Generator, count: int = 600) -> Array:
    """Special values, then values around 1, in [-1, 1], around 0, large, and over the whole range of exponents."""
    fifth = count // 5
    parts = [np.array(SPECIAL), rng.normal(size=fifth) * 3, rng.uniform(-1, 1, fifth), rng.normal(size=fifth) * 1e-3,
             rng.uniform(-110, 110, fifth), np.ldexp(rng.normal(size=fifth), rng.integers(-150, 127, fifth))]
    with np.errstate(all="ignore"):
        return np.concatenate(parts).astype(np.float32).astype(dtype.numpy)


def integers(dtype: DType, rng: np.random.Generator, count: int = 400) -> Array:
    """The ends of the range, small values and random ones."""
    low, high = dtype.range
    ends = [v for v in (low, low + 1, -2, -1, 0, 1, 2, 3, 7, high - 1, high, high // 2, low // 2) if low <= v <= high]
    wide = rng.integers(low, high, count // 2, dtype=dtype.numpy, endpoint=True)
    small = rng.integers(max(low, -9), 10, count - count // 2)
    return np.concatenate([np.array(ends, dtype=dtype.numpy), wide, small.astype(dtype.numpy)])


def values(dtype: DType, rng: np.random.Generator) -> Array:
    """Values of any dtype."""
    if dtype is BOOL:
        return rng.integers(0, 2, 64).astype(bool)
    return floats(dtype, rng) if dtype.is_float else integers(dtype, rng)


def operands(definition: OpDefinition, dtype: DType, rng: np.random.Generator) -> list[Array]:
    """One array per operand that is no number only, of one length, so that specials meet specials."""
    base = values(dtype, rng)
    count = sum(1 for p in definition.operands if not p.optional)
    head = min(len(SPECIAL), len(base))
    grid = np.meshgrid(*([base[:head]] * min(count, 2)))
    made = []
    for i in range(count):
        met = grid[min(i, 1)].ravel()
        mixed = base if i == 0 else np.roll(base, 7 * i) if i == 1 else rng.permutation(base)
        made.append(np.concatenate([mixed, met if i < 2 else rng.permutation(met)]))
    return made


def elementwise_names() -> list[str]:
    """Operations that compute lane by lane over operands of one shape."""
    return [n for n, d in REGISTRY.items() if d.family in ("elementwise",
                                                           "compare") and n not in SHAPED and not any(p.variadic for p in d.operands)]


# Operations of those families whose operands have different shapes or kinds; they are tested by themselves.
SHAPED = frozenset({"tril", "triu", "prelu", "where", "quantize", "dequantize", "one_hot", "ldexp_", "ldexp"})


def accepted(definition: OpDefinition) -> tuple[DType, ...]:
    """The dtypes that an operation takes, as operands."""
    everything = (*FLOATS, *INTEGERS, BOOL)
    if definition.dtypes is None:
        return everything
    return tuple(d for d in everything if d in definition.dtypes)


def reference_keywords(definition: OpDefinition) -> dict[str, Any]:
    """The defaults of an operation's attributes, as its reference and its scale take them."""
    return {p.name: p.default for p in definition.attributes}


Reduction = Callable[..., Any]
