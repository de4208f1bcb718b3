"""Explanations: result, path along real edges, and the other rule sets' answers."""
from __future__ import annotations

import json
from itertools import pairwise, product

import pytest

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.promotion import RULE_SETS, rule_set
from pypto_dsl.compiler.promotion.definitions import LATTICES
from pypto_dsl.compiler.promotion.explain import explain


def test_a_refusal():
    found = explain(["f16", "bf16"], "tf-safe")
    assert found.result is None
    assert found.steps[0].reason == "the result type f32 is neither operand's"
    assert found.others["tf-all"] == "f32"
    assert found.others["ttnn"].startswith("refused: ")
    assert found.text().splitlines()[:2] == ["f16 and bf16 under `tf-safe`: refused", "  reason: the result type f32 is neither operand's"]


def test_a_path():
    assert explain(["i8", "f16"], "tf-all").steps[0].paths == (("i8", "i16", "i32", "i64", "f64*", "f16"), ("f16",))
    assert explain(["u8", "i8"], "jax").text().splitlines()[1:3] == ["  path: u8 -> i16", "  path: i8 -> i16"]


def test_a_scalar_that_resolves_first():
    found = explain(["DT_INT8", "float"])
    assert (found.operands, found.result) == (("i8", "f32*"), "f32")
    assert found.steps[0].notes == ("a scalar f32* on a tensor of i8 is f32 first",)


def test_a_fold():
    found = explain(["i8", "int", "f16"], "tf-all")
    assert [(s.lhs, s.rhs, s.result) for s in found.steps] == [("i8", "i32*", "i8"), ("i8", "f16", "f16")]


@pytest.mark.parametrize("name", RULE_SETS)
def test_every_pair_is_explained_as_it_joins(name):
    rules = rule_set(name)
    definition = LATTICES.get(name)
    for lhs, rhs in product(rules.nodes, rules.nodes):
        if lhs > rhs and name != "ttnn":
            continue
        step = explain([lhs, rhs], name).steps[0] if lhs[:2] in ("f1", "i8", "bo", "c6") else None
        if step is None:
            continue
        assert step.result == rules.cell(lhs, rhs).result
        assert (step.result is None) == bool(step.reason)
        if step.result and definition:
            assert len(step.paths) == 2
            for path in step.paths:
                assert all(high in definition.edges[low] for low, high in pairwise(path))
                assert path[-1] == step.paths[0][-1]


def test_data_is_plain():
    assert json.loads(json.dumps(explain(["f16", "i32"], "jax").data()))["result"] == "f16"


@pytest.mark.parametrize(("operands", "rules", "code"), [(["f17"], "pypto", "PT208"), (["f16", "bf16"], "tensorflow", "PT207")])
def test_unknown_names(operands, rules, code):
    with pytest.raises(KernelError) as caught:
        explain(operands, rules)
    assert caught.value.code == code
