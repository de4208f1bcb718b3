"""Reports from other projects' trackers that concern types, as tests of what is right here."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pypto_dsl.compiler import promotion
from pypto_dsl.compiler.dtypes import BF16, BFP8, F16, F32, F64, I8, I16, I32, I64
from pypto_dsl.compiler.promotion import RULE_SETS, PromotionError, check_scalar, result_type, rule_set, strong, weak

FLOATING = [n for n in RULE_SETS if n != "ttnn"]


@pytest.mark.parametrize("name", FLOATING)
def test_p01_pytorch_133264_ldexp_of_f16_and_i8_is_f16(name):
    assert result_type(rule_set(name), "ldexp", strong(F16), strong(I8)).result == strong(F16)


@pytest.mark.parametrize("name", FLOATING)
def test_p03_pytorch_133267_ldexp_of_f64_is_made_in_f64(name):
    typing = result_type(rule_set(name), "ldexp", strong(F64), strong(I32))
    assert (typing.compute, typing.operand_casts[0], typing.result) == (F64, F64, strong(F64))


@pytest.mark.parametrize("name", FLOATING)
def test_p07_numpy_29182_ldexp_of_a_python_int_is_no_f16(name):
    rules = rule_set(name)
    typing = result_type(rules, "ldexp", rules.infer(1), rules.infer(np.int32(16)))
    assert typing.result == weak(rules.default("float"))
    assert np.ldexp(np.asarray(1, typing.result.dtype.numpy), 16) == 65536


@pytest.mark.parametrize("rules", ["ttnn", "pypto"])
def test_p15_tt_metal_8593_pow_of_bfloat8_b_takes_a_float_scalar(rules):
    chosen = rule_set(rules)
    assert result_type(chosen, "pow", strong(BFP8), chosen.infer(2.5)).result == strong(BFP8)


def test_p21_tensorflow_8224_pow_of_python_numbers_either_way():
    rules = rule_set("tf-all")
    assert result_type(rules, "pow", rules.infer(2.0), rules.infer(2)).result == weak(F32)
    assert result_type(rules, "pow", rules.infer(2), rules.infer(2.0)).result == weak(F32)


def test_p23_tensorflow_21491_f32_times_i32():
    assert result_type(rule_set("tf-all"), "arithmetic", strong(F32), strong(I32)).result == strong(F32)
    with pytest.raises(PromotionError):
        result_type(rule_set("tf-safe"), "arithmetic", strong(F32), strong(I32))


@pytest.mark.parametrize("name", RULE_SETS)
def test_p25_jax_6051_a_weak_i16_plus_one_is_a_weak_int(name):
    rules = rule_set(name)
    assert rules.join(weak(I16), rules.infer(1)) == weak(rules.default("int"))


@pytest.mark.parametrize("name", ["tf-all", "tf-safe", "jax", "jax-x32"])
def test_p27_jax_6160_c64_with_a_python_float_is_c64(name):
    rules = rule_set(name)
    assert rules.cell("c64", rules.infer(1.0).node).result == "c64"


def test_p31_jax_11014_the_engine_never_asks_numpy():
    """np.result_type fails on bfloat16; no file of the package calls it or its relatives."""
    for file in Path(promotion.__file__).parent.glob("*.py"):
        text = file.read_text()
        assert not any(word in text for word in ("result_type(np", "np.result_type", "promote_types", "can_cast", "find_common_type"))


def test_p33_pytorch_43049_f16_with_bf16_is_f32():
    for name in ("pypto", "tf-all", "jax", "jax-x32"):
        assert rule_set(name).join(strong(F16), strong(BF16)) == strong(F32)
    with pytest.raises(PromotionError):
        rule_set("tf-safe").join(strong(F16), strong(BF16))


@pytest.mark.parametrize("name", ["pypto", "tf-all", "jax", "jax-x32"])
@pytest.mark.parametrize("half", [F16, BF16], ids=str)
def test_p35_triton_3030_i32_with_either_half_type_is_alike(name, half):
    assert rule_set(name).join(strong(I32), strong(half)) == strong(half)


@pytest.mark.parametrize("name", RULE_SETS)
def test_p39_flaggems_6212_bf16_plus_half_has_no_f64_anywhere(name):
    rules = rule_set(name)
    typing = result_type(rules, "arithmetic", strong(BF16), rules.infer(0.5))
    assert typing.result == strong(BF16)
    assert F64 not in (typing.compute, *typing.operand_casts, *typing.landings)


def test_p41_numpy_27082_a_numpy_exponent_is_strong():
    exponent = rule_set().infer(np.int64(2))
    for name in ("tf-all", "jax"):
        assert result_type(rule_set(name), "pow", strong(I32), exponent).result == strong(I64)
    with pytest.raises(PromotionError):
        result_type(rule_set("pypto"), "pow", strong(I32), exponent)


@pytest.mark.parametrize("name", RULE_SETS)
def test_p43_numpy_6215_an_integer_power_is_an_integer(name):
    rules = rule_set(name)
    typing = result_type(rules, "pow", strong(I32), rules.infer(-127))
    assert typing.result == strong(I32)
    assert typing.compute == I32


@pytest.mark.parametrize("name", RULE_SETS)
@pytest.mark.parametrize("value", [300, -129, 1 << 40])
def test_p45_array_api_98_an_int_outside_the_dtype_is_an_error(name, value):
    typing = result_type(rule_set(name), "arithmetic", strong(I8), rule_set(name).infer(1))
    assert typing.landings[1] == I8
    with pytest.raises(PromotionError) as caught:
        check_scalar(rule_set(name), value, typing.landings[1])
    assert caught.value.code == "PT204"
