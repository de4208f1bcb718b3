"""Dtype rules of operations: each asks the graph's promotion rule set for its family's typing."""
from __future__ import annotations

from dataclasses import replace
from typing import cast as typed

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.graph import Value
from pypto_dsl.compiler.ops.definition import Call, TypeRule, Typing
from pypto_dsl.compiler.promotion.atype import AType, strong
from pypto_dsl.compiler.promotion.families import OpTyping, result_type
from pypto_dsl.compiler.promotion.refusal import PromotionError
from pypto_dsl.compiler.promotion.rulesets import rule_set


def atype(value: Value) -> AType:
    """The abstract type of a Value, with where it came from for messages."""
    made = value.op
    if made is not None and made.opcode == "constant":
        number = made.attributes["value"]
        return AType(value.type.dtype, value.type.weak, f"{type(number).__name__} {number!r}")
    return AType(value.type.dtype, value.type.weak, f"`{value.name}`" if value.name else "")


def family(name: str) -> TypeRule:
    """The rule of a family of `promotion.families.FAMILIES`, over all tensor operands."""

    def rule(call: Call) -> Typing:
        present = [o for o in call.operands if o is not None]
        try:
            typing = result_type(rule_set(call.graph.rules), name, *map(atype, present), op=call.name,
                                 names=[o.name or f"operand {i}" for i, o in enumerate(present, 1)])
        except PromotionError as refused:
            raise refused.located(call.span) from None
        return Typing(typing, (typing.result,))

    return rule


arithmetic = family("arithmetic")
compare = family("compare")
logical = family("logical")
predicate = family("predicate")
divide = family("divide")
pow = family("pow")
bitwise = family("bitwise")
keep = family("keep")
where = family("where")
concat = family("concat")
accumulate = family("sum")
scan = family("scan")
mean = family("mean")
index = family("index")
ldexp = family("ldexp")


def float_unary(call: Call) -> Typing:
    """The first operand decides (integers become floats); further operands (gamma, beta) join it."""
    present = [o for o in call.operands if o is not None]
    rules = rule_set(call.graph.rules)
    names = [o.name or f"operand {i}" for i, o in enumerate(present, 1)]
    try:
        joined = rules.fold([atype(o) for o in present], op=call.name, names=names)
        typing = result_type(rules, "float_unary", joined, op=call.name, names=names)
    except PromotionError as refused:
        raise refused.located(call.span) from None
    casts = typing.operand_casts * len(present)
    if any(o.type.dtype != typing.operand_casts[0] for o in present) and typing.compute != typing.operand_casts[0]:
        casts = (typing.compute,) * len(present)  # mixed operands compute from their exact values and round once
    return Typing(replace(typing, operand_casts=casts, landings=casts), (typing.result,))


def shift(call: Call) -> Typing:
    """Integers only; the result has the first operand's dtype, whatever the count's."""
    typing = bitwise(call)
    first = typed(Value, call.operands[0]).type
    if typing.results[0].weak or first.weak:
        return typing
    kept = (first.dtype,) * len(typing.casts)
    return Typing(replace(typing.typing, operand_casts=kept, landings=kept, compute=first.dtype, result=strong(first.dtype)),
                  (strong(first.dtype),))


def declared(call: Call) -> Typing:
    """The `dtype` attribute, or for constants the dtype they were recorded with."""
    dtype = call.attributes.get("dtype")
    if dtype is None:
        raise call.refuse("PT111", f"{call.name} needs a dtype")
    result = strong(typed(DType, dtype))
    casts = tuple(o.type.dtype for o in call.operands if o is not None)
    return Typing(OpTyping(result.dtype, casts, result, casts, "the declared dtype"), (result,))


def matmul(call: Call) -> Typing:
    """The operands' join accumulated in 32 bits; `out_dtype` when given."""
    typing = family("matmul")(call)
    out = call.attributes.get("out_dtype")
    if out is None:
        return typing
    result = strong(typed(DType, out))
    return Typing(replace(typing.typing, result=result), (result,))
