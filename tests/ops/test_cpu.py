"""Operations on the CPU: what it lowers natively, by expansion or on the host agrees with the reference within the bound."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machine import evaluate, execute, graph_of
from samples import accepted, elementwise_names, operands
from test_expansion_graph import CASES as SHAPED
from test_expansion_graph import operand_arrays, recorded, taken
from test_expansions import compare

from pypto_dsl.compiler.dtypes import BF16, F16, F32, F64, I32, I64, U32, U64, DType
from pypto_dsl.compiler.graph import Graph, Value
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.runtime.cpu.executable import Executable

COMPOSITE = [n for n in elementwise_names() if not REGISTRY[n].is_primitive]
CASES = [(n, d) for n in COMPOSITE for d in (F32, BF16, I32) if d in accepted(REGISTRY[n])]


def compiled(name: str, dtype: DType) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Operands and the CPU's results."""
    definition = REGISTRY[name]
    arrays = operands(definition, dtype, np.random.default_rng(len(name)))
    return arrays, on_the_cpu(graph_of(lambda *p: definition(*p), *arrays), arrays)


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


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=[f"{n}-{d}" for n, d in CASES])
def test_the_cpu_agrees(name: str, dtype: DType) -> None:
    arrays, made = compiled(name, dtype)
    want = evaluate(name, *arrays)
    for got, wanted in zip(made, want if isinstance(want, list) else [want], strict=True):
        compare(name, got, wanted, arrays)


MOVED = [(n, a, d) for n, a in SHAPED if (n, F32) not in CASES and n not in ("load_scalar", "insert", "view")
         for d in (F32, BF16, I32) if taken(n, d, a)]
NAMES = ["-".join([n, str(d), *map(str, a.values())]) for n, a, d in MOVED]


@pytest.mark.parametrize(("name", "attributes", "dtype"), MOVED, ids=NAMES)
def test_operations_with_shapes_of_their_own(name: str, attributes: dict[str, Any], dtype: DType) -> None:
    """Reductions, scans, sorts, indexing, arrangement, attention: the CPU's result is the interpreter's, up to the order of sums."""
    rng = np.random.default_rng(6)
    arrays = [rng.integers(0, 4, a.shape).astype(a.dtype) if a.dtype.kind in "iu" else
              (rng.normal(size=a.shape) + 2).astype(np.float32).astype(a.dtype) if a.dtype != bool else a
              for a in operand_arrays(name, dtype)]
    g = recorded(name, dtype, attributes)
    want = execute(g, *arrays)
    for got, wanted in zip(on_the_cpu(g, arrays), want, strict=True):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        if got.dtype.kind in "biu":
            np.testing.assert_array_equal(got, wanted)
        else:
            tolerance = 1e-2 if got.dtype.itemsize <= 2 else 2e-6
            np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance)


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
