"""Types of Python and NumPy values, and whether a Python scalar fits the dtype it lands on."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import BF16, DType, of_numpy

_COMPLEX_NODES = {"complex64": "c64", "complex128": "c128"}


def strong_node(dtype: np.dtype[Any]) -> str | None:
    """The table node of a NumPy dtype, or None when there is none."""
    twin = of_numpy(dtype)
    return twin.name if twin is not None else _COMPLEX_NODES.get(np.dtype(dtype).name)


def describe(value: object) -> str:
    """``Python float 1.5``, ``NumPy scalar float64 1.5``, ``NumPy array int8[3]``: how messages name a value."""
    if isinstance(value, np.generic):
        return f"NumPy scalar {value.dtype} {value!s}"
    if isinstance(value, np.ndarray):
        return f"NumPy array {value.dtype}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, (list, tuple)):
        return f"Python {type(value).__name__} of {len(value)}"
    return f"Python {type(value).__name__} {value!r}"


def misfit(value: bool | int | float, dtype: DType) -> str:
    """Why ``value`` may not land on ``dtype``, or "" when it may.

    An integer must be in an integer dtype's range, and must not overflow a float dtype. A float must not land on an integer dtype. A float
    that overflows a float dtype is inf, which is allowed (`overflows` tells).
    """
    if isinstance(value, float):
        return "" if dtype.is_float else f"the float {value!r} does not land on {dtype.name}"
    if dtype.is_float:
        return f"{int(value)} overflows {dtype.name}" if overflows(value, dtype) else ""
    low, high = dtype.range
    return "" if low <= value <= high else f"{int(value)} is outside {dtype.name}, {low} to {high}"


def overflows(value: int | float, dtype: DType) -> bool:
    """Whether a finite ``value`` rounds to infinity in the float ``dtype`` (to NaN in one without infinity).

    Block formats have bfloat16's range.
    """
    try:
        wide = float(value)
    except OverflowError:
        return True
    if not math.isfinite(wide):
        return False
    target = BF16.numpy if dtype.kind == "block" else dtype.numpy
    with np.errstate(over="ignore", invalid="ignore"):
        return not bool(np.isfinite(np.asarray(wide, np.float64).astype(target).astype(np.float64)))


def inexact_beyond(source: DType, target: DType) -> int | None:
    """The bound up to which every integer of ``source`` is exact in the float ``target``, or None when all are.

    Every integer of magnitude at most 2**mantissa is exact in a float (IEEE 754-2019, 3.4: significands of ``mantissa`` bits).
    """
    if not source.is_integer or not target.is_float or source.mantissa <= target.mantissa:
        return None
    return 1 << target.mantissa
