"""Index text: `parse(text(x)) == x` for random expressions, and both have the same value."""
from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from pypto_dsl.compiler.index import C, Index, as_index, floordiv, maximum, minimum, modulo, parse, text, var

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


def test_c_spelling_means_the_same() -> None:
    """The C text of nested extremes, divisions and remainders, evaluated as C does, is the Index's value."""
    def value(spelled: str, names: dict[str, int]) -> int:
        """C's conditional expression by recursive descent over Python's own operators."""
        depth, question = 0, -1
        for at, letter in enumerate(spelled):
            depth += (letter == "(") - (letter == ")")
            if letter == "?" and depth == 0 and question < 0:
                question = at
        if question < 0:
            inner = spelled
            while "(" in inner:  # innermost brackets first
                close = inner.index(")")
                opening = inner.rindex("(", 0, close)
                inner = inner[:opening] + str(value(inner[opening + 1:close], names)) + inner[close + 1:]
            return int(eval(inner.replace("/", "//"), {}, names))
        level, colon = 0, -1
        for at in range(question, len(spelled)):
            level += (spelled[at] == "?" or spelled[at] == "(") - (spelled[at] == ":" or spelled[at] == ")")
            if spelled[at] == ":" and level == 0:
                colon = at
                break
        condition = value(spelled[:question], names) if "(" not in spelled[:question] else _compared(spelled[:question], names, value)
        return value(spelled[question + 1:colon] if condition else spelled[colon + 1:], names)

    def _compared(spelled: str, names: dict[str, int], evaluate) -> bool:  # type: ignore[no-untyped-def]
        depth = 0
        for at, letter in enumerate(spelled):
            depth += (letter == "(") - (letter == ")")
            if letter in "<>" and depth == 0:
                left, right = evaluate(spelled[:at], names), evaluate(spelled[at + 1:], names)
                return left < right if letter == "<" else left > right
        raise AssertionError(spelled)

    rng = random.Random(5)

    def grow(depth: int) -> Index:
        if depth == 0:
            return rng.choice([var("m"), var("n"), as_index(rng.randrange(1, 9))])
        a, b = grow(depth - 1), grow(depth - 1)
        quotient = floordiv(a + 3, as_index(rng.randrange(1, 5)))
        return rng.choice([a + b, a * 2 + b, minimum(a, b), maximum(a, b), quotient, modulo(a + b, as_index(4))])

    for _ in range(400):
        expression = grow(3)
        names = {"m": rng.randrange(0, 20), "n": rng.randrange(0, 20)}
        assert value(text(expression, C), names) == expression.evaluate(names), text(expression, C)
