"""Two matrices added: the smallest kernel there is."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure


@pypto.jit
def add(
    x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
):
    out[:] = x + y


def inputs(generator):
    x, y = (generator.standard_normal((123, 457), np.float32) for _ in range(2))
    return x, y, np.empty_like(x)


def reference(x, y, out):
    np.add(x, y, out=out)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    x, y, out = inputs(np.random.default_rng(0))
    add(x, y, out)
    exact = np.empty(out.shape)
    reference(x.astype(np.float64), y.astype(np.float64), exact)
    print(out)
    error = measure.largest_error(out, exact)
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
