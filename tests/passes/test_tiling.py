"""Schedules compute what the graph means: structured Tile IR of every case, tile choice and extent against the graph interpreter."""
from __future__ import annotations

import numpy as np
import pytest
from graphs import CASES, arrays, graph

from pypto_dsl.compiler.dtypes import F32
from pypto_dsl.compiler.graph import Value
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.passes.fuse import fuse
from pypto_dsl.compiler.passes.legalize import legalize
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.passes.sink import sink
from pypto_dsl.compiler.passes.tile import tile
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.targets.target import from_data
from pypto_dsl.compiler.tile_ir.nodes import Block, For, Store
from pypto_dsl.runtime import tile_interpreter
from pypto_dsl.runtime.interpreter import run

PRIMITIVES = ["add", "sub", "mul", "div", "neg", "abs", "maximum", "minimum", "exp", "log", "sqrt", "erf", "tanh", "rint", "eq", "ne", "lt",
              "le", "gt", "ge", "bitwise_and", "bitwise_left_shift", "sum", "amax", "amin", "pow"]


def choices(flatten: bool, flat: int, rows: int, cols: int, whole_row: int | None, column_rows: int, matmul: list[int],
            **more: object) -> dict[str, object]:
    """One `[tile]` table; columns are walked as wide as pieces of rows, planes cut like rows."""
    whole = {} if whole_row is None else {"whole_row": whole_row}
    return {
        "flatten": flatten,
        "flat": flat,
        "rows": rows,
        "cols": cols,
        "plane": [rows, cols],
        "column_rows": column_rows,
        "column_cols": cols,
        "matmul": matmul,
        **whole,
        **more,
    }


CHOICES = {
    "small": choices(True, 7, 2, 3, None, 2, [2, 3, 2]),
    "device": choices(False, 8, 4, 4, 8, 4, [4, 4, 4], align=[4, 4], rematerialize=3),
    "split": choices(True, 16, 3, 2, 1, 5, [3, 5, 4]),
    "separate": choices(False, 8, 4, 4, 4, 4, [4, 4, 4], align=[4, 4], separate=True),
    "large": choices(True, 4096, 64, 512, 4096, 256, [64, 64, 64]),
}
EXTENTS = ({"M": 5, "N": 7, "K": 6, "B": 3}, {"M": 1, "N": 1, "K": 1, "B": 1}, {"M": 4, "N": 8, "K": 4, "B": 2},
           {"M": 1, "N": 9, "K": 3, "B": 2},
           {"M": 9, "N": 1, "K": 5, "B": 1})


def target(choice: str) -> Target:
    """A target with f32 and i32 arithmetic under one of the tile choices."""
    ops = {**{name: ["f32", "i32"] for name in PRIMITIVES}, "where": ["bool"], "cast": ["*"], "bitcast": ["*"], "matmul": ["f32", "bf16"]}
    return from_data({"name": choice, "title": choice, "family": "none", "tile": CHOICES[choice], "ops": ops})


def alone(loop: For) -> bool:
    """Whether a loop has stores, or one reduction, but not both."""
    reductions = [r for s in loop.body if isinstance(s, Block) for r in s.reduces]
    return len(reductions) <= 1 and not (reductions and any(isinstance(s, Store) for s in loop.body))


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("static", [False, True], ids=["symbolic", "static"])
def test_schedule_means_the_graph(case: str, choice: str, static: bool) -> None:
    """Symbolic or static extents, any tile: the program writes what the graph says, everywhere and once."""
    function, parameters = CASES[case]
    rng = np.random.default_rng(7)
    for extents in EXTENTS:
        shapes = [(n, d, tuple(extents.get(e, e) if static and isinstance(e, str) else e for e in s)) for n, d, s in parameters]
        if static and case == "no_keepdim":
            continue  # its function names the symbol M
        g = graph(case, function, *shapes)
        values = arrays(g, extents, rng)
        symbols = {} if static else {n: extents[n] for n in g.symbols}
        expected = run(g, {k: np.array(v) for k, v in values.items()}, symbols)
        lowered = sink(legalize(promote(g), target(choice)))
        program = tile(lowered, fuse(lowered), target(choice))
        numbers = {p.name: float(values[p.name]) for p in g.parameters if p.type.rank == 0 and p.name not in g.outputs}
        tensors = {k: v for k, v in values.items() if k not in numbers}
        if choice == "separate":
            assert all(alone(s) for step in program.steps for k in step for s in k.body if isinstance(s, For))
        tile_interpreter.run(program, tensors, {**symbols, **numbers})
        for name in g.outputs:
            got, want = tensors[name].astype(np.float64), expected[name].astype(np.float64)
            tolerance = 2e-2 if tensors[name].dtype.itemsize == 2 else 3e-6
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=f"{case} {choice} {extents} {name}")


@pytest.mark.parametrize("wish", [(1, 1), (2, 3), (4, 100), (64, 2)])
@pytest.mark.parametrize("case", ["add", "softmax", "column_sum", "layer_norm", "row_col"])
def test_user_tile_changes_no_result(case: str, wish: tuple[int, int]) -> None:
    """The user's vector tile cuts the space as asked, rounded up to the geometry, and the numbers stay."""
    function, parameters = CASES[case]
    extents = {"M": 5, "N": 7}
    g = graph(case, function, *parameters)
    for op in g.body.ops:
        op.tile = wish
    values = arrays(g, extents, np.random.default_rng(3))
    expected = run(g, {k: np.array(v) for k, v in values.items()}, extents)
    lowered = sink(legalize(promote(g), target("device")))
    program = tile(lowered, fuse(lowered), target("device"))
    rows, cols = (-(-w // 4) * 4 for w in wish)
    assert any(dict(k.properties)["tile"] in (f"{rows}x{cols}", f"{rows}x8") for step in program.steps for k in step)
    tile_interpreter.run(program, values, extents)
    np.testing.assert_allclose(values["out"], expected["out"], rtol=3e-6, atol=3e-6)


def test_constants_are_told_apart_by_their_bits() -> None:
    """0.0 and -0.0 in one Block are two constants, and so are the operations on them."""
    def both(x: Value) -> tuple[Value, Value]:
        return tuple(R["where"](R["gt"](x, 0.0), zero, x) for zero in (0.0, -0.0))  # type: ignore[return-value]

    g = graph("zeros", both, ("x", F32, ("M",)))
    values = {"x": np.ones(3, np.float32), "out": np.empty(3, np.float32), "out1": np.empty(3, np.float32)}
    lowered = sink(legalize(promote(g), target("large")))
    tile_interpreter.run(tile(lowered, fuse(lowered), target("large")), values, {"M": 3})
    assert not np.signbit(values["out"]).any() and np.signbit(values["out1"]).all()
