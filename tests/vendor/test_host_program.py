"""The emitted host.py under the real ttnn package on a mock cluster: descriptors accepted, all five units compiled by ttnn's own JIT."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import kernels
import pytest

pytestmark = pytest.mark.vendor
GATE = Path(__file__).resolve().parent / "ttcheck"
VERSION = "0.81.1"


@pytest.fixture(scope="session")
def ttnn_python() -> Path:
    """A Python that has ttnn and the stand-in; skips where `tests/vendor/setup_host.sh` has not run."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    python = Path(os.environ.get("PTC_TTNN_HOST") or cache / "pypto_dsl" / f"ttnn-host-{VERSION}") / "bin/python"
    if not python.exists():
        pytest.skip(f"ttnn {VERSION} is not installed in {python.parent.parent}: it needs Python 3.12 (tests/vendor/setup_host.sh does it)")
    return python


def test_ttnn_accepts_every_program(ttnn_python: Path, tmp_path: Path) -> None:
    """Each case once, at 65 x 100: accepted by generic_op and compiled; a run ends at loading the stand-in's empty ELF."""
    for name in kernels.CASES:
        for path, text in kernels.emitted(name).files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
    environment = {**os.environ, "TT_METAL_CACHE": str(tmp_path / "cache"), "TTCHECK_HOME": str(GATE), "TTCHECK_LOG": str(tmp_path / "log")}
    command = [str(ttnn_python), str(GATE / "host_gate.py"), str(GATE / "mock_wormhole.yaml"), *(str(tmp_path / n) for n in kernels.CASES)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3000)
    said = [line for line in done.stdout.splitlines() if "accepted" in line or "REFUSED" in line]
    assert len(said) == len(kernels.CASES), done.stdout[-2000:] + done.stderr[-2000:]
    assert not [line for line in said if "REFUSED" in line], "\n".join(said)
