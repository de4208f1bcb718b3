"""Root-mean-square normalization of a sum with its residual, in bfloat16 storage and float32 arithmetic."""
from __future__ import annotations

import ml_dtypes
import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

BF16 = ml_dtypes.bfloat16


@pypto.jit
def rms_norm(
    x: pypto.Tensor([pypto.DYNAMIC, 320], pypto.DT_BF16),
    residual: pypto.Tensor([pypto.DYNAMIC, 320], pypto.DT_BF16),
    gain: pypto.Tensor([320], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, 320], pypto.DT_BF16),
    epsilon: float = 1e-6,
):
    hidden = pypto.cast(x, pypto.DT_FP32) + pypto.cast(residual, pypto.DT_FP32)
    square = pypto.sum(hidden * hidden, -1, True) / 320
    out[:] = pypto.cast(hidden / pypto.sqrt(square + epsilon) * gain, pypto.DT_BF16)


def inputs(generator):
    x, residual = (generator.standard_normal((33, 320)).astype(BF16) for _ in range(2))
    return x, residual, generator.standard_normal(320, np.float32), np.empty((33, 320), BF16)


def reference(x, residual, gain, out, epsilon=1e-6):
    hidden = x + residual
    out[...] = hidden / np.sqrt((hidden * hidden).mean(-1, keepdims=True) + epsilon) * gain


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    given = inputs(np.random.default_rng(0))
    rms_norm(*given)
    exact = [a.astype(np.float64) if a.dtype.kind not in "iub" else a.copy() for a in given]
    reference(*exact)
    print(given[-1])
    error = measure.largest_error(given[-1], exact[-1])
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
