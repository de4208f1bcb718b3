"""Makes the gate importable by name, and finds the unpacked ttnn wheel or says exactly what is missing."""
from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "ttmetal"))

VERSION = "0.81.1"


@pytest.fixture(scope="session")
def ttnn_root() -> Path:
    """The folder that holds tt_metal/; skips with the missing piece's name where `tests/vendor/setup.sh` has not run."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(os.environ.get("PTC_TTNN_ROOT") or cache / "pypto_dsl" / f"ttnn-{VERSION}") / "ttnn"
    if shutil.which("riscv64-unknown-elf-g++") is None:
        pytest.skip("riscv64-unknown-elf-g++ is not installed (tests/vendor/setup.sh installs it)")
    if not (root / "tt_metal").is_dir():
        pytest.skip(f"the ttnn {VERSION} wheel is not unpacked in {root.parent} (tests/vendor/setup.sh does it)")
    return root
