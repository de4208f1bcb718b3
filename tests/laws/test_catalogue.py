"""The catalogue of errors: every code in use has a page, every page is in use, and pages say what is so."""
from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache

import pytest
from tree import modules, tree

from pypto_dsl.compiler import catalogue

CODE = re.compile(r"PT\d{3}")
# Which folders may raise the codes of a family.
HOMES = {
    "PT1": ("compiler.ops", "frontend", "driver", "compiler.verify"),
    "PT2": ("compiler", "frontend", "driver"),
    "PT3": ("compiler.ops", "frontend", "compiler.verify"),
    "PT4": ("compiler", "frontend"),
    "PT5": ("compiler", "codegen", "frontend", "runtime", "driver"),
    "PT6": ("compiler.text", "compiler.tile_ir", "compiler.verify"),
    "PT7": ("frontend", "runtime", "driver", "cli.compile"),
    "PT8": ("runtime", "frontend", "cli"),
    "PT9": ("runtime",),
}


@cache
def used() -> dict[str, list[str]]:
    """Code -> where it stands as a literal."""
    found = defaultdict(list)
    for module in modules():
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                found[node.value].append(f"{module}:{node.lineno}")
    return dict(found)


def test_every_code_has_a_page():
    missing = {code: places for code, places in used().items() if catalogue.find(code) is None}
    assert not missing, "these are raised and have no entry in compiler/catalogue"


@pytest.mark.parametrize("code", catalogue.entries())
def test_every_page_says_what_to_write(code):
    entry = catalogue.entries()[code]
    assert len(entry.cause.split()) >= 8 and len(entry.fix.split()) >= 5, "say when it is raised and what to write instead"
    assert (not entry.title.endswith(".") and entry.title[0].islower()) or entry.title[0].isupper()


@pytest.mark.parametrize("code", catalogue.entries())
def test_every_page_is_in_use(code):
    assert code in used(), f"nothing raises {code}: delete its page"


@pytest.mark.parametrize("code", catalogue.entries())
def test_codes_are_raised_where_their_family_lives(code):
    homes = tuple(f"pypto_dsl.{home}" for home in HOMES[code[:3]])
    assert all(place.startswith(homes) for place in used()[code]), f"{code} is raised at {used()[code]}"


def test_codes_that_texts_mention_exist():
    unknown = {code: module for module, path in modules().items() for code in CODE.findall(path.read_text(encoding="utf-8"))
               if catalogue.find(code) is None}
    assert not unknown


def test_an_example_is_mended():
    assert all(bool(e.wrong) == bool(e.right) for e in catalogue.entries().values())


def test_pages():
    page = catalogue.entries()["PT203"].page()
    assert page.startswith("PT203: ") and "Raised by:" in page and "Mended:" in page
    assert all(len(line) <= 140 for e in catalogue.entries().values() for line in e.page().splitlines())
    assert catalogue.find("pt203") is catalogue.entries()["PT203"] and catalogue.find("PT999") is None
    assert "PT203" in catalogue.near("PT2O3")


def test_a_malformed_file_is_refused():
    with pytest.raises(ValueError, match="PT901"):
        catalogue.family_from({"family": {"prefix": "PT2", "title": "t"}, "PT901": {"title": "a", "cause": "b", "fix": "c"}})
    with pytest.raises(ValueError, match="missing"):
        catalogue.family_from({"family": {"prefix": "PT2", "title": "t"}, "PT201": {"title": "a"}})
