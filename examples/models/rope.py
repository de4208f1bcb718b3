"""Rotary position embedding: each pair of features of a head turns by an angle that grows with the position."""
from __future__ import annotations

import ml_dtypes
import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

BF16 = ml_dtypes.bfloat16
HEADS, HALF = 4, 16


@pypto.jit
def rope(
    x: pypto.Tensor([pypto.DYNAMIC, HEADS, 2 * HALF], pypto.DT_BF16),
    cosine: pypto.Tensor([pypto.DYNAMIC, 1, HALF], pypto.DT_FP32),
    sine: pypto.Tensor([pypto.DYNAMIC, 1, HALF], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, HEADS, 2 * HALF], pypto.DT_BF16),
):
    first = pypto.cast(x[:, :, :HALF], pypto.DT_FP32)
    second = pypto.cast(x[:, :, HALF:], pypto.DT_FP32)
    turned = pypto.concat([first * cosine - second * sine, second * cosine + first * sine], -1)
    out[:] = pypto.cast(turned, pypto.DT_BF16)


def inputs(generator):
    angle = np.arange(30)[:, None, None] * 10000.0 ** (-np.arange(HALF) / HALF)
    x = generator.standard_normal((30, HEADS, 2 * HALF)).astype(BF16)
    return x, np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32), np.empty_like(x)


def reference(x, cosine, sine, out):
    first, second = x[:, :, :HALF], x[:, :, HALF:]
    out[...] = np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    given = inputs(np.random.default_rng(0))
    rope(*given)
    exact = [a.astype(np.float64) if a.dtype.kind not in "iub" else a.copy() for a in given]
    reference(*exact)
    print(given[-1])
    error = measure.largest_error(given[-1], exact[-1])
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
