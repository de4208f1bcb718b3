"""Reports whose rows concern emitted sources and plans: alignment, tails, masks, live extents, buffers that share bytes."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto_dsl as pypto
from pypto_dsl.codegen import ascendc, ttmetal
from pypto_dsl.compiler import pipeline
from pypto_dsl.compiler.dtypes import F32
from pypto_dsl.compiler.index import as_index
from pypto_dsl.compiler.placement.ascend import allocate
from pypto_dsl.compiler.placement.ascend.lifetimes import Lifetime
from pypto_dsl.compiler.placement.ascend.machine import machine
from pypto_dsl.compiler.targets import load
from pypto_dsl.compiler.tile_ir.nodes import Buffer
from pypto_dsl.runtime.emulator.ascendc import runner as ascend_runner
from pypto_dsl.runtime.emulator.ttmetal import runner as ttmetal_runner

BF16 = ml_dtypes.bfloat16
EMULATED = ("ascend-a2-emu", "tt-wormhole-emu")


@pytest.mark.parametrize("target", EMULATED)
def test_b01_floors_on_the_devices(target: str) -> None:
    @pypto.jit
    def k(x, q, r):
        q[:] = x // -2
        r[:] = x % -2

    x = np.arange(-5, 6, dtype=np.int32).reshape(1, 11)
    q, r = np.zeros_like(x), np.zeros_like(x)
    k.run(x, q, r, target=target)
    assert q.tolist() == [[2, 2, 1, 1, 0, 0, -1, -1, -2, -2, -3]] and r.tolist() == [[-1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1]]


@pytest.mark.parametrize("target", EMULATED)
def test_b47_sums_packed_to_bf16(target: str) -> None:
    @pypto.jit
    def k(x, out):
        out[:] = pypto.sum(x, -1, True)

    x = np.array([[1.265625, 1.7890625, 0.271484375, 1.671875]], np.float32).astype(BF16)
    out = np.zeros((1, 1), BF16)
    k.run(x, out, target=target)
    assert out.astype(np.float32) == 5.0


@pytest.mark.parametrize(("shape", "dtype"), [((1024, 100), np.int16), ((65, 33), np.int32), ((64, 33), np.float32)])
def test_b57_rows_of_any_length(shape: tuple[int, int], dtype: Any) -> None:
    """The emulator stops at operands that are not aligned to 32 bytes and at copies of other lengths; every row starts aligned."""
    @pypto.jit
    def k(x, out):
        out[:] = ~x if np.issubdtype(dtype, np.integer) else -x

    x = np.random.default_rng(0).integers(-999, 999, shape).astype(dtype)
    out = np.zeros_like(x)
    k.run(x, out, target="ascend-a2-emu")
    np.testing.assert_array_equal(out, ~x if np.issubdtype(dtype, np.integer) else -x)


@pytest.mark.parametrize("target", EMULATED)
def test_b61_masked_lanes_are_not_read(target: str) -> None:
    """A window that begins before the tensor's end and reaches beyond it: the emulators stop at any access outside."""
    @pypto.jit
    def k(x, out):
        tail = pypto.view(x, [64, 64], [64, 0], valid_shape=[36, 64])
        out[0:36, :] = pypto.where(tail > 0.0, tail, 0.0)[0:36, :]

    x = np.random.default_rng(0).normal(size=(100, 64)).astype(np.float32)
    out = np.zeros((64, 64), np.float32)
    try:
        k.run(x, out, target=target)
    except pypto.KernelError as no:  # a window that is no multiple of the target's tiles is refused, never read
        assert no.code in ("PT503", "PT521", "PT522"), no
        return
    np.testing.assert_array_equal(out[:36], np.maximum(x[64:], 0))
    assert not out[36:].any()


@pytest.mark.parametrize("target", ["interpreter", "llvm-cpu"])
def test_b65_live_extents_go_through(target: str) -> None:
    """Three live rows of eight stay three through cast, negation, product and row sum; what is dead is NaN and is never seen."""
    @pypto.jit
    def k(x, out):
        tail = pypto.view(x, [8, 256], [5, 0], valid_shape=[3, 256])
        narrowed = pypto.cast(tail, pypto.DT_FP16)
        total = pypto.sum(pypto.cast(-narrowed, pypto.DT_FP32) * 2.0, -1, True)
        assert [v.concrete() if hasattr(v, "concrete") else v for v in total.valid_shape] == [3, 1]
        pypto.assemble(total, [0, 0], out)

    x = np.random.default_rng(0).normal(size=(8, 256)).astype(np.float32)
    x[:5] = np.nan
    out = np.full((8, 1), 7, np.float32)
    k.run(x, out, target=target)
    want = (-x[5:].astype(np.float16)).astype(np.float64).sum(-1) * 2
    np.testing.assert_allclose(out[:3, 0], want, rtol=1e-4)
    assert (out[3:] == 7).all()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(1, 900)), min_size=1, max_size=16))
def test_b99_live_buffers_do_not_overlap(intervals: list[tuple[int, int, int]]) -> None:
    """Random lifetimes: no two buffers that live at one time share a byte, by brute force over pairs; and all lie in the arena."""
    chip = machine(load("ascend-a2"))
    buffers = [Buffer(f"b{i}", F32, (as_index(1), as_index(n)), layout="row", pitch=n, elements=n) for i, (_, _, n) in enumerate(intervals)]
    alive = {f"b{i}": Lifetime(first, first + length) for i, (first, length, _) in enumerate(intervals)}
    offsets, arena = allocate._packed(buffers, alive, chip)
    spans = {b.name: (offsets[b.name], offsets[b.name] + b.elements * 4) for b in buffers}
    for i, one in enumerate(buffers):
        assert spans[one.name][0] >= 0 and spans[one.name][1] <= arena and spans[one.name][0] % 32 == 0
        for other in buffers[:i]:
            apart = spans[one.name][1] <= spans[other.name][0] or spans[other.name][1] <= spans[one.name][0]
            assert apart or not alive[one.name].overlaps(alive[other.name])


@pytest.mark.parametrize(("target", "written", "edited"), [("ascend-a2", "2.5f", "3.5f"), ("tt-wormhole", "0x40200000", "0x40600000")])
def test_b85_an_edit_of_an_emitted_kernel_takes_effect(target: str, written: str, edited: str) -> None:
    """Built again in the same process, a file of the same name with another text is another kernel; the first one is what it was."""
    x, out = np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32)

    @pypto.jit
    def k(x, out):
        out[:] = x * 2.5

    device = load(target)
    program = pipeline.lower(k.graph(x, out), device)
    emitted = ascendc.emit(program, device) if device.family == "ascend" else ttmetal.emit(program, device)
    changed = {name: text.replace(written, edited) for name, text in emitted.files.items()}
    assert changed != emitted.files
    results = []
    for files in (emitted.files, changed, emitted.files):
        run = ascend_runner.run if device.family == "ascend" else ttmetal_runner.run
        found = run(emitted.manifest, files, {"x": x, "out": out})
        results.append(float(np.unique(found["out"]).item()))
    assert results == [2.5, 3.5, 2.5]
