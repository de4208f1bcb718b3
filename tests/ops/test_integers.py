"""Integer semantics against Python's own integers: floors, truncations, wraps, shifts, bits, divisors, powers; on every dtype."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import evaluate, execute, expanded, graph_of
from samples import INTEGERS, integers

from pypto_dsl.compiler.dtypes import BOOL, BY_NAME, F32, I32, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY

SMALL = [d for d in INTEGERS if d.bits < 64]


def wrapped(value: int, dtype: DType) -> int:
    """``value`` modulo 2**N, in the dtype's range."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.signed and value >> (dtype.bits - 1) else value


def _trunc(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0


def _shift_left(a: int, b: int, d: DType) -> int:
    return a << b if 0 <= b < d.bits else 0


def _shift_right(a: int, b: int, d: DType) -> int:
    return a >> b if 0 <= b < d.bits else (-1 if a < 0 else 0)


def _power(a: int, b: int, d: DType) -> int:
    if b < 0:
        return 1 if a == 1 else (1 if b % 2 == 0 else -1) if a == -1 and d.signed else 0
    return pow(a, b, 1 << d.bits)


BINARY: dict[str, Callable[[int, int, DType], int]] = {
    "add": lambda a, b, d: a + b, "sub": lambda a, b, d: a - b, "mul": lambda a, b, d: a * b, "rsub": lambda a, b, d: b - a,
    "floor_div": lambda a, b, d: a // b if b else 0, "remainder": lambda a, b, d: a % b if b else 0,
    "trunc_div": lambda a, b, d: _trunc(a, b), "fmod": lambda a, b, d: a - b * _trunc(a, b) if b else 0,
    "ceil_div": lambda a, b, d: -(-a // b) if b else 0, "maximum": lambda a, b, d: max(a, b), "minimum": lambda a, b, d: min(a, b),
    "fmax": lambda a, b, d: max(a, b), "fmin": lambda a, b, d: min(a, b), "bitwise_and": lambda a, b, d: a & b,
    "bitwise_or": lambda a, b, d: a | b, "bitwise_xor": lambda a, b, d: a ^ b, "squared_difference": lambda a, b, d: wrapped(a - b, d) ** 2,
    "bitwise_left_shift": _shift_left, "bitwise_right_shift": _shift_right, "gcd": lambda a, b, d: math.gcd(a, b),
    "pow": _power,
}
UNARY: dict[str, Callable[[int], int]] = {
    "neg": lambda a: -a, "abs": abs, "square": lambda a: a * a, "bitwise_not": lambda a: ~a, "sign": lambda a: (a > 0) - (a < 0),
    "relu": lambda a: max(a, 0), "floor": lambda a: a, "ceil": lambda a: a, "trunc": lambda a: a, "rint": lambda a: a, "round": lambda a: a,
    "positive": lambda a: a, "fmax_zero": lambda a: max(a, 0),
}


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(dtype.bits)
    x = integers(dtype, rng, 120)
    a, b = (m.ravel() for m in np.meshgrid(x[:13], x[:13]))
    return np.concatenate([a, x, x]), np.concatenate([b, rng.permutation(x), np.roll(x, 3)])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_two_integers(name: str, dtype: DType) -> None:
    """The mathematical integer, wrapped modulo 2**N; a zero divisor gives 0."""
    a, b = pairs(dtype)
    if name == "pow":
        b = np.clip(b, -3 if dtype.signed else 0, 70 if dtype.bits > 8 else 9).astype(dtype.numpy)
    want = [wrapped(BINARY[name](int(x), int(y), dtype), dtype) for x, y in zip(a, b, strict=True)]
    got = evaluate(name, a, b)
    assert got.dtype == dtype.numpy and got.tolist() == want
    if not REGISTRY[name].is_primitive and dtype in SMALL:
        assert execute(expanded(lambda p, q: REGISTRY[name](p, q), a, b), a, b)[0].tolist() == want


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_one_integer(name: str, dtype: DType) -> None:
    """The smallest integer wraps to itself under neg and abs."""
    a, _ = pairs(dtype)
    want = [wrapped(UNARY[name](int(x)), dtype) for x in a]
    got = evaluate(name, a)
    assert got.dtype == dtype.numpy and got.tolist() == want
    if not REGISTRY[name].is_primitive:
        assert execute(expanded(lambda p: REGISTRY[name](p), a), a)[0].tolist() == want


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_identity(dtype: DType) -> None:
    """a == (a // b) * b + a % b for b != 0, and both are 0 for b == 0: one policy, together or apart."""
    a, b = pairs(dtype)
    quotient, rest = evaluate("floor_div", a, b), evaluate("remainder", a, b)
    with np.errstate(all="ignore"):
        again = (quotient * b + rest).astype(dtype.numpy)
    np.testing.assert_array_equal(again[b != 0], a[b != 0])
    assert not quotient[b == 0].any() and not rest[b == 0].any()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]), st.integers(), st.integers())
def test_division_identity_everywhere(name: str, a: int, b: int) -> None:
    dtype = BY_NAME[name]
    x, y = (np.array([wrapped(v, dtype)], dtype.numpy) for v in (a, b))
    quotient, rest = int(evaluate("floor_div", x, y)[0]), int(evaluate("remainder", x, y)[0])
    if y[0]:
        assert wrapped(quotient * int(y[0]) + rest, dtype) == int(x[0])
        assert rest == 0 or (rest < 0) == (int(y[0]) < 0)


def test_lcm() -> None:
    a, b = np.array([4, -6, 0, 21], np.int32), np.array([6, 4, 5, 14], np.int32)
    assert evaluate("lcm", a, b).tolist() == [12, 12, 0, 42]


def refused(code: str, name: str, *arguments: object) -> KernelError:
    """The error of one use; numbers stay numbers."""
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]

    def call(*parameters: object) -> object:
        queue = list(parameters)
        return REGISTRY[name](*(queue.pop(0) if isinstance(a, np.ndarray) else a for a in arguments))

    with pytest.raises(KernelError) as caught:
        graph_of(call, *arrays)
    assert caught.value.code == code, caught.value
    return caught.value


@pytest.mark.parametrize("name", ["floor_div", "remainder", "trunc_div", "fmod", "ceil_div"])
def test_constant_zero_divisor_is_refused(name: str) -> None:
    assert "constant 0" in str(refused("PT111", name, np.ones(3, np.int32), 0))
    if name != "ceil_div":
        graph_of(lambda x: REGISTRY[name](x, 0.0), np.ones(3, np.float32))  # floats divide by zero


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
def test_constant_shift_count_outside_the_width_is_refused(name: str) -> None:
    for dtype in INTEGERS:
        x = np.ones(3, dtype.numpy)
        graph_of(lambda p, n=dtype.bits - 1: REGISTRY[name](p, n), x)
        refused("PT111", name, x, dtype.bits)
        if dtype.signed:
            refused("PT111", name, x, -1)


def test_constant_negative_exponent_of_integers_is_refused() -> None:
    for dtype in INTEGERS:
        if dtype.signed:
            refused("PT111", "pow", np.ones(3, dtype.numpy), -1)
    graph_of(lambda x: REGISTRY["pow"](x, -1), np.ones(3, np.float32))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "neg", "abs", "floor_div", "maximum", "sum", "pow", "exp"])
def test_bool_is_no_number(name: str) -> None:
    """Arithmetic on BOOL alone is refused, with the cast that says what True means (exp of BOOL computes in f32)."""
    x = np.ones(3, bool)
    count = len([p for p in REGISTRY[name].operands if not p.optional])
    if name in ("exp", "sum"):
        assert evaluate(name, x).dtype == (np.float32 if name == "exp" else np.int32)
        return
    assert "pypto.cast" in str(refused("PT203", name, *[x] * count))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "gcd", "bitwise_left_shift"])
def test_bits_of_floats_are_refused(name: str) -> None:
    refused("PT203", name, *[np.ones(3, np.float32)] * (1 if name == "bitwise_not" else 2))


def test_logic_on_bool() -> None:
    a, b = (np.array(v, bool) for v in ([0, 0, 1, 1], [0, 1, 0, 1]))
    for name, want in (("bitwise_and", a & b), ("bitwise_or", a | b), ("bitwise_xor", a ^ b)):
        np.testing.assert_array_equal(evaluate(name, a, b), want)
        np.testing.assert_array_equal(execute(expanded(lambda p, q, n=name: REGISTRY[n](p, q), a, b), a, b)[0], want)
    np.testing.assert_array_equal(evaluate("bitwise_not", a), ~a)


def test_logical_operations_mix_dtypes() -> None:
    a, b = np.array([0, 2, 0, -1], np.int16), np.array([np.nan, 0.0, -0.0, 0.5], np.float16)
    assert evaluate("logical_and", a, b).tolist() == [False, False, False, True]
    assert evaluate("logical_or", a, b).tolist() == [True, True, False, True]
    assert evaluate("logical_xor", a, b).tolist() == [True, True, False, False]


def test_accepted_dtypes_are_of_the_table() -> None:
    """A dtype table names dtypes once, and BOOL only where bits or truth are meant (the mask of an attention)."""
    for definition in REGISTRY.values():
        table = definition.dtypes
        if table is not None:
            assert len(set(table)) == len(table)
            assert BOOL not in table or definition.family in ("elementwise", "compare", "attention"), definition.name
        for dtype in definition.expands or ():
            assert table is None or dtype in table or dtype in (F32, I32), definition.name
