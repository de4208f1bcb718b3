"""A gated activation: one half of the features, through the sigmoid form of gelu, scales the other half."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

HALF = 96


def quick_gelu(x):
    """x * sigmoid(1.702 x)."""
    return x * pypto.sigmoid(x * 1.702)


@pypto.jit
def geglu(
    x: pypto.Tensor([pypto.DYNAMIC, 2 * HALF], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, HALF], pypto.DT_FP32),
):
    out[:] = quick_gelu(x[:, :HALF]) * x[:, HALF:]


def inputs(generator):
    return generator.standard_normal((40, 2 * HALF), np.float32), np.empty((40, HALF), np.float32)


def reference(x, out):
    gate = x[:, :HALF]
    np.multiply(gate / (1 + np.exp(-1.702 * gate)), x[:, HALF:], out=out)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    given = inputs(np.random.default_rng(0))
    geglu(*given)
    exact = [a.astype(np.float64) if a.dtype.kind not in "iub" else a.copy() for a in given]
    reference(*exact)
    print(given[-1])
    error = measure.largest_error(given[-1], exact[-1])
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
