"""A row and a column stretched over a matrix: NumPy's broadcasting."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure


@pypto.jit
def broadcast(
    row: pypto.Tensor([1, pypto.DYNAMIC], pypto.DT_FP32),
    column: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
):
    out[:] = row + column


def inputs(generator):
    row, column = generator.standard_normal((1, 333), np.float32), generator.standard_normal((70, 1), np.float32)
    return row, column, np.empty((70, 333), np.float32)


def reference(row, column, out):
    np.add(row, column, out=out)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    row, column, out = inputs(np.random.default_rng(0))
    broadcast(row, column, out)
    exact = np.empty(out.shape)
    reference(row.astype(np.float64), column.astype(np.float64), exact)
    print(out)
    error = measure.largest_error(out, exact)
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
