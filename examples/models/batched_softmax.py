"""Softmax of attention scores, a block of a batch of any size at a time; the last block may be short."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

BLOCK = 4


@pypto.jit
def batched_softmax(
    scores: pypto.Tensor([pypto.DYNAMIC, 8, 1, 96], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, 8, 1, 96], pypto.DT_FP32),
):
    batch = scores.shape[0]
    for block in pypto.loop((batch + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        live = pypto.min(batch - first, BLOCK)
        part = pypto.view(scores, [BLOCK, 8, 1, 96], [first, 0, 0, 0], valid_shape=[live, 8, 1, 96])
        weights = pypto.exp(part - pypto.amax(part, -1, True))
        out[first:, ...] = weights / pypto.sum(weights, -1, True)


def inputs(generator):
    scores = generator.standard_normal((10, 8, 1, 96), np.float32)
    return scores, np.empty_like(scores)


def reference(scores, out):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.divide(weights, weights.sum(-1, keepdims=True), out=out)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    given = inputs(np.random.default_rng(0))
    batched_softmax(*given)
    exact = [a.astype(np.float64) if a.dtype.kind not in "iub" else a.copy() for a in given]
    reference(*exact)
    print(given[-1])
    error = measure.largest_error(given[-1], exact[-1])
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
