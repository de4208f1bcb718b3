"""Scaling by powers of two: exact with integer exponents, real-valued with bfloat16 ones."""
from __future__ import annotations

import ml_dtypes
import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

BF16 = ml_dtypes.bfloat16


@pypto.jit
def ldexp(
    x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    exponent: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_INT32),
    out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
):
    out[:] = pypto.ldexp(x, exponent)


@pypto.jit
def ldexp_bf16(
    x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_BF16),
    exponent: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_BF16),
    out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_BF16),
):
    out[:] = pypto.ldexp(x, exponent)


def inputs(generator):
    x = generator.standard_normal((77, 300), np.float32)
    return x, generator.integers(-30, 30, x.shape, np.int32), np.empty_like(x)


def ldexp_bf16_inputs(generator):
    x = generator.standard_normal((77, 300)).astype(BF16)
    return x, generator.uniform(-8, 8, x.shape).astype(BF16), np.empty_like(x)


def reference(x, exponent, out):
    np.ldexp(x, exponent, out=out)


def ldexp_bf16_reference(x, exponent, out):
    out[...] = x * np.exp2(exponent)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    x, exponent, out = inputs(np.random.default_rng(0))
    ldexp(x, exponent, out)
    exact = np.ldexp(x.astype(np.float64), exponent)
    print(out)
    print(f"integer exponents: largest error {measure.largest_error(out, exact).ulp:.3f} ulp")
    x, exponent, out = ldexp_bf16_inputs(np.random.default_rng(0))
    ldexp_bf16(x, exponent, out)
    exact = x.astype(np.float64) * np.exp2(exponent.astype(np.float64))
    print(f"bfloat16 exponents: largest error {measure.largest_error(out, exact).ulp:.3f} ulp")


if __name__ == "__main__":
    main()
