"""The recorded promotion tables of TensorFlow 2.21.0, JAX 0.10.2 and PyPTO's pow page, in this project's node names."""
from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[1] / "data" / "promotion"
TABLES = {"tf": ("all", "safe"), "jax": ("standard", "strict")}


def node(name: str | None) -> str | None:
    """``b`` of the recordings is ``bool`` here; an error (``!TypeError``) is None."""
    if name is None or name.startswith("!"):
        return None
    return re.sub(r"^b(\*?)$", r"bool\1", name)


class Oracle:
    """One recording with the few views that the tests share."""

    def __init__(self, name: str) -> None:
        self.raw = json.loads((DATA / f"{name}_promotion.json").read_text())

    def table(self, mode: str, x64: bool | None = None) -> dict[tuple[str, str], str | None]:
        """(lhs, rhs) -> result node, None where refused."""
        rows = [e for e in self.raw["entries"] if e["mode"] == mode and (x64 is None or e["x64"] == x64)]
        return {(node(e["lhs"] + "*" * e["lhs_weak"]), node(e["rhs"] + "*" * e["rhs_weak"])):
                node(e["result"] + "*" * e["result_weak"]) if e["allowed"] else None for e in rows}


@pytest.fixture(scope="session")
def tf() -> Oracle:
    return Oracle("tf")


@pytest.fixture(scope="session")
def jax() -> Oracle:
    return Oracle("jax")


@pytest.fixture(scope="session")
def pow_page() -> Oracle:
    return Oracle("pypto_pow")


@pytest.fixture(scope="session")
def to_node():
    return node
