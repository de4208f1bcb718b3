"""PyPTO's documented names exist, and take their documented parameters by position and by name."""
from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl import namespace
from pypto_dsl.frontend.spellings import respelled

TABLE = (Path(__file__).parents[1] / "data" / "pypto_calls.txt").read_text().splitlines()[1:]
CALLS = {row.partition("(")[0]: [p for p in row.partition("(")[2].rstrip(")").split(", ") if p] for row in TABLE}
F = np.float32


def function_of(name: str) -> Any:
    owner: Any = pypto
    if name.startswith("x."):
        return getattr(pypto.Tensor, name[2:])
    for part in name.split("."):
        owner = getattr(owner, part)
    return owner


@pytest.mark.parametrize("name", CALLS)
def test_documented_parameters_are_taken(name: str) -> None:
    function, wanted = function_of(name), CALLS[name]
    ours = inspect.signature(function).parameters
    names = list(ours)[1:] if name.startswith("x.") else list(ours)
    anything = {p.kind for p in ours.values()} & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    plain = [p for p in wanted if not p.startswith("*")]
    spelled = [next(iter(respelled(name.rpartition(".")[2], ours, {p: 0}))) for p in plain]
    if anything:
        assert inspect.Parameter.VAR_KEYWORD in anything or set(spelled) <= set(names)
        return
    before_star = plain if "*" not in wanted else wanted[:wanted.index("*")]
    assert spelled[:len(before_star)] == names[:len(before_star)], "by position"
    assert set(spelled) <= set(names), "by name"


def test_keywords_of_ranges() -> None:
    @pypto.jit(target="interpreter")
    def k(out: pypto.Tensor([6], pypto.DT_FP32)):
        out[:] = pypto.arange(end=6.0, start=0.0)
        for i in pypto.loop(start=1, stop=4, step=2):
            out[i:i + 1] = pypto.full([1], -1.0, pypto.DT_FP32)
        for i, _ in pypto.loop_unroll(stop=1, unroll_list=[1]):
            out[i:i + 1] = pypto.full([1], 7.0, pypto.DT_FP32)

    out = np.zeros(6, F)
    k(out)
    assert out.tolist() == [7, -1, 2, -1, 4, 5]


@pytest.mark.parametrize("call", [lambda: pypto.arange(1, 2, end=3), lambda: pypto.arange(begin=1), lambda: pypto.arange(start=1)])
def test_wrong_ranges(call: Any) -> None:
    @pypto.jit
    def k(x: pypto.Tensor(), out: pypto.Tensor()):
        call()
        out[:] = x

    with pytest.raises(pypto.KernelError) as refused:
        k(np.zeros(2, F), np.zeros(2, F))
    assert refused.value.code == "PT110"


def test_modules_are_imported_under_the_name_of_pypto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypto", pypto)
    for name in ("experimental", "operation", "pypto_impl"):
        module = importlib.import_module(f"pypto.{name}")
        monkeypatch.delitem(sys.modules, f"pypto.{name}")
        assert module.__all__ == getattr(pypto, name).__all__
    x = np.full(4, 4, F)
    assert pypto.pypto_impl.ScalarDivS(x, pypto.Element(pypto.DT_FP32, 2.0), True).tolist() == [0.5] * 4
    assert pypto.pypto_impl.ScalarDivS(x, 2.0).tolist() == [2] * 4 and pypto.pypto_impl.GetCompilerMonitorTotalElapsed() > 0
    assert pypto.operation.op_wrapper(len) is len


def test_settings_are_kept_and_forgotten() -> None:
    key = pypto.PassConfigKey.KEY_DUMP_GRAPH
    assert pypto.get_pass_config("PVC2_OOO", "Fuse", key, False) is False
    pypto.set_pass_default_config(key, True)
    assert pypto.get_pass_configs("PVC2_OOO", "Fuse").dumpGraph
    pypto.set_pass_config("PVC2_OOO", "Fuse", key, False)
    assert not pypto.get_pass_configs("PVC2_OOO", "Fuse").dumpGraph and pypto.get_pass_default_config(key, False)
    pypto.set_pass_default_config(key, False)
    pypto.set_pass_options(sg_set_scope=3)
    assert pypto.get_pass_options() == {"sg_set_scope": 3}
    pypto.reset_options()
    assert pypto.get_pass_options() == {}
    with pytest.raises(pypto.KernelError, match="PT114"):
        pypto.set_pass_config("a", "b", "dumpGraph", True)


@pytest.mark.parametrize("target", ["interpreter", "llvm-cpu"])
def test_methods_that_differ_from_their_functions(target: str) -> None:
    @pypto.jit(target=target)
    def k(x: pypto.Tensor([4, 4], pypto.DT_FP32), a: pypto.Tensor(), b: pypto.Tensor(), c: pypto.Tensor()):
        a[:] = x.where(x > 0.5, -1.0)
        y = x * 1.0
        y.tril_(-1)
        b[:] = y
        c.assemble(pypto.Tensor.concat([x, y], 0)[2:6, :], [0, 0])

    x = np.random.default_rng(0).random((4, 4), dtype=F)
    a, b, c = (np.zeros((4, 4), F) for _ in range(3))
    k(x, a, b, c)
    np.testing.assert_array_equal(a, np.where(x > 0.5, x, F(-1)))
    np.testing.assert_array_equal(b, np.tril(x, -1))
    np.testing.assert_array_equal(c, np.concatenate([x, np.tril(x, -1)])[2:6])


@pytest.mark.parametrize("target", ["interpreter", "llvm-cpu"])
@pytest.mark.parametrize("live", [1, 3, 4])
def test_rows_through_a_page_table(target: str, live: int) -> None:
    @pypto.jit(target=target)
    def k(cache: pypto.Tensor([6, 4], pypto.DT_FP32), wanted: pypto.Tensor([1, 4]), table: pypto.Tensor([1, 3]), n: pypto.SymbolicScalar,
          rows: pypto.Tensor(), part: pypto.Tensor()):
        indices = pypto.view(wanted, [1, 4], [0, 0], valid_shape=[1, n])
        rows[:] = pypto.fillpad(pypto.experimental.gather_in_ub(cache, indices, table, 2, -2), "constant", -1.0)
        part[:] = pypto.fillpad(pypto.experimental.gather_in_l1(cache, indices, table, 2, 3, is_b_matrix=True, is_trans=False), value=-1.0)

    cache = np.arange(24, dtype=F).reshape(6, 4)
    wanted, table = np.array([[0, 4, 3, 1]], np.int32), np.array([[0, 2, 1]], np.int32)
    rows, part = np.zeros((4, 4), F), np.zeros((4, 3), F)
    k(cache, wanted, table, live, rows, part)
    expected = np.full((4, 4), -1, F)
    for i in range(live):
        expected[i] = cache[table[0, wanted[0, i] // 2] * 2 + wanted[0, i] % 2]
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(part, expected[:, :3])


@pytest.mark.parametrize("target", ["interpreter", "llvm-cpu"])
@pytest.mark.parametrize("first", [0, 2, "n"])
def test_a_page_table_numbers_the_rows_behind_a_window_too(target: str, first: int | str) -> None:
    """Programs give the first rows of a cache, and a table of pages anywhere in it; rows are counted from the window's first one."""
    @pypto.jit(target=target)
    def k(cache: pypto.Tensor([pypto.DYNAMIC, 4], pypto.DT_FP32), wanted: pypto.Tensor([1, 4]), table: pypto.Tensor([1, 3]),
          n: pypto.SymbolicScalar, rows: pypto.Tensor(), part: pypto.Tensor()):
        for i in pypto.loop(2):
            window = pypto.view(cache, [2, 4], [n if first == "n" else first, 0], valid_shape=[1, 4])
            indices = wanted[:, i * 2:i * 2 + 2]
            rows[i * 2:i * 2 + 2, :] = pypto.experimental.gather_in_ub(window, indices, table, 2, -2)
            part[i * 2:i * 2 + 2, :] = pypto.experimental.gather_in_l1(window, indices, table, 2, 3)

    cache = np.arange(40, dtype=F).reshape(10, 4)
    wanted, table = np.array([[0, 5, 3, 1]], np.int32), np.array([[2, 0, 3]], np.int32)
    rows, part = np.zeros((4, 4), F), np.zeros((4, 3), F)
    k(cache, wanted, table, 2, rows, part)
    start = 2 if first == "n" else first
    expected = np.stack([cache[start + table[0, i // 2] * 2 + i % 2] for i in wanted[0]])
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(part, expected[:, :3])


@pytest.mark.parametrize("target", ["interpreter", "llvm-cpu"])
def test_an_online_softmax_of_two_blocks(target: str) -> None:
    @pypto.jit(target=target)
    def k(scores: pypto.Tensor([8, 4], pypto.DT_FP32), largest: pypto.Tensor(), total: pypto.Tensor(), out: pypto.Tensor()):
        parts = []
        for i in range(2):
            weights, most, added = pypto.experimental.online_softmax(scores[i * 4:i * 4 + 4, :], 0.5)
            parts.append((most, added, pypto.cast(weights, pypto.DT_FP32)))
        largest[:], total[:], out[:] = pypto.experimental.online_softmax_update(*parts[0], *parts[1])

    scores = np.random.default_rng(0).normal(size=(8, 4)).astype(F)
    largest, total, out = np.zeros((1, 4), F), np.zeros((1, 4), F), np.zeros((4, 4), F)
    k(scores, largest, total, out)
    weights = np.exp(scores * 0.5 - (scores * 0.5).max(0))
    np.testing.assert_allclose(largest[0], (scores * 0.5).max(0), rtol=1e-6)
    np.testing.assert_allclose(total[0], weights.sum(0), rtol=1e-6)
    np.testing.assert_allclose(out, weights[:4] + weights[4:], rtol=2**-7)


def test_a_batched_product_over_the_middle_axis() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 2, 8)).astype(F), rng.normal(size=(2, 8, 3)).astype(F)
    got = pypto.experimental.transposed_batchmatmul(a, b, pypto.DT_FP32)
    np.testing.assert_allclose(got, np.einsum("mbk,bkn->mbn", a, b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("code", ["PT111", "PT312"])
def test_wrong_gathers(code: str) -> None:
    table = np.zeros((1, 2), np.int32)
    arguments = (np.zeros((4, 4), F), table, table, 2, 1) if code == "PT111" else (np.zeros((4, 4), F), table[0], table, 2)
    with pytest.raises(pypto.KernelError) as refused:
        pypto.experimental.gather_in_ub(*arguments)
    assert refused.value.code == code
    with pytest.raises(AttributeError, match="has no `gather_in_l2`"):
        _ = pypto.experimental.gather_in_l2


@pytest.mark.parametrize("target", ["interpreter", "llvm-cpu"])
def test_bits_are_read_as_another_width(target: str) -> None:
    @pypto.jit(target=target)
    def k(x: pypto.Tensor([2, 4], pypto.DT_FP32), n: pypto.SymbolicScalar, a: pypto.Tensor(), b: pypto.Tensor()):
        a[:] = pypto.view(x, dtype=pypto.DT_INT8)
        tail = pypto.view(a, [2, 16], [0, 0], valid_shape=[2, n * 4])
        b[:] = pypto.fillpad(pypto.view(tail, dtype=pypto.DT_FP32), value=-1.0)

    x = np.random.default_rng(0).random((2, 4), dtype=F)
    a, b = np.zeros((2, 16), np.int8), np.zeros((2, 4), F)
    k(x, 3, a, b)
    np.testing.assert_array_equal(a, x.view(np.int8))
    np.testing.assert_array_equal(b, np.where(np.arange(4) < 3, x, F(-1)))


@pytest.mark.parametrize("mode", ["CAST_ROUND", "CAST_FLOOR", "CAST_CEIL", "CAST_TRUNC"])
def test_integers_narrow_to_half_by_every_rounding(mode: str) -> None:
    x = np.concatenate([np.arange(-4100, 4100), [65504, 65519, 65520, -65519, -65520, 2**24 + 1, 2**31 - 1]]).astype(np.int32)
    halves = np.sort(np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float64))
    halves = np.unique(halves[np.isfinite(halves)])
    below = np.concatenate([[-np.inf], halves])[np.searchsorted(halves, x, side="right")]
    above = np.concatenate([halves, [np.inf]])[np.searchsorted(halves, x, side="left")]
    nearer = x - np.maximum(below, -65536) - (np.minimum(above, 65536) - x)
    nearest = np.where(nearer < 0, below, np.where(nearer > 0, above, np.where(x > 0, above, below)))
    want = {"CAST_FLOOR": below, "CAST_CEIL": above, "CAST_TRUNC": np.where(x > 0, below, above), "CAST_ROUND": nearest}[mode]
    np.testing.assert_array_equal(pypto.cast(x, pypto.DT_FP16, mode).astype(np.float64), want)


@pytest.mark.parametrize("target", ["interpreter", "llvm-cpu"])
def test_a_diagonal_may_be_known_when_the_kernel_runs(target: str) -> None:
    @pypto.jit(target=target)
    def k(x: pypto.Tensor([pypto.DYNAMIC, 6]), low: pypto.Tensor([pypto.DYNAMIC, 6]), high: pypto.Tensor([pypto.DYNAMIC, 6]),
          n: pypto.SymbolicScalar):
        low[:] = pypto.tril(x, n)
        high[:] = x.triu(diagonal=x.shape[0] - n)

    for rows, n in ((4, -1), (6, 2), (9, 0)):
        x = np.random.default_rng(0).random((rows, 6), dtype=F)
        low, high = np.zeros_like(x), np.zeros_like(x)
        k(x, low, high, n)
        np.testing.assert_array_equal(low, np.tril(x, n))
        np.testing.assert_array_equal(high, np.triu(x, rows - n))
    assert len(k.specializations()) == 1


def test_a_star_imports_every_public_name() -> None:
    found: dict[str, object] = {}
    exec("from pypto_dsl import *", found)
    assert set(namespace.names()) <= set(found)
    assert found["exp"] is pypto.exp
