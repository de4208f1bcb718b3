"""Messages speak in the kernel's names: none that a pass, a placement or an emitter has made up stands in one."""
from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

import pypto_dsl
from pypto_dsl.compiler import pipeline

HERE, PACKAGE = Path(__file__).resolve().parent, Path(pypto_dsl.__file__).parent
GOLDENS = sorted([*HERE.glob("kernels/*.golden"), *HERE.glob("mistakes/*.golden")])
MAKERS = {"fresh", "axis", "temporary"}  # calls that give a made-up thing its name
# A text form's own names are the user's there, and PT713 is about passes.
TEXT_FORM, ABOUT_PASSES = re.compile(r"PT6\d\d|text\.ptir"), re.compile("PT713")
ANY = r"\w+"
WORDS = ("Tile IR", "TileKernel", "BlockOp", "Graph IR", "internal error in", "circular_buffer", "DST")


@functools.cache
def made_up() -> frozenset[str]:
    """Patterns of the names that the compiler makes: those that no text would have by itself, with `_` or a capital inside."""
    found = set()
    for folder in ("passes", "placement", "tile_ir"):
        for path in (PACKAGE / "compiler" / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MAKERS:
                    found |= {p for argument in node.args if (p := pattern(argument))}
    return frozenset(found)


def pattern(argument: ast.expr) -> str:
    """A name as a regular expression, "" for one that could be a word."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        parts = [argument.value]
    elif isinstance(argument, ast.JoinedStr):
        parts = [str(p.value) if isinstance(p, ast.Constant) else "" for p in argument.values]
    else:
        return ""
    fixed = "".join(parts)
    return rf"\b{''.join(re.escape(p) or ANY for p in parts)}(_\d+)?\b" if "_" in fixed or fixed != fixed.lower() else ""


def said(golden: Path) -> str:
    """What a message says itself: without the lines that it quotes, and their carets."""
    return "\n".join(line for line in golden.read_text(encoding="utf-8").splitlines() if not re.match(r"\s*\d* \|", line))


def test_the_patterns_find_what_the_compiler_makes() -> None:
    patterns = made_up()
    for name in ("row_block", "col_block", "out_tile", "x_tile_1", "sum_kept", "xTile", "yWide"):
        assert any(re.fullmatch(p, name) for p in patterns), (name, patterns)


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda g: g.name)
def test_no_internal_name_is_in_a_message(golden: Path) -> None:
    text = said(golden)
    program = golden.with_suffix(".py") if golden.parent.name == "kernels" else golden.with_suffix("")
    own = set(re.findall(r"\w+", program.read_text(encoding="utf-8")))
    names = {m[0] for p in made_up() for m in re.finditer(p, text)} - own - set(dir(pypto_dsl))
    assert not names, f"{names} in\n{text}"
    assert not [w for w in WORDS if w in text], text
    if not TEXT_FORM.search(golden.name):
        assert not re.search(r"%[A-Za-z_]", text), text
    if not ABOUT_PASSES.search(golden.name):
        passes = {name for name in pipeline.GRAPH_PASSES if re.search(rf"\b{name}\b", text)}
        assert not passes - own - {"relax", "sink"}, f"{passes} in\n{text}"
