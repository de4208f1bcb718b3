"""Arrays of more than 2^31 elements, from memory maps and zero strides, and torch's own tensors where torch is installed."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto

F = np.float32
D, T = pypto.DYNAMIC, pypto.Tensor
MANY = 2**31 + 4096
ROOT = Path(__file__).parents[2]


@pypto.jit
def at_the_end(x: T([D], pypto.DT_INT8), n: pypto.SymbolicScalar, out: T([D], pypto.DT_INT8)):
    out[n:n + 64] = x[n - 64:n] + 1


@pypto.jit
def rows_far_apart(x: T([D, D], pypto.DT_FP32), n: pypto.SymbolicScalar, out: T([D, 4], pypto.DT_FP32)):
    for i in pypto.loop(n):
        row = x.shape[0] - n + i
        out[i:i + 1, :] = x[row:row + 1, x.shape[-1] - 4:] * 2.0


def test_a_memory_map_of_more_than_two_to_the_31_elements(tmp_path: Path) -> None:
    """The files are sparse: only the pages that the kernel touches exist."""
    x = np.memmap(tmp_path / "x", np.int8, "w+", shape=(MANY,))
    out = np.memmap(tmp_path / "out", np.int8, "w+", shape=(MANY,))
    last = MANY - 64
    x[last - 64:last] = np.arange(64)
    at_the_end(x, last, out)
    np.testing.assert_array_equal(out[last:], np.arange(64) + 1)
    assert not out[:64].any() and not out[last - 64:last].any()
    assert (tmp_path / "out").stat().st_blocks * 512 < 2**24


@pytest.mark.parametrize("target", ["llvm-cpu", "interpreter"])
@pytest.mark.parametrize("shape", [(2**17, 2**15), (3, 2**31 + 8), (2**32, 4), (2**32, 2**20)])
def test_zero_strides_over_more_than_two_to_the_31_elements(shape: tuple[int, int], target: str) -> None:
    x, out = np.broadcast_to(F(3), shape), np.zeros((2, 4), F)
    rows_far_apart.run(x, 2, out, target=target)
    assert (out == 6).all()


def test_a_copy_of_a_broadcast_has_its_elements_once() -> None:
    """Foreign bytes, no alignment, an output that overlaps: the copy is as small as the memory behind the view."""
    out = np.zeros((2, 4), F)
    for one in (np.asarray(3, ">f4"), np.zeros(5, np.uint8)[1:].view(F)):
        x = np.broadcast_to(one, (2**32, 2**20))
        rows_far_apart(x, 2, out)
        assert (out == 2 * x[0, 0]).all()
    out[...] = 3
    rows_far_apart(np.broadcast_to(out[:1, :1], (2**32, 2**20)), 2, out)
    assert (out == 6).all()


def test_what_does_not_fit_into_memory_is_refused() -> None:
    """Foreign bytes of 2^44 elements that overlap each other, which no broadcast says."""
    out = np.zeros((2, 4), F)
    with pytest.raises(pypto.KernelError, match="PT720"):
        rows_far_apart(np.lib.stride_tricks.sliding_window_view(np.zeros(2**23, ">f4"), 2**22), 2, out)
    assert not out.any()


@pypto.jit
def sum_of_rows(x: T([D, D], pypto.DT_FP32), out: T([D], pypto.DT_FP32)):
    out[:] = pypto.sum(x, 0)


def test_a_sum_over_a_broadcast_of_more_than_two_to_the_31_elements() -> None:
    row = np.arange(2**16 + 8, dtype=F) % 7
    out = np.zeros_like(row)
    sum_of_rows(np.broadcast_to(row, (2**15, *row.shape)), out)
    assert (out == row * 2**15).all()


def test_strided_rows_over_more_than_two_to_the_31_bytes(tmp_path: Path) -> None:
    held = np.memmap(tmp_path / "x", F, "w+", shape=(2**29 + 2**20,))
    x = np.lib.stride_tricks.as_strided(held, (3, 4), (2**30, 4))
    x[...] = np.arange(12).reshape(3, 4)
    out = np.zeros((3, 4), F)
    rows_far_apart(x, 3, out)
    np.testing.assert_array_equal(out, np.arange(12).reshape(3, 4) * 2)
    rows_far_apart(x[::-1], 3, out)
    np.testing.assert_array_equal(out, np.arange(12).reshape(3, 4)[::-1] * 2)


def test_torch_is_never_imported() -> None:
    script = ("import sys; sys.modules['torch'] = None; import numpy as np, pypto_dsl as pypto\n"
              "x = np.ones((2, 2), np.float32); print(pypto.add(x, x)[0, 0])")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "2.0"


# ---- torch itself; tests/frontend/test_arguments.py has a stand-in for where it is not installed ----------------------------------------


@pypto.jit
def scaled(x: T([D, 4]), y: T([D, 4]), out: T([D, 4])):
    out[:] = x * 2 + y


TARGETS = ("interpreter", "llvm-cpu")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is no dependency")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_tensors_of_every_dtype(torch: Any, dtype: str, target: str) -> None:
    kind = getattr(torch, dtype)
    x, y = (torch.arange(12).reshape(3, 4) % 5).to(kind), torch.ones(3, 4, dtype=kind)
    out = torch.zeros(3, 4, dtype=kind)
    scaled.run(x, y, out, target=target)
    assert torch.equal(out, x * 2 + y) and out.dtype is kind


@pytest.mark.parametrize("target", TARGETS)
def test_torch_tensors_of_any_layout(torch: Any, target: str) -> None:
    base = torch.arange(48, dtype=torch.bfloat16).reshape(6, 8)
    x, y = base.T[:3, :4], base[::2, ::2]
    out = torch.zeros(4, 3, dtype=torch.bfloat16).T
    scaled.run(x, y[:3], out, target=target)
    assert torch.equal(out, x * 2 + y[:3])
    scaled.run(x.float().requires_grad_(), torch.ones(1, 4).expand(3, 4), result := torch.zeros(3, 4), target=target)
    assert torch.equal(result, x.float() * 2 + 1)


def test_torch_results_and_outputs(torch: Any) -> None:
    k = pypto.jit(lambda x: (x + 1, x * 0.5), target="interpreter")
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.arange(4, dtype=dtype)
        added, halved = k(x)
        assert torch.equal(added, x + 1) and torch.equal(halved, x * 0.5) and added.dtype is dtype
    shared = torch.zeros(1, 4).expand(3, 4)
    with pytest.raises(pypto.KernelError, match="PT709"):
        scaled(torch.ones(3, 4), torch.ones(3, 4), shared)
    with pytest.raises(pypto.KernelError, match="PT705"):
        scaled(torch.ones(3, 4, device="meta"), torch.ones(3, 4), torch.ones(3, 4))
    assert pypto.from_torch(torch.ones(2, dtype=torch.bfloat16), "x").dtype == pypto.DT_BF16
