"""Inputs that are not dense: read where they lie, with the bits of a dense call, by every sort of kernel."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto

Array = np.ndarray[Any, np.dtype[Any]]
F = np.float32
DTYPES = (np.float32, ml_dtypes.bfloat16, np.float16, np.float64, np.int32, np.int8, np.uint16, np.int64)
FLOATS = DTYPES[:4]
SHAPES = {0: (), 1: (71,), 2: (37, 70), 3: (5, 35, 19), 4: (3, 4, 17, 18)}


def values(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 50, shape).astype(dtype)
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


def window(x: Array) -> Array:
    """The values of ``x`` inside a larger array."""
    around = np.zeros([n + 5 for n in x.shape], x.dtype)
    inside = tuple(slice(3, n + 3) for n in x.shape)
    around[inside] = x
    return around[inside]


def layouts(x: Array) -> Iterator[tuple[str, Array]]:
    """``x`` in every layout: permuted, reversed, with steps, inside a larger array, and each axis broadcast: its first element repeated."""
    for order in itertools.permutations(range(x.ndim)):
        if order != tuple(range(x.ndim)):
            yield f"permuted {order}", np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
    for axis in range(x.ndim):
        reverse = tuple(slice(None, None, -1) if a == axis else slice(None) for a in range(x.ndim))
        yield f"axis {axis} reversed", np.ascontiguousarray(x[reverse])[reverse]
        wide = np.repeat(x, 2, axis)
        yield f"every other of axis {axis}", wide[tuple(slice(None, None, 2) if a == axis else slice(None) for a in range(x.ndim))]
        first = x[tuple(slice(1) if a == axis else slice(None) for a in range(x.ndim))]
        yield f"axis {axis} broadcast", np.broadcast_to(first, x.shape)
        if x.ndim > 1:
            yield f"axis {axis} broadcast, permuted", np.broadcast_to(np.asfortranarray(first), x.shape)
    if x.ndim:
        yield "inside", window(x)
        yield "inside and permuted", window(np.ascontiguousarray(x.T)).T
        yield "one element", np.broadcast_to(x[(0,) * x.ndim], x.shape)


D = pypto.DYNAMIC
T = pypto.Tensor


@pypto.jit
def elementwise(x: T([...]), y: T([...])):
    return (x + y) * x


@pypto.jit
def function(x: T([...]), y: T([...])):
    return pypto.exp(x) + y


@pypto.jit
def chosen(x: T([...]), y: T([...])):
    return pypto.where(x > y, x, pypto.cast(pypto.cast(y, pypto.DT_FP32), x.dtype))


@pypto.jit
def softmax(x: T([...]), y: T([...])):
    return pypto.softmax(x, -1) * y


@pypto.jit
def softmax_first(x: T([...]), y: T([...])):
    return pypto.softmax(x, 0) + y


@pypto.jit
def statistics(x: T([...]), y: T([...])):
    return pypto.amax(x, -1), pypto.sum(x, 0), pypto.sum(x * y, -1), pypto.amin(x * y, 0)


@pypto.jit
def everything(x: T([...]), y: T([...])):
    return pypto.sum(x), pypto.sum(x + y), pypto.amax(y)


@pypto.jit
def reversed_axes(x: T([...]), y: T([...])):
    return pypto.permute(x, tuple(reversed(range(x.dim)))) * 2, pypto.reshape(y, [-1]) + 1


@pypto.jit
def scanned(x: T([...]), y: T([...])):
    return pypto.cumsum(x, 0), pypto.tril(y)


@pypto.jit
def sorted_rows(x: T([...]), y: T([...])):
    return pypto.sort(x, -1)[0] + y


@pypto.jit
def multiplied(x: T([...]), y: T([...])):
    return pypto.matmul(x, y, b_trans=True), pypto.matmul(x, y, a_trans=True)


@pypto.jit
def turns(x: T([...]), y: T([...])):
    total = pypto.full([x.shape[0], x.shape[1]], 0.0, x.dtype)
    for i in pypto.loop(3):
        total[:] = total + x * y[i:i + 1, 0:1]
        if pypto.cond(i > 1):
            total[:] = total + pypto.view(x, [x.shape[0], 1], [0, i])
    return total


KERNELS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[Any, ...]]] = {  # kernel, ranks, dtypes
    "elementwise": (elementwise, (1, 2, 3, 4), DTYPES), "function": (function, (2, 3), FLOATS), "chosen": (chosen, (1, 2), DTYPES),
    "softmax": (softmax, (1, 2, 3), FLOATS), "softmax_first": (softmax_first, (2, 3), FLOATS),
    "statistics": (statistics, (2, 3, 4), FLOATS), "everything": (everything, (1, 2, 3), FLOATS),
    "reversed_axes": (reversed_axes, (2, 3, 4), DTYPES), "scanned": (scanned, (2, 3), DTYPES),
    "sorted_rows": (sorted_rows, (1, 2), FLOATS), "multiplied": (multiplied, (2, 3), FLOATS), "turns": (turns, (2,), FLOATS),
}
CASES = [(name, rank, dynamic) for name, (_, ranks, _) in KERNELS.items() for rank in ranks for dynamic in (False, True)]


def results(made: Any) -> list[Array]:
    return [np.asarray(r) for r in (made if isinstance(made, tuple) else (made,))]


PLACES = 3  # the first operand lies so, both do, the second does


def same_bits(name: str, rank: int, dynamic: bool, layout: int, place: int) -> None:
    """One layout at one place, against dense operands; the other operand's layout and the dtype go by its number."""
    kernel, _, dtypes = KERNELS[name]
    shape, count = shape_of(name, rank), count_of(name, rank)
    dtype = dtypes[layout % len(dtypes)]
    x, y = values(shape, dtype, layout), values(shape, dtype, layout + count)
    (how, laid), (other, beside) = list(layouts(x))[layout], list(layouts(y))[(5 * layout + 2) % count]
    given: list[Any] = [*((laid, y), (laid, beside), (x, laid))[place]]
    dense = [np.ascontiguousarray(v) for v in given]
    if dynamic:
        dense, given = ([pypto.from_torch(v, dynamic_axis=range(rank)) for v in vs] for vs in (dense, given))
    for got, want in zip(results(kernel(*given)), results(kernel(*dense)), strict=True):
        assert got.tobytes() == want.tobytes(), (how, other, np.dtype(dtype).name)


def shape_of(name: str, rank: int) -> tuple[int, ...]:
    return SHAPES[rank] if name != "multiplied" else (*SHAPES[rank][:-2], 36, 36)


def count_of(name: str, rank: int) -> int:
    """How many layouts there are of a kernel's operands."""
    return sum(1 for _ in layouts(np.zeros(shape_of(name, rank), F)))


every_case = pytest.mark.parametrize(("name", "rank", "dynamic"), CASES,
                                     ids=[f"{n}-{r}-{'dynamic' if d else 'static'}" for n, r, d in CASES])


@every_case
def test_bits_are_those_of_a_dense_call(name: str, rank: int, dynamic: bool) -> None:
    """Every layout, half of them with known extents and half without, at one place in turn; each combination is some kernel's."""
    at, step = [*KERNELS].index(name), 4 if name == "multiplied" else 1
    for turn, layout in enumerate(range(0, count_of(name, rank), step)):
        if (turn + at + dynamic) % 2 == 0:
            same_bits(name, rank, dynamic, layout, (turn // 2 + at) % PLACES)


def test_every_combination_has_its_turn() -> None:
    """Of two dimensions: each layout at each place, with extents known and not known."""
    tried = {(layout, (layout // 2 + at) % PLACES, dynamic) for at, (name, (_, ranks, _)) in enumerate(KERNELS.items())
             if 2 in ranks and name != "multiplied" for layout in range(count_of(name, 2)) for dynamic in (False, True)
             if (layout + at + dynamic) % 2 == 0}
    assert len(tried) == count_of("function", 2) * PLACES * 2


@pytest.mark.exhaustive
@every_case
def test_every_layout_at_every_place(name: str, rank: int, dynamic: bool) -> None:
    for layout in range(count_of(name, rank)):
        for place in range(PLACES):
            same_bits(name, rank, dynamic, layout, place)


def test_fast_kernels_read_any_strides() -> None:
    @pypto.jit(precision="fast")
    def kernel(x: T([D, D]), y: T([D, D])):
        return pypto.sum(pypto.silu(x) * y, -1), pypto.softmax(x, 0)

    for dtype in FLOATS:
        x, y = values((37, 70), dtype), values((37, 70), dtype, 1)
        for how, laid in layouts(x):
            for got, want in zip(results(kernel(laid, y)), results(kernel(np.ascontiguousarray(laid), y)), strict=True):
                assert got.tobytes() == want.tobytes(), (how, np.dtype(dtype).name)


@pypto.jit
def along_rows(x: T([D, D]), y: T([D, D])):
    return pypto.sum(x, -1), pypto.amax(x, -1), pypto.amin(x, -1), pypto.sum(x * y, -1), pypto.prod(y, -1)


@pypto.jit
def down_rows(x: T([D, D]), y: T([D, D])):
    return pypto.sum(x, 0), pypto.amax(x, 0), pypto.amin(x, 0), pypto.sum(x * y, 0), pypto.prod(y, 0)


@pypto.jit
def truths(x: T([D, D]), y: T([D, D])):
    return pypto.any(x > y, -1), pypto.all(x > y, 0), pypto.any(x > y, 0), pypto.all(x > y, -1)


@pypto.jit
def averages(x: T([D, D]), y: T([D, D])):
    return pypto.mean(x, -1), pypto.mean(x + y, 0), pypto.var(x, -1), pypto.sum(pypto.exp(x), 0), pypto.sum(pypto.exp(x), -1)


# Beyond a block of sums in either direction, with whole and partial squares and vectors of rows behind it
REDUCED = ((1, 1), (3, 5), (67, 39), (16, 300), (257, 65), (513, 17), (7, 4161), (4097, 9), (70, 9000))


@pytest.mark.parametrize("shape", REDUCED)
@pytest.mark.parametrize("kernel", [along_rows, down_rows, truths, averages], ids=lambda k: k.__name__)
def test_reductions_where_they_lie(kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    """Matrices that lie along their columns, one of two or both, a NaN and a negative zero among them."""
    dtypes = FLOATS if kernel is averages else DTYPES
    for i, dtype in enumerate(dtypes):
        x, y = values(shape, dtype, i), values(shape, dtype, i + 100)
        if np.dtype(dtype).kind not in "iu":
            x[0, 0] = -0.0
            x[shape[0] // 2, shape[1] // 3] = -np.nan if i % 2 else np.nan
        want = [r.tobytes() for r in results(kernel(x, y))]
        for a, b in ((np.asfortranarray(x), y), (x, np.asfortranarray(y)), (np.asfortranarray(x), window(y.T.copy()).T)):
            assert [r.tobytes() for r in results(kernel(a, b))] == want, np.dtype(dtype).name


@pypto.jit
def extremes_down(x: T([D, D])):
    return pypto.amax(x, 0), pypto.amin(x, 0)


@pypto.jit
def extremes_along(x: T([D, D])):
    return pypto.amax(x, -1), pypto.amin(x, -1)


@pytest.mark.parametrize("kernel", [extremes_down, extremes_along], ids=lambda k: k.__name__)
def test_an_extreme_has_one_nan(kernel: Callable[..., Any]) -> None:
    """Which of several NaNs reaches the result depends on the order in which they are looked at, which no layout and no length decides."""
    x = values((300, 700), F)
    x.view(np.uint32)[::7, ::3] = 0x7FC12345
    x.view(np.uint32)[::5, ::4] = 0xFFC00077
    made = [results(kernel(v)) for v in (x, np.asfortranarray(x), x[::-1], x[:, ::-1], np.asfortranarray(x[:4]), x[3:4])]
    for k in (0, 1):
        found = {int(n) for r in made for n in r[k].view(np.uint32)[np.isnan(r[k])]}
        assert len(found) == 1, list(map(hex, found))


# ---- what is written --------------------------------------------------------------------------------------------------------------------


def places(shape: tuple[int, ...], dtype: Any) -> Iterator[tuple[str, Array]]:
    """Memory for ``shape`` in every layout in which no two elements share it, with the array that holds it all around."""
    for how, laid in layouts(np.zeros(shape, dtype)):
        if "broadcast" not in how and how != "one element":
            yield how, laid


def held(x: Array) -> Array:
    """The memory that a view is of."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


@pypto.jit
def written(x: T([...]), y: T([...]), out: T([...])):
    out[:] = (x + y) * x


@pypto.jit
def written_rows(x: T([...]), y: T([...]), out: T([...])):
    out[:] = pypto.softmax(x, -1) + y


@pypto.jit
def written_columns(x: T([...]), y: T([...]), out: T([...])):
    out[:] = x - pypto.amax(x, 0, keepdim=True) + y


@pypto.jit
def written_and_read(x: T([...]), y: T([...]), out: T([...])):
    out[:] = x * 2
    out[1:3] = y[0:2] + out[2:4]
    out[:] = out + y


@pypto.jit(lint="off")
def written_in_part(x: T([...]), y: T([...]), out: T([...])):
    out[2:] = x[1:-1] * y[2:]


@pypto.jit
def written_in_turns(x: T([...]), y: T([...]), out: T([...])):
    for i in pypto.loop(x.shape[0]):
        out[i:i + 1] = x[i:i + 1] + y[0:1] * 3


@pypto.jit
def written_by_the_host(x: T([...]), y: T([...]), out: T([...])):
    out[:] = pypto.sort(x, -1)[0] + y
    out[0:1] = pypto.sort(out[0:1], -1, descending=True)[0]


@pypto.jit
def written_reduced(x: T([...]), y: T([...]), out: T([...])):
    out[:] = pypto.sum(pypto.unsqueeze(x, 0) * y, 0)
    out[1:2] = pypto.sum(x, 0, keepdim=True)


WRITERS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[Any, ...]]] = {
    "written": (written, (1, 2, 3, 4), DTYPES), "written_rows": (written_rows, (2, 3), FLOATS),
    "written_columns": (written_columns, (2, 3), FLOATS), "written_and_read": (written_and_read, (1, 2, 3), DTYPES),
    "written_in_part": (written_in_part, (1, 2, 3), DTYPES), "written_in_turns": (written_in_turns, (2,), DTYPES),
    "written_by_the_host": (written_by_the_host, (2,), FLOATS), "written_reduced": (written_reduced, (2,), FLOATS),
}


@pytest.mark.parametrize(("name", "rank"), [(n, r) for n, (_, ranks, _) in WRITERS.items() for r in ranks])
def test_outputs_are_written_where_they_lie(name: str, rank: int) -> None:
    """The bits of a dense call, and not an element beside them; operands dense, and as the output is."""
    kernel, _, dtypes = WRITERS[name]
    for i, (how, _) in enumerate(places(SHAPES[rank], F)):
        dtype = dtypes[i % len(dtypes)]
        x, y, fill = (values(SHAPES[rank], dtype, i + k) for k in (0, 100, 200))
        want = fill.copy()
        kernel(x, y, want)
        for alike in (False, True):
            out, around = (dict(places(SHAPES[rank], dtype))[how] for _ in range(2))
            for v in (out, around):
                held(v)[...] = 7
                v[...] = fill
            given = dict(layouts(x))[how] if alike else x
            kernel(given, y, out)
            around[...] = want
            assert held(out).tobytes() == held(around).tobytes(), (how, np.dtype(dtype).name, alike)


@pypto.jit(lint="off")
def one_row(x: T([D, D]), out: T([D, D])):
    out[2:3] = x * 2


def test_nothing_is_copied_for_an_output(tmp_path: Path) -> None:
    """A transposed file of which a copy would not fit into memory: only the pages that are written exist."""
    whole = np.memmap(tmp_path / "out", F, "w+", shape=(2**10, 2**23))
    one_row(np.ones((1, 2**10), F), whole.T)
    assert (whole[:, 2] == 2).all() and not whole[:, :2].any() and not whole[:, 3:9].any()
    assert (tmp_path / "out").stat().st_blocks * 512 < 2**26
