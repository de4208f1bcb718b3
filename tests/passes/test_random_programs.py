"""Random kernels with nested loops and branches: what is written in place, and where, never changes what a kernel means."""
from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np
import pytest
from test_tiling import CHOICES, PRIMITIVES

import pypto_dsl as pypto
from pypto_dsl.compiler import pipeline
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.targets import Target, load
from pypto_dsl.compiler.targets.target import from_data
from pypto_dsl.runtime import interpreter, tile_interpreter

MATRICES, COLUMNS = ("a", "b", "out"), ("c", "d")
CONDITIONS = ("{i} == 0", "n[{k}] > 2", "{i} > 0 and n[{k}] > 1", "pypto.is_loop_end({i})", "pypto.is_loop_begin({i})")
HEAD = """def kernel(x, n, y, out):
    a = x * 0.5
    b = pypto.tensor([4, 8], pypto.DT_FP32)
    b[:] = y
    c = pypto.amax(x, -1, True)
    d = pypto.full([4, 1], 0.25, pypto.DT_FP32)
"""


class Writer:
    """Writes one kernel, statement by statement. ``bound`` are further names that hold matrices at this place."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = [HEAD.rstrip()]
        self.fresh = 0
        self.loops = 0

    def matrix(self, bound: list[str], depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.3:
            return self.random.choice([*MATRICES, "x", "y", *bound])
        first, second = self.matrix(bound, depth - 1), self.matrix(bound, depth - 1)
        return self.random.choice([f"({first} + {second}) * 0.5", f"pypto.maximum({first}, {second})", f"{first} - {self.column(bound)}",
                                   f"pypto.exp(-pypto.abs({first}))", f"{first} * {self.column(bound)} * 0.1"])

    def column(self, bound: list[str]) -> str:
        return self.random.choice([*COLUMNS, f"pypto.amax({self.random.choice([*MATRICES, *bound])}, -1, True)",
                                   f"pypto.sum({self.random.choice([*MATRICES, *bound])}, -1, True) * 0.1",
                                   f"pypto.maximum(c, {self.random.choice(COLUMNS)})"])

    def block(self, indent: str, bound: list[str], indices: list[str], depth: int) -> None:
        for _ in range(self.random.randint(1, 4)):
            self.statement(indent, bound, indices, depth)

    def statement(self, indent: str, bound: list[str], indices: list[str], depth: int) -> None:
        kind = self.random.choice(["whole", "whole", "part", "column", "name", "rebind", "if", "if", "loop"])
        if kind == "if" and indices and depth:
            condition = self.random.choice(CONDITIONS).format(i=self.random.choice(indices), k=self.random.randint(0, 3))
            self.lines.append(f"{indent}if {condition}:")
            self.block(indent + "    ", list(bound), indices, depth - 1)
            if self.random.random() < 0.7:
                self.lines.append(f"{indent}else:")
                self.block(indent + "    ", list(bound), indices, depth - 1)
        elif kind == "loop" and depth and self.loops < 3:
            self.loops += 1
            index = f"i{self.loops}"
            self.lines.append(f"{indent}for {index} in pypto.loop({self.random.choice(['2', '3', 'n[0]', '1'])}):")
            self.block(indent + "    ", list(bound), [*indices, index], depth - 1)
        elif kind == "part":
            row, at = self.random.randint(0, 2), self.random.randint(0, 2)
            source = self.random.choice([*MATRICES, "x", *bound])
            self.lines.append(f"{indent}{self.random.choice(MATRICES)}[{row}:{row + 2}, :] = {source}[{at}:{at + 2}, :] * 0.5")
        elif kind == "column":
            self.lines.append(f"{indent}{self.random.choice(COLUMNS)}[:] = {self.column(bound)}")
        elif kind == "name":
            self.fresh += 1
            self.lines.append(f"{indent}t{self.fresh} = {self.matrix(bound)}")
            bound.append(f"t{self.fresh}")
        elif kind == "rebind":
            self.lines.append(f"{indent}{self.random.choice('ab')} = {self.matrix(bound)} + 0.0")
        else:
            self.lines.append(f"{indent}{self.random.choice(MATRICES)}[:] = {self.matrix(bound)}")

    def text(self) -> str:
        self.lines.append("    for i0 in pypto.loop(3):")
        bound: list[str] = []
        for _ in range(self.random.randint(2, 6)):
            self.statement("        ", bound, ["i0"], 3)
        self.lines.append("    out[:] = out + a * 0.5 + b + c * d")
        return "\n".join(self.lines) + "\n"


def kernel_of(text: str, name: str) -> Any:
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"pypto": pypto}
    exec(compile(text, name, "exec"), names)
    return pypto.jit(names["kernel"], lint="off")


def small() -> Target:
    """A target of small tiles."""
    ops = {**{name: ["f32", "i32", "i64"] for name in PRIMITIVES}, **{name: ["bool"] for name in ("where", "bitwise_and")}, "cast": ["*"]}
    return from_data({"name": "small", "title": "small", "family": "none", "tile": CHOICES["small"], "ops": ops})


def difference(graph: Graph, target: Target) -> str:
    """How the program for a target differs from the graph, or nothing."""
    rng = np.random.default_rng(1)
    given = {name: rng.normal(size=(4, 8)).astype(np.float32) for name in ("x", "y", "out")}
    given["n"] = np.array([2, 0, 3, 2], np.int32)
    wanted = interpreter.run(graph, {k: v.copy() for k, v in given.items()})
    got = {k: v.copy() for k, v in given.items()}
    tile_interpreter.run(pipeline.lower(graph, target), got, {})
    for name, value in given.items():
        expected = wanted.get(name, value)
        if not np.allclose(got[name], expected, rtol=1e-5, atol=1e-5):
            return f"{name} on {target.name}\n{got[name]}\n{expected}"
    return ""


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    text = Writer(seed).text()
    kernel = kernel_of(text, f"<random program {seed}>")
    x = np.ones((4, 8), np.float32)
    graph = kernel.graph(x, np.ones(4, np.int32), x, x)
    for target in (load("llvm-cpu"), small()):
        assert not (wrong := difference(graph, target)), f"{text}\n{wrong}"
