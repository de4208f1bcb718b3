"""The lower triangle of attention scores: a position sees itself and what came before it."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure


@pypto.jit
def causal_mask(
    scores: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
):
    out[:] = pypto.tril(scores)


def inputs(generator):
    scores = generator.standard_normal((130, 130), np.float32)
    return scores, np.empty_like(scores)


def reference(scores, out):
    out[...] = np.tril(scores)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    scores, out = inputs(np.random.default_rng(0))
    causal_mask(scores, out)
    exact = np.empty(out.shape)
    reference(scores.astype(np.float64), exact)
    print(out)
    error = measure.largest_error(out, exact)
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
