"""The defined order of matrix products, written again in NumPy, whatever computes them; its error; and the interpreter's exact values."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cpu_programs import KERNELS, Array, Executable, graph, run

import pypto_dsl as pypto
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.dtypes import BF16, F16, F32, F64, I8, I32, DType
from pypto_dsl.compiler.graph import Builder, Graph, Symbol, Value, tensor_type
from pypto_dsl.compiler.index import Index, var
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.passes.fuse import fuse
from pypto_dsl.compiler.passes.legalize import legalize
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.passes.sink import sink
from pypto_dsl.compiler.passes.tile import tile
from pypto_dsl.compiler.targets.target import Target
from pypto_dsl.compiler.tile_ir.nodes import Program
from pypto_dsl.runtime import interpreter
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.pool import Pool

CPU = targets.load("llvm-cpu")
LEVELS = [level.name for level in jit.host_levels()]
DEPTHS = [1, 2, 255, 256, 257, 511, 512, 700, 1023, 1024, 1025, 1281, 2300, 4096]  # around blocks, and what is packed together


def in_order(a: Array, b: Array) -> Array:
    """f32 products: blocks of 256, each an ascending chain of fused multiply-adds, added in ascending order. Each step is exact in float64
    before it is rounded where the factors are short."""
    total = np.zeros((*a.shape[:-1], b.shape[-1]), np.float32)
    for start in range(0, a.shape[-1], 256):
        block = np.zeros_like(total)
        for k in range(start, min(start + 256, a.shape[-1])):
            block = (block + a[..., k:k + 1].astype(np.float64) * b[..., k:k + 1, :].astype(np.float64)).astype(np.float32)
        total = block if start == 0 else total + block
    return total


def factors(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """Numbers whose products are short enough for float64, and too long for f32."""
    digits = {"f32": 11, "f16": 10, "bf16": 7}[dtype.name]
    rng = np.random.default_rng(seed)
    values = rng.integers(-(2 ** digits), 2 ** digits, shape) * 2.0 ** rng.integers(-9, 0, shape)
    return np.asarray(values.astype(np.float32).astype(dtype.numpy))


def product(shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: DType, known: bool, a_trans: bool = False, b_trans: bool = False,
            bias: bool = False) -> Graph:
    """``a @ b`` in f32 (of f64 and integers: in their own), with extents that are known or symbols; ``bias`` adds its own first row."""
    g = Graph("product")
    for name, shape in zip("ab", shapes, strict=True):
        axes: list[Index | int] = list(shape)
        for axis in () if known else range(len(shape)):
            symbol = f"{name}{axis}"
            if name == "b":  # what both have is one symbol
                depth = axis == len(shape) - (1 if b_trans else 2)
                symbol = f"a{len(shape) - (2 if a_trans else 1)}" if depth else f"a{axis}" if axis < len(shape) - 2 else symbol
            g.symbols.setdefault(symbol, Symbol(symbol, "dim", name, axis))
            axes[axis] = var(symbol)
        g.parameters.append(Value(tensor_type(dtype, axes), name))
    with building(Builder(g)):
        result = F32 if dtype.bits <= 32 and dtype.is_float else None
        value = REGISTRY["matmul"](*g.parameters, out_dtype=result, a_trans=a_trans, b_trans=b_trans)
        if bias:
            value = REGISTRY["add"](value, REGISTRY["mul"](value, 0.5))
    g.parameters.append(Value(value.type, "out"))
    g.outputs["out"] = value
    return g


def lowered(g: Graph, target: Target = CPU) -> Program:
    legal = sink(legalize(promote(g), target))
    return tile(legal, fuse(legal), target)


def turned(x: Array, by: bool) -> Array:
    return np.ascontiguousarray(np.swapaxes(x, -1, -2)) if by else x


@pytest.mark.parametrize("k", DEPTHS)
def test_products_follow_the_defined_order(k: int) -> None:
    """At every width, with extents that are known and that are not."""
    a, b = factors((7, k), F32, k), factors((k, 70), F32, k + 1)
    want = in_order(a, b).tobytes()
    for g in (graph("matmul", KERNELS["matmul"]), graph("matmul", KERNELS["matmul"], {"M": 7, "N": 70, "K": k})):
        for level in LEVELS:
            assert run("matmul", {"a": a, "b": b}, {}, Executable(lowered(g), level=level)).tobytes() == want, level


FORMS: list[tuple[tuple[int, ...], tuple[int, ...], bool, bool, bool]] = [
    ((1, 700), (700, 33), False, False, False), ((33, 700), (700, 1), False, False, False), ((1, 2300), (2300, 1), False, True, False),
    ((9, 700), (700, 65), True, True, False), ((129, 520), (520, 130), True, False, False),
    ((3, 5, 600), (3, 600, 19), False, False, False), ((3, 5, 600), (3, 600, 19), True, True, True),
    ((13, 1100), (1100, 67), False, True, True),
]


@pytest.mark.parametrize("dtype", [F32, F16, BF16], ids=str)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_of_a_product_has_the_same_order(form: tuple[Any, ...], dtype: DType) -> None:
    """Rows, columns, batches, transposed operands, and what is fused behind; with extents known and not."""
    left, right, a_trans, b_trans, bias = form
    a, b = factors(left, dtype, 1), factors(right, dtype, 2)
    want = in_order(a.astype(np.float32), b.astype(np.float32))
    want = want + want * np.float32(0.5) if bias else want
    a, b = turned(a, a_trans), turned(b, b_trans)
    for known in (True, False):
        out = np.full(want.shape, 77, np.float32)
        Executable(lowered(product((a.shape, b.shape), dtype, known, a_trans, b_trans, bias))).run({"a": a, "b": b, "out": out}, {})
        assert out.tobytes() == want.tobytes(), known


def test_no_tile_or_thread_changes_a_product() -> None:
    """However many rows, columns and k an item takes, and whoever takes it."""
    a, b = factors((70, 1300), F32, 3), factors((1300, 140), F32, 4)
    want = in_order(a, b).tobytes()
    for cut in ((1024, 128, 1024), (16, 32, 256), (1, 1, 512), (5, 200, 1280)):
        program = lowered(graph("matmul", KERNELS["matmul"]), replace(CPU, tile=replace(CPU.tile, matmul=cut)))
        for threads in (1, 3):
            shared = Executable(program, pool=Pool(threads), launch={"serial_elements": 0, "chunk_elements": 1, "chunks_per_thread": 64})
            assert run("matmul", {"a": a, "b": b}, {}, shared).tobytes() == want, cut


@pytest.mark.parametrize("k", [256, 4096, 65536, 200_000])
def test_the_error_of_a_long_product_is_bounded(k: int) -> None:
    """At most 255 roundings in a block and one for each block stand behind one another. The first term is so large that every chain loses
    what is added to it: all of k, if there were one chain."""
    a = np.ones((2, k), np.float32)
    a[:, 0] = 2.0 ** 24
    a[1] = np.random.default_rng(k).random(k, np.float32)
    b = np.ones((k, 3), np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    got = run("matmul", {"a": a, "b": b}, {}, Executable(lowered(graph("matmul", KERNELS["matmul"]))))
    assert (np.abs(got - exact) <= 2.0 ** -24 * (255 + -(-k // 256)) * exact).all()


@pytest.mark.parametrize("dtype", [F32, F16, BF16, F64, I8, I32], ids=str)
@pytest.mark.parametrize("k", [3, 256, 300, 1025, 2047])
def test_products_that_are_exact_are_the_interpreter_s_bit_for_bit(dtype: DType, k: int) -> None:
    """The interpreter rounds the exact product once; where every partial sum is a float, so does every order."""
    rng = np.random.default_rng(k)
    for a_trans, b_trans in ((False, False), (True, True)):
        a, b = (rng.integers(-9, 10, s).astype(dtype.numpy) for s in ((2, 5, k), (2, k, 21)))
        a, b = turned(a, a_trans), turned(b, b_trans)
        g = product((a.shape, b.shape), dtype, True, a_trans, b_trans)
        out = np.full((2, 5, 21), 77, g.outputs["out"].type.dtype.numpy)
        want = interpreter.run(g, {"a": a, "b": b, "out": out})["out"]
        Executable(lowered(g)).run({"a": a, "b": b, "out": out}, {})
        assert out.tobytes() == want.tobytes()


def test_a_product_of_nothing_is_zero() -> None:
    a, b = np.empty((4, 0), np.float32), np.empty((0, 5), np.float32)
    for known in ({}, {"M": 4, "N": 5, "K": 0}):
        assert (run("matmul", {"a": a, "b": b}, {}, Executable(lowered(graph("matmul", KERNELS["matmul"], known)))) == 0).all()


def test_operations_made_of_products_have_their_order() -> None:
    """What expands to products adds in their order: a batched product that turns its operands is the plain one of each."""
    a, b = factors((2, 6, 900), F32, 7), factors((2, 900, 40), F32, 8)

    @pypto.jit
    def both(a: pypto.Tensor([2, 6, 900], pypto.DT_FP32), b: pypto.Tensor([2, 900, 40], pypto.DT_FP32),  # type: ignore[valid-type]
             out: pypto.Tensor([2, 6, 40], pypto.DT_FP32), each: pypto.Tensor([2, 6, 40], pypto.DT_FP32)) -> None:  # type: ignore[valid-type]
        out[:] = pypto.matmul(a, b)
        for i in range(2):
            each[i:i + 1, :, :] = pypto.reshape(pypto.matmul(a[i], b[i]), [1, 6, 40])

    out, each = np.empty((2, 6, 40), np.float32), np.empty((2, 6, 40), np.float32)
    both(a, b, out, each)
    assert out.tobytes() == each.tobytes() == in_order(a, b).tobytes()
