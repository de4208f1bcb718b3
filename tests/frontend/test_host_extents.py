"""Emitted host programs ask for the extents that something reads, and check those that must agree."""
from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.codegen.extents import stated
from pypto_dsl.compiler import targets as registry
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.frontend import targets
from pypto_dsl.runtime.emulator.ascendc.host import run_host

DEVICES = [name for name in registry.names() if registry.load(name).family in targets.DEVICES]
# Of `K == M` and `2*N == M` nothing follows from the shapes of the tensors: M, N and K are given, and checked.
THREE = """kernel three(%x: f32[M, 64], %y: f32[N, 64], %z: f32[K, 64], %out: f32[M, 64], %half: f32[N, 64]) {
  symbol M: dim of x axis 0
  symbol N: dim of y axis 0
  symbol K: dim of z axis 0
  symbol P: dim of out axis 0
  symbol Q: dim of half axis 0
  check 2*N == M for "a"
  check K == M for "b"
  check P == M for "out"
  check Q == P for "half"
  check Q % 7 == N % 7 for "c"
  %a = exp(%x)
  %b = exp(%y)
  write out <- %a
  write half <- %b
}"""


@pypto.jit
def doubled(x: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32), out: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32)):
    out[:] = x + x


def emitted(target: str, graph: Graph) -> tuple[dict[str, str], dict[str, Any]]:
    files = targets.files(target, graph)
    return files, json.loads(files["manifest.json"])


@pytest.mark.parametrize("target", DEVICES)
def test_an_output_of_the_inputs_shape_needs_no_extent_of_its_own(target: str) -> None:
    graph = doubled.specialise(np.zeros((33, 64), np.float32), np.zeros((33, 64), np.float32)).graph
    files, manifest = emitted(target, graph)
    assert graph.checks and [s["name"] for s in manifest["scalars"]] == ["x_d0"] and manifest["checks"] == []
    assert not any(re.search(r"\bout_d0\b", text) for text in files.values())


@pytest.mark.parametrize("target", DEVICES)
def test_extents_that_only_checks_read_are_replaced_by_what_they_equal(target: str) -> None:
    program = stated(lower(read_graph(THREE, "three.ptir"), target))
    assert [s.name for s in program.scalars] == ["M", "N", "K"]
    assert [(str(a), str(b)) for a, b, _ in program.checks] == [("N*2", "M"), ("K", "M"), ("M % 7", "N % 7")]


def test_the_ascend_host_program_refuses_extents_that_disagree(tmp_path: Path) -> None:
    files, manifest = emitted("ascend-a2", read_graph(THREE, "three.ptir"))
    for extents, words in (((14, 9, 14), "N*2 is 18, and must be M, which is 14"), ((14, 7, 15), "K is 15, and must be M, which is 14"),
                           ((16, 8, 16), "M % 7 is 2, and must be N % 7, which is 1")):
        done = run_host(manifest, files, tmp_path, extents)
        assert done.returncode == 1 and done.stderr.strip() == words
    agreeing = run_host(manifest, files, tmp_path, (14, 7, 14))
    assert agreeing.returncode == 1 and "x.bin cannot be read" in agreeing.stderr


def test_the_ttnn_host_program_refuses_extents_that_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    files, _ = emitted("tt-wormhole", read_graph(THREE, "three.ptir"))
    monkeypatch.setitem(sys.modules, "ttnn", ModuleType("ttnn"))
    made: dict[str, Any] = {"__file__": "host.py"}
    exec(files["host.py"], made)
    for (m, n, k), words in (((14, 9, 14), r"N\*2 is 18, and must be M, which is 14"), ((14, 7, 15), "K is 15, and must be M"),
                             ((16, 8, 16), "M % 7 is 2, and must be N % 7, which is 1")):
        tensors = [SimpleNamespace(shape=(rows, 64)) for rows in (m, n, k, m, n)]
        with pytest.raises(ValueError, match=words):
            made["three"](None, *tensors)
