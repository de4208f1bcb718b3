"""Every row of every recorded table against the rule sets, and the shipped tables against their derivation."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pypto_dsl.compiler.dtypes import BY_PYPTO
from pypto_dsl.compiler.promotion import RULE_SETS, PromotionError, result_type, rule_set, strong, weak
from pypto_dsl.compiler.promotion import tables as shipped
from pypto_dsl.compiler.promotion.atype import of_node
from pypto_dsl.compiler.promotion.definitions import LATTICES, LatticeDefinition
from pypto_dsl.compiler.promotion.lattice import LatticeError, close, render

RECORDED = {
    "tf-all": ("tf", "all", None, 400),
    "tf-safe": ("tf", "safe", None, 400),
    "jax": ("jax", "standard", True, 441),
    "jax-x32": ("jax", "standard", False, 196),
    "jax-strict": ("jax", "strict", True, 441),
}


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_row(name, request):
    source, mode, x64, count = RECORDED[name]
    recorded = request.getfixturevalue(source).table(mode, x64)
    assert len(recorded) == count
    rules = rule_set(name)
    assert {pair: rules.cell(*pair).result for pair in recorded} == recorded
    assert {(lhs, rhs) for lhs in rules.nodes for rhs in rules.nodes} == set(recorded)


@pytest.mark.parametrize("name", RECORDED)
def test_join_equals_the_table_or_refuses(name):
    """`join` over ATypes: the cell's result, PromotionError where refused or complex."""
    rules = rule_set(name)
    real = [n for n in rules.nodes if not n.startswith("c")]
    for lhs in real:
        for rhs in real:
            expected = rules.cell(lhs, rhs).result
            if expected is None:
                with pytest.raises(PromotionError) as caught:
                    rules.join(of_node(lhs), of_node(rhs))
                assert (caught.value.lhs.node, caught.value.rhs.node, caught.value.ruleset) == (lhs, rhs, name)
                assert caught.value.reason
            else:
                assert rules.join(of_node(lhs), of_node(rhs)).node == expected


def test_allowed_counts(tf, jax):
    """How many pairs each mode allows, as measured."""
    count = {name: sum(rule_set(name).cell(a, b).result is not None for a in rule_set(name).nodes for b in rule_set(name).nodes)
             for name in RECORDED}
    assert count == {"tf-all": 400, "tf-safe": 298, "jax": 441, "jax-x32": 196, "jax-strict": 139}


def test_pow_page_every_row(pow_page):
    rules, strict = rule_set("pypto"), rule_set("pypto-strict")
    rows = pow_page.raw["entries"]
    assert len(rows) == 63
    for row in rows:
        base = strong(BY_PYPTO[row["input"]])
        scalar = {"int": weak(rules.default("int")), "float": weak(rules.default("float"))}
        exponent = scalar.get(row["other"]) or strong(BY_PYPTO[row["other"]])
        for chosen in (rules, strict):
            refused = row["recommended"] == "error" or (chosen is strict and row["status"] == "ambiguous")
            if refused:
                with pytest.raises(PromotionError):
                    result_type(chosen, "pow", base, exponent)
            else:
                assert result_type(chosen, "pow", base, exponent).result == strong(BY_PYPTO[row["recommended"]]), row


def test_pypto_table_is_the_join_of_every_operation(pow_page):
    """The page's tensor table holds for arithmetic as for pow under pypto; pypto-strict takes equal dtypes only."""
    for row in pow_page.raw["entries"]:
        if row["other_kind"] != "tensor":
            continue
        lhs, rhs = BY_PYPTO[row["input"]].name, BY_PYPTO[row["other"]].name
        expected = None if row["recommended"] == "error" else BY_PYPTO[row["recommended"]].name
        assert rule_set("pypto").cell(lhs, rhs).result == expected
        assert rule_set("pypto-strict").cell(lhs, rhs).result == (lhs if lhs == rhs else None)


def test_recorded_lattices_are_ours(tf, jax, to_node):
    """The edges themselves, not only the joins."""
    def translated(edges):
        return {to_node(low): tuple(map(to_node, above)) for low, above in edges.items()}
    assert dict(LATTICES["tf-all"].edges) == translated(tf.raw["lattice"]["edges"])
    for name, key in (("jax", "standard"), ("jax-x32", "standard_x32_edges"), ("jax-strict", "strict")):
        ours = {low: set(above) for low, above in LATTICES[name].edges.items()}
        assert ours == {low: set(above) for low, above in translated(jax.raw["lattice"][key]).items()}


def test_shipped_tables_are_what_the_definitions_give():
    assert Path(shipped.__file__).read_text() == render()


@pytest.mark.parametrize("name", LATTICES)
def test_shipped_table_equals_closure(name):
    derived = close(LATTICES[name])
    assert (shipped.TABLES[name].nodes, shipped.TABLES[name].cells) == (derived.nodes, derived.cells)


@pytest.mark.parametrize(("edges", "total", "message"), [
    ({"i8": ("i16",), "i16": ("i8",)}, False, "cycle"),
    ({"i8": ("i16",)}, False, "undefined nodes i16"),
    ({"i8": (), "i16": ()}, True, "no unique least upper bound"),
    ({"i8": ("f16", "bf16"), "i16": ("f16", "bf16"), "f16": ("f32",), "bf16": ("f32",), "f32": ()}, True, "no unique least upper bound"),
])
def test_bad_definitions_are_refused(edges, total, message):
    with pytest.raises(LatticeError, match=message):
        close(LatticeDefinition("broken", edges, total=total))


def test_a_mask_that_depends_on_the_order_is_refused():
    definition = LatticeDefinition("broken", {"i8": ("i16",), "i16": ()}, mask=lambda lhs, rhs, joined: "no" if lhs == "i8" else "")
    with pytest.raises(LatticeError, match=r"joined with itself|depends on their order"):
        close(definition)


def test_using_the_rules_does_not_load_networkx():
    code = ("import sys; from pypto_dsl.compiler.promotion import *;"
            "[r.join(strong(r.default('int')), strong(r.default('int'))) for r in RULE_SETS.values()];"
            "sys.exit('networkx' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_names():
    assert list(RULE_SETS) == ["pypto", "pypto-strict", "ttnn", "tf-all", "tf-safe", "jax", "jax-x32", "jax-strict"]
    assert rule_set().name == "pypto"
