"""Names and functions of other libraries on tensors: all refused with what to write, none taken over by NumPy, none called our bug."""
from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import pypto_dsl as pypto
from pypto_dsl.cli import main
from pypto_dsl.frontend import foreign
from pypto_dsl.frontend.tensor import Tensor

X = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
UFUNCS = sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "pow": lambda a, b: a**b,
    "mod": lambda a, b: a % b, "floor": lambda a, b: a // b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b}


def read(use: Callable[[Any], Any]) -> Any:
    """What ``use`` gives of a tensor of a kernel."""

    @pypto.jit(target="interpreter", lint="off")
    def k(x: pypto.Tensor([pypto.DYNAMIC, 4]), use: Any):
        return use(x)

    return k(X.copy(), use)


def refused(code: str, use: Callable[[Any], Any]) -> pypto.Diagnostic:
    with pytest.raises(pypto.KernelError) as caught:
        read(use)
    found = caught.value.diagnostic
    assert found.code == code and found.primary is not None and found.primary.span.file == __file__ and found.help
    return found


@pytest.mark.parametrize("name", UFUNCS)
def test_every_function_of_numpy_is_refused(name: str) -> None:
    function = getattr(np, name)
    found = refused("PT128", lambda x: function(*[x] * function.nin))
    twin = foreign.TWINS.get(function.__name__, function.__name__)
    assert (f"pypto.{twin}" in found.help) == hasattr(pypto, twin), found.help


@pytest.mark.parametrize(
    "use",
    [
        lambda x: np.sum(x, axis=0),
        lambda x: np.mean(x),
        lambda x: np.where(x > 0, x, 0),
        lambda x: np.concatenate([x, x]),
        lambda x: np.asarray(x),
        lambda x: np.array([x, x]),
        lambda x: np.fft.fft(x),
        lambda x: np.add.reduce(x),
        lambda x: np.linalg.norm(x),
        lambda x: np.einsum("ij->ji", x),
    ],
)
def test_numpy_never_takes_over(use: Callable[[Any], Any]) -> None:
    refused("PT128", use)


@pytest.mark.parametrize("number", [np.float32(2), np.int8(2), np.float16(2)], ids=lambda n: n.dtype.name)
@pytest.mark.parametrize("name", OPERATORS)
def test_numbers_of_numpy_beside_a_tensor(name: str, number: Any) -> None:
    operator = OPERATORS[name]
    np.testing.assert_allclose(read(lambda x: operator(number, x)), operator(np.float32(number), X), rtol=1e-6)
    np.testing.assert_allclose(read(lambda x: operator(x, number)), operator(X, np.float32(number)), rtol=1e-6)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_array_beside_a_tensor_is_refused(name: str) -> None:
    refused("PT126", lambda x: OPERATORS[name](X, x))


@pytest.mark.parametrize("name", foreign.SPELLINGS)
def test_every_foreign_spelling_says_what_to_write(name: str) -> None:
    assert not hasattr(Tensor, name)
    found = refused("PT109", lambda x: getattr(x, name))
    assert "{" not in found.help and f"`{name}`" in found.message


def test_twins_exist() -> None:
    assert not [twin for twin in foreign.TWINS.values() if not hasattr(pypto, twin)]


@pytest.mark.parametrize("use", [round, math.floor, math.ceil, math.trunc, lambda x: divmod(x, 2), lambda x: divmod(2, x), "{:.2f}".format])
def test_functions_for_one_number(use: Callable[[Any], Any]) -> None:
    refused("PT145", lambda x: use(x))


@pytest.mark.parametrize("use", [float, int, math.sqrt, lambda x: list(range(x)), lambda x: [0][x]])
def test_a_number_that_python_needs(use: Callable[[Any], Any]) -> None:
    assert "where" not in refused("PT101", lambda x: use(x)).help


@pytest.mark.parametrize("value", [[1, 2], (1, 2), {}, "a", None], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("name", [n for n in OPERATORS if n not in ("eq", "ne")])
def test_python_values_that_are_no_operands(name: str, value: Any) -> None:
    refused("PT200", lambda x: OPERATORS[name](value, x)) if not isinstance(value, str) or name != "mod" else None
    refused("PT200", lambda x: OPERATORS[name](x, value))


def test_probing_a_tensor() -> None:
    seen = []

    def probe(x: Any) -> Any:
        seen.append((hasattr(x, "softcapp"), hasattr(x, "sum"), getattr(x, "T", 3), hasattr(x.shape[0], "item")))
        return x

    read(probe)
    assert seen == [(False, True, 3, False)]


FAILURES = {
    "np.sqrt(x.shape[0])": "TypeError",
    "1 < 'a' < 2": "TypeError",
    "int('a')": "ValueError",
    "[1][5]": "IndexError",
    "min('a', 2)": "TypeError",
    "any(5)": "TypeError",
    "(lambda: 1 / 0)()": "ZeroDivisionError",
    "(3 and np.zeros(2)) or 1": "ValueError",
    "math.sqrt(-1.0)": "ValueError",
    "1 if np.zeros(2) else 2": "ValueError",
    "not np.zeros(2)": "ValueError",
    "dict(a=1)['b']": "KeyError",
    "[i for i in 5]": "TypeError",
}


@pytest.mark.parametrize("expression", FAILURES)
def test_a_failure_of_the_users_own_is_never_our_bug(expression: str, tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("import math\nimport numpy as np\nimport pypto_dsl as pypto\n\n\n@pypto.jit\n"
                    "def k(x: pypto.Tensor([pypto.DYNAMIC, 4], pypto.DT_FP32), out: pypto.Tensor([pypto.DYNAMIC, 4], pypto.DT_FP32)):\n"
                    f"    y = {expression}\n    out[:] = x\n")
    done = CliRunner().invoke(
        main, ["run", str(file), "--target", "interpreter", "--shape", "x=4x4", "--shape", "out=4x4"], prog_name="ptc"
    )
    assert done.exit_code == 1, done.stderr
    assert FAILURES[expression] in done.stderr and "line 8" in done.stderr, done.stderr
