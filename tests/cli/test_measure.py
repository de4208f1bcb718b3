"""The numbers that `ptc run` prints: errors in units of the last place, the kernel in float64, generated inputs, times."""
from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from pypto_dsl import measure
from pypto_dsl.compiler.dtypes import ALL, BF16, F16, F32, F64
from pypto_dsl.compiler.text.reader import read_graph

FLOATS = [F16, BF16, F32, F64]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("value", [1.0, 1.5, 3.0, -0.75, 1e-3, 200.0])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_ulp_counts_neighbours(dtype, value, steps):
    exact = np.asarray([value]).astype(dtype.numpy)
    moved = exact
    for _ in range(steps):
        moved = np.nextafter(moved, np.asarray(np.inf if value > 0 else -np.inf, dtype.numpy), dtype=dtype.numpy)
    found = measure.compare("x", moved, exact.astype(np.float64))
    assert found.ulp == pytest.approx(steps, abs=1e-9) and found.at == (0,)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ulp_of_subnormals_is_the_smallest_one(dtype):
    _, smallest = measure.limits(dtype)
    got = np.asarray([3 * smallest]).astype(dtype.numpy)
    assert measure.compare("x", got, np.asarray([smallest])).ulp == pytest.approx(2)
    assert measure.compare("x", got, np.zeros(1)).ulp == pytest.approx(3), "at zero too"


@pytest.mark.parametrize("got, exact, wrong", [
    (np.nan, np.nan, 0), (np.inf, np.inf, 0), (-np.inf, -np.inf, 0), (np.inf, 1e39, 0), (3.4028235e38, 3.40282351e38, 0),
    (np.nan, 1.0, 1), (1.0, np.nan, 1), (np.inf, 1.0, 1), (np.inf, -np.inf, 1), (1.0, np.inf, 1), (3.4e38, 1e39, 1),
])
def test_kinds_of_numbers(got, exact, wrong):
    found = measure.compare("x", np.asarray([got], np.float32), np.asarray([exact]))
    assert found.wrong_kind == wrong and found.ok == (wrong == 0)


def test_what_is_wrong_and_what_is_not():
    exact = np.linspace(-1, 1, 101)
    got = exact.astype(np.float32)
    assert measure.compare("x", got, exact).ok
    got[50] = 1e-6  # many ulp at zero, little beside the largest value
    found = measure.compare("x", got, exact)
    assert found.ulp > 1e6 and found.at == (50,) and found.ok
    got[3] += 0.01
    assert not measure.compare("x", got, exact).ok


def test_integers_are_compared_exactly():
    exact = np.arange(200)
    got = exact.astype(np.int32)
    assert measure.compare("n", got, exact).different == 0
    got[7] += 2
    found = measure.compare("n", got, exact)
    assert (found.different, found.ulp, found.at, found.ok) == (1, 2.0, (7,), True)
    got[:3] = -1
    assert not measure.compare("n", got, exact).ok


def test_nothing_to_compare():
    assert measure.compare("x", np.zeros((0, 4), np.float32), np.zeros((0, 4))).ok
    assert measure.compare("n", np.zeros((0,), np.int32), np.zeros((0,))).ok


TEXT = """
kernel k(%x: bf16[64], %n: i32[64]) {
  %e = exp(%x)
  %s = sum(%e, dim = 0, keepdim = True)
  %q = div(%e, %s)
  %one = constant(value = 1, dtype = i32)
  %m = add(%n, %one)
  return %q, %m
}
"""


def test_the_reference_does_not_round_to_the_kernels_dtype():
    graph = read_graph(TEXT, "k.ptir")
    wide = measure.in_float64(graph)
    assert wide is not None and {p.type.dtype.name for p in wide.parameters} == {"f64", "i32"}
    assert {p.type.dtype.name for p in graph.parameters} == {"bf16", "i32"}, "the kernel's own graph is untouched"
    x = np.linspace(-2, 2, 64).astype(ml_dtypes.bfloat16)
    found = measure.reference(graph, {"x": x, "n": np.arange(64, dtype=np.int32)}, {})
    e = np.exp(x.astype(np.float64))
    assert found["return0"].dtype == np.float64 and np.allclose(found["return0"], e / e.sum(), rtol=1e-14)
    assert found["return1"].dtype == np.int32 and found["return1"].tolist() == list(range(1, 65))


def test_bits_of_a_dtype_have_no_wide_form():
    graph = read_graph("kernel k(%x: f32[4]) { %b = bitcast(%x, dtype = i32)  return %b }", "k.ptir")
    assert measure.in_float64(graph) is None
    found = measure.reference(graph, {"x": np.ones(4, np.float32)}, {})
    assert found["return0"].tolist() == [0x3F800000] * 4


@pytest.mark.parametrize("dtype", [d for d in ALL if d.numpy_name], ids=str)
def test_generated_inputs(dtype):
    made = measure.generated((3, 5), dtype, np.random.default_rng(0))
    assert made.shape == (3, 5) and made.dtype == dtype.numpy
    assert len(np.unique(made.astype(np.float64))) > 1
    again = measure.generated((3, 5), dtype, np.random.default_rng(0))
    assert np.array_equal(made.astype(np.float64), again.astype(np.float64), equal_nan=True)


def test_seconds_takes_the_shortest_and_skips_the_first():
    calls = []
    assert 0 <= measure.seconds(lambda: calls.append(0), budget=0.0) < math.inf
    assert len(calls) == 4
