"""docs/language.md: its blocks are one program that runs, what it says is refused is refused, and no public name is missing."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

from tree import ROOT

import pypto_dsl as pypto
from pypto_dsl.compiler import catalogue
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.frontend.options import GROUPS
from pypto_dsl.namespace import NAMES

PAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:<!-- raises: (PT\d{3}) -->\n)?```python\n(.*?\n)```", PAGE, re.S)
REFUSED = """\
try:
{block}
except pypto.KernelError as refused:
    assert refused.code == "{code}", refused
else:
    raise AssertionError("{code} was not raised")
"""


def program() -> str:
    """The page's blocks in order; one that must be refused inside a `try`."""
    return "\n".join(REFUSED.format(block=textwrap.indent(block, "    "), code=code) if code else block for code, block in BLOCKS)


def test_the_blocks_run(tmp_path) -> None:
    path = tmp_path / "page.py"  # a file: kernels have their source read
    path.write_text(program(), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error::UserWarning", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_block_is_run_and_states_something() -> None:
    assert PAGE.count("```") == 2 * len(BLOCKS) and len(BLOCKS) > 10
    assert all(code or "assert " in block for code, block in BLOCKS)


def test_every_public_name_is_on_the_page() -> None:
    names = {*NAMES, "assemble", "view", "where", "gather", "index_select"} - (set(REGISTRY) - {"view", "where", "gather", "index_select"})
    names -= {f"get_{group}" for group in GROUPS}  # "a `get_` for each"
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", PAGE)] == []


def test_codes_and_names_on_the_page_exist() -> None:
    assert all(hasattr(pypto, name) for name in re.findall(r"\bDT_\w+|(?<=pypto\.)\w+", PAGE))
    assert set(re.findall(r"PT\d{3}", PAGE)) <= set(catalogue.entries())
