"""Kernels with precision="fast" on the CPU: within the bounds of `[fast.bounds]`, special values as ever, bits that only fusion decides."""
from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto
from benchmarks.sweep.__main__ import FAST_RESULTS, read
from benchmarks.sweep.cases import FAST, Array, Case, Kernel
from benchmarks.sweep.exact import Exact, Report
from benchmarks.sweep.grids import SPECIAL, grid
from pypto_dsl.codegen.llvm import intrinsics
from pypto_dsl.compiler import pipeline, targets
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import TIER, Graph, walk
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.frontend.arguments import symbol_values
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.executable import Executable
from pypto_dsl.runtime.cpu.pool import Pool
from pypto_dsl.tolerance import tolerances

LEVELS = [level.name for level in jit.host_levels()]
BOUNDS = targets.load("llvm-cpu").table("fast")["bounds"]
DTYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f64": np.dtype(np.float64)}
RECORDS = read(FAST_RESULTS)

MATRIX = pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC])
STATIC = pypto.Tensor([pypto.STATIC, pypto.STATIC])


# ---- the functions -----------------------------------------------------------------------------------------------------------


def drawn(case: Case) -> tuple[Array, ...]:
    """Special values, all magnitudes, and where the functions are ordinary; of pairs, the beginning of what is swept."""
    name = case.name
    if case.operands == 2:
        x, y = (np.concatenate(numbers) for numbers in zip(*(grid(name, number, 1 << 14) for number in range(8)), strict=True))
        return x, y
    rng = np.random.default_rng(len(name))
    bits = rng.integers(0, 1 << 32, 1 << 15, np.uint32).view(np.float32)
    ordinary = np.concatenate([rng.normal(size=1 << 13) * scale for scale in (0.1, 1, 3, 20)]).astype(np.float32)
    found = np.concatenate([SPECIAL, bits, ordinary])
    return (found[:found.size // 16 * 16],)


def compared(case: Case, operands: tuple[Array, ...], got: Array) -> Report:
    """``got`` beside the exact results."""
    report, exact = Report(), Exact(case)
    if case.operands == 2:
        exact.compare_pairs(*operands, got, 0, report)
    else:
        exact.compare_listed(*operands, got, report)
    return report


def test_every_bound_has_a_form_and_a_case() -> None:
    assert set(BOUNDS["f32"]) == set(intrinsics.FAST) == {*(case.operation for case in FAST.values()), "mac"}


@pytest.mark.parametrize("name", FAST)
def test_functions_are_within_their_bounds(name: str) -> None:
    """NaN, infinities, zeros and their signs are the exact function's; everything else is within the bound, and the same at every level."""
    case, operands = FAST[name], drawn(FAST[name])
    results = [Kernel(case, "f32", operands[0].size, level, "fast")(*operands).copy() for level in LEVELS]
    report = compared(case, operands, results[0])
    assert report.wrong == 0 and report.worst <= case.fast_bound, (report.numbers(), [x[report.worst_at] for x in operands])
    nan = np.isnan(results[0])
    for other in results[1:]:
        assert ((other.view(np.uint32) == results[0].view(np.uint32)) | nan & np.isnan(other)).all()


@pytest.mark.parametrize("name", FAST)
def test_every_function_has_a_record_within_its_bound(name: str) -> None:
    found = RECORDS[name, "f32"]
    least = 1 << 27 if FAST[name].operands == 2 else 1 << 28
    assert found["worst"] <= FAST[name].fast_bound and found["wrong"] == 0 and found["count"] >= least


@pytest.mark.parametrize("name", FAST)
def test_the_worst_case_found(name: str) -> None:
    found = RECORDS[name, "f32"]
    operands = tuple(np.full(16, float.fromhex(x), np.float32) for x in found["at"])
    report = compared(FAST[name], operands, Kernel(FAST[name], "f32", 16, None, "fast")(*operands))
    assert report.wrong == 0 and report.worst == pytest.approx(found["worst"], abs=1e-4)


@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_what_grows_to_one_does_not_grow_beyond(name: str) -> None:
    x = np.linspace(2.5, 12, 1 << 16, dtype=np.float32)
    x[-16:] = np.inf
    got = Kernel(FAST[name], "f32", x.size, None, "fast")(x)
    assert got.max() == 1 and (got[x > 9.2] == 1).all()


@pytest.mark.parametrize("exponent", [2.0, 0.5, -1.0, 2.7, -31.5])
def test_an_exponent_known_now_or_later_gives_the_same_power(exponent: float) -> None:
    """Those that the exact function has a form for give its results."""

    def known(x: MATRIX, out: MATRIX):  # type: ignore[valid-type]
        out[:] = x**exponent

    def later(x: MATRIX, y: float, out: MATRIX):  # type: ignore[valid-type]
        out[:] = pypto.pow(x, y)

    x = np.random.default_rng(4).uniform(0.1, 9, (8, 40)).astype(np.float32)
    x[0, :4] = 0, np.inf, -2, np.nan
    results = [np.empty_like(x) for _ in range(3)]
    pypto.jit(precision="fast")(known)(x, results[0])
    pypto.jit(precision="fast")(later)(x, float(np.float32(exponent)), results[1])
    pypto.jit(known)(x, results[2])
    assert np.array_equal(results[0], results[1], equal_nan=True)
    assert np.array_equal(results[0], results[2], equal_nan=True) == (exponent in (2, 0.5, -1))


# ---- what is relaxed, by dtype ---------------------------------------------------------------------------------------------------


def chain(a: MATRIX, b: MATRIX, out: MATRIX):  # type: ignore[valid-type]
    t = a * b + b
    out[:] = pypto.relu(t) / 3.0 - pypto.exp(a) * b


def rows(a: MATRIX, b: MATRIX, out: MATRIX):  # type: ignore[valid-type]
    e = pypto.exp(a * b - pypto.amax(a * b, -1, True))
    out[:] = e / pypto.sum(e, -1, True) - a / b


def chosen(a: MATRIX, b: MATRIX, out: MATRIX):  # type: ignore[valid-type]
    s = a + b
    out[:] = pypto.where(s > 0, s * a, b - s) * 0.75


def shared(a: MATRIX, b: MATRIX, out: MATRIX):  # type: ignore[valid-type]
    d = b * b + 1.0
    out[:] = a / d + b / d - a * a * b


def normalised(a: MATRIX, b: MATRIX, out: MATRIX):  # type: ignore[valid-type]
    out[:] = pypto.layer_norm(a, None, None, 1e-5) * b - pypto.tanh(a) * pypto.sigmoid(b)


def columns(a: MATRIX, b: MATRIX, out: MATRIX):  # type: ignore[valid-type]
    m = pypto.mean(a * b + a, 0, True)
    out[:] = pypto.tanh((a - m) * 0.5 + b)


def multiplied(a: MATRIX, b: MATRIX, out: MATRIX):  # type: ignore[valid-type]
    out[:] = pypto.gelu(pypto.matmul(a, b, b_trans=True), "tanh") @ b * 0.1 + a


FORMULAS: dict[str, Callable[[Array, Array], Array]] = {
    "chain": lambda a, b: np.maximum(a * b + b, 0) / 3 - np.exp(a) * b,
    "rows": lambda a, b: (lambda e: e / e.sum(-1, keepdims=True))(np.exp(a * b - (a * b).max(-1, keepdims=True))) - a / b,
    "chosen": lambda a, b: np.where(a + b > 0, (a + b) * a, b - (a + b)) * 0.75,
    "shared": lambda a, b: (a + b) / (b * b + 1) - a * a * b,
    "normalised": lambda a, b: ((a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5) * b
                                - np.tanh(a) / (1 + np.exp(-b))),
    "columns": lambda a, b: np.tanh((a - (a * b + a).mean(0, keepdims=True)) * 0.5 + b),
    "multiplied": lambda a, b: (lambda s: s / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (s + 0.044715 * s**3))))(a @ b.T) @ b * 0.1 + a,
}
FUNCTIONS = {f.__name__: f for f in (chain, rows, chosen, shared, normalised, columns, multiplied)}


def inputs(dtype: str, shape: tuple[int, int] = (37, 130)) -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=shape), rng.normal(size=shape)
    return a.astype(DTYPES[dtype]), (b + np.sign(b) * 0.25).astype(DTYPES[dtype])


def computed(name: str, precision: str, a: Array, b: Array, target: str = "llvm-cpu") -> Array:
    out = np.zeros(a.shape, a.dtype)
    pypto.jit(precision=precision)(FUNCTIONS[name]).run(a, b, out, target=target)
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernels_are_within_their_tolerance(name: str, dtype: str) -> None:
    """Of the formula in f64, against the largest result; 16-bit results are no further off than exact ones on average."""
    a, b = inputs(dtype)
    want = FORMULAS[name](a.astype(np.float64), b.astype(np.float64))
    fast = computed(name, "fast", a, b).astype(np.float64)
    graph = pypto.jit(precision="fast")(FUNCTIONS[name]).graph(a, b, np.zeros_like(a))
    allowed = tolerances(graph, {"a_d0": 37, "a_d1": 130}, targets.load("llvm-cpu"))["out"].relative
    assert np.abs(fast - want).max() <= 4 * allowed * np.abs(want).max()
    if dtype in ("f16", "bf16"):
        exact = computed(name, "exact", a, b).astype(np.float64)
        assert np.abs(fast - want).mean() <= 1.02 * np.abs(exact - want).mean()


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["chain", "chosen", "shared"])
def test_sixteen_bits_are_rounded_once(name: str, dtype: str) -> None:
    """Elementwise chains: what f32 gives, rounded to 16 bits, for the same operations."""
    a, b = inputs(dtype)
    wide = computed(name, "fast", a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(computed(name, "fast", a, b), wide.astype(DTYPES[dtype]))


def test_a_users_own_cast_still_rounds() -> None:
    @pypto.jit(precision="fast")
    def kernel(a: MATRIX, out: MATRIX):  # type: ignore[valid-type]
        out[:] = pypto.cast(pypto.cast(a, pypto.DT_BF16), pypto.DT_FP32)

    a = np.full((2, 8), 1 + 2.0**-12, np.float32)
    out = np.zeros_like(a)
    kernel(a, out)
    assert (out == 1).all()


def opcodes(graph: Graph) -> list[str]:
    return [op.opcode + "!" * (TIER in op.attributes) for op in walk(graph.body)]


@pytest.mark.parametrize(("name", "has", "lacks"), [
    ("chain", ["mac!", "exp!"], ["div", "add", "sub"]), ("rows", ["reciprocal", "exp!", "div", "sub"], ["add"]),
    ("shared", ["reciprocal", "mac!"], ["div"]), ("normalised", ["tanh!", "sigmoid!"], ["tanh", "sigmoid"]),
])
def test_what_is_relaxed(name: str, has: list[str], lacks: list[str]) -> None:
    a, b = inputs("f32")
    found = opcodes(pypto.jit(precision="fast")(FUNCTIONS[name]).graph(a, b, np.zeros_like(a), after="relax"))
    assert set(has) <= set(found) and not {*lacks} & {*found}, found
    exact = pypto.jit(FUNCTIONS[name]).graph(a, b, np.zeros_like(a), after="relax")
    assert "mac!" not in opcodes(exact) and "!" not in "".join(opcodes(exact))


def test_divisors_that_are_special() -> None:
    """Zeros, infinities and NaN divide as ever; so does every divisor with a normal reciprocal, within two roundings."""
    @pypto.jit(precision="fast")
    def kernel(a: MATRIX, out: MATRIX, s: float = 1.0):  # type: ignore[valid-type]
        out[:] = a / s

    a = np.array([[0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.5, 1e-30]], np.float32)
    for s in (0.0, -0.0, np.inf, -np.inf, np.nan, 3.0, -2.0**-126, 2.0**126, 7e-20):
        out = np.zeros_like(a)
        kernel(a, out, s)
        with np.errstate(all="ignore"):
            want = a / np.float32(s)
            near = np.abs(out - want) <= 1.5 * np.spacing(np.abs(want)) if np.isfinite(s) and s else np.zeros(a.shape, bool)
        same = (out == want) & (np.signbit(out) == np.signbit(want)) | np.isnan(out) & np.isnan(want)
        assert (same | near & np.isfinite(want)).all(), (s, out, want)


# ---- law 3 -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_threads_chunks_and_widths_do_not_change_bits(name: str, dtype: str) -> None:
    a, b = inputs(dtype)
    graph = pypto.jit(precision="fast")(FUNCTIONS[name]).graph(a, b, np.zeros_like(a))
    program = pipeline.lower(graph, "llvm-cpu")
    share = {"serial_elements": 0, "chunk_elements": 1, "chunks_per_thread": 64}
    made = [Executable(program, level=level, pool=Pool(1)) for level in LEVELS]
    made += [Executable(program, pool=pool, launch=share) for pool in (Pool(2), Pool(5))]
    found = []
    for executable in made:
        out = np.zeros(a.shape, a.dtype)
        arrays = {"a": a, "b": b, "out": out}
        executable.run(arrays, symbol_values(graph, arrays, {}))
        found.append(out.tobytes())
    assert all(f == found[0] for f in found)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tiles_and_static_extents_do_not_change_bits(name: str, dtype: str) -> None:
    a, b = inputs(dtype)
    symbolic = computed(name, "fast", a, b)

    def run(annotation: Any, tile: tuple[int, ...] = ()) -> Array:
        function = FUNCTIONS[name]
        kernel = pypto.jit(precision="fast")(type(function)(function.__code__, function.__globals__, name))
        kernel.function.__annotations__ = dict.fromkeys(("a", "b", "out"), annotation)
        out = np.zeros_like(a)
        contextvars.copy_context().run(lambda: (tile and pypto.set_vec_tile_shapes(*tile), kernel(a, b, out)))  # no other test's tile
        return out

    assert run(STATIC).tobytes() == symbolic.tobytes()
    assert run(MATRIX, (8, 32)).tobytes() == symbolic.tobytes()


# ---- what is told and kept -------------------------------------------------------------------------------------------------------


def test_explain_says_what_was_relaxed() -> None:
    a, b = inputs("bf16")
    kernel = pypto.jit(precision="fast")(chain)
    told = str(kernel.explain(a, b, np.zeros_like(a)))
    for part in ("precision = fast", "`t` stays f32 and is not rounded to bf16", "mul and add round once",
                 "a division by 3.0 is a product with", "exp within 3 ulp"):
        assert part in told, told
    told = str(kernel.explain(a, b, np.zeros_like(a), target="ascend-a2"))
    assert "`t` stays f32" in told and "round once" not in told and "ulp" not in told.split("known difference")[0]
    assert "fast: tt-wormhole has nothing cheaper for these operations" in str(kernel.explain(a, b, np.zeros_like(a), target="tt-wormhole"))
    assert "  fast: " not in str(pypto.jit(chain).explain(a, b, np.zeros_like(a)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_interpreter_is_exact(name: str) -> None:
    a, b = inputs("bf16")
    fast, exact = (computed(name, precision, a, b, "interpreter") for precision in ("fast", "exact"))
    assert fast.tobytes() == exact.tobytes()


def test_the_text_keeps_what_was_relaxed() -> None:
    a, b = inputs("bf16")
    text = pypto.jit(precision="fast")(chain).text(a, b, np.zeros_like(a), after="relax")
    assert 'with (precision = "fast")' in text and 'tier = "fast"' in text and "edge = True" in text
    assert print_graph(read_graph(text)) == text


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fast_kernel_is_given_more_room(dtype: str) -> None:
    a, b = inputs(dtype)
    symbols, cpu = {"a_d0": 37, "a_d1": 130}, targets.load("llvm-cpu")
    graphs = [pypto.jit(precision=p)(chain).graph(a, b, np.zeros_like(a)) for p in ("fast", "exact")]
    fast, exact = (tolerances(graph, symbols, cpu)["out"] for graph in graphs)
    assert exact.relative < fast.relative < exact.relative + 16 * 2.0**-23


@pytest.mark.parametrize("target", ["ascend-a2-emu", "ascend-950-emu", "tt-wormhole-emu"])
def test_devices_take_fast_kernels(target: str) -> None:
    a, b = inputs("bf16", (16, 64))
    want = FORMULAS["chain"](a.astype(np.float64), b.astype(np.float64))
    errors = [np.abs(computed("chain", p, a, b, target).astype(np.float64) - want).mean() for p in ("fast", "exact")]
    assert errors[0] < errors[1] if target.startswith("ascend") else errors[0] == errors[1]


@pytest.mark.parametrize("level", LEVELS)
def test_every_nan_of_bf16_stays_one(level: str) -> None:
    """A multiply-add of bf16 numbers is rounded without a test of its own for NaN: all 65,536 in each of its places."""
    every = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16).reshape(256, 256)
    one = np.ones_like(every)

    @pypto.jit(precision="fast")
    def kernel(a: MATRIX, b: MATRIX, c: MATRIX, out: MATRIX):  # type: ignore[valid-type]
        out[:] = pypto.relu(a * b - c) - c * a

    for arrays in ((every, one, one), (one, every, one), (one, one, every)):
        given = dict(zip("abc", arrays, strict=True)) | {"out": np.zeros_like(every)}
        graph = kernel.graph(*given.values())
        Executable(pipeline.lower(graph, "llvm-cpu"), level=level, pool=Pool(1)).run(given, symbol_values(graph, given, {}))
        a, b, c = (x.astype(np.float64) for x in arrays)
        with np.errstate(all="ignore"):
            want = np.maximum(a * b - c, 0) - c * a
        np.testing.assert_array_equal(np.isnan(given["out"].astype(np.float64)), np.isnan(want))


def test_a_text_with_another_precision_is_refused() -> None:
    with pytest.raises(KernelError, match="the option `precision` is 'faster'") as refused:
        read_graph('kernel k(%x: f32[8], %y: f32[8]) with (precision = "faster") { %a = exp(%x)  write y <- %a }')
    assert refused.value.code == "PT602"
