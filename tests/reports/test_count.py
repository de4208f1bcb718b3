"""Every row of the collected reports is a test: ids in the names of tests, counted against the list."""
from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
ROWS = tomllib.loads((TESTS / "data" / "report_rows.toml").read_text(encoding="utf-8"))
KINDS = {"R", "E", "D", "P"}


@functools.cache
def covered() -> dict[str, list[str]]:
    """The tests that carry an id in their name, by id."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or not re.match(r"test_[bp]\d", node.name):
                continue
            ids = re.match(r"test((?:_[bp]\d+)+)_", node.name + "_")
            assert ids is not None, node.name
            for row in ids[1].strip("_").split("_"):
                found.setdefault(row.upper(), []).append(f"{path.relative_to(TESTS)}::{node.name}")
    return found


def test_the_list_is_whole() -> None:
    """51 rows of users of tile languages, 25 on promotion."""
    assert {title: len(rows) for title, rows in ROWS.items()} == {"field": 51, "promotion": 25}
    assert all(set(kinds) <= KINDS and what for rows in ROWS.values() for kinds, what in rows.values())


@pytest.mark.parametrize("row", [row for rows in ROWS.values() for row in rows])
def test_a_row_is_a_test(row: str) -> None:
    assert covered().get(row), f"no test is called test_{row.lower()}_..."


def test_tests_name_rows_that_exist() -> None:
    assert set(covered()) <= {row for rows in ROWS.values() for row in rows}
