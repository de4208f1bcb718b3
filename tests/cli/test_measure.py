"""The numbers that `ptc run` prints: errors in units of the last place, the kernel in float64, generated inputs, times."""
from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from pypto_dsl import check, measure
from pypto_dsl.compiler.dtypes import ALL, BF16, F16, F32, F64, of_numpy
from pypto_dsl.compiler.text.reader import read_graph

FLOATS = [F16, BF16, F32, F64]


def judged(got, exact):
    """The verdict on a kernel that should return ``exact``, an array of its dtype, and returns ``got``."""
    shape = ", ".join(map(str, exact.shape))
    graph = read_graph(f"kernel k(%x: {of_numpy(exact.dtype)}[{shape}]) {{ return %x }}", "k.ptir")
    _, _, (verdict,) = check.given(check.Subject(lambda _: (graph, {}), lambda _: {"return0": got}, None), {"x": exact})
    return verdict


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("value", [1.0, 1.5, 3.0, -0.75, 1e-3, 200.0])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_ulp_counts_neighbours(dtype, value, steps):
    exact = np.asarray([value]).astype(dtype.numpy)
    moved = exact
    for _ in range(steps):
        moved = np.nextafter(moved, np.asarray(np.inf if value > 0 else -np.inf, dtype.numpy), dtype=dtype.numpy)
    found = judged(moved, exact)
    assert found.worst.ulp == pytest.approx(steps, abs=1e-9) and found.worst.at == (0,)
    assert found.ok == (steps == 0), "nothing on the way rounds"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ulp_of_subnormals_is_the_smallest_one(dtype):
    _, smallest = measure.limits(dtype)
    got = np.asarray([3 * smallest]).astype(dtype.numpy)
    assert judged(got, np.asarray([smallest]).astype(dtype.numpy)).worst.ulp == pytest.approx(2)
    assert judged(got, np.zeros(1, dtype.numpy)).worst.ulp == pytest.approx(3), "at zero too"


@pytest.mark.parametrize("got, exact, wrong", [
    (np.nan, np.nan, 0), (np.inf, np.inf, 0), (-np.inf, -np.inf, 0),
    (np.nan, 1.0, 1), (1.0, np.nan, 1), (np.inf, 1.0, 1), (np.inf, -np.inf, 1), (1.0, np.inf, 1),
])
def test_kinds_of_numbers(got, exact, wrong):
    found = judged(np.asarray([got], np.float32), np.asarray([exact], np.float32))
    assert found.nan_extra + found.nan_missing + found.infinite == wrong and found.ok == (wrong == 0)


def test_integers_that_nothing_rounds_are_compared_exactly():
    exact = np.arange(200, dtype=np.int32)
    got = exact.copy()
    assert judged(got, exact).ok and judged(got, exact).different == 0
    got[7] += 2
    found = judged(got, exact)
    assert (found.different, found.worst.at, found.ok) == (1, (7,), False)


@pytest.mark.parametrize("turned, ok", [(1, True), (3, False)])
def test_integers_behind_a_rounding_may_be_turned_in_one_of_a_hundred(turned, ok):
    graph = read_graph("kernel k(%x: f32[100]) { %e = exp(%x) %n = cast(%e, dtype = i32) return %n }", "k.ptir")
    x = np.linspace(0, 5, 100, dtype=np.float32)
    got = np.trunc(np.exp(x.astype(np.float64))).astype(np.int32)
    got[:turned] += 1
    _, _, (found,) = check.given(check.Subject(lambda _: (graph, {}), lambda _: {"return0": got}, None), {"x": x})
    assert (found.different, found.ok) == (turned, ok)


@pytest.mark.parametrize("got, exact, ulp, relative", [
    ([1.0, 2.0], [1.0, 2.0], 0, 0), ([1.0 + 2**-23, 4.0], [1.0, 4.0], 1, 2**-25), ([np.nan], [np.nan], 0, 0),
    ([np.inf, 1], [np.inf, 1], 0, 0),
    ([np.nan], [1.0], np.inf, np.inf), ([np.inf], [-np.inf], np.inf, np.inf), ([0.5], [0.0], 0.5 * 2**149, 0.5), ([], [], 0, 0),
])
def test_largest_error(got, exact, ulp, relative):
    found = measure.largest_error(np.asarray(got, np.float32), np.asarray(exact, np.float64))
    assert (found.ulp, found.relative) == (ulp, relative)


def test_largest_error_of_integers_is_their_difference():
    assert measure.largest_error(np.asarray([3, -8], np.int8), np.asarray([5.0, -8.0])) == measure.Error(2.0, 0.25)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_nothing_to_compare(dtype):
    assert judged(np.zeros((0, 4), dtype), np.zeros((0, 4), dtype)).ok


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
