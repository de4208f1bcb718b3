"""Chains of views: whatever is sliced, permuted and reshaped in whatever order, memory is seen right or copied."""
from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_regions import M, Recorder, check

from pypto_dsl.compiler.dtypes import BF16, F32, I32
from pypto_dsl.compiler.graph import Graph, Value

SHAPES: dict[int, list[tuple[int, ...]]] = {
    24: [(24,), (2, 3, 4), (4, 6), (1, 24), (2, 1, 12), (6, 2, 2), (3, 8, 1)], 12: [(12,), (3, 4), (2, 6), (2, 2, 3), (1, 12, 1)],
    6: [(6,), (2, 3), (3, 1, 2), (6, 1)]}
ORIGINS: dict[str, Callable[[Recorder], Value]] = {
    "parameter": lambda r: r.values["x"],
    "computed": lambda r: r.op("exp", r.values["x"]),
    "summed": lambda r: r.op("sub", r.values["x"], r.op("sum", r.values["x"], -1, True)),
    "iota": lambda r: r.op("cast", r.op("iota", (2, 3, 4), 1, I32), F32),
    "full": lambda r: r.op("full", (2, 3, 4), 1.5, F32),
    "scalar": lambda r: r.op("expand_clone", r.op("reshape", r.values["s"], (1, 1, 1)), (2, 3, 4)),
    "element": lambda r: r.op("expand_clone", r.op("reshape", r.op("load_scalar", r.values["x"], (1, 2, 3)), (1, 1, 1)), (2, 3, 4)),
}
OVER: list[tuple[int, ...] | None] = [None, (0, 1), (1, 2), (0, 2)]
STEPS: dict[str, Callable[[Recorder, Value, int], Value]] = {}


def step(function: Callable[[Recorder, Value, int], Value]) -> Callable[[Recorder, Value, int], Value]:
    STEPS[function.__name__] = function
    return function


@step
def permute(r: Recorder, x: Value, pick: int) -> Value:
    orders = list(permutations(range(x.type.rank)))
    return r.op("permute", x, orders[pick % len(orders)])


@step
def reshape(r: Recorder, x: Value, pick: int) -> Value:
    static = x.type.static_shape
    assert static is not None
    choices = SHAPES.get(math.prod(static), [static])
    return r.op("reshape", x, choices[pick % len(choices)])


@step
def halve(r: Recorder, x: Value, pick: int) -> Value:
    static = x.type.static_shape
    assert static is not None
    even = [i for i, e in enumerate(static) if e % 2 == 0]
    if not even:
        return x
    axis = even[pick % len(even)]
    shape = tuple(e // 2 if i == axis else e for i, e in enumerate(static))
    return r.op("view", x, shape, tuple(e // 2 if i == axis and pick % 2 else 0 for i, e in enumerate(static)))


@step
def negate(r: Recorder, x: Value, pick: int) -> Value:
    return r.op("neg", x)


def chain(origin: str, steps: list[tuple[str, int]]) -> Graph:
    recorder = Recorder("views", ("x", F32, (2, 3, 4)), ("s", F32, ()))
    value = ORIGINS[origin](recorder)
    for name, pick in steps:
        value = STEPS[name](recorder, value, pick)
    recorder.graph.returns.append(value)
    recorder.graph.returns.append(recorder.op("sum", value, -1, True))
    return recorder.graph


def returned(graph: Graph) -> Graph:
    """The graph with its returned values as outputs, for `check`."""
    for i, value in enumerate(graph.returns):
        name = f"out{i}"
        graph.parameters.append(Value(value.type, name))
        graph.outputs[name] = value
    graph.returns = []
    return graph


@pytest.mark.parametrize("choice", ["small", "device"])
@pytest.mark.parametrize("first", STEPS)
@pytest.mark.parametrize("origin", ORIGINS)
def test_every_view_of_every_origin(origin: str, first: str, choice: str) -> None:
    for second in STEPS:
        check(returned(chain(origin, [(first, 3), (second, 2), ("permute", 1)])), {}, choice)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(list(ORIGINS)), st.lists(st.tuples(st.sampled_from(list(STEPS)), st.integers(0, 11)), max_size=6))
def test_random_chains(origin: str, steps: list[tuple[str, int]]) -> None:
    check(returned(chain(origin, steps)), {})


def tail(r: Recorder) -> Value:
    """The rows of ``x`` that are there, under a window of eight."""
    return r.op("view", r.values["x"], (8, 4), (0, 0), (M, 3))


@pytest.mark.parametrize("kind", ["sum", "amax"])
@pytest.mark.parametrize("origin", ORIGINS)
def test_reductions_over_several_axes(origin: str, kind: str) -> None:
    """Sliced, permuted, counted and dense operands; axes that are neighbours and axes that are not."""
    for change in ("halve", "permute", "negate"):
        for dim in OVER:
            for keepdim in (False, True):
                r = Recorder("reduced", ("x", F32, (2, 3, 4)), ("s", F32, ()))
                value = STEPS[change](r, ORIGINS[origin](r), 2)
                r.graph.returns.append(r.op(kind, r.op("mul", value, 2.0), dim, keepdim))
                check(returned(r.graph), {})


TAILS: dict[str, Callable[[Recorder], Value]] = {
    "rows and columns become one axis": lambda r: r.op("reshape", tail(r), (32,), (M * 3,)),
    "the axes change places": lambda r: r.op("permute", tail(r), (1, 0)),
    "an axis of one is added": lambda r: r.op("reshape", tail(r), (8, 1, 4)),
    "columns split": lambda r: r.op("reshape", r.op("view", r.values["x"], (8, 4), (0, 0), (M, 4)), (8, 2, 2)),
    "transposed, then one axis": lambda r: r.op("reshape", r.op("permute", tail(r), (1, 0)), (32,), (M * 3,)),
    "computed, then one axis": lambda r: r.op("reshape", r.op("exp", tail(r)), (32,), (M * 3,)),
    "joined behind another": lambda r: r.op("concat", tail(r), r.op("exp", tail(r)), dim=0),
    "joined beside another": lambda r: r.op("concat", tail(r), r.op("view", r.values["x"], (8, 4), (0, 0), (M, 2)), dim=1),
    "a tail of a tail": lambda r: r.op("view", tail(r), (4, 2), (0, 2)),
}


@pytest.mark.parametrize("choice", ["small", "device"])
@pytest.mark.parametrize("case", TAILS)
def test_views_of_tails(case: str, choice: str) -> None:
    for rows in (1, 5, 8):
        recorder = Recorder("tails", ("x", F32, ("M", 4)), ("out", F32, (40,)))
        value = TAILS[case](recorder)
        total = recorder.op("sum", recorder.op("add", value, 1.0), None, True)
        written = recorder.op("insert", recorder.values["out"], recorder.op("reshape", total, (1,)), (3,))
        check(recorder.finish(out=written), {"M": rows}, choice)


# ---- casts with several readers ------------------------------------------------------------------------------------------------


def of_column(r: Recorder) -> Value:
    """A cast column that is read in two groups, once over whole rows."""
    x, s = r.values["x"], r.op("cast", r.op("view", r.values["s"], (4, 1), (0, 0)), F32)
    first = r.op("sub", x, s)
    return r.op("add", r.op("div", first, r.op("sum", first, 0, True)), s)


def kept_by_a_loop(r: Recorder) -> Value:
    s = r.op("cast", r.values["s"], F32)
    (total,) = r.loop([s], lambda i, a: [r.op("add", a, 1.0)], M)
    return r.op("add", r.values["x"], total)


def yielded_by_a_branch(r: Recorder) -> Value:
    s = r.op("cast", r.values["s"], F32)
    (chosen,) = r.branch(r.op("gt", r.op("load_scalar", r.values["x"], (0, 0)), 100.0), lambda: [r.op("neg", r.values["y"])], lambda: [s])
    return r.op("add", r.values["x"], chosen)


def read_in_a_loop_and_behind_it(r: Recorder) -> Value:
    """The loop may have no turn at all."""
    s = r.op("cast", r.op("view", r.values["s"], (4, 1), (0, 0)), F32)
    (total,) = r.loop([r.values["x"]], lambda i, a: [r.op("add", a, s)], M)
    return r.op("mul", total, s)


def read_behind_a_loop(r: Recorder) -> Value:
    s = r.op("cast", r.op("exp", r.values["s"]), F32)
    narrow = r.op("cast", r.op("insert", r.values["y"], s, (0, 0)), F32)
    (total,) = r.loop([r.values["x"]], lambda i, a: [r.op("add", a, 1.0)], M)
    return r.op("mul", total, narrow)


CASTS = {f.__name__: f for f in (of_column, kept_by_a_loop, yielded_by_a_branch, read_in_a_loop_and_behind_it, read_behind_a_loop)}


@pytest.mark.parametrize("choice", ["small", "device"])
@pytest.mark.parametrize("case", CASTS)
def test_casts_with_several_readers(case: str, choice: str) -> None:
    for turns in (0, 1, 3):
        r = Recorder(case, ("x", F32, (4, 8)), ("y", F32, (4, 1)), ("s", BF16, (4, 1)), ("m", F32, ("M", 1)))
        r.graph.returns.append(CASTS[case](r))
        check(returned(r.graph), {"M": turns}, choice)
