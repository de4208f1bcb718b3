"""Emission depends on the printed Tile IR alone: read back from text, and in other processes, it gives the same bytes."""
from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pypto_dsl.codegen.ascendc import emit
from pypto_dsl.compiler.targets import load
from pypto_dsl.compiler.tile_ir.reader import read_program
from pypto_dsl.compiler.tile_ir.text import print_program
from tests.ascendc.kernels import KERNELS, TARGET, emitted, placed

DIGESTS = """
import hashlib
from tests.ascendc.kernels import KERNELS, emitted
for name in KERNELS:
    print(hashlib.sha256(repr(sorted(emitted(name).files.items())).encode()).hexdigest())
"""


@pytest.mark.parametrize("name", KERNELS)
def test_printed_and_read_back_gives_the_same_files(name: str) -> None:
    again = read_program(print_program(placed(name)))
    assert emit(again, load(TARGET)).files == emitted(name).files


def test_other_processes_give_the_same_bytes(tmp_path: Path) -> None:
    own = [hashlib.sha256(repr(sorted(emitted(name).files.items())).encode()).hexdigest() for name in KERNELS]
    root = Path(__file__).parents[2]
    for seed in ("1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        done = subprocess.run([sys.executable, "-c", DIGESTS], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
        assert done.stdout.split() == own


def test_emitted_text_names_the_users_lines_and_no_folder() -> None:
    files = emitted("softmax").files
    assert '"user_line": 7' in files["source_map.json"] and '"file": "examples.py"' in files["source_map.json"]
    assert not any(str(Path(__file__).parents[2]) in text for text in files.values())
