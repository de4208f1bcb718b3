"""Nothing outside an output is written: guard elements around outputs of every element size, width and way of making them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.executable import Executable

DTYPES: dict[str, Any] = {
    "bool": bool,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
}
KINDS: dict[str, Callable[[Any], Any]] = {
    "elements": lambda x: x * 2.0, "rows": lambda x: pypto.sum(x, -1, True), "columns": lambda x: pypto.sum(x, 0, True),
    "scaled rows": lambda x: x - pypto.amax(x, -1, True), "products": lambda x: pypto.matmul(x, x, pypto.DT_FP32, a_trans=True)}
GUARD = 64


@pytest.mark.parametrize("level", [level.name for level in jit.host_levels()])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_guards_keep_their_bytes(kind: str, dtype: str, level: str) -> None:
    """Tails of one lane, of every other number of lanes, and none; as many rows as no vector has lanes."""
    made = np.dtype(DTYPES[dtype])
    target = {
        v.numpy: v
        for v in (
            pypto.DT_BOOL,
            pypto.DT_INT8,
            pypto.DT_INT16,
            pypto.DT_INT32,
            pypto.DT_FP16,
            pypto.DT_BF16,
            pypto.DT_FP32,
            pypto.DT_DOUBLE,
        )
    }[made]

    def kernel(x: pypto.Tensor(), out: pypto.Tensor()) -> None:
        out[:] = pypto.cast(KINDS[kind](x), target)

    for columns in (1, 2, 3, 5, 8, 9, 16, 17, 31, 33, 65):
        x = np.random.default_rng(columns).integers(-3, 4, (5, columns)).astype(np.float32)
        shape = {"rows": (5, 1), "columns": (1, columns), "products": (columns, columns)}.get(kind, x.shape)
        size = int(np.prod(shape))
        memory = np.frombuffer(bytes([0xA5]) * ((size + 2 * GUARD) * made.itemsize), np.uint8).copy().view(made)
        out = memory[GUARD:GUARD + size].reshape(shape)
        graph = pypto.jit(kernel).graph(x, np.zeros(shape, made))
        Executable(lower(graph, "llvm-cpu"), level=level).run({"x": x, "out": out})
        for guard in (memory[:GUARD], memory[GUARD + size:]):
            assert (guard.view(np.uint8) == 0xA5).all(), f"{columns} columns"
