"""docs/promotion.md: its tables and its `ptc promote` examples are what the engine says."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from pypto_dsl.compiler.promotion import RULE_SETS, refusal
from pypto_dsl.compiler.promotion.explain import explain, markdown_table

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "promotion.md").read_text()
TABLES = dict(re.findall(r"<!-- table (\S+) -->\n(.*?)\n<!-- end -->", PAGE, re.S))
EXAMPLES = re.findall(r"```console\n\$ ptc promote ([^\n]+) --rules (\S+)\n(.*?)\n```", PAGE, re.S)


@pytest.mark.parametrize("name", TABLES)
def test_tables(name):
    assert TABLES[name] == markdown_table(name)


@pytest.mark.parametrize(("operands", "rules", "printed"), EXAMPLES)
def test_examples(operands, rules, printed):
    assert explain(operands.split(), rules).text() == printed


def test_the_page_names_every_rule_set_and_code():
    assert len(TABLES) >= 5 and len(EXAMPLES) >= 3
    assert all(f"`{name}`" in PAGE for name in RULE_SETS)
    codes = [value for value in vars(refusal).values() if isinstance(value, str) and re.fullmatch(r"PT\d{3}", value)]
    assert all(code in PAGE for code in codes)
