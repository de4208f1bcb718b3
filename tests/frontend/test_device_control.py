"""Loops, branches, guards and element reads of device programs: emitted hosts drive the kernels, and the emulators agree with NumPy."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.codegen.ascendc.emit import emit as emit_ascend
from pypto_dsl.codegen.ttmetal import emit as emit_ttmetal
from pypto_dsl.compiler import pipeline, targets
from pypto_dsl.runtime.emulator.ascendc.host import run_host

F32, I32, D, T = pypto.DT_FP32, pypto.DT_INT32, pypto.DYNAMIC, pypto.Tensor
Array = np.ndarray[Any, np.dtype[Any]]
ASCEND, WORMHOLE = "ascend-a2-emu", "tt-wormhole-emu"


def rows_with_a_tail(x: T([D, 64], F32), out: T([D, 64], F32)):
    n = x.shape[0]
    for i in pypto.loop((n + 31) // 32):
        tile = pypto.view(x, [32, 64], [i * 32, 0], valid_shape=[pypto.min(n - i * 32, 32), 64])
        pypto.assemble(pypto.softmax(tile, -1), [i * 32, 0], out)


def a_branch_in_a_loop(x: T([4, 32, 64], F32), out: T([32, 64], F32)):
    s = pypto.full([32, 64], 0.5, F32)
    for i in pypto.loop(4):
        if i > 1:
            s = s + pypto.exp(x[i])
        else:
            s = s * 2.0 + x[i]
    out[:] = s


def chained_comparisons(x: T([D, 32, 32], F32), out: T([32, 32], F32)):
    out[:] = 0.0
    for i in pypto.loop(x.shape[0]):
        if 1 <= i < 3:
            out[:] = out + x[i]


def a_float_decides(x: T([2, 32, 32], F32), out: T([32, 32], F32)):
    if x[0, 0, 0] > 0.25:
        out[:] = x[0] * 2.0
    else:
        out[:] = x[1]


def counts_from_a_tensor(x: T([4, 64, 32], F32), n: T([4], I32), out: T([4, 32, 32], F32)):
    for b in pypto.loop(4):
        s = pypto.full([32, 32], 0.0, F32)
        for j in pypto.loop(n[b]):
            s = s + x[b, j * 32:j * 32 + 32, :]
        out[b] = s


def a_product_in_a_loop(a: T([3, 32, 64], pypto.DT_BF16), b: T([64, 96], pypto.DT_BF16), out: T([3, 32, 96], F32)):
    pypto.set_cube_tile_shapes([32, 32], [64, 64], [32, 32])
    for i in pypto.loop(3):
        out[i] = pypto.matmul(a[i], b, pypto.DT_FP32)


def part_of_an_output(x: T([64, 32], F32), out: T([96, 32], F32)):
    for i in pypto.loop(1, 3):
        out[i * 32:i * 32 + 32, :] = -x[i * 32 - 32:i * 32, :]


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@dataclass(frozen=True)
class Case:
    function: Callable[..., None]
    arrays: tuple[Array, ...]
    want: Array
    before: float = 7.0  # what the output holds before the call


def cases() -> list[Case]:
    x, y, z, w, v = random(70, 64), random(4, 32, 64), random(5, 32, 32), random(4, 64, 32), random(64, 32)
    n = np.array([2, 0, 1, 2], np.int32)
    branch = y[1] + 2 * (y[0] + 2 * 0.5)
    sums = np.stack([sum((w[b, j * 32:j * 32 + 32] for j in range(n[b])), np.zeros((32, 32), np.float32)) for b in range(4)])
    positive, negative = z[:2].copy(), z[:2].copy()
    positive[0, 0, 0], negative[0, 0, 0] = 1, -1
    a, b = random(3, 32, 64).astype(pypto.DT_BF16.numpy), random(64, 96).astype(pypto.DT_BF16.numpy)
    return [
        Case(rows_with_a_tail, (x,), softmax(x)),
        Case(rows_with_a_tail, (x[:64],), softmax(x[:64])),
        Case(rows_with_a_tail, (x[:0],), x[:0]),
        Case(a_branch_in_a_loop, (y,), branch + np.exp(y[2]) + np.exp(y[3])),
        Case(chained_comparisons, (z,), z[1] + z[2]),
        Case(a_float_decides, (positive,), positive[0] * 2),
        Case(a_float_decides, (negative,), negative[1]),
        Case(counts_from_a_tensor, (w, n), sums),
        Case(a_product_in_a_loop, (a, b), a.astype(np.float32) @ b.astype(np.float32)),
        Case(part_of_an_output, (v,), np.concatenate([np.full((32, 32), 7, np.float32), -v])),
    ]


CASES = cases()
NAMES = [f"{i}-{c.function.__name__}" for i, c in enumerate(CASES)]


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

    with pytest.raises(pypto.KernelError, match="not a multiple of 32") as caught:
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
