"""Loops, branches, guards and element reads of device programs: emitted hosts drive the kernels, and the emulators agree with NumPy."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.codegen.ascendc import host as ascend_host
from pypto_dsl.codegen.ascendc.emit import emit as emit_ascend
from pypto_dsl.codegen.ttmetal import emit as emit_ttmetal
from pypto_dsl.codegen.ttmetal import host as ttmetal_host
from pypto_dsl.compiler import pipeline, targets
from pypto_dsl.compiler.conditions import CONDITIONS
from pypto_dsl.runtime.emulator.ascendc.host import run_host
from tests.frontend.device_kernels import CASES, F32, I32, NAMES, Case, T, random

ASCEND, WORMHOLE = "ascend-a2-emu", "tt-wormhole-emu"


@pytest.mark.parametrize("target", [ASCEND, WORMHOLE])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_emulated_result(case: Case, target: str) -> None:
    out = np.full(case.want.shape, case.before, np.float32)
    pypto.jit(case.function, target=target)(*case.arrays, out)
    np.testing.assert_allclose(out, case.want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_ascend_host_program_gives_the_same(case: Case, tmp_path: Path) -> None:
    kernel, target = pypto.jit(case.function), targets.load("ascend-a2")
    emitted = emit_ascend(pipeline.lower(kernel.graph(*case.arrays, case.want), target), target)
    out = np.full(case.want.shape, case.before, np.float32)
    values = {}
    for row, array in zip(emitted.manifest["arguments"], (*case.arrays, out), strict=True):
        (tmp_path / f"{row['name']}.bin").write_bytes(array.tobytes())
        values.update(zip(row["shape"], array.shape, strict=True))
    scalars = [values[s["name"]] for s in emitted.manifest["scalars"] if s["value"] is None]
    done = run_host(emitted.manifest, emitted.files, tmp_path, scalars)
    assert done.returncode == 0, done.stderr
    got = np.frombuffer((tmp_path / "out.bin").read_bytes(), np.float32).reshape(case.want.shape)
    np.testing.assert_allclose(got, case.want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_ttnn_host_program_is_python(case: Case) -> None:
    target = targets.load("tt-wormhole")
    text = emit_ttmetal(pipeline.lower(pypto.jit(case.function).graph(*case.arrays, case.want), target), target).files["host.py"]
    compile(text, "host.py", "exec")


@pytest.mark.parametrize("target", [ASCEND, WORMHOLE])
def test_a_guard_stops_before_the_kernel(target: str) -> None:
    @pypto.jit(target=target)
    def k(x: T([32, 32], F32), n: T([1], I32), out: T([64, 32], F32)):
        for i in pypto.loop(n[0]):
            pypto.assemble(x, [i * 32, 0], out)

    x, out = random(32, 32), np.zeros((64, 32), np.float32)
    k(x, np.array([2], np.int32), out)
    assert (out == np.concatenate([x, x])).all()
    with pytest.raises(pypto.KernelError) as caught:
        k(x, np.array([3], np.int32), out)
    assert caught.value.code == "PT710"


def test_tiles_of_a_view_start_where_tiles_of_its_tensor_do() -> None:
    @pypto.jit(target=WORMHOLE)
    def k(x: T([64, 32], F32), out: T([16, 32], F32)):
        for i in pypto.loop(1):
            out[:] = x[i + 8:i + 24, :]

    with pytest.raises(pypto.KernelError, match="starts at 8, and may start at multiples of 32") as caught:
        k(random(64, 32), np.zeros((16, 32), np.float32))
    assert caught.value.code == "PT521"


def test_rows_beyond_the_last_of_a_matrix_are_not_the_next_matrix() -> None:
    """Tiles of [2, 48, 32] do not go on from matrix to matrix, so that rows 32 to 96 of its 96 are no window of it."""
    @pypto.jit(target=WORMHOLE)
    def k(x: T([2, 48, 32], F32), out: T([64, 32], F32)):
        flat = pypto.reshape(x, [96, 32])
        for i in pypto.loop(1):
            out[:] = flat[i + 32:i + 96, :]

    with pytest.raises(pypto.KernelError) as caught:
        k(random(2, 48, 32), np.zeros((64, 32), np.float32))
    assert caught.value.code in ("PT521", "PT522")


@pytest.mark.parametrize("target", ["ascend-a2", "tt-wormhole"])
def test_operations_without_a_kernel_are_refused(target: str) -> None:
    @pypto.jit
    def k(x: T([4, 32], F32), out: T([4, 32], F32)):
        for _ in pypto.loop(2):
            out[:] = pypto.sort(x, -1)[0]

    with pytest.raises(pypto.KernelError) as caught:
        pipeline.lower(k.graph(random(4, 32), random(4, 32)), target)
    assert caught.value.code in ("PT502", "PT503")


def test_both_host_languages_spell_every_condition() -> None:
    assert ascend_host.CONDITIONS.keys() == ttmetal_host.CONDITIONS.keys() == CONDITIONS
