"""Any tile that a user sets, on any extent: an emulated device computes what the interpreter does, or refuses with help that compiles."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.targets import load

F32, BF16 = pypto.DT_FP32, pypto.DT_BF16
Shape = tuple[int, int]


def softmax(x: Any, y: Any, out: Any) -> None:
    weights = pypto.exp(x - pypto.amax(x, -1, True))
    out[:] = weights / pypto.sum(weights, -1, True)


def rms_norm(x: Any, y: Any, out: Any) -> None:
    out[:] = x * pypto.rsqrt(pypto.sum(x * x, -1, True) / x.shape[-1] + 1e-5) * y


def column_sum(x: Any, y: Any, out: Any) -> None:
    out[:] = pypto.sum(pypto.exp(x), 0, True)


def two_outputs(x: Any, y: Any, out: Any, other: Any) -> None:
    highest = pypto.amax(x, -1, True)
    out[:] = x - highest
    other[:] = x * highest


def rows_and_sums(x: Any, y: Any, out: Any, other: Any) -> None:
    out[:] = x * 2.0
    other[:] = pypto.sum(x, -1, True)


def elementwise(x: Any, y: Any, out: Any, other: Any) -> None:
    both = x + y
    out[:] = both * pypto.exp(x)
    other[:] = pypto.tanh(both) - y


def narrow(x: Any, y: Any, out: Any) -> None:
    out[:] = x - pypto.amax(x, -1, True)


# What each kernel does, its dtype, and its outputs' extents by those of x ("1": one of them).
Kind = tuple[Callable[..., None], Any, Sequence[str]]
KINDS: dict[str, Kind] = {
    "softmax": (softmax, F32, ["MN"]),
    "rms_norm": (rms_norm, F32, ["MN"]),
    "column_sum": (column_sum, F32, ["1N"]),
    "two_outputs": (two_outputs, F32, ["MN", "MN"]),
    "rows_and_sums": (rows_and_sums, F32, ["MN", "M1"]),
    "elementwise": (elementwise, F32, ["MN", "MN"]),
    "narrow": (narrow, BF16, ["MN"]),
}
TILES: tuple[Shape, ...] = ((32, 96), (64, 64), (64, 1024), (33, 100), (16, 48), (1, 2048))
# tails of rows and of columns, of tiles and of pieces; one piece; less than a tile
EXTENTS: tuple[Shape, ...] = ((40, 1000), (70, 100), (5, 31))
# Which extents of a tensor are symbols.
DYNAMIC = {"static": "", "rows": "M", "both": "MN"}


def kernel(kind: str, tile: Shape, dynamic: str) -> Any:
    """The kernel under a tile; y is one row."""
    function, dtype, outputs = KINDS[kind]

    def tensor(shape: str) -> Any:
        return pypto.Tensor([pypto.DYNAMIC if name in DYNAMIC[dynamic] else pypto.STATIC for name in shape], dtype)

    X, Y, (O, *others) = tensor("MN"), tensor("1N"), map(tensor, outputs)  # noqa: E741
    if others:
        @pypto.jit
        def user(x: X, y: Y, out: O, other: others[0]) -> None:  # type: ignore[valid-type]
            pypto.set_vec_tile_shapes(*tile)
            function(x, y, out, other)
    else:
        @pypto.jit
        def user(x: X, y: Y, out: O) -> None:  # type: ignore[valid-type]
            pypto.set_vec_tile_shapes(*tile)
            function(x, y, out)
    return user


def run(kind: str, tile: Shape, dynamic: str, extent: Shape, target: str) -> tuple[list[Any], float]:
    """Outputs on a target, and the step of their dtype."""
    rng = np.random.default_rng(extent[0])
    scalar = ml_dtypes.bfloat16 if KINDS[kind][1] is BF16 else np.float32
    sizes = {"M": extent[0], "N": extent[1], "1": 1}
    x, y = (rng.standard_normal(shape).astype(np.float32).astype(scalar) for shape in (extent, (1, extent[1])))
    outs = [np.zeros(tuple(sizes[name] for name in shape), scalar) for shape in KINDS[kind][2]]
    kernel(kind, tile, dynamic).run(x, y, *outs, target=target)
    return [o.astype(np.float64) for o in outs], float(ml_dtypes.finfo(scalar).eps)


def agrees(kind: str, tile: Shape, dynamic: str, extent: Shape, target: str) -> None:
    """The emulated result is the interpreter's, up to roundings of sums whose order is the device's."""
    got, step = run(kind, tile, dynamic, extent, target)
    wanted, _ = run(kind, tile, dynamic, extent, "interpreter")
    for result, want in zip(got, wanted, strict=True):
        assert np.abs(result - want).max() <= 16 * step * max(1.0, np.abs(want).max()), (kind, tile, dynamic, extent)


def computed_or_refused(kind: str, tile: Shape, dynamic: str, extent: Shape, target: str) -> str:
    """Run it; a refusal has a code, and the tile that its help names computes the result. Returns the code, "" without."""
    try:
        agrees(kind, tile, dynamic, extent, target)
    except pypto.KernelError as refusal:
        named = re.search(r"set_vec_tile_shapes\((\d+), (\d+)\)", str(refusal))
        assert named, f"{kind} {tile} {dynamic} {extent}: no tile in the help of {refusal}"
        agrees(kind, (int(named[1]), int(named[2])), dynamic, extent, target)
        return refusal.code
    return ""


@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t[0]}x{t[1]}")
@pytest.mark.parametrize("kind", KINDS)
def test_tenstorrent_computes_under_any_tile(kind: str, tile: Shape) -> None:
    """Rounded to tiles and walked in strips, none of these is refused."""
    for dynamic in DYNAMIC:
        if kind == "rms_norm" and dynamic == "both":
            continue  # the target has no cast of an extent's i64, whatever the tile
        for extent in EXTENTS:
            agrees(kind, tile, dynamic, extent, "tt-wormhole-emu")


@pytest.mark.parametrize("kind", KINDS)
def test_ascend_computes_or_names_a_tile_that_fits(kind: str) -> None:
    codes = {computed_or_refused(kind, tile, dynamic, extent, "ascend-a2-emu")
             for tile in TILES[1:4] for dynamic in ("static", "rows") for extent in EXTENTS[:2]}
    assert codes <= {"", "PT410"} and "" in codes


@pytest.mark.parametrize("target", ["tt-wormhole", "tt-blackhole"])
@pytest.mark.parametrize("kind", KINDS)
def test_explanations_of_rings_add_up(kind: str, target: str) -> None:
    """A ring's shape, slots and bytes say the same, and the whole stands beside the budget that binds."""
    user = kernel(kind, (64, 96), "rows")
    rng = np.random.default_rng(0)
    scalar = ml_dtypes.bfloat16 if KINDS[kind][1] is BF16 else np.float32
    sizes = {"M": 70, "N": 1000, "1": 1}
    arrays = [rng.standard_normal(tuple(sizes[n] for n in shape)).astype(scalar) for shape in ("MN", "1N", *KINDS[kind][2])]
    user.run(*arrays, target="interpreter")
    facts = [k for step in user.explain(target=target).targets[0].steps for k in step.kernels]
    formats = load(target).table("formats")
    for fact in facts:
        assert fact.capacity == load(target).table("memory")["l1"]["budget"]
        for b in fact.buffers:
            rows, cols = map(int, b.shape)
            assert rows * cols // 1024 * b.slots * formats[b.dtype]["bytes"] == int(b.bytes), b
