"""The parts of an OpTyping beyond the result: casts, landings, compute dtypes, provenance and losses, each pinned by value."""
from __future__ import annotations

import pytest

from pypto_dsl.compiler.dtypes import ALL, BF16, BOOL, F8E4M3, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64
from pypto_dsl.compiler.promotion import PromotionError, assign, check_scalar, in_place, result_type, rule_set, strong, weak
from pypto_dsl.compiler.promotion.families import accumulator
from pypto_dsl.compiler.promotion.scalars import inexact_beyond

PYPTO, TTNN, JAX, TF = rule_set("pypto"), rule_set("ttnn"), rule_set("jax"), rule_set("tf-all")
INT, FLOAT = PYPTO.infer(2), PYPTO.infer(2.5)


def test_accumulators():
    wanted = {BOOL: I32, I8: I32, I16: I32, I32: I32, I64: I64, U8: U32, U16: U32, U32: U32, U64: U64, F64: F64}
    assert {d: accumulator(d) for d in ALL} == {d: wanted.get(d, F32) for d in ALL}


def test_scalars_of_a_mixed_operation_land_on_the_join_and_are_cast_on():
    typing = result_type(PYPTO, "arithmetic", strong(F16), strong(I32), FLOAT)
    assert typing.operand_casts == (F32, F32, F32)
    assert typing.landings == (F32, F32, F16)
    assert (typing.compute, typing.result, typing.rounds_to, typing.forced_by) == (F32, strong(F16), F16, 0)


def test_matmul_casts():
    same = result_type(PYPTO, "matmul", strong(BF16), strong(BF16), strong(F32))
    assert (same.operand_casts, same.landings, same.rounds_to, same.forced_by, same.lossy) == ((BF16, BF16), (BF16, BF16), None, 0, ())
    mixed = result_type(PYPTO, "matmul", strong(I32), strong(BF16))
    assert (mixed.operand_casts, mixed.compute, mixed.rounds_to, mixed.forced_by) == ((F32, F32), F32, BF16, 1)
    assert [loss.exact_up_to for loss in mixed.lossy] == [256]
    small = result_type(PYPTO, "matmul", strong(I8), strong(I8))
    assert (small.operand_casts, small.compute, small.rounds_to) == ((I8, I8), I32, None)
    left = result_type(TTNN, "matmul", strong(BF16), strong(F32))
    assert (left.operand_casts, left.result, left.rounds_to) == ((F32, F32), strong(BF16), BF16)


def test_ldexp_casts():
    for integer in (I8, U8, I32, I64):
        typing = result_type(PYPTO, "ldexp", strong(BF16), strong(integer))
        assert (typing.operand_casts, typing.compute, typing.rounds_to) == ((BF16, integer), F32, None)
    scalar = result_type(PYPTO, "ldexp", strong(BF16), INT)
    assert (scalar.operand_casts, scalar.landings) == ((BF16, I32), (BF16, I32))
    same = result_type(PYPTO, "ldexp", strong(BF16), strong(BF16))
    assert (same.operand_casts, same.compute, same.rounds_to) == ((BF16, BF16), F32, None)
    real = result_type(PYPTO, "ldexp", strong(BF16), FLOAT)
    assert (real.operand_casts, real.landings, real.compute, real.rounds_to) == ((F32, F32), (F32, F32), F32, BF16)
    wide = result_type(PYPTO, "ldexp", strong(F32), strong(F64))
    assert (wide.operand_casts, wide.compute, wide.rounds_to) == ((F64, F64), F64, F32)
    weak_wide = result_type(JAX, "ldexp", strong(F32), JAX.infer(2.5))
    assert (weak_wide.operand_casts, weak_wide.compute) == ((F32, F32), F32)
    both = result_type(PYPTO, "ldexp", FLOAT, FLOAT)
    assert (both.operand_casts, both.result) == ((F32, F32), weak(F32))


def test_pow_casts_and_landings():
    assert result_type(PYPTO, "pow", strong(BF16), INT).operand_casts == (BF16, F32)
    lifted = result_type(PYPTO, "pow", strong(I32), FLOAT)
    assert (lifted.operand_casts, lifted.landings, lifted.compute, lifted.rounds_to) == ((F32, F32), (F32, F32), F32, None)
    assert [loss.exact_up_to for loss in lifted.lossy] == [2 ** 24]
    for base, landing in ((I8, I32), (I32, I32), (U32, I32), (I64, I64), (U64, U64)):
        typing = result_type(PYPTO, "pow", strong(base), INT)
        assert (typing.operand_casts, typing.landings, typing.compute) == ((base, landing), (base, landing), base)
    mixed = result_type(PYPTO, "pow", strong(I32), strong(F16))
    assert (mixed.operand_casts, mixed.compute, mixed.rounds_to) == ((F32, F32), F32, F16)


def test_logical_tests_each_operand():
    typing = result_type(PYPTO, "logical", strong(F16), strong(I8), op="logical_and")
    assert (typing.compute, typing.operand_casts, typing.landings, typing.rounds_to) == (BOOL, (BOOL, BOOL), (F16, I8), None)
    typing = result_type(TTNN, "logical", strong(BF16), strong(F32), op="logical_and")
    assert (typing.compute, typing.result, typing.rounds_to) == (BOOL, strong(BF16), BF16)


RUNNING = [
    ("pypto", dict.fromkeys((BOOL, I8, U8, I16, I32, I64), I64)), ("jax", {BOOL: I64}), ("jax-x32", {BOOL: I32}),
    ("ttnn", {}), ("tf-all", {}),
]


@pytest.mark.parametrize(("name", "results"), RUNNING)
def test_running_sums(name, results):
    for dtype in (BOOL, I8, U8, I16, I32, I64, F16, F32):
        assert result_type(rule_set(name), "scan", strong(dtype)).result == strong(results.get(dtype, dtype))


def test_sums_of_weak_values():
    assert result_type(PYPTO, "sum", INT).result == INT
    assert result_type(JAX, "sum", JAX.infer(1)).result == strong(I64)
    assert result_type(JAX, "sum", weak(I32)).result == strong(I64)
    assert result_type(JAX, "sum", JAX.infer(1.5)).result == weak(F64)
    assert result_type(TF, "sum", TF.infer(1)).result == weak(I32)


@pytest.mark.parametrize(("family", "types", "rule", "forced"), [
    ("arithmetic", (strong(F32), strong(F16)), "the operands' join", 0),
    ("arithmetic", (strong(F16), strong(BF16)), "the operands' join", None),
    ("divide", (strong(F16), strong(F16)), "the operands' join", 0),
    ("divide", (strong(I32), strong(I32)), "integers divide into a float", None),
    ("float_unary", (strong(F16),), "the operand's dtype", 0),
    ("float_unary", (strong(I32),), "an integer operand becomes a float", None),
    ("mean", (strong(F16),), "the operand's dtype", 0),
    ("mean", (strong(I32),), "a mean of integers is a float", None),
    ("sum", (strong(I32),), "the operand's dtype", 0),
    ("sum", (strong(I8),), "sums of small integers widen", None),
    ("scan", (strong(I8),), "running sums of integers widen", None),
    ("pow", (strong(I8), FLOAT), "the base keeps its dtype under a scalar exponent", 0),
    ("pow", (strong(I32), FLOAT), "the join of the base and a scalar exponent", None),
    ("where", (strong(BOOL), strong(F16), strong(F32)), "the values' join", 2),
    ("index", (strong(F16),), "an index is INT32", None),
    ("ldexp", (strong(F16), strong(I8)), "the first operand's dtype", 0),
])
def test_what_decided(family, types, rule, forced):
    typing = result_type(PYPTO, family, *types)
    assert (typing.rule, typing.forced_by) == (rule, forced)


def test_losses_are_counted_for_tensors_only():
    assert result_type(PYPTO, "where", strong(BOOL), strong(I32), strong(F16)).lossy[0].operand == 1
    assert result_type(PYPTO, "where", strong(BOOL), INT, strong(F16)).lossy == ()
    assert result_type(PYPTO, "arithmetic", INT, strong(F16)).lossy == ()
    written = assign(PYPTO, strong(F16), strong(I32))
    assert [(loss.operand, loss.source, loss.target, loss.exact_up_to) for loss in written.lossy] == [(1, I32, F16, 2048)]
    assert assign(PYPTO, strong(F16), INT).lossy == ()


def test_the_join_remembers_who_forced_it():
    assert PYPTO.join(strong(F32, "`x`"), strong(F16, "`y`")).origin == "`x`"
    assert PYPTO.join(strong(F16, "`x`"), strong(F32, "`y`")).origin == "`y`"
    assert PYPTO.join(strong(F16, "`x`"), strong(BF16, "`y`")).origin == ""


def test_names_reach_the_remedies_of_every_step():
    with pytest.raises(PromotionError) as caught:
        PYPTO.fold([strong(I32), strong(I8)], names=("a", "b"))
    assert caught.value.fixes[0] == "pypto.cast(b, pypto.DT_INT32)"
    with pytest.raises(PromotionError) as caught:
        PYPTO.fold([strong(I32), strong(I32), strong(I8)], names=("a", "b", "c"))
    assert caught.value.fixes[0] == "pypto.cast(c, pypto.DT_INT32)"
    with pytest.raises(PromotionError) as caught:
        PYPTO.fold([strong(I8), strong(I8), strong(I32)], names=("a", "b", "c"))
    assert caught.value.fixes[0] == "pypto.cast(lhs, pypto.DT_INT32)"
    with pytest.raises(PromotionError) as caught:
        result_type(PYPTO, "where", strong(BOOL), strong(I32), strong(I8), names=("m", "a", "b"))
    assert caught.value.fixes[0] == "pypto.cast(b, pypto.DT_INT32)"


def test_in_place_refusals_name_the_value():
    with pytest.raises(PromotionError) as caught:
        in_place(PYPTO, "arithmetic", strong(F16), strong(F32), op="add_", names=("out", "v"))
    assert (caught.value.lhs, caught.value.rhs, caught.value.fixes) == (strong(F16), strong(F32), ("pypto.cast(v, pypto.DT_FP16)",))
    with pytest.raises(PromotionError) as caught:
        assign(PYPTO, strong(F16), strong(F32), names=("out",))
    assert caught.value.fixes == ("pypto.cast(value, pypto.DT_FP16)",)


def test_storage_refusals_name_the_cast():
    with pytest.raises(PromotionError) as caught:
        TF.storage(strong(F64), frozenset({F32, I32}))
    assert caught.value.fixes == ("pypto.cast(x, pypto.DT_FP32)",)
    with pytest.raises(PromotionError) as caught:
        TF.storage(strong(BOOL), frozenset({F32}))
    assert caught.value.fixes == ()


@pytest.mark.parametrize(("value", "landing", "lhs"), [(300, I8, weak(I32)), (1.5, I8, weak(F32))])
def test_a_misfit_says_what_the_scalar_is(value, landing, lhs):
    with pytest.raises(PromotionError) as caught:
        check_scalar(PYPTO, value, landing)
    assert caught.value.lhs == lhs
    assert caught.value.lhs.origin == f"Python {type(value).__name__} {value}"


def test_reasons_of_weak_pairs_do_not_speak_of_two_integers():
    with pytest.raises(PromotionError, match="they have no common dtype"):
        rule_set("pypto-strict").join(strong(BOOL), INT)


@pytest.mark.parametrize(("name", "divided", "rooted", "averaged"), [
    ("pypto", "f32*", "f32*", "f32*"), ("ttnn", "f32*", "f32*", "f32*"), ("jax", "f64*", "f64*", "f64*"),
    ("jax-x32", "f32*", "f32*", "f32*"),
    ("tf-all", "f64*", "f32*", "f32*"), ("tf-safe", "f64*", "f32*", "f32*")])
def test_weak_integers_become_weak_floats(name, divided, rooted, averaged):
    rules = rule_set(name)
    one = rules.infer(1)
    assert result_type(rules, "divide", one, one).result.node == divided
    assert result_type(rules, "float_unary", one).result.node == rooted
    assert result_type(rules, "mean", one).result.node == averaged


@pytest.mark.parametrize("name", ["jax", "jax-x32", "jax-strict"])
def test_jax_pow_of_bool_with_any_weak_int_is_i32(name):
    for exponent in (weak(I32), rule_set(name).infer(2)):
        assert result_type(rule_set(name), "pow", strong(BOOL), exponent).result == strong(I32)


def test_a_remedy_casts_the_storage_float():
    for lhs, rhs in ((F8E4M3, F32), (F32, F8E4M3)):
        with pytest.raises(PromotionError) as caught:
            PYPTO.join(strong(lhs), strong(rhs), names=("a", "b"))
        assert caught.value.fixes[0] == f"pypto.cast({'a' if lhs is F8E4M3 else 'b'}, pypto.DT_FP32)"


def test_only_an_integer_into_a_float_has_a_bound():
    assert inexact_beyond(I32, F32) == 2 ** 24
    assert inexact_beyond(F32, F16) is None
    assert inexact_beyond(I32, I8) is None
    assert inexact_beyond(I16, F32) is None
