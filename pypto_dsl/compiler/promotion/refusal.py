"""PromotionError: the refusal of a dtype combination, with its parts as fields so that nobody has to match prose."""
from __future__ import annotations

from typing import Any

from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.errors import Diagnostic, KernelError, Label, advice
from pypto_dsl.compiler.promotion.atype import AType
from pypto_dsl.compiler.span import Span

NO_TYPE = "PT201"       # a Python or NumPy value without a dtype here
NO_JOIN = "PT202"       # the rule set has no common dtype for the operands
WRONG_KIND = "PT203"    # an operation does not take an operand of this kind
NO_FIT = "PT204"        # a Python scalar outside the dtype it lands on
DESTINATION = "PT205"   # an in-place write would change the destination's dtype
TOO_WIDE = "PT206"      # a strong 64-bit type on a target without one


class PromotionError(KernelError, TypeError):
    """A combination of dtypes that a rule set refuses.

    ``op`` is the operation's name, ``lhs`` and ``rhs`` the operand types (``rhs`` is None for a single operand), ``ruleset`` the rule
    set's name, ``reason`` why, ``candidates`` the dtypes that could have been meant (several minimal upper bounds, or the join a mask
    refused), ``fixes`` at most two remedies spelled as code. It is a TypeError; operators must let it pass and
    never turn it into NotImplemented, or NumPy would take over.
    """

    def __init__(self, code: str, op: str, lhs: AType, rhs: AType | None, ruleset: str, reason: str,
                 candidates: tuple[str, ...] = (), fixes: tuple[str, ...] = (), span: Span | None = None, label: str = "",
                 others: tuple[Label, ...] = ()) -> None:
        pair = lhs.node if rhs is None else f"{lhs.node} and {rhs.node}"
        origins = tuple(f"{a.node} is the type of {a.origin}" for a in (lhs, rhs) if a is not None and a.origin)
        fields: dict[str, Any] = {"op": op, "lhs": lhs.node, "rhs": rhs.node if rhs else None, "ruleset": ruleset, "reason": reason,
                                  "candidates": list(candidates)}
        super().__init__(Diagnostic(
            code, f"{op} of {pair} under promotion rules `{ruleset}`: {reason}", Label(span, label) if span else None, others,
            origins, " or ".join(fixes[:2]) or advice(code), None, "error", fields))
        self.op, self.lhs, self.rhs, self.ruleset, self.reason = op, lhs, rhs, ruleset, reason
        self.candidates, self.fixes = candidates, fixes[:2]

    def located(self, span: Span | None, label: str = "", others: tuple[Label, ...] = ()) -> PromotionError:
        """The same refusal with the place in the user's source."""
        return PromotionError(self.code, self.op, self.lhs, self.rhs, self.ruleset, self.reason, self.candidates, self.fixes,
                              span, label, others)


def cast_fix(name: str, node: str) -> str:
    """The remedy ``pypto.cast(name, pypto.DT_...)``; block formats and complex nodes have no such constant and give "".

    A name that is no code ("operand 1") is written ``operand_1``; the language's floor puts the user's text there.
    """
    dtype = BY_NAME.get(node.removesuffix("*"))
    if dtype is None or dtype.kind == "block":
        return ""
    return f"pypto.cast({name.replace(' ', '_')}, pypto.{dtype.pypto})"
