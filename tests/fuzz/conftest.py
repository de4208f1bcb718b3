"""Makes the helpers of this folder importable by name, and keeps compiled kernels out of the user's cache."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PTC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
