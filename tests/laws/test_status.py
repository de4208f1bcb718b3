"""docs/status.md: every row has a proof or says what is open, and every proof it names exists."""
from __future__ import annotations

import ast
import re

import pytest
from tree import ROOT

PAGE = (ROOT / "docs" / "status.md").read_text(encoding="utf-8")
ROWS = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in PAGE.splitlines()
        if line.startswith("|") and not line.startswith(("|---", "| what "))]
PROOFS = sorted({proof for _, proofs in ROWS for proof in re.findall(r"`([^`]+)`", proofs) if proof.startswith(("tests/", ".ci/"))})


def test_every_row_has_two_cells():
    assert all(len(row) == 2 for row in ROWS), [row for row in ROWS if len(row) != 2]


@pytest.mark.parametrize("what, proof", ROWS)
def test_a_row_is_proved_or_open(what, proof):
    assert what and ("`tests/" in proof or "`.ci/" in proof or proof.startswith("open"))


@pytest.mark.parametrize("proof", PROOFS)
def test_a_named_test_exists(proof):
    path, _, name = proof.partition("::")
    file = ROOT / path
    assert file.is_file(), f"{path} is no file"
    if not name:
        return
    defined = {n.name for n in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(n, ast.FunctionDef)}
    assert name.startswith("test_") and name in defined, f"{path} has no {name}"


@pytest.mark.parametrize("issue", [2, 3, 4, 5])
def test_every_issue_is_there(issue):
    assert re.search(rf"^## Issue {issue}: ", PAGE, re.M)
