"""Kernels on the CPU against NumPy in float64: every shape class, static and symbolic, special values."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_programs import KERNELS, Executable, Kernel, R, arguments, assert_within, executable, graph, lower, run

from pypto_dsl.compiler.dtypes import F32
from pypto_dsl.runtime.cpu import jit

EXTENTS = [(1, 1, 1), (1, 100, 7), (3, 64, 64), (5, 257, 3), (33, 130, 70), (300, 17, 20), (7, 4097, 9), (600, 3, 130)]
TAILS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 79, 80, 81, 127, 128, 129, 191, 193, 255, 256, 257]


@pytest.mark.parametrize("name", KERNELS)
def test_symbolic_extents(name: str) -> None:
    """One kernel for all shapes."""
    program = executable(name)
    for m, n, k in EXTENTS:
        arrays, scalars = arguments(name, {"M": m, "N": n, "K": k})
        assert_within(name, run(name, arrays, scalars, program), arrays, scalars)


@pytest.mark.parametrize("name", KERNELS)
def test_every_tail(name: str) -> None:
    program = executable(name)
    for n in TAILS:
        extents = {"M": 2, "N": n, "K": n}
        arrays, scalars = arguments(name, extents, n)
        assert_within(name, run(name, arrays, scalars, program), arrays, scalars)


@pytest.mark.parametrize("name", KERNELS)
def test_static_extents_give_the_bits_of_symbolic_ones(name: str) -> None:
    for m, n, k in EXTENTS:
        extents = {"M": m, "N": n, "K": k}
        arrays, scalars = arguments(name, extents)
        static = run(name, arrays, scalars, executable(name, tuple(extents.items())))
        assert static.tobytes() == run(name, arrays, scalars, executable(name)).tobytes(), extents


@pytest.mark.parametrize("name", [n for n in KERNELS if n not in ("row_max", "column_max")])
@pytest.mark.parametrize(("m", "n"), [(0, 5), (5, 0), (0, 0)])
def test_empty_tensors(name: str, m: int, n: int) -> None:
    """Nothing is read or written out of bounds; sums of nothing are 0, products over no k are the epilogue of 0."""
    program = executable(name)
    arrays, scalars = arguments(name, {"M": m, "N": n, "K": 0})
    out = run(name, arrays, scalars, program)
    if name in ("column_sum", "row_sum"):
        assert (out == 0).all()


@pytest.mark.parametrize("level", [level.name for level in jit.host_levels()])
@pytest.mark.parametrize("name", ["gelu_erf", "gelu_tanh", "log_c", "pow_cold", "sin_far", "silu_everywhere", "fma_v4f32", "sum_f32_push"])
def test_kernels_may_have_the_names_of_the_library_s_parts(name: str, level: str) -> None:
    def every(x: Any) -> Any:
        return R["sum"](R["add"](R["gelu"](R["log"](x)), R["add"](R["silu"](x), R["pow"](R["sin"](x), x))), 1)

    program = lower(graph(name, Kernel(every, (("x", F32, ("M", "N")),), np.sum, 0)))
    assert Executable(program, level=level).text


def test_large_tensors() -> None:
    for name in ("add", "softmax", "column_sum", "row_sum", "swiglu"):
        arrays, scalars = arguments(name, {"M": 700, "N": 3001})
        assert_within(name, run(name, arrays, scalars, executable(name)), arrays, scalars)


SPECIAL = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 1.1754944e-38, 0.5], np.float32)


@pytest.mark.parametrize("level", [None, "avx2", "baseline"])
@pytest.mark.parametrize("name", ["add", "pow_tensor", "row_and_column", "row_max", "column_max", "tril", "pow_literal", "square"])
def test_special_values(name: str, level: str | None) -> None:
    if level is not None and level not in {entry.name for entry in jit.host_levels()}:
        pytest.skip(f"this processor has no {level}")
    program = executable(name, (), level)
    x, y = (g.copy() for g in np.meshgrid(SPECIAL, SPECIAL))
    names = [p for p, _, shape in KERNELS[name].parameters if shape]
    arrays = dict(zip(names, (x, y), strict=False))
    if name == "row_and_column":
        arrays = {"r": SPECIAL[None, :].copy(), "c": SPECIAL[:, None].copy()}
    assert_within(name, run(name, arrays, {"a": 2.5}, program), arrays, {"a": 2.5})


def test_extremes_propagate_nan_and_order_zeros() -> None:
    for name, axis in (("row_max", 1), ("column_max", 0)):
        x = np.full((70, 70), -1, np.float32)
        x[3, 5] = np.nan
        got = run(name, {"x": x}, {}, executable(name))
        lane = 3 if axis == 1 else 5
        assert np.isnan(got[lane]) and not np.isnan(np.delete(got, lane)).any()
        zeros = np.full((70, 70), -0.0, np.float32)
        assert np.signbit(run(name, {"x": zeros}, {}, executable(name))).all()
        zeros[40, 40] = 0.0
        got = run(name, {"x": zeros}, {}, executable(name))
        assert not np.signbit(got[40]) and np.signbit(np.delete(got, 40)).all()


def test_a_kernel_may_have_any_name() -> None:
    """Names of the C library, of our own functions, and letters beyond ASCII."""
    x = np.linspace(-2, 2, 40, dtype=np.float32)
    for name in ("exp", "launch", "pool_run", "größe_β", "main"):
        out = np.empty_like(x)
        Executable(lower(graph(name, Kernel(lambda v: R["exp"](v), (("x", F32, ("N",)),), np.exp, 1)))).run({"x": x, "out": out})
        np.testing.assert_allclose(out, np.exp(x), rtol=1e-6)


def test_softmax_of_infinities() -> None:
    x = np.zeros((3, 5000), np.float32)
    x[0] = -np.inf
    x[1] = -np.inf
    x[1, 4321] = 2.0
    got = run("softmax", {"x": x}, {}, executable("softmax"))
    assert np.isnan(got[0]).all() and got[1, 4321] == 1 and np.delete(got[1], 4321).max() == 0
    np.testing.assert_allclose(got[2].astype(np.float64).sum(), 1, rtol=1e-6)


@pytest.mark.parametrize("exponent", [0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 2.5])
def test_a_run_time_exponent_gives_the_bits_of_a_literal(exponent: float) -> None:
    x = np.concatenate([SPECIAL, np.random.default_rng(0).normal(size=200).astype(np.float32)])
    literal = Kernel(lambda v: R["pow"](v, exponent), (("x", F32, ("N",)),), np.abs, 0)
    named = Kernel(lambda v, a: R["pow"](v, a), (("x", F32, ("N",)), ("a", F32, ())), np.abs, 0)
    results = []
    for kernel, scalars in ((literal, {}), (named, {"a": exponent})):
        out = np.empty_like(x)
        Executable(lower(graph("power", kernel))).run({"x": x, "out": out}, scalars)
        results.append(np.where(np.isnan(out), np.float32(7), out).tobytes())
    assert results[0] == results[1]
