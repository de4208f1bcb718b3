"""Layer normalisation of rows of 100 elements, which is no multiple of any chip's vector."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

EPSILON = 1e-5


@pypto.jit
def layer_norm(
    x: pypto.Tensor([pypto.DYNAMIC, 100], pypto.DT_FP32),
    gamma: pypto.Tensor([100], pypto.DT_FP32),
    beta: pypto.Tensor([100], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, 100], pypto.DT_FP32),
):
    centred = x - pypto.mean(x, -1, True)
    variance = pypto.mean(centred * centred, -1, True)
    normal = centred / pypto.sqrt(variance + EPSILON)
    out[:] = normal * gamma + beta


def inputs(generator):
    x = generator.standard_normal((300, 100), np.float32)
    gamma, beta = (generator.standard_normal(100, np.float32) for _ in range(2))
    return x, gamma, beta, np.empty_like(x)


def reference(x, gamma, beta, out):
    centred = x - x.mean(-1, keepdims=True)
    out[...] = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + EPSILON) * gamma + beta


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    x, gamma, beta, out = inputs(np.random.default_rng(0))
    layer_norm(x, gamma, beta, out)
    exact = np.empty(out.shape)
    reference(x.astype(np.float64), gamma.astype(np.float64), beta.astype(np.float64), exact)
    print(out)
    error = measure.largest_error(out, exact)
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
