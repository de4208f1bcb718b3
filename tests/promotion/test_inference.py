"""Types of Python, NumPy and nested values, against the recordings of TensorFlow and JAX."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from pypto_dsl.compiler.dtypes import ALL, BF16, BOOL, F16, F32, F64, I8, I32, I64, U8
from pypto_dsl.compiler.promotion import RULE_SETS, PromotionError, assign, check_scalar, rule_set, strong, weak
from pypto_dsl.compiler.promotion.atype import of_node
from pypto_dsl.compiler.promotion.scalars import inexact_beyond, misfit, overflows

NUMPY = {"b": np.bool_, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "c64": np.complex64,
         "c128": np.complex128,
         **{f"{k}{n}": np.dtype(f"{word}{n}").type for k, word in (("i", "int"), ("u", "uint")) for n in (8, 16, 32, 64)}}
VALUES = {
    "py_bool": True, "py_int": 1, "py_float": 1.0, "py_complex": 1j, "py_int_big": 2 ** 31,
    "py_list_int": [1, 2], "py_list_float": [1.0, 2.0], "py_list_mixed": [1, 2.0], "py_nested_list": [[1, 2], [3, 4]],
    "py_tuple_float": (1.0, 2.0),
    **{f"np_scalar_{k}": t(1) for k, t in NUMPY.items()}, **{f"np_array_{k}": np.ones(2, t) for k, t in NUMPY.items()},
    "np_i64_scalar": np.int64(1), "np_f64_scalar": np.float64(1),
}


@pytest.mark.parametrize("mode", ["all", "safe"])
def test_inference_is_tensorflows(tf, to_node, mode):
    rules = rule_set(f"tf-{mode}")
    rows = tf.raw["inference"][mode]
    assert len(rows) == 40
    for row in rows:
        expected = to_node(row["internal"])
        if expected is None:
            with pytest.raises(PromotionError) as caught:
                rules.infer(VALUES[row["value"]])
            assert caught.value.code == "PT204"
        else:
            assert rules.infer_node(VALUES[row["value"]]) == expected, row


@pytest.mark.parametrize("mode", ["all", "safe"])
def test_tensor_with_python_or_numpy_value_is_tensorflows(tf, to_node, mode):
    """1200 products of a tensor and a value, either order, NumPy on either side: NumPy never takes over."""
    rules = rule_set(f"tf-{mode}")
    rows = tf.raw["python_numpy_operands"][mode]
    assert len(rows) == 1200
    for row in rows:
        if row["operand"] == "py_int_big":
            assert to_node(row["internal"]) is None
            continue
        pair = (to_node(row["tensor"]), rules.infer_node(VALUES[row["operand"]]))
        found = rules.cell(*(pair if row["order"] == "lhs_tensor" else pair[::-1])).result
        assert found == to_node(row["internal"]), row


@pytest.mark.parametrize(("name", "key", "count"), [
    ("jax", "standard_x64", 1444), ("jax-strict", "strict_x64", 1444), ("jax-x32", "standard_x32", 744)])
def test_array_with_python_or_numpy_value_is_jaxs(jax, to_node, name, key, count):
    rules = rule_set(name)
    rows = jax.raw["mixed"][key]
    assert len(rows) == count
    for row in rows:
        array = row["array"] if not row["array"].startswith("py_") else rules.infer_node(VALUES[row["array"]])
        pair = (to_node(array), rules.infer_node(VALUES[row["operand"]]))
        found = rules.cell(*(pair if row["order"] == "lhs_array" else pair[::-1])).result
        assert found == to_node(row["result"]), row


@pytest.mark.parametrize("mode", ["all", "safe"])
def test_a_typed_constant_is_allowed_iff_the_join_is_its_dtype(tf, to_node, mode):
    rules = rule_set(f"tf-{mode}")
    rows = tf.raw["tf_constant"][mode]
    assert len(rows) == 300
    for row in rows:
        source, target = to_node(row["src"]), to_node(row["dtype"])
        joined = rules.cell(source, target).result
        assert (joined is not None and joined.removesuffix("*") == target) == (row["error_kind"] is None), row


@pytest.mark.parametrize("mode", ["all", "safe"])
def test_in_place_writes_are_tensorflows(tf, to_node, mode):
    """assign, assign_add and assign_sub: allowed iff the join is the variable's dtype.

    Left out, as no promotion rule: bool += bool (no kernel), and a Python bool into a variable narrower than its conversion.
    """
    rules = rule_set(f"tf-{mode}")
    rows = tf.raw["variable"][mode]
    assert len(rows) == 1170
    for row in rows:
        if row["src"] == "py_bool" or (row["var"], row["src"], row["error_kind"]) == ("b", "b", "InvalidArgumentError"):
            continue
        target = to_node(row["var"])
        source = rules.infer_node(VALUES[row["src"]]) if row["src"] in VALUES else to_node(row["src"])
        assert (rules.cell(target, source).result == target) == row["allowed"], row
        if "c" not in (target[0], source[0]):
            if row["allowed"]:
                assert assign(rules, of_node(target), of_node(source)).result.node == target
            else:
                with pytest.raises(PromotionError, match="it was left unchanged"):
                    assign(rules, of_node(target), of_node(source))


@pytest.mark.parametrize("name", RULE_SETS)
def test_numpy_before_float_and_bool_before_int(name):
    rules = rule_set(name)
    assert rules.infer(np.float64(1)) == strong(F64)
    assert rules.infer(True) == strong(BOOL)
    assert rules.infer(np.bool_(True)) == strong(BOOL)
    assert rules.infer(1) == weak(rules.default("int"))
    assert rules.infer(1.0) == weak(rules.default("float"))


@pytest.mark.parametrize("dtype", [d for d in ALL if d.numpy_name], ids=str)
@pytest.mark.parametrize("name", RULE_SETS)
def test_numpy_values_are_strong(name, dtype):
    array = np.zeros((2, 3), dtype.numpy)
    assert rule_set(name).infer(array) == strong(dtype)
    assert rule_set(name).infer(array[0, 0]) == strong(dtype)


def test_nested_sequences():
    assert rule_set("tf-all").infer([1, 2.0]) == weak(F32)
    assert rule_set("tf-all").infer([np.int8(1), 2]) == strong(I8)
    assert rule_set("tf-all").infer([np.int8(1), np.float16(2)]) == strong(F16)
    assert rule_set("pypto").infer([[1, 2], [3, 4]]) == strong(I32)
    assert rule_set("pypto").infer([1, 2.5]) == strong(F32)
    assert rule_set("jax").infer([1]) == strong(I64)
    assert rule_set("pypto").infer([]) == strong(F32)
    with pytest.raises(PromotionError) as caught:
        rule_set("pypto").infer([np.int8(1), np.int16(2)])
    assert caught.value.code == "PT201"


@pytest.mark.parametrize("value", [None, "1", object(), b"1", np.datetime64("2026-01-01"), np.array(["a"]), {1: 2}])
def test_values_without_a_type_are_refused(value):
    with pytest.raises(PromotionError) as caught:
        rule_set().infer(value)
    assert caught.value.code == "PT201"


@pytest.mark.parametrize("value", [1j, np.complex64(1), np.ones(2, np.complex128)])
@pytest.mark.parametrize("name", RULE_SETS)
def test_complex_values_have_no_tensors(name, value):
    with pytest.raises(PromotionError) as caught:
        rule_set(name).infer(value)
    assert caught.value.code == "PT201"


def test_origins_say_where_a_type_comes_from():
    rules = rule_set("pypto")
    assert rules.infer(1.5).described() == "f32* from Python float 1.5"
    assert rules.infer(np.int8(3)).described() == "i8 from NumPy scalar int8 3"
    assert rules.infer(np.zeros((2, 3), np.float32)).described() == "f32 from NumPy array float32[2, 3]"
    assert rules.join(strong(F16), rules.infer(1.5)) == strong(F16)


@pytest.mark.parametrize(("value", "dtype", "fits"), [
    (255, U8, True), (256, U8, False), (-1, U8, False), (300, I8, False), (2 ** 40, I64, True), (2 ** 31, I32, False),
    (65504, F16, True), (65519, F16, True), (65520, F16, False), (70000, F16, False), (10 ** 400, F64, False), (10 ** 39, F32, False),
    (10 ** 39, BF16, False), (2 ** 24 + 1, F32, True), (True, BOOL, True), (2, BOOL, False), (1.5, I32, False),
    (70000.0, F16, True), (1.5, F16, True),
])
def test_a_python_scalar_fits_or_is_refused(value, dtype, fits):
    assert (misfit(value, dtype) == "") == fits
    if not fits:
        with pytest.raises(PromotionError) as caught:
            check_scalar(rule_set(), value, dtype, op="add")
        assert (caught.value.code, caught.value.op, caught.value.candidates) == ("PT204", "add", (dtype.name,))


def test_float_overflow_is_inf_and_known():
    assert overflows(70000.0, F16)
    assert not overflows(float("inf"), F16)
    assert not overflows(65519.0, F16)
    assert overflows(1e39, BF16)


def test_exact_bounds_of_integers_in_floats():
    """2**mantissa, checked against NumPy by the first integer that does not survive the round trip."""
    for source in (d for d in ALL if d.is_integer):
        for target in (F16, BF16, F32, F64):
            bound = inexact_beyond(source, target)
            if bound is None:
                extremes = [v for v in source.range if abs(v) < 2 ** 60]
                assert all(int(np.float64(v).astype(target.numpy)) == v for v in extremes)
            else:
                assert int(np.float64(bound).astype(target.numpy)) == bound
                assert int(np.asarray(bound + 1, np.int64).astype(target.numpy).astype(np.float64)) != bound + 1


def test_storage_on_a_target_without_64_bits():
    rules, supported = rule_set("tf-all"), frozenset({I8, I32, F16, F32})
    joined = rules.join(strong(I8), rules.infer(1.0))
    assert joined == weak(F64)
    assert rules.storage(joined, supported) == weak(F32)
    assert rules.storage(weak(I64), supported) == weak(I32)
    assert rules.storage(strong(F16), supported) == strong(F16)
    with pytest.raises(PromotionError) as caught:
        rules.storage(strong(I64), supported)
    assert caught.value.code == "PT206"
