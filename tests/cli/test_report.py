"""`ptc report`: what the archive holds, that it repeats the run, and whose folders are not in it."""
from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from cli_files import DOUBLE, EXAMPLES

from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.compiler.tile_ir.reader import read_program
from pypto_dsl.frontend import targets

ROOT = EXAMPLES.parent


def unpacked(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name.partition("/")[2]: archive.read(name).decode() for name in archive.namelist()}


def test_report_holds_kernel_shapes_versions_texts_and_sources(ptc, kernel):
    path = kernel()
    done = ptc("report", path, "--target", "llvm-cpu", "--target", "tt-wormhole-emu", "-o", "double.zip")
    assert done.code == 0, done.err
    files = unpacked("double.zip")
    assert set(files) >= {"double.py", "arguments.json", "versions.json", "doctor.json", "graph.ptir", "reproduce.sh",
                          "llvm-cpu/double.tile", "tt-wormhole/double.tile"}
    assert files["double.py"] == DOUBLE and "errors.txt" not in files
    assert json.loads(files["arguments.json"])["x"] == {"dtype": "f32", "shape": [4, 8], "strides": [32, 4]}
    assert json.loads(files["versions.json"])["numpy"] and "llvm-cpu" in json.loads(files["doctor.json"])["targets"]
    assert read_graph(files["graph.ptir"], "graph.ptir").name == "double"
    assert read_program(files["llvm-cpu/double.tile"], "double.tile").name == "double"
    for target in ("llvm-cpu", "tt-wormhole"):
        assert [name for name in files if name.startswith(f"{target}/sources/")]
    assert all(name in done.out for name in files)


def test_one_command_repeats_the_run(ptc, kernel, tmp_path):
    path = kernel(DOUBLE.replace("[4, 8]", "[pypto.DYNAMIC, 8]"))
    assert ptc("report", path, "--shape", "x=5x8", "--shape", "out=5x8,f32", "--seed", "7", "-o", "d.zip").code == 0
    with zipfile.ZipFile("d.zip") as archive:
        archive.extractall(tmp_path / "other")
    command = (tmp_path / "other" / "d" / "reproduce.sh").read_text().splitlines()[-1]
    assert command == "ptc run double.py:double --target llvm-cpu --seed 7 --shape=x=5x8 --shape=out=5x8,f32"
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from pypto_dsl.cli import main; main({command.split()[1:]!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "other" / "d", capture_output=True, text=True)
    assert done.returncode == 0 and "f32[5, 8]" in done.stdout, done.stderr


def test_modules_beside_the_kernel_are_in_it(ptc, kernel, tmp_path):
    (tmp_path / "beside_it.py").write_text("FACTOR = 2.0\n")
    path = kernel(DOUBLE.replace("import numpy", "from beside_it import FACTOR\nimport numpy").replace("2.0", "FACTOR"))
    assert ptc("report", path, "-o", "r.zip").code == 0
    assert unpacked("r.zip")["beside_it.py"] == "FACTOR = 2.0\n"


@pytest.mark.parametrize("text", [
    DOUBLE, DOUBLE.replace("out[:] = x * 2.0", "out = x * 2.0"), DOUBLE.replace("@pypto.jit", "raise ValueError(__file__)\n@pypto.jit"),
    DOUBLE + "\n# see HOME/notes\n",
])
def test_nothing_of_the_home_folder_is_in_it(ptc, tmp_path, monkeypatch, text):
    home = tmp_path / "people" / "somebody"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PTC_CACHE_DIR", str(home / ".cache"))
    path = home / "project" / "double.py"
    path.write_text(text.replace("HOME", str(home)))
    assert ptc("report", path, "-o", "r.zip").code == 0
    files = unpacked("r.zip")
    assert not [name for name, content in files.items() if str(home) in content or str(home) in name]
    assert json.loads(files["doctor.json"])["cache"]["folder"] == "~/.cache"


def test_errors_are_part_of_the_report(ptc, kernel):
    done = ptc("report", kernel(DOUBLE.replace("out[:] = x * 2.0", "out = x * 2.0")), "-o", "r.zip", "--json")
    assert done.code == 0 and done.json["errors"]
    files = unpacked("r.zip")
    assert "error[PT104]" in files["errors.txt"] and "double.py:7:5" in files["errors.txt"] and "graph.ptir" not in files


def test_our_own_mistakes_are_part_of_it_too(ptc, kernel, monkeypatch):
    def broken(name, graph):
        raise RuntimeError("an emitter that fails")

    monkeypatch.setattr(targets, "files", broken)
    assert ptc("report", kernel(), "-o", "r.zip").code == 0
    assert "an emitter that fails" in unpacked("r.zip")["errors.txt"]


def test_the_same_report_has_the_same_bytes_and_replaces_nothing(ptc, kernel):
    path = kernel()
    assert ptc("report", path, "-o", "r.zip").code == 0
    first = Path("r.zip").read_bytes()
    done = ptc("report", path, "-o", "r.zip")
    assert done.code == 2 and "--force" in done.err
    assert ptc("report", path, "-o", "r.zip", "--force").code == 0 and Path("r.zip").read_bytes() == first


def test_text_kernels(ptc):
    assert ptc("report", EXAMPLES / "ptir" / "softmax.ptir", "-o", "r.zip").code == 0
    files = unpacked("r.zip")
    assert "llvm-cpu/softmax.tile" in files and files["reproduce.sh"].splitlines()[-1] == "ptc run softmax.ptir --target llvm-cpu --seed 0"


@pytest.mark.parametrize("arguments", [["nowhere.py", "-o", "r.zip"], ["KERNEL"], ["KERNEL", "-o", "r.zip", "--target", "cuda"]])
def test_a_wrong_command_line_is_2(ptc, kernel, arguments):
    path = str(kernel())
    assert ptc("report", *(path if a == "KERNEL" else a for a in arguments)).code == 2
    assert not Path("r.zip").exists()
