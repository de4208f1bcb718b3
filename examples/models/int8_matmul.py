"""A product in 8-bit integers: every token is scaled to the range of int8, the weights were scaled per channel before."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

WIDTH, CHANNELS = 96, 48


@pypto.jit
def int8_matmul(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    weight: pypto.Tensor([WIDTH, CHANNELS], pypto.DT_INT8),
    channel_scale: pypto.Tensor([CHANNELS], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, CHANNELS], pypto.DT_FP32),
):
    scale = pypto.maximum(pypto.amax(pypto.abs(x), -1, True), 1e-12) / 127.0
    quantized = pypto.cast(x / scale, pypto.DT_INT8, pypto.CastMode.CAST_RINT)
    product = pypto.matmul(quantized, weight, pypto.DT_INT32)
    out[:] = pypto.cast(product, pypto.DT_FP32) * scale * channel_scale


def inputs(generator):
    weight = generator.integers(-127, 128, (WIDTH, CHANNELS)).astype(np.int8)
    x, scale = generator.standard_normal((20, WIDTH), np.float32), generator.random(CHANNELS, np.float32) / 100
    return x, weight, scale, np.empty((20, CHANNELS), np.float32)


def reference(x, weight, channel_scale, out):
    # the quantized values are exact data of the kernel: rounded from float32 quotients, as it does
    x = x.astype(np.float32)
    scale = np.maximum(np.abs(x).max(-1, keepdims=True), np.float32(1e-12)) / np.float32(127)
    out[...] = (np.rint(x / scale).astype(np.int64) @ weight.astype(np.int64)) * scale.astype(out.dtype) * channel_scale


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    given = inputs(np.random.default_rng(0))
    int8_matmul(*given)
    exact = [a.astype(np.float64) if a.dtype.kind not in "iub" else a.copy() for a in given]
    reference(*exact)
    print(given[-1])
    error = measure.largest_error(given[-1], exact[-1])
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
