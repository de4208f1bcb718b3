"""Result rules per family: the recorded facts of TensorFlow and JAX, and the decisions for pypto and ttnn line by line."""
from __future__ import annotations

import re

import pytest

from pypto_dsl.compiler.dtypes import (
    ALL,
    BF16,
    BFP4,
    BFP8,
    BOOL,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
)
from pypto_dsl.compiler.promotion import RULE_SETS, PromotionError, assign, in_place, result_type, rule_set, strong, weak
from pypto_dsl.compiler.promotion.atype import of_node
from pypto_dsl.compiler.promotion.families import FAMILIES, compute_dtype

INTEGERS = [d for d in ALL if d.is_integer]
PYPTO, STRICT, TTNN = rule_set("pypto"), rule_set("pypto-strict"), rule_set("ttnn")
WEAK_INT, WEAK_FLOAT = PYPTO.infer(2), PYPTO.infer(2.5)
T = r"(b|(?:bf|[fiu])\d+\*?)"

# Recorded expressions: a pattern, the family, and the operation's operands (py2 is the Python int 2). One pattern stands for all dtypes.
TF_FACTS = [
    (rf"tnp\.(?:sum|prod)\({T}\)", "sum"), (r"tf\.reduce_sum\((f\d+\*?|bf16|i32\*|i64\*|u32|u64|i32|i64)\)", "sum"),
    (rf"tnp\.(?:mean|var)\({T}\)", "mean"), (r"tf\.reduce_mean\((bf16|f\d+\*?)\)", "mean"),
    (rf"tnp\.sqrt\((?!bf16){T}\)", "float_unary"), (rf"{T}/{T}", "divide"), (rf"{T}//{T}", "arithmetic"), (rf"{T}%{T}", "arithmetic"),
    (rf"{T}\*\*{T}", "pow"), (rf"{T}\*\*py([\d.]+)", "pow"), (rf"py([\d.]+)\*\*{T}", "pow"), (rf"{T}=={T}", "compare"),
    (rf"{T}&{T}", "bitwise"), (r"(i32)&py(1)", "bitwise"), (rf"tf\.maximum\({T},{T}\)", "arithmetic"),
    (rf"tnp\.concatenate\(\[{T},{T}\]\)", "concat"), (rf"tnp\.where\({T},{T},{T}\)", "where"),
    (r"tf\.where\((b),(f16),py(1\.0)\)", "where"), (rf"tf\.cast\({T},{T}\)", "cast"),
]
# What TensorFlow refuses or gives for reasons that are no promotion rule; each is checked to be really recorded so.
TF_KERNELS = {
    **{f"{u}**py2": "no kernel of pow for unsigned integers" for u in ("u8", "u16", "u32", "u64")},
    "i32&i8": "bitwise does not promote in TensorFlow; here it does, as in JAX",
    "b/b": "", "f32&f32": "",
}
JAX_FACTS = [
    (rf"jnp\.(?:sum|prod)\({T}\)", "sum"), (rf"jnp\.(?:mean|var)\({T}\)", "mean"), (rf"jnp\.sqrt\({T}\)", "float_unary"),
    (rf"jnp\.abs\({T}\)", "keep"), (rf"jnp\.negative\((?!b\)){T}\)", "keep"), (rf"jnp\.cumsum\({T}\)", "scan"), (rf"{T}/{T}", "divide"),
    (rf"{T}\*\*py(2|0\.5)", "pow"), (r"((?:bf|f)\d+)\*\*py(-1)", "pow"), (rf"{T}\*\*{T}", "pow"), (rf"{T}<{T}", "compare"),
    (rf"jnp\.ldexp\(((?:bf|f)\d+),{T}\)", "ldexp"), (rf"{T}&{T}", "bitwise"), (rf"jnp\.where\({T},{T},{T}\)", "where"),
]
COMPLEX = re.compile(r"\bc(64|128)\b|c(64|128)\*")


def operand(rules, text, to_node):
    if re.fullmatch(r"-?\d+", text):
        return rules.infer(int(text))
    if re.fullmatch(r"-?\d+\.\d+", text):
        return rules.infer(float(text))
    return of_node(to_node(text))


def check_facts(rules, facts, patterns, to_node, excluded=()):
    checked = 0
    for text, expected in facts.items():
        if COMPLEX.search(text) or (excluded and excluded.get(text)):
            continue
        for pattern, family in patterns:
            match = re.fullmatch(pattern, text)
            if match is None:
                continue
            types = [operand(rules, group, to_node) for group in match.groups()]
            wanted = to_node(expected)
            if wanted is None:
                with pytest.raises(PromotionError):
                    result_type(rules, family, *types)
            else:
                assert result_type(rules, family, *types).result.node == wanted, (rules.name, text)
            checked += 1
            break
    return checked


@pytest.mark.parametrize("mode", ["all", "safe"])
def test_recorded_results_of_tensorflow(tf, to_node, mode):
    facts = tf.raw["facts"][mode]
    for text, why in TF_KERNELS.items():
        assert not why or facts[text].startswith("!"), text
    assert check_facts(rule_set(f"tf-{mode}"), facts, TF_FACTS, to_node, TF_KERNELS) >= 140


@pytest.mark.parametrize(("name", "key", "least"), [
    ("jax", "standard_x64", 190), ("jax-strict", "strict_x64", 190), ("jax-x32", "standard_x32", 150)])
def test_recorded_results_of_jax(jax, to_node, name, key, least):
    facts = jax.raw["facts"][key]
    assert check_facts(rule_set(name), facts, JAX_FACTS, to_node) >= least
    rules = rule_set(name)
    assert result_type(rules, "sum", rules.infer(1)).result.node == to_node(facts["jnp.sum(weak i)"])
    assert result_type(rules, "float_unary", rules.infer(1)).result.node == to_node(facts["jnp.sin(weak int)"])
    assert result_type(rules, "keep", rules.infer(5)).result.node == to_node(facts["-jnp.asarray(5)"])


def test_recorded_chains_of_the_tensorflow_guide():
    rules = rule_set("tf-all")
    def fold(*names):
        return rules.fold([of_node(n) for n in names]).node
    assert fold("i32*", "i32", "f32*") == "f64*"
    assert fold("f16", "i8", "i32*") == "f16"
    assert fold("i8", "u32") == "i64"
    assert fold("i64", "f16") == "f16"
    assert fold("f32*", "f32*", "f16") == "f16"
    assert fold("i8", "f32*", "f16") == "f16"


# ---- pypto --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [BOOL, *INTEGERS], ids=str)
def test_integers_become_fp32_where_only_a_float_makes_sense(dtype):
    for family, types in (("divide", (strong(dtype), strong(dtype))), ("float_unary", (strong(dtype),)), ("mean", (strong(dtype),))):
        assert result_type(PYPTO, family, *types).result == strong(F32), family


@pytest.mark.parametrize(("dtype", "result"), [
    (BOOL, I32), (I8, I32), (U8, U32), (I16, I16), (I32, I32), (U16, U16), (U32, U32), (I64, I64),
    (U64, U64), (F16, F16), (BF16, BF16), (F32, F32), (F64, F64)], ids=str)
def test_sums(dtype, result):
    for family in ("sum", "prod"):
        assert result_type(PYPTO, family, strong(dtype)).result == strong(result)


@pytest.mark.parametrize("name", RULE_SETS)
def test_sums_accumulate_in_32_bits_or_more(name):
    for dtype in ALL:
        typing = result_type(rule_set(name), "sum", strong(dtype))
        assert typing.compute.bits >= 32
        assert typing.compute.is_float == typing.result.dtype.is_float


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_a_float_scalar_on_an_integer_tensor_is_fp32(dtype):
    assert PYPTO.join(strong(dtype), WEAK_FLOAT) == strong(F32)
    assert PYPTO.join(WEAK_FLOAT, strong(dtype)) == strong(F32)
    wanted = dtype if dtype in (I8, U8, I16) else F32
    assert result_type(PYPTO, "pow", strong(dtype), WEAK_FLOAT).result == strong(wanted)
    assert result_type(PYPTO, "pow", strong(dtype), PYPTO.infer(0.0)).result == strong(wanted)
    assert result_type(PYPTO, "pow", strong(dtype), WEAK_INT).result == strong(dtype)


def test_bool_with_scalars():
    assert PYPTO.join(strong(BOOL), WEAK_INT) == strong(I32)
    assert PYPTO.join(strong(BOOL), WEAK_FLOAT) == strong(F32)
    assert PYPTO.join(strong(BOOL), strong(BOOL)) == strong(BOOL)


@pytest.mark.parametrize("integer", INTEGERS, ids=str)
@pytest.mark.parametrize("floating", [F16, BF16, F32, F64], ids=str)
def test_any_integer_with_a_float_is_the_float(integer, floating):
    typing = result_type(PYPTO, "arithmetic", strong(integer), strong(floating), op="mul")
    assert typing.result == strong(floating)
    assert typing.forced_by == 1
    # Never through the 16-bit dtype: the integer is exact, or rounded once, in the compute dtype.
    assert typing.operand_casts == (compute_dtype(floating),) * 2
    assert typing.rounds_to == (floating if floating.bits == 16 else None)
    assert bool(typing.lossy) == (integer.mantissa > floating.mantissa)
    if typing.lossy:
        assert typing.lossy[0].exact_up_to == 2 ** floating.mantissa


@pytest.mark.parametrize("a", INTEGERS, ids=str)
@pytest.mark.parametrize("b", INTEGERS, ids=str)
def test_two_different_integers_are_refused_with_the_cast(a, b):
    if a == b:
        assert PYPTO.join(strong(a), strong(b)) == strong(a)
        return
    with pytest.raises(PromotionError) as caught:
        PYPTO.join(strong(a), strong(b), op="add", names=("x", "y"))
    refused = caught.value
    assert refused.code == "PT202"
    assert set(refused.candidates) == {"bf16", "f16"}
    assert refused.fixes[0].startswith("pypto.cast(")


@pytest.mark.parametrize("narrow", [F8E4M3, F8E5M2, BFP8, BFP4], ids=str)
@pytest.mark.parametrize("name", RULE_SETS)
def test_storage_floats_join_with_themselves_and_scalars_only(name, narrow):
    rules = rule_set(name)
    assert rules.join(strong(narrow), strong(narrow)) == strong(narrow)
    assert rules.join(strong(narrow), rules.infer(2.0)) == strong(narrow)
    assert rules.join(strong(narrow), rules.infer(2)) == strong(narrow)
    for other in ALL:
        if other != narrow and not (name == "ttnn" and narrow.kind == "block"):
            with pytest.raises(PromotionError):
                rules.join(strong(narrow), strong(other))


def test_16_bit_arithmetic_computes_in_fp32_and_rounds_once():
    for dtype in (F16, BF16):
        typing = result_type(PYPTO, "arithmetic", strong(dtype), strong(dtype))
        assert (typing.compute, typing.operand_casts, typing.result, typing.rounds_to) == (F32, (dtype, dtype), strong(dtype), None)
    typing = result_type(PYPTO, "arithmetic", strong(F16), strong(BF16))
    assert (typing.compute, typing.operand_casts, typing.result) == (F32, (F32, F32), strong(F32))


def test_scalars_land_on_the_tensors_dtype():
    typing = result_type(PYPTO, "arithmetic", strong(F16), WEAK_FLOAT)
    assert (typing.operand_casts, typing.landings) == ((F16, F16), (F16, F16))
    typing = result_type(PYPTO, "arithmetic", strong(U8), WEAK_INT)
    assert typing.landings[1] == U8
    # A scalar exponent is not rounded to 16 bits, and on an integer base it is an INT32.
    assert result_type(PYPTO, "pow", strong(F16), WEAK_INT).landings[1] == F32
    assert result_type(PYPTO, "pow", strong(I8), WEAK_INT).landings[1] == I32


def test_pow_of_small_integers_with_a_float_exponent():
    typing = result_type(PYPTO, "pow", strong(I8), WEAK_FLOAT)
    assert (typing.compute, typing.operand_casts, typing.rounds_to, typing.result) == (F32, (F32, F32), I8, strong(I8))


def test_pow_with_a_scalar_base():
    assert result_type(PYPTO, "pow", WEAK_INT, strong(I32)).result == strong(I32)
    assert result_type(PYPTO, "pow", WEAK_INT, strong(F16)).result == strong(F16)
    assert result_type(PYPTO, "pow", WEAK_FLOAT, strong(I32)).result == strong(F32)
    assert result_type(PYPTO, "pow", WEAK_INT, WEAK_INT).result == weak(I32)


@pytest.mark.parametrize("name", [n for n in RULE_SETS if n != "ttnn"])
def test_comparisons_and_predicates_are_bool(name):
    rules = rule_set(name)
    assert result_type(rules, "compare", strong(F16), strong(F16)).result == strong(BOOL)
    assert result_type(rules, "predicate", strong(F16)).result == strong(BOOL)
    assert result_type(rules, "logical", strong(F16), strong(I8)).result == strong(BOOL)
    assert result_type(rules, "index", strong(F16)).result == strong(I32)


def test_compare_is_done_in_the_join():
    typing = result_type(PYPTO, "compare", strong(I32), strong(F16))
    assert (typing.operand_casts, typing.result, typing.rounds_to) == ((F32, F32), strong(BOOL), None)


@pytest.mark.parametrize("name", RULE_SETS)
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_cast_is_always_strong(name, dtype):
    assert result_type(rule_set(name), "cast", rule_set(name).infer(1), strong(dtype)).result == strong(dtype)


def test_bitwise_takes_integers_and_bool():
    assert result_type(PYPTO, "bitwise", strong(I32), WEAK_INT).result == strong(I32)
    assert result_type(PYPTO, "bitwise", strong(BOOL), strong(BOOL)).result == strong(BOOL)
    for types in ((strong(F32), strong(F32)), (strong(I32), WEAK_FLOAT)):
        with pytest.raises(PromotionError) as caught:
            result_type(PYPTO, "bitwise", *types, op="bitwise_and")
        assert caught.value.code == "PT203"
    with pytest.raises(PromotionError) as caught:
        result_type(rule_set("jax"), "bitwise", strong(U64), strong(I64))
    assert caught.value.code == "PT203"


def test_where_and_concat_move_without_arithmetic():
    typing = result_type(PYPTO, "where", strong(BOOL), strong(I32), strong(F16))
    assert (typing.operand_casts, typing.result) == ((BOOL, F16, F16), strong(F16))
    assert result_type(PYPTO, "where", strong(BOOL), strong(F16), WEAK_FLOAT).result == strong(F16)
    assert result_type(PYPTO, "concat", strong(F16), strong(BF16), strong(F32)).result == strong(F32)
    with pytest.raises(PromotionError) as caught:
        result_type(PYPTO, "where", strong(I32), strong(F16), strong(F16), names=("mask", "a", "b"))
    assert (caught.value.code, caught.value.fixes) == ("PT203", ("mask != 0",))


def test_matmul():
    typing = result_type(PYPTO, "matmul", strong(BF16), strong(BF16))
    assert (typing.compute, typing.result) == (F32, strong(BF16))
    assert result_type(PYPTO, "matmul", strong(I8), strong(I8)).result == strong(I32)
    assert result_type(rule_set("jax"), "matmul", strong(I8), strong(I8)).result == strong(I8)
    assert result_type(PYPTO, "matmul", strong(F8E4M3), strong(F8E4M3)).result == strong(F32)
    assert result_type(PYPTO, "matmul", strong(F16), strong(F16), strong(F32)).result == strong(F16)


# ---- ldexp --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULE_SETS)
@pytest.mark.parametrize("x", [F16, BF16, F32, F64, BFP8], ids=str)
def test_ldexp_has_the_dtype_of_x(name, x):
    rules = rule_set(name)
    for b in (I8, I16, I32, I64, F16, BF16, F32, F64):
        if name == "ttnn" and b != x:
            with pytest.raises(PromotionError) as caught:
                result_type(rules, "ldexp", strong(x), strong(b))
            assert caught.value.code == "PT202"
        else:
            typing = result_type(rules, "ldexp", strong(x), strong(b))
            assert typing.result == strong(x)
            assert typing.compute.bits >= max(32, x.bits)
    for scalar in (2, 2.5):
        assert result_type(rules, "ldexp", strong(x), rules.infer(scalar)).result == strong(x)


def test_ldexp_refuses_bool_exponents_and_integer_values():
    for types in ((strong(F32), strong(BOOL)), (strong(I32), strong(I32))):
        with pytest.raises(PromotionError) as caught:
            result_type(PYPTO, "ldexp", *types, names=("x", "mask"))
        assert caught.value.code == "PT203"
    with pytest.raises(PromotionError) as caught:
        result_type(PYPTO, "ldexp", strong(F32), strong(BOOL), names=("x", "mask"))
    assert caught.value.fixes == ("pypto.cast(mask, pypto.DT_INT32)",)


# ---- in place -----------------------------------------------------------------------------------------------------------


def test_in_place():
    assert assign(PYPTO, strong(F32), strong(F16)).result == strong(F32)
    assert in_place(PYPTO, "ldexp", strong(BF16), strong(BF16), op="ldexp_").result == strong(BF16)
    assert in_place(TTNN, "ldexp", strong(BF16), strong(BF16), op="ldexp_").result == strong(BF16)
    assert assign(TTNN, strong(BF16), strong(F32)).result == strong(BF16)
    for rules, destination, value in ((PYPTO, F16, F32), (PYPTO, I32, F32), (STRICT, F32, F16), (rule_set("jax"), I8, I16)):
        with pytest.raises(PromotionError) as caught:
            assign(rules, strong(destination), strong(value), names=("out", "v"))
        assert caught.value.code == "PT205"
        assert caught.value.fixes == (f"pypto.cast(v, pypto.{destination.pypto})",)
        assert "it was left unchanged" in caught.value.reason
    with pytest.raises(PromotionError) as caught:
        in_place(TTNN, "ldexp", strong(BF16), strong(F32), op="ldexp_")
    assert caught.value.code == "PT202"
    with pytest.raises(PromotionError) as caught:
        in_place(PYPTO, "arithmetic", strong(I32), WEAK_FLOAT, op="add_")
    assert caught.value.code == "PT205"


def test_axpy_of_pypto_mixes_one_pair():
    for rules in (PYPTO, STRICT):
        assert in_place(rules, "arithmetic", strong(F32), strong(F16), op="axpy_").result == strong(F32)
    with pytest.raises(PromotionError):
        in_place(STRICT, "arithmetic", strong(F32), strong(BF16), op="axpy_")


# ---- pypto-strict and ttnn ----------------------------------------------------------------------------------------------


def test_strict_takes_equal_dtypes_except_in_pow():
    for family in ("arithmetic", "compare", "divide", "concat"):
        with pytest.raises(PromotionError) as caught:
            result_type(STRICT, family, strong(F16), strong(F32))
        assert caught.value.code == "PT202"
        assert caught.value.fixes == ("pypto.cast(lhs, pypto.DT_FP32)", '@pypto.jit(promotion="pypto")')
    assert result_type(STRICT, "pow", strong(F16), strong(F32)).result == strong(F32)
    assert result_type(STRICT, "pow", strong(I32), WEAK_FLOAT).result == strong(F32)
    assert result_type(STRICT, "logical", strong(F16), strong(I32)).result == strong(BOOL)
    assert result_type(STRICT, "arithmetic", strong(F16), WEAK_FLOAT).result == strong(F16)
    with pytest.raises(PromotionError):
        result_type(STRICT, "arithmetic", strong(I32), WEAK_FLOAT)


def test_ttnn():
    assert result_type(TTNN, "arithmetic", strong(BF16), strong(F32), op="add").result == strong(BF16)
    assert result_type(TTNN, "compare", strong(BF16), strong(F32)).result == strong(BF16)
    assert result_type(TTNN, "divide", strong(I32), strong(I32)).result == strong(F32)
    assert result_type(TTNN, "pow", strong(BFP8), WEAK_FLOAT).result == strong(BFP8)
    for family, types, op in (("arithmetic", (BF16, F32), "maximum"), ("pow", (BF16, F32), "pow"), ("where", (BOOL, BF16, F32), "where"),
                              ("arithmetic", (I32, F32), "add"), ("pow", (I32, I32), "pow")):
        with pytest.raises(PromotionError):
            result_type(TTNN, family, *map(strong, types), op=op)


# ---- all families -------------------------------------------------------------------------------------------------------

ARITY = {"float_unary": 1, "keep": 1, "predicate": 1, "sum": 1, "prod": 1, "scan": 1, "mean": 1, "index": 1, "where": 3}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", RULE_SETS)
def test_every_family_types_or_refuses_every_dtype_pair(name, family):
    """No combination falls through: a typing that is consistent in itself, or a PromotionError with fields."""
    rules = rule_set(name)
    candidates = [*map(strong, ALL), rules.infer(1), rules.infer(1.0)]
    for a in candidates:
        for b in candidates if ARITY.get(family, 2) > 1 else [a]:
            types = {1: (a,), 2: (a, b), 3: (strong(BOOL), a, b)}[ARITY.get(family, 2)]
            try:
                typing = result_type(rules, family, *types, op=family)
            except PromotionError as refused:
                assert refused.op == family and refused.ruleset == name and refused.reason and len(refused.fixes) <= 2
                continue
            read = types[:1] if family == "cast" else types
            assert len(typing.operand_casts) == len(typing.landings) == len(read)
            assert typing.rule
            assert typing.forced_by is None or typing.forced_by < len(types)
            assert typing.rounds_to in (None, typing.result.dtype)
            if family not in ("compare", "predicate", "index", "logical", "keep", "where", "concat", "cast"):
                assert typing.compute.bits >= min(32, typing.result.dtype.bits)
            # An operation over 16-bit floats that is not moved or tested computes in FP32.
            if family in ("arithmetic", "divide", "float_unary", "mean", "pow") and typing.result.dtype.is_float:
                assert typing.compute.bits >= 32
