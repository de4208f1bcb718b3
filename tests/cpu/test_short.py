"""The short forms of 16-bit functions give the bits that the f32 functions give when they are rounded."""
from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sweep.cases import UNARY, Array, Kernel, graph
from pypto_dsl.codegen.llvm.bfloat import ROUNDED_TO, shortened
from pypto_dsl.codegen.llvm.intrinsics import SHORT
from pypto_dsl.codegen.llvm.layout import statements
from pypto_dsl.codegen.llvm.math.tables import coefficients
from pypto_dsl.compiler import pipeline
from pypto_dsl.compiler.dtypes import BY_NAME, F32
from pypto_dsl.compiler.graph import Builder, Graph, Value, tensor_type
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.tile_ir import nodes as t
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.executable import Executable

LEVELS = [level.name for level in jit.host_levels()]
CASES = {"gelu_erf": "gelu"}  # where the function is not named as the operation
FORMS = [(CASES.get(name, name), dtype) for name, tables in coefficients("short.json").items() for dtype in tables]


def operands(dtype: str) -> Array:
    return np.arange(1 << 16, dtype=np.uint16).view(BY_NAME[dtype].numpy)


@pytest.mark.parametrize("case, dtype", FORMS)
def test_every_number_as_by_the_f32_function(case: str, dtype: str) -> None:
    x = operands(dtype)
    wide = Kernel(UNARY[case], "f32", x.size)(x.astype(np.float32))
    with np.errstate(over="ignore"):
        expected, number = wide.astype(x.dtype).view(np.uint16), wide == wide
    every = [Kernel(UNARY[case], dtype, x.size, level)(x).view(np.uint16) for level in LEVELS]
    for got in every:
        np.testing.assert_array_equal(got[number], expected[number])
        np.testing.assert_array_equal(got, every[0])  # NaN too


def kept(dtype: str) -> Graph:
    """tanh in f32 of a 16-bit operand, as it is and rounded."""
    made = Graph("kept")
    x = Value(tensor_type(BY_NAME[dtype], [1 << 16]), "x")
    made.parameters.append(x)
    with building(Builder(made)):
        wide = R["tanh"](R["cast"](x, F32))
        for name, value in {"wide": wide, "narrow": R["cast"](wide, BY_NAME[dtype])}.items():
            made.parameters.append(Value(value.type, name))
            made.outputs[name] = value
    return made


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_results_that_are_read_in_f32_are_those_of_the_f32_function(dtype: str) -> None:
    x = operands(dtype)
    wide, narrow = np.empty(x.size, np.float32), np.empty_like(x)
    Executable(pipeline.lower(kept(dtype), "llvm-cpu")).run({"x": x, "wide": wide, "narrow": narrow})
    expected = Kernel(UNARY["tanh"], "f32", x.size)(x.astype(np.float32))
    np.testing.assert_array_equal(wide.view(np.uint32), expected.view(np.uint32))
    np.testing.assert_array_equal(narrow.view(np.uint16), Kernel(UNARY["tanh"], dtype, x.size)(x).view(np.uint16))


def notes(recorded: Graph) -> list[object]:
    """What the Blocks of a kernel say about its tanh."""
    kernels = t.kernels_of(pipeline.lower(recorded, "llvm-cpu").steps)
    blocks = [s for kernel in kernels for s in statements(kernel.body) if isinstance(s, t.Block)]
    return [dict(op.attributes).get(ROUNDED_TO) for block in blocks for op in shortened(block, SHORT).ops if op.name == "tanh"]


def test_short_forms_are_used_where_nothing_else_reads_the_result() -> None:
    assert notes(graph(UNARY["tanh"], "bf16", 64)) == ["bf16"]
    assert notes(graph(UNARY["tanh"], "f16", 64)) == ["f16"]
    assert notes(graph(UNARY["tanh"], "f32", 64)) == [None]
    assert notes(kept("bf16")) == [None]


@pytest.mark.parametrize("case, dtype", FORMS)
def test_fast_kernels_give_the_same_bits_at_every_level(case: str, dtype: str) -> None:
    x = operands(dtype)
    first, *others = [Kernel(UNARY[case], dtype, x.size, level, "fast")(x).view(np.uint16).copy() for level in LEVELS]
    for got in others:
        np.testing.assert_array_equal(got, first)
