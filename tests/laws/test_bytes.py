"""Same input, same bytes: what is emitted depends on neither the process, the hash seed nor the folder (law 1)."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from tree import ROOT

from pypto_dsl.compiler import targets

# Prints one line per example, target and file: its digest. Runs in a process of its own.
SCRIPT = """
import hashlib, importlib.util, sys
from pathlib import Path
import numpy as np
from pypto_dsl.driver import Kernel
from pypto_dsl.cli.compile import with_records
from pypto_dsl.compiler import targets as registry
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.frontend import targets
for path in sorted(Path(sys.argv[1]).glob("*.py")):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = getattr(module, path.stem)
    graph = kernel.specialise(*module.inputs(np.random.default_rng(0))).graph
    for target in registry.names():
        try:
            files = with_records(targets.files(target, graph), graph, target)
        except KernelError as refused:
            files = {"refused": refused.code}
        for name, text in files.items():
            print(path.name, target, name, hashlib.sha256(text.encode()).hexdigest())
            assert str(path.parent) not in text, f"{target} {name} names a folder"
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The output of two processes with different hash seeds, on copies of the examples in different folders."""
    outputs = []
    for seed in ("0", "1"):
        folder = tmp_path_factory.mktemp(f"copy{seed}") / ("a" if seed == "0" else "a_longer_name")
        shutil.copytree(ROOT / "examples", folder)
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT, str(folder)], capture_output=True, text=True, env=environment,
                              cwd=folder)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    return outputs


def test_bytes_do_not_depend_on_process_seed_or_folder(runs):
    first, second = runs
    assert first == second


def test_every_example_is_emitted_for_every_target(runs):
    seen = {tuple(line.split()[:2]) for line in runs[0]}
    assert seen == {(p.name, t) for p in (ROOT / "examples").glob("*.py") for t in targets.names()}
    refused = [line for line in runs[0] if " refused " in line]
    assert not refused, refused


