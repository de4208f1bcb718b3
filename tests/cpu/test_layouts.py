"""Programs compiled for arrays that are not dense: the bits of the dense ones at every vector width, over several blocks of sums too."""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from cpu_programs import KERNELS, Executable, arguments, graph, lower, output, run

from pypto_dsl.compiler.layouts import apart, layout_of, lying
from pypto_dsl.runtime.cpu import jit

Array = np.ndarray[Any, np.dtype[Any]]
LEVELS = [level.name for level in jit.host_levels()]
MATRICES = [name for name, kernel in KERNELS.items() if all(len(shape) in (0, 2) for _, _, shape in kernel.parameters)]


@cache
def executable(name: str, level: str) -> Executable:
    recorded = graph(name, KERNELS[name])
    return Executable(lower(recorded), level=level, relaid=lambda layouts: lower(lying(recorded, layouts)))


def transposed(x: Array) -> Array:
    return np.ascontiguousarray(x.T).T


def backwards(x: Array) -> Array:
    return np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", MATRICES)
def test_bits_at_every_width(name: str, level: str) -> None:
    for extents in ({"M": 70, "N": 39, "K": 40}, {"M": 16, "N": 300, "K": 7}):
        arrays, scalars = arguments(name, extents)
        want = run(name, arrays, scalars, executable(name, level)).tobytes()
        for change in (transposed, backwards):
            laid = {n: change(a) if a.ndim == 2 and n != "out" else a for n, a in arrays.items()}
            assert run(name, laid, scalars, executable(name, level)).tobytes() == want, (change.__name__, extents)
            shape, dtype = output(name, arrays, executable(name, level))
            if len(shape) == 2:
                out = change(np.full(shape, 77, dtype.numpy))
                assert run(name, arrays, scalars, executable(name, level), out).tobytes() == want, (change.__name__, extents)
        assert executable(name, level)._variants


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["row_sum", "column_sum", "softmax", "row_max"])
def test_sums_of_several_blocks(name: str, level: str) -> None:
    """Rows of one element, of a block and its neighbour, of three blocks; vectors of rows with a tail."""
    for m, n in ((1, 1), (1, 4097), (67, 4096), (5, 9000), (260, 65), (4097, 3), (513, 70)):
        arrays, _ = arguments(name, {"M": m, "N": n})
        arrays["x"][0, 0] = np.nan if m % 2 else -0.0
        want = run(name, arrays, {}, executable(name, level)).tobytes()
        laid = {**arrays, "x": transposed(arrays["x"])}
        assert run(name, laid, {}, executable(name, level)).tobytes() == want, (m, n)


@pytest.mark.parametrize("level", LEVELS)
def test_an_extreme_of_nan_is_one_nan(level: str) -> None:
    """Whatever NaN stands in a row: its maximum has the bits of `np.nan`, where lanes are columns and where they are rows."""
    arrays, _ = arguments("row_max", {"M": 70, "N": 130})
    bits = arrays["x"].view(np.uint32)
    bits[3, 5], bits[4, 128], bits[5, :] = 0xFFC00000, 0x7FC00123, 0xFFFFFFFF
    for x in (arrays["x"], transposed(arrays["x"])):
        out = run("row_max", {**arrays, "x": x}, {}, executable("row_max", level)).reshape(-1)
        assert out[3:6].tobytes() == np.full(3, np.nan, np.float32).tobytes()
        assert not np.isnan(np.delete(out, [3, 4, 5])).any()


def test_letters() -> None:
    x = np.zeros((4, 6, 8), np.float32)
    cases = {"": x, "ss1": x.transpose(1, 0, 2), "sm1": x[::2], "0m1": np.broadcast_to(x[:1], x.shape), "mms": x[:, :, ::2], "1ss": x.T,
             "sms": x[:, ::-1, ::-1], "m0s": np.broadcast_to(x[0, 0, ::2], (4, 6, 4)), "mm0": np.broadcast_to(x[:1, :1, :1], x.shape)}
    for letters, array in cases.items():
        assert layout_of(array.shape, array.strides, array.itemsize) == letters
    assert layout_of((4, 1, 8), (32, 7, 4), 4) == "", "an axis of one element says nothing"
    assert layout_of((4, 0), (7, 7), 4) == "", "an empty array neither"


def test_memory_of_its_own() -> None:
    """Arrays in which no two elements share memory, as far as the strides tell."""
    x = np.zeros((4, 6, 8), np.float32)
    every = (x, x.T, x[::-1, :, ::2], x[:, ::3], x[:1, ::-1], x[:0], x.transpose(1, 0, 2))
    assert all(apart(a.shape, a.strides, a.itemsize) for a in every)
    shared = (((4, 3), (4, 4)), ((4, 3), (8, 4)), ((3, 3), (4, 8)), ((2, 3), (0, 4)), ((2, 2, 2), (4, 8, 12)), ((2, 5), (-16, 4)))
    for shape, strides in shared:
        assert not apart(shape, strides, 4), (shape, strides)


def test_many_layouts_share_code() -> None:
    """Beyond a number of layouts the rest is taken by code for any strides."""
    recorded = graph("add", KERNELS["add"])
    program = Executable(lower(recorded), relaid=lambda layouts: lower(lying(recorded, layouts)))
    program._variants = {(("x", str(i)),): program for i in range(16)}
    arrays, _ = arguments("add", {"M": 9, "N": 31})
    want = run("add", arrays, {}, program).tobytes()
    for change in (transposed, backwards):
        assert run("add", {n: change(a) for n, a in arrays.items() if n != "out"}, {}, program).tobytes() == want
    assert len(program._variants) == 17
