"""Choice of experts: a sigmoid score each, a correction that counts for the choice alone, weights that sum to 1."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

EXPERTS, CHOSEN = 32, 4


@pypto.jit
def expert_selection(
    logits: pypto.Tensor([pypto.DYNAMIC, EXPERTS], pypto.DT_FP32),
    correction: pypto.Tensor([EXPERTS], pypto.DT_FP32),
    chosen: pypto.Tensor([pypto.DYNAMIC, CHOSEN], pypto.DT_INT32),
    weights: pypto.Tensor([pypto.DYNAMIC, CHOSEN], pypto.DT_FP32),
):
    scores = pypto.sigmoid(logits)
    _, places = pypto.topk(scores + correction, CHOSEN, -1, True)
    taken = pypto.gather(scores, -1, places)
    chosen[:] = places
    weights[:] = taken / pypto.sum(taken, -1, True)


def inputs(generator):
    logits, correction = generator.standard_normal((25, EXPERTS), np.float32), generator.standard_normal(EXPERTS, np.float32) / 8
    return logits, correction, np.empty((25, CHOSEN), np.int32), np.empty((25, CHOSEN), np.float32)


def reference(logits, correction, chosen, weights):
    scores = 1 / (1 + np.exp(-logits))
    chosen[...] = np.argsort(-(scores + correction), -1, kind="stable")[:, :CHOSEN]
    taken = np.take_along_axis(scores, chosen, -1)
    np.divide(taken, taken.sum(-1, keepdims=True), out=weights)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    given = inputs(np.random.default_rng(0))
    expert_selection(*given)
    exact = [a.astype(np.float64) if a.dtype.kind not in "iub" else a.copy() for a in given]
    reference(*exact)
    print(given[-1])
    error = measure.largest_error(given[-1], exact[-1])
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
