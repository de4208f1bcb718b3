"""`ptc check`: what it tries, how far results may be off, what is wrong and what is the formula's own, and what it prints."""
from __future__ import annotations

import numpy as np
import pytest
from cli_files import DOUBLE, EXAMPLES

from pypto_dsl import check, trials
from pypto_dsl.compiler.dtypes import ALL, BF16, F32
from pypto_dsl.compiler.targets import load
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.frontend import targets
from pypto_dsl.tolerance import tolerances, ulp

ROWS = '''\
import numpy as np
import pypto_dsl as pypto


@pypto.jit
def rows(x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32), out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32)):
    out[:] = x / pypto.sum(x * x, -1, True)


def inputs(generator):
    x = generator.standard_normal((9, 40), np.float32)
    return x, np.empty_like(x)


def reference(x, out):
    out[...] = x / (x * x).sum(-1, keepdims=True)
'''


def by_name(document, prefix=""):
    return {t["name"]: t for t in document["trials"] if t["name"].startswith(prefix)}


# ---- the command ---------------------------------------------------------------------------------------------------------


def test_check_against_the_files_reference(ptc):
    done = ptc("check", EXAMPLES / "softmax.py")
    assert done.code == 0 and done.err == "", done.err
    assert done.out.startswith("softmax on llvm-cpu against softmax.py:reference\n")
    assert "sums of 1000 terms, f32 at the coarsest" in done.out and "ulp of out: <= 0.5:" in done.out and "trials are right" in done.out


def test_edge_shapes_and_special_values_are_tried(ptc, kernel):
    document = ptc("check", kernel(ROWS, "rows.py"), "--json").json
    assert document["ok"] and document["reference"] == "rows.py:reference"
    shapes = {t["name"]: t["results"][0]["shape"] for t in document["trials"] if t["kind"] == "shape" and not t["refused"]}
    rows = sorted({shape[0] for name, shape in shapes.items() if name.startswith("x.shape[0]")})
    assert rows[0] == 1 and {15, 16, 17, 19} <= set(rows), "1, the tails around the tile of the target, and twice the given extent plus 1"
    assert {1, 81, 4095, 4096, 4097} <= {shape[1] for shape in shapes.values()} and [1, 1] in shapes.values()
    values = [t["name"].removesuffix(" in x") for t in document["trials"] if t["kind"] == "values"]
    assert values == list(trials.special_values(F32))
    assert [t["kind"] for t in ptc("check", kernel(ROWS, "rows.py"), "--no-edges", "--no-values", "--json").json["trials"]] == ["given"]


@pytest.mark.parametrize("change, seen", [
    ("out[...] = x / (x * x).sum(-1, keepdims=True) * 1.001", "beyond the tolerance"),
    ("out[...] = x / (x * x).sum(-1, keepdims=True); out[2, 3] += 0.01", "out[2, 3]"),
    ("out[...] = x / (x * x).sum(-1, keepdims=True); out[4, 1] = np.nan", "1 should be NaN"),
    ("out[...] = x / (x * x).sum(-1, keepdims=True); out[4, 1] = np.inf", "1 infinities differ"),
])
def test_a_difference_is_3_with_its_element_and_both_values(ptc, kernel, change, seen):
    path = kernel(ROWS.replace("out[...] = x / (x * x).sum(-1, keepdims=True)", change), "rows.py")
    done = ptc("check", path, "--no-edges", "--no-values")
    assert done.code == 3 and "WRONG" in done.out and seen in done.out and "rows on llvm-cpu is not its reference" in done.err
    assert "expected" in done.out
    document = ptc("check", path, "--no-edges", "--no-values", "--json").json
    (result,) = document["trials"][0]["results"]
    assert document["exit"] == 3 and not result["ok"] and len(result["worst"]["at"]) == 2
    assert sum(result["histogram"]) + result["nan_missing"] + result["infinite"] == 9 * 40


PLACES = """\
import numpy as np
import pypto_dsl as pypto


@pypto.jit
def places(x: pypto.Tensor([20, 100], pypto.DT_FP32), out: pypto.Tensor([20, 100], pypto.DT_FP32)):
    out[:] = pypto.sqrt(x)


def inputs(generator):
    x = np.ones((20, 100), np.float32)
    x[7, 40:60] = -1.0
    return x, np.empty_like(x)


def reference(x, out):
    out[...] = np.sqrt(np.abs(x))
    out[0, :3] = np.nan
    out[3, 99] = np.inf
    out[19] += 1.0
"""


def test_a_map_shows_where_a_result_is_wrong(ptc, kernel):
    path = kernel(PLACES, "places.py")
    done = ptc("check", path, "--no-edges", "--no-values")
    assert done.code == 3
    key = "N NaN without cause, n should be NaN, i infinities differ, x beyond the tolerance"
    assert f"out[20, 100] (as given), drawn 16 x 64: {key}" in done.out
    lines = ptc("check", path, "--no-edges", "--no-values", "--json").json["trials"][0]["results"][0]["map"]
    assert len(lines) == 16 and all(len(line) == 64 for line in lines)
    assert lines[0] == "nn" + "." * 62 and lines[2] == "." * 63 + "i"
    assert lines[5] == "." * 25 + "N" * 13 + "." * 26 and lines[15] == "x" * 64
    assert all(set(lines[i]) == {"."} for i in range(16) if i not in (0, 2, 5, 15))


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3, 4), (500, 1)])
def test_maps_of_any_shape(shape):
    none, all_ = np.zeros(shape, bool), np.ones(shape, bool)
    assert check.picture({"N": none, "x": none}) == ()
    drawn = check.picture({"N": none, "x": all_})
    assert {c for line in drawn for c in line} == ({"x"} if all_.size else set())
    assert len(drawn) <= 16 and all(len(line) <= 64 for line in drawn)


def test_a_reference_of_another_module(ptc, kernel, tmp_path):
    text = ROWS.split("\n\n\ndef reference")[0] + "\n"
    path = kernel(text, "rows.py")
    assert ptc("check", path, "--json", "--no-edges").json["reference"] == "interpreter"
    (tmp_path / "work" / "other.py").write_text(
        "def rows(x):\n    assert x.dtype == 'float64'\n    return x / (x * x).sum(-1, keepdims=True)\n"
    )
    for named in ("other:rows", "other.py:rows"):
        done = ptc("check", path, "--ref", named)
        assert done.code == 0 and f"against {named}" in done.out, done.out + done.err
    (tmp_path / "work" / "twice.py").write_text("def rows(x):\n    return x, x\n")
    done = ptc("check", path, "--ref", "twice:rows")
    assert done.code == 2 and "returns 2 results, and the kernel has 1" in done.err


@pytest.mark.parametrize("named", ["nothing", "nowhere:f", "math:nothing", "numpy:pi", ":f", "math:"])
def test_a_wrong_reference_is_2(ptc, kernel, named):
    done = ptc("check", kernel(), "--ref", named)
    assert done.code == 2 and "--ref" in done.err


def test_a_function_of_the_inputs_alone(ptc, kernel):
    path = kernel(DOUBLE.replace("x * 2.0", "pypto.exp(x)"))
    assert ptc("check", path, "--ref", "numpy:exp").code == 0
    done = ptc("check", path, "--ref", "numpy:expm1")
    assert done.code == 3 and "beyond the tolerance" in done.out


def test_the_formula_at_special_values_is_counted_and_fails_when_strict(ptc, kernel):
    text = DOUBLE.replace("x * 2.0", "x * x / x") + "\n\ndef reference(x, out):\n    out[...] = x\n"
    done = ptc("check", kernel(text))
    assert done.code == 0 and "as the kernel is written: the interpreter has them too" in done.out
    assert ptc("check", kernel(text), "--strict").code == 3


@pytest.mark.parametrize("name", ["softmax.ptir", "layer_norm.ptir", "ldexp_i32.ptir", "row_column.ptir", "tril.ptir"])
def test_text_kernels_are_held_against_the_interpreter(ptc, name):
    document = ptc("check", EXAMPLES / "ptir" / name, "--json").json
    assert document["ok"] and document["reference"] == "interpreter"
    assert len([t for t in document["trials"] if t["kind"] == "shape" and not t["refused"]]) >= 5


def test_a_target_that_computes_something_else_is_found(ptc, kernel, monkeypatch):
    real = targets.executor

    def off(name, graph):
        execute = real(name, graph)

        def run(arrays, symbols):
            returned = execute(arrays, symbols)
            if arrays["out"].shape[1] % 16:  # a tail that is handled wrongly
                arrays["out"][:, -1] += 1.0
            return returned

        return run

    monkeypatch.setattr(targets, "executor", off)
    document = ptc("check", kernel(ROWS.replace("(9, 40)", "(9, 32)"), "rows.py"), "--json").json
    assert document["exit"] == 3 and by_name(document)["as given"]["ok"]
    wrong = [t for t in document["trials"] if t["kind"] == "shape" and not t["ok"]]
    assert wrong and all(t["results"][0]["shape"][1] % 16 for t in wrong)


def test_the_emulated_devices_are_checked_too(ptc, kernel):
    done = ptc("check", kernel(), "--target", "ascend-a2-emu", "--no-values")
    assert done.code == 0, done.out + done.err


# ---- tolerances -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, relative, words", [
    ("kernel k(%x: f32[8, 64]) { %a = add(%x, %x)  return %a }", 0.5 * ulp(F32), "0.5 ulp"),
    ("kernel k(%x: f32[8, 64]) { %a = neg(%x)  return %a }", 0.0, "exact"),
    ("kernel k(%x: f32[8, 64]) { %a = permute(%x, perm = [1, 0])  return %a }", 0.0, "exact"),
    ("kernel k(%x: f32[8, 64]) { %a = amax(%x, dim = 1)  return %a }", 0.0, "exact"),
    ("kernel k(%x: f32[8, 64]) { %a = cast(%x, dtype = bf16)  return %a }", 0.5 * ulp(BF16), "bf16"),
    ("kernel k(%x: bf16[8, 64]) { %a = cast(%x, dtype = f32)  return %a }", 0.0, "exact"),
])
def test_tolerance(text, relative, words):
    graph = read_graph(text, "k.ptir")
    (found,) = tolerances(graph, {}).values()
    assert found.relative == pytest.approx(relative) and words in found.text()


@pytest.mark.parametrize("body, terms", [
    ("%a = sum(%x, dim = 1)", 64), ("%a = sum(%x, dim = 0)", 8), ("%a = matmul(%x, %y)", 64), ("%a = cumsum(%x, dim = 0)", 8),
    ("%a = softmax(%x, dim = 1)", 64), ("%a = mean(%x, dim = 1)", 64), ("%a = var(%x, dim = 1)", 64),
])
@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_tolerance_grows_with_the_terms_of_a_sum(body, terms, dtype):
    graph = read_graph(f"kernel k(%x: {dtype}[8, 64], %y: {dtype}[64, 8]) {{ {body}  return %a }}", "k.ptir")
    (found,) = tolerances(graph, {}).values()
    assert found.lengths == (terms,) and found.relative > terms * ulp(F32) / 2, "accumulated in f32, whatever the dtype"
    assert found.relative < terms * ulp(F32) / 2 + 40 * ulp(dtype)


def test_the_worst_way_counts_and_targets_have_their_own_bounds():
    graph = read_graph("kernel k(%x: f32[4], %y: f32[4]) { %a = exp(%x)  %b = exp(%a)  %c = add(%b, %y)  return %c, %y }", "k.ptir")
    found = tolerances(graph, {})
    assert found["return1"].relative == 0 and found["return0"].roundings > 2
    chip = load("tt-wormhole")
    assert tolerances(graph, {}, chip)["return0"].roundings >= found["return0"].roundings


def test_a_loop_counts_its_turns():
    graph = read_graph("""kernel k(%x: f32[N]) {
      symbol N: dim of x axis 0
      symbol i: loop
      %a = loop i in 0 to N step 1 (%c: f32[N] = %x) {
        %d = add(%c, %x)
        yield %d
      }
      return %a
    }""", "k.ptir")
    (few,), (many,) = tolerances(graph, {"N": 2}).values(), tolerances(graph, {"N": 200}).values()
    assert many.relative == pytest.approx(100 * few.relative)


# ---- trials ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [d for d in ALL if d.numpy_name and d.name not in ("bool", "f8e8m0")], ids=str)
def test_special_values_are_values_of_the_dtype(dtype):
    found = trials.special_values(dtype)
    made = np.asarray(list(found.values()), dtype.numpy).astype(np.float64)
    assert np.array_equal(made, np.asarray(list(found.values()), np.float64), equal_nan=True)
    if dtype.name in ("f16", "bf16", "f32", "f64", "f8e5m2"):
        assert {"0", "-0", "inf", "-inf", "nan", "smallest subnormal", "largest", "-largest"} <= set(found)
    if dtype.is_integer:
        assert dtype.range == (found["smallest"], found["largest"])


def test_two_of_the_largest_numbers_never_meet_in_one_sum():
    graph = read_graph("kernel k(%x: f32[50, 96], %w: f32[96, 80]) { %a = matmul(%x, %w)  return %a }", "k.ptir")
    arrays = {"x": np.zeros((50, 96), np.float32), "w": np.zeros((96, 80), np.float32)}
    for trial in trials.values(graph, arrays, integers=False):
        if trial.is_extreme:
            for array in trial.arguments.values():
                large = np.abs(array) > 1e38
                assert large.sum(axis=0).max() <= 1 and large.sum(axis=1).max() <= 1


def test_pointwise_kernels_meet_every_pair():
    graph = read_graph("kernel k(%x: f32[40, 40], %y: f32[40, 40]) { %a = div(%x, %y)  return %a }", "k.ptir")
    zeros = np.zeros((40, 40), np.float32)
    (trial,) = trials.values(graph, {"x": zeros, "y": zeros}, integers=True)
    pairs = {(a.tobytes(), b.tobytes()) for a, b in zip(trial.arguments["x"].ravel(), trial.arguments["y"].ravel(), strict=True)}
    assert len(pairs) == len(trials.special_values(F32)) ** 2


def test_other_kernels_meet_one_value_in_a_row():
    graph = read_graph("kernel k(%x: f32[40, 7]) { %a = sum(%x, dim = 1)  return %a }", "k.ptir")
    found = {t.name: t.arguments["x"] for t in trials.values(graph, {"x": np.ones((40, 7), np.float32)}, integers=True)}
    assert (np.isnan(found["nan in x"]).sum(1) <= 1).all() and np.isnan(found["nan in x"]).sum() >= 35
    assert set(found) == {f"{name} in x" for name in trials.special_values(F32)}


def test_dimensions_that_agree_change_together():
    graph = read_graph("""kernel k(%x: f32[M, N], %y: f32[M, N]) {
      symbol M: dim of x axis 0
      symbol N: dim of x axis 1
      %a = add(%x, %y)  return %a }""", "k.ptir")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    made = trials.resized(graph, {"x": x, "y": x + 1}, {"M": 5})
    assert made["x"].shape == made["y"].shape == (5, 4) and np.array_equal(made["x"][3], x[0]) and np.array_equal(made["y"][:3], x + 1)
    assert trials.resized(graph, {"x": x[:0], "y": x[:0]}, {"M": 2})["x"].tolist() == [[0] * 4] * 2


# ---- verdicts -----------------------------------------------------------------------------------------------------------------


def judged(text, arguments, got, reference=None):
    graph = read_graph(text, "k.ptir")
    subject = check.Subject(lambda a: (graph, {}), lambda a: {"return0": got}, None)
    return next(check.check(subject, arguments, reference, shapes=False, values=False)).verdicts[0]


ADD = "kernel k(%x: f32[4], %y: f32[4]) { %a = add(%x, %y)  return %a }"


@pytest.mark.parametrize("steps, ok", [(0, True), (1, False), (5, False)])
def test_one_addition_is_right_to_half_an_ulp(steps, ok):
    x = np.asarray([1.0, 1.25, 1.5, 1.75], np.float32)
    got = x + x
    for _ in range(steps):
        got[3] = np.nextafter(got[3], np.float32(9))
    verdict = judged(ADD, {"x": x, "y": x}, got)
    assert verdict.ok == ok and verdict.worst.ulp == pytest.approx(steps) and (steps == 0 or verdict.worst.at == (3,))


def test_cancellation_of_the_formula_itself_is_no_fault_of_the_target():
    text = "kernel k(%x: f32[4]) { %one = constant(value = 1000000.0, dtype = f32)  %a = add(%x, %one)  %b = sub(%a, %one)  return %b }"
    x = np.asarray([0.1, 0.2, 0.3, 0.4], np.float32)
    assert judged(text, {"x": x}, (x + np.float32(1e6)) - np.float32(1e6)).ok
    assert not judged(text, {"x": x}, x + np.float32(0.3)).ok


@pytest.mark.parametrize("dtype", ["i32", "bool", "i8"])
def test_integers_are_exact(dtype):
    numpy = np.dtype({"i32": "int32", "bool": "bool", "i8": "int8"}[dtype])
    x = np.asarray([0, 1, 1, 0], numpy)
    text = f"kernel k(%x: {dtype}[4]) {{ %a = clone(%x)  return %a }}"
    assert judged(text, {"x": x}, x.copy()).ok
    wrong = x.copy()
    wrong[2] = 0
    verdict = judged(text, {"x": x}, wrong)
    assert verdict.wrong == 1 and verdict.worst.at == (2,) and (verdict.worst.got, verdict.worst.expected) == (0.0, 1.0)
