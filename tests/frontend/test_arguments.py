"""Arguments of calls: arrays of every maker, strides, overlap, and the errors raised before anything is written."""
from __future__ import annotations

import functools
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import pypto_dsl as pypto
from pypto_dsl.cli import main

F = np.float32
D, T = pypto.DYNAMIC, pypto.Tensor
jit = functools.partial(pypto.jit, target="interpreter")
TARGETS = ("interpreter", "llvm-cpu")


@pypto.jit
def double(x: T([D, 4]), out: T([D, 4])):
    out[:] = x + x


def ones(*shape: int) -> Any:
    return np.ones(shape, F)


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


@pytest.mark.parametrize("target", ["interpreter", "llvm-cpu"])
@pytest.mark.parametrize("use", [lambda x, out: x - pypto.amax(x, -1), lambda x, out: x * x.mean(-1), lambda x, out: x.sum(-1) + x,
                                 lambda x, out: x.mean(-1), lambda x, out: pypto.maximum(x, x.amin(1)), lambda x, out: x / x.prod(-1)])
def test_a_reduction_that_has_dropped_its_axis(use: Any, target: str) -> None:
    """At compile time a warning, at the call an error: both show the shapes and keepdim, neither speaks of a reshape."""

    @pypto.jit(target=target)
    def k(x: pypto.Tensor([pypto.DYNAMIC, 6]), out: pypto.Tensor([pypto.DYNAMIC, 6]), use: Any):
        out[:] = use(x, out)

    with pytest.warns(pypto.KernelWarning, match="PT318"), pytest.raises(pypto.KernelError) as caught:
        k(ones(3, 6), ones(3, 6), use)
    found = caught.value.diagnostic
    assert found.code == "PT707" and "keepdim=True" in found.help and "reshape" not in found.render()
    assert "[3, 6]" in found.notes[0] and "[3]" in found.notes[0] and "x.shape[0]" in found.message


def test_a_sum_into_a_column_is_no_mistake() -> None:
    @pypto.jit(target="interpreter")
    def k(x: pypto.Tensor([pypto.DYNAMIC, 6]), out: pypto.Tensor([pypto.DYNAMIC, 1])):
        out[:] = x.sum(-1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        k(ones(3, 6), ones(3, 1))
    assert "keeps " + "the axis" not in refused("PT707", lambda: k(ones(3, 6), ones(2, 1)))


def test_an_extent_that_must_be_a_constant() -> None:
    @pypto.jit(target="interpreter")
    def k(x: pypto.Tensor([pypto.DYNAMIC, 6]), y: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC]), out: pypto.Tensor([pypto.DYNAMIC, 6])):
        out[:] = x + y

    text = refused("PT707", lambda: k(ones(3, 6), ones(3, 5), ones(3, 6)))
    assert "the shapes are [3, 6] and [3, 5]" in text and "`y.shape[1]` of 6" in text


def test_a_whole_axis_is_filled() -> None:
    @pypto.jit(target="interpreter")
    def k(x: pypto.Tensor([pypto.DYNAMIC, 6]), out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC])):
        for i in pypto.loop(x.shape[0]):
            out[i:i + 1, :] = x[i:i + 1, :].sum(-1, True)

    out = ones(3, 1)
    k(ones(3, 6), out)
    assert (out == 6).all()
    text = refused("PT707", lambda: k(ones(3, 6), ones(3, 6)))
    assert "needs `out.shape[1]` and `1` to be equal, and they are 6 and 1" in text and "pypto.expand_clone(value, shape)" in text


def test_a_dynamic_axis_of_one_element_is_not_repeated() -> None:
    @pypto.jit(target="interpreter")
    def k(x: pypto.Tensor([pypto.DYNAMIC, 6]), y: pypto.Tensor([pypto.DYNAMIC, 6]), out: pypto.Tensor([pypto.DYNAMIC, 6])):
        out[:] = x + y

    text = refused("PT707", lambda: k(ones(3, 6), ones(1, 6), ones(3, 6)))
    assert "annotate the axis 1 or pypto.STATIC: `y.shape[0]` is only known to be 1 in this call" in text


WRONG_CALLS = {"PT702": "np.ones((3, 4), np.float64)", "PT703": "np.ones(4, np.float32)", "PT704": "np.ones((3, 5), np.float32)",
               "PT707": "np.ones((2, 4), np.float32)"}


@pytest.mark.parametrize("code", WRONG_CALLS)
def test_places_are_the_users_alone(code: str, tmp_path: Path) -> None:
    """Neither the command line's frames nor those of a thread pool are shown as where a kernel is called."""
    file = tmp_path / "k.py"
    file.write_text("import numpy as np\nimport pypto_dsl as pypto\n\n\n@pypto.jit(target='interpreter')\n"
                    "def k(x: pypto.Tensor([pypto.DYNAMIC, 4], pypto.DT_FP32), out: pypto.Tensor([pypto.DYNAMIC, 4], pypto.DT_FP32)):\n"
                    f"    out[:] = x\n\n\ndef inputs(generator):\n    return {WRONG_CALLS[code]}, np.ones((3, 4), np.float32)\n")
    done = CliRunner().invoke(main, ["run", str(file), "--target", "interpreter"], prog_name="ptc")
    assert done.exit_code == 1 and f"error[{code}]" in done.stderr, done.stderr
    places = [line for line in done.stderr.splitlines() if line.lstrip().startswith(("-->", ":::"))]
    assert places and all("k.py" in line for line in places), done.stderr
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with ThreadPoolExecutor(1) as pool, pytest.raises(pypto.KernelError) as caught:
        pool.submit(names["k"], *names["inputs"](None)).result()
    found = caught.value.diagnostic
    assert found.code == code and {label.span.file for label in (found.primary, *found.others) if label is not None} <= {str(file)}
