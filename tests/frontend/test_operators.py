"""Every operator of Python on tensors: both orders, numbers of Python and NumPy on either side, as the operation it stands for."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.frontend import eager
from pypto_dsl.frontend.tensor import Tensor

ARITHMETIC: dict[str, tuple[Callable[..., Any], str]] = {
    "+": (operator.add, "add"), "-": (operator.sub, "sub"), "*": (operator.mul, "mul"), "/": (operator.truediv, "div"),
    "//": (operator.floordiv, "floor_div"), "%": (operator.mod, "remainder"), "**": (operator.pow, "pow"),
    "<": (operator.lt, "lt"), "<=": (operator.le, "le"), ">": (operator.gt, "gt"), ">=": (operator.ge, "ge"), "==": (operator.eq, "eq"),
    "!=": (operator.ne, "ne"),
}
BITS: dict[str, tuple[Callable[..., Any], str]] = {
    "&": (operator.and_, "bitwise_and"), "|": (operator.or_, "bitwise_or"), "^": (operator.xor, "bitwise_xor"),
    "<<": (operator.lshift, "bitwise_left_shift"), ">>": (operator.rshift, "bitwise_right_shift"),
}
AUGMENTED = {"+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv,
             "%": operator.imod, "**": operator.ipow, "&": operator.iand, "|": operator.ior, "^": operator.ixor, "<<": operator.ilshift,
             ">>": operator.irshift}
FLOATS = np.float32([[0.5, 1.0, 2.5, 3.0], [4.0, 0.25, 7.5, 1.5]])
INTEGERS = np.int32([[1, 2, 3, 4], [7, 6, 5, 9]])
CASES = [(symbol, FLOATS) for symbol in ARITHMETIC] + [(symbol, INTEGERS) for symbol in (*ARITHMETIC, *BITS)]
IDS = [f"{symbol} {x.dtype}" for symbol, x in CASES]


def recorded(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """What ``function`` makes of tensors while a kernel is read, evaluated."""
    made: np.ndarray = eager.evaluate("operators", function, arrays, {})
    return made


def same(got: np.ndarray, want: np.ndarray) -> None:
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("symbol", "x"), CASES, ids=IDS)
def test_binary_operators(symbol: str, x: np.ndarray) -> None:
    """tensor and tensor, tensor and number, number and tensor: the operation's own result, and its dtype."""
    apply, name = (ARITHMETIC | BITS)[symbol]
    call = getattr(pypto, name)
    y = x[:, ::-1].copy()
    same(recorded(apply, x, y), recorded(lambda a, b: call(a, b), x, y))
    numbers: tuple[Any, ...] = (2, 2.5) if x.dtype.kind == "f" else (2,)
    for number in numbers:
        same(recorded(lambda a, n=number: apply(a, n), x), recorded(lambda a, n=number: call(a, n), x))
        reflected = recorded(lambda a, n=number: apply(n, a), x)
        if symbol in ("<", "<=", ">", ">="):  # Python turns them round
            mirrored = getattr(pypto, {"<": "gt", "<=": "ge", ">": "lt", ">=": "le"}[symbol])
            same(reflected, recorded(lambda a, n=number, c=mirrored: c(a, n), x))
        elif symbol in ("==", "!=", "+", "*", "&", "|", "^"):
            same(reflected, recorded(lambda a, n=number: call(a, n), x))
        elif symbol not in ("<<", ">>"):
            same(reflected, recorded(lambda a, n=number: call(n, a), x))


@pytest.mark.parametrize("symbol", [*ARITHMETIC, *BITS])
def test_numpy_on_the_left(symbol: str) -> None:
    """NumPy never takes over: its scalar on the left is the tensor's own operator, and strong."""
    apply, _ = (ARITHMETIC | BITS)[symbol]
    x = INTEGERS if symbol in BITS else FLOATS
    scalar = x.dtype.type(2)

    def checked(a: Tensor) -> Any:
        made = apply(scalar, a)
        assert isinstance(made, Tensor)
        return made

    with np.errstate(all="ignore"):
        want = apply(np.full_like(x, scalar), x)
    np.testing.assert_allclose(recorded(checked, x).astype(np.float64), np.asarray(want).astype(np.float64), rtol=1e-6)


def test_unary_operators() -> None:
    for function, array, want in ((operator.neg, FLOATS, -FLOATS), (operator.pos, FLOATS, FLOATS), (abs, -FLOATS, FLOATS),
                                  (operator.invert, INTEGERS, ~INTEGERS), (operator.invert, INTEGERS > 3, INTEGERS <= 3)):
        same(recorded(lambda a, f=function: f(a) * 1 if f is operator.pos else f(a), array), want)


def test_matrix_product() -> None:
    b = np.float32([[1, 2], [3, 4], [5, 6], [7, 8]])
    same(recorded(operator.matmul, FLOATS, b), FLOATS @ b)


@pytest.mark.parametrize("symbol", AUGMENTED)
def test_augmented_assignment_binds_a_new_value(symbol: str) -> None:
    """`t op= y` on a local name is `t = t op y`; `t[:] op= y` writes the tensor."""
    x = INTEGERS if symbol in BITS else FLOATS
    apply, _ = (ARITHMETIC | BITS)[symbol]
    second = 1 if symbol in BITS else 2
    want = recorded(lambda a: apply(a, second), x)
    same(recorded(lambda a: AUGMENTED[symbol](a, second), x), want)


@pytest.mark.parametrize("target", ["interpreter", "llvm-cpu"])
def test_operators_in_a_compiled_kernel(target: str) -> None:
    @pypto.jit
    def k(x, n, floats, integers, truth):
        floats[:] = 2.0 ** (1.0 - x) / x + 3 % x - (7 // x) * -x
        integers[:] = (1 << n) ^ (n >> 1) | (5 & ~n)
        truth[:] = (x > 1.0) & ~(n == 3) | (0.5 >= x)  # noqa: SIM300

    floats, integers, truth = np.zeros_like(FLOATS), np.zeros_like(INTEGERS), np.zeros(FLOATS.shape, bool)
    k.run(FLOATS, INTEGERS, floats, integers, truth, target=target)
    wide = FLOATS.astype(np.float64)
    np.testing.assert_allclose(floats, 2.0 ** (1 - wide) / wide + 3 % wide - (7 // wide) * -wide, rtol=1e-6)
    np.testing.assert_array_equal(integers, (1 << INTEGERS) ^ (INTEGERS >> 1) | (5 & ~INTEGERS))
    np.testing.assert_array_equal(truth, (FLOATS > 1) & ~(INTEGERS == 3) | (FLOATS <= 0.5))


@pytest.mark.parametrize("symbol", [*ARITHMETIC, *BITS])
@pytest.mark.parametrize("other", [[1, 2], "2", None, 1j, {}], ids=repr)
def test_what_is_no_operand_is_refused(symbol: str, other: Any) -> None:
    """PT200 on either side; `==` and `!=` with something of another kind are Python's own."""
    apply, _ = (ARITHMETIC | BITS)[symbol]
    if symbol in ("==", "!="):
        return
    x = INTEGERS if symbol in BITS else FLOATS
    calls = [lambda a: apply(a, other), lambda a: apply(other, a)]
    for call in calls[:1] if symbol == "%" and isinstance(other, str) else calls:  # "2" % x is Python's formatting
        with pytest.raises((KernelError, TypeError)) as caught:
            recorded(call, x)
        if isinstance(caught.value, KernelError):
            assert caught.value.code == "PT200"
