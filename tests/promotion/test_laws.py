"""The algebra of the rule sets: each declared law holds for every pair and triple, each undeclared one fails somewhere."""
from __future__ import annotations

from itertools import product

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.promotion import RULE_SETS, PromotionError, assign, check_scalar, rule_set, strong
from pypto_dsl.compiler.promotion.atype import AType, of_node
from pypto_dsl.compiler.promotion.definitions import LATTICES, kind
from pypto_dsl.compiler.promotion.lattice import graph

ALL = list(RULE_SETS)
# JAX stores a weak value at the default width whatever its history: its laws hold on the types that occur, not on storage widths.
NARROW_WEAK = {"jax": ("i32*", "f32*", "c64*"), "jax-strict": ("i32*", "f32*", "c64*")}
LAWS = {"total", "commutative", "associative", "value-associative", "value-associative-strong"}
ONE_SIDED_TRIPLES = {"tf-safe": 548, "pypto": 588}


def nodes_of(name):
    return [n for n in rule_set(name).nodes if n not in NARROW_WEAK.get(name, ())]


def join(name, lhs, rhs):
    return None if lhs is None or rhs is None else rule_set(name).cell(lhs, rhs).result


@pytest.mark.parametrize("name", ALL)
def test_declared_laws_are_exactly_those_that_hold(name):
    nodes = nodes_of(name)
    holds = set()
    if all(join(name, a, b) for a, b in product(nodes, nodes)):
        holds.add("total")
    if all(join(name, a, b) == join(name, b, a) for a, b in product(nodes, nodes)):
        holds.add("commutative")
    bracketings = {(a, b, c): (join(name, join(name, a, b), c), join(name, a, join(name, b, c))) for a, b, c in product(nodes, repeat=3)}
    one_sided = sum((x is None) != (y is None) for x, y in bracketings.values())
    differing = [t for t, (x, y) in bracketings.items() if x and y and x != y]
    if not one_sided and not differing:
        holds.add("associative")
    if not differing:
        holds.add("value-associative")
    if all(any(n.endswith("*") for n in t) for t in differing):
        holds.add("value-associative-strong")
    assert holds == rule_set(name).laws
    assert rule_set(name).laws <= LAWS
    assert one_sided == ONE_SIDED_TRIPLES.get(name, 0)


@pytest.mark.parametrize("name", ALL)
def test_idempotent(name):
    for n in nodes_of(name):
        assert join(name, n, n) == n


@pytest.mark.parametrize("name", LATTICES)
def test_monotone(name):
    """a <= a' implies a v b <= a' v b where both are defined; under pypto for strong b (a weak float on an integer is FP32 at once)."""
    definition = LATTICES[name]
    order = graph(definition)
    above = {n: {n} | nx.descendants(order, n) for n in order}
    weak_kind = {s: k for k, storages in definition.storages.items() for s in storages}
    nodes = nodes_of(name)
    for low, high in product(nodes, nodes):
        if weak_kind.get(high, high) not in above[weak_kind.get(low, low)]:
            continue
        for other in nodes:
            if name == "pypto" and any(n.endswith("*") for n in (low, high, other)):
                continue
            x, y = join(name, low, other), join(name, high, other)
            if x and y:
                assert weak_kind.get(y, y) in above[weak_kind.get(x, x)], (low, high, other)


@pytest.mark.parametrize("name", ["tf-all", "tf-safe", "jax", "jax-x32"])
def test_bool_is_the_bottom(name):
    for n in nodes_of(name):
        assert join(name, "bool", n) == n


def test_bool_below_every_strong_computing_dtype_of_pypto():
    for n in rule_set("pypto").nodes:
        if not n.endswith("*") and not n.startswith(("f8", "bfp")):
            assert join("pypto", "bool", n) == n


@pytest.mark.parametrize("name", ALL)
def test_64_bits_come_only_from_64_bits_or_u32_or_an_integer_with_a_weak_float(name):
    wide = {"i64", "u64", "f64", "c128", "i64*", "f64*", "c128*"}
    for a, b in product(nodes_of(name), repeat=2):
        if join(name, a, b) in wide and not {a, b} & wide:
            unsigned = "u32" in (a, b)
            weak_float = {kind(a), kind(b)} <= {"int", "float"} and any(n.endswith("*") and kind(n) == "float" for n in (a, b))
            assert unsigned or weak_float, (a, b)


@pytest.mark.parametrize(("part", "whole"), [("tf-safe", "tf-all"), ("jax-strict", "jax"), ("pypto-strict", "pypto")])
def test_the_careful_set_is_part_of_the_generous_one(part, whole):
    for a, b in product(nodes_of(part), repeat=2):
        if (found := join(part, a, b)) is not None:
            assert found == join(whole, a, b)


@pytest.mark.parametrize("name", ALL)
def test_a_python_scalar_never_changes_a_tensor_of_its_own_kind(name):
    rules = rule_set(name)
    for n in nodes_of(name):
        if n.endswith("*"):
            continue
        scalar = {"int": 1, "float": 1.0}.get(kind(n))
        if scalar is not None:
            assert rules.join(of_node(n), rules.infer(scalar)) == of_node(n)
            assert rules.join(rules.infer(scalar), of_node(n)) == of_node(n)


def test_strong_pairs_of_tf_and_jax_agree():
    """0 of 225 strong pairs differ between TensorFlow and JAX."""
    both = [n for n in rule_set("tf-all").nodes if not n.endswith("*")]
    assert len(both) == 15
    assert all(join("tf-all", a, b) == join("jax", a, b) for a, b in product(both, both))


def test_ttnn_follows_the_left_tensor():
    rules = rule_set("ttnn")
    for a, b in product(rules.nodes, repeat=2):
        found = rules.cell(a, b).result
        if found and not a.endswith("*"):
            assert found == a
        if found and a.endswith("*") and not b.endswith("*"):
            assert found == b
    assert (join("ttnn", "bf16", "f32"), join("ttnn", "f32", "bf16")) == ("bf16", "f32")


real_types = st.sampled_from([AType(d, w) for d in BY_NAME.values() for w in (False, True) if not w or d.name in ("i32", "f32")])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ALL), st.lists(real_types, min_size=1, max_size=6))
def test_n_ary_is_a_left_fold_in_source_order(name, types):
    rules = rule_set(name)
    joined = types[0]
    for position, following in enumerate(types[1:], 1):
        try:
            joined = rules.join(joined, following)
        except PromotionError as step:
            with pytest.raises(PromotionError) as caught:
                rules.fold(types)
            assert (caught.value.lhs, caught.value.rhs, caught.value.reason) == (step.lhs, step.rhs, step.reason)
            if position > 1:
                assert caught.value.lhs.origin == f"operands 1 to {position} joined"
            return
    assert rules.fold(types) == joined


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ALL), st.sampled_from(sorted(BY_NAME)), real_types)
def test_in_place_never_changes_the_destination(name, destination, value):
    rules = rule_set(name)
    target = strong(BY_NAME[destination])
    found = rules.cell(destination, value.node).result
    if found == destination:
        assert assign(rules, target, value).result == target
    else:
        with pytest.raises(PromotionError) as caught:
            assign(rules, target, value)
        assert caught.value.code == "PT205"
        assert destination in caught.value.candidates


@settings(max_examples=300, deadline=None)
@given(st.integers(-(1 << 70), 1 << 70), st.sampled_from([d for d in BY_NAME.values() if d.is_integer or d.kind == "bool"]))
def test_an_int_lands_iff_it_is_in_range(value, dtype):
    low, high = dtype.range
    if low <= value <= high:
        check_scalar(rule_set(), value, dtype)
    else:
        with pytest.raises(PromotionError) as caught:
            check_scalar(rule_set(), value, dtype)
        assert caught.value.code == "PT204"
