"""Random graphs over rows, columns, scalars and reductions: the emulated device agrees with the interpreter on every one."""
from __future__ import annotations

import random
from typing import Any

import graphs
import numpy as np
import pytest

from pypto_dsl.codegen.ttmetal import emit
from pypto_dsl.compiler.dtypes import BF16, F32
from pypto_dsl.compiler.graph import Graph, Value
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.targets import load
from pypto_dsl.runtime.emulator.ttmetal.runner import run
from pypto_dsl.runtime.interpreter import run as interpret

UNARY = ("exp", "neg", "abs", "sigmoid", "tanh", "silu", "square", "relu")
BINARY = ("add", "sub", "mul", "maximum", "minimum")
SHAPES = (("M", "N"), ("M", "N"), ("M", "N"), (1, "N"), ("M", 1), (1, 1), ("N",))
EXTENTS = ({"M": 33, "N": 70}, {"M": 1, "N": 5}, {"M": 64, "N": 64})


def step(rnd: random.Random, values: list[Value]) -> Value:
    """One more operation on what there is."""
    a, kind = rnd.choice(values), rnd.random()
    matrix = a.type.rank == 2
    if kind < 0.25:
        return R[rnd.choice(UNARY)](a)
    if kind < 0.7:
        return R[rnd.choice(BINARY)](a, rnd.choice([*values, 0.5, 2.0]))
    if kind < 0.8:
        b = rnd.choice(values)
        return R["where"](R[rnd.choice(("lt", "ge", "eq"))](a, b), a, R["mul"](b, 0.5))
    if kind < 0.92 and matrix:
        return R[rnd.choice(("sum", "amax", "mean"))](a, rnd.choice((-1, 0)), True)
    return R["softmax"](a, -1) if matrix and rnd.random() < 0.3 else R["cast"](a, rnd.choice((F32, BF16)))


def random_graph(seed: int) -> Graph:
    """One to four tensors, one to nine operations, the last of which is the result."""
    rnd = random.Random(seed)
    parameters = [(f"p{i}", rnd.choice((F32, F32, BF16)), SHAPES[0] if i == 0 else rnd.choice(SHAPES)) for i in range(rnd.randint(1, 4))]

    def function(*tensors: Value) -> Value:
        values = list(tensors)
        for _ in range(rnd.randint(1, 9)):
            values.append(step(rnd, values))
        return R["neg"](values[-1]) if values[-1] in tensors else values[-1]

    return graphs.graph(f"random{seed}", function, *parameters)


def arguments(g: Graph, extents: dict[str, int], seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {p.name: tuple(e.evaluate(extents) for e in p.type.shape) for p in g.parameters}
    made = {n: (rng.normal(size=s) * (n not in g.outputs)).astype(np.float32) for n, s in shapes.items()}
    return {p.name: made[p.name].astype(p.type.dtype.numpy) for p in g.parameters}


@pytest.mark.parametrize("seed", range(24))
def test_random_graph(seed: int) -> None:
    """16-bit kernels within a few units of bf16 (roundings add up along a chain), others within 2e-4."""
    target, g = load("tt-wormhole"), random_graph(seed)
    made = emit(lower(g, target), target)
    tolerance = 6e-2 if any(p.type.dtype is BF16 for p in g.parameters) else 2e-4
    for extents in EXTENTS:
        given = arguments(g, extents, seed)
        expected = interpret(g, {k: np.array(v) for k, v in given.items()}, {k: extents[k] for k in g.symbols})["out"]
        got = run(made.manifest, made.files, given, cores=2, seed=1)["out"]
        np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), tolerance, tolerance, err_msg=f"{extents}")
