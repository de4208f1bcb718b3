"""Errors of the CPU's operations: the exact functions against mpmath, every 16-bit input, and the worst cases that the sweeps found.

`python -m benchmarks.sweep` goes through all 2^32 f32 inputs; its records are the numbers of docs/accuracy.md.
"""
from __future__ import annotations

import random

import mpmath
import numpy as np
import pytest

from benchmarks.sweep import precise
from benchmarks.sweep.__main__ import DTYPES, RESULTS, candidates, read
from benchmarks.sweep.cases import BINARY, CASES, PLACES, UNARY, Array, Case, Kernel, bound, graph
from benchmarks.sweep.exact import Exact, Report
from benchmarks.sweep.grids import SPECIAL, grid
from benchmarks.sweep.sweeps import compare, every_half, half, single
from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.runtime import interpreter
from pypto_dsl.runtime.cpu import jit

RECORDS = read(RESULTS)
LEVELS = [level.name for level in jit.host_levels()]
ULP_16 = {"f16": 2.0**-13, "bf16": 2.0**-16}  # an ulp of f32 in theirs
# Zeros of lgamma and digamma, beside which their terms cancel.
ZEROS = {"lgamma": (1.0, 2.0, -2.457024738220801, -2.7476826467274127, -3.143580888349980, -3.955294284858598, -4.991544640560048),
         "digamma": (1.4616321449683623, -0.5040830082644554, -1.5734984731623904, -9.702672540982837)}


def test_every_operation_of_one_number_is_swept() -> None:
    """The table decides, not a list: what maps one float to one number has a case and an exact function."""
    found = {case.operation for case in UNARY.values()} | PLACES
    for name, definition in REGISTRY.items():
        tensors = [p for p in definition.parameters if p.kind == "tensor" and not p.optional]
        floats = not definition.dtypes or BY_NAME["f32"] in definition.dtypes
        if definition.family in ("elementwise", "compare") and len(tensors) == 1 and floats:
            assert name in found, name
    for case in CASES.values():
        Exact(case)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_case_has_a_record_within_its_bound(dtype: str) -> None:
    for name in candidates(dtype):
        found = RECORDS[name, dtype]
        allowed = bound(CASES[name].operation, "f64" if dtype == "f64" else "f32")
        if dtype in ULP_16:
            allowed = 0.5 + allowed * ULP_16[dtype]
        assert found["worst"] <= allowed and found["wrong"] == 0, found
        single = 1 << 32 if name in UNARY else 1 << 27
        assert found["count"] >= {"f32": single, "f64": 4096}.get(dtype, 1 << 16), found


def drawn(case: str) -> list[Array]:
    """f32 inputs where the functions are ordinary, large, small and near 1."""
    rng = np.random.default_rng(len(case))
    if case in BINARY:
        return [np.concatenate(a) for a in zip(*(grid(case, n, 25) for n in range(1, 9)), strict=True)]
    drawn = np.concatenate([rng.normal(size=60) * 3, rng.uniform(-1, 1, 40), rng.uniform(-100, 100, 40),
                            np.exp(rng.uniform(-80, 80, 60)) * rng.choice([-1, 1], 60)])
    return [drawn.astype(np.float32)]


@pytest.mark.parametrize("case", precise.FUNCTIONS)
def test_exact_functions_agree_with_mpmath(case: str) -> None:
    """Within 2^-20 ulp of an f32, wherever the result is a finite f32."""
    operands = [a.astype(np.float64) for a in drawn(case)]
    with np.errstate(all="ignore"):
        finite = np.logical_and.reduce([np.isfinite(a) for a in operands])
    operands = [a[finite] for a in operands]
    got = Exact(CASES[case])(*operands)
    for value, target, *at in zip(got.tolist(), precise.values(case, *operands), *operands, strict=True):
        if mpmath.isnan(target) or abs(target) >= mpmath.mpf(2) ** 128:
            continue
        smallest = -24 if case == "logaddexp" else -126
        exponent = max(int(mpmath.floor(mpmath.log(abs(target), 2))) if target else smallest, smallest)
        assert abs(mpmath.mpf(value) - target) <= mpmath.mpf(2) ** (exponent - 23 - 20), (at, value, target)


@pytest.mark.parametrize("case", UNARY)
def test_exact_functions_are_the_op_tables(case: str) -> None:
    """Special values, signs of zeros and all: every 64th bf16 number."""
    x = np.concatenate([np.arange(0, 1 << 16, 64, dtype=np.uint16).view(BY_NAME["bf16"].numpy).astype(np.float32), SPECIAL])
    described = UNARY[case]
    recorded = graph(described, "f32", x.size)
    out = np.zeros(x.size, recorded.parameters[-1].type.dtype.numpy)
    with np.errstate(all="ignore"):
        want = np.asarray(interpreter.run(recorded, {"x0": x, "out": out}, {})["out"])
        got = Exact(described)(x)
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(got, want)
            return
        a, b = got.astype(np.float32), want.astype(np.float32)
        near = np.abs(a - b) <= np.spacing(np.abs(b))
    same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b) | near & (a != 0) & (b != 0)
    assert same.all(), (x[~same][:4], got[~same][:4], want[~same][:4])


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("case", UNARY)
def test_every_sixteen_bit_input(case: str, dtype: str) -> None:
    """All 65,536: the f32 result rounded once, and that within its bound of the exact value."""
    described, x = UNARY[case], every_half(dtype)
    wide = Kernel(described, "f32", x.size)(x.astype(np.float32))
    report = Report()
    Exact(described).compare_listed(x.astype(np.float32), wide, report)
    assert report.wrong == 0 and report.worst <= described.bound, (report.numbers(), x[report.worst_at])
    got = Kernel(described, dtype, x.size)(x)
    with np.errstate(all="ignore"):
        narrowed = wide.astype(got.dtype)
    size = f"u{got.dtype.itemsize}"
    nan = np.isnan(got) & np.isnan(narrowed) if got.dtype.kind not in "biu" else np.zeros(got.shape, bool)
    assert ((got.view(size) == narrowed.view(size)) | nan).all(), x[~((got.view(size) == narrowed.view(size)) | nan)][:4]


@pytest.mark.parametrize(("case", "dtype"), [key for key in RECORDS if key[1] in ("f32", "f64")])
def test_the_worst_case_found(case: str, dtype: str) -> None:
    """The recorded input again, at every level: not worse than recorded, and the same bits."""
    found = RECORDS[case, dtype]
    operands = [np.full(16, float.fromhex(v), BY_NAME[dtype].numpy) for v in found["at"]]
    results = [Kernel(CASES[case], dtype, 16, level)(*operands).copy() for level in LEVELS]
    assert all((r.view(np.uint8) == results[0].view(np.uint8)).all() for r in results)
    if dtype == "f64":
        error = precise.ulps(case, results[0][:1], *(a[:1] for a in operands))
        assert error[0] <= found["worst"] + 1e-5
        return
    report = Report()
    exact = Exact(CASES[case])
    if exact.binary:
        exact.compare_pairs(*operands, results[0], 0, report)
    else:
        exact.compare_listed(*operands, results[0], report)
    assert report.wrong == 0 and report.worst <= found["worst"] + 1e-5, (report.numbers(), found)


@pytest.mark.parametrize("case", BINARY)
def test_pairs_of_special_values(case: str) -> None:
    """Every pair of 108 special values, and the first grids, at every level."""
    exact, results = Exact(BINARY[case]), []
    for number in range(8):
        x, y = grid(case, number, 1 << 14)
        report = Report()
        results = [Kernel(BINARY[case], "f32", x.size, level)(x, y) for level in (LEVELS if number == 0 else LEVELS[:1])]
        exact.compare_pairs(x, y, results[0], 0, report)
        assert report.wrong == 0 and report.worst <= BINARY[case].bound, (report.numbers(), x[report.worst_at], y[report.worst_at])
        nan = np.isnan(results[0])
        for other in results[1:]:
            assert ((other.view(np.uint32) == results[0].view(np.uint32)) | nan & np.isnan(other)).all()


@pytest.mark.parametrize(("case", "zero"), [(case, zero) for case, zeros in ZEROS.items() for zero in zeros])
def test_double_precision_beside_zeros(case: str, zero: float) -> None:
    """The neighbours of a zero, and numbers at all distances from it."""
    rng = np.random.default_rng(1)
    near = zero + np.spacing(zero) * np.arange(-64, 64)
    x = np.concatenate([near, zero + rng.choice([-1, 1], 128) * 2.0 ** rng.uniform(-50, -2, 128)])
    error = precise.ulps(case, Kernel(CASES[case], "f64", x.size)(x), x)
    assert error.max() <= bound(case, "f64"), (error.max(), x[error.argmax()])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("level", LEVELS)
def test_remainders_of_long_quotients(level: str, dtype: str) -> None:
    """fmod is exact for any quotient, up to 2^2098: the bits are NumPy's."""
    rng, numpy = np.random.default_rng(7), BY_NAME[dtype].numpy
    edges = np.array([0.0, -0.0, 5e-324, 7.5e-320, 1.4e-45, 1e-40, 2.0**-126, 2.2250738585072014e-308, 0.1, 1, -1, 3, 3.4e38, 1.7e308,
                      np.inf, -np.inf, np.nan])
    words = f"u{np.dtype(numpy).itemsize}"
    with np.errstate(all="ignore"):
        pairs = [g.ravel().astype(numpy) for g in np.meshgrid(edges, edges)]
        x, y = (np.concatenate([p, rng.integers(0, 1 << 63, 4096).view(numpy)]) for p in pairs)
        want = np.fmod(x, y)
    got = Kernel(CASES["fmod"], dtype, x.size, level)(x, y)
    assert ((got.view(words) == want.view(words)) | np.isnan(got) & np.isnan(want)).all()


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
@pytest.mark.parametrize("level", LEVELS)
def test_quotients_of_integers_are_floored(level: str, dtype: str) -> None:
    """Beside multiples, by 0 and by -1, at both ends of the range: as Python's own integers have it."""
    low, high = BY_NAME[dtype].range
    drawn = random.Random(3)
    edges = [n for n in (low, low + 1, -7, -2, -1, 0, 1, 2, 3, 7, 10, high // 3, high - 1, high) if low <= n]
    pairs = [(x, y) for x in edges for y in edges]
    for _ in range(2000):
        y = drawn.randint(low, high) >> drawn.randrange(8 * BY_NAME[dtype].itemsize)
        multiple = y * drawn.randint(0, high // max(abs(y), 1))
        pairs += [(min(max(multiple + off, low), high), y) for off in (-1, 0, 1)]
    x, y = (np.array(column, BY_NAME[dtype].numpy) for column in zip(*pairs, strict=True))
    want = np.array([0 if not b else (a // b - low) % (high - low + 1) + low for a, b in pairs], BY_NAME[dtype].numpy)
    np.testing.assert_array_equal(Kernel(Case("floor_div", "floor_div", operands=2), dtype, x.size, level)(x, y), want)


def test_a_sweep_notices_one_wrong_result() -> None:
    exact, x = Exact(UNARY["exp"]), np.arange(0x3F800000, 0x3F800000 + 4096, dtype=np.uint32).view(np.float32)
    got = Kernel(UNARY["exp"], "f32", x.size)(x).copy()
    clean, off, nan = Report(), Report(), Report()
    exact.compare(0x3F800000, 1, got, clean)
    got[2000] = np.nextafter(np.nextafter(got[2000], np.float32(9)), np.float32(9))
    exact.compare(0x3F800000, 1, got, off)
    got[3000] = np.nan
    exact.compare(0x3F800000, 1, got, nan)
    assert clean.worst <= 1 < off.worst and off.worst_at == 0x3F800000 + 2000
    assert (clean.wrong, off.wrong, nan.wrong, nan.wrong_at) == (0, 0, 1, 0x3F800000 + 3000)
    assert compare(np.array([1.0, 2.0, -0.0], BY_NAME["f16"].numpy), np.array([1.0, 2.002, 0.0]), "f16").wrong == 1


def test_a_sweep_of_few_inputs_leaves_a_record() -> None:
    found = single(UNARY["tanh"], None, 1 << 17)
    assert found["count"] == 1 << 17 and 0.5 < found["worst"] <= 2 and found["wrong"] == 0
    assert half(UNARY["isnan"], "bf16", None)["wrong"] == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES)
def test_every_f32_input(case: str) -> None:
    """All 2^32 inputs, or 2^27 pairs."""
    found = single(CASES[case], None, 1 << 32 if case in UNARY else 1 << 27)
    assert found["wrong"] == 0 and found["worst"] <= CASES[case].bound, found
