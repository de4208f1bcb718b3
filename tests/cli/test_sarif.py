"""`--sarif` and `ptc completion`: what other programs read of ptc."""
from __future__ import annotations

import json
import shutil
import subprocess

import pytest
import sarif_structure
from cli_files import DOUBLE

from pypto_dsl.cli import sarif
from pypto_dsl.cli.root import COMMANDS
from pypto_dsl.compiler import catalogue
from pypto_dsl.compiler.errors import CompilerBug, Diagnostic, Label
from pypto_dsl.compiler.span import Span
from pypto_dsl.frontend import targets

LOST = DOUBLE.replace("out[:] = x * 2.0", "out = x * 2.0")
LINES = {"run": ["run", "KERNEL"], "check": ["check", "KERNEL", "--no-values"],
         "compile": ["compile", "KERNEL", "--target", "ascend-a2", "-o", "out"]}


def log(done):
    document = json.loads(done.out)
    assert document["version"] == "2.1.0" and document["$schema"].endswith("sarif-2.1.0.json")
    assert list(sarif_structure.problems(document)) == []
    (run,) = document["runs"]
    assert run["tool"]["driver"]["name"] == "ptc" and done.err == ""
    return run


def command(name, path):
    return [str(path) if word == "KERNEL" else word for word in LINES[name]] + ["--sarif"]


@pytest.mark.parametrize("name", LINES)
def test_an_error_with_its_rule_place_and_fix(ptc, kernel, name):
    path = kernel(LOST)
    done = ptc(*command(name, path))
    run = log(done)
    (result,), (rule,) = run["results"], run["tool"]["driver"]["rules"]
    assert done.code == 1 and result["ruleId"] == rule["id"] == "PT104" and result["level"] == "error" and result["ruleIndex"] == 0
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == path.as_uri()
    assert place["region"] == {"startLine": 7, "startColumn": 5, "endLine": 7, "endColumn": 8}
    (change,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    assert change["insertedContent"]["text"] == "out[:]" and change["deletedRegion"] == place["region"]
    assert rule["shortDescription"]["text"] and rule["help"]["text"] and "write into the tensor" in result["message"]["text"]


@pytest.mark.parametrize("code", catalogue.entries())
def test_every_code_makes_a_log_of_the_standards_structure(code):
    """With every part that a record may have: places in files of any name, labels, notes, a fix."""
    entry = catalogue.entries()[code]
    spans = (Span("a folder/é.py", 3, 5, 3, 9), Span("/elsewhere/k.py", 1, 1), Span("k.py", 2, 4, 7, 1))
    places = [Label(span, label) for span, label in zip(spans, ("here", "", "and here"), strict=True)]
    for severity in ("error", "warning"):
        record = Diagnostic(code, entry.title, places[0], tuple(places[1:]), ("a note",), entry.advice, "x[:]", severity)
        document = sarif.document([record, Diagnostic(code, "no place")], [sarif.plain("an exception", "k.py", 3), sarif.plain("none")])
        assert list(sarif_structure.problems(document)) == []


def test_the_structure_refuses_what_the_standard_does_not_have():
    good = sarif.document([Diagnostic("PT203", "m", Label(Span("k.py", 3, 5, 3, 9)))])
    assert list(sarif_structure.problems(good)) == []
    for path, value in ((("version",), "2.0"), (("runs", 0, "tool"), {}), (("runs", 0, "results", 0, "level"), "bad"),
                        (("runs", 0, "results", 0, "ruleIndex"), 3), (("runs", 0, "results", 0, "place"), 1),
                        (("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine"), 0)):
        wrong = json.loads(json.dumps(good))
        at = wrong
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        assert list(sarif_structure.problems(wrong)), path


@pytest.mark.parametrize("name", LINES)
def test_nothing_wrong_is_a_log_without_results(ptc, kernel, name):
    done = ptc(*command(name, kernel()))
    assert done.code == 0 and log(done)["results"] == []


def test_files_below_the_working_folder_are_relative(ptc, tmp_path):
    (tmp_path / "work" / "double.py").write_text(LOST)
    (result,) = log(ptc("run", "double.py", "--sarif"))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "double.py"


def test_wrong_numbers_stand_at_the_kernel(ptc, kernel):
    path = kernel(DOUBLE + "\n\ndef reference(x, out):\n    out[...] = x\n")
    done = ptc("check", path, "--sarif", "--no-values")
    (result,) = log(done)["results"]
    assert done.code == 3 and "expected" in result["message"]["text"] and "ruleId" not in result
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 5


def test_a_users_exception_and_our_bug(ptc, kernel, monkeypatch):
    done = ptc("run", kernel(DOUBLE.replace("@pypto.jit", "raise ValueError('mine')\n@pypto.jit")), "--sarif")
    (result,) = log(done)["results"]
    assert done.code == 1 and result["message"]["text"] == "ValueError: mine"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 5

    def broken(name, graph):
        raise CompilerBug("fuse", "ours")

    monkeypatch.setattr(targets, "files", broken)
    done = ptc(*command("compile", kernel()))
    assert done.code == 70 and "ours" in log(done)["results"][0]["message"]["text"]


# ---- completion --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(ptc, shell):
    done = ptc("completion", shell)
    assert done.code == 0 and done.err == "" and "_PTC_COMPLETE" in done.out and "ptc" in done.out
    program = shutil.which(shell)
    if program is not None:
        assert subprocess.run([program, "-n"], input=done.out, text=True, capture_output=True).stderr == ""


def test_completion_knows_every_command(ptc, monkeypatch):
    monkeypatch.setenv("_PTC_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "ptc ")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert {line.partition(",")[2] for line in ptc().out.split()} == set(COMMANDS)


def test_completion_of_an_unknown_shell(ptc):
    assert ptc("completion", "tcsh").code == 2
