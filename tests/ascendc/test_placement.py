"""Placement: bytes shared by lifetime, refusals with their numbers, strips of an epilogue, one stage per buffer."""
from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from pypto_dsl.codegen.ascendc import emit
from pypto_dsl.compiler.dtypes import BF16, F32, I32
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.index import as_index, ceildiv, minimum, var
from pypto_dsl.compiler.placement.ascend import place
from pypto_dsl.compiler.placement.ascend.walk import bodies, reads, statements, writes
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import Target, load
from pypto_dsl.compiler.targets.target import from_data
from pypto_dsl.compiler.tile_ir import nodes as t
from pypto_dsl.compiler.tile_ir.ascend import Call, Queue, View
from pypto_dsl.compiler.tile_ir.placed import QueueAction
from pypto_dsl.runtime.emulator.ascendc.runner import build, execute
from tests.ascendc.kernels import KERNELS, TARGET, arguments, error, graph, placed

A2 = load(TARGET)


def with_capacity(room: int) -> Target:
    data: dict[str, Any] = copy.deepcopy(dict(A2.data))
    data["memory"]["ub"]["bytes"] = room
    return from_data(data)


def run(program: t.Program, target: Target, arrays: dict[str, np.ndarray[Any, Any]], cores: int = 2) -> np.ndarray[Any, Any]:
    files = emit(program, target)
    return execute(build(files.manifest, files.files, optimize=0), files.manifest, arrays, {}, cores)[0]["out"]


# ---- a structured kernel of our own, for what the tile pass does not produce -----------------------------------------------


def chain(rows: int, cols: int, length: int, name: str = "chain") -> t.Program:
    """out = erf(erf(... exp(x))) by tiles of rows x cols: no erf may write over its operand, so each value takes a buffer."""
    m, n = var("M"), var("N")
    x, out = t.Param("x", F32, (m, n), "in"), t.Param("out", F32, (m, n), "out")
    span = Span("chain.py", 3)
    xt = t.Buffer("x_tile", F32, (as_index(rows), as_index(cols)), 2, span=span)
    ot = t.Buffer("out_tile", F32, (as_index(rows), as_index(cols)), 2, span=Span("chain.py", 9))
    r, c = var("i") * rows, var("j") * cols
    height, width = minimum(rows, m - var("row")), minimum(cols, n - var("col"))
    ops = [t.BlockOp("v0", "exp", (t.ReadBuffer(xt),), F32, span=Span("chain.py", 4))]
    ops += [t.BlockOp(f"v{i}", "erf", (f"v{i - 1}",), F32, span=Span("chain.py", 4 + i)) for i in range(1, length)]
    total = f"v{length - 1}"
    here = (var("row"), var("col"))
    body = (
        t.Let("row", r), t.Let("col", c), t.Let("rows", height), t.Let("cols", width),
        t.Load(xt, t.Region(x, here, (var("rows"), var("cols")))),
        t.Block(var("rows"), var("cols"), tuple(ops), (t.Write(total, ot),)),
        t.Store(t.Region(out, here, (var("rows"), var("cols"))), ot),
    )
    scalars = (t.Scalar("M", I32), t.Scalar("N", I32))
    grid = t.Grid(("i", "j"), (ceildiv(m, rows), ceildiv(n, cols)))
    kernel = t.TileKernel(name, name, (x, out), scalars, grid, body, span=Span("chain.py", 1))
    return t.Program(name, TARGET, (x, out), scalars, (), ((kernel,),))


def chain_reference(x: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    value = np.exp(x)
    for _ in range(1, length):
        value = np.vectorize(math.erf)(value)
    return value


# ---- bytes -----------------------------------------------------------------------------------------------------------------


def shared_bytes(program: t.Program) -> int:
    """How many pairs of views overlap in bytes."""
    count = 0
    for kernel in (k for variants in program.steps if isinstance(variants, tuple) for k in variants):
        views = [s for s in kernel.body if isinstance(s, View)]
        spans = [(v.offset, v.offset + v.elements * v.buffer.dtype.itemsize) for v in views]
        count += sum(a[0] < b[1] and b[0] < a[1] for i, a in enumerate(spans) for b in spans[:i])
    return count


def test_there_is_no_sharing_while_there_is_room() -> None:
    assert shared_bytes(place(chain(8, 512, 5), A2)) == 0
    assert shared_bytes(place(chain(8, 512, 12), A2)) > 0


@pytest.mark.parametrize("name", ["softmax", "layer_norm_any", "ldexp_bf16", "bias_gelu", "tril"])
def test_a_tight_memory_shares_bytes_and_computes_the_same(name: str) -> None:
    from pypto_dsl.compiler.pipeline import lower  # noqa: PLC0415 - the target differs from the cached programs'

    kernel = KERNELS[name]
    full = max(s.buffer.offset + s.elements * s.buffer.dtype.itemsize for k in kernels(placed(name)) for s in k.body if isinstance(s, View))
    target = with_capacity(int(full * 0.85) + (A2.data["vector"]["select_room"] if name == "tril" else 0))
    program = lower(graph(kernel), target)
    for extents in kernel.shapes:
        arrays = arguments(kernel, extents)
        assert error(kernel, run(program, target, arrays), arrays) <= kernel.allowed


def kernels(program: t.Program) -> list[t.TileKernel]:
    return [kernel for variants in program.steps if isinstance(variants, tuple) for kernel in variants]


@pytest.mark.parametrize("length", [3, 6, 9])
def test_lifetimes_that_share_bytes_do_not_overlap(length: int) -> None:
    """An independent check: walk the placed body twice in execution order and follow which buffer's value each byte holds."""
    queues, tile, scratch = 4 * 4096, 4096, 2048
    target = with_capacity(queues + 2 * tile + scratch)
    program = place(chain(8, 128, length), target)
    (kernel,) = kernels(program)
    assert (shared_bytes(program) > 0) == (length > 3)
    views = {s.buffer.name: (s.offset, s.offset + s.elements * 4) for s in kernel.body if isinstance(s, View)}
    holder: dict[int, str] = {}
    for statement in [*statements(kernel.body), *statements(kernel.body)]:
        if bodies(statement):
            continue
        for name in {ref.buffer.name for ref in reads(statement)} & views.keys():
            assert all(holder[byte] == name for byte in range(*views[name], 32)), f"{name} was overwritten before {statement}"
        for name in {ref.buffer.name for ref in writes(statement)} & views.keys():
            holder.update(dict.fromkeys(range(*views[name], 32), name))
    x = np.random.default_rng(1).standard_normal((19, 300)).astype(np.float32)
    assert np.allclose(run(program, target, {"x": x}), chain_reference(x, length), rtol=1e-6)


# ---- refusals --------------------------------------------------------------------------------------------------------------


def test_too_big_a_tile_lists_every_buffer_and_the_largest_that_fits() -> None:
    with pytest.raises(KernelError) as caught:
        place(chain(64, 512, 3), A2)
    text, diagnostic = str(caught.value), caught.value.diagnostic
    assert caught.value.code == "PT410"
    assert diagnostic.fields["needed"] > diagnostic.fields["capacity"] == A2.data["memory"]["ub"]["bytes"]
    assert sum(size for _, size in diagnostic.fields["buffers"]) == diagnostic.fields["needed"]
    assert "x: 262144 B = 2 x 64 x 512 f32, chain.py:3:1" in diagnostic.notes
    assert "the largest tile that fits is 15 x 512: pypto.set_vec_tile_shapes(15, 512)" in text
    place(chain(15, 512, 3), A2)
    with pytest.raises(KernelError, match="2 x 17 x 512"):
        place(chain(17, 512, 4), with_capacity(196352 // 2))


def test_more_rows_than_a_call_repeats() -> None:
    with pytest.raises(KernelError) as caught:
        place(chain(256, 16, 2), A2)
    assert caught.value.code == "PT412" and "256 rows" in str(caught.value) and "255" in str(caught.value)


def test_an_operation_on_a_dtype_that_the_target_lacks() -> None:
    program = chain(8, 128, 2)
    (kernel,) = kernels(program)
    wrong = dataclasses.replace(kernel, body=tuple(_as_bf16(s) for s in kernel.body))
    with pytest.raises(KernelError) as caught:
        place(dataclasses.replace(program, steps=((wrong,),)), A2)
    assert caught.value.code == "PT502" and "exp" in str(caught.value) and "bf16" in str(caught.value)


def _as_bf16(statement: t.Statement) -> t.Statement:
    if not isinstance(statement, t.Block):
        return statement
    ops = tuple(dataclasses.replace(op, dtype=BF16) for op in statement.ops)
    first = dataclasses.replace(ops[0], operands=(t.Constant(1.0, BF16),))
    return dataclasses.replace(statement, ops=(first, *ops[1:]))


# ---- forms -----------------------------------------------------------------------------------------------------------------


def calls(kernel: t.TileKernel) -> list[Call]:
    return [s for s in statements(kernel.body) if isinstance(s, Call)]


def test_loads_in_loops_are_double_buffered() -> None:
    """A single slot computes the same, so that only this test sees a lost overlap of copy and compute."""
    for name in KERNELS:
        for kernel in kernels(placed(name)):
            loops = [s for s in kernel.body if isinstance(s, t.For)]
            moving = {s.buffer.name for loop in loops for s in statements(loop.body) if isinstance(s, QueueAction) and s.action == "alloc"}
            loads = ("VECIN", "A1", "B1", "A2", "B2")
            slots = {s.buffer.name: s.buffer.slots for s in kernel.body if isinstance(s, Queue) and s.position in loads}
            assert all(slots[buffer] == 2 for buffer in moving & slots.keys()), (name, kernel.name, slots)


def test_rows_that_no_stride_reaches_are_worked_off_one_by_one() -> None:
    """Rows of 2,048 f32 are 256 blocks apart, and a stride has 8 bits."""
    program = place(_broadcast(4, 2048), A2)
    (kernel,) = kernels(program)
    forms = [c for c in calls(kernel) if c.repeat is not None and c.name in ("sub", "maximum")]
    assert forms and all(step <= 255 for c in forms for step in c.repeat.steps)  # type: ignore[union-attr]
    x = np.random.default_rng(2).standard_normal((9, 2048)).astype(np.float32)
    for width in (2048, 2001, 64, 5):
        got = run(program, A2, {"x": np.ascontiguousarray(x[:, :width])})
        assert np.array_equal(got, x[:, :width] - x[:, :width].max(axis=1, keepdims=True))


def _broadcast(rows: int, cols: int) -> t.Program:
    """out = x - max(x, axis=1) with whole rows."""
    m, n = var("M"), var("N")
    x, out = t.Param("x", F32, (m, n), "in"), t.Param("out", F32, (m, n), "out")
    shape = (as_index(rows), as_index(cols))
    xt, ot = t.Buffer("x_tile", F32, shape, 2), t.Buffer("out_tile", F32, shape, 2)
    top = t.Buffer("top", F32, (as_index(rows), as_index(1)), layout="column")
    here, size = (var("row"), as_index(0)), (var("rows"), n)
    body = (
        t.Let("row", var("i") * rows), t.Let("rows", minimum(rows, m - var("row"))),
        t.Load(xt, t.Region(x, here, size)),
        t.Block(var("rows"), n, (), (), (t.Reduce("max", t.ReadBuffer(xt), 1, top),)),
        t.Block(var("rows"), n, (t.BlockOp("d", "sub", (t.ReadBuffer(xt), t.ReadBuffer(top, "col")), F32),), (t.Write("d", ot),)),
        t.Store(t.Region(out, here, size), ot),
    )
    scalars = (t.Scalar("M", I32), t.Scalar("N", I32))
    kernel = t.TileKernel("shifted", "shifted", (x, out), scalars, t.Grid(("i",), (ceildiv(m, rows),)), body, requires=(cols - n,))
    return t.Program("shifted", TARGET, (x, out), scalars, (), ((kernel,),))


def test_a_store_of_what_was_loaded_gets_a_buffer_of_its_own() -> None:
    m = var("M")
    x, out = t.Param("x", F32, (m,), "in"), t.Param("out", F32, (m,), "out")
    xt = t.Buffer("x_tile", F32, (as_index(1), as_index(256)), 2)
    start, count = var("i") * 256, minimum(256, m - var("i") * 256)
    body = (t.Load(xt, t.Region(x, (start,), (count,))), t.Store(t.Region(out, (start,), (count,)), xt))
    scalars = (t.Scalar("M", I32),)
    kernel = t.TileKernel("copied", "copied", (x, out), scalars, t.Grid(("i",), (ceildiv(m, 256),)), body)
    program = place(t.Program("copied", TARGET, (x, out), scalars, (), ((kernel,),)), A2)
    for size in (1, 9, 700):
        x_values = np.random.default_rng(size).standard_normal(size).astype(np.float32)
        assert np.array_equal(run(program, A2, {"x": x_values}), x_values)


def test_the_epilogue_of_a_product_goes_by_strips_that_fit() -> None:
    vector = next(k for k in kernels(placed("bias_gelu")) if k.unit == "vector")
    strips = [s for s in statements(vector.body) if isinstance(s, t.For) and s.var == "strip"]
    assert len(strips) == 1 and strips[0].step.constant in (8, 16, 32, 64)
