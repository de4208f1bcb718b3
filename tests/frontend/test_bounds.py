"""Windows that are written and elements that are taken stay inside their tensors, whatever the extents of a call are."""
from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.dtypes import F16, I32
from pypto_dsl.compiler.errors import KernelError, error
from pypto_dsl.compiler.promotion.atype import strong
from pypto_dsl.compiler.promotion.refusal import PromotionError
from pypto_dsl.frontend.capture import KernelWarning

ROWS = pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32)
TARGETS = ("interpreter", "llvm-cpu", "ascend-a2-emu", "tt-wormhole-emu")


@pypto.jit
def open_slice(x: ROWS, out: ROWS):
    out[5:] = x


@pypto.jit
def closed_slice(x: ROWS, out: ROWS):
    out[5:45] = x


@pypto.jit
def assembled(x: ROWS, out: ROWS):
    pypto.assemble(x, [1, 0], out)


@pypto.jit
def far_row(x: ROWS, out: ROWS):
    out[50] = x[0]


@pypto.jit
def far_source(x: ROWS, out: ROWS):
    out[0] = x[50]


@pypto.jit
def looped_write(x: ROWS, out: ROWS):
    for i in pypto.loop(0, x.shape[0], 1):
        out[i:i + 8] = x[0:8]


@pypto.jit
def looped_read(x: ROWS, out: ROWS):
    for i in pypto.loop(0, x.shape[0], 1):
        out[i] = x[i + 1]


@pypto.jit
def inside(x: ROWS, out: ROWS):
    for i in pypto.loop(0, x.shape[0], 1):
        out[i] = x[i]


@pypto.jit
def a_part(x: ROWS, out: ROWS):
    out[0:8] = x[2:10]


@pypto.jit
def a_row(x: ROWS, out: ROWS):
    out[3] = x[7]


def guarded() -> tuple[Any, Any]:
    """An array between two zones that nobody may touch, and the whole."""
    whole = np.full((120, 64), 7, np.float32)
    return whole[40:80], whole


OUTSIDE = (open_slice, closed_slice, assembled, far_row, far_source, looped_write, looped_read)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", OUTSIDE, ids=lambda k: k.__name__)
def test_outside_is_refused_before_memory_is_touched(kernel: Callable[..., Any], target: str) -> None:
    """PT710 where the target runs such kernels at all (PT503, PT521, PT522 are its own limits); the zones around keep their bytes."""
    x, sources = guarded()
    out, whole = guarded()
    x[...], sources[:40], sources[80:] = 1, 9, 9
    with pytest.raises(KernelError) as refused:
        kernel.run(x, out, target=target)  # type: ignore[attr-defined]
    assert refused.value.code == "PT710" or (target.endswith("-emu") and refused.value.code in ("PT503", "PT521", "PT522"))
    assert (whole[:40] == 7).all() and (whole[80:] == 7).all() and not (out == 9).any()


@pytest.mark.parametrize("target", ["interpreter", "llvm-cpu"])
@pytest.mark.parametrize("kernel", [inside, a_part, a_row], ids=lambda k: k.__name__)
def test_inside_runs(kernel: Callable[..., Any], target: str) -> None:
    """What lies inside is written, and nothing else."""
    x = np.arange(40 * 64, dtype=np.float32).reshape(40, 64)
    out, whole = guarded()
    kernel.run(x, out, target=target)  # type: ignore[attr-defined]
    expected = np.full((40, 64), 7, np.float32)
    rows = {"inside": (slice(None), slice(None)), "a_part": (slice(0, 8), slice(2, 10)), "a_row": (slice(3, 4), slice(7, 8))}
    written, read = rows[kernel.__name__]
    expected[written] = x[read]
    np.testing.assert_array_equal(out, expected)
    assert (whole[:40] == 7).all() and (whole[80:] == 7).all()


def test_a_bound_that_only_a_taken_branch_needs() -> None:
    """A write in a branch is guarded in the branch: calls that do not take it run."""
    @pypto.jit
    def guarded_by_hand(x: ROWS, out: ROWS):
        if x.shape[0] > 50:
            out[50] = x[0]

    out = np.zeros((40, 64), np.float32)
    guarded_by_hand(np.ones((40, 64), np.float32), out)
    assert not out.any()


def test_errors_and_warnings_travel_between_processes() -> None:
    """A pickled error or warning keeps its record (worker processes report them)."""
    plain = error("PT301", "shapes differ", help="reshape")
    for made in (plain, PromotionError("PT202", "add", strong(F16), strong(I32), "tf-safe", "none"), KernelWarning(plain.diagnostic)):
        again = pickle.loads(pickle.dumps(made))
        assert again.diagnostic == made.diagnostic and str(again) == str(made)
