"""Softmax over the last axis, for any number of rows."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure


@pypto.jit
def softmax(
    x: pypto.Tensor([pypto.DYNAMIC, pypto.STATIC], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, pypto.STATIC], pypto.DT_FP32),
):
    shifted = x - pypto.amax(x, -1, True)  # so that exp cannot overflow
    weights = pypto.exp(shifted)
    out[:] = weights / pypto.sum(weights, -1, True)


def inputs(generator):
    x = generator.standard_normal((512, 1000), np.float32)
    return x, np.empty_like(x)


def reference(x, out):
    weights = np.exp(x - x.max(-1, keepdims=True))
    np.divide(weights, weights.sum(-1, keepdims=True), out=out)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    x, out = inputs(np.random.default_rng(0))
    softmax(x, out)
    exact = np.empty(out.shape)
    reference(x.astype(np.float64), exact)
    print(out)
    error = measure.largest_error(out, exact)
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
