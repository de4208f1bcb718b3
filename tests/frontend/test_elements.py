"""One element of a tensor, taken as a view of rank 0, as an operand: alone, cast, computed with, beside every kind of group."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32}
READERS: dict[str, Callable[[Any, Any], Any]] = {
    "added": lambda x, e: x + e,
    "cast": lambda x, e: pypto.cast(x, pypto.DT_FP32) + pypto.cast(e, pypto.DT_FP32),
    "computed with": lambda x, e: x + (e * e + 1),
    "rows": lambda x, e: pypto.amax(x * e, -1, True) - e * e,
    "columns": lambda x, e: pypto.amax(x * e, 0, True) - e * e,
    "products": lambda x, e: pypto.matmul(x, x, b_trans=True) * pypto.cast(e, pypto.DT_FP32),
}


@pytest.mark.parametrize("target", ["llvm-cpu", "ascend-a2-emu", "tt-wormhole-emu"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reader", READERS)
def test_an_element_is_an_operand(reader: str, dtype: str, target: str) -> None:
    """The CPU has the interpreter's bits; of the devices' emulators one reader of each dtype, of their text all: emitted, or refused."""

    @pypto.jit(lint="off")
    def kernel(x: pypto.Tensor([pypto.STATIC, 8])) -> Any:
        return READERS[reader](x, pypto.reshape(pypto.view(x, [1, 1], [0, 3]), []))

    x = (np.arange(48).reshape(6, 8) % 5).astype(DTYPES[dtype])
    try:
        if target != "llvm-cpu" and reader != "computed with":
            assert kernel.source(target.removesuffix("-emu"), x)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a target is not for
            got, want = (np.asarray(kernel.run(x, target=t)) for t in (target, "interpreter"))
    except pypto.KernelError as refused:
        assert refused.diagnostic.help and target != "llvm-cpu", refused
        return
    assert got.tobytes() == want.tobytes()
