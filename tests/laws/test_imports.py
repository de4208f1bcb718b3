"""Imports point down four floors, make no circle, and heavy packages are loaded where they are used and nowhere else."""
from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib

import networkx
import pytest
from tree import PACKAGE, ROOT, imports, modules, tree

import pypto_dsl
from pypto_dsl.cli.versions import REQUIREMENTS

FLOORS = {"compiler": 1, "codegen": 2, "runtime": 3}
# package -> prefixes of the modules that may import it
ONLY = {
    "lark": ("pypto_dsl.compiler.text.", "pypto_dsl.compiler.tile_ir.reader"),
    "networkx": ("pypto_dsl.compiler.promotion.", "pypto_dsl.compiler.passes.fuse", "pypto_dsl.compiler.exports"),
    "llvmlite": ("pypto_dsl.runtime.cpu.",),
    "click": ("pypto_dsl.cli",),
}


def floor(module: str) -> int:
    parts = module.split(".")
    return FLOORS.get(parts[1], 4) if len(parts) > 1 else 4


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_point_down(module):
    above = [f"line {line}: {name}" for name, line in imports(module) if name.startswith("pypto_dsl") and floor(name) > floor(module)]
    assert not above, f"{module} is on floor {floor(module)} and imports from above: {above}"


def test_no_circle():
    graph = networkx.DiGraph((m, name) for m in modules() for name, _ in imports(m) if name in modules() and name != m)
    # a package's __init__ imports its modules; a module that imports a sibling through the package would make a circle
    circles = list(networkx.simple_cycles(graph, length_bound=12))
    assert not circles, circles[:3]


@pytest.mark.parametrize("module", sorted(modules()))
def test_no_relative_imports_and_none_inside_functions(module):
    relative = [n.lineno for n in ast.walk(tree(module)) if isinstance(n, ast.ImportFrom) and n.level]
    inner = [n.lineno for f in ast.walk(tree(module)) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))
             for n in ast.walk(f) if isinstance(n, (ast.Import, ast.ImportFrom))]
    assert not relative and not inner, f"relative at {relative}, inside functions at {inner}"


@pytest.mark.parametrize("package", ONLY)
def test_heavy_packages_stay_where_they_belong(package):
    users = {m for m in modules() for name, _ in imports(m) if name.split(".")[0] == package}
    elsewhere = sorted(m for m in users if not m.startswith(ONLY[package]))
    assert not elsewhere
    assert users, f"nobody imports {package} any more: take it out of this table and of pyproject.toml"


def loaded(packages, script, **options):
    """Which of ``packages`` a process has loaded that has run ``script``."""
    ask = f"{script}\nimport sys\nprint([m for m in {packages!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, cwd=ROOT, check=True, **options)
    return ast.literal_eval(done.stdout.splitlines()[-1])


def test_importing_the_package_loads_no_heavy_package():
    heavy = ("lark", "networkx", "llvmlite", "click", "ml_dtypes", "importlib.metadata", "importlib.resources",
             "pypto_dsl.compiler.tile_ir.nodes")
    assert loaded(heavy, "import pypto_dsl\npypto_dsl.jit") == []


PROGRAM = """
import numpy as np
import pypto_dsl as pypto


@pypto.jit
def k(x: pypto.Tensor([pypto.DYNAMIC, 8], pypto.DTYPE), out: pypto.Tensor([pypto.DYNAMIC, 8], pypto.DTYPE)):
    out[:] = pypto.softmax(x * 2.0, dim=-1)


x = np.full((4, 8), 3, pypto.DTYPE.numpy)
for _ in range(2):
    out = np.zeros_like(x)
    k(x, out)
    assert (out == 0.125).all()
    k.run(x, out, target="interpreter")
    assert (out == 0.125).all()
"""


@pytest.mark.parametrize("dtype", ["DT_FP32", "DT_BF16"])
def test_ml_dtypes_is_loaded_for_its_own_dtypes_alone(dtype, tmp_path):
    """It takes longer to import than everything else here; a kernel of f32 is read, compiled and run without it."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.replace("DTYPE", dtype))
    script = f"import runpy\nrunpy.run_path({str(file)!r})"
    found = loaded(("ml_dtypes",), script, env={**os.environ, "PTC_CACHE_DIR": str(tmp_path / "cache")})
    assert found == (["ml_dtypes"] if dtype == "DT_BF16" else [])


def test_the_links_at_the_top_lead_into_the_package():
    for name in FLOORS:
        assert (ROOT / name).resolve() == PACKAGE / name
        assert (ROOT / name).readlink().as_posix() == f"pypto_dsl/{name}"


def test_nothing_else_is_installed_at_the_top():
    """A top-level `pypto`, `compiler` or `runtime` in site-packages would shadow its user's modules."""
    assert not (ROOT / "pypto").exists()
    assert 'include = ["pypto_dsl*"]' in (ROOT / "pyproject.toml").read_text()


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == pypto_dsl.__version__
    assert {re.split(r"[<>=]", r)[0] for r in project["dependencies"]} == set(REQUIREMENTS), "what `ptc doctor` lists"
