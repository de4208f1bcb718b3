"""Powers: with a scalar exponent (gamma correction), and with a tensor of exponents."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure


@pypto.jit
def power(
    x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    gamma: float = 2.2,
):
    out[:] = x ** gamma  # gamma is a run-time scalar: another value needs no new compilation


@pypto.jit
def power_tensor(
    x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    exponent: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
):
    out[:] = pypto.pow(x, exponent)


def inputs(generator):
    x = generator.random((99, 260), np.float32)
    return x, np.empty_like(x), 2.2


def power_tensor_inputs(generator):
    x = generator.random((99, 260), np.float32)
    return x, generator.uniform(-4, 4, x.shape).astype(np.float32), np.empty_like(x)


def reference(x, out, gamma):
    np.power(x, gamma, out=out)


def power_tensor_reference(x, exponent, out):
    np.power(x, exponent, out=out)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    x, out, gamma = inputs(np.random.default_rng(0))
    power(x, out, gamma)
    exact = x.astype(np.float64) ** np.float64(np.float32(gamma))
    print(out)
    error = measure.largest_error(out, exact)
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")
    x, exponent, out = power_tensor_inputs(np.random.default_rng(0))
    power_tensor(x, exponent, out)
    exact = x.astype(np.float64) ** exponent.astype(np.float64)
    print(f"with a tensor of exponents {measure.largest_error(out, exact).ulp:.3f} ulp")


if __name__ == "__main__":
    main()
