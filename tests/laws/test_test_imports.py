"""The tests collect in an environment that has the project's `test` extra and nothing else."""
from __future__ import annotations

import ast
import re
import sys
import tomllib

from tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DECLARED = {re.match(r"[\w-]+", line)[0] for line in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"])}


def imported(node: ast.stmt) -> list[str]:
    names = (
        [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
    )
    return [name.split(".")[0] for name in names if name]


def test_tests_import_what_is_declared():
    """`tests/vendor/ttcheck/host_gate.py` is no test: it is run by the Python of an environment of the vendor's."""
    files = [f for f in sorted((ROOT / "tests").rglob("*.py")) if f.name != "host_gate.py"]
    ours = {f.stem for f in files} | {f.parent.name for f in files} | {"tests", "pypto_dsl", "benchmarks", "tools"}
    allowed = set(sys.stdlib_module_names) | DECLARED | ours
    foreign = {(f.relative_to(ROOT).as_posix(), name) for f in files for node in ast.parse(f.read_text(encoding="utf-8")).body
               for name in imported(node) if name not in allowed}
    assert not foreign
