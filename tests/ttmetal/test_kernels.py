"""Every kernel case, emitted and executed in the emulator over ragged shapes, cores and interleavings, against NumPy."""
from __future__ import annotations

import re
from typing import Any

import kernels
import numpy as np
import pytest

from pypto_dsl.codegen.ttmetal import emit
from pypto_dsl.codegen.ttmetal.host import HEAD
from pypto_dsl.compiler.dtypes import BF16, BFP4, BFP8, I64, DType
from pypto_dsl.compiler.index import as_index, ceildiv, minimum, var
from pypto_dsl.compiler.placement.ttmetal import place
from pypto_dsl.compiler.targets import load
from pypto_dsl.compiler.tile_ir import nodes as t
from pypto_dsl.compiler.tile_ir.reader import read_program
from pypto_dsl.compiler.tile_ir.text import print_program
from pypto_dsl.runtime import formats
from pypto_dsl.runtime.emulator.ttmetal.runner import run

TARGETS = ("tt-wormhole", "tt-blackhole")


@pytest.mark.parametrize("name", kernels.CASES)
def test_emulated_result(name: str) -> None:
    """Within the case's bound for every shape on 1, 2 and 7 cores, in fixed and in mixed order; the same bits on any of them."""
    for shape in kernels.CASES[name].shapes:
        first = None
        for cores in kernels.CORES:
            got, reference = kernels.execute(name, shape, cores, seed=cores - 1)
            assert kernels.error(name, got, reference) <= 1, f"{shape} on {cores} cores"
            first = got if first is None else first
            assert got.tobytes() == first.tobytes(), f"{shape}: {cores} cores give other bits than one"


LONG_ROWS = ("softmax_f32", "softmax_bf16", "layernorm_bf16", "rowmax_bf16", "rowmax_f32", "rowsum_bf16")


@pytest.mark.parametrize("name", LONG_ROWS)
def test_long_rows_take_the_split_kernel(name: str) -> None:
    """One column more than the whole-row kernel keeps, and a ragged tail beyond."""
    whole, split = kernels.emitted(name).manifest["steps"][0]
    limit = int(whole["requires"][0].removesuffix(" - N"))
    assert split["requires"] == []
    for shape in ((5, limit + 70), (40, limit + 1)):
        got, reference = kernels.execute(name, shape, 2, seed=1)
        assert kernels.error(name, got, reference) <= 1, shape


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", kernels.CASES)
def test_emitter_reads_tile_ir_alone(name: str, target: str) -> None:
    """The printed and re-read Tile IR gives the same bytes in every file."""
    program = kernels.placed(name, target)
    again = read_program(print_program(program))
    assert emit(again, load(target)).files == kernels.emitted(name, target).files


@pytest.mark.parametrize("name", kernels.CASES)
def test_both_chips_get_the_same_kernels(name: str) -> None:
    """Wormhole and Blackhole differ in memories and grid, not in the text of kernels that fit both."""
    first, second = (kernels.emitted(name, t).files for t in TARGETS)
    assert {p: t for p, t in first.items() if p.endswith(".cpp")} == {p: t for p, t in second.items() if p.endswith(".cpp")}


@pytest.mark.parametrize("name", kernels.CASES)
def test_emitted_files_name_no_place(name: str) -> None:
    """No absolute path, no denied call, no line beyond what a person reads."""
    denied = load("tt-wormhole").table("deny")["calls"]
    for path, text in kernels.emitted(name).files.items():
        assert not re.search(r"(?<![\w./*<])/\w+/\w", text), f"{path} names an absolute path"
        assert not [call for call in denied if call + "(" in text or f" {call} " in text], path
        if path.endswith(".cpp"):
            assert max(map(len, text.splitlines())) <= 180, path


@pytest.mark.parametrize("name", kernels.CASES)
def test_host_program_compiles(name: str) -> None:
    """host.py is Python that compiles, and its source map points at lines that carry a user's line."""
    made = kernels.emitted(name)
    compile(made.files["host.py"], "host.py", "exec")
    words: dict[str, Any] = {}
    exec(HEAD.split("def compute_config")[0].replace("import ttnn\n", "").replace("__file__", "'host.py'"), words)
    assert words["bf16_word"](1 + 2.0**-8) == 0x3F800000 and words["f32_word"](-2.0) == 0xC0000000
    for step in made.manifest["steps"]:
        for kernel in step:
            for file, origins in kernel["source_map"].items():
                lines = made.files[f"{kernel['name']}/{file}"].splitlines()
                assert all(f"{user}:{number}" in lines[at - 1] for at, user, number in origins)


@pytest.mark.parametrize("name", ["wide_f32", "wide_bf16"])
def test_what_exceeds_dst_is_split_through_exact_rings(name: str) -> None:
    """The values that cross the split are kept in rings of their own."""
    kernel = kernels.emitted(name).manifest["steps"][0][0]
    kept = [r for r in kernel["rings"] if r["name"].endswith("_kept")]
    assert kept and {r["dtype"] for r in kept} == {name.removeprefix("wide_")}


@pytest.mark.parametrize("dtype", [BFP8, BFP4], ids=str)
def test_block_formats(dtype: DType) -> None:
    """x + y in a block format: unpacked as bf16, added by the FPU, packed with ties away from zero."""
    rows, cols, row, col = (var(n) for n in ("M", "N", "row_block", "col_block"))
    params = {n: t.Param(n, dtype, (rows, cols), "out" if n == "out" else "in") for n in ("x", "y", "out")}
    buffers = {n: t.Buffer(f"{n}_tile", dtype, (as_index(32), as_index(32)), 2) for n in params}
    live = minimum(32, rows - row * 32), minimum(32, cols - col * 32)
    regions = {n: t.Region(p, (row * 32, col * 32), live) for n, p in params.items()}
    add = t.BlockOp("v", "add", (t.ReadBuffer(buffers["x"]), t.ReadBuffer(buffers["y"])), BF16)
    body = (*(t.Load(buffers[n], regions[n]) for n in "xy"), t.Block(*regions["x"].extent, (add,), (t.Write("v", buffers["out"]),)),
            t.Store(regions["out"], buffers["out"]))
    scalars = (t.Scalar("M", I64), t.Scalar("N", I64))
    grid = t.Grid(("row_block", "col_block"), (ceildiv(rows, 32), ceildiv(cols, 32)))
    kernel = t.TileKernel("add_0", "add", tuple(params.values()), scalars, grid, body)
    target = load("tt-wormhole")
    made = emit(place(t.Program("add", target.name, kernel.params, scalars, (), ((kernel,),)), target), target)
    rng = np.random.default_rng(1)
    for shape in kernels.SHAPES:
        x, y = (formats.stored(rng.standard_normal(shape).astype(np.float32), dtype.name) for _ in range(2))
        got = run(made.manifest, made.files, {"x": x, "y": y, "out": np.zeros(shape, np.float32)}, cores=2)["out"]
        want, _ = formats.block_packed_by_device(formats.round_bfloat16(x + y), dtype.name)
        assert np.array_equal(got, want)
