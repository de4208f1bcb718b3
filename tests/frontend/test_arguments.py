"""Arguments of calls: arrays of every maker, strides, overlap, and the errors raised before anything is written."""
from __future__ import annotations

import functools
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto

F = np.float32
D, T = pypto.DYNAMIC, pypto.Tensor
jit = functools.partial(pypto.jit, target="interpreter")
TARGETS = ("interpreter", "llvm-cpu")


@pypto.jit
def double(x: T([D, 4]), out: T([D, 4])):
    out[:] = x + x


def array(rows: int = 3, dtype: Any = F) -> Any:
    return (np.arange(rows * 4).reshape(rows, 4) % 7).astype(dtype)


class Interface:
    """An array that speaks `__array_interface__` alone."""

    def __init__(self, held: Any) -> None:
        self.held = held
        self.__array_interface__ = held.__array_interface__


class Capsule:
    """An array that speaks DLPack alone."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.held.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()


def refused(code: str, call: Any) -> str:
    with pytest.raises(pypto.KernelError) as caught:
        call()
    assert caught.value.code == code, str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("wrap", [Interface, Capsule, np.asarray], ids=["interface", "dlpack", "numpy"])
def test_arrays_of_every_maker(wrap: Any, target: str) -> None:
    x, out = array(), np.zeros((3, 4), F)
    double.run(wrap(x), wrap(out), target=target)
    np.testing.assert_array_equal(out, x + x)


DTYPES = [np.float32, np.float16, np.float64, ml_dtypes.bfloat16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
          np.uint64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_select_the_specialisation(dtype: Any) -> None:
    x, out = array(2, dtype), np.zeros((2, 4), dtype)
    double.run(x, out, target="interpreter")
    assert (out.astype(np.float64) == 2 * x.astype(np.float64)).all()


def misaligned(a: Any) -> Any:
    return np.frombuffer(bytearray(b"x" + a.tobytes()), np.uint8)[1:].view(a.dtype).reshape(a.shape)


STRIDED = {
    "transposed": lambda a: np.asfortranarray(a), "reversed": lambda a: a[::-1].copy()[::-1],
    "columns": lambda a: np.repeat(a, 3, 1)[:, ::3], "rows": lambda a: np.repeat(a, 2, 0)[::2], "misaligned": misaligned,
    "big endian": lambda a: a.astype(">f4")}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", STRIDED)
def test_inputs_of_any_stride(kind: str, target: str) -> None:
    x, out = array(), np.zeros((3, 4), F)
    double.run(STRIDED[kind](x), out, target=target)
    np.testing.assert_array_equal(out, x + x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["transposed", "reversed", "columns", "rows"])
def test_outputs_of_any_stride_and_untouched_neighbours(kind: str, target: str) -> None:
    x = array()
    whole = {"transposed": np.full((4, 3), -1, F), "reversed": np.full((3, 4), -1, F), "columns": np.full((3, 12), -1, F),
             "rows": np.full((6, 4), -1, F)}[kind]
    out = {"transposed": whole.T, "reversed": whole[::-1], "columns": whole[:, ::3], "rows": whole[::2]}[kind]
    double.run(x, out, target=target)
    np.testing.assert_array_equal(out, x + x)
    assert np.count_nonzero(whole == -1) == whole.size - out.size


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_array_and_partial_overlap(target: str) -> None:
    x = array()
    want = x + x
    double.run(x, x, target=target)
    np.testing.assert_array_equal(x, want)
    memory = np.arange(16, dtype=F)
    source, out = memory[:12].reshape(3, 4), memory[4:].reshape(3, 4)
    want = source + source
    double.run(source, out, target=target)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("target", TARGETS)
def test_read_only_inputs_empty_and_scalar_arrays(target: str) -> None:
    x, out = array(), np.zeros((3, 4), F)
    x.flags.writeable = False
    double.run(x, out, target=target)
    np.testing.assert_array_equal(out, x + x)
    double.run(np.zeros((0, 4), F), np.zeros((0, 4), F), target=target)

    @pypto.jit
    def point(x: T(), out: T()):
        out[:] = x + 1

    out = np.zeros((), F)
    point.run(np.asarray(2, F), out, target=target)
    assert out == 3


def test_zero_stride_inputs_of_more_than_two_to_the_31_elements() -> None:
    @jit
    def corner(x: T([D, D]), out: T([2, 4])):
        out[:] = x[0:2, 0:4]

    x, out = np.broadcast_to(np.float32(3), (1 << 16, 1 << 16)), np.zeros((2, 4), F)
    corner(x, out)
    assert (out == 3).all()


# ---- refusals ------------------------------------------------------------------------------------------------------------------------


@jit
def typed(x: T([2, 4], pypto.DT_FP32), out: T([D, 4], pypto.DT_FP32)):
    out[:] = x


WRONG = {
    "PT701": lambda x, out: typed(3.5, out), "PT702": lambda x, out: typed(x.astype(np.float16), out),
    "PT703": lambda x, out: typed(x[0], out), "PT704": lambda x, out: typed(x[:1], out), "PT706": lambda x, out: typed(x, _frozen(out)),
    "PT707": lambda x, out: typed(x, out[:1]), "PT708": lambda x, out: typed(x.astype(np.complex64), out),
    "PT709": lambda x, out: typed(x, np.lib.stride_tricks.as_strided(out, strides=(0, 4))),
    "PT714": lambda x, out: typed(x), "PT711": lambda x, out: listed([x], out)}


def _frozen(a: Any) -> Any:
    a = a.view()
    a.flags.writeable = False
    return a


@jit
def listed(parts, out: T()):
    out[:] = parts[0]


@pytest.mark.parametrize("code", WRONG)
def test_wrong_arguments_are_refused_before_anything_is_written(code: str) -> None:
    x, out = array(2), np.full((2, 4), -5, F)
    text = refused(code, lambda: WRONG[code](x, out))
    assert (out == -5).all()
    assert "help:" in text


def test_two_outputs_that_share_memory() -> None:
    @jit
    def k(x: T(), a: T(), b: T()):
        a[:] = x
        b[:] = x + 1

    memory = np.zeros((3, 4), F)
    refused("PT709", lambda: k(array(2), memory[:2], memory[1:]))


def test_dynamic_extents_that_disagree_name_both_and_the_line() -> None:
    @jit
    def k(x: T([D, 4]), y: T([D, 4]), out: T([D, 4])):
        out[:] = x + y

    out = np.zeros((3, 4), F)
    text = refused("PT707", lambda: k(array(3), array(2), out))
    assert "x.shape[0]" in text and "y.shape[0]" in text and "3 and 2" in text and "out[:] = x + y" in text
    assert not out.any()


# ---- torch, as far as its CPU tensors behave (a stand-in: torch is no dependency) ------------------------------------------------------


class FakeTensor:
    """What of torch.Tensor the front end touches."""

    def __init__(self, held: Any, dtype: str, device: str = "cpu") -> None:
        self.held, self.dtype, self.device = held, f"torch.{dtype}", SimpleNamespace(type=device)

    def detach(self) -> FakeTensor:
        return self

    def is_conj(self) -> bool:
        return False

    is_neg = is_conj

    def view(self, dtype: str) -> FakeTensor:
        return FakeTensor(self.held.view(getattr(np, dtype, None) or getattr(ml_dtypes, dtype)), dtype)

    def numpy(self) -> Any:
        return self.held


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("torch")
    members = {"Tensor": FakeTensor, "int16": "int16", "uint8": "uint8", "bfloat16": "bfloat16",
               "from_numpy": lambda a: FakeTensor(a, a.dtype.name)}
    for name, value in members.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_torch_tensors_of_bfloat16_are_written_in_place(torch: ModuleType) -> None:
    x, out = array(3, ml_dtypes.bfloat16), np.zeros((3, 4), np.int16)
    double.run(FakeTensor(x.view(np.int16), "bfloat16"), FakeTensor(out, "bfloat16"), target="interpreter")
    np.testing.assert_array_equal(out.view(ml_dtypes.bfloat16), x + x)


def test_torch_results_are_torch_tensors_and_devices_are_refused(torch: ModuleType) -> None:
    k = jit(lambda x: x + 1)
    returned = k(FakeTensor(array(), "float32"))
    assert isinstance(returned, FakeTensor)
    np.testing.assert_array_equal(returned.held, array() + 1)
    refused("PT705", lambda: k(FakeTensor(array(), "float32", "cuda")))


# ---- outside kernels ----------------------------------------------------------------------------------------------------------------


def test_operations_outside_kernels_evaluate_arrays() -> None:
    x = array()
    np.testing.assert_allclose(pypto.exp(x), np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(pypto.add(x, 1), x + 1)
    np.testing.assert_array_equal(pypto.concat([x, x], 1), np.concatenate([x, x], 1))
    np.testing.assert_array_equal(pypto.where(x > 2, x, 0.0), np.where(x > 2, x, 0))
    np.testing.assert_array_equal(pypto.view(x, [2, 2], [1, 1]), x[1:3, 1:3])
    assert pypto.full([2, 2], 3, pypto.DT_INT32).dtype == np.int32
    target = x.copy()
    assert pypto.ldexp_(target, 2) is target
    np.testing.assert_array_equal(target, x * 4)


def test_a_tensor_of_a_kernel_does_not_leave_it() -> None:
    kept: list[Any] = []

    @jit
    def k(x: T(), out: T()):
        kept.append(x + 1)
        out[:] = x

    k(array(), array())
    refused("PT123", lambda: kept[0].shape)
    other = jit(lambda x: x + kept[0])
    refused("PT123", lambda: other(array()))
