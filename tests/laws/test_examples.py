"""Every example runs through `ptc run` on the CPU, the interpreter and in both emulators, and is explained for every target."""
from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from tree import ROOT

from pypto_dsl.cli import main
from pypto_dsl.compiler import targets
from pypto_dsl.frontend.targets import runnable

KERNELS = sorted((ROOT / "examples").glob("*.py"))
# One chip of each family: the others of a family have tests of their own.
TARGETS = [t for t in runnable() if t not in ("tt-blackhole-emu", "ascend-950-emu")]


def test_the_first_example_as_a_script(tmp_path):
    """In a process and a folder of its own; the others are run by tests/frontend/test_examples.py."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error::UserWarning", str(ROOT / "examples" / "softmax.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0 and "largest error" in done.stdout, done.stderr


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_through_ptc(path, target):
    done = CliRunner().invoke(main, ["run", str(path), "--target", target, "--no-time", "--json"], prog_name="ptc")
    assert done.exit_code == 0, done.output
    results = json.loads(done.stdout)["results"]
    assert results and all(r["ok"] for r in results)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.ptir")), ids=lambda p: p.stem)
def test_text_kernels_through_ptc(path):
    done = CliRunner().invoke(main, ["run", str(path), "--no-time", "--json"], prog_name="ptc")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")) + sorted((ROOT / "examples" / "ptir").glob("*.ptir")),
                         ids=lambda p: p.name)
def test_explained_for_every_target(path):
    options = [word for name in targets.names() for word in ("--target", name)]
    done = CliRunner().invoke(main, ["explain", str(path), "--json", *options], prog_name="ptc")
    assert done.exit_code == 0, done.output
    explanation = json.loads(done.stdout)["explanation"]
    assert [t["target"] for t in explanation["targets"]] == list(targets.names())
    kernels = [k for t in explanation["targets"] for step in t["steps"] for k in step["kernels"]]
    assert kernels and all(k["tile"] and k["why"] and k["buffers"] for k in kernels)
    assert all(None in (k["capacity"], k["bytes"]) or k["bytes"] <= k["capacity"] for k in kernels)
