"""The package's files as syntax trees, for the tests of this folder."""
from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pypto_dsl"


@cache
def modules() -> dict[str, Path]:
    """Module name -> file, for every Python file of the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def imports(module: str) -> list[tuple[str, int]]:
    """Every absolute import of a module: (imported module, line). `from a import b` names a.b when that is a module."""
    known = modules()
    found = []
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.append((full if full in known else node.module, node.lineno))
    return found
