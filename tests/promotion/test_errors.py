"""PromotionError: its fields, its one message, its remedies, and that the remedies work."""
from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from pypto_dsl.compiler.dtypes import ALL, BF16, BY_PYPTO, F16, F32, F64, I8, I32, U8
from pypto_dsl.compiler.errors import KernelError, Label
from pypto_dsl.compiler.promotion import RULE_SETS, PromotionError, result_type, rule_set, strong
from pypto_dsl.compiler.promotion.atype import of_node
from pypto_dsl.compiler.span import Span


def refusal(rules, lhs, rhs, **more):
    with pytest.raises(PromotionError) as caught:
        rule_set(rules).join(lhs, rhs, **more)
    return caught.value


def test_fields_of_the_four_reasons():
    """No upper bound unique; not an operand's type; bits that do not fit; a type the rules do not know."""
    several = refusal("pypto", strong(I8), strong(I32), op="add")
    assert (several.code, several.op, several.lhs, several.rhs, several.ruleset) == ("PT202", "add", strong(I8), strong(I32), "pypto")
    assert set(several.candidates) == {"bf16", "f16"}
    neither = refusal("tf-safe", strong(BF16), strong(F16), op="mul")
    assert (neither.reason, neither.candidates) == ("the result type f32 is neither operand's", ("f32",))
    bits = refusal("tf-safe", strong(I32), strong(F32))
    assert (bits.reason, bits.candidates) == ("i32 has 31 magnitude bits, f32 keeps 24", ("f32",))
    foreign = refusal("tf-all", of_node("f8e4m3"), strong(F32))
    assert (foreign.reason, foreign.candidates) == ("f8e4m3 is no type of these rules", ())


def test_message_names_everything():
    scalar = rule_set("tf-safe").infer(1.5)
    refused = refusal("tf-safe", strong(I32, "`x`"), scalar, op="add", names=("x", "1.5"))
    assert refused.diagnostic.message == "add of i32 and f32* under promotion rules `tf-safe`: the result type f64* is neither operand's"
    assert refused.diagnostic.notes == ("i32 is the type of `x`", "f32* is the type of Python float 1.5")
    assert refused.fixes == ("pypto.cast(x, pypto.DT_DOUBLE)", '@pypto.jit(promotion="pypto")')
    assert str(refused).startswith("error[PT202]: add of i32 and f32*")
    assert refused.diagnostic.json()["fields"] == {"op": "add", "lhs": "i32", "rhs": "f32*", "ruleset": "tf-safe",
                                                   "reason": refused.reason, "candidates": ["f64*"]}


def test_it_is_a_kernel_error_and_a_type_error():
    refused = refusal("pypto", strong(I8), strong(U8))
    assert isinstance(refused, KernelError) and isinstance(refused, TypeError)


def test_located_adds_the_place_and_keeps_the_fields():
    refused = refusal("pypto", strong(I8), strong(U8), op="add", names=("x", "y"))
    other = Label(Span("k.py", 3, 5), "made here")
    placed = refused.located(Span("k.py", 14, 9, 14, 14), "i8 + u8", (other,))
    assert placed.diagnostic.primary == Label(Span("k.py", 14, 9, 14, 14), "i8 + u8")
    assert placed.diagnostic.others == (other,)
    assert (placed.reason, placed.fixes, placed.diagnostic.fields) == (refused.reason, refused.fixes, refused.diagnostic.fields)


@pytest.mark.parametrize("name", RULE_SETS)
def test_every_refusal_has_a_reason_and_working_remedies(name):
    """Each cast that a refusal proposes makes the pair join, each rule set that it proposes has a join."""
    rules = rule_set(name)
    types = [*map(strong, ALL), rules.infer(1), rules.infer(1.0)]
    for lhs, rhs in product(types, types):
        try:
            rules.join(lhs, rhs)
        except PromotionError as refused:
            assert refused.reason and len(refused.fixes) <= 2
            for fix in refused.fixes:
                if (other := re.fullmatch(r'@pypto\.jit\(promotion="(.+)"\)', fix)) is not None:
                    rule_set(other[1]).join(lhs, rhs)
                    continue
                cast = re.fullmatch(r"pypto\.cast\((lhs|rhs), pypto\.(\w+)\)", fix)
                assert cast, fix
                target = strong(BY_PYPTO[cast[2]])
                rules.join(*((target, rhs) if cast[1] == "lhs" else (lhs, target)))


def test_the_failing_step_of_a_fold_is_named():
    with pytest.raises(PromotionError) as caught:
        rule_set("pypto").fold([strong(I8), strong(I8), strong(I32)], op="concat", names=("a", "b", "c"))
    assert caught.value.lhs.described() == "i8 from operands 1 to 2 joined"
    assert caught.value.rhs == strong(I32)


def test_a_numpy_scalar_says_that_it_is_strong():
    refused = refusal("pypto", strong(I32), rule_set().infer(np.int64(2)), op="pow")
    assert refused.rhs.origin == "NumPy scalar int64 2"


def test_unknown_rule_set():
    with pytest.raises(KernelError) as caught:
        rule_set("tf_safe")
    assert caught.value.code == "PT207"
    assert caught.value.diagnostic.help == 'promotion="tf-safe"'


def test_lossy_promotions_carry_the_exact_bound():
    for target, bound in ((F16, 2 ** 11), (BF16, 2 ** 8), (F32, 2 ** 24)):
        typing = result_type(rule_set("pypto"), "arithmetic", strong(I32), strong(target))
        assert [(loss.operand, loss.source, loss.target, loss.exact_up_to) for loss in typing.lossy] == [(0, I32, target, bound)]
    assert result_type(rule_set("pypto"), "arithmetic", strong(I32), strong(F64)).lossy == ()
    assert result_type(rule_set("pypto"), "arithmetic", strong(I8), strong(F16)).lossy == ()
