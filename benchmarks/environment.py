"""What a run says about itself, and thread counts that must be set before any library is loaded."""
from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS",
                    "NUMEXPR_MAX_THREADS", "HL_NUM_THREADS")
# These make NumPy's OpenBLAS take another processor's kernels.
SLOWING_VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
DISTRIBUTIONS = ("pypto_dsl", "numpy", "ml_dtypes", "llvmlite", "numexpr", "numba", "jax", "jaxlib", "torch", "halide")


def set_threads(threads: int) -> None:
    """Hold every library to ``threads`` threads and, for one, this process to one core. To be called before NumPy is imported."""
    for name in THREAD_VARIABLES:
        os.environ[name] = str(threads)
    for name in SLOWING_VARIABLES:
        os.environ.pop(name, None)
    # Workers that spin after their part is done would take the core from the peer that is measured next.
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    os.environ["JAX_PLATFORMS"] = "cpu"
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(cores[-threads:]))
    if threads == 1:
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()


def versions() -> dict[str, str]:
    """Versions of Python and of every peer that is installed."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Processor, caches and kernel, as far as the system tells."""
    found: dict[str, Any] = {"system": f"{platform.system()} {platform.machine()}", "cores": os.cpu_count()}
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = dict(line.split(":", 1) for line in information.read_text(encoding="utf-8").splitlines() if ":" in line)
        fields = {key.strip(): value.strip() for key, value in lines.items()}
        found |= {key: fields[key] for key in ("model name", "cpu family", "model") if key in fields}
        found["features"] = [f for f in fields.get("flags", "").split() if f.startswith(("avx", "fma", "f16c", "amx"))]
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((index / part).read_text(encoding="utf-8").strip() for part in ("level", "type", "size"))
        found[f"L{level} {kind.lower()}"] = size
    return found


def revision() -> str:
    """The commit that is measured, or an empty text outside a clone."""
    folder = Path(__file__).resolve().parent
    try:
        done = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, cwd=folder, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def description(settings: dict[str, Any]) -> dict[str, Any]:
    """The head of a results file: when, where, which versions, which settings."""
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"date": day, "revision": revision(), "machine": machine(), "versions": versions(), "settings": settings,
            "implementation": sys.implementation.name}
