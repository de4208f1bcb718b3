"""A gated feed-forward layer in bfloat16 over a batch of any size, a block of rows at a time."""
from __future__ import annotations

import ml_dtypes
import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

BF16 = ml_dtypes.bfloat16
ROWS, WIDTH, INNER = 16, 64, 128


@pypto.jit
def gated_ffn(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_BF16),
    gate: pypto.Tensor([WIDTH, INNER], pypto.DT_BF16),
    up: pypto.Tensor([WIDTH, INNER], pypto.DT_BF16),
    down: pypto.Tensor([INNER, WIDTH], pypto.DT_BF16),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    for block in pypto.loop((x.shape[0] + ROWS - 1) // ROWS):
        first = block * ROWS
        rows = pypto.view(x, [ROWS, WIDTH], [first, 0], valid_shape=[pypto.min(x.shape[0] - first, ROWS), WIDTH])
        opened = pypto.matmul(rows, gate, pypto.DT_FP32)
        hidden = opened * pypto.sigmoid(opened) * pypto.matmul(rows, up, pypto.DT_FP32)
        out[first:, :] = pypto.matmul(hidden, pypto.cast(down, pypto.DT_FP32))


def inputs(generator):
    shapes = ((37, WIDTH), (WIDTH, INNER), (WIDTH, INNER), (INNER, WIDTH))
    return (*((generator.standard_normal(s) / 4).astype(BF16) for s in shapes), np.empty((37, WIDTH), np.float32))


def reference(x, gate, up, down, out):
    opened = x @ gate
    np.matmul(opened / (1 + np.exp(-opened)) * (x @ up), down, out=out)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    given = inputs(np.random.default_rng(0))
    gated_ffn(*given)
    exact = [a.astype(np.float64) if a.dtype.kind not in "iub" else a.copy() for a in given]
    reference(*exact)
    print(given[-1])
    error = measure.largest_error(given[-1], exact[-1])
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
