"""Errors of a peer's result against float64, in units of the last place of the workload's dtype."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.workloads import DTYPES, Array, Workload

MOST_LINES = 128  # rows or columns that are compared, spread over the whole result
# mantissa bits, smallest exponent, largest finite value
FORMATS = {"f32": (23, -126, 3.4028235e38), "bf16": (7, -126, 3.3895e38), "f16": (10, -14, 65504.0)}


@dataclass(frozen=True)
class Error:
    """``ulp``: the largest error in units of the last place of the reference; ``relative``: as a fraction of the largest result."""

    ulp: float
    relative: float


class Reference:
    """A workload's exact result on a sample of its lines."""

    def __init__(self, workload: Workload, inputs: Mapping[str, Array]) -> None:
        self.workload = workload
        mixes = workload.operation.mixes
        axis = 1 if mixes == 0 else 0
        whole = len(workload.shape) != 2 or (workload.flops > 0)
        extent = workload.shape[axis]
        self.lines = None if whole or extent <= MOST_LINES else np.linspace(0, extent - 1, MOST_LINES).astype(int)
        self.axis = axis
        sampled = [a if self.lines is None or a.ndim == 1 else np.take(a, self.lines, axis) for a in inputs.values()]
        with np.errstate(all="ignore"):
            self.exact = workload.operation.reference(*(a.astype(np.float64) for a in sampled))

    def error(self, result: Array) -> Error:
        """The error of a whole result. Raises ValueError for a wrong shape or a NaN or infinity that the reference has not."""
        taken = result if self.lines is None else np.take(result, self.lines, 0 if result.ndim == 1 else self.axis)
        if taken.shape != self.exact.shape:
            raise ValueError(f"a result of shape {taken.shape} instead of {self.exact.shape}")
        mantissa, smallest, largest = FORMATS[self.workload.dtype]
        got, exact = taken.astype(np.float64), self.exact
        inside = np.isfinite(exact) & (np.abs(exact) < largest)
        got, exact = got[inside], exact[inside]
        if not np.isfinite(got).all():
            raise ValueError("a NaN or an infinity where the reference is finite")
        if not got.size:
            return Error(0.0, 0.0)
        unit = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 1, smallest) - mantissa)
        difference = np.abs(got - exact)
        return Error(float((difference / unit).max()), float(difference.max() / max(float(np.abs(exact).max()), 1e-300)))


assert set(FORMATS) <= set(DTYPES)
