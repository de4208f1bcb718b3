"""Type promotion: seven rule sets over closed join tables, result rules per family of operations, and their explanations."""
from __future__ import annotations

from pypto_dsl.compiler.promotion.atype import AType, strong, weak
from pypto_dsl.compiler.promotion.families import LossyCast, OpTyping, assign, check_scalar, in_place, result_type
from pypto_dsl.compiler.promotion.refusal import PromotionError
from pypto_dsl.compiler.promotion.rules import RuleSet
from pypto_dsl.compiler.promotion.rulesets import DEFAULT, RULE_SETS, rule_set

__all__ = ["DEFAULT", "RULE_SETS", "AType", "LossyCast", "OpTyping", "PromotionError", "RuleSet", "assign", "check_scalar", "in_place",
           "result_type", "rule_set", "strong", "weak"]
