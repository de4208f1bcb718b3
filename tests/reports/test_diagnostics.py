"""Reports whose rows are messages: an error with its code, its place, a reason and a way out; and what must not be an error."""
from __future__ import annotations

import textwrap
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler import catalogue
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.targets import load, names

F, U64 = pypto.DT_FP32, pypto.DT_UINT64
SHAPE = [128, 128]
DEVICES = [n for n in names() if load(n).family in ("ascend", "ttmetal")]


def refused(function: Any, code: str) -> KernelError:
    """The error, which has a place in this file, a message and a help."""
    with pytest.raises(KernelError) as caught:
        function()
    found = caught.value.diagnostic
    assert found.code == code and found.message and found.help
    return caught.value


@pytest.mark.parametrize("target", DEVICES)
def test_b11_shifts_of_64_bits(target: str) -> None:
    @pypto.jit
    def k(x: pypto.Tensor([128], U64), out: pypto.Tensor([128], U64)):
        out[:] = x >> 3

    error = refused(lambda: k.source(target), "PT502")
    assert "u64" in str(error) and target in str(error) and "x >> 3" in error.diagnostic.render()
    out = np.zeros(128, np.uint64)
    k(np.full(128, 1 << 40, np.uint64), out)
    assert (out == 1 << 37).all()


def test_b49_scratch_is_the_compilers() -> None:
    """Row maxima take no scratch, anywhere; one that is passed is an argument too many."""
    @pypto.jit
    def k(x: pypto.Tensor([16, 128], F), out: pypto.Tensor([16, 1], F)):
        out[:] = pypto.amax(x, -1, True)

    x = np.random.default_rng(0).normal(size=(16, 128)).astype(np.float32)
    for target in ("llvm-cpu", "ascend-a2-emu", "tt-wormhole-emu"):
        out = np.zeros((16, 1), np.float32)
        k.run(x, out, target=target)
        np.testing.assert_array_equal(out, x.max(-1, keepdims=True))

    @pypto.jit
    def scratch(x, tmp, out):
        out[:] = pypto.amax(x, -1, True, tmp)

    refused(lambda: scratch(x, x, np.zeros((16, 1), np.float32)), "PT111")


def test_b63_lengths_that_differ() -> None:
    @pypto.jit
    def k(x, y, out):
        out[:] = x > y

    error = refused(lambda: k(np.zeros(256, np.float32), np.zeros(128, np.float32), np.zeros(256, bool)), "PT301")
    assert "[256]" in str(error) and "[128]" in str(error) and "x > y" in str(error)


@pytest.mark.parametrize(("body", "code"), [
    ("out[:] = pypto.view(x, [4, 4], [0])", "PT310"),
    ("out[0:4, :] = x[2:9, :]", "PT314"),
    ("out[:] = x[99:100, :]", "PT311"),
    ("out[:] = x[0:8:2, :]", "PT133"),
    ("out[:] = x[[1, 2], :]", "PT131"),
    ("out[:] = x[0, 0, 0]", "PT130"),
    ("out[:] = x[9, :]", "PT132"),
    ("pypto.assemble(x, [0], out)", "PT312"),
])
def test_b89_rules_of_windows(body: str, code: str) -> None:
    """Each with what, where, why and a fix, and with a page."""
    scope: dict[str, Any] = {"pypto": pypto}
    exec(f"@pypto.jit\ndef k(x, out):\n    {body}\n", scope)
    with pytest.raises(KernelError) as caught:
        scope["k"](np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32))
    found = caught.value.diagnostic
    assert found.code == code and found.help and found.primary is not None, found
    page = next(entry for family in catalogue.families() for entry in family.entries if entry.code == code)
    assert page.cause and page.fix


def test_b91_two_names_for_one_index() -> None:
    @pypto.jit
    def k(x, out):
        for i, j in pypto.loop(64):
            out[i:i + 1, :] = x[j:j + 1, :]

    error = refused(lambda: k(np.zeros((64, 2), np.float32), np.zeros((64, 2), np.float32)), "PT124")
    assert "is one integer" in str(error) and "pypto_dsl" not in error.diagnostic.render()


def test_b93_a_shape_from_the_scope_around() -> None:
    @pypto.jit
    def k(x: pypto.Tensor(SHAPE, F), out: pypto.Tensor(SHAPE, F)):
        out[:] = x + 1

    out = np.zeros(SHAPE, np.float32)
    k(np.zeros(SHAPE, np.float32), out)
    assert (out == 1).all()
    refused(lambda: k(np.zeros((128, 64), np.float32), np.zeros((128, 64), np.float32)), "PT704")


def test_b95_bits_of_floats_and_narrow_accumulators() -> None:
    """Our error, not a compiler's; a bf16 product accumulates in f32 and rounds once."""
    @pypto.jit
    def k(x, y, out):
        out[:] = x & y

    zeros = np.zeros(3, np.float32)
    refused(lambda: k(zeros, zeros, zeros.copy()), "PT203")

    @pypto.jit
    def product(a, b, out):
        out[:] = pypto.matmul(a, b, pypto.DT_BF16)

    bf16 = ml_dtypes.bfloat16
    out = np.zeros((2, 2), bf16)
    product(np.ones((2, 4096), bf16), np.full((4096, 2), 1 / 16, bf16), out)
    assert (out.astype(np.float32) == 256).all()


def test_b97_kernels_without_a_file() -> None:
    """A lambda runs; an error in text from exec or from a notebook's cell names that text."""
    double = pypto.jit(lambda x, out: out.move(x * 2))
    out = np.zeros(3, np.float32)
    double(np.ones(3, np.float32), out)
    assert out.tolist() == [2.0] * 3
    for name in ("<string>", "<ipython-input-7-0123456789ab>"):
        scope: dict[str, Any] = {"pypto": pypto}
        exec(compile("@pypto.jit\ndef k(x, out):\n    out[:] = x & 1.5\n", name, "exec"), scope)
        with pytest.raises(KernelError) as caught:
            scope["k"](np.ones(3, np.float32), out)
        assert caught.value.code == "PT203" and f"{name}:3" in str(caught.value)


def test_b101_exec_and_nested_parentheses() -> None:
    def chosen(x: str) -> str:
        return x

    @pypto.jit(precision=chosen(max(("exact", "a"), key=lambda pair: (len(pair)))), lint=(chosen("off")))
    def k(x, out):
        out[:] = x + (1 + (1))

    scope: dict[str, Any] = {"pypto": pypto}
    exec(textwrap.dedent("""
        @pypto.jit(lint=("off"))
        def made(x, out):
            out[:] = x + 2
    """), scope)
    for kernel in (k, scope["made"]):
        out = np.zeros(3, np.float32)
        kernel(np.ones(3, np.float32), out)
        assert out.tolist() == [3.0] * 3
    exec("@pypto.jit\ndef looped(x, out):\n    for i in pypto.loop(3):\n        out[:] = x + 1\n", scope)
    refused(lambda: scope["looped"](np.ones(3, np.float32), np.zeros(3, np.float32)), "PT142")
