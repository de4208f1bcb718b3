"""Random graphs with regions, views, writes and several dtypes, drawn by hypothesis and made by calling operations."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pypto_dsl.compiler.dtypes import BF16, BOOL, F16, F32, F64, I8, I32, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Builder, Graph, Region, Symbol, Value, tensor_type
from pypto_dsl.compiler.index import Index, as_index, minimum, var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building, constant
from pypto_dsl.compiler.promotion.scalars import misfit
from pypto_dsl.compiler.span import Span

EXTENTS = {"M": 5, "N": 3}
SHAPES: tuple[tuple[int | str, ...], ...] = (("M", "N"), ("M", "N"), ("N",), ("M", 1), (1, "N"), (4, 6), ())
DTYPES = (F32, F32, F32, BF16, F16, F64, I32, I8, BOOL)
NAMES = ("", "", "", "x", "y", "loop", "if", "écart", "a.b", "two words", 'quo"te', "0", "yield")
UNARY = ("neg", "abs", "exp", "sqrt", "rint", "tanh", "silu", "relu", "softmax", "square", "clone", "tril", "layer_norm")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "lt", "eq", "ge", "pow", "ldexp", "bitwise_and", "matmul")
# Every operation on one to three tensors whose attributes have defaults.
TABLE = tuple(name for name, d in sorted(R.items()) if d.family in ("elementwise", "compare", "reduce", "row", "sort", "scan", "index")
              and 1 <= len(d.operands) <= 3 and not any(p.variadic for p in d.operands)
              and not any(p.default is inspect.Parameter.empty for p in d.attributes))
NUMBERS = (0, 1, 2, -1, True, 0.0, -0.0, 1.0, 0.5, 1e30, float("inf"), -float("inf"), 127, 2049)
SPANS = (None, None, Span("kernel.py", 3, 5), Span("a b.py", 7, 1, 7, 30))

Draw = Callable[[st.SearchStrategy[Any]], Any]


class _NotDrawn(Exception):
    """A combination that has no meaning in NumPy, or a number that does not fit."""


class _Maker:
    """Draws operations into the innermost region; what the op table refuses is not drawn."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        options = ({}, {"promotion": "pypto"}, {"promotion": "tf-all", "precision": "exact"})
        self.graph = Graph("random", options=dict(draw(st.sampled_from(options))))
        self.builder = Builder(self.graph)
        self.indexes: list[Index] = [as_index(0)]
        self.counter = 0

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def parameters(self) -> list[Value]:
        self.graph.symbols.update({"M": Symbol("M", "dim", "p0", 0), "N": Symbol("N", "dim", "p0", 1)})
        shapes = [("M", "N"), *(self.pick(SHAPES) for _ in range(self.draw(st.integers(1, 3))))]
        for i, shape in enumerate(shapes):
            extents = [var(e) if isinstance(e, str) else e for e in shape]
            dtype = F32 if i == 0 else self.pick(DTYPES)
            weak = not shape and dtype in (F32, I32) and self.draw(st.booleans())  # a Python number's dtypes
            self.graph.parameters.append(Value(tensor_type(dtype, extents, weak=weak), f"p{i}"))
        return list(self.graph.parameters)

    def statements(self, visible: list[Value], count: int, depth: int) -> None:
        """Up to ``count`` statements; ``visible`` grows by what they define."""
        for _ in range(count):
            self.builder.span, self.builder.tile = self.pick(SPANS), self.pick((None, None, (4, 8)))
            checks = list(self.graph.checks)
            try:
                made = self.statement(visible, depth)
            except (KernelError, _NotDrawn):
                self.graph.checks = checks
                continue
            self.counter += 1
            made.name = self.pick(NAMES)
            visible.append(made)

    def statement(self, visible: list[Value], depth: int) -> Value:
        kind = self.draw(st.integers(-1, 9 if depth else 7))
        x = self.pick(visible)
        if kind == -1:
            name = self.pick(TABLE)
            return self.apply(name, *(self.pick(visible) for _ in R[name].operands))
        if kind <= 1:
            return self.apply(self.pick(UNARY), x)
        if kind == 2:
            return self.apply(self.pick(BINARY), x, self.pick(visible))
        if kind == 3:
            value, dtype = self.pick(NUMBERS), self.pick((None, None, F32, x.type.dtype))
            if dtype is not None and misfit(value, dtype):
                raise _NotDrawn
            number = constant(value, self.builder, dtype)
            return self.apply(self.pick(BINARY[:9]), *self.pick(((x, number), (number, x))))
        if kind == 4:
            return R["cast"](x, self.pick(DTYPES))
        if kind == 5:
            return R[self.pick(("sum", "amax", "mean"))](x, self.pick((None, -1, 0, (0, 1))), self.draw(st.booleans()))
        if kind == 6:
            return self.layout(x, visible)
        if kind == 7:
            return R["where"](R["lt"](x, 1), x, self.pick(visible))
        return self.loop(x, visible, depth) if kind == 8 else self.branch(x, visible, depth)

    def apply(self, name: str, *operands: Value) -> Value:
        """The operation, except on BOOL where NumPy has none."""
        if name in ("neg", "sub", "abs", "rint", "square", "relu", "pow") and all(o.type.dtype == BOOL for o in operands):
            raise _NotDrawn
        made = R[name](*operands)
        return self.pick(made) if isinstance(made, tuple) else made

    def layout(self, x: Value, visible: list[Value]) -> Value:
        kind = self.draw(st.integers(0, 5))
        shape = x.type.shape
        if kind == 0:
            return R["reshape"](x, self.pick((shape, (-1,), (1, *shape), tuple(e for e in shape if e.constant != 1))))
        if kind == 1:
            return R["permute"](x, tuple(self.draw(st.permutations(range(len(shape))))))
        if kind == 2:
            offsets = tuple(self.pick(self.indexes) for _ in shape)
            return R["view"](x, tuple(self.pick((as_index(1), as_index(2))) for _ in shape), offsets)
        if kind == 3:
            corner = R["view"](self.pick(visible), (as_index(1),) * len(shape), (as_index(0),) * len(shape))
            return R["insert"](x, corner, tuple(self.pick(self.indexes) for _ in shape))
        if kind == 4:
            return R["extent"](self.pick((var("M"), var("N") * 2 + 1, minimum(var("M"), 4))), self.pick((F32, I32)))
        return R["full"](self.pick((shape, (as_index(4), as_index(6)))), self.pick((0.0, -0.0, 1.0)), F32)

    def region(self, arguments: list[Value], visible: list[Value], depth: int) -> tuple[Region, list[Value]]:
        outer = self.builder.region
        region = self.builder.region = Region(arguments)
        inside = [*visible, *arguments]
        try:
            self.statements(inside, self.draw(st.integers(0, 4)), depth - 1)
        finally:
            self.builder.region = outer
        return region, inside

    def loop(self, x: Value, visible: list[Value], depth: int) -> Value:
        carried = [x, *(self.pick(visible) for _ in range(self.draw(st.integers(0, 2))))]
        index = f"i{len(self.graph.symbols)}"
        stop, step = self.pick(((as_index(3), 1), (var("N"), 2), (as_index(0), 1), (minimum(var("M"), 2), 1)))
        self.graph.symbols[index] = Symbol(index, "loop", maximum=self.pick((None, stop - 1)))
        self.indexes.append(minimum(var(index), 1))
        arguments = [Value(v.type, self.pick(NAMES)) for v in carried]
        region, inside = self.region(arguments, visible, depth)
        self.indexes.pop()
        region.yields = [self.pick([v for v in inside if v.type == a.type]) for a in arguments]
        attributes = {"index": index, "start": as_index(0), "stop": stop, "step": as_index(step)}
        if self.draw(st.booleans()):
            attributes["parallel"] = False
        names = [self.pick(NAMES) for _ in carried]
        made = self.builder.add("loop", carried, [v.type for v in carried], attributes, (region,), names=names)
        return self.pick(made.results)

    def branch(self, x: Value, visible: list[Value], depth: int) -> Value:
        condition = R["gt"](R["sum"](x), 0)
        if condition.type.rank or condition.type.dtype != BOOL:
            return condition
        first, inside = self.region([], visible, depth)
        second, also = self.region([], visible, depth)
        kept = [self.pick(inside) for _ in range(self.draw(st.integers(1, 2)))]
        first.yields = kept
        second.yields = [self.pick([v for v in also if v.type == y.type] or [y]) for y in kept]
        if not all(y in also for y in second.yields):  # a value of the first region is not visible in the second
            first.yields, second.yields = [x], [x]
        made = self.builder.add("if", (condition,), [y.type for y in first.yields], {}, (first, second))
        return self.pick(made.results)


@st.composite
def graphs(draw: Draw, statements: int = 10) -> Graph:
    """A well-formed graph over parameters p0 (f32[M, N]), p1, ..., with one output and up to two returned values."""
    maker = _Maker(draw)
    with building(maker.builder):
        visible = maker.parameters()
        maker.statements(visible, draw(st.integers(1, statements)), depth=2)
    graph = maker.graph
    written = maker.pick(visible)
    out = Value(written.type.with_dtype(written.type.dtype), "out")
    graph.parameters.append(Value(tensor_type(out.type.dtype, out.type.shape), "out"))
    graph.outputs["out"] = written
    graph.returns = [maker.pick(visible) for _ in range(draw(st.integers(0, 2)))]
    return graph


def arguments(graph: Graph, seed: int = 0) -> dict[str, Any]:
    """Arguments for every parameter that is not written: normal numbers, zeros of both signs, infinities and NaN."""
    rng = np.random.default_rng(seed)
    found = {}
    for p in graph.parameters:
        if p.name in graph.outputs:
            continue
        shape = tuple(e.evaluate(EXTENTS) for e in p.type.shape)
        found[p.name] = _array(rng, shape, p.type.dtype)
    return found


def _array(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Any:
    if not dtype.is_float:
        low, high = (0, 2) if dtype.kind == "bool" else (-9, 10)
        return np.asarray(rng.integers(low, high, size=shape)).astype(dtype.numpy)
    values = np.asarray(rng.normal(size=shape))
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40], size=shape)
    return np.asarray(np.where(rng.random(size=shape) < 0.15, special, values)).astype(np.float32).astype(dtype.numpy)


def same_bits(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    """Which result differs, "" when all are the same bit for bit; any NaN equals any NaN."""
    for name, x in a.items():
        y = b[name]
        if x.dtype != y.dtype or x.shape != y.shape:
            return f"{name}: {x.dtype}{x.shape} and {y.dtype}{y.shape}"
        both_nan = np.isnan(x.astype(np.float64)) & np.isnan(y.astype(np.float64))
        equal = np.frombuffer(np.ascontiguousarray(x).tobytes(), np.uint8) == np.frombuffer(np.ascontiguousarray(y).tobytes(), np.uint8)
        if not (equal.reshape(*x.shape, x.dtype.itemsize).all(-1) | both_nan).all():
            return f"{name}: {x} and {y}"
    return ""
