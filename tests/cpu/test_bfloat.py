"""Chains of 16-bit floats: roundings that leave out steps, words of two elements and limits by a number give the bits of the plain way."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_programs import Array, Kernel, graph, lower
from test_operations import agree, both
from vector_functions import LEVELS

import pypto_dsl as pypto
from pypto_dsl.compiler.dtypes import BF16, BY_NAME, F16, F32, DType
from pypto_dsl.compiler.graph import Builder, Graph, Symbol, Value, tensor_type
from pypto_dsl.compiler.index import var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.runtime.cpu.executable import Executable

COLUMNS = 65536 + 45  # words of two, whole vectors, and a tail
EVERY = np.resize(np.arange(65536, dtype=np.uint16), (1, COLUMNS))  # signalling NaNs too
STEPS: dict[str, Any] = {
    "mul": lambda x, y: R["mul"](x, y), "add": lambda x, y: R["add"](x, y), "relu": lambda x, y: R["maximum"](x, 0.0),
    "cap": lambda x, y: R["minimum"](x, -0.0), "larger": lambda x, y: R["maximum"](x, y), "silu": lambda x, y: R["silu"](x),
    "gelu": lambda x, y: R["gelu"](x), "tanh": lambda x, y: R["tanh"](x), "neg": lambda x, y: R["neg"](x), "abs": lambda x, y: R["abs"](x),
}
CHAINS = [
    ("mul", "add", "relu"),
    ("relu", "mul"),
    ("neg", "larger", "add"),
    ("abs", "cap"),
    ("silu", "mul"),
    ("larger", "gelu"),
    ("tanh", "relu"),
    ("mul", "tanh", "larger"),
    ("larger", "neg"),
    ("add", "larger", "neg", "abs"),
    ("mul", "cap"),
]


def program(steps: tuple[str, ...], level: str, dtype: DType) -> Executable:
    def function(x: Any, y: Any) -> Any:
        for step in steps:
            x = STEPS[step](x, y)
        return x

    kernel = Kernel(function, (("x", dtype, ("M", "N")), ("y", dtype, ("M", "N"))), np.add, 0)
    return Executable(lower(graph("chain", kernel)), level=level)


def run(executable: Executable, x: Array, y: Array) -> Array:
    out = np.empty_like(x)
    executable.run({"x": x, "y": y, "out": out})
    return out


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
def test_fused_chains_give_the_bits_of_single_steps(dtype: DType, chain: tuple[str, ...], level: str) -> None:
    x, y = (bits.view(dtype.numpy) for bits in (EVERY, np.random.default_rng(1).permutation(EVERY.ravel()).reshape(EVERY.shape)))
    fused, single = run(program(chain, level, dtype), x, y), x
    for step in chain:
        single = run(program((step,), level, dtype), single, y)
    a, b = fused.view(np.uint16), single.view(np.uint16)
    same = (a == b) | np.isnan(fused.astype(np.float32)) & np.isnan(single.astype(np.float32))
    assert same.all(), (x[~same][:4], y[~same][:4], a[~same][:4], b[~same][:4])


@pytest.mark.parametrize("limit", [0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("name", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_limits_by_a_number_mean_the_reference(opcode: str, name: str, limit: float) -> None:
    dtype: DType = BY_NAME[name]
    g = Graph("limit")
    g.symbols.update({"M": Symbol("M", "dim", "x0", 0), "N": Symbol("N", "dim", "x0", 1)})
    g.parameters.append(Value(tensor_type(dtype, [var("M"), var("N")]), "x0"))
    with building(Builder(g)):
        value = R[opcode](g.parameters[0], limit)
    g.parameters.append(Value(value.type, "out"))
    g.outputs["out"] = value
    x = np.resize([0.0, -0.0, 1.5, -1.5, 2.0, -2.0, 1e-40, -1e-40, np.inf, -np.inf, np.nan], (3, 37)).astype(np.float32).astype(dtype.numpy)
    agree(*both(g, {"x0": x}, 3, 37), 0)


@pytest.mark.parametrize("kind", ["amax", "amin"])
def test_a_nan_anywhere_in_a_long_row_is_the_extreme(kind: str) -> None:
    kernel = Kernel(lambda x: R[kind](x, 1), (("x", F32, ("M", "N")),), np.add, 0)
    executable = Executable(lower(graph(kind, kernel)))
    x = np.random.default_rng(2).normal(size=(301, 300)).astype(np.float32)
    for row in range(300):
        x[row, row] = np.nan
    out = np.empty((301,), np.float32)
    executable.run({"x": x, "out": out})
    assert np.isnan(out[:300]).all()
    assert out[300] == (x[300].max() if kind == "amax" else x[300].min())


def test_silu_of_huge_negative_numbers_is_minus_zero() -> None:
    """The exponent is limited inside, the factor x is not: -largest must not leak through."""
    @pypto.jit
    def kernel(x: pypto.Tensor([pypto.DYNAMIC], pypto.DT_FP32), out: pypto.Tensor([pypto.DYNAMIC], pypto.DT_FP32)):
        out[:] = pypto.silu(x)

    x = np.array([-3.4028235e38, -1e30, -1000.0, -200.0, -151.0, -149.0, -120.0] * 3, np.float32)
    out = np.empty_like(x)
    kernel(x, out)
    assert (out == 0).all() and np.signbit(out).all()
