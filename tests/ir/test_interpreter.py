"""The interpreter: checks before anything else, live extents, poison, loops and branches, one rounding per operation."""
from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Op
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.runtime import interpreter
from pypto_dsl.runtime.interpreter import return_names, run

BF16 = np.dtype(ml_dtypes.bfloat16)
HEAD = "kernel k(%x: f32[M, N], %y: f32[M, N]) {\n symbol M: dim of x axis 0\n symbol N: dim of x axis 1\n"
X = np.arange(12, dtype=np.float32).reshape(3, 4) - 4.5
Y = np.full((3, 4), 2.0, np.float32)


def result(body: str, **more: object) -> np.ndarray:
    graph = read_graph(f"{HEAD}{body} return %r\n}}")
    return run(graph, {"x": X, "y": Y, **more})["return0"]


def refused(body: str, code: str, words: str, head: str = HEAD, **arguments: object) -> None:
    graph = read_graph(f"{head}{body}\n}}")
    with pytest.raises(KernelError) as caught:
        run(graph, {"x": X, "y": Y, **arguments})
    assert caught.value.code == code
    assert words in caught.value.diagnostic.message


def test_outputs_by_name_and_returns_by_position() -> None:
    graph = read_graph(HEAD + "%a = add(%x, %y) %b = neg(%x) write y <- %a return %b, %x }")
    got = run(graph, {"x": X, "y": Y})
    assert list(got) == ["y", "return0", "return1"]
    assert return_names(graph) == ["return0", "return1"]
    np.testing.assert_array_equal(got["y"], X + Y)
    assert got["return1"] is not X
    np.testing.assert_array_equal(Y, 2.0)  # nothing is written in place


def test_values_live_as_long_as_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of 200 operations with a loop holds a handful of arrays at any time."""
    held: list[int] = []
    operation = interpreter._Machine.operation

    def counted(machine: interpreter._Machine, op: Op) -> Sequence[np.ndarray]:
        held.append(len(machine.values))
        return operation(machine, op)

    monkeypatch.setattr(interpreter._Machine, "operation", counted)
    chain = " ".join(f"%a{i + 1} = add(%a{i}, %x)" for i in range(200))
    loop = "%l = loop i in 0 to 9 step 1 (%p: f32[M, N] = %a200) { %d = neg(%p) %e = abs(%y) %f = add(%d, %e) yield %f }"
    graph = read_graph(f"{HEAD} symbol i: loop %a0 = neg(%x) {chain} {loop} %r = add(%l, %a200) return %r }}")
    run(graph, {"x": X, "y": Y})
    assert len(held) == 201 + 9 * 3 + 1
    assert max(held) <= 6


# ---- what is refused -----------------------------------------------------------------------------------------------------------


def test_arguments_are_checked() -> None:
    refused("return %x", "PT715", "`y` is missing", y=None)
    refused("return %x", "PT702", "array of float64", x=X.astype(np.float64))
    refused("return %x", "PT703", "3 dimensions", y=Y[None])
    refused("return %x", "PT704", "shape [2, 4]", y=Y[:2])


def test_a_check_is_tested_before_anything_runs() -> None:
    body = "symbol K: dim of y axis 0 check M == K for \"add\" %s = load_scalar(%x, offsets = [M - 99, 0]) return %s"
    refused(body, "PT707", "add needs M == K, and they are 3 and 2", HEAD.replace("%y: f32[M, N]", "%y: f32[K, N]"), y=Y[:2])


@pytest.mark.parametrize("body", [
    "%r = load_scalar(%x, offsets = [M - 4, 0]) return %r",
    "%r = load_scalar(%x, offsets = [N - 1, 0]) return %r",
    "%r = view(%x, shape = [1, 1], offsets = [M - 4, 0]) return %r",
    "%v = view(%x, shape = [2, 1], offsets = [0, 0]) %r = insert(%x, %v, offsets = [M - 1, 0]) return %r",
    "%v = view(%x, shape = [2, 1], offsets = [0, 0]) %r = insert(%x, %v, offsets = [M - 4, 0]) return %r",
])
def test_offsets_outside_are_refused(body: str) -> None:
    refused(body, "PT710", "")


def test_a_number_that_does_not_fit_is_refused() -> None:
    head = "kernel k(%x: f32[M, N], %y: f32[M, N], %n: i8[4]) {\n symbol M: dim of x axis 0\n symbol N: dim of x axis 1\n"
    refused("%c = constant(value = 300) %r = add(%n, %c): i8[4] return %r", "PT204", "300", head, n=np.zeros(4, np.int8))


# ---- live extents ----------------------------------------------------------------------------------------------------------------


def test_a_tail_is_live_where_its_source_is() -> None:
    np.testing.assert_array_equal(result("%r = view(%x, shape = [4, 4], offsets = [1, 2])"), X[1:, 2:])
    np.testing.assert_array_equal(result("%v = view(%x, shape = [4, 4], offsets = [1, 2], valid = [4, 1]) %r = exp(%v)"),
                                  np.exp(X[1:, 2:3].astype(np.float64)).astype(np.float32))


def test_common_live_extents_are_used() -> None:
    body = "%a = view(%x, shape = [4, 4], offsets = [2, 0]) %b = view(%y, shape = [4, 4], offsets = [0, 1]) %r = add(%a, %b)"
    np.testing.assert_array_equal(result(body), X[2:, :3] + Y[:1, :3])


def test_one_live_element_does_not_stretch() -> None:
    body = "%a = view(%x, shape = [4, 4], offsets = [2, 0]) %r = add(%x, %a)".replace("[4, 4]", "[M, N]")
    np.testing.assert_array_equal(result(body), X[:1] + X[2:])


def test_reductions_and_products_see_the_live_part_only() -> None:
    np.testing.assert_array_equal(result("%v = view(%x, shape = [4, 8], offsets = [1, 1]) %r = sum(%v, dim = -1)"), X[1:, 1:].sum(-1))
    body = """%a = view(%x, shape = [2, 8], offsets = [0, 1]) %b = view(%y, shape = [2, 8], offsets = [0, 2])
      %r = matmul(%a, %b, b_trans = True)"""
    np.testing.assert_array_equal(result(body), X[:2, 1:3] @ Y[:2, 2:].T)


def test_a_reshaped_tail_is_compacted() -> None:
    np.testing.assert_array_equal(result("%v = view(%x, shape = [4, 4], offsets = [1, 0]) %r = reshape(%v, shape = [16])"), X[1:].ravel())


def test_a_write_covers_the_live_part() -> None:
    expected = Y.copy()
    expected[0:2, 1:3] = X[1:, 2:]
    body = """%v = view(%x, shape = [4, 4], offsets = [1, 2]) %w = view(%v, shape = [2, 2], offsets = [0, 0])
      %r = insert(%y, %w, offsets = [0, 1])"""
    np.testing.assert_array_equal(result(body), expected)


def test_what_nobody_wrote_is_poison() -> None:
    assert np.isnan(result("%r = empty(shape = [2, 2], dtype = f32)")).all()
    graph = read_graph("kernel k(%x: f32[2], %y: f32[2]) { %r = add(%x, %y) write y <- %r }")
    assert np.isnan(run(graph, {"x": np.ones(2, np.float32)})["y"]).all()


# ---- regions -----------------------------------------------------------------------------------------------------------------------


LOOP = """symbol i: loop
  %r = loop i in 0 to N step 2 (%acc: f32[M, N] = %y) {
    %v = view(%x, shape = [M, 1], offsets = [0, i])
    %w = insert(%acc, %v, offsets = [0, i])
    yield %w
  }"""


def test_loops_carry() -> None:
    expected = Y.copy()
    expected[:, ::2] = X[:, ::2]
    np.testing.assert_array_equal(result(LOOP), expected)


def test_a_loop_without_turns_leaves_the_value_from_before() -> None:
    np.testing.assert_array_equal(result(LOOP.replace("0 to N", "N to N")), Y)


@pytest.mark.parametrize(("threshold", "expected"), [("-100.0", X), ("100.0", -X)])
def test_branches(threshold: str, expected: np.ndarray) -> None:
    body = f"""%t = constant(value = {threshold}) %s = sum(%x) %c = gt(%s, %t)
      %r = if %c {{ yield %x }} else {{ %n = neg(%x) yield %n }}"""
    np.testing.assert_array_equal(result(body), expected)


def test_elements_steer() -> None:
    head = HEAD.replace("%y: f32[M, N]", "%y: f32[M, N], %n: i32[2]")
    graph = read_graph(head + 'symbol k: element %s = load_scalar(%n, offsets = [1], symbol = "k") '
                       "%r = view(%x, shape = [1, N], offsets = [k, 0]) return %r }")
    np.testing.assert_array_equal(run(graph, {"x": X, "y": Y, "n": np.array([0, 2], np.int32)})["return0"], X[2:])


# ---- dtypes ------------------------------------------------------------------------------------------------------------------------


def test_every_16_bit_operation_rounds_once() -> None:
    x = (np.random.default_rng(0).normal(size=4096) * 3).astype(BF16)
    graph = read_graph("kernel k(%x: bf16[4096]) { %a = mul(%x, %x) %b = add(%a, %x) return %b }")
    squared = (x.astype(np.float32) * x.astype(np.float32)).astype(BF16)
    expected = (squared.astype(np.float32) + x.astype(np.float32)).astype(BF16)
    fused = (x.astype(np.float32) * x.astype(np.float32) + x.astype(np.float32)).astype(BF16)
    got = run(graph, {"x": x})["return0"]
    assert (got == expected).all()
    assert (got != fused).any()  # the rounding in between is visible


def test_mixed_floats_are_computed_from_their_exact_values() -> None:
    """INT32 with FP16 under the default rules: the sum of the exact values, rounded once to FP16."""
    graph = read_graph("kernel k(%n: i32[1], %x: f16[1]) { %r = add(%n, %x) return %r }")
    got = run(graph, {"n": np.array([2049], np.int32), "x": np.array([0.5], np.float16)})["return0"]
    assert got.dtype == np.float16
    assert got[0] == np.float16(2049.5)


def test_f64_and_weak_numbers_are_exact() -> None:
    graph = read_graph("kernel k(%x: f64[1], %y: f32[1]) { %c = constant(value = 0.1) %a = mul(%x, %c) %b = mul(%y, %c) return %a, %b }")
    got = run(graph, {"x": np.ones(1), "y": np.ones(1, np.float32)})
    assert got["return0"][0] == 0.1
    assert got["return1"][0] == np.float32(0.1)


def test_run_time_numbers_take_the_dtype_they_meet() -> None:
    graph = read_graph("kernel k(%x: bf16[1], %a: f32*) { %r = mul(%x, %a) return %r }")
    got = run(graph, {"x": np.ones(1, BF16), "a": 0.1})["return0"]
    assert got.dtype == BF16
    assert got[0] == np.float32(0.1).astype(BF16)


@pytest.mark.parametrize("view", ["reversed", "transposed", "broadcast", "read only"])
def test_any_strides(view: str) -> None:
    views = {"reversed": X[::-1, ::-1], "transposed": np.asfortranarray(X), "broadcast": np.broadcast_to(X[:1], (3, 4)),
             "read only": X.copy()}
    base = views[view]
    if view == "read only":
        base.flags.writeable = False
    got = run(read_graph(HEAD + "%r = add(%x, %y) return %r }"), {"x": base, "y": Y})["return0"]
    np.testing.assert_array_equal(got, base + Y)
