"""Running `ptc` in process, on kernels written into a folder of the test's own."""
from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cli_files import DOUBLE

from pypto_dsl.cli import main


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def ptc(tmp_path, monkeypatch):
    """Runs `ptc` in a folder of its own, with a cache of its own."""
    monkeypatch.setenv("PTC_CACHE_DIR", str(tmp_path / "cache"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def run(*arguments: object, color: bool = False) -> Done:
        result = CliRunner().invoke(main, [str(a) for a in arguments], prog_name="ptc", color=color)
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def kernel(tmp_path):
    """Writes a kernel file and gives its path."""

    def write(text: str = DOUBLE, name: str = "double.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write
