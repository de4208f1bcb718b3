"""Windows of tensors of any rank on the devices' emulators: the elements that NumPy takes, or a refusal with its code."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto

F32, T = pypto.DT_FP32, pypto.Tensor
SIZES = (1, 2, 8, 32, 40, 64)
REFUSALS = {"PT521", "PT522", "PT523", "PT525", "PT526"}


def window(seed: int) -> tuple[list[int], list[int], list[int]]:
    """A tensor's shape, and the shape and offsets of a window in it that often lies on tiles."""
    rng = random.Random(seed)
    shape = [rng.choice(SIZES) for _ in range(rng.randint(1, 4))]
    part = [rng.choice([e, *(s for s in SIZES if s <= e)]) for e in shape]
    offsets = [rng.choice([0, (e - p) // 32 * 32, rng.randint(0, e - p)]) for e, p in zip(shape, part, strict=True)]
    return shape, part, offsets


def kernel(shape: list[int], part: list[int], offsets: list[int], reads: bool) -> Any:
    """Copies the window of ``x`` to ``out``, or ``x`` into the window of ``out``, inside a loop of one turn that moves its first offset."""
    small, whole = T(part, F32), T(shape, F32)

    def read(x: whole, out: small):
        for i in pypto.loop(1):
            out[:] = pypto.view(x, part, [offsets[0] + i * 32, *offsets[1:]]) * 2.0

    def write(x: small, out: whole):
        for i in pypto.loop(1):
            pypto.assemble(x * 2.0, [offsets[0] + i * 32, *offsets[1:]], out)

    return read if reads else write


@pytest.mark.parametrize("target", ["ascend-a2-emu", "tt-wormhole-emu"])
@pytest.mark.parametrize("reads", [True, False], ids=["read", "written"])
@pytest.mark.parametrize("seed", range(16))
def test_a_window_is_what_numpy_takes(seed: int, reads: bool, target: str) -> None:
    shape, part, offsets = window(seed)
    place = tuple(slice(o, o + p) for o, p in zip(offsets, part, strict=True))
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape if reads else part).astype(np.float32)
    out = np.full(part if reads else shape, 5, np.float32)
    want = out.copy()
    if reads:
        want[...] = x[place] * 2
    else:
        want[place] = x * 2
    try:
        pypto.jit(kernel(shape, part, offsets, reads), target=target)(x, out)
    except pypto.KernelError as refused:
        assert refused.code in REFUSALS, refused
        return
    np.testing.assert_array_equal(out, want)
