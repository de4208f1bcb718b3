"""The table of TensorFlow's names: complete, and every spelling in it is one that the op table takes."""
from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine import execute, graph_of

from pypto_dsl.compiler.dtypes import BY_PYPTO
from pypto_dsl.compiler.ops import REGISTRY

NAMES = tomllib.loads((Path(__file__).parents[2] / "docs" / "tensorflow_names.toml").read_text(encoding="utf-8"))
# How many names of the notebook are operations here, can be composed, and lie outside.
COUNTS = {"operations": 146, "composed": 18, "outside": 37}


def test_every_name_of_the_list_has_a_row() -> None:
    assert {k: len(v) for k, v in NAMES.items()} == COUNTS
    assert len(set().union(*(v for v in NAMES.values()))) == sum(COUNTS.values())


@pytest.mark.parametrize("name", NAMES["operations"])
def test_the_spelling_is_taken(name: str) -> None:
    """It records, and gives a result of numbers."""
    x = np.linspace(0.1, 0.9, 16, dtype=np.float32).reshape(4, 4)
    n = np.arange(16, dtype=np.int32).reshape(4, 4)

    def call(*operands: Any) -> Any:
        scope = {**REGISTRY, **BY_PYPTO, **dict(zip("xyn", operands, strict=True))}
        made = eval(NAMES["operations"][name], {"__builtins__": {}}, scope)
        return made

    (got,) = execute(graph_of(call, x, x.T.copy(), n), x, x.T.copy(), n)
    assert got.size and (name.endswith("acosh") or name.endswith("arccosh") or np.isfinite(got.astype(np.float64)).all())


def test_operations_that_a_reason_names_exist() -> None:
    for table in ("composed", "outside"):
        for reason in NAMES[table].values():
            for quoted in reason.split("`")[1::2]:
                operation = quoted.split("(")[0].strip()
                assert operation in REGISTRY, reason
