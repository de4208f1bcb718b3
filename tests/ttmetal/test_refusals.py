"""What the target cannot do is refused by code, with the numbers and the user's line; our own mistakes are caught by the verifier."""
from __future__ import annotations

import re
from dataclasses import replace

import kernels
import numpy as np
import pytest
from kernels import Case, graph

from pypto_dsl.compiler.dtypes import BF16, F16, F32, F64
from pypto_dsl.compiler.errors import CompilerBug, KernelError
from pypto_dsl.compiler.index import as_index, var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.placement.ttmetal import place_kernel
from pypto_dsl.compiler.placement.ttmetal.rings import rebuffer
from pypto_dsl.compiler.placement.ttmetal.roles import flat
from pypto_dsl.compiler.placement.ttmetal.verify import verify_placed
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import load
from pypto_dsl.compiler.tile_ir import nodes as t
from pypto_dsl.compiler.tile_ir.ttmetal import Dst, Ring
from pypto_dsl.runtime.emulator.ttmetal.runner import run

TARGET = load("tt-wormhole")
HERE = Span("user.py", 7)
M, N = var("M"), var("N")


def refused(function, *parameters, code):
    with pytest.raises(KernelError) as caught:
        lower(graph("user", Case(function, parameters, lambda a: None)), "tt-wormhole")
    assert caught.value.code == code
    return str(caught.value)


def copy_kernel(offset, extent, *, buffer=(32, 32), strides=None):
    """A hand-written kernel that copies a region of x to the same region of y."""
    x, y = (t.Param(n, F32, (M, N), role, strides) for n, role in (("x", "in"), ("y", "out")))
    tile = t.Buffer("tile", F32, (as_index(buffer[0]), as_index(buffer[1])), 2, span=HERE)
    out = replace(tile, name="out_tile")
    where, size = tuple(map(as_index, offset)), tuple(map(as_index, extent))
    body = (t.Load(tile, t.Region(x, where, size), (), HERE),
            t.Block(size[0], size[1], (t.BlockOp("v", "exp", (t.ReadBuffer(tile),), F32, (), HERE),), (t.Write("v", out),), (), HERE),
            t.Store(t.Region(y, where, size), out, HERE))
    return t.TileKernel("user_0", "user", (x, y), (), t.Grid((), ()), body, span=HERE)


@pytest.mark.parametrize("offset, extent, what", [
    ((8, 0), (32, 32), "starts at 8"), ((0, 16), (32, 32), "starts at 16"), ((0, 0), (10, 32), "ends at 10"),
    ((0, 0), (32, 33), "ends at 33")])
def test_regions_are_whole_tiles(offset, extent, what):
    with pytest.raises(KernelError, match=what) as caught:
        place_kernel(copy_kernel(offset, extent), TARGET)
    assert caught.value.code == "PT521" and "user.py:7" in str(caught.value)


def test_strided_views_are_refused():
    with pytest.raises(KernelError, match="a view that is strided") as caught:
        place_kernel(copy_kernel((0, 0), (32, 32), strides=(as_index(1), M)), TARGET)
    assert caught.value.code == "PT522"


def test_l1_is_accounted_buffer_by_buffer():
    """The message lists every ring with its bytes and line, adds up, and the tile that it proposes fits."""
    def twice(cols):
        kernel = copy_kernel((0, 0), (32, cols), buffer=(32, cols))
        load, block, store = kernel.body
        kept = replace(load.buffer, name="kept", slots=1)
        first = replace(block, writes=(t.Write("v", kept),))
        again = t.BlockOp("w", "mul", (t.ReadBuffer(load.buffer), t.ReadBuffer(kept)), F32, (), HERE)
        return replace(kernel, body=(load, first, replace(block, ops=(again,), writes=(t.Write("w", store.buffer),)), store))

    with pytest.raises(KernelError) as caught:
        place_kernel(twice(8192), TARGET)
    said = str(caught.value)
    assert caught.value.code == "PT410"
    assert "tile: 512 pages of 4096 = 2,097,152 bytes (user.py:7)" in said
    assert "kept: 256 pages of 4096 = 1,048,576 bytes (user.py:7)" in said
    assert "needs 3,153,920 bytes" in said
    largest = int(re.search(r"largest tile that fits is 32 x (\d+)", said).group(1))
    place_kernel(twice(largest), TARGET)
    with pytest.raises(KernelError, match="PT410"):
        place_kernel(twice(largest + 32), TARGET)


def test_a_core_has_32_circular_buffers():
    names = [f"p{i}" for i in range(33)]

    def total(*tensors):
        value = tensors[0]
        for other in tensors[1:]:
            value = R["add"](value, other)
        return value

    assert "34 circular buffers" in refused(total, *((n, BF16, ("M", "N")) for n in names), code="PT411")


def test_operations_without_a_spelling():
    refused(R["matmul"], ("a", F16, ("M", "K")), ("b", F16, ("K", "N")), code="PT502")
    assert "there is no product" in refused(lambda x: R["prod"](x, -1, True), ("x", F32, ("M", "N")), code="PT502")
    assert "24 bits" in refused(R["remainder"], ("x", F32, ("M", "N")), ("y", F32, ("M", "N")), code="PT502")
    assert "a float's bits" in refused(R["copysign"], ("x", F32, ("M", "N")), ("y", F32, ("M", "N")), code="PT502")


def test_transposed_first_operand():
    refused(lambda a, b: R["matmul"](a, b, F32, True, False), ("a", BF16, ("K", "M")), ("b", BF16, ("K", "N")), code="PT523")


def test_values_of_many_slots_in_rows_without_a_static_length():
    text = refused(lambda x: R["sum"](R["hypot"](x, x), -1, True), ("x", F32, ("M", "N")), code="PT523")
    assert "no static bound" in text


def test_dtypes_without_a_tile_format():
    load, *_, store = copy_kernel((0, 0), (32, 32)).body
    wide = replace(load.buffer, dtype=F64)
    kernel = replace(copy_kernel((0, 0), (32, 32)), body=(replace(load, buffer=wide), replace(store, buffer=wide)))
    with pytest.raises(KernelError, match="f64, which has no tile format") as caught:
        place_kernel(kernel, TARGET)
    assert caught.value.code == "PT502"


def test_extents_that_no_schedule_takes():
    made = kernels.emitted("add_f32")
    step = [{**k, "requires": ["10 - N"]} for k in made.manifest["steps"][0]]
    x = np.ones((4, 40), np.float32)
    with pytest.raises(KernelError, match="N = 40") as caught:
        run({**made.manifest, "steps": [step]}, made.files, {"x": x, "y": x})
    assert caught.value.code == "PT520"


# ---- the verifier ----------------------------------------------------------------------------------------------------------------


def edited(name, role, change):
    """The first kernel of a case with one role's statements changed."""
    kernel = kernels.placed(name).steps[0][0]

    def visit(statements):
        result = []
        for s in statements:
            s = change(s)
            if s is not None and hasattr(s, "body"):
                s = replace(s, body=tuple(visit(s.body)))
            result += [] if s is None else [s]
        return result

    return replace(kernel, body=tuple(replace(s, body=tuple(visit(s.body))) if s.role == role else s for s in kernel.body))


BROKEN = {
    "a push is missing": ("reader", lambda s: None if isinstance(s, Ring) and s.action == "push" else s, "is filled by"),
    "a pop too many": ("compute", lambda s: replace(s, pages=s.pages + 1) if isinstance(s, Ring) and s.action == "pop" else s, "pages"),
    "no commit": ("compute", lambda s: None if s == Dst("commit") else s, "wait of DST where commit is due"),
    "no release": ("compute", lambda s: None if s == Dst("release") else s, "loop that ends in another state"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_verifier_finds_what_is_broken(what):
    role, change, message = BROKEN[what]
    with pytest.raises(CompilerBug, match=message):
        verify_placed(edited("add_f32", role, change), TARGET)


def test_the_verifier_finds_a_ring_too_small():
    """softmax keeps exp(x - max) in a ring of one row; half of it would make compute wait for itself."""
    kernel = kernels.placed("softmax_f32").steps[0][0]
    rings = [s.buffer for r in kernel.body for s in flat(r.body) if isinstance(s, Ring)]
    small = {b.name: replace(b, slots=0) for b in rings if b.slots == 1}
    with pytest.raises(CompilerBug, match="before the first is taken"):
        verify_placed(rebuffer(kernel, small), TARGET)
