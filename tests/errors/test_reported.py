"""Mistakes that users of tile languages report, with what other systems make of them: each has a code here, at the operation.

Elsewhere they crash a compiler, print an assertion, name an unrelated buffer, or go unnoticed until the numbers are wrong.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler import catalogue

ON_DEVICE = """\
@pypto.jit
def kernel(x: pypto.Tensor({shape}, pypto.DT_{dtype}), out: pypto.Tensor({shape}, pypto.DT_{dtype})):
    {body}


kernel.source("ascend-a2")
"""


def on_ascend(body: str, shape: str = "[64, 64]", dtype: str = "FP32") -> str:
    return ON_DEVICE.format(body=body, shape=shape, dtype=dtype)


# What was done, the code, words of the message that say what was got or what is allowed.
REPORTED = (
    # power
    ("an exponent that is text", 'out[:] = pypto.pow(x, "a")', "PT200", "str 'a'"),
    (
        "a power of 8-bit floats",
        "out[:] = pypto.cast(pypto.pow(pypto.cast(x, pypto.DT_FP8E4M3), 2), pypto.DT_FP32)",
        "PT203",
        "pow takes f16, bf16, f32",
    ),
    ("five axes on Ascend", on_ascend("out[:] = pypto.pow(x, 2.5)", "[2, 2, 2, 2, 8]"), "PT526", "5 axes"),
    ("more elements than Ascend's", on_ascend("out[:] = pypto.pow(x, 2.5)", "[65536, 65536]"), "PT526", "at most 2147483647"),
    ("bases and exponents that do not broadcast", "out[:] = pypto.pow(x, x[0:3, :])", "PT301", "[8, 8] and [3, 8]"),
    (
        "two integer dtypes",
        "out[:] = pypto.cast(pypto.pow(pypto.cast(x, pypto.DT_INT8), pypto.cast(x, pypto.DT_INT16)), pypto.DT_FP32)",
        "PT202",
        "i8 and i16",
    ),
    ("an integer to a negative power", "out[:] = pypto.cast(pypto.pow(pypto.cast(x, pypto.DT_INT32), -1), pypto.DT_FP32)", "PT111", "-1"),
    # tiles
    ("a tile size that is text", 'pypto.set_vec_tile_shapes("a", 8)\nout[:] = x', "PT401", "str 'a'"),
    ("a tile size of 0", "pypto.set_vec_tile_shapes(0, 8)\nout[:] = x", "PT401", "size 1 is 0"),
    ("a negative tile size", "pypto.set_vec_tile_shapes(-4, 8)\nout[:] = x", "PT401", "size 1 is -4"),
    ("nine tile sizes", "pypto.set_vec_tile_shapes(1, 1, 1, 1, 1, 1, 1, 1, 1)\nout[:] = x", "PT403", "got 9"),
    ("fewer tile sizes than axes", "pypto.set_vec_tile_shapes(8)\nout[:] = pypto.sum(x, 0, True)", "PT402", "the result of sum has 2 axes"),
    ("a tile beyond the memory", on_ascend("pypto.set_vec_tile_shapes(64, 65536)\n    out[:] = x * 2.0", "[64, 65536]"), "PT410",
     "x: 33554432 B"),
    # operations
    ("a shift of 64 bits on a target without", on_ascend("out[:] = x >> 3", "[128]", "UINT64"), "PT502", "u64"),
    (
        "an integer beside bfloat16",
        "out[:] = pypto.cast(pypto.cast(x, pypto.DT_INT32) + pypto.cast(x, pypto.DT_BF16), pypto.DT_FP32)",
        "PT209",
        "beyond 256",
    ),
    ("a scratch tensor for a reduction", "out[:] = pypto.amax(x, x, -1)", "PT111", "`dim` is a number"),
    ("tiles of two lengths compared", "out[0] = pypto.cast(x[0] > x[0, 0:4], pypto.DT_FP32)", "PT301", "[8] and [4]"),
    ("bits of floats", "out[:] = x & x", "PT203", "integers and bool"),
    (
        "a shift by more bits than there are",
        "out[:] = pypto.cast(pypto.cast(x, pypto.DT_INT32) << 40, pypto.DT_FP32)",
        "PT111",
        "i32 has 32",
    ),
    ("an integer divided by 0", "out[:] = pypto.cast(pypto.cast(x, pypto.DT_INT32) // 0, pypto.DT_FP32)", "PT111", "constant 0"),
    # language
    ("the output rebound", "out = x + x", "PT104", "binds a new local name"),
    ("two names for one loop", "for i, j in pypto.loop(8):\n    out[i:i + 1, :] = x[i:i + 1, :]", "PT124", "one integer"),
    ("a misspelt name in a lambda", "import pypto_dsl.compiler\n\npypto.jit(lambda v: v.sofmax(-1))(x)", "PT109", "sofmax"),
    (
        "a loop in a function of exec",
        "names = {'pypto': pypto}\nimport pypto_dsl.compiler\n\n"
        "exec('def f(x, out):\\n    for i in pypto.loop(8):\\n        out[i:i + 1] = x[i:i + 1]', names)\npypto.jit(names['f'])(x, out)",
        "PT142",
        "source",
    ),
    ("a loop downwards", "for i in pypto.loop(8, 0, -1):\n    out[i - 1:i, :] = x[i - 1:i, :]", "PT146", "step -1"),
)


@pytest.mark.parametrize(("text", "code", "words"), [r[1:] for r in REPORTED], ids=[r[0].replace(" ", "-") for r in REPORTED])
def test_a_reported_mistake_has_its_code(text: str, code: str, words: str, tmp_path: Path) -> None:
    program = catalogue.program(text)
    path = tmp_path / "mistake.py"
    path.write_text(program, encoding="utf-8")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(compile(program, str(path), "exec", dont_inherit=True), {"__name__": "mistake"})
            found = next(w.message.diagnostic for w in warned if isinstance(w.message, pypto.KernelWarning))
        except pypto.KernelError as refused:
            found = refused.diagnostic
    assert found.code == code and words in found.render(), found.render()
    assert found.help and found.primary is not None
    assert found.primary.span.file in (str(path), "<string>"), "the place is the user's"


def test_shapes_from_variables_are_taken(tmp_path: Path) -> None:
    """A shape that a name of the enclosing scope holds is no mistake."""
    path = tmp_path / "shapes.py"
    path.write_text(
        "import pypto_dsl as pypto\n\nshape = [8, 8]\n\n\n@pypto.jit\ndef k(x: pypto.Tensor(shape, pypto.DT_FP32)):\n    return x\n"
    )
    module: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), module)
    assert module["k"].graph().parameters[0].type.rank == 2
