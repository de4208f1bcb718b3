"""What each command prints and writes, as text and as JSON."""
from __future__ import annotations

import json
import re
from importlib import resources

import numpy as np
import pytest
from cli_files import DOUBLE, EXAMPLES

from pypto_dsl.cli.opt import ENDINGS
from pypto_dsl.cli.root import COMMANDS, SUMMARIES
from pypto_dsl.compiler import catalogue, pipeline, targets
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.frontend import targets as frontend_targets
from pypto_dsl.frontend.spellings import TEXT_ONLY
from pypto_dsl.namespace import public_doc

TARGETS = targets.names()
PUBLIC = set(REGISTRY) - set(TEXT_ONLY)


MIXED = """import pypto_dsl as pypto


@pypto.jit
def mixed(x: pypto.Tensor([8, 8], pypto.DT_BF16), i: pypto.Tensor([8, 8], pypto.DT_INT32), out: pypto.Tensor([8, 8], pypto.DT_BF16)):
    out[:] = x + i
"""


# ---- run -------------------------------------------------------------------------------------------------------------------


def test_run_reports_numbers_error_and_time_beside_numpy(ptc):
    done = ptc("run", EXAMPLES / "softmax.py")
    assert done.code == 0, done.err
    assert re.search(r"softmax\(x f32\[512, 1000\]\) on llvm-cpu", done.out)
    assert re.search(r"largest error \d\S* ulp at \[\d+, \d+\]", done.out)
    assert re.search(r"one call takes \S+ (s|ms|us), NumPy's \S+ (s|ms|us) \(\S+ times as long\)", done.out)


def test_run_shows_a_warning_once_and_as_an_error(ptc, kernel):
    done = ptc("run", kernel(MIXED, "mixed.py"), "--no-time")
    assert done.code == 0 and done.err.startswith("warning[PT209]: ") and done.err.count("out[:] = x + i") == 1, done.err
    assert "KernelWarning" not in done.err and done.err.rstrip().endswith("= more: ptc explain PT209")


def test_run_says_no_ulp_where_terms_cancel(ptc, kernel):
    text = DOUBLE.replace("x * 2.0", "x + 1024.0 - 1024.0") + """

def inputs(generator):
    return np.linspace(0.001, 4, 32, dtype=np.float32).reshape(4, 8), np.zeros((4, 8), np.float32)
"""
    done = ptc("run", kernel(text), "--no-time")
    assert done.code == 0 and " ulp" not in done.out, done.out
    assert re.search(r"error at most \S+ of the largest magnitude, largest at \[0, 0\], where terms cancel", done.out), done.out


def test_run_names_every_way_to_say_what_a_parameter_is(ptc, kernel):
    path = kernel(DOUBLE.replace("out: pypto.Tensor([4, 8], pypto.DT_FP32)", "out"))
    done = ptc("run", path)
    assert done.code == 2 and all(way in done.err for way in ("out: pypto.Tensor(", "--shape out=", "inputs(generator)")), done.err


def test_run_as_json(ptc, kernel):
    document = ptc("run", kernel(), "--json").json
    assert document["ok"] and document["exit"] == 0 and document["schema"] == 1
    assert document["inputs"] == {"x": "f32[4, 8]"}
    (result,) = document["results"]
    assert result["name"] == "out" and result["ulp"] == 0 and result["ok"] and len(result["first"]) == 8
    assert document["seconds"] > 0 and document["numpy_seconds"] is None


@pytest.mark.parametrize("target", ["llvm-cpu", "interpreter"])
def test_run_gives_the_same_numbers_on_every_target(ptc, kernel, target):
    document = ptc("run", kernel(), "--target", target, "--json", "--no-time", "--seed", 7).json
    expected = np.random.default_rng(7).standard_normal((4, 8)).astype(np.float32).reshape(-1)[:8] * 2
    assert document["results"][0]["first"] == pytest.approx(expected.tolist(), abs=0)


@pytest.mark.parametrize(("body", "inputs"), [
    ("out[:] = x * 2.0", {"x"}), ("x[:] = x * 2.0", {"x", "out"}), ("x[0:2, :] = out[0:2, :]", {"out"}),
    ("x[:] = out\n    out[:] = out + 1.0", {"out"}), ("for i in pypto.loop(4):\n        out[i] = x[i] + 1.0", {"x"}),
    ("for i in pypto.loop(4):\n        out[i] = out[i] + 1.0", {"x", "out"})])
def test_run_names_what_a_kernel_reads_among_it_what_it_writes_too(ptc, kernel, body, inputs):
    text = DOUBLE.replace("out[:] = x * 2.0", body)
    assert body in text
    document = ptc("run", kernel(text), "--json", "--no-time").json
    assert set(document["inputs"]) == inputs


def test_run_takes_the_kernels_own_target(ptc, kernel):
    text = DOUBLE.replace("@pypto.jit", '@pypto.jit(target="interpreter")')
    assert ptc("run", kernel(text), "--json").json["target"] == "interpreter"
    assert ptc("run", kernel(text), "--target", "llvm-cpu", "--json").json["target"] == "llvm-cpu"


def test_run_draws_shapes_from_the_command_line(ptc, kernel):
    text = DOUBLE.replace("pypto.Tensor([4, 8], pypto.DT_FP32)", "pypto.Tensor()")
    done = ptc("run", kernel(text), "--shape", "x=3x5,bf16", "--shape", "out=3x5,bf16", "--json")
    assert done.json["inputs"] == {"x": "bf16[3, 5]"}


def test_run_of_text(ptc, kernel):
    text = "kernel double(%x: f32[4, 8]) { %two = constant(value = 2.0, dtype = f32)  %y = mul(%x, %two)  return %y }"
    done = ptc("run", kernel(text, "double.ptir"), "--json")
    assert done.code == 0, done.out + done.err
    assert done.json["results"][0]["name"] == "return0" and done.json["results"][0]["ulp"] == 0


# ---- compile -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_compile_writes_sources_manifest_and_source_map(ptc, kernel, tmp_path, target):
    done = ptc("compile", kernel(), "--target", target, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    folder = tmp_path / "out"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["target"] == target and manifest["name"] == "double"
    files = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    assert {"manifest.json", "source_map.json"} <= set(files) and len(files) >= 3
    assert all(f"  {name}\n" in done.out for name in files)
    assert "7" in re.findall(r'"user_line": (\d+)', (folder / "source_map.json").read_text())


@pytest.mark.parametrize("target", TARGETS)
def test_the_source_map_names_every_line_of_the_user(ptc, kernel, tmp_path, target):
    text = DOUBLE.replace("    out[:] = x * 2.0", "    total = pypto.sum(x, -1, True)\n    rest = x - total\n    out[:] = rest * rest")
    assert text != DOUBLE
    assert ptc("compile", kernel(text), "--target", target, "-o", tmp_path / "out").code == 0
    lines = set(map(int, re.findall(r'"user_line": (\d+)', (tmp_path / "out" / "source_map.json").read_text())))
    assert {7, 9} <= lines, lines


def test_compile_replaces_its_own_folder_and_no_other(ptc, kernel, tmp_path):
    out = tmp_path / "out"
    assert ptc("compile", kernel(), "--target", "llvm-cpu", "-o", out).code == 0
    assert ptc("compile", kernel(), "--target", "ascend-a2", "-o", out).code == 0
    assert not (out / "double.ll").exists()
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    refused = ptc("compile", kernel(), "--target", "llvm-cpu", "-o", other)
    assert refused.code == 2 and (other / "thesis.txt").read_text() == "years of work"
    assert ptc("compile", kernel(), "--target", "llvm-cpu", "-o", other, "--force").code == 0


@pytest.mark.parametrize("target", ["llvm-cpu", "ascend-a2", "tt-wormhole"])
def test_compile_refuses_to_lose_what_somebody_wrote(ptc, kernel, tmp_path, target):
    out = tmp_path / "out"
    write = ("compile", kernel(), "--target", target, "-o", out)
    assert ptc(*write).code == 0
    for file in [*(p for p in out.rglob("*") if p.is_file()), out / "stray.txt"]:
        before = file.read_text() if file.exists() else None
        file.write_text("{}" if before is None else before.replace("double", "single") + " ")
        after = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
        refused = ptc(*write)
        assert refused.code == 2 and refused.err.startswith("error[PT721]: ") and file.name in refused.err, (file, refused)
        assert "--force" in refused.err and after == {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
        assert ptc(*write, "--force").code == 0 and ptc(*write).code == 0, file


def test_compile_where_nothing_can_be_written(ptc, kernel, tmp_path):
    (tmp_path / "file").write_text("a file, and no folder")
    for place in (tmp_path / "file" / "out", "/proc/out"):
        refused = ptc("compile", kernel(), "--target", "llvm-cpu", "-o", place)
        assert refused.code == 2 and f"{place} cannot be written: " in refused.err, refused
        refused = ptc("report", kernel(), "-o", place)
        assert refused.code == 2 and f"{place} cannot be written: " in refused.err, refused


def test_compile_into_a_folder_of_a_folder(ptc, kernel, tmp_path):
    assert ptc("compile", kernel(), "--target", "llvm-cpu", "-o", tmp_path / "a" / "b" / "c").code == 0
    assert sorted(p.name for p in (tmp_path / "a" / "b").iterdir()) == ["c"]


# ---- opt ---------------------------------------------------------------------------------------------------------------------

GRAPH = 'kernel k(%x: bf16[4, 8]) { %y = exp(%x)  return %y }'


def test_opt_without_passes_prints_what_it_read(ptc, kernel):
    first = ptc("opt", kernel(GRAPH, "k.ptir"), "--no-spans")
    again = ptc("opt", kernel(first.out, "again.ptir"), "--no-spans")
    assert first.code == 0, first.err
    assert first.out == again.out and "exp" in first.out


def test_opt_runs_passes_and_says_where_nothing_changed(ptc, kernel):
    done = ptc("opt", kernel(GRAPH, "k.ptir"), "--pass", "legalize", "--pass", "legalize", "--print-after")
    assert done.out.count("cast(") == 2
    assert "// after legalize\n" in done.out and "// after legalize: unchanged\n" in done.out


@pytest.mark.parametrize("target", TARGETS)
def test_opt_ends_in_tile_ir_that_it_reads_again(ptc, kernel, target):
    done = ptc("opt", kernel(GRAPH, "k.ptir"), "--pass", "legalize", "--pass", "sink", "--pass", "place", "--target", target)
    assert done.code == 0, done.err
    assert "program k" in done.out and "tile_kernel" in done.out
    again = ptc("opt", kernel(done.out, "placed.ptir"))
    assert again.code == 0, again.err
    assert again.out == done.out


def test_opt_prints_groups(ptc, kernel):
    done = ptc("opt", kernel(GRAPH, "k.ptir"), "--pass", "legalize", "--pass", "fuse")
    assert "group 0 elementwise [4, 8]" in done.out


@pytest.mark.parametrize("arguments", [("--pass", "legalise"), ("--pass", "fuse", "--pass", "legalize")])
def test_opt_refuses_what_is_no_list_of_passes(ptc, kernel, arguments):
    assert ptc("opt", kernel(GRAPH, "k.ptir"), *arguments).code == 2


# ---- explain -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", catalogue.entries())
def test_explain_prints_every_page(ptc, code):
    done = ptc("explain", code.lower())
    assert done.code == 0 and done.out == catalogue.entries()[code].page()


def test_explain_a_code_as_json(ptc):
    assert ptc("explain", "PT203", "--json").json["entry"]["code"] == "PT203"


@pytest.mark.parametrize("target", TARGETS)
def test_explain_a_kernel(ptc, target):
    done = ptc("explain", EXAMPLES / "softmax.py", "--target", target)
    assert done.code == 0, done.err
    for part in ("types\n", "the operand's dtype (`weights`)", "group 0: row over [x_d0, 1000]", "ended:", "tile ", "chosen: ", "buffers",
                 "reads x; writes out", "emitted lines"):
        assert part in done.out, part
    assert re.search(r"line 16 +weights: f32\[x_d0, 1000\] +exp\(shifted\)", done.out)


def test_explain_a_kernel_as_json(ptc, kernel):
    document = ptc("explain", kernel(), "--json", "--target", "ascend-a2", "--target", "tt-wormhole").json["explanation"]
    assert [t["target"] for t in document["targets"]] == ["ascend-a2", "tt-wormhole"]
    kernel_fact = document["targets"][0]["steps"][0]["kernels"][0]
    assert kernel_fact["bytes"] <= kernel_fact["capacity"]
    assert all(tuple(b["lives"]) == (7, 7) for b in kernel_fact["buffers"])
    assert {line["user_line"] for line in document["source_map"]} == {7}


def test_explain_says_who_asked_for_a_tile(ptc, kernel):
    text = DOUBLE.replace("    out[:]", "    pypto.set_vec_tile_shapes(2, 8)\n    out[:]")
    done = ptc("explain", kernel(text), "--target", "ascend-a2")
    assert "asked for: set_vec_tile_shapes(2, 8) at line 8" in done.out


def test_explain_lists_options_without_effect_and_specialisations(ptc, kernel):
    text = DOUBLE.replace("@pypto.jit", '@pypto.jit(runtime_options={"run_mode": pypto.RunMode.SIM}, promotion="tf-safe")')
    done = ptc("explain", kernel(text))
    assert "accepted without effect here\n  runtime_options.run_mode = " in done.out
    assert "promotion = tf-safe" in done.out and "specialised for x f32[4, 8], out f32[4, 8]: first call" in done.out


# ---- tables ----------------------------------------------------------------------------------------------------------------------


def test_targets(ptc):
    listed = ptc("targets")
    assert all(name in listed.out for name in TARGETS)
    assert [t["name"] for t in ptc("targets", "--json").json["targets"]] == list(TARGETS)
    assert re.search(r"ascend-a2 +ascend +ascend-a2-emu +write sources", listed.out) and re.search(
        r"interpreter +- +interpreter +run", listed.out
    )
    one = ptc("targets", "ascend-a2")
    assert "native operations" in one.out and "limits" in one.out
    assert ptc("targets", "ascend-a2", "--json").json["target"]["native"]["add"]


def test_ops(ptc):
    listed = ptc("ops")
    assert all(re.search(rf"^{re.escape(name)} ", listed.out, re.M) for name in PUBLIC)
    assert {o["name"] for o in ptc("ops", "--json").json["operations"]} == PUBLIC
    assert {o["family"] for o in ptc("ops", "--family", "reduce", "--json").json["operations"]} == {"reduce"}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_ops_shows_one(ptc, name):
    done = ptc("ops", name)
    assert done.code == 0 and done.out.startswith(f"{'pypto.' * (name in PUBLIC)}{name}(")
    assert (public_doc(name) if name in PUBLIC else REGISTRY[name].doc).split("\n")[0] in done.out


def test_ops_shows_family_and_dtypes(ptc):
    shown = ptc("ops", "gelu").out
    assert "family: elementwise\n" in shown and "dtypes: f16, bf16, f32, f64\n" in shown and "dtypes: all\n" in ptc("ops", "arange").out
    assert ptc("ops", "gelu", "--json").json["operation"]["dtypes"] == ["f16", "bf16", "f32", "f64"]


def test_names_under_run_it_as_run(ptc):
    for row in ptc("targets", "--json").json["targets"]:
        assert frontend_targets.runs(row["run_as"]) and (row["name"] == row["run_as"] or not frontend_targets.runs(row["name"]))


def test_opt_lists_the_passes_there_are(ptc):
    listed = " ".join(ptc("opt", "--help").out.split())
    assert f"are {', '.join(pipeline.GRAPH_PASSES)}; one of fuse, tile, place may end" in listed
    assert tuple(ENDINGS) == pipeline.STAGES[len(pipeline.GRAPH_PASSES):]


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_by_the_path_of_its_file(ptc, kernel, target, tmp_path):
    path = tmp_path / "mine.toml"
    text = (resources.files("pypto_dsl.compiler.targets") / f"{target}.toml").read_text(encoding="utf-8")
    path.write_text(text.replace(f'name = "{target}"', 'name = "mine"'))
    assert ptc("compile", kernel(), "--target", path, "-o", "out").code == 0
    assert ptc("explain", kernel(), "--target", path).code == 0 and ptc("targets", path).out.startswith("mine: ")
    if targets.load(target).family == "llvm":
        assert ptc("run", kernel(), "--target", path, "--no-time").code == 0
        return
    refused = ptc("run", kernel(), "--target", path)
    assert refused.code == 1 and f"run it in the emulator: {path}-emu" in refused.err


def test_a_wrong_target_file_is_an_error_of_its_own(ptc, kernel, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\ntitle = "Mine"\nfamily = "llvm"\n[tile]\nflatten = 3\n')
    for command in (("run", kernel()), ("compile", kernel(), "-o", "out"), ("explain", kernel())):
        done = ptc(*command, "--target", path)
        assert done.code == 1 and "error[PT504]: mine.toml: [tile] flatten is 3, and must be true or false" in done.err


def test_promote(ptc):
    assert "f16 and bf16 under `tf-safe`: refused" in ptc("promote", "f16", "bf16", "--rules", "tf-safe").out
    assert ptc("promote", "f16", "bf16", "--json").json["promotion"]["result"] == "f32"


def test_doctor(ptc):
    done = ptc("doctor")
    assert done.code == 0 and "C++ compiler" in done.out and all(name in done.out for name in TARGETS)
    document = ptc("doctor", "--json").json
    assert document["cpu"]["level"] in ("avx512", "avx2", "baseline", "neon") and document["cpu"]["processors"] >= 1
    assert document["versions"]["numpy"] == np.__version__ and set(document["targets"]) == {"interpreter", *TARGETS}


def test_cache(ptc, tmp_path):
    assert "0 entries" in ptc("cache", "ls").out
    entry = tmp_path / "cache" / "native" / "k-0123"
    entry.mkdir(parents=True)
    (entry / "k.so").write_bytes(b"0" * 2048)
    listed = ptc("cache", "ls", "--json").json["entries"]
    assert [(e["kind"], e["name"], e["bytes"]) for e in listed] == [("native", "k-0123", 2048)]
    assert ptc("cache", "clear", "--older-than", 1, "--json").json["removed"] == 0 and entry.exists()
    assert ptc("cache", "clear", "--kind", "objects", "--json").json["removed"] == 0 and entry.exists()
    assert ptc("cache", "clear", "--json").json == {"schema": 1, "ok": True, "removed": 1, "bytes": 2048}
    assert not entry.exists()


def test_cache_why(ptc, kernel, tmp_path):
    path = kernel()
    before = ptc("cache", "why", path, "--json").json
    assert not before["found"] and before["form"] == "x f32[4, 8], out f32[4, 8]"
    assert not (tmp_path / "cache" / "objects").exists(), "asking writes nothing"
    assert ptc("run", path, "--no-time").code == 0
    after = ptc("cache", "why", path, "--json").json
    assert after["found"] and after["entry"] == before["entry"]
    assert "found" in ptc("cache", "why", path).out
    listed = ptc("cache", "ls", "--json").json["entries"]
    assert f"objects/{after['entry'].split('/')[-1]}" in [f"{e['kind']}/{e['name']}" for e in listed]


# ---- help ------------------------------------------------------------------------------------------------------------------------


def test_the_list_of_commands_says_what_the_commands_say(ptc):
    assert set(SUMMARIES) == set(COMMANDS)
    for name, summary in SUMMARIES.items():
        help_text = " ".join(ptc(name, "--help").out.split())
        assert summary in help_text, f"`ptc {name} --help` begins otherwise than SUMMARIES says"


def test_help_names_exit_codes_and_environment(ptc):
    text = ptc("--help").out
    assert all(word in text for word in ("Exit codes", "70", "NO_COLOR", "PTC_CACHE_DIR", "PTC_CXX"))
    assert ptc("-h").out == text
    assert re.fullmatch(r"ptc \S+\n", ptc("--version").out)
