"""PyPTO's older style: declared tensors, `pypto.function` blocks, `from_torch`, and what runs them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto

F = np.float32
D = pypto.DYNAMIC
TARGETS = ("interpreter", "llvm-cpu")


def rand(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(1).random(shape, dtype=F)


def declared() -> tuple[Any, Any, Any]:
    return (pypto.tensor([D, 8], pypto.DT_FP32, "x"), pypto.tensor([D], pypto.DT_INT32, "n"), pypto.tensor([D, 8], pypto.DT_FP32, "out"))


def test_a_block_runs_as_older_programs_run_it() -> None:
    x, out = pypto.tensor((72, 71), pypto.DT_INT32, "x"), pypto.tensor((72, 71), pypto.DT_INT32, "out")
    pypto.runtime._device_init()
    with pypto.function("MAIN", x, out):
        pypto.set_vec_tile_shapes(32, 32)
        for i in pypto.loop(3, name="b0", idx_name="bidx"):
            for j in pypto.loop(3, name="s0", idx_name="sidx"):
                valid = [pypto.min(pypto.symbolic_scalar(72) - i * 32, pypto.symbolic_scalar(32)), (71 - j * 32).min(32)]
                tile = pypto.view(x, (32, 32), [i * 32, j * 32], valid_shape=valid)
                tile = pypto.add(tile, 1)
                pypto.assemble(tile, [i * 32, j * 32], out)
                del tile
    assert isinstance(out, pypto.tensor) and x.shape == [72, 71] and x.dtype == pypto.DT_INT32 and x.name == "x"
    given, made = np.arange(72 * 71, dtype=np.int32).reshape(72, 71), np.zeros((72, 71), np.int32)
    pypto.runtime._device_run_once_data_from_host(pypto.from_torch(given, "given"), pypto.from_torch(made, "made"))
    pypto.runtime._device_synchronize()
    pypto.runtime._device_fini()
    np.testing.assert_array_equal(made, given + 1)


def choices(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    out, total = np.zeros_like(x), np.zeros((1, 8), F)
    for i in range(len(x)):
        row = x[i:i + 1] * 2
        total = total + row
        if n[i] > 1:
            out[i:i + 1] = row if i == 0 else row + 1
            total = total + 1
        elif n[i] == 1:
            out[i:i + 1] = total
        else:
            out[i:i + 1] = -row
            continue
        total = total * F(0.5)
    return out + total


@pytest.mark.parametrize("target", TARGETS)
def test_conditions_and_nested_loops(target: str) -> None:
    x, n, out = declared()
    with pypto.function("choices", [x, n], [out]) as block:
        total = pypto.tensor([1, 8], pypto.DT_FP32)
        total[:] = 0.0
        for i in pypto.loop(x.shape[0]):
            row = x[i:i + 1, :] * 2.0
            total[:] = total + row
            if pypto.cond(n[i] > 1):
                if pypto.is_loop_begin(i):
                    out[i:i + 1, :] = row
                else:
                    out[i:i + 1, :] = row + 1.0
                total[:] = total + 1.0
            elif n[i] == 1:
                out[i:i + 1, :] = total
            else:
                out[i:i + 1, :] = -row
                continue
            for j in pypto.loop(2):
                if j == 1:
                    total[:] = total * 0.5
        out[:] = out + total
    for rows in (1, 4, 9):
        given, kinds, made = rand(rows, 8), (np.arange(rows) * 5 % 4).astype(np.int32), np.zeros((rows, 8), F)
        block.run(given, kinds, made, target=target)
        np.testing.assert_allclose(made, choices(given, kinds), rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_unrolled_loops(target: str) -> None:
    x, _, out = declared()
    with pypto.function("unrolled", x, out) as block:
        for i, k in pypto.loop_unroll(x.shape[0], unroll_list=[4, 2]):
            out[i:, 0:] = pypto.view(x, [k, 8], [i, 0]) * k
    given, made = rand(7, 8), np.zeros((7, 8), F)
    block.run(given, made, target=target)
    np.testing.assert_array_equal(made, given * np.array([4, 4, 4, 4, 2, 2, 1], F)[:, None])


def _carried(x: Any, n: Any, out: Any) -> None:
    with pypto.function("block", x, n, out):
        total = pypto.full([1, 8], 0.0, pypto.DT_FP32)
        for i in pypto.loop(x.shape[0]):
            total = total + x[i:i + 1, :]
        out[0:1, :] = total


def _counted(x: Any, n: Any, out: Any) -> None:
    with pypto.function("block", x, n, out):
        count = 0
        for _ in pypto.loop(x.shape[0]):
            count += 2


def _outside_a_loop(x: Any, n: Any, out: Any) -> None:
    with pypto.function("block", x, n, out):
        if x.shape[0] > 1:
            out[:] = x


def _left(x: Any, n: Any, out: Any) -> None:
    with pypto.function("block", x, n, out):
        for i in pypto.loop(x.shape[0]):
            if i == 2:
                break


def _behind(x: Any, n: Any, out: Any) -> None:
    out[:] = x


def _an_array(x: Any, n: Any, out: Any) -> None:
    with pypto.function("block", np.zeros(3)):
        pass


def _too_few(x: Any, n: Any, out: Any) -> None:
    with pypto.function("block", x, out) as block:
        out[:] = x
    block(rand(2, 8))


def _another_dtype(x: Any, n: Any, out: Any) -> None:
    with pypto.function("block", x, out) as block:
        out[:] = x
    block(rand(2, 8), np.zeros((2, 8)))


@pytest.mark.parametrize(("code", "use"), [
    ("PT143", _carried), ("PT143", _counted), ("PT101", _outside_a_loop), ("PT141", _left), ("PT125", _behind), ("PT200", _an_array),
    ("PT714", _too_few), ("PT702", _another_dtype),
])
def test_what_a_block_cannot_record_is_refused(code: str, use: Callable[..., None]) -> None:
    with pytest.raises(pypto.KernelError) as refused:
        use(*declared())
    assert refused.value.code == code and "help" in str(refused.value)
    with pytest.raises(pypto.KernelError):  # and the block is closed
        pypto.loop(3)


def test_dynamic_axes_of_from_torch_are_not_compiled_again() -> None:
    @pypto.jit(target="interpreter")
    def k(x: pypto.Tensor(), out: pypto.Tensor()):
        out[:] = x + 1

    for rows in (2, 3):
        x, out = rand(rows, 8), np.zeros((rows, 8), F)
        k(pypto.from_torch(x, "x", dynamic_axis=[0]), pypto.from_torch(out, dynamic_axis=[-2]))
        np.testing.assert_array_equal(out, x + 1)
    assert len(k.specializations()) == 1


@pytest.mark.parametrize(("code", "call"), [
    ("PT702", lambda: pypto.from_torch(rand(2), dtype=pypto.DT_FP16)), ("PT309", lambda: pypto.from_torch(rand(2), dynamic_axis=[1])),
    ("PT708", lambda: pypto.from_torch(np.zeros(2, complex))),
])
def test_wrong_arguments_of_from_torch(code: str, call: Callable[[], Any]) -> None:
    with pytest.raises(pypto.KernelError) as refused:
        call()
    assert refused.value.code == code


def test_from_torch_keeps_memory_and_reads_bits() -> None:
    x = rand(2, 3)
    host = pypto.from_torch(x, "x", dtype=pypto.DT_INT32)
    assert host.shape == [2, 3] and host.dim == 2 and host.dtype == pypto.DT_INT32 and np.shares_memory(host.array, x)
    assert pypto.from_torch(np.float32(3).reshape(())).shape == [1]
