"""Tile IR text: printed and read back, hand-made kernels of every shape are equal, and print the same bytes again."""
from __future__ import annotations

import dataclasses
import math
import typing
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_dsl.compiler.dtypes import BF16, BOOL, F32, I32, I64, DType
from pypto_dsl.compiler.errors import CompilerBug, KernelError
from pypto_dsl.compiler.index import Index, as_index, ceildiv, minimum, var
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir import reader
from pypto_dsl.compiler.tile_ir.nodes import (
    Accumulate,
    Block,
    BlockOp,
    BranchStep,
    Buffer,
    Constant,
    Fill,
    Finish,
    For,
    Grid,
    HostCall,
    If,
    IndexValue,
    Init,
    LaneIndex,
    Let,
    Load,
    LoopStep,
    Pad,
    Param,
    PlacedStatement,
    Program,
    ReadBuffer,
    ReadElement,
    Reduce,
    Region,
    Scalar,
    ScalarRead,
    Statement,
    Store,
    TileKernel,
    Workspace,
    Write,
)
from pypto_dsl.compiler.tile_ir.placed import Barrier, BufferRef, QueueAction
from pypto_dsl.compiler.tile_ir.reader import placed_statements, read_kernel, read_program
from pypto_dsl.compiler.tile_ir.text import keyword, print_kernel, print_program

M, N, K = var("M"), var("N"), var("K")
r, rows, c, cols, kk = var("r"), var("rows"), var("c"), var("cols"), var("kk")
ONE, ZERO = as_index(1), as_index(0)
AT = Span("softmax.py", 9, 5, 9, 20)
EXTENTS = (Scalar("M", I64), Scalar("N", I64))


def _buffer(name: str, dtype: DType = F32, shape: tuple[int, int] = (16, 4096), **more: typing.Any) -> Buffer:
    return Buffer(name, dtype, (as_index(shape[0]), as_index(shape[1])), **more)


def _row_grid() -> tuple[Grid, tuple[Let, Let]]:
    return Grid(("g",), (ceildiv(M, 16),)), (Let("r", var("g") * 16), Let("rows", minimum(16, M - r), 32))


def softmax() -> TileKernel:
    x, y = Param("x", F32, (M, N), "in"), Param("y", F32, (M, N), "out", (N * 2, ONE))
    xt = _buffer("xt", slots=2, span=AT, note="rows of \"x\"\nand more", pitch=4096, offset=1024)
    mx, s = (_buffer(n, shape=(16, 1), layout="column") for n in ("mx", "s"))
    et, yt = _buffer("et", space="VECCALC"), _buffer("yt", slots=2, tiles=ceildiv(N, 32), direct=True)
    grid, lets = _row_grid()
    whole = Region(x, (r, ZERO), (rows, N))
    return TileKernel("softmax_0", "softmax", (x, y), EXTENTS, grid, (
        *lets,
        Load(xt, whole, (Pad(1, -math.inf, N), Pad(0, 0.0, rows)), AT),
        Block(rows, N, (), (), (Reduce("max", ReadBuffer(xt), 1, mx, span=AT, source="mx"),), AT),
        Block(rows, N, (BlockOp("d", "sub", (ReadBuffer(xt), ReadBuffer(mx, "col")), F32),
                        BlockOp("e", "exp", ("d",), F32, (("precision_type", "INTRINSIC"),), AT, "e")),
              (Write("e", et),), (Reduce("sum", "e", 1, s),), text="e = exp(x - max)"),
        Block(rows, N, (BlockOp("q", "div", (ReadBuffer(et), ReadBuffer(s, "col")), F32),), (Write("q", yt),)),
        Store(dataclasses.replace(whole, param=y), yt, AT)),
        requires=(4096 - N, N - 1), span=AT, properties=(("whole_row", True), ("fp32 dest", 1), ("note", "x")))


def layer_norm() -> TileKernel:
    n = as_index(100)
    x, gamma, y = Param("x", BF16, (M, n), "in"), Param("gamma", BF16, (n,), "in"), Param("y", BF16, (M, n), "out")
    xt, gt, yt = _buffer("xt", BF16, (16, 100)), _buffer("gt", BF16, (1, 100), layout="row"), _buffer("yt", BF16, (16, 100))
    mean, var_ = (_buffer(n, shape=(16, 1), layout="column") for n in ("mean", "var"))
    grid, lets = _row_grid()
    wide = (BlockOp("x32", "cast", (ReadBuffer(xt),), F32, (("mode", "CAST_NONE"),)),)
    return TileKernel("layer_norm_0", "layer_norm", (x, gamma, y), (*EXTENTS[:1], Scalar("epsilon", F32)), grid, (
        *lets, Load(xt, Region(x, (r, ZERO), (rows, n))),
        Block(rows, n, wide, (), (Reduce("sum", "x32", 1, mean),)),
        Block(rows, ONE, (BlockOp("m", "div", (ReadBuffer(mean), IndexValue(N, F32)), F32),), (Write("m", mean),)),
        Block(rows, n, (*wide, BlockOp("c", "sub", ("x32", ReadBuffer(mean, "col")), F32), BlockOp("s", "mul", ("c", "c"), F32)), (),
              (Reduce("sum", "s", 1, var_),)),
        Block(rows, n, (BlockOp("v", "add", (ReadBuffer(var_, "col"), ScalarRead("epsilon", F32)), F32), BlockOp("d", "sqrt", ("v",), F32),
                        BlockOp("o", "mul", ("d", ReadBuffer(gt, "row")), BF16)), (Write("o", yt),)),
        Store(Region(y, (r, ZERO), (rows, n)), yt)),
        once=(Load(gt, Region(gamma, (ZERO,), (n,))), Fill(mean, 0.0), Fill(var_, -math.inf, AT)))


def column_sum() -> TileKernel:
    x, y = Param("x", F32, (M, N), "in"), Param("y", F32, (N,), "inout")
    xt, acc = _buffer("xt", shape=(64, 128)), _buffer("acc", shape=(1, 128), layout="row")
    step = Block(rows, cols, (), (), (Reduce("sum", ReadBuffer(xt), 0, acc, accumulate=True),))
    return TileKernel("column_sum", "sum", (x, y), EXTENTS, Grid(("j",), (ceildiv(N, 128),)), (
        Let("c", var("j") * 128), Let("cols", minimum(128, N - c)),
        Init("sum", 0, acc, M, cols),
        For("r", ZERO, M, as_index(64), "reduce",
            (Let("rows", minimum(64, M - r)), Load(xt, Region(x, (r, c), (rows, cols))), step), "rows"),
        Finish("sum", 0, acc, M, cols, AT),
        If(N % 2, (Fill(acc, 1),), (Fill(acc, 2.0), If(M, ()))),
        Store(Region(y, (c,), (cols,)), acc)), unit="mix")


def matmul_bias_gelu() -> TileKernel:
    a, b = Param("a", BF16, (M, K), "in"), Param("b", BF16, (N, K), "in")
    bias, y = Param("bias", BF16, (N,), "in"), Param("y", BF16, (M, N), "out")
    at, bt = _buffer("at", BF16, (64, 32), space="L0A"), _buffer("bt", BF16, (64, 32), space="L0B")
    acc, biast = _buffer("acc", shape=(64, 64), space="acc"), _buffer("bias", BF16, (1, 64), layout="row")
    yt = _buffer("yt", BF16, (64, 64))
    depth = minimum(32, K - kk)
    return TileKernel("matmul_0", "matmul", (a, b, bias, y), (*EXTENTS, Scalar("K", I64), Scalar("k_tiles", I64, ceildiv(K, 32))),
                      Grid(("i", "j"), (ceildiv(M, 64), ceildiv(N, 64))), (
        Accumulate("kk", K, as_index(32), (Load(at, Region(a, (r, kk), (rows, depth))), Load(bt, Region(b, (c, kk), (cols, depth)))),
                   at, bt, acc, rows, cols, b_transposed=True, span=AT, text="a @ b.T"),
        Load(biast, Region(bias, (c,), (cols,))),
        Block(rows, cols, (
            BlockOp("w", "cast", (ReadBuffer(biast, "row"),), F32), BlockOp("s", "add", (ReadBuffer(acc), "w"), F32),
            BlockOp("g", "gelu", ("s",), F32, (("approximate", "none"),)), BlockOp("o", "cast", ("g",), BF16)), (Write("o", yt),)),
        Store(Region(y, (r, c), (rows, cols)), yt)), unit="cube")


def tril() -> TileKernel:
    x, y = Param("x", F32, (M, N), "in"), Param("y", F32, (M, N), "out")
    xt, yt = _buffer("xt"), _buffer("yt")
    grid, lets = _row_grid()
    return TileKernel("tril_0", "tril", (x, y), EXTENTS, grid, (
        *lets, Load(xt, Region(x, (r, ZERO), (rows, N))),
        Block(rows, N, (
            BlockOp("col", "sub", (LaneIndex(1, ZERO, I32), LaneIndex(0, r, I32)), I32),
            BlockOp("keep", "le", ("col", Constant(0, I32)), BOOL),
            BlockOp("o", "where", ("keep", ReadBuffer(xt), Constant(-0.0, F32)), F32),
            BlockOp("p", "maximum", ("o", Constant(-math.inf, F32)), F32),
            BlockOp("q", "add", (Constant(1e-5, F32), Constant(True, BOOL)), F32)), (Write("o", yt), Write(Constant(1.5, F32), yt))),
        Store(Region(y, (r, ZERO), (rows, N)), yt)))


KERNELS = (softmax, layer_norm, column_sum, matmul_bias_gelu, tril)


@pytest.mark.parametrize("make", KERNELS, ids=lambda f: f.__name__)
def test_read_kernel_equals_printed(make: typing.Callable[[], TileKernel]) -> None:
    kernel = make()
    text = print_kernel(kernel)
    again = read_kernel(text)
    assert again == kernel
    assert print_kernel(again) == text  # equality holds between 0 and 0.0; bytes do not


def test_read_program_equals_printed() -> None:
    program = Program("net", "ascend-a2", (Param("x", F32, (M, N), "in"), Param("out", BF16, (), "out")), EXTENTS,
                      (Workspace("w0", F32, (M, ONE)),), ((softmax(), dataclasses.replace(softmax(), name="softmax_split")), (tril(),), ()))
    text = print_program(program)
    assert read_program(text) == program
    assert print_program(read_program(text)) == text


def test_softmax_text_reads_like_the_design() -> None:
    text = print_kernel(softmax())
    for line in (
        'tile_kernel softmax_0 of "softmax"(x: in f32[M, N], y: out f32[M, N] strides [N*2, 1]) loc("softmax.py":9:5 to 9:20) {',
        "  requires 4096 - N",
        "  buffer %mx: local column f32[16, 1]",
        "  grid g in (M + 15) // 16",
        "    block [rows, N] with (text = \"e = exp(x - max)\") {",
        "      d = sub(%xt, col(%mx)): f32",
        "      %et <- e",
        "      %s = reduce sum(e) axis 1",
    ):
        assert line in text.splitlines(), text


# ---- placed statements: any dataclass, without a change to the grammar ------------------------------------------------------


@dataclass(frozen=True)
class Strides:
    """A record inside a placed statement."""

    block: int
    repeat: Index
    by: DType | None = None
    word: str = ""


@dataclass(frozen=True)
class HTTPCall(PlacedStatement):
    """A placed statement with every kind of field."""

    api: str
    target: BufferRef
    sources: tuple[BufferRef | Constant | ReadBuffer, ...]
    count: Index
    strides: tuple[Strides, ...] = ()
    engine: typing.Literal["fpu", "sfpu"] = "fpu"
    scale: float = 1.0
    slot: int | None = None
    param: Param | None = None
    region: Region | None = None
    exact: bool = False
    body: tuple[Statement, ...] = ()
    after: tuple[Statement, ...] = ()
    span: Span | None = None


PIECES = st.builds(Strides, st.integers(-4, 400), st.sampled_from([ONE, r * 16 + c, N // 32]), st.sampled_from([None, BF16]),
                   st.text(max_size=8))


def _calls(inner: st.SearchStrategy[typing.Any]) -> st.SearchStrategy[typing.Any]:
    x = Param("x", F32, (M, N), "in")
    buffers = st.sampled_from([_buffer("xt"), _buffer("odd name", BF16), _buffer("acc", I32, space="acc")])
    refs = st.builds(BufferRef, buffers, st.sampled_from([ZERO, r * 8]), st.sampled_from([None, I32]))
    bodies = st.lists(inner, max_size=2).map(tuple)
    sources = st.lists(st.one_of(refs, st.just(Constant(math.inf, F32)), st.builds(ReadBuffer, buffers)), max_size=3).map(tuple)
    return st.builds(
        HTTPCall, st.text(max_size=6), refs, sources, st.sampled_from([N, minimum(N, 64) - 1]), st.lists(PIECES, max_size=6).map(tuple),
        st.sampled_from(["fpu", "sfpu"]), st.floats(allow_nan=False), st.sampled_from([None, 0, -3]), st.sampled_from([None, x]),
        st.sampled_from([None, Region(x, (r, ZERO), (rows, N))]), st.booleans(), bodies, bodies,
        st.sampled_from([None, AT, Span("a b.py", 3)]))


QUEUES = st.builds(QueueAction, st.sampled_from(["alloc", "free"]), st.just(_buffer("xt")), st.sampled_from([None, AT]))
SIMPLE = st.one_of(st.just(Barrier("PIPE_V")), QUEUES, st.just(Let("q", N % 7)), st.just(Fill(_buffer("acc", I32, space="acc"), 3)))


@given(st.lists(st.recursive(SIMPLE, lambda inner: st.one_of(inner, _calls(inner)), max_leaves=6), max_size=4))
def test_any_placed_statement_is_read_back(body: list[typing.Any]) -> None:
    kernel = TileKernel("k", "k", (Param("x", F32, (M, N), "in"),), (), Grid((), ()), tuple(body))
    text = print_kernel(kernel)
    assert read_kernel(text) == kernel
    assert print_kernel(read_kernel(text)) == text


def test_no_field_admits_an_index_and_a_number() -> None:
    """A field that admits both an Index and an int could not tell `4` from `4`; no placed statement may have one."""
    for kind in placed_statements().values():
        for name, hint in reader.hints(kind).items():
            members = reader._members(hint)
            assert not (Index in members and {int, float} & set(members)), f"{kind.__name__}.{name}: {hint}"


def test_keywords_are_snake_case() -> None:
    assert [keyword(k) for k in (QueueAction, HTTPCall, Barrier)] == ["queue_action", "http_call", "barrier"]


# ---- mistakes -----------------------------------------------------------------------------------------------------------------


def test_two_buffers_of_one_name_are_our_bug() -> None:
    kernel = TileKernel("k", "k", (), (), Grid((), ()), (Fill(_buffer("a"), 0.0), Fill(_buffer("a", slots=2), 0.0)))
    with pytest.raises(CompilerBug, match="two different buffers called a"):
        print_kernel(kernel)


TEXT = """tile_kernel k of "k"(x: in f32[M, N]) {
  buffer %a: local tile f32[16, 16]
  grid g in M
  body {
    load %a <- x[g : +1, 0 : +N]
    barrier(pipe = "V")
  }
}
"""


@pytest.mark.parametrize(("old", "new", "code", "line", "words"), [
    ("load %a <-", "load %b <-", "PT602", 5, "no buffer %b"),
    ("x[g", "z[g", "PT602", 5, "no parameter `z`"),
    ("in f32", "at f32", "PT602", 1, "none of in, out, inout, workspace"),
    ("tile f32", "tile f33", "PT602", 2, "no dtype"),
    ("f32[16, 16]", "f32[16]", "PT602", 2, "rows and columns"),
    ("grid g in M", "", "PT602", 1, "one `grid`"),
    ('barrier(pipe = "V")', 'barier(pipe = "V")', "PT602", 6, "no statement `barier`"),
    ('pipe = "V"', 'pip = "V"', "PT602", 6, "no field `pip`"),
    ('pipe = "V"', "", "PT602", 6, "lacks its field `pipe`"),
    ("g : +1", "g : 1", "PT601", 5, "`+` is expected"),
    ("load", "lod", "PT601", 5, "`(` is expected"),
    ("  }\n}\n", "", "PT601", 6, "the text ends"),
    ("+N]", "+N?]", "PT601", 5, "`?` where"),
])
def test_mistakes_have_a_code_and_a_place(old: str, new: str, code: str, line: int, words: str) -> None:
    with pytest.raises(KernelError) as caught:
        read_kernel(TEXT.replace(old, new, 1), "bad.tir")
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == code
    assert words in diagnostic.message
    assert diagnostic.primary is not None
    assert diagnostic.primary.span.line == line
    assert "^" in diagnostic.render()


# ---- what the host does between kernels -----------------------------------------------------------------------------------------


def test_steps_of_the_host_are_read_back() -> None:
    """Attributes keep their types: the whole number 4 and the Index 4, the dtype f32 and an Index variable called f32."""
    x, y = Param("x", F32, (M, N), "in"), Param("y", F32, (M, N), "out", (ONE, M), N * 4, "work")
    attributes = (("shape", (M, as_index(4), N * 2)), ("k", 4), ("largest", True), ("fill", -math.inf), ("dtype", F32), ("odd", var("f32")),
                  ("minus", -var("inf")), ("mode", "CAST_RINT"), ("nothing", None), ("dims", (0, -1)), ("epsilon", 1e-5))
    call = HostCall("sort", (x, Constant(1.5, F32), ScalarRead("alpha", F32), IndexValue(N, I32)), (y,), attributes, AT)
    element = ReadElement("first", "n", x, (ZERO, var("i") + 1), AT)
    condition = (BlockOp("c", "lt", (ScalarRead("first", F32), Constant(0.0, F32)), BOOL),
                 BlockOp("d", "ne", ("c", Constant(False, BOOL)), BOOL))
    branch = BranchStep(condition, "d", (call, (tril(), softmax())), (element,), AT)
    loop = LoopStep("i", ZERO, M, as_index(2), (element, branch, LoopStep("j", ONE, N, ONE, ())), AT)
    always = BranchStep((), Constant(True, BOOL), (), ())
    program = Program("net", "llvm-cpu", (x,), EXTENTS, (), ((tril(),), call, loop, always, (softmax(),)))
    text = print_program(program)
    again = read_program(text)
    assert again == program
    assert print_program(again) == text


def test_an_unknown_step_is_refused() -> None:
    with pytest.raises(KernelError, match="no step `call_host`"):
        read_program('program p target "llvm-cpu" { call_host(opcode = "sort") }')
