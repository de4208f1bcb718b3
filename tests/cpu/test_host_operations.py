"""Operations without a kernel run by their reference between the kernels: same results as on the interpreter, wherever they stand."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(7)
ROWS = RNG.integers(0, 6, (6, 8)).astype(np.int32)

# Name -> the operation on a 6 x 8 tensor and row numbers of that shape, giving a tensor of any shape.
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "gather": lambda x, rows: pypto.gather(x, 0, rows),
    "index_select": lambda x, rows: pypto.index_select(x, 0, rows[0]),
    "scatter": lambda x, rows: pypto.scatter(x, 0, rows, 2.5),
    "topk values": lambda x, rows: pypto.topk(x, 3, -1, True)[0],
    "topk places": lambda x, rows: pypto.cast(pypto.topk(x, 3, -1, True)[1], pypto.DT_FP32),
    "sort": lambda x, rows: pypto.sort(x, -1)[0],
    "argsort": lambda x, rows: pypto.cast(pypto.argsort(x, -1), pypto.DT_FP32),
    "cumsum": lambda x, rows: pypto.cumsum(x, 1),
    "cumprod": lambda x, rows: pypto.cumprod(x, 0),
    "flip": lambda x, rows: pypto.flip(x, (0, 1)),
    "interleave": lambda x, rows: pypto.interleave(x, x)[0],
}
DTYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


def same(function: Callable[..., Any], *arrays: Array) -> list[Array]:
    """What a kernel returns on the CPU, which is what it returns on the interpreter."""
    kernel = pypto.jit(function)
    results = [kernel.run(*(a.copy() for a in arrays), target=t) for t in ("llvm-cpu", "interpreter")]
    got, wanted = ([r] if isinstance(r, np.ndarray) else list(r) for r in results)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    return got


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_between_kernels(name: str, dtype: str) -> None:
    """Computed operands before it, arithmetic on its result behind it, views on both sides."""
    operation = OPERATIONS[name]

    def kernel(x: pypto.Tensor(), rows: pypto.Tensor()) -> Any:
        made = operation(pypto.abs(x) + 0.5, rows)
        return made, pypto.neg(made), operation(pypto.transpose(pypto.transpose(x, 0, 1), 0, 1), rows)

    same(kernel, RNG.normal(size=(6, 8)).astype(DTYPES[dtype]), ROWS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_in_loops_and_branches(name: str) -> None:
    operation = OPERATIONS[name]

    def kernel(x: pypto.Tensor(), rows: pypto.Tensor(), n: pypto.Tensor()) -> Any:
        total = pypto.full([6, 8], 0.0, pypto.DT_FP32)
        for i in pypto.loop(3):
            if n[i] > 1:
                total = total + pypto.amax(operation(x + total, rows))
            else:
                total = total - 1.0
        return total

    same(kernel, RNG.normal(size=(6, 8)).astype(np.float32), ROWS, np.array([2, 0, 3], np.int32))


def test_into_outputs_and_windows() -> None:
    def kernel(x: pypto.Tensor(), rows: pypto.Tensor(), out: pypto.Tensor(), wide: pypto.Tensor()) -> None:
        out[:] = pypto.gather(x, 0, rows)
        wide[:, 4:12] = pypto.gather(x, 0, rows)

    x = RNG.normal(size=(6, 8)).astype(np.float32)
    out, wide = np.zeros((6, 8), np.float32), np.ones((6, 16), np.float32)
    pypto.jit(kernel)(x, ROWS, out, wide)
    np.testing.assert_array_equal(out, np.take_along_axis(x, ROWS, 0))
    np.testing.assert_array_equal(wide[:, 4:12], out)
    assert (wide[:, :4] == 1).all() and (wide[:, 12:] == 1).all()


def test_a_scalar_result_is_read_by_kernels() -> None:
    def kernel(x: pypto.Tensor()) -> Any:
        best = pypto.argmax(pypto.reshape(x, [48]))
        return x + pypto.cast(best, pypto.DT_FP32)

    same(kernel, RNG.normal(size=(6, 8)).astype(np.float32))


@pytest.mark.parametrize("rows", [1, 3, 6])
def test_of_tails(rows: int) -> None:
    def kernel(x: pypto.Tensor([pypto.DYNAMIC, 8]), out: pypto.Tensor([pypto.DYNAMIC, 8])) -> None:
        for i in pypto.loop((x.shape[0] + 3) // 4):
            piece = pypto.view(x, [4, 8], [i * 4, 0], valid_shape=[pypto.min(x.shape[0] - i * 4, 4), 8])
            out[i * 4:, :] = pypto.cumsum(piece * 2.0, 0)

    x = RNG.normal(size=(rows, 8)).astype(np.float32)
    results = []
    for target in ("llvm-cpu", "interpreter"):
        out = np.zeros_like(x)
        pypto.jit(kernel).run(x, out, target=target)
        results.append(out)
    np.testing.assert_array_equal(*results)
