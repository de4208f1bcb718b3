"""What each emulated call computes, against NumPy, special values included: one small kernel per row of `calls.py`."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from pypto_dsl.runtime.emulator.ascendc.kernel_library import FLAGS, GlobalArray, KernelLibrary, Number, build_library
from tests.ascendc.calls import CALLS, NUMPY, N, inputs

TEMPLATE = """
extern "C" __global__ __aicore__ void {entry}(GM_ADDR a, GM_ADDR b, GM_ADDR c, int64_t n)
{{
    TPipe pipe;
    GlobalTensor<{source}> aGm, bGm;
    GlobalTensor<{result}> cGm;
    aGm.SetGlobalBuffer((__gm__ {source}*)a, n);
    bGm.SetGlobalBuffer((__gm__ {source}*)b, n);
    cGm.SetGlobalBuffer((__gm__ {result}*)c, n);
    TBuf<TPosition::VECCALC> xBuf, yBuf, zBuf, tmpBuf;
    pipe.InitBuffer(xBuf, {n} * sizeof({source}));
    pipe.InitBuffer(yBuf, {n} * sizeof({source}));
    pipe.InitBuffer(zBuf, {n} * sizeof({result}));
    pipe.InitBuffer(tmpBuf, {n} * 16);
    LocalTensor<{source}> x = xBuf.Get<{source}>(), y = yBuf.Get<{source}>();
    LocalTensor<{result}> z = zBuf.Get<{result}>();
    LocalTensor<uint8_t> tmp = tmpBuf.Get<uint8_t>();
    DataCopy(x, aGm, n);
    DataCopy(y, bGm, n);
    PipeBarrier<PIPE_ALL>();
    {body}
    PipeBarrier<PIPE_ALL>();
    DataCopy(cGm, z, n);
    PipeBarrier<PIPE_ALL>();
}}
"""
ENTRIES = [f"call{position}_{call.name}" for position, call in enumerate(CALLS)]


@cache
def library() -> KernelLibrary:
    head = '#include "kernel_operator.h"\nusing namespace AscendC;\n'
    rows = zip(ENTRIES, CALLS, strict=True)
    kernels = (TEMPLATE.format(entry=entry, source=c.source, result=c.result, body=c.body, n=N) for entry, c in rows)
    return build_library("calls", {"calls.cpp": head + "".join(kernels)}, ENTRIES, arch=2201, optimize=0, flags=[*FLAGS, "-w"])


@pytest.mark.parametrize("position", range(len(CALLS)), ids=[f"{c.name}-{c.source}-{c.result}-{i}" for i, c in enumerate(CALLS)])
def test_call_agrees_with_numpy(position: int) -> None:
    call, rng = CALLS[position], np.random.default_rng(3)
    a, b = inputs(call.source, rng), np.roll(inputs(call.source, rng), 7)
    c = np.zeros(N, NUMPY[call.result])
    library().launch(ENTRIES[position], 1, [GlobalArray("a", a, False), GlobalArray("b", b, False), GlobalArray("c", c, True), Number(N)])
    with np.errstate(all="ignore"):
        want = np.asarray(call.reference(a, b)).astype(c.dtype).astype(np.float64)
        got = c.astype(np.float64)
        same = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) <= call.tolerance * np.abs(want))
    wrong = np.flatnonzero(~same)[:3]
    assert same.all(), f"{(~same).sum()} differ: a={a[wrong]} b={b[wrong]} got={got[wrong]} want={want[wrong]}"
