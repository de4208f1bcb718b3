"""Scaled dot-product attention of all heads of a batch at once."""
from __future__ import annotations

import math

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

BATCH, HEADS, LENGTH, DEPTH = 2, 4, 24, 32


@pypto.jit
def attention(
    query: pypto.Tensor([BATCH, HEADS, LENGTH, DEPTH], pypto.DT_FP32),
    key: pypto.Tensor([BATCH, HEADS, LENGTH, DEPTH], pypto.DT_FP32),
    value: pypto.Tensor([BATCH, HEADS, LENGTH, DEPTH], pypto.DT_FP32),
    out: pypto.Tensor([BATCH, HEADS, LENGTH, DEPTH], pypto.DT_FP32),
):
    scores = pypto.matmul(query, pypto.transpose(key, 2, 3), pypto.DT_FP32) * (1 / math.sqrt(DEPTH))
    out[:] = pypto.matmul(pypto.softmax(scores, -1), value, pypto.DT_FP32)


def inputs(generator):
    shape = (BATCH, HEADS, LENGTH, DEPTH)
    return (*(generator.standard_normal(shape, np.float32) for _ in range(3)), np.empty(shape, np.float32))


def reference(query, key, value, out):
    scores = query @ key.swapaxes(2, 3) / math.sqrt(DEPTH)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.matmul(weights / weights.sum(-1, keepdims=True), value, out=out)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    given = inputs(np.random.default_rng(0))
    attention(*given)
    exact = [a.astype(np.float64) if a.dtype.kind not in "iub" else a.copy() for a in given]
    reference(*exact)
    print(given[-1])
    error = measure.largest_error(given[-1], exact[-1])
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
