"""Every row of the golden values (`tests/data/numpy_values`: exact rationals or 400-bit arithmetic), interpreted and compiled."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine import bits_apart, evaluate, execute, expanded

import pypto_dsl as pypto
from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY

FOLDER = Path(__file__).parent.parent / "data" / "numpy_values"
FILES = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))["files"]


def columns(name: str) -> dict[str, np.ndarray]:
    """The columns of a file, floats as bits."""
    with np.load(FOLDER / name) as data:
        return {k: data[k] for k in data.files}


def typed(bits: np.ndarray, dtype: str) -> np.ndarray:
    return bits.view(BY_NAME[dtype].numpy) if BY_NAME[dtype].is_float else bits


def same(got: np.ndarray, *accepted: np.ndarray) -> None:
    """Equal in every row to one of the accepted columns; any NaN is NaN."""
    wide = got.astype(np.float64)
    good = np.zeros(got.shape, bool)
    for want in accepted:
        expected = want.astype(np.float64)
        equal = (np.ascontiguousarray(got).view(f"u{got.dtype.itemsize}") == np.ascontiguousarray(want).view(f"u{got.dtype.itemsize}"))
        good |= equal | (np.isnan(wide) & np.isnan(expected))
    assert good.all(), f"{(~good).sum()} rows differ, first {np.flatnonzero(~good)[:4]}: {got[~good][:4]} for {accepted[0][~good][:4]}"


def test_every_file_is_read() -> None:
    groups = [set(POW), set(MIXED), set(INTEGER), set(SCALED), set(REAL)]
    assert set().union(*groups) == set(FILES) == {p.name for p in FOLDER.glob("*.npz")}


POW = [f for f in FILES if f.startswith("pow_")]
MIXED = [f for f in FILES if f.startswith("powmix_")]
INTEGER = [f for f in FILES if f.startswith("powint_")]
SCALED = [f for f in FILES if f.startswith("ldexp_int_")]
REAL = [f for f in FILES if f.startswith("ldexp_ttnn_")]


@pytest.mark.parametrize("file", POW)
def test_pow(file: str) -> None:
    """All special values of C99; f64 is NumPy's own function, which is off by one ulp in a few rows."""
    data, dtype = columns(file), FILES[file]["result"]
    got = evaluate("pow", typed(data["x"], dtype), typed(data["y"], dtype))
    want = typed(data["out"], dtype)
    if dtype == "f64":
        apart = bits_apart(got, want)
        nan = np.isnan(got) & np.isnan(want)
        assert (apart[~nan] <= 1).all() and (apart[~nan] > 0).mean() < 0.02
        return
    accepted = [want] + ([typed(data["out_via_f32"], dtype)] if "out_via_f32" in data else [])
    same(got, *accepted)


@pytest.mark.parametrize("file", MIXED)
def test_pow_of_mixed_dtypes(file: str) -> None:
    """Exact operands in f32, and one more rounding to a 16-bit result; INT32 is not narrowed first."""
    data, about = columns(file), FILES[file]
    got = evaluate("pow", typed(data["x"], about["x"]), typed(data["y"], about["y"]))
    assert got.dtype == BY_NAME[about["result"]].numpy
    same(got, typed(data["out"], about["result"]), typed(data["out_via_f32"], about["result"]))


@pytest.mark.parametrize("file", INTEGER)
def test_pow_of_integers(file: str) -> None:
    """Wraps modulo 2**N; negative exponents give 1, -1 or 0."""
    data = columns(file)
    np.testing.assert_array_equal(evaluate("pow", data["x"], data["y"]), data["out"])


@pytest.mark.parametrize("name", ["ldexp", "ldexp_"])
@pytest.mark.parametrize("file", SCALED)
def test_ldexp_of_integers(file: str, name: str) -> None:
    """x * 2**n rounded once with gradual underflow, for any n; the expansion too."""
    data, dtype = columns(file), FILES[file]["result"]
    x, n = typed(data["x"], dtype), data["n"].astype(np.int32)
    want = typed(data["out"], dtype)
    same(evaluate(name, x, n), want)
    same(execute(expanded(lambda p, q: REGISTRY[name](p, q), x, n), x, n)[0], want)


@pytest.mark.parametrize("expand", [False, True], ids=["reference", "expansion"])
@pytest.mark.parametrize("file", REAL)
def test_ldexp_of_real_exponents(file: str, expand: bool) -> None:
    """a * 2**b within one ulp in f32; 16-bit results rounded once from that."""
    data, dtype = columns(file), FILES[file]["result"]
    a, b = typed(data["a"], dtype), typed(data["b"], dtype)
    call: Any = REGISTRY["ldexp"]
    got = execute(expanded(lambda p, q: call(p, q), a, b), a, b)[0] if expand else evaluate("ldexp", a, b)
    want = typed(data["out"], dtype)
    apart = np.minimum(bits_apart(got, want), bits_apart(got, typed(data["via_f32"], dtype)))
    nan = np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))
    assert apart[~nan].max() <= 1, (a[np.argmax(apart)], b[np.argmax(apart)])
    if not expand:
        assert (apart[~nan] == 0).all()


# ---- compiled, as a user's kernel --------------------------------------------------------------------------------------------------


def compiled(name: str, target: str, x: np.ndarray, y: np.ndarray, dtype: str) -> np.ndarray:
    """The operation over two columns as one row each, on a target that runs here."""
    @pypto.jit
    def k(x, y, out):
        out[:] = getattr(pypto, name)(x, y)

    rows, out = [np.ascontiguousarray(v).reshape(1, -1) for v in (x, y)], np.zeros((1, x.size), BY_NAME[dtype].numpy)
    k.run(*rows, out, target=target)
    return out.reshape(-1)


@pytest.mark.parametrize("file", [*POW, *MIXED])
def test_pow_on_the_cpu(file: str) -> None:
    """Within one unit of the recorded value in f32 and f64; 16 bits are that rounded once, and hardly ever differ."""
    data, about = columns(file), FILES[file]
    first, second = about.get("x", about["result"]), about.get("y", about["result"])
    got = compiled("pow", "llvm-cpu", typed(data["x"], first), typed(data["y"], second), about["result"])
    want = typed(data["out"], about["result"])
    nan = np.isnan(want.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), nan)
    apart = bits_apart(got, want)
    if "out_via_f32" in data:
        apart = np.minimum(apart, bits_apart(got, typed(data["out_via_f32"], about["result"])))
    assert (apart[~nan] <= 1).all() and (BY_NAME[about["result"]].bits > 16 or (apart[~nan] == 0).mean() > 0.998)


@pytest.mark.parametrize("file", INTEGER)
def test_pow_of_integers_on_the_cpu(file: str) -> None:
    data = columns(file)
    np.testing.assert_array_equal(compiled("pow", "llvm-cpu", data["x"], data["y"], FILES[file]["result"]), data["out"])


@pytest.mark.parametrize("target", ["llvm-cpu", "ascend-a2-emu"])
@pytest.mark.parametrize("file", SCALED)
def test_ldexp_of_integers_compiled(file: str, target: str) -> None:
    """Rounded once with gradual underflow, on the CPU and as Ascend C in the emulator."""
    data, dtype = columns(file), FILES[file]["result"]
    if target != "llvm-cpu" and dtype == "f64":
        with pytest.raises(KernelError) as caught:
            compiled("ldexp", target, typed(data["x"], dtype), data["n"].astype(np.int32), dtype)
        assert caught.value.code == "PT502"
        return
    got, want = compiled("ldexp", target, typed(data["x"], dtype), data["n"].astype(np.int32), dtype), typed(data["out"], dtype)
    if dtype == "bf16":  # by way of f32, in which a subnormal bf16 result may be halfway: one more rounding
        nan = np.isnan(want.astype(np.float64))
        assert (bits_apart(got, want)[~nan] <= 1).all() and np.isnan(got.astype(np.float64)[nan]).all()
        return
    same(got, want)


@pytest.mark.parametrize("file", REAL)
def test_ldexp_of_real_exponents_on_the_cpu(file: str) -> None:
    data, dtype = columns(file), FILES[file]["result"]
    got, want = compiled("ldexp", "llvm-cpu", typed(data["a"], dtype), typed(data["b"], dtype), dtype), typed(data["out"], dtype)
    nan = np.isnan(want.astype(np.float64))
    apart = np.minimum(bits_apart(got, want), bits_apart(got, typed(data["via_f32"], dtype)))
    assert (apart[~nan] <= 1).all() and np.isnan(got.astype(np.float64)[nan]).all()


@pytest.mark.parametrize("file", [f for f in REAL if "f16" not in f or "bf16" in f])
def test_ldexp_in_two_steps_on_tt_metal(file: str) -> None:
    """ttnn's own form, 2**b rounded to the dtype and then the product: the recorded two steps, or the single rounding, within one unit.

    Exponents whose power of two is subnormal or leaves the dtype are left to the conformance table: the device flushes and overflows.
    """
    data, dtype = columns(file), FILES[file]["result"]
    a, b = typed(data["a"], dtype), typed(data["b"], dtype)
    got, want = compiled("ldexp", "tt-wormhole-emu", a, b, dtype), typed(data["out"], dtype)
    apart = np.minimum(bits_apart(got, want), bits_apart(got, typed(data["two_step"], dtype)))
    regular = (np.abs(b.astype(np.float64)) <= 126) & np.isfinite(want.astype(np.float64)) & (np.abs(want.astype(np.float64)) >= 2.0**-126)
    assert regular.sum() > 500 and (apart[regular] <= 1).all()
