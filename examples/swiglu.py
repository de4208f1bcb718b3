"""The gate of a SwiGLU layer in bfloat16: silu(gate) * up."""
from __future__ import annotations

import ml_dtypes
import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

BF16 = ml_dtypes.bfloat16


@pypto.jit
def swiglu(
    gate: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_BF16),
    up: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_BF16),
    out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_BF16),
):
    activated = pypto.silu(gate)  # each operation computes in f32 and rounds once to bfloat16
    out[:] = activated * up


def inputs(generator):
    gate, up = (generator.standard_normal((65, 500)).astype(BF16) for _ in range(2))
    return gate, up, np.empty_like(gate)


def reference(gate, up, out):
    out[...] = gate / (1 + np.exp(-gate)) * up


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    gate, up, out = inputs(np.random.default_rng(0))
    swiglu(gate, up, out)
    exact = np.empty(out.shape)
    reference(gate.astype(np.float64), up.astype(np.float64), exact)
    print(out)
    error = measure.largest_error(out, exact)
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
