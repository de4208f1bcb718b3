"""Emulator builds of a test session go to a folder of their own, unless $PTC_CACHE_DIR already names one."""
from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if os.environ.get("PTC_CACHE_DIR"):
        yield
        return
    os.environ["PTC_CACHE_DIR"] = str(tmp_path_factory.mktemp("ptc-cache"))
    yield
    del os.environ["PTC_CACHE_DIR"]
