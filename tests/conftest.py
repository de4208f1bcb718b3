"""What a session's processes share: one cache of compiled kernels, and the bytecode of the processes that tests start.

The user's cache is left alone, unless $PTC_CACHE_DIR names one. The workers of pytest-xdist inherit the environment.
"""
from __future__ import annotations

import os
import shutil
import sys
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Runs in the first process before it starts workers, in which both is given already."""
    if not os.environ.get("PTC_CACHE_DIR"):
        os.environ["PTC_CACHE_DIR"] = _folder(config, "objects")
    if sys.dont_write_bytecode and "PYTHONPYCACHEPREFIX" not in os.environ:  # no file beside the sources, yet compiled once
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = _folder(config, "bytecode")


def _folder(config: pytest.Config, what: str) -> str:
    """A folder for as long as the session."""
    folder = tempfile.mkdtemp(prefix=f"pypto_dsl_{what}")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder
