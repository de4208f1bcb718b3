"""Every operation of two operands on every pair of dtypes, under every rule set: what promotion makes is typed as the table says."""
from __future__ import annotations

import itertools

import pytest

from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Builder, Graph, Value, tensor_type
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.promotion.rulesets import RULE_SETS
from pypto_dsl.compiler.verify import verify

PAIRS = list(itertools.product(BY_NAME.values(), repeat=2))
OPERATIONS = sorted(name for name, d in REGISTRY.items() if sum(not p.optional for p in d.operands) == 2 or d.is_variadic)
# Operations that take other shapes, or attributes that have no default: tests/ir/test_every_operation.py has them.
NEEDS_MORE = frozenset({"atomic_add", "gather", "index_put", "index_put_", "index_select", "insert", "prelu"})


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_promotion_keeps_the_types(name: str, rules: str) -> None:
    definition, recorded = REGISTRY[name], 0
    for left, right in PAIRS:
        graph = Graph("pair", options={"promotion": rules})
        graph.parameters += [Value(tensor_type(d, (4, 4)), n) for d, n in ((left, "x"), (right, "y"))]
        with building(Builder(graph)):
            try:
                made = definition(*graph.parameters)
            except KernelError:
                continue
        graph.returns += made if isinstance(made, tuple) else [made]
        recorded += 1
        verify(promote(graph), f"promote of {name} on {left}, {right} under {rules}")
    assert bool(recorded) != (name in NEEDS_MORE)
