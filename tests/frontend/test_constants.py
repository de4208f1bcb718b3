"""`pypto.constant`: weak and typed numbers, nested lists and arrays, under every rule set, in kernels and outside them."""
from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.dtypes import ALL, BF16, BOOL, F16, F32, F64, I8, I32, I64, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Graph, TensorType
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.promotion import RULE_SETS, PromotionError, rule_set, strong
from pypto_dsl.frontend.tensor import Tensor
from pypto_dsl.frontend.trace import Trace, tracing
from pypto_dsl.runtime import interpreter


def recorded(function: Any, rules: str = "pypto") -> tuple[TensorType, np.ndarray]:
    """Type and contents of the tensor that ``function`` makes in a kernel."""
    graph = Graph("constants", options={"promotion": rules})
    trace = Trace(graph)
    with tracing(trace), building(trace.builder):
        made = function()
        assert isinstance(made, Tensor)
        graph.returns = [made.value]
        found = made.type
    return found, np.asarray(interpreter.run(graph, {}, {})["return0"])


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("value", [True, 3, -2, 1.5, np.int8(3), np.float16(0.1), np.float64(0.1), np.bool_(True), ml_dtypes.bfloat16(0.1)],
                         ids=repr)
def test_a_number_is_what_the_rules_infer(value: Any, rules: str) -> None:
    """Python's numbers are weak, BOOL and NumPy's values strong."""
    wanted = rule_set(rules).infer(value)
    found, held = recorded(lambda: pypto.constant(value), rules)
    assert found.weak == wanted.weak and found.shape == () and found.dtype.kind == wanted.dtype.kind
    if not wanted.weak:
        assert found.dtype is wanted.dtype
    assert held == value


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("value", [True, 1, 1.0, np.int8(1), np.int32(1), np.float16(1), np.float32(1)], ids=repr)
def test_a_typed_number_is_allowed_iff_the_join_is_its_dtype(value: Any, rules: str) -> None:
    chosen = rule_set(rules)
    for dtype in (d for d in ALL if d.kind != "block"):
        try:
            allowed = chosen.join(strong(dtype), chosen.infer(value)).dtype is dtype
        except PromotionError:
            allowed = False
        if allowed:
            found, held = recorded(lambda d=dtype: pypto.constant(value, d), rules)
            assert found.dtype is dtype and not found.weak and held.astype(np.float64) == 1
            continue
        with pytest.raises(PromotionError) as caught:
            recorded(lambda d=dtype: pypto.constant(value, d), rules)
        assert caught.value.code == "PT202", dtype


@pytest.mark.parametrize(("value", "dtype", "code"), [
    (300, I8, "PT204"), ([1, 2, -129], I8, "PT204"), (2**40, I32, "PT204"), (10**39, F32, "PT204"), (1.5, I32, "PT202"),
    ([1, 2.5], I32, "PT202"),
    ([[1, 2], [3]], None, "PT111"), (list(range(257)), None, "PT111"), ("1", None, "PT201"), (1j, None, "PT201"), (None, None, "PT201"),
    ([1, "2"], None, "PT201"), (1, "DT_FP32", "PT117"), (1.0, pypto.BFLOAT8_B, "PT203"), ([np.int8(1), np.int16(2)], None, "PT201")],
    ids=repr)
def test_refusals(value: Any, dtype: Any, code: str) -> None:
    with pytest.raises(KernelError) as caught:
        recorded(lambda: pypto.constant(value, dtype))
    assert caught.value.code == code


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("value", [
    [1.0, 2.0, -0.0, 0.0], [[1, 2], [3, 4], [5, 6]], [True, False, True], [1, 2.5], [], [[], []], [[[7.0]]], [np.int8(1), 2],
    np.arange(6, dtype=np.float16).reshape(2, 3), np.float32(2.0), (1, 1, 1)], ids=repr)
def test_nested_values(value: Any, rules: str) -> None:
    """Shape, contents and signs of zeros; weak under the tf rules only, or where there is nothing but a Python number."""
    chosen = rule_set(rules)
    wanted = chosen.infer(value)
    found, held = recorded(lambda: pypto.constant(value), rules)
    assert tuple(e.constant for e in found.shape) == np.shape(value) == held.shape
    assert found.weak == wanted.weak and (found.weak or found.dtype is wanted.dtype)
    flat = np.asarray(value, dtype=np.float64).ravel()
    np.testing.assert_array_equal(held.astype(np.float64).ravel(), flat)
    assert np.signbit(held.astype(np.float64)).ravel().tolist() == np.signbit(flat).tolist()


def test_a_tensor_is_taken_as_it_is() -> None:
    def same() -> Any:
        first = pypto.constant(np.float16(2))
        assert pypto.constant(first) is first and pypto.constant(first, F16) is first
        return pypto.constant(first, F32)

    found, held = recorded(same)
    assert found.dtype is F32 and held == 2
    with pytest.raises(PromotionError, match="was asked for"):
        recorded(lambda: pypto.constant(pypto.constant(np.float32(2)), F16))
    with pytest.raises(PromotionError, match="was asked for"):
        recorded(lambda: pypto.constant(pypto.Element(F64, 2.0), F32))
    assert recorded(lambda: pypto.constant(pypto.Element(BF16, 0.1)))[0].dtype is BF16


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_a_weak_constant_takes_the_dtype_it_meets(dtype: DType) -> None:
    """Compiled: a named number and a literal give the same bits, a typed one promotes."""
    @pypto.jit
    def scaled(x, weak, literal, typed):
        factor = pypto.constant(0.1)
        weak[:] = x * factor
        literal[:] = x * 0.1
        typed[:] = x * pypto.constant(0.1, pypto.DT_FP32)

    x = np.linspace(-3, 3, 40).astype(np.float32).astype(dtype.numpy).reshape(4, 10)
    join = F64 if dtype is F64 else F32
    weak, literal, typed = np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape, join.numpy)
    scaled(x, weak, literal, typed)
    assert weak.tobytes() == literal.tobytes()
    np.testing.assert_array_equal(typed, (x.astype(join.numpy) * np.float32(0.1)).astype(join.numpy))


def test_a_list_in_a_compiled_kernel() -> None:
    @pypto.jit
    def weighted(x, out):
        taps = pypto.constant([[0.25], [-0.5], [0.25]], pypto.DT_FP32)
        out[:] = x * taps + pypto.constant(np.array([1, 2, 3, 4], np.float32))

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = np.zeros_like(x)
    weighted(x, out)
    np.testing.assert_array_equal(out, x * np.float32([[0.25], [-0.5], [0.25]]) + np.float32([1, 2, 3, 4]))


@pytest.mark.parametrize("target", ["ascend-a2", "tt-wormhole"])
def test_a_list_on_the_devices(target: str) -> None:
    """The choice by position is emitted; nothing of it is read from memory."""
    @pypto.jit
    def weighted(x: pypto.Tensor([32, 64], pypto.DT_FP32), out: pypto.Tensor([32, 64], pypto.DT_FP32)):
        out[:] = x * pypto.constant([[float(i % 3)] for i in range(32)], pypto.DT_FP32)

    assert weighted.source(target)


def test_outside_kernels_it_is_an_array() -> None:
    for value, dtype in itertools.product((1, [1, 2], [[True]]), (None, pypto.DT_FP32)):
        made = pypto.constant(value, dtype)
        assert isinstance(made, np.ndarray) and made.shape == np.shape(value)
        assert made.dtype == (np.float32 if dtype is not None else np.bool_ if value == [[True]] else np.int32)
    assert pypto.constant(np.arange(3, dtype=np.int64)).dtype == np.int64
    assert recorded(lambda: pypto.constant(1, I64))[0].dtype is I64 and recorded(lambda: pypto.constant(True))[0].dtype is BOOL


@pytest.mark.parametrize("wide", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize("narrow", [F16, BF16, F32, F64], ids=str)
def test_a_typed_number_has_the_digits_of_its_dtype(narrow: DType, wide: DType) -> None:
    """0.1 as an f32 is 0.10000000149 in f64, wherever it is promoted."""

    @pypto.jit
    def added(x: pypto.Tensor(), out: pypto.Tensor()) -> None:
        out[:] = pypto.cast(x + pypto.Element(narrow, 0.1), pypto.DT_DOUBLE)

    x, out = np.zeros(4, wide.numpy), np.zeros(4)
    added(x, out)
    wanted = np.asarray(0.1).astype(narrow.numpy).astype(np.float64)
    assert (out == wanted).all()
    added.run(x, out, target="interpreter")
    assert (out == wanted).all()
