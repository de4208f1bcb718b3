"""The benchmark harness on tiny sizes with NumPy and pypto_dsl: rows, accuracy, tables; nothing here looks at a time."""
from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import __main__ as command
from benchmarks import session, special_lanes, table
from benchmarks.accuracy import Reference
from benchmarks.kernels import KERNELS
from benchmarks.peers import load
from benchmarks.workloads import ATTENTION, DTYPES, ELEMENTWISE, MATMUL, MATMUL_GELU, REDUCTIONS, ROWS, WORKLOADS, Workload, select

OPERATIONS = (*ELEMENTWISE, *ROWS, *REDUCTIONS, MATMUL, MATMUL_GELU)
TINY = [Workload(f"{o.name}_{d}_tiny", o, d, (6, 6), "tiny", 1 if o in (MATMUL, MATMUL_GELU) else 0) for o in OPERATIONS for d in o.dtypes]
# Of the largest value: rounding once or twice to the dtype, and sums of a few terms.
BOUND = {"f32": 1e-6, "f16": 2e-3, "bf16": 1.6e-2}
QUICK = session.Settings(("numpy", "pypto"), ("add+f32+64", "sum_first+bf16+64"), rounds=2, sample_seconds=0.0)


@pytest.mark.parametrize("peer", ["numpy", "pypto"])
@pytest.mark.parametrize("workload", TINY, ids=lambda w: w.name)
def test_a_peer_computes_every_workload(workload, peer):
    inputs = workload.inputs()
    prepared = load(peer, 1)(workload, inputs)
    if prepared is None:
        assert peer == "numpy" and (workload.operation.name == "gelu_erf" or (workload.dtype == "bf16" and workload.flops))
        return
    result = prepared.result(prepared.run())
    assert result.dtype == DTYPES[workload.dtype]
    assert Reference(workload, inputs).error(result).relative < BOUND[workload.dtype]


def test_every_operation_has_a_kernel():
    assert set(KERNELS) == {o.name for o in (*OPERATIONS, ATTENTION)}


def test_inputs_are_the_same_in_every_run_and_aligned():
    for name in ("swiglu_bf16_64", "ldexp_f32_64"):
        first, second = WORKLOADS[name].inputs(), WORKLOADS[name].inputs()
        for operand, array in first.items():
            assert array.ctypes.data % 64 == 0
            np.testing.assert_array_equal(array.view(np.uint8), second[operand].view(np.uint8))


def test_a_sample_of_lines_notices_a_wrong_column():
    workload = WORKLOADS["sum_first_f32_1M"]
    inputs = workload.inputs()
    reference = Reference(workload, inputs)
    result = inputs["x"].sum(0)
    assert reference.error(result).relative < 1e-5
    result[-1] *= 1.5
    assert reference.error(result).ulp > 1000
    result[-1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        reference.error(result)


def test_select_by_name_words_and_mistake():
    assert [w.name for w in select(["add_f32_64"])] == ["add_f32_64"]
    assert {w.dtype for w in select(["elementwise+f16+64", "softmax+bf16"])} == {"f16", "bf16"}
    assert len(select(["all"])) == len(WORKLOADS)
    with pytest.raises(ValueError, match="additon"):
        select(["additon"])


def test_results_become_a_table(tmp_path):
    lines: list[str] = []
    results = session.measure(QUICK, lines.append)
    assert {(r["workload"], r["peer"]) for r in results["rows"]} == {
        (w, p) for w in ("add_f32_64", "sum_first_bf16_64") for p in ("numpy", "pypto")}
    assert all(r["ulp"] <= 0.5 and r["best_ms"] <= r["median_ms"] for r in results["rows"]), lines
    path = tmp_path / "results.json"
    session.write(results, path)
    assert json.loads(path.read_text()) == results
    head, read = table.read([path, path])
    assert head["settings"]["threads"] == 1 and [line.workload for line in read] == ["add_f32_64", "sum_first_bf16_64"]
    shown = CliRunner().invoke(command.main, ["table", str(path)])
    assert shown.exit_code == 0 and "| add_f32_64 |" in shown.output and "geometric mean" in shown.output


def test_ratios_and_losses_are_counted():
    def row(workload, peer, ms):
        return {"workload": workload, "group": "row", "dtype": "f32", "size": "64", "peer": peer, "best_ms": ms, "first_ms": 1.0,
                "clean": 1, "rounds": 1}

    lines = [table.Line(name, {p: row(name, p, ms) for p, ms in times.items()}) for name, times in
             {"won": {"pypto": 1.0, "numpy": 4.0, "jax": 9.0, "limit": 0.5}, "lost": {"pypto": 2.0, "numpy": 1.0}}.items()]
    assert [(line.best, line.ratio, line.share) for line in lines] == [("numpy", 4.0, 0.5), ("numpy", 0.5, None)]
    assert "| all | all | all | 2 | 1.41x | 1.41x | 1 | 1 | 0.50x |" in table.summary(lines)
    assert "| lost | 0.50x | numpy | 1 | 2 |" in table.losses(lines) and "won" not in table.losses(lines)


def test_the_bars_are_counted():
    def line(name, group, **times):
        return table.Line(name, {p: {"workload": name, "group": group, "peer": p, "best_ms": ms} for p, ms in times.items()})

    lines = [line("exp_bf16_16M", "elementwise", pypto=1.0, torch=1.5, limit=0.9), line("exp_f16_1M", "elementwise", pypto=1.0, torch=16.0),
             line("pow_2_bf16_1M", "elementwise", pypto=1.0, torch=0.9), line("pow_f32_64", "elementwise", pypto=1.0, numpy=2.0),
             line("matmul_f32_64", "matmul", pypto=1.0, numpy=0.1), line("exp_f16_64", "elementwise", pypto=1.0, torch=1.0)]
    assert table.bars(lines).split("\n") == [
        "- 5 rows: geometric mean 2.12x (1.61x with each ratio counted as 4 at most), 4 at 1.0x or more (80%).",
        "- Below 0.95x: pow_2_bf16_1M 0.90x.",
        "- Functions of 16-bit floats at 1M and 16M: 1 of 2 at 2x or more; below: exp_bf16_16M 1.50x.",
        "- pow of two f32 tensors: pow_f32_64 2.00x.",
        "- Of the stream beyond the caches, element by element: 1 of 1 at 85 % or more: exp_bf16_16M 90%."]


def test_fast_kernels_are_a_column_and_no_peer():
    rows = session.measure(session.Settings(("pypto", "pypto_fast"), ("exp_f32_64",), rounds=2, sample_seconds=0.0))["rows"]
    line = table.Line("exp_f32_64", {row["peer"]: row for row in rows})
    assert line.best is None and line.gain == line.rows["pypto"]["best_ms"] / line.rows["pypto_fast"]["best_ms"]
    assert line.rows["pypto"]["ulp"] <= 1 < line.rows["pypto_fast"]["ulp"] <= 3
    shown = table.table([line]).splitlines()
    assert "| pypto_fast | exact / fast | ulp: fast |" in shown[0] and len({row.count("|") for row in shown}) == 1
    assert "exact / fast" not in table.table([table.Line("x", {"pypto": rows[0]})])


def test_a_faster_but_rough_peer_is_not_an_accurate_one():
    rows = {"pypto": (1.0, 1.5), "halide": (0.5, 900.0), "numpy": (2.0, 0.9)}
    line = table.Line("gelu", {peer: {"group": "elementwise", "best_ms": ms, "ulp": ulp} for peer, (ms, ulp) in rows.items()})
    assert (line.best, line.ratio) == ("halide", 0.5)
    assert (line.best_accurate, line.accurate_ratio) == ("numpy", 2.0)


def test_a_failing_peer_is_reported_and_left_out(monkeypatch):
    def broken(workload, inputs):
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(session, "load", lambda name, threads: broken if name == "numpy" else load(name, threads))
    lines: list[str] = []
    rows = session.measure(session.Settings(("numpy", "pypto"), ("add_f32_64",), rounds=1, sample_seconds=0.0), lines.append)["rows"]
    assert [r["peer"] for r in rows] == ["pypto"]
    assert "add_f32_64: numpy is left out: RuntimeError: no such instruction" in lines


def test_processor_time_of_two_threads_is_refused():
    done = CliRunner().invoke(command.main, ["--threads", "2", "--cpu-time"])
    assert done.exit_code == 2 and "use --threads 1" in done.output


def test_special_operands_of_pow_are_timed_in_one_run():
    done = CliRunner().invoke(special_lanes.main, ["--rounds", "1"])
    assert done.exit_code == 0, done.output
    assert done.output.count("\n") == 3 + 2 * len(special_lanes.KINDS)
    pairs = special_lanes.operands()
    assert np.isnan(pairs["10% NaN"][0]).mean() == pytest.approx(0.1, abs=0.01)
    assert np.isinf(np.abs(pairs["1% infinite"][0])).mean() == pytest.approx(0.01, abs=0.005)
