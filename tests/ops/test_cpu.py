"""Conversions and masks on the CPU, bit for bit as the interpreter has them; tests/conformance has every operation."""
from __future__ import annotations

import numpy as np
import pytest
from machine import execute, graph_of

from pypto_dsl.compiler.dtypes import BF16, F16, F32, F64, I32, I64, U32, U64, DType
from pypto_dsl.compiler.graph import Graph, Value
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.runtime.cpu.executable import Executable


def on_the_cpu(g: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The returned values of a graph, written to outputs instead."""
    outs = {}
    for i, value in enumerate(g.returns):
        out = Value(value.type.with_dtype(value.type.dtype), f"out{i}")
        g.parameters.append(out)
        g.outputs[out.name] = value
        outs[out.name] = np.zeros([e.evaluate({}) for e in value.type.shape], value.type.dtype.numpy)
    g.returns = []
    Executable(lower(g, "llvm-cpu")).run({**{f"p{i}": a for i, a in enumerate(arrays)}, **outs}, {})
    return list(outs.values())


@pytest.mark.parametrize("target", (F32, F16, BF16), ids=str)
@pytest.mark.parametrize("source", (I32, I64, U32, U64, F64), ids=str)
def test_conversions_round_once(source: DType, target: DType) -> None:
    """To 16 bits directly, not by way of a rounded f32."""
    rng = np.random.default_rng(9)
    if source is F64:
        ties = rng.normal(size=200).astype(np.float32).astype(target.numpy).astype(np.float64)
        gap = np.abs(ties) * 2.0 ** -target.mantissa
        x = np.concatenate([ties + gap, ties + gap * (1 + 1e-10), ties + gap * (1 - 1e-10), rng.normal(size=100) * 1e-7])
    else:
        top = source.range[1]
        near = [(1 << k) + (1 << (k - p)) + s for k in (20, 24, 30, 40, 62) for p in (8, 11, 24) if k > p for s in (-1, 0, 1)]
        x = np.array([v for v in near if v <= top], dtype=source.numpy)
        x = np.concatenate([x, rng.integers(0, top, 300, dtype=source.numpy, endpoint=True)])
    g = graph_of(lambda p: REGISTRY["cast"](p, target), x)
    (want,) = execute(g, x)
    (got,) = on_the_cpu(g, [x])
    different = np.flatnonzero(got.view(f"u{got.itemsize}") != want.view(f"u{got.itemsize}"))
    assert not different.size, (x[different[:3]], got[different[:3]], want[different[:3]])


@pytest.mark.parametrize("name", ["lt", "eq", "logical_and", "isnan", "signbit", "isclose", "logical_not"])
def test_masks_that_follow_the_operand_are_numbers(name: str) -> None:
    """Under the ttnn rules a mask is 0 and 1 in the operand's dtype."""
    count = len(REGISTRY[name].operands)
    x, y = np.array([1.0, -2.0, 3.0, 0.0], np.float32), np.array([2.0, 2.0, 3.0, 0.0], np.float32)
    g = graph_of(lambda *p: REGISTRY[name](*p), *[x, y][:count], rules="ttnn")
    (want,) = execute(g, *[x, y][:count])
    (got,) = on_the_cpu(g, [x, y][:count])
    assert got.dtype == np.float32 and got.tolist() == want.tolist() and set(want.tolist()) <= {0.0, 1.0}
