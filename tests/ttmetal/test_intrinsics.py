"""Every row of the intrinsics table compiles against the emulated headers, and every element-wise call computes what its name says."""
from __future__ import annotations

import math
from typing import Any

import kernels
import numpy as np
import pytest
from kernels import Case

from pypto_dsl.codegen.ttmetal import emit
from pypto_dsl.codegen.ttmetal.intrinsics import INTRINSICS
from pypto_dsl.compiler.dtypes import BF16, F32, I32
from pypto_dsl.compiler.graph import Builder, Value
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building
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


def execute_all(calls: dict[str, Any], parameters: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Several results over the same operands in one kernel, so that one compilation holds them all."""
    g = kernels.graph("op", Case(next(iter(calls.values())), parameters, lambda a: None))
    operands, g.outputs = g.parameters[:-1], {}
    del g.parameters[-1]
    with building(Builder(g)):
        for name, call in calls.items():
            g.outputs[name] = call(*operands)
    g.parameters += [Value(value.type, name) for name, value in g.outputs.items()]
    made = emit(lower(g, load("tt-wormhole")), load("tt-wormhole"))
    return run(made.manifest, made.files, given, cores=2)


FUNCTIONS = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc),
    "expm1": np.expm1, "log1p": np.log1p, "log2": np.log2, "log10": np.log10, "cbrt": np.cbrt, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "rint": np.rint,
}


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
@pytest.mark.parametrize("names", [list(FUNCTIONS)[i::3] for i in range(3)], ids=str)
def test_functions(names: list[str], dtype: Any) -> None:
    """Over special values and both signs, within the bound of the target's data file; NaN where the function has no value."""
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.normal(size=700) * 3, rng.uniform(-1, 1, 400), rng.normal(size=212) * 1e-3,
                        [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 1.5]]).reshape(33, 40).astype(np.float32).astype(dtype.numpy)
    got = execute_all({n: R[n] for n in names}, [("x", dtype, ("M", "N"))], {"x": x})
    for name in names:
        with np.errstate(all="ignore"):
            want = FUNCTIONS[name](x.astype(np.float64))
            rounded = round_bfloat16(want.astype(np.float32)) if dtype is BF16 else want.astype(np.float32)
        bound = load("tt-wormhole").table("bounds")[dtype.name].get(name, 0.51)
        np.testing.assert_array_equal(np.isnan(got[name].astype(np.float64)), np.isnan(want), err_msg=name)
        infinite = np.isinf(want)
        np.testing.assert_array_equal(got[name][infinite].astype(np.float64), want[infinite], err_msg=name)
        finite = np.isfinite(want)
        check(got[name][finite], want[finite], dtype, bound)
        zero = (want == 0) & finite
        np.testing.assert_array_equal(np.signbit(got[name][zero].astype(np.float64)), np.signbit(rounded[zero].astype(np.float64)), name)


def test_results_called_as_words_of_cpp() -> None:
    """A user's names need not know C++."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    names = ["not", "xor", "bitand", "register", "nullptr", "template", "class", "constexpr"]
    got = execute_all(dict.fromkeys(names, R["neg"]), [("x", F32, ("M", "N"))], {"x": x})
    assert all(np.array_equal(got[name], -x) for name in names)


def test_angles() -> None:
    """atan2 in all quadrants, with IEEE 754's zeros and infinities."""
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 3.5, -0.25], np.float32)
    y, x = (np.resize(m.ravel(), (33, 40)).astype(np.float32) for m in np.meshgrid(special, special))
    got = execute(R["atan2"], [(n, F32, ("M", "N")) for n in "yx"], {"y": y, "x": x})
    np.testing.assert_allclose(got, np.arctan2(y, x), rtol=2e-7)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(np.arctan2(y, x)))


def test_integer_bits_and_comparisons() -> None:
    """INT32 over its whole range: bits, shifts, divisors, comparisons as masks, and what is built of them."""
    rng = np.random.default_rng(9)
    x, y = (rng.integers(-2**31, 2**31, (33, 40)).astype(np.int32) for _ in range(2))
    x[:6], y[3:9] = rng.integers(-9, 10, (6, 40)), rng.integers(-9, 10, (6, 40))
    y[:3] = x[:3]
    calls: dict[str, Any] = {n: R[n] for n in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd")}
    calls |= {"left": lambda a, b: R["bitwise_left_shift"](a, 5), "right": lambda a, b: R["bitwise_right_shift"](a, 3),
              "neg": lambda a, b: R["neg"](a), "abs": lambda a, b: R["abs"](a), "not": lambda a, b: R["bitwise_not"](a),
              "sign": lambda a, b: R["sign"](a)}
    got = execute_all(calls, [(n, I32, ("M", "N")) for n in "xy"], {"x": x, "y": y})
    with np.errstate(all="ignore"):
        want = {"bitwise_and": x & y, "bitwise_or": x | y, "bitwise_xor": x ^ y, "gcd": np.gcd(x, y), "left": x << 5, "right": x >> 3,
                "neg": -x, "abs": np.abs(x), "not": ~x, "sign": np.sign(x)}
    for name, expected in want.items():
        np.testing.assert_array_equal(got[name], expected, err_msg=name)
    picked = execute_all({n: lambda a, b, n=n: R["where"](R[n](a, b), a, b) for n in COMPARE}, [(n, I32, ("M", "N")) for n in "xy"],
                         {"x": x, "y": y})
    for name, function in COMPARE.items():
        np.testing.assert_array_equal(picked[name], np.where(function(x, y), x, y), err_msg=name)


def test_integer_division_and_reductions() -> None:
    """Quotients, remainders, sums and extremes of INT32 are built of other operations, exactly."""
    rng = np.random.default_rng(11)
    x, y = (rng.integers(-2**31, 2**31, (33, 40)).astype(np.int32) for _ in range(2))
    y[:9] = rng.integers(-9, 10, (9, 40))
    quotients = execute_all({n: R[n] for n in ("floor_div", "remainder")}, [(n, I32, ("M", "N")) for n in "xy"], {"x": x, "y": y})
    zero, divisor = y == 0, np.where(y == 0, 1, y)
    np.testing.assert_array_equal(quotients["floor_div"], np.where(zero, 0, x // divisor))
    np.testing.assert_array_equal(quotients["remainder"], np.where(zero, 0, x % divisor))
    reduced = execute_all({n: lambda a, n=n: R[n](a, -1, True) for n in ("amax", "amin", "sum")}, [("x", I32, ("M", 40))], {"x": x})
    np.testing.assert_array_equal(reduced["amax"], x.max(-1, keepdims=True))
    np.testing.assert_array_equal(reduced["amin"], x.min(-1, keepdims=True))
    np.testing.assert_array_equal(reduced["sum"], x.sum(-1, keepdims=True, dtype=np.int32))


def test_smallest_of_floats() -> None:
    """amin by way of amax: NaN stays, -0 is below +0; positions of the first."""
    x = np.random.default_rng(3).normal(size=(33, 70)).astype(np.float32)
    x[3, 5], x[4, :] = np.nan, 0.0
    x[4, 60] = -0.0
    calls = {name: lambda a, n=name: R[n](a, -1, True) for name in ("amin", "argmin")}
    got = execute_all(calls, [("x", F32, ("M", 70))], {"x": x})
    np.testing.assert_array_equal(got["amin"], x.min(-1, keepdims=True))
    assert np.signbit(got["amin"][4, 0])
    np.testing.assert_array_equal(got["argmin"], np.argmin(x, -1, keepdims=True))


def test_conversions() -> None:
    """i32 to f32 exactly below 2^24; f32 to i32 truncates."""
    x = np.arange(-600, 720, dtype=np.int32).reshape(33, 40)
    assert np.array_equal(execute(lambda a: R["cast"](a, F32), [("x", I32, ("M", "N"))], {"x": x}), x.astype(np.float32))
    y = (x / 7).astype(np.float32)
    assert np.array_equal(execute(lambda a: R["cast"](a, I32), [("x", F32, ("M", "N"))], {"x": y}), np.trunc(y).astype(np.int32))
