"""Index text: `parse(text(x)) == x` for random expressions, and both have the same value."""
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pypto_dsl.compiler.index import Index, as_index, floordiv, maximum, minimum, modulo, parse, text, var

NAMES = ("m", "n", "x.cols", "min", "to")
DENOMINATORS = st.one_of(st.integers(1, 40).map(as_index), st.sampled_from(NAMES).map(lambda name: maximum(var(name), 1)))


def _grow(inner: st.SearchStrategy[Index]) -> st.SearchStrategy[Index]:
    pair = st.tuples(inner, inner)
    quotient = st.tuples(inner, st.one_of(DENOMINATORS, st.tuples(DENOMINATORS, DENOMINATORS).map(lambda p: p[0] * p[1])))
    return st.one_of(
        pair.map(lambda p: p[0] + p[1]), pair.map(lambda p: p[0] - p[1]), pair.map(lambda p: p[0] * p[1]),
        pair.map(lambda p: minimum(*p)), pair.map(lambda p: maximum(*p)), inner.map(lambda x: -x),
        quotient.map(lambda p: floordiv(*p)), quotient.map(lambda p: modulo(*p)))


LEAVES = st.one_of(st.integers(-70, 70).map(as_index), st.sampled_from(NAMES).map(var))
INDEXES = st.recursive(LEAVES, _grow, max_leaves=10)


@given(INDEXES, st.lists(st.integers(0, 50), min_size=len(NAMES), max_size=len(NAMES)))
def test_parse_reads_what_text_wrote(x: Index, numbers: list[int]) -> None:
    again = parse(text(x))
    values = dict(zip(NAMES, numbers, strict=True))
    assert again == x, text(x)
    assert again.evaluate(values) == x.evaluate(values)
