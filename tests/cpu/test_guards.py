"""Nothing outside an output is written: guard elements around outputs of every element size, width and way of making them."""
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.executable import Executable

DTYPES = (pypto.DT_BOOL, pypto.DT_INT8, pypto.DT_INT16, pypto.DT_INT32, pypto.DT_FP16, pypto.DT_BF16, pypto.DT_FP32, pypto.DT_DOUBLE)
KINDS: dict[str, Callable[[Any], Any]] = {
    "elements": lambda x: x * 2.0, "rows": lambda x: pypto.sum(x, -1, True), "columns": lambda x: pypto.sum(x, 0, True),
    "scaled rows": lambda x: x - pypto.amax(x, -1, True), "products": lambda x: pypto.matmul(x, x, pypto.DT_FP32, a_trans=True)}
LEVELS = tuple(level.name for level in jit.host_levels())
CASES = [(kind, dtype.numpy.name, level) for kind, dtype, level in itertools.product(KINDS, DTYPES, LEVELS)]
COLUMNS = (65, 33, 31, 17, 16, 9, 8, 5, 3, 2, 1)  # tails of one lane, of every other number of lanes, and none
ROWS = 5  # as many as no vector has lanes
GUARD = 64


def guarded(kind: str, dtype: Any, level: str, columns: Sequence[int], static: bool) -> None:
    """One kernel, run on matrices of so many columns; a static one has their extents."""
    executable = None
    for number in columns:
        x = np.random.default_rng(number).integers(-3, 4, (ROWS, number)).astype(np.float32)
        shape = result(kind, ROWS, number)
        memory = np.frombuffer(bytes([0xA5]) * ((math.prod(shape) + 2 * GUARD) * dtype.itemsize), np.uint8).copy().view(dtype.numpy)
        out = memory[GUARD:-GUARD].reshape(shape)
        if executable is None:
            executable = Executable(lower(pypto.jit(kernel_of(kind, dtype, static)).graph(x, out.copy()), "llvm-cpu"), level=level)
        executable.run({"x": x, "out": out}, {f"out_d{axis}": extent for axis, extent in enumerate(shape)})
        for guard in (memory[:GUARD], memory[-GUARD:]):
            assert (guard.view(np.uint8) == 0xA5).all(), f"{number} columns"


def kernel_of(kind: str, dtype: Any, static: bool) -> Callable[..., None]:
    free = pypto.DYNAMIC
    given = (pypto.Tensor(), pypto.Tensor()) if static else (pypto.Tensor([free, free]), pypto.Tensor(list(result(kind, free, free))))

    def kernel(x: given[0], out: given[1]) -> None:
        out[:] = pypto.cast(KINDS[kind](x), dtype)

    return kernel


def result(kind: str, rows: Any, columns: Any) -> tuple[Any, Any]:
    """The shape of what a kind of kernel gives."""
    return {"rows": (rows, 1), "columns": (1, columns), "products": (columns, columns)}.get(kind, (rows, columns))


@pytest.mark.parametrize(("kind", "dtype", "level"), CASES)
def test_guards_keep_their_bytes(kind: str, dtype: str, level: str) -> None:
    """A kernel for any number of columns, and one of a fixed number: another in each case, so that a kind has all of them."""
    made = next(d for d in DTYPES if d.numpy.name == dtype)
    guarded(kind, made, level, COLUMNS, static=False)
    guarded(kind, made, level, [COLUMNS[CASES.index((kind, dtype, level)) % len(COLUMNS)]], static=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "dtype", "level"), CASES)
def test_guards_of_every_fixed_number_of_columns(kind: str, dtype: str, level: str) -> None:
    made = next(d for d in DTYPES if d.numpy.name == dtype)
    for number in COLUMNS:
        guarded(kind, made, level, [number], static=True)
