"""Helps that name what is meant: the targets there are, the nearest codes, the constant of the text form, the shape of a loop's tensor."""
from __future__ import annotations

import numpy as np
import pytest
from cli_files import EXAMPLES

import pypto_dsl as pypto
from pypto_dsl.compiler import targets

DYNAMIC = pypto.Tensor([pypto.DYNAMIC, 8], pypto.DT_FP32)


def test_compile_without_a_target_lists_them(ptc, tmp_path):
    done = ptc("compile", EXAMPLES / "softmax.py", "-o", tmp_path / "out")
    assert done.code == 2 and all(name in done.err for name in targets.names())


@pytest.mark.parametrize(("code", "near"), [("PT9999", "PT901"), ("PT2O3", "PT203"), ("PTX", "PT101"), ("pt29", "PT209")])
def test_a_code_that_is_none_names_codes_near_it(ptc, code, near):
    done = ptc("explain", code)
    assert done.code == 2 and f"there is no code {code.upper()}; near it are" in done.err
    assert near in done.err and "docs/errors.md" in done.err


@pytest.mark.parametrize("number", ["2.0", "2"])
def test_a_number_among_operands_of_a_text_is_told_of_constants(ptc, tmp_path, number):
    file = tmp_path / "k.ptir"
    file.write_text(f"kernel k(%x: f32[4]) {{\n  %a = mul(%x, {number})\n  return %a\n}}\n")
    done = ptc("opt", file, "--pass", "promote")
    assert done.code == 1 and f"write %number = constant(value = {number}) on a line above" in done.err
    file.write_text(f"kernel k(%x: f32[4]) {{\n  %number = constant(value = {number})\n  %a = mul(%x, %number)\n  return %a\n}}\n")
    assert ptc("opt", file, "--pass", "promote").code == 0


@pytest.mark.parametrize(("made", "told"), [
    (lambda x, i: x[i:i + 1, :], "total = pypto.full([1, 8], 0.0, pypto.DT_FP32)"),
    (lambda x, i: x > 1.0, "total = pypto.full([x.shape[0], 8], False, pypto.DT_BOOL)"),
    (lambda x, i: pypto.cast(x, pypto.DT_INT16), "total = pypto.full([x.shape[0], 8], 0, pypto.DT_INT16)")])
def test_a_loop_that_makes_a_tensor_of_none_is_told_its_shape_and_dtype(made, told):
    @pypto.jit
    def k(x: DYNAMIC, out: DYNAMIC):
        total = None
        for i in pypto.loop(x.shape[0]):
            total = made(x, i) if total is None else total
        out[:] = total

    with pytest.raises(pypto.KernelError) as refused:
        k(np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32))
    found = refused.value.diagnostic
    assert found.code == "PT143" and found.help == f"give it its final shape and dtype before the loop: {told}"


def test_extents_in_types_are_named_as_the_kernel_names_them():
    @pypto.jit
    def k(x: DYNAMIC, out: DYNAMIC):
        out[:] = pypto.concat([x, x], 1)

    with pytest.raises(pypto.KernelError) as refused:
        k(np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32))
    text = refused.value.diagnostic.render()
    assert "f32[x.shape[0], 16] is made here" in text and "x_d0" not in text
