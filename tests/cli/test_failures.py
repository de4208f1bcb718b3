"""Failures: exit codes, what is printed where, colours, JSON, reproducers, and nothing left half-written."""
from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from cli_files import DOUBLE, EXAMPLES

from pypto_dsl.cli import compile as compile_command
from pypto_dsl.cli import run, terminal
from pypto_dsl.cli.root import COMMANDS
from pypto_dsl.compiler.errors import CompilerBug, error
from pypto_dsl.frontend import targets

LOST = DOUBLE.replace("out[:] = x * 2.0", "out = x * 2.0")


def test_a_kernel_error_is_1_with_code_caret_cause_and_fix(ptc, kernel):
    path = kernel(LOST)
    done = ptc("run", path)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"""\
error[PT104]: `out = ...` binds a new local name; the caller's `out` is not written
  --> {path}:7:5
  |
7 |     out = x * 2.0
  |     ^^^ this is a Python name
   = help: write into the tensor: out[:] = ...
   = more: ptc explain PT104
"""


def test_a_kernel_error_as_json(ptc, kernel):
    done = ptc("run", kernel(LOST), "--json")
    assert (done.code, done.err) == (1, "")
    (record,) = done.json["errors"]
    assert set(record) == {"code", "severity", "message", "primary", "others", "notes", "help", "fix", "fields"}
    assert record["code"] == "PT104" and record["primary"]["line"] == 7 and record["fix"] == "out[:]"
    assert done.json["ok"] is False and done.json["exit"] == 1


WRONG = """
run
run nowhere.py
run KERNEL --target cuda
run KERNEL --shape x
run KERNEL --shape x=4x8,f33
run KERNEL --shape z=4x8
run KERNEL:triple
compile KERNEL --target llvm-cpu
compile KERNEL -o x
explain PT999
explain KERNEL --target interpreter-emu
ops expp
ops --family nonsense
promote
promote f16 --rules numpy
promote half
targets cuda
opt nowhere.ptir
cache clear --older-than -1
fly
"""


@pytest.mark.parametrize("arguments", WRONG.strip().splitlines())
def test_a_wrong_command_line_is_2_and_says_what_is_right(ptc, kernel, arguments):
    path = str(kernel())
    done = ptc(*(a.replace("KERNEL", path) for a in arguments.split()))
    assert done.code == 2 and "Traceback" not in done.err and ("Error: " in done.err or "error[" in done.err)


def test_a_near_miss_is_named(ptc, kernel):
    assert "did you mean ascend-a2?" in ptc("compile", kernel(), "--target", "ascend-a3", "-o", "x").err
    assert "did you mean bf16?" in ptc("run", kernel(), "--shape", "x=4x8,bf61").err
    assert "did you mean legalize?" in ptc("opt", kernel("kernel k() { }", "k.ptir"), "--pass", "legalise").err


@pytest.mark.parametrize("text, message", [
    ("import pypto_dsl", "defines no kernel"),
    (DOUBLE + DOUBLE.split("\n\n\n")[1].replace("double", "treble"), "has several kernels"),
])
def test_a_file_without_one_kernel(ptc, kernel, text, message):
    done = ptc("run", kernel(text, "several.py"))
    assert done.code == 2 and message in done.err


def test_an_open_shape_is_asked_for(ptc, kernel):
    for shape in ("[pypto.STATIC, 8]", "[...]"):
        done = ptc("run", kernel(DOUBLE.replace("[4, 8]", shape)))
        assert done.code == 2 and "--shape x=64x128" in done.err


def test_wrong_numbers_are_3(ptc, kernel, monkeypatch):
    real = run.computed

    def off(source, given, target):
        graph, results = real(source, given, target)
        results["out"][0, 0] += 1.0
        return graph, results

    monkeypatch.setattr(run, "computed", off)
    done = ptc("run", kernel())
    assert done.code == 3 and "is wrong" in done.err and "of the largest magnitude" in done.out
    assert ptc("run", kernel(), "--json").json["exit"] == 3


def test_a_wrong_nan_is_3(ptc, kernel, monkeypatch):
    real = run.computed
    monkeypatch.setattr(run, "computed", lambda *a: (real(*a)[0], {"out": real(*a)[1]["out"] * np.float32("nan")}))
    done = ptc("run", kernel())
    assert done.code == 3 and "NaN or infinite" in done.out


def test_a_missing_compiler_is_4(ptc, kernel, monkeypatch):
    monkeypatch.setenv("PTC_CXX", "/nowhere/c++")
    done = ptc("run", kernel(), "--target", "ascend-a2-emu")
    assert done.code == 4 and "error[PT901]" in done.err and "PTC_CXX" in done.err


def raising(failure: BaseException):
    def broken(*_):
        raise failure

    return broken


# A bug that a pass reports itself, and one that shows as an exception out of our own code.
BUGS = {"fuse": ("files", raising(CompilerBug("fuse", "two groups own %7"))), "ptc": ("_lower", lambda *_: None)}


@pytest.mark.parametrize("where", BUGS)
def test_our_bug_is_70_and_leaves_a_reproducer(ptc, kernel, monkeypatch, tmp_path, where):
    monkeypatch.setattr(targets, *BUGS[where])
    monkeypatch.setattr(sys, "argv", ["ptc", "compile", str(tmp_path / "double.py"), "--target", "llvm-cpu", "-o", "out"])
    path = kernel()
    done = ptc("compile", path, "--target", "llvm-cpu", "-o", tmp_path / "out")
    assert done.code == 70 and f"(in `{where}`)" in done.err and "not in your kernel" in done.err
    (folder,) = (tmp_path / "cache" / "reproducers").iterdir()
    assert str(folder) in done.err
    assert {p.name for p in folder.iterdir()} == {"command.txt", "traceback.txt", "versions.json", "where.txt", path.name}
    assert (folder / path.name).read_text() == DOUBLE
    assert f"ptc compile {path.name} --target llvm-cpu" in (folder / "command.txt").read_text()
    assert not (tmp_path / "out").exists()


def test_a_bug_as_json(ptc, kernel, monkeypatch):
    monkeypatch.setattr(targets, "files", raising(CompilerBug("tile", "odd")))
    done = ptc("compile", kernel(), "--target", "llvm-cpu", "-o", "out", "--json")
    assert done.code == 70 and done.json["bug"]["pass"] == "tile" and Path(done.json["bug"]["reproducer"]).is_dir()


def test_an_exception_of_the_users_code_is_theirs(ptc, kernel):
    done = ptc("run", kernel("import no_such_module_anywhere\n"))
    assert done.code == 1 and "ModuleNotFoundError" in done.err and "bug" not in done.err
    assert "pypto_dsl/cli" not in done.err and 'double.py", line 1' in done.err
    done = ptc("run", kernel(DOUBLE.replace("out[:]", "1 / 0\n    out[:]")))
    assert done.code == 1 and "ZeroDivisionError" in done.err and "line 7" in done.err
    assert ptc("run", kernel("1 / 0\n"), "--json").json["exception"].startswith("ZeroDivisionError")


# ---- nothing half-written --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [error("PT502", "no"), CompilerBug("place", "no"), OSError("disk full")])
def test_a_failed_compile_leaves_what_was_there(ptc, kernel, tmp_path, monkeypatch, failure):
    out = tmp_path / "out"
    assert ptc("compile", kernel(), "--target", "llvm-cpu", "-o", out).code == 0
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    seen = sorted(p.name for p in tmp_path.iterdir())

    monkeypatch.setattr(targets, "files", raising(failure))
    assert ptc("compile", kernel(), "--target", "ascend-a2", "-o", out).code in (1, 70)
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before
    assert {p.name for p in tmp_path.iterdir()} - {"cache"} == set(seen) - {"cache"}


def test_a_write_that_fails_midway_leaves_nothing(tmp_path, monkeypatch):
    calls = []
    real = Path.write_text

    def failing(self, *args, **kwargs):
        calls.append(self)
        if len(calls) == 2:
            raise OSError("disk full")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", failing)
    with pytest.raises(OSError, match="disk full"):
        compile_command.written_whole(tmp_path / "out", {"a.cpp": "a", "b.cpp": "b"})
    assert list(tmp_path.iterdir()) == []


# ---- colours -----------------------------------------------------------------------------------------------------------------


def test_colours_only_on_terminals_and_never_with_no_color(ptc, kernel, monkeypatch):
    path = kernel(LOST)
    assert "\x1b[" not in ptc("run", path).err
    assert "\x1b[31m" in ptc("run", path, color=True).err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in ptc("run", path, color=True).err


def test_progress_after_a_second_on_terminals(monkeypatch, capsys):
    """A line on stderr when something takes long, none when it does not, and none in files and pipes."""
    for terminal_, seconds, seen in ((True, 0.2, "compiling k ...\n"), (True, 0.0, ""), (False, 0.2, "")):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal_=terminal_: terminal_, raising=False)
        with terminal.progress("compiling k", after=0.05):
            threading.Event().wait(seconds)
        threading.Event().wait(0.1)
        assert capsys.readouterr() == ("", seen)
    assert inspect.signature(terminal.progress).parameters["after"].default == 1.0


OPEN = """\
import pypto_dsl as pypto


@pypto.jit
def rows(x: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32), scale: float = 2.0):
    return x * scale
"""


def test_open_axes_and_defaults_need_no_options(ptc, kernel):
    """A first try without any option works: DYNAMIC axes are 100, or stay open; parameters with a default have it."""
    path = kernel(OPEN, "rows.py")
    ran = ptc("run", path, "--no-time")
    assert ran.code == 0 and "rows(x f32[100, 64], scale 2.0)" in ran.out, ran.err
    assert "x_d0" in ptc("explain", path).out
    assert ptc("compile", path, "--target", "ascend-a2", "-o", "out").code == 0
    assert "rows(x f32[*, 64], scale: " in ptc("cache", "why", path).out
    assert "rows on llvm-cpu" in ptc("check", path, "--no-values").out


@pytest.mark.parametrize(("line", "words"), [
    (["rn"], "did you mean run?"), (["explain", "PT2O3"], "near it are"), (["explain", "PT2"], "near it are"),
    (["opt", "rows.py"], "is Python, and passes run on text forms"), (["nothing_like_it"], "No such command")])
def test_what_was_meant_is_said(ptc, tmp_path, line, words):
    (tmp_path / "work" / "rows.py").write_text(OPEN)
    done = ptc(*line)
    assert done.code == 2 and words in done.err


GROUPS = ("cache",)


@pytest.mark.parametrize("line", [[c] for c in COMMANDS] + [["cache", c] for c in ("ls", "clear", "why")], ids=" ".join)
def test_help_reads_like_a_manual(ptc, line):
    """A sentence that says what the command does, an example to copy, and words for every option and argument."""
    text = ptc(*line, "--help").out
    assert text.startswith(f"Usage: ptc {' '.join(line)} ")
    first = text.split("\n\n")[1].strip()
    assert first[0].isupper() and first.endswith(".") and len(first.split()) >= 3
    example = re.search(rf"^ +(eval \"\$\()?ptc {' '.join(line)}\b", text.split("\n\n", 1)[1], re.M)
    assert tuple(line) == GROUPS or example, text
    options = text.split("Options:\n")[1].split("\n\n")[0]
    assert all(re.search(r"  \S", entry.strip()) for entry in re.split(r"\n(?=  -)", options.rstrip())), options
    assert "TEXT" not in text


def test_the_command_of_an_installation(tmp_path):
    """The entry point itself, in a process of its own."""
    script = "import sys; from pypto_dsl.cli import main; sys.argv[0] = 'ptc'; main()"
    environment = {**os.environ, "PTC_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(EXAMPLES.parent)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, env=environment)

    done = run("run", str(EXAMPLES / "add.py"), "--no-time")
    assert done.returncode == 0 and "largest error" in done.stdout, done.stderr
    assert run("explain", "PT999").returncode == 2
