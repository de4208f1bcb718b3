"""Every row of the intrinsics table compiles against the emulated headers, and every element-wise call computes what its name says."""
from __future__ import annotations

from typing import Any

import kernels
import numpy as np
import pytest
from kernels import Case

from pypto_dsl.codegen.ttmetal import emit
from pypto_dsl.codegen.ttmetal.intrinsics import INTRINSICS
from pypto_dsl.compiler.dtypes import BF16, F32, I32
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.targets import load
from pypto_dsl.runtime.emulator.ttmetal.machine import build_role
from pypto_dsl.runtime.emulator.ttmetal.runner import run
from pypto_dsl.runtime.formats import round_bfloat16


def every_call(fp32_dest: bool) -> str:
    """One compute kernel that spells every row of the table."""
    table = INTRINSICS["0.81.1"]
    words: dict[str, Any] = {f"{kind}{i}": i if kind == "c" else i % 2 if kind == "s" else 0 for kind in "cts" for i in range(4)}
    words["w0"] = "0x3f800000u"
    words["dst"], words["round"] = ("Float32", "") if fp32_dest else ("Float16_b", "<DstRoundingMode::NearestEven>")
    lines = [f"    {row.text.format(**words)};  // {name}" for name, row in table.items()]
    includes = [f'#include "api/compute/{h}"' for h in ("common.h", *sorted({row.header for row in table.values()} - {"common.h"}))]
    return "\n".join([*includes, "void kernel_main() {", *lines, "}", ""])


@pytest.mark.parametrize("fp32_dest", [False, True], ids=["16-bit", "32-bit"])
def test_every_intrinsic_is_modelled(fp32_dest: bool) -> None:
    """An unmodelled call would not compile."""
    build_role("compute", every_call(fp32_dest), (), fp32_dest)


UNARY = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "neg": np.negative, "abs": np.abs,
    "reciprocal": lambda x: 1 / x, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": kernels.gelu,
}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
          "maximum": np.maximum, "minimum": np.minimum, "pow": np.power}
COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


def execute(function: Any, parameters: Any, given: dict[str, Any]) -> Any:
    """One kernel over the arrays of ``given``."""
    target = load("tt-wormhole")
    made = emit(lower(kernels.graph("op", Case(function, parameters, lambda a: None)), target), target)
    return run(made.manifest, made.files, given, cores=2)["out"]


def operands(dtype: Any, count: int) -> list[Any]:
    rng = np.random.default_rng(3)
    made = [np.abs(rng.standard_normal((33, 40)) * 3) + 0.05 for _ in range(count)]
    made[0][:5] = made[-1][:5]  # some equal pairs, for the comparisons
    return [m.astype(np.float32).astype(dtype.numpy) for m in made]


def check(got: Any, want: Any, dtype: Any, ulp: float) -> None:
    rounded = round_bfloat16(want.astype(np.float32)) if dtype is BF16 else want.astype(np.float32)
    step = np.spacing(np.abs(rounded)) * (2**16 if dtype is BF16 else 1)
    assert (np.abs(got.astype(np.float64) - want) <= ulp * step).all()


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_elementwise_values(name: str, dtype: Any) -> None:
    """Within the bound of the target's data file, in ulp of the result."""
    bound = load("tt-wormhole").table("bounds")[dtype.name].get(name, 0)
    given = operands(dtype, 1 if name in UNARY else 2)
    params = [(n, dtype, ("M", "N")) for n in "xy"][: len(given)]
    got = execute(R[name], params, dict(zip("xy", given, strict=False)))
    want = (UNARY | BINARY)[name](*(g.astype(np.float64) for g in given))
    check(got, want, dtype, bound)


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
@pytest.mark.parametrize("name", COMPARE)
def test_comparisons_select(name: str, dtype: Any) -> None:
    """A comparison's truth picks the operand."""
    x, y = operands(dtype, 2)
    got = execute(lambda a, b: R["where"](R[name](a, b), a, R["neg"](b)), [(n, dtype, ("M", "N")) for n in "xy"], {"x": x, "y": y})
    assert np.array_equal(got, np.where(COMPARE[name](x, y), x, -y))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "minimum"])
def test_integers_wrap(name: str) -> None:
    """i32 arithmetic on the SFPU, with a constant beside it."""
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-2**31, 2**31, (33, 40)).astype(np.int32) for _ in range(2))
    got = execute(lambda a, b: R["add"](R[name](a, b), 7), [(n, I32, ("M", "N")) for n in "xy"], {"x": x, "y": y})
    with np.errstate(over="ignore"):
        assert np.array_equal(got, BINARY[name](x, y) + np.int32(7))


def test_conversions() -> None:
    """i32 to f32 exactly below 2^24; f32 to i32 truncates."""
    x = np.arange(-600, 720, dtype=np.int32).reshape(33, 40)
    assert np.array_equal(execute(lambda a: R["cast"](a, F32), [("x", I32, ("M", "N"))], {"x": x}), x.astype(np.float32))
    y = (x / 7).astype(np.float32)
    assert np.array_equal(execute(lambda a: R["cast"](a, I32), [("x", F32, ("M", "N"))], {"x": y}), np.trunc(y).astype(np.int32))
