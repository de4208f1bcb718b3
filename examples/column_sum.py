"""The sum of every column: a reduction across rows."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure


@pypto.jit
def column_sum(
    x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC], pypto.DT_FP32),
):
    out[:] = pypto.sum(x, 0)


def inputs(generator):
    return generator.random((1000, 300), np.float32), np.empty(300, np.float32)


def reference(x, out):
    np.sum(x, 0, out=out)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    x, out = inputs(np.random.default_rng(0))
    column_sum(x, out)
    exact = np.empty(out.shape)
    reference(x.astype(np.float64), exact)
    print(out)
    error = measure.largest_error(out, exact)
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
