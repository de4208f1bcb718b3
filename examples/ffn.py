"""A feed-forward layer in bfloat16: a ragged matrix product with bias and gelu."""
from __future__ import annotations

import math

import ml_dtypes
import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

BF16 = ml_dtypes.bfloat16
ERFC = np.vectorize(math.erfc, otypes=[np.float64])


@pypto.jit
def ffn(
    x: pypto.Tensor([pypto.DYNAMIC, 96], pypto.DT_BF16),
    weight: pypto.Tensor([96, 200], pypto.DT_BF16),
    bias: pypto.Tensor([200], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, 200], pypto.DT_BF16),
):
    hidden = pypto.matmul(x, weight, pypto.DT_FP32) + bias
    out[:] = pypto.cast(pypto.gelu(hidden), pypto.DT_BF16)


def inputs(generator):
    x, weight = generator.standard_normal((70, 96)).astype(BF16), generator.standard_normal((96, 200)).astype(BF16)
    return x, weight, generator.standard_normal(200, np.float32), np.empty((70, 200), BF16)


def reference(x, weight, bias, out):
    hidden = x @ weight + bias
    out[...] = hidden * ERFC(-hidden * math.sqrt(0.5)) / 2


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    x, weight, bias, out = inputs(np.random.default_rng(0))
    ffn(x, weight, bias, out)
    exact = np.empty(out.shape)
    reference(x.astype(np.float64), weight.astype(np.float64), bias.astype(np.float64), exact)
    print(out)
    error = measure.largest_error(out, exact)
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
