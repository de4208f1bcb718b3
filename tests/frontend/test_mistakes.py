"""Real mistakes: each program is refused with its code, a caret under the cause, and a fix that is applied to the text and then runs."""
from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.errors import Diagnostic

HEAD = "import numpy as np\nimport pypto_dsl as pypto\n\n\n"


@dataclass(frozen=True)
class Mistake:
    """A program, the code it is refused with, the text under the caret, what the message says, and a repair where the record has no fix."""

    name: str
    kernel: str
    code: str
    caret: str
    said: str
    arguments: Callable[[], tuple[Any, ...]]
    repair: tuple[str, str] | None = None
    target: str = "interpreter"


def f32(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def mixed() -> tuple[Any, ...]:
    return f32(4, 4), np.ones((4, 4), np.int32), np.zeros((4, 4), ml_dtypes.bfloat16)


def integers() -> tuple[Any, ...]:
    return np.ones((4, 4), np.int32), np.ones((4, 4), np.int16), np.zeros((4, 4), np.int32)


TENSORS = "x: pypto.Tensor([4, 4]), y: pypto.Tensor([4, 4]), out: pypto.Tensor([4, 4])"
MIXED = "x: pypto.Tensor([4, 4], pypto.DT_FP32), ints: pypto.Tensor([4, 4], pypto.DT_INT32), out: pypto.Tensor([4, 4], pypto.DT_BF16)"
SQUARE = lambda: (f32(4, 4), f32(4, 4), f32(4, 4))  # noqa: E731
MISTAKES = [
    Mistake("two integer dtypes", f"def k({TENSORS}):\n    out[:] = x + y\n", "PT202", "x + y", "two different integer dtypes", integers),
    Mistake("a smaller value", f"def k({TENSORS}):\n    out[:] = x[0:2, :]\n", "PT314", "out[:]", "has shape [4, 4]", SQUARE),
    Mistake("shapes that do not broadcast", "def k(x, row, out):\n    out[:] = x * row\n", "PT301", "x * row", "cannot broadcast",
            lambda: (f32(4, 6), f32(4), f32(4, 6)), ("x * row", "x * pypto.unsqueeze(row, 1)")),
    Mistake("a tile of lower rank", f"def k({TENSORS}):\n    pypto.set_vec_tile_shapes(32)\n    out[:] = x + y\n", "PT402",
            "pypto.set_vec_tile_shapes(32)", "has 1 size, and the result of add has 2 axes", SQUARE),
    Mistake("a tile size of zero", f"def k({TENSORS}):\n    pypto.set_vec_tile_shapes(4, 0)\n    out[:] = x + y\n", "PT401",
            "pypto.set_vec_tile_shapes(4, 0)", "size 2 is 0", SQUARE),
    Mistake("an axis that does not exist", f"def k({TENSORS}):\n    out[:] = pypto.softmax(x, 2)\n", "PT302", "pypto.softmax(x, 2)",
            "`dim` is 2", SQUARE, ("(x, 2)", "(x, 1)")),
    Mistake("a matrix product of a vector", f"def k({TENSORS}):\n    out[:] = pypto.matmul(x[0], y)\n", "PT303", "pypto.matmul(x[0], y)",
            "takes matrices", SQUARE, ("pypto.matmul(x[0], y)", "pypto.expand_clone(pypto.matmul(x[0:1, :], y), [4, 4])")),
    Mistake("an output that is rebound", f"def k({TENSORS}):\n    out = x + y\n", "PT104", "out", "binds a new local name", SQUARE),
    Mistake("an output that is added to", f"def k({TENSORS}):\n    out += x\n", "PT104", "out", "`out += ...` binds", SQUARE),
    Mistake("an output without annotation that is added to", "def k(x, y, out):\n    out **= x + y\n", "PT104", "out", "`out **= ...`",
            SQUARE),
    Mistake("an output that is added to in a loop", f"def k({TENSORS}):\n    for i in pypto.loop(4):\n        out += x\n", "PT104", "out",
            "`out += ...` binds", SQUARE),
    Mistake("an output that is rebound in a branch", f"def k({TENSORS}):\n    if x[0, 0] > 0:\n        out = x + y\n", "PT104", "out",
            "binds a new local name", SQUARE),
    Mistake("an output among the targets of a tuple", f"def k({TENSORS}):\n    y[:], out = x, x + y\n", "PT104", "out", "binds a new",
            SQUARE),
    Mistake("an output that is annotated again", f"def k({TENSORS}):\n    out: object = x + y\n", "PT104", "out", "binds a new", SQUARE),
    Mistake("an output that is bound in an expression", f"def k({TENSORS}):\n    y[:] = (out := x + y)\n    y[:] = x\n", "PT104", "out",
            "`out := ...` binds", SQUARE, ("y[:] = (out := x + y)", "out[:] = x + y")),
    Mistake("a tensor in place of an element's row", f"def k({TENSORS}):\n    out[0] = x\n", "PT312", "out[0]", "a value of rank 2",
            SQUARE, ("out[0] = x", "out[0] = x[0]")),
    Mistake("a tensor in place of an element", f"def k({TENSORS}):\n    out[0, 0] = x\n", "PT312", "out[0, 0]", "one element", SQUARE,
            ("= x", "= x[0, 0]")),
    Mistake("a sum that lost an axis in place of two", f"def k({TENSORS}):\n    out[0:4, 0:1] = x.sum(-1)\n", "PT312", "out[0:4, 0:1]",
            "2 axes", SQUARE, ("sum(-1)", "sum(-1, True)")),
    Mistake("a column in place of whole rows", f"def k({TENSORS}):\n    out[0:4, :] = x.sum(-1, True)\n", "PT314", "out[0:4, :]",
            "the slice has extent 4, and the value written has 1", SQUARE, ("[0:4, :]", "[0:4, 0:1]")),
    Mistake("a tensor of one branch", f"def k({TENSORS}):\n    if x[0, 0] > 0:\n        z = x + y\n    out[:] = z * 2\n", "PT140", "z * 2",
            "`z` is bound in one branch of an `if` only", SQUARE, ("    if", "    z = x\n    if")),
    Mistake("a sum that starts in the first turn", f"def k({TENSORS}):\n    for i in pypto.loop(4):\n        if i == 0:\n"
            "            z = x[0:1] * 0.0\n        z = z + x[i:i + 1]\n    out[0:1] = z\n    out[1:4] = x[1:4]\n", "PT140",
            "z + x[i:i + 1]", "`z` is bound in one branch of an `if` only", SQUARE, ("    for i", "    z = y[0:1]\n    for i")),
    Mistake("a tensor of one branch that is written", f"def k({TENSORS}):\n    if x[0, 0] > 0:\n        z = x + y\n    out[:] = z\n",
            "PT140", "x[0, 0] > 0", "is read behind it", SQUARE, ("    if", "    z = x\n    if")),
    Mistake("a tensor of one branch in another branch", f"def k({TENSORS}):\n    out[:] = x\n    if x[0, 0] > 0:\n        if x[0, 1] > 0:\n"
            "            z = x + y\n        out[:] = z\n", "PT140", "x[0, 1] > 0", "`z` is bound in one branch of an `if` only", SQUARE,
            ("        if x[0, 1]", "        z = x\n        if x[0, 1]")),
    Mistake("a row in place of two axes", f"def k({TENSORS}):\n    out[0:1] = x[0]\n", "PT312", "out[0:1]", "2 axes", SQUARE,
            ("= x[0]", "= x[0:1]")),
    Mistake("a column of another extent", f"def k({TENSORS}):\n    out[0:2, 0] = x[:, 0]\n", "PT314", "out[0:2, 0]", "extent", SQUARE,
            ("x[:, 0]", "x[0:2, 0]")),
    Mistake("NumPy's square root", f"def k({TENSORS}):\n    out[:] = np.sqrt(x)\n", "PT128", "np.sqrt(x)", "NumPy's `sqrt`", SQUARE),
    Mistake("NumPy's where", f"def k({TENSORS}):\n    out[:] = np.where(x > 0, x, 0.0)\n", "PT128", "np.where(x > 0, x, 0.0)",
            "NumPy's `where`", SQUARE),
    Mistake("NumPy's maximum along an axis", f"def k({TENSORS}):\n    out[:] = x - np.max(x, axis=0)\n", "PT128", "np.max(x, axis=0)",
            "NumPy's `max`", SQUARE, ("np.max(x, axis=0)", "pypto.amax(x, 0)")),
    Mistake("Python's round of a tensor", f"def k({TENSORS}):\n    out[:] = round(x, 2)\n", "PT145", "round(x, 2)", "Python's round",
            SQUARE),
    Mistake("a misspelt method", f"def k({TENSORS}):\n    out[:] = x.sotfmax(-1)\n", "PT109", "x.sotfmax", "no `sotfmax`", SQUARE),
    Mistake("a method of torch", f"def k({TENSORS}):\n    out[:] = x + y.to(x.dtype)\n", "PT109", "y.to", "no `to`", SQUARE,
            ("y.to(x.dtype)", "pypto.cast(y, x.dtype)")),
    Mistake("the transposed matrix of NumPy", f"def k({TENSORS}):\n    out[:] = x.T\n", "PT109", "x.T", "no `T`", SQUARE,
            ("x.T", "x.transpose()")),
    Mistake("a tensor where an option is", f"def k({TENSORS}):\n    out[:] = pypto.leaky_relu(x, y)\n", "PT111", "pypto.leaky_relu(x, y)",
            "`negative_slope` is a number", SQUARE, ("(x, y)", "(x, 0.1)")),
    Mistake("a list as an operand", f"def k({TENSORS}):\n    out[:] = [1, 2, 3, 4] * x\n", "PT200", "[1, 2, 3, 4] * x", "got list", SQUARE,
            ("[1, 2, 3, 4]", "y[0]")),
    *(Mistake(f"a wider value in {statement}", f"def k({MIXED}):\n    {statement}\n", "PT205", caret, "and the destination keeps", mixed)
      for statement, caret in (
          ("out[:] = x * 2.0", "x * 2.0"), ("out[:] = x", "x"), ("out.move(x + x)", "x + x"), ("out[0:2] = x[2:4] * 2", "x[2:4] * 2"),
          ("out[0] = x[1]", "x[1]"), ("pypto.assemble(x[0:2], [0, 0], out)", "x[0:2]"), ("out.assemble(x, [0, 0])", "x"),
          ("out[:], ints[:] = x, ints", "x"), ("ints[:] = pypto.div(ints, 2)", "pypto.div(ints, 2)"), ("out[:] = x[0, 0]", "x[0, 0]"),
          ("ints[0, 0] = x[0, 0]", "x[0, 0]"), ("out[0:1] = x.sum(0, True)", "x.sum(0, True)"))),
    Mistake("a wider sum in place", f"def k({MIXED}):\n    out[:] += x\n", "PT205", "out[:]", "and the destination keeps", mixed,
            ("out[:] += x", "out[:] = pypto.cast(out[:] + (x), pypto.DT_BF16)")),
    Mistake("an exponent of ldexp that is an expression", f"def k({TENSORS}):\n    out[:] = pypto.ldexp(x, y > 0)\n", "PT203",
            "y > 0", "ldexp", SQUARE),
    Mistake("a method's exponent that is an expression", f"def k({TENSORS}):\n    out[:] = x.ldexp(y > 0)\n", "PT203", "y > 0", "ldexp",
            SQUARE),
    Mistake("a float shifted", f"def k({TENSORS}):\n    out[:] = pypto.cast((x + y) & 3, pypto.DT_FP32)\n", "PT203", "x + y",
            "takes integers", SQUARE),
    Mistake("`and` on tensors", f"def k({TENSORS}):\n    both = x > 0 and y > 0\n    out[:] = pypto.where(both, x, y)\n", "PT101",
            "x > 0 and y > 0", "no single truth value", SQUARE),
    Mistake("a ternary on a tensor", f"def k({TENSORS}):\n    out[:] = x if x > y else y\n", "PT101", "x if x > y else y",
            "no single truth value", SQUARE),
    Mistake("a misspelt operation", f"def k({TENSORS}):\n    out[:] = pypto.sotfmax(x, -1)\n", "PT109", "pypto.sotfmax",
            "no `sotfmax`", SQUARE),
    Mistake("Python's max of tensors", f"def k({TENSORS}):\n    out[:] = max(x, y)\n", "PT145", "max(x, y)", "compares tensors", SQUARE),
    Mistake("an exponent of ldexp that is a mask", f"def k({TENSORS}):\n    mask = x > 0\n    out[:] = pypto.ldexp(x, mask)\n", "PT203",
            "pypto.ldexp(x, mask)", "ldexp", SQUARE),
    Mistake("a loop that breaks", f"def k({TENSORS}):\n    for i in pypto.loop(4):\n        out[i:i + 1, :] = x[i:i + 1, :]\n"
            "        if i == 2:\n            break\n", "PT141", "break", "inside a pypto.loop", SQUARE,
            ("        if i == 2:\n            break\n", "")),
    Mistake("an index beyond the end", f"def k({TENSORS}):\n    out[0:1, :] = pypto.view(x, [1, 4], [4, 0])\n", "PT311",
            "pypto.view(x, [1, 4], [4, 0])", "extent is 4", SQUARE, ("[4, 0]", "[3, 0]")),
    Mistake("a number beyond int8", "def k(x, out):\n    out[:] = x + 300\n", "PT204", "x + 300", "300",
            lambda: (np.zeros(4, np.int8), np.zeros(4, np.int8)), ("300", "100")),
    Mistake("a loop over a dimension with range", "def k(x: pypto.Tensor([pypto.DYNAMIC, 4]), out: pypto.Tensor([pypto.DYNAMIC, 4])):\n"
            "    for i in range(x.shape[0]):\n        out[i:i + 1, :] = x[i:i + 1, :]\n", "PT102", "range(x.shape[0])",
            "only known when the kernel runs", lambda: (f32(4, 4), f32(4, 4)), ("range(", "pypto.loop(")),
]


def load(path: Path, text: str) -> Any:
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.k


def placed(text: str, found: Diagnostic) -> tuple[int, int]:
    """Where the caret's text begins and ends in a file's text."""
    assert found.primary is not None
    span = found.primary.span
    lines = text.splitlines(keepends=True)
    begin = sum(map(len, lines[:span.line - 1])) + span.column - 1
    end = sum(map(len, lines[:span.end_line - 1])) + span.end_column - 1
    return begin, end


@pytest.mark.parametrize("mistake", MISTAKES, ids=[m.name.replace(" ", "-") for m in MISTAKES])
def test_mistake(mistake: Mistake, tmp_path: Path) -> None:
    decorator = f'@pypto.jit(target="{mistake.target}")\n'
    text = HEAD + decorator + mistake.kernel
    broken = load(tmp_path / "broken.py", text)
    with pytest.raises(pypto.KernelError) as caught:
        broken(*mistake.arguments())
    found = caught.value.diagnostic
    assert found.code == mistake.code
    assert mistake.said in found.message
    begin, end = placed(text, found)
    assert text[begin:end] == mistake.caret
    shown = found.render()
    assert f"error[{mistake.code}]" in shown and "^" in shown and mistake.caret.splitlines()[0] in shown
    assert found.help
    if mistake.repair is None:
        assert found.fix is not None
        mended = text[:begin] + found.fix + text[end:]
    else:
        assert text.count(mistake.repair[0]) == 1
        mended = text.replace(*mistake.repair)
    load(tmp_path / "mended.py", mended)(*mistake.arguments())
