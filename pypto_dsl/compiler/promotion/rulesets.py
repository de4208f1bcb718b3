"""The promotion rule sets by name: pypto (the default), pypto-strict, ttnn, tf-all, tf-safe, jax (with jax-x32) and jax-strict."""
from __future__ import annotations

import difflib

from pypto_dsl.compiler.dtypes import BOOL, F32, F64, I32, I64
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.promotion import result_rules
from pypto_dsl.compiler.promotion.rules import LeftRules, RuleSet
from pypto_dsl.compiler.span import Span

DEFAULT = "pypto"
_WIDE = {"bool": BOOL, "int": I64, "float": F64}
_LATTICE_LAWS = frozenset({"total", "commutative", "associative", "value-associative", "value-associative-strong"})
_PARTIAL_LAWS = frozenset({"commutative", "value-associative", "value-associative-strong"})

RULE_SETS: dict[str, RuleSet] = {
    rules.name: rules
    for rules in (
        # A weak float on an integer tensor is FP32 at once, so (i8 + 1.5) + f16 is FP32 and i8 + (1.5 + f16) is FP16.
        RuleSet("pypto", frozenset({"commutative", "value-associative-strong"}), result_rules.PYPTO),
        RuleSet("pypto-strict", _PARTIAL_LAWS | {"associative"}, result_rules.PYPTO_STRICT, pow_table="pypto",
                in_place_pairs=frozenset({("axpy_", "f32", "f16")})),
        LeftRules("ttnn", frozenset({"associative", "value-associative", "value-associative-strong"}), result_rules.TTNN),
        RuleSet("tf-all", _LATTICE_LAWS, result_rules.TF, scalar_int=I32),
        RuleSet("tf-safe", _PARTIAL_LAWS, result_rules.TF, scalar_int=I32),
        RuleSet("jax", _LATTICE_LAWS, result_rules.JAX, defaults=_WIDE, scalar_int=I64),
        RuleSet("jax-x32", _LATTICE_LAWS, result_rules.JAX_X32, defaults={"bool": BOOL, "int": I32, "float": F32}, scalar_int=I32),
        RuleSet("jax-strict", _PARTIAL_LAWS | {"associative"}, result_rules.JAX, defaults=_WIDE, scalar_int=I64),
    )
}


def rule_set(name: str = DEFAULT, span: Span | None = None) -> RuleSet:
    """The rule set called ``name``. Raises KernelError (PT207) for an unknown name, with the nearest known one, at ``span``."""
    found = RULE_SETS.get(name) if isinstance(name, str) else None
    if found is not None:
        return found
    near = difflib.get_close_matches(str(name), RULE_SETS, 1)
    raise error("PT207", f"there are no promotion rules called `{name}`", span,
                help=f'promotion="{near[0]}"' if near else f"one of {', '.join(RULE_SETS)}", ruleset=str(name))
