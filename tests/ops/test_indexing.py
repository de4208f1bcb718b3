"""Indexing, ordering, arrangement and random numbers against NumPy written out by hand; what lies outside is refused, never clamped."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machine import evaluate, execute, expanded, graph_of

from pypto_dsl.compiler.dtypes import ALL, BF16, BOOL, F16, F32, F64, I8, U8, U16, U32, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Builder
from pypto_dsl.compiler.index import as_index
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.runtime.interpreter import run

STORED = [d for d in ALL if d.kind != "block" and d.name != "f8e8m0"]
RNG = np.random.default_rng(2)


def fails(code: str, name: str, *arrays: np.ndarray, **attributes: Any) -> KernelError:
    with pytest.raises(KernelError) as caught:
        evaluate(name, *arrays, **attributes)
    assert caught.value.code == code, caught.value
    return caught.value


def any_values(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    if dtype is BOOL:
        return RNG.integers(0, 2, shape).astype(bool)
    return RNG.integers(0, 100, shape).astype(np.float32 if dtype.is_float else dtype.numpy).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_moving_operations_keep_every_bit(dtype: DType) -> None:
    """gather, index_select, gathermask, flip, repeat_interleave, interleave, stack, squeeze, pad, on every dtype."""
    x = any_values((3, 8), dtype)
    index = np.array([[0, 2, 1, 1, 0, 2, 2, 1]], np.int32)
    np.testing.assert_array_equal(gathered(x, index, 0), x[index, np.arange(8)])
    np.testing.assert_array_equal(selected(x, np.array([[7, 0], [3, 3]], np.int64), 1), x[:, [[7, 0], [3, 3]]])
    for pattern, part in ((1, np.s_[::2]), (2, np.s_[1::2]), (3, np.s_[::4]), (4, np.s_[1::4]),
                          (5, np.s_[2::4]), (6, np.s_[3::4]), (7, np.s_[:])):
        np.testing.assert_array_equal(evaluate("gathermask", x, pattern_mode=pattern), x[:, part])
    np.testing.assert_array_equal(evaluate("flip", x, dims=(0, -1)), x[::-1, ::-1])
    np.testing.assert_array_equal(evaluate("repeat_interleave", x, repeats=3, dim=1), x.repeat(3, 1))
    a, b = evaluate("interleave", x, x[::-1].copy())
    woven = np.stack([x, x[::-1]], -1).reshape(3, 16)
    np.testing.assert_array_equal(np.concatenate([a, b], 1), woven)
    c, d = evaluate("deinterleave", a, b)
    np.testing.assert_array_equal(c, x)
    np.testing.assert_array_equal(d, x[::-1])
    np.testing.assert_array_equal(evaluate("stack", x, x, dim=1), np.stack([x, x], 1))
    np.testing.assert_array_equal(evaluate("squeeze", x[:, None, :, None]), x)
    assert evaluate("squeeze", x[:, None, :, None], dim=1).shape == (3, 8, 1)
    want = np.pad(x, ((1, 2), (3, 0)))
    np.testing.assert_array_equal(evaluate("pad", x, pad=(3, 0, 1, 2)), want)
    for name, call in {"stack": lambda p: REGISTRY["stack"](p, p, dim=1), "squeeze": lambda p: REGISTRY["squeeze"](p),
                       "pad": lambda p: REGISTRY["pad"](p, (3, 0, 1, 2))}.items():
        g = expanded(call, x)
        np.testing.assert_array_equal(execute(g, x)[0], run(graph_of(call, x), {"p0": x})["return0"], err_msg=name)
        assert name not in {op.opcode for op in g.body.ops}


def gathered(x: np.ndarray, index: np.ndarray, dim: int) -> np.ndarray:
    return execute(graph_of(lambda p, i: REGISTRY["gather"](p, dim, i), x, index), x, index)[0]


def selected(x: np.ndarray, index: np.ndarray, dim: int) -> np.ndarray:
    return execute(graph_of(lambda p, i: REGISTRY["index_select"](p, dim, i), x, index), x, index)[0]




def scattered(name: str, x: np.ndarray, index: np.ndarray, src: Any, dim: int, **attributes: Any) -> np.ndarray:
    arrays = [x, index] + ([src] if isinstance(src, np.ndarray) else [])
    g = graph_of(lambda p, i, s=src: REGISTRY[name](p, dim, i, s, **attributes), *arrays)
    return execute(g, *arrays)[0]


@pytest.mark.parametrize("name", ["scatter", "scatter_"])
def test_scatter(name: str) -> None:
    """The last of equal targets stays; "add" and "multiply" take all; a number is a source."""
    x = np.zeros((3, 4), np.float32)
    index = np.array([[0, 2, 2, 0], [1, 2, 0, 0]], np.int32)
    src = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    want = x.copy()
    for i, j in np.ndindex(index.shape):
        want[index[i, j], j] = src[i, j]
    np.testing.assert_array_equal(scattered(name, x, index, src, 0), want)
    added = x.copy()
    np.add.at(added, (index, np.arange(4)), src)
    np.testing.assert_array_equal(scattered(name, x, index, src, 0, reduce="add"), added)
    product = x + 1
    np.multiply.at(product, (index, np.arange(4)), src)
    np.testing.assert_array_equal(scattered(name, x + 1, index, src, -2, reduce="multiply"), product)
    assert scattered(name, x, index, 2.0, 0).sum() == 2.0 * len({(i, j) for i, j in zip(index.ravel(), np.tile(range(4), 2), strict=True)})


def test_index_add_and_put() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    index, source = np.array([0, 2, 0], np.int32), np.ones((3, 3), np.float32)
    want = x.copy()
    np.add.at(want.T, index, 0.5 * source)
    np.testing.assert_array_equal(scattered("index_add", x, index, source, 1, alpha=0.5), want)
    rows, cols, values = np.array([0, 1, 0], np.int32), np.array([3, 2, 3], np.int64), np.array([7.0, 8.0, 9.0], np.float32)
    put = x.copy()
    put[rows, cols] = values
    g = graph_of(lambda p, v, i, j: REGISTRY["index_put_"](p, v, i, j), x, values, rows, cols)
    np.testing.assert_array_equal(execute(g, x, values, rows, cols)[0], put)
    summed = x.copy()
    np.add.at(summed, (rows, cols), values)
    g = graph_of(lambda p, v, i, j: REGISTRY["index_put"](p, v, i, j, accumulate=True), x, values, rows, cols)
    np.testing.assert_array_equal(execute(g, x, values, rows, cols)[0], summed)


def test_scatter_update_and_atomic_add() -> None:
    x, src = np.zeros((6, 3), np.float16), np.arange(12, dtype=np.float16).reshape(2, 2, 3)
    index = np.array([[5, 0], [2, 1]], np.int32)
    want = x.copy()
    want[index.ravel()] = src.reshape(4, 3)
    np.testing.assert_array_equal(scattered("scatter_update", x, index, src, -2), want)
    blocks = x.reshape(2, 3, 1, 3)
    np.testing.assert_array_equal(scattered("scatter_update", blocks, index, src.reshape(2, 2, 1, 3), -2), want.reshape(2, 3, 1, 3))
    base, add = np.ones((4, 4), np.float32), np.full((2, 2), 3, np.float32)
    g = graph_of(lambda s, d: REGISTRY["atomic_add"](s, (as_index(1), as_index(2)), d), add, base)
    made = execute(g, add, base)[0]
    assert made.sum() == 16 + 12 and made[1:3, 2:].tolist() == [[4, 4], [4, 4]]


def test_indices_outside_are_refused() -> None:
    """Nothing is clamped, nothing counts from the end: PT710 when it runs."""
    x, src = np.zeros((3, 4), np.float32), np.ones((1, 4), np.float32)
    for bad in (3, -1, 2**31 - 1):
        index = np.full((1, 4), bad, np.int32)
        for call in (lambda i=index: gathered(x, i, 0), lambda i=index: selected(x, i[0], 0),
                     lambda i=index: scattered("scatter", x, i, src, 0),
                     lambda i=index: scattered("index_add", x, i[0, :1], src, 0)):
            with pytest.raises(KernelError) as caught:
                call()
            assert caught.value.code == "PT710" and str(bad) in str(caught.value)


@pytest.mark.parametrize("case", [
    ("PT203", "gather", (np.zeros((2, 2), np.float32), np.zeros((2, 2), np.int16))),
    ("PT203", "gather", (np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32))),
    ("PT317", "gather", (np.zeros((2, 2), np.float32), np.zeros(2, np.int32))),
    ("PT317", "gather", (np.zeros((2, 2), np.float32), np.zeros((2, 3), np.int32))),
    ("PT302", "index_select", (np.zeros((), np.float32), np.zeros(2, np.int32))),
], ids=lambda c: f"{c[1]}-{c[0]}")
def test_index_operands_are_checked(case: tuple[str, str, tuple[np.ndarray, np.ndarray]]) -> None:
    code, name, (x, index) = case
    with pytest.raises(KernelError) as caught:
        graph_of(lambda p, i: REGISTRY[name](p, 0, i), x, index)
    assert caught.value.code == code


def test_in_place_operations_keep_the_destination() -> None:
    """They name what they write, keep its dtype, and refuse a source that does not join to it (PT205)."""
    written = {n: d.effects for n, d in REGISTRY.items() if d.effects}
    assert written == {"ldexp_": "input", "axpy_": "input", "scatter_": "input", "index_add_": "input", "index_put_": "input",
                       "atomic_add": "dst"}
    for name, target in written.items():
        assert target in {p.name for p in REGISTRY[name].operands}
        assert name == "atomic_add" or not REGISTRY[name].is_primitive
    half, single, index = np.zeros((2, 2), np.float16), np.ones((2, 2), np.float32), np.zeros((2, 2), np.int32)
    with pytest.raises(KernelError) as caught:
        scattered("scatter_", half, index, single, 0)
    assert caught.value.code == "PT205" and "left unchanged" in str(caught.value)
    assert scattered("scatter_", single, index, half, 0).dtype == np.float32
    for name in ("axpy_", "ldexp_"):
        with pytest.raises(KernelError) as caught:
            graph_of(lambda p, q, n=name: REGISTRY[n](p, q), single[0], single)
        assert caught.value.code == "PT309"


def test_one_hot() -> None:
    x = np.array([[0, 2], [1, 5]], np.int32)
    want = [[[1, 0, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 0]]]
    assert evaluate("one_hot", x, num_classes=3).tolist() == want and evaluate("one_hot", x, num_classes=3).dtype == np.int64
    assert execute(expanded(lambda p: REGISTRY["one_hot"](p, 3), x), x)[0].tolist() == want
    fails("PT111", "one_hot", x, num_classes=0)
    fails("PT203", "one_hot", x.astype(np.float32), num_classes=3)


@pytest.mark.parametrize("dtype", [d for d in STORED if (d not in (BOOL,) and d.bits > 8) or d in (I8, U8)], ids=str)
def test_sorting(dtype: DType) -> None:
    """Stable in both directions; NaN is the largest; topk takes the front of the sorted order."""
    x = any_values((4, 33), dtype)
    if dtype.is_float:
        x[0, 3], x[1, 7], x[2, 5], x[2, 6] = np.nan, np.inf, 0.0, -0.0
    wide = x.astype(np.float64) if dtype.is_float else x
    for dim in (0, 1, None):
        axis = -1 if dim is None else dim
        up, where_up = evaluate("sort", x, dim=dim)
        np.testing.assert_array_equal(where_up, np.argsort(wide, axis=axis, kind="stable"))
        np.testing.assert_array_equal(up.astype(wide.dtype), np.take_along_axis(wide, where_up.astype(np.int64), axis))
        np.testing.assert_array_equal(evaluate("argsort", x, dim=dim), where_up)
        down, where_down = evaluate("sort", x, dim=dim, descending=True)
        rows = np.moveaxis(wide, axis, -1).reshape(-1, x.shape[axis])
        expect = [sorted(range(len(r)), key=lambda i, row=r: (0 if row[i] != row[i] else 1,
                                                              -row[i] if row[i] == row[i] else 0)) for r in rows.tolist()]
        np.testing.assert_array_equal(np.moveaxis(where_down, axis, -1).reshape(-1, x.shape[axis]), expect)
        best, places = evaluate("topk", x, k=2, dim=dim)
        np.testing.assert_array_equal(places, np.take(where_down, [0, 1], axis))
        np.testing.assert_array_equal(best.astype(wide.dtype), np.take(down, [0, 1], axis).astype(wide.dtype))
        least, _ = evaluate("topk", x, k=2, dim=dim, largest=False)
        np.testing.assert_array_equal(least.astype(wide.dtype), np.take(up, [0, 1], axis).astype(wide.dtype))
    assert evaluate("topk", x, k=0)[0].shape == (4, 0)
    fails("PT111", "topk", x, k=34)
    fails("PT302", "sort", x, dim=2)


def test_pad_and_pack_are_checked() -> None:
    x = np.arange(4, dtype=np.float32)
    fails("PT111", "pad", x, pad=(1,))
    fails("PT111", "pad", x, pad=(1, -1))
    fails("PT111", "pad", x, pad=(1, 1), mode="reflect")
    for dtype in (F16, F32, F64, U16, U32, BF16):
        values = any_values((6,), dtype)
        packed = evaluate("pack", values)
        assert packed.dtype == np.uint8 and packed.tobytes() == values.tobytes()
        np.testing.assert_array_equal(evaluate("unpack", packed, dtype=dtype), values)
    fails("PT203", "unpack", x, dtype=F32)
    fails("PT317", "unpack", np.zeros(3, np.uint8), dtype=F32)


def test_fillpad_fills_what_is_not_live() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)

    def call(p: Any) -> Any:
        tail = REGISTRY["view"](p, (3, 4), (0, 0), (2, 3))
        return REGISTRY["fillpad"](tail, value=-1.0)

    want = np.full((3, 4), -1.0)
    want[:2, :3] = x[:2, :3]
    np.testing.assert_array_equal(execute(graph_of(call, x), x)[0], want)
    np.testing.assert_array_equal(execute(expanded(call, x), x)[0], want)


# Known answers of Philox 4x32-10 from the authors' distribution (Random123, kat_vectors).
PHILOX = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
)


def generated(name: str, shape: tuple[int, ...], **attributes: Any) -> np.ndarray:
    g = graph_of(lambda p: (p, REGISTRY[name](shape, **attributes)), np.zeros(1, np.float32))
    return execute(g, np.zeros(1, np.float32))[1]


@pytest.mark.parametrize("counter,key,words", PHILOX)
def test_philox_known_answers(counter: tuple[int, ...], key: tuple[int, ...], words: tuple[int, ...]) -> None:
    got = generated("uniform", (4,), key=key, counter=counter, dtype=F32)
    assert got.tolist() == [(w >> 8) * 2.0**-24 for w in words]


@pytest.mark.parametrize("dtype", (F32, F16, BF16), ids=str)
def test_random_numbers(dtype: DType) -> None:
    """In [0, 1), the same whatever the shape, of the right moments; another key is another stream."""
    u = generated("uniform", (100, 70), key=(7,), counter=(1, 2), dtype=dtype).astype(np.float64)
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.02
    np.testing.assert_array_equal(u.ravel(), generated("uniform", (7000,), key=(7, 0), counter=(1, 2, 0, 0),
                                                       dtype=dtype).astype(np.float64))
    assert (u != generated("uniform", (100, 70), key=(8,), counter=(1, 2), dtype=dtype)).mean() > 0.9
    n = generated("normal", (7001,), key=(7,), dtype=dtype).astype(np.float64)
    assert abs(n.mean()) < 0.05 and abs(n.std() - 1) < 0.05 and np.isfinite(n).all()
    ordered = np.sort(generated("uniform", (4096,), key=(3,), dtype=F32))
    assert np.abs(ordered - (np.arange(4096) + 0.5) / 4096).max() < 1.63 / 64  # Kolmogorov and Smirnov, 1 %


def test_dropout() -> None:
    x = np.arange(1, 1001, dtype=np.float32).reshape(10, 100)
    kept = generated("uniform", (10, 100), key=(9,), dtype=F32) >= np.float32(0.3)
    got = evaluate("dropout", x, probability=0.3, key=(9,))
    np.testing.assert_allclose(got, np.where(kept, x / 0.7, 0), rtol=1e-6)
    assert 0.6 < kept.mean() < 0.8
    np.testing.assert_array_equal(evaluate("dropout", x, probability=0.0), x)
    fails("PT111", "dropout", x, probability=1.0)


def test_random_arguments_are_checked() -> None:
    from_code = {"PT203": {"dtype": F64}, "PT111": {"dtype": F32, "key": (1, 2, 3)}}
    for code, attributes in from_code.items():
        with pytest.raises(KernelError) as caught:
            generated("uniform", (4,), **attributes)
        assert caught.value.code == code
    with pytest.raises(KernelError, match="PHILOX"):
        generated("normal", (4,), alg="MERSENNE", dtype=F32)


def test_arange_full_and_likes() -> None:
    g = graph_of(lambda p: (p, REGISTRY["full"]((64,), -3, I8), REGISTRY["full"]((4,), 200, U8)), np.zeros(1, np.float32))
    _, a, b = execute(g, np.zeros(1, np.float32))
    assert (a == -3).all() and a.dtype == np.int8 and (b == 200).all()
    g = graph_of(lambda p: (p, REGISTRY["arange"](5, -1, -2, F32), REGISTRY["arange"](0, 1, 0.25, F32)), np.zeros(1, np.float32))
    _, a, b = execute(g, np.zeros(1, np.float32))
    assert a.tolist() == [5, 3, 1] and b.tolist() == [0, 0.25, 0.5, 0.75]


def test_operations_are_recorded_by_a_builder_only() -> None:
    with pytest.raises(KernelError) as caught:
        REGISTRY["sin"](None)
    assert caught.value.code == "PT125"
    with building(Builder(graph_of(lambda p: p, np.zeros(1, np.float32)))), pytest.raises(KernelError) as caught:
        REGISTRY["sin"]("x")
    assert caught.value.code == "PT200"
