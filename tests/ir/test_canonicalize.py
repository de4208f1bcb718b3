"""Canonicalization keeps every bit, is idempotent, stays well formed, and does what it is for."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from random_graphs import EXTENTS, arguments, graphs, same_bits

from pypto_dsl.compiler.dtypes import ALL, BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Graph, walk
from pypto_dsl.compiler.ops.evaluate import convert
from pypto_dsl.compiler.passes.canonicalize import canonicalize
from pypto_dsl.compiler.passes.identities import lossless
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.compiler.verify import verify
from pypto_dsl.runtime.interpreter import run

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(graphs(statements=14))
def test_every_bit_stays(graph: Graph) -> None:
    """The recorded graph, the promoted one and the canonical forms of both deliver the same bits, or all refuse the same number."""
    values = arguments(graph)
    try:
        expected = run(graph, values, EXTENTS)
        promoted = promote(graph)
    except KernelError as refused:
        assert refused.code in ("PT204", "PT707", "PT710"), refused
        return
    for name, form in (("promote", promoted), ("canonicalize", canonicalize(graph)), ("both", canonicalize(promoted))):
        verify(form, name)
        assert not same_bits(expected, run(form, values, EXTENTS)), f"{name}\n{print_graph(graph)}\n{print_graph(form)}"


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(graphs(statements=14))
def test_idempotent_and_nothing_dead(graph: Graph) -> None:
    once = canonicalize(graph)
    assert print_graph(canonicalize(once)) == print_graph(once)
    used = {o for op in walk(once.body) for o in op.operands} | {y for op in walk(once.body) for r in op.regions for y in r.yields}
    used |= set(once.results())
    for op in walk(once.body):
        assert op.regions or any(r in used for r in op.results), f"{op} is dead\n{print_graph(once)}"


HEAD = "kernel k(%x: f32[M, 8], %y: f32[M, 8], %h: bf16[M, 8], %n: i32[M, 8]) {\n  symbol M: dim of x axis 0\n"


def simplified(body: str) -> list[str]:
    """The statements of the canonical form of a body, without types."""
    text = print_graph(canonicalize(read_graph(f"{HEAD}{body}\n}}")))
    return [line.strip().partition("): ")[0] + ")" * ("): " in line) for line in text.splitlines()[2:-1]]


@pytest.mark.parametrize(("body", "left"), [
    ("%c = constant(value = 1.0) %r = mul(%x, %c) return %r", "return %x"),
    ("%c = constant(value = 1) %r = mul(%c, %x) return %r", "return %x"),
    ("%c = constant(value = 1.0) %r = div(%x, %c) return %r", "return %x"),
    ("%c = constant(value = 0.0) %r = sub(%x, %c) return %r", "return %x"),
    ("%c = constant(value = -0.0) %r = add(%x, %c) return %r", "return %x"),
    ("%c = constant(value = 0) %r = add(%n, %c) return %r", "return %n"),
    ("%a = neg(%x) %r = neg(%a) return %r", "return %x"),
    ("%a = abs(%x) %r = abs(%a) return %r", "%a = abs(%x)|return %a"),
    ("%r = maximum(%x, %x) return %r", "return %x"),
    ("%c = lt(%x, %y) %r = where(%c, %x, %x) return %r", "return %x"),
    ("%a = cast(%h, dtype = f32) %r = cast(%a, dtype = bf16) return %r", "return %h"),
    ("%r = cast(%x, dtype = f32) return %r", "return %x"),
    ("%a = reshape(%x, shape = [8, M]) %r = reshape(%a, shape = [M, 8]) return %r", "return %x"),
    ("%a = reshape(%x, shape = [-1]) %r = reshape(%a, shape = [8, M]) return %r", "%r = reshape(%x, shape = [8, M])|return %r"),
    ("%a = permute(%x, perm = [1, 0]) %r = permute(%a, perm = [-1, 0]) return %r", "return %x"),
    ("%r = view(%x, shape = [M, 8], offsets = [0, 0]) return %r", "return %x"),
    ("%r = insert(%x, %y, offsets = [0, 0]) return %r", "return %y"),
    ("%r = clone(%x) return %r", "return %x"),
    ("%a = exp(%x) %b = exp(%x) %r = add(%a, %b) return %r", "%a = exp(%x)|%r = add(%a, %a)|return %r"),
    ("%a = exp(%x) %b = neg(%a) return %x", "return %x"),
])
def test_what_is_simplified(body: str, left: str) -> None:
    assert simplified(body) == left.split("|")


@pytest.mark.parametrize("body", [
    "%c = constant(value = 0.0): f32* %r = add(%x, %c) return %r",  # -0 + 0 is +0
    "%c = constant(value = 0): i32* %r = add(%x, %c) return %r",
    "%c = constant(value = -0.0): f32* %r = sub(%x, %c) return %r",
    "%c = constant(value = 0.0): f32* %r = mul(%x, %c) return %r",  # NaN and infinity
    "%r = sub(%x, %x) return %r",
    "%r = div(%x, %x) return %r",
    "%r = eq(%x, %x) return %r",
    "%a = cast(%x, dtype = bf16) %r = cast(%a, dtype = f32) return %r",  # a rounding
    "%a = cast(%n, dtype = f32) %r = cast(%a, dtype = i32) return %r",  # f32 holds 24 bits
    "%c = constant(value = 1.0): f32* %r = mul(%n, %c) return %r",  # the result is f32
    "%a = exp(%x) tile [4, 8] %b = exp(%x) tile [8, 8] %r = add(%a, %b) return %r",  # the user's tiles differ
    "%c = full(shape = [4, M, 8], value = 1.0, dtype = f32) %r = mul(%x, %c) return %r",  # the result is larger
])
def test_what_stays(body: str) -> None:
    graph = read_graph(f"{HEAD}{body}\n}}")
    assert print_graph(canonicalize(graph)) == print_graph(graph)


def test_loops_lose_what_never_changes_and_what_nobody_reads() -> None:
    body = """symbol i: loop
      %e = exp(%x)
      %a, %b, %c = loop i in 0 to M step 1 (%p: f32[M, 8] = %x, %q: f32[M, 8] = %e, %r: f32[M, 8] = %y) {
        %s = add(%p, %q)
        %t = neg(%r)
        yield %s, %q, %t
      }
      return %a, %b"""
    text = print_graph(canonicalize(read_graph(f"{HEAD}{body}\n}}")), spans=False)
    loop = "%a = loop i in 0 to M step 1 (%p: f32[M, 8] = %x) {\n    %s = add(%p, %e): f32[M, 8]\n    yield %s\n  }"
    assert f"{loop}\n  return %a, %e" in text


def test_symbols_keep_the_element_they_read() -> None:
    body = """symbol n: element symbol unused: element symbol i: loop
      %s = load_scalar(%n, offsets = [0, 0], symbol = "n")
      %t = load_scalar(%n, offsets = [0, 0], symbol = "unused")
      %v = view(%x, shape = [1, 8], offsets = [n, 0])
      return %v"""
    text = print_graph(canonicalize(read_graph(f"{HEAD}{body}\n}}")))
    assert 'symbol = "n"' in text
    assert "unused" not in text
    assert "symbol i" not in text


@pytest.mark.parametrize(("condition", "left"), [("0.0", "return %x"), ("-1.0", "%e = exp(%x)|return %e")])
def test_a_known_condition_chooses(condition: str, left: str) -> None:
    body = f"""%a = constant(value = {condition}, dtype = f32) %b = constant(value = -0.5, dtype = f32) %c = lt(%a, %b)
      %r = if %c {{ %e = exp(%x) yield %e }} else {{ yield %x }} return %r"""
    assert simplified(body) == left.split("|")


@pytest.mark.parametrize(("op", "values", "dtype", "result"), [
    ("add", ("0.1", "0.2"), "f32", "0.30000001192092896"), ("div", ("1.0", "3.0"), "f16", "0.333251953125"),
    ("mul", ("2147483647", "2"), "i32", "-2"), ("sub", ("0", "1"), "u8", "255"), ("maximum", ("-0.0", "0.0"), "f32", "0.0"),
    ("lt", ("1.0", "2.0"), "f32", "True"), ("bitwise_left_shift", ("1", "31"), "i32", "-2147483648"),
])
def test_exactly_rounded_operations_fold(op: str, values: tuple[str, str], dtype: str, result: str) -> None:
    a, b = values
    body = f"%a = constant(value = {a}, dtype = {dtype}) %b = constant(value = {b}, dtype = {dtype}) %r = {op}(%a, %b) return %r"
    left = simplified(body)
    assert f" = constant(value = {result}" in left[0], left
    assert len(left) == 2, left


@pytest.mark.parametrize("body", [
    "%a = constant(value = 1.0, dtype = f32) %r = exp(%a) return %r",  # not exactly rounded
    "%a = constant(value = inf, dtype = f32) %r = sub(%a, %a) return %r",  # NaN has the machine's own bits
    "%a = constant(value = 1.0) %r = add(%a, %a) return %r",  # weak: the rule set decides first
])
def test_other_operations_do_not_fold(body: str) -> None:
    assert any("%r = constant" in line for line in simplified(body)) is False


def test_lossless_conversions_keep_every_value() -> None:
    """Over every value of the small dtypes and every pair: what `lossless` says is so."""
    small = (BOOL, I8, U8, I16, F16, BF16, *(d for d in ALL if d.name in ("f8e4m3", "f8e5m2")))
    for source in small:
        count = 2 if source is BOOL else 1 << source.bits
        every = np.arange(count).astype({8: np.uint8, 16: np.uint16}[source.bits]).view(source.numpy)
        for target in (*small, I32, I64, F32, F64):
            if not lossless(source, target):
                continue
            back = convert(convert(every, source, target), target, source)
            with np.errstate(invalid="ignore"):
                ours, theirs = back.astype(np.float64), every.astype(np.float64)
            nan = np.isnan(theirs)
            assert (np.isnan(ours) == nan).all(), f"{source} through {target}"
            assert (ours[~nan].view(np.int64) == theirs[~nan].view(np.int64)).all(), f"{source} through {target}"


@pytest.mark.parametrize(("source", "target"), [(F32, BF16), (I32, F32), (F16, BF16), (BF16, F16), (I16, BF16), (I8, U8), (U8, I8)])
def test_lossy_conversions_are_not_lossless(source: DType, target: DType) -> None:
    assert not lossless(source, target)
