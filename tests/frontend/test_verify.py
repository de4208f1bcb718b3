"""Verification on the interpreter: golden data, values that are printed in a run, values that are kept in files."""
from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto

F = np.float32
D = pypto.DYNAMIC
ON = {"enable_pass_verify": True}
TARGETS = ("interpreter", "llvm-cpu")


def rows(n: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.arange(n * 4, dtype=F).reshape(n, 4)


def doubling(x: pypto.Tensor([D, 4]), n: pypto.Tensor([D]), out: pypto.Tensor([D, 4])):
    for i in pypto.loop(x.shape[0]):
        row = x[i:i + 1, :] * 2.0
        pypto.pass_verify_print("row", i, row, cond=n[i] > 0)
        pypto.pass_verify_save(row, "row_$turn_$what", cond=i == 1, turn=i, what=n[i])
        part = pypto.view(row, [1, 4], [0, 0], valid_shape=[1, 2])
        pypto.pass_verify_save(part, "part", cond=pypto.is_loop_end(i))
        out[i:i + 1, :] = row + 1.0


@pytest.mark.parametrize("target", TARGETS)
def test_values_are_printed_and_kept_in_every_turn(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = pypto.jit(doubling, target=target, verify_options={**ON, "pass_verify_save_tensor_dir": str(tmp_path)})
    for _ in range(2):
        out = np.zeros((3, 4), F)
        kernel(rows(3), np.array([1, 7, 0], np.int32), out)
        np.testing.assert_array_equal(out, rows(3) * 2 + 1)
        printed = capsys.readouterr().out
        assert printed.splitlines() == ["row 0 row [1, 4] DT_FP32", "[[0. 2. 4. 6.]]", "row 1 row [1, 4] DT_FP32", "[[ 8. 10. 12. 14.]]"]
    assert {p.name for p in tmp_path.iterdir()} == {"row_1_7.data", "row_1_7.csv", "part.data", "part.csv"}
    np.testing.assert_array_equal(np.frombuffer((tmp_path / "row_1_7.data").read_bytes(), F), rows(3)[1] * 2)
    np.testing.assert_array_equal(np.frombuffer((tmp_path / "part.data").read_bytes(), F), rows(3)[2, :2] * 2)
    assert (tmp_path / "part.csv").read_text() == 'shape,dtype\n"[1, 2]",DT_FP32\n'


def test_nothing_is_printed_unless_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    kernel, out = pypto.jit(doubling, target="interpreter"), np.zeros((2, 4), F)
    kernel(rows(2), np.ones(2, np.int32), out)
    assert not capsys.readouterr().out and not list(tmp_path.iterdir())
    assert "verify_print" in str(kernel.explain())
    with pypto.options(verify_options=ON):
        kernel(rows(2), np.ones(2, np.int32), out)
    assert capsys.readouterr().out.count("DT_FP32") == 2
    (folder,) = tmp_path.glob("output/output_*/tensor")
    assert {p.suffix for p in folder.iterdir()} == {".data", ".csv"}
    np.testing.assert_array_equal(out, rows(2) * 2 + 1)


def warned(call: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if isinstance(w.message, pypto.KernelWarning) and w.message.diagnostic.code == "PT719"]


@pytest.mark.parametrize("target", TARGETS)
def test_golden_data_is_judged_by_the_interpreter(target: str) -> None:
    @pypto.jit(target=target)
    def k(x: pypto.Tensor(), out: pypto.Tensor()):
        out[:] = x * 2.0

    x, out = rows(2), np.zeros((2, 4), F)
    right, wrong = x * 2, x * 2
    wrong[1, 2] += 1
    pypto.set_verify_golden_data(goldens=[None, right])
    assert not warned(lambda: k(x, out))
    pypto.set_verify_golden_data(goldens=[None, wrong])
    (text,) = warned(lambda: k(x, out))
    assert "`out` of k is 12 at [1, 2], and its golden data 13" in text and "the interpreter gives 12 too" in text
    assert not warned(lambda: k(x, out))
    with pypto.options(verify_options={"pass_verify_error_tol": [0.5, 0.5]}):
        pypto.set_verify_golden_data(goldens=[None, wrong])
        assert not warned(lambda: k(x, out))


def test_a_block_is_run_on_its_golden_data() -> None:
    x, out = pypto.tensor([2, 4], pypto.DT_FP32, "x"), pypto.tensor([2, 4], pypto.DT_FP32, "out")
    given, made = rows(2), np.zeros((2, 4), F)

    def block() -> None:
        with pypto.function("block", x, out):
            out[:] = x + 1.0

    pypto.set_verify_golden_data([given, made], [None, given + 1])
    assert not warned(block)
    pypto.set_verify_golden_data([given, made], [None, given])
    assert "`out` of block is 1 at [0, 0], and its golden data 0" in warned(block)[0]
    assert not made.any()
    pypto.set_verify_golden_data(goldens=[None, given])
    assert warned(lambda: pypto.runtime._device_run_once_data_from_host(given, made)) and made.any()


@pytest.mark.parametrize(("code", "use"), [
    ("PT125", lambda: pypto.pass_verify_print(1)), ("PT200", lambda: pypto.pass_verify_save(1, "x")),
])
def test_wrong_uses(code: str, use: Any) -> None:
    with pytest.raises(pypto.KernelError) as refused:
        use()
    assert refused.value.code == code
