"""Loops, branches and writes: what storage decides to do in place never changes a result, and inputs stay untouched."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_tiling import target

from pypto_dsl.compiler.dtypes import F32, I32, DType
from pypto_dsl.compiler.graph import Builder, Graph, Region, Symbol, Value, tensor_type
from pypto_dsl.compiler.index import Index, as_index, var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.passes.fuse import fuse
from pypto_dsl.compiler.passes.legalize import legalize
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.passes.sink import sink
from pypto_dsl.compiler.passes.tile import tile
from pypto_dsl.compiler.tile_ir.nodes import Program
from pypto_dsl.runtime import tile_interpreter
from pypto_dsl.runtime.interpreter import run

Values = Sequence[Value]
M = var("M")


class Recorder:
    """Records into nested regions."""

    def __init__(self, name: str, *parameters: tuple[str, DType, tuple[int | str, ...]]) -> None:
        self.graph = Graph(name)
        self.builders = [Builder(self.graph)]
        self.values: dict[str, Value] = {}
        for n, dtype, shape in parameters:
            for axis, extent in enumerate(shape):
                if isinstance(extent, str):
                    self.graph.symbols[extent] = Symbol(extent, "dim", n, axis, minimum=0)
            extents: list[Index | int] = [var(e) if isinstance(e, str) else e for e in shape]
            self.values[n] = Value(tensor_type(dtype, extents), n)
            self.graph.parameters.append(self.values[n])

    def op(self, name: str, *args: Any, **kwargs: Any) -> Value:
        with building(self.builders[-1]):
            result: Value = R[name](*args, **kwargs)
        return result

    def region(self, arguments: Values, body: Callable[..., Values]) -> Region:
        region = Region(list(arguments))
        self.builders.append(Builder(self.graph, region))
        region.yields = list(body(*arguments))
        self.builders.pop()
        return region

    def loop(self, carried: Values, body: Callable[..., Values], stop: Index | int) -> Values:
        name = f"i{len(self.graph.symbols)}"
        self.graph.symbols[name] = Symbol(name, "loop", minimum=0, maximum=as_index(stop) - 1)
        region = self.region([Value(c.type, c.name) for c in carried], lambda *a: body(var(name), *a))
        attributes = {"index": name, "start": as_index(0), "stop": as_index(stop), "step": as_index(1)}
        return self.builders[-1].add("loop", carried, [c.type for c in carried], attributes, [region]).results

    def branch(self, condition: Value, then: Callable[[], Values], otherwise: Callable[[], Values]) -> Values:
        regions = [self.region([], then), self.region([], otherwise)]
        return self.builders[-1].add("if", [condition], [v.type for v in regions[0].yields], {}, regions).results

    def finish(self, **outputs: Value) -> Graph:
        self.graph.outputs.update(outputs)
        return self.graph


def check(g: Graph, extents: Mapping[str, int], choice: str = "small") -> Program:
    """The program against the interpreter; parameters that are no outputs keep their bits."""
    rng = np.random.default_rng(1)
    arguments: dict[str, Any] = {}
    for p in g.parameters:
        shape = [e.evaluate(extents) for e in p.type.shape]
        arguments[p.name] = (rng.normal(size=shape) if p.type.dtype is F32 else rng.integers(0, 5, size=shape)).astype(p.type.dtype.numpy)
    wanted = run(g, {k: v.copy() for k, v in arguments.items()}, extents)
    lowered = sink(legalize(promote(g), target(choice)))
    program = tile(lowered, fuse(lowered), target(choice))
    got = {k: v.copy() for k, v in arguments.items()}
    numbers = {p.name: arguments[p.name].item() for p in g.parameters if not p.type.rank and p.name not in g.outputs}
    tile_interpreter.run(program, {k: v for k, v in got.items() if k not in numbers}, {**extents, **numbers})
    for name, value in arguments.items():
        np.testing.assert_allclose(got[name], wanted.get(name, value), rtol=3e-6, atol=3e-6, err_msg=f"{g.name} {name}")
    return program


def tiles() -> Graph:
    r = Recorder("tiles", ("x", F32, ("M", 8)), ("out", F32, ("M", 8)))
    x, out = r.values.values()

    def body(i: Index, o: Value) -> Values:
        tile_ = r.op("view", x, (4, 8), (i * 4, 0))
        return [r.op("insert", o, r.op("softmax", tile_, -1), (i * 4, 0))]

    return r.finish(out=r.loop([out], body, (M + 3) // 4)[0])


def accumulated() -> Graph:
    r = Recorder("accumulated", ("x", F32, (12, 8)), ("out", F32, (4, 8)))
    x = r.values["x"]
    zero = r.op("full", (4, 8), 0.0, F32)
    (total,) = r.loop([zero], lambda i, a: [r.op("add", a, r.op("view", x, (4, 8), (i * 4, 0)))], 3)
    return r.finish(out=r.op("mul", total, 2.0))


def exchanged() -> Graph:
    r = Recorder("exchanged", ("x", F32, (4, 8)), ("y", F32, (4, 8)), ("out", F32, (4, 8)))
    p, q = r.loop([r.values["x"], r.values["y"]], lambda i, p, q: [q, r.op("add", p, 1.0)], 3)
    return r.finish(out=r.op("sub", p, r.op("mul", q, 10.0)))


def overlapping() -> Graph:
    r = Recorder("overlapping", ("y", F32, (4, 8)))
    y = r.values["y"]
    first = r.op("insert", y, r.op("mul", r.op("view", y, (2, 8), (0, 0)), 2.0), (1, 0))
    both = r.op("add", r.op("view", first, (1, 8), (2, 0)), r.op("view", y, (1, 8), (2, 0)))
    return r.finish(y=r.op("insert", first, both, (3, 0)))


def joined() -> Graph:
    r = Recorder("joined", ("x", F32, ("M", 8)), ("y", F32, ("M", 3)), ("out", F32, ("M", 11)))
    return r.finish(out=r.op("exp", r.op("concat", r.values["x"], r.op("neg", r.values["y"]), dim=1)))


def branched() -> Graph:
    r = Recorder("branched", ("x", F32, (4, 8)), ("n", I32, (4,)), ("out", F32, (4, 8)))
    x, n, out = r.values.values()

    def body(i: Index, o: Value) -> Values:
        condition = r.op("gt", r.op("load_scalar", n, (i,)), 2)
        row = r.op("view", x, (1, 8), (i, 0))
        def write(name: str) -> Values:
            return [r.op("insert", o, r.op(name, row), (i, 0))]

        return r.branch(condition, lambda: write("exp"), lambda: write("neg"))

    return r.finish(out=r.loop([out], body, 4)[0])


def kept() -> Graph:
    r = Recorder("kept", ("x", F32, (4, 8)), ("out", F32, (4, 8)))
    x = r.values["x"]
    written = r.op("insert", x, r.op("exp", r.op("view", x, (1, 8), (0, 0))), (1, 0))
    return r.finish(out=r.op("add", written, x))


def flash() -> Graph:
    r = Recorder("flash", ("q", F32, (4, 8)), ("k", F32, ("M", 8)), ("v", F32, ("M", 8)), ("out", F32, (4, 8)))
    q, k, v, _ = r.values.values()

    def body(i: Index, m: Value, s: Value, a: Value) -> Values:
        keys, values = (r.op("view", x, (4, 8), (i * 4, 0)) for x in (k, v))
        scores = r.op("matmul", q, keys, None, False, True)
        top = r.op("maximum", m, r.op("amax", scores, -1, True))
        weights, scale = r.op("exp", r.op("sub", scores, top)), r.op("exp", r.op("sub", m, top))
        total = r.op("add", r.op("mul", s, scale), r.op("sum", weights, -1, True))
        return [top, total, r.op("add", r.op("mul", a, scale), r.op("matmul", weights, values))]

    start = [r.op("full", (4, 1), -1e30, F32), r.op("full", (4, 1), 0.0, F32), r.op("full", (4, 8), 0.0, F32)]
    _, total, mixed = r.loop(start, body, (M + 3) // 4)
    return r.finish(out=r.op("div", mixed, total))


def nested() -> Graph:
    r = Recorder("nested", ("x", F32, (6, 8)), ("out", F32, (6, 8)))
    x, out = r.values.values()

    def outer(i: Index, o: Value) -> Values:
        def inner(j: Index, p: Value) -> Values:
            piece = r.op("view", x, (2, 4), (i * 2, j * 4))
            return [r.op("insert", p, r.op("exp", piece), (i * 2, j * 4))]
        return r.loop([o], inner, 2)

    return r.finish(out=r.loop([out], outer, 3)[0])


def computed_condition() -> Graph:
    r = Recorder("computed_condition", ("x", F32, (4, 8)), ("out", F32, (4, 8)))
    x = r.values["x"]
    condition = r.op("gt", r.op("sum", x), 0.0)
    return r.finish(out=r.branch(condition, lambda: [r.op("neg", x)], lambda: [r.op("exp", x)])[0])


CASES = {f.__name__: f for f in (tiles, accumulated, exchanged, overlapping, joined, branched, kept, flash, nested,
                                computed_condition)}
IN_PLACE = {"tiles": 0, "joined": 1, "branched": 0, "nested": 0}


@pytest.mark.parametrize("choice", ["small", "split", "device"])
@pytest.mark.parametrize("case", CASES)
def test_regions(case: str, choice: str) -> None:
    for m in (1, 4, 5, 9):
        check(CASES[case](), {"M": m}, choice)


@pytest.mark.parametrize("case", IN_PLACE)
def test_writes_into_outputs_need_no_workspace(case: str) -> None:
    """The usual `out[i:i+t] = f(x[i:i+t])` goes straight into the user's tensor."""
    assert len(check(CASES[case](), {"M": 5}).workspaces) <= IN_PLACE[case]


ACTIONS = st.sampled_from(["write", "read", "exp", "loop", "branch"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)), max_size=9))
def test_random_writes(script: list[tuple[str, int, int, int]]) -> None:
    """Random chains of writes, reads of old and new values, loops and branches over three tensors, one of them an output."""
    r = Recorder("random", ("x", F32, (4, 8)), ("n", I32, (4,)), ("y", F32, (4, 8)), ("out", F32, (4, 8)))
    alive = [r.values["x"], r.values["y"], r.values["out"]]
    for what, which, row, other in script:
        source, second = alive[which % len(alive)], alive[other % len(alive)]
        if what == "write":
            alive.append(r.op("insert", source, r.op("exp", r.op("view", second, (2, 8), (row % 3, 0))), ((row + 1) % 3, 0)))
        elif what == "read":
            alive.append(r.op("add", source, second))
        elif what == "exp":
            alive.append(r.op("insert", source, r.op("view", source, (1, 8), (row, 0)), ((row + 2) % 4, 0)))
        elif what == "loop":
            def turn(i: Index, a: Value, s: Value = second) -> Values:
                return [r.op("insert", a, r.op("mul", r.op("view", s, (1, 8), (i, 0)), 0.5), (i, 0))]

            alive += r.loop([source], turn, 3)
        else:
            condition = r.op("gt", r.op("load_scalar", r.values["n"], (row,)), 2)
            alive += r.branch(condition, lambda a=source: [r.op("insert", a, r.op("view", a, (1, 8), (0, 0)), (1, 0))],
                              lambda a=source, s=second: [r.op("add", a, s)])
    check(r.finish(out=alive[-1], y=alive[len(alive) // 2]), {})
