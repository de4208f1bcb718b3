"""The verifier of Graph IR: dominance, types against the op table, regions, writes and symbols; run after every pass.

A problem in a graph that a pass made is our bug (`verify`); in a graph that a user wrote as text it is the user's (`require_valid`).
One walk with an explicit stack: cost is linear and nothing recurses over operands.
"""
from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pypto_dsl.compiler.dtypes import BOOL, DType
from pypto_dsl.compiler.errors import CompilerBug, KernelError, error
from pypto_dsl.compiler.graph import COMMON_ATTRIBUTES, Check, Graph, Op, Region, TensorType, Value, leaves
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.definition import OpDefinition
from pypto_dsl.compiler.ops.live import decided, is_never_negative
from pypto_dsl.compiler.ops.recording import call_of, derive
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.text.printer import LOOP_ATTRIBUTES


@dataclass(frozen=True)
class Problem:
    """What is wrong with a graph, and the operation where it shows (None: the kernel itself)."""

    message: str
    op: Op | None = None

    @property
    def span(self) -> Span | None:
        return None if self.op is None else self.op.span

    def __str__(self) -> str:
        if self.op is None:
            return self.message
        names = ", ".join(f"%{r.name}" for r in self.op.results if r.name)
        return f"{self.op.opcode}{f' ({names})' if names else ''}{f' at {self.span}' if self.span else ''}: {self.message}"


def verify(graph: Graph, where: str) -> None:
    """CompilerBug naming the pass ``where`` when the graph it made is not well formed."""
    found = next(problems(graph), None)
    if found is not None:
        raise CompilerBug(where, f"kernel {graph.name}: {found}")


def require_valid(graph: Graph) -> None:
    """KernelError PT606 at the operation when a graph read from text is not well formed."""
    found = next(problems(graph), None)
    if found is not None:
        name = f"{found.op.opcode}: " if found.op is not None else ""
        raise error("PT606", f"{name}{found.message}", found.span)


def problems(graph: Graph) -> Iterator[Problem]:
    """Everything that is wrong with a graph, in order."""
    yield from _Verifier(graph).run()


class _Equalities:
    """Which extents are equal when the kernel runs, by its checks: directly, or through others (M == 6 and M == N make N == 6)."""

    def __init__(self, checks: list[Check]) -> None:
        self.parent: dict[Index, Index] = {}
        self.names: dict[str, Index] = {}
        for check in checks:
            self._join(check.left, check.right)
        self.names = {x.name: self._root(x) for x in self.parent if x.name is not None}
        for check in checks:  # M*N == 48 is K*N == 48 where M == K
            self._join(check.left.substitute(self.names), check.right.substitute(self.names))

    def _join(self, a: Index, b: Index) -> None:
        a, b = self._root(a), self._root(b)
        if a != b and a.is_constant:
            a, b = b, a
        if a != b:
            self.parent[a] = b

    def _root(self, x: Index) -> Index:
        while (above := self.parent.get(x, x)) != x:
            x = above
        return x

    def __call__(self, a: Index, b: Index) -> bool:
        return a == b or self._root(a) == self._root(b) or (
            bool(self.names) and self._root(a.substitute(self.names)) == self._root(b.substitute(self.names)))


class _Verifier:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.defined: set[Value] = set()
        self.visible = {name for name, s in graph.symbols.items() if s.kind in ("dim", "scalar")}
        self.equal = _Equalities(graph.checks)
        # what the op table says of an operation over given types; equal operations are typed once
        self.derivations: dict[Any, tuple[tuple[TensorType, ...], list[Check]] | str] = {}

    def run(self) -> Iterator[Problem]:
        yield from self.kernel()
        if self.graph.body.arguments or self.graph.body.yields:
            yield Problem("the kernel's body has arguments or yields; parameters, outputs and returns stand for them")
        yield from self.walk()
        yield from self.results()

    def kernel(self) -> Iterator[Problem]:
        names: set[str] = set()
        for parameter in self.graph.parameters:
            if parameter in self.defined or not parameter.name or parameter.name in names:
                yield Problem(f"parameters need different names, and one is called {parameter.name!r}")
            if parameter.op is not None:
                yield Problem(f"the parameter {parameter.name} is made by an operation")
            names.add(parameter.name)
            self.defined.add(parameter)
            yield from self.symbols_in((parameter.type.shape, parameter.type.valid), f"the type of {parameter.name}", None)
        for name, symbol in self.graph.symbols.items():
            if name != symbol.name:
                yield Problem(f"the symbol {symbol.name} is listed as {name}")
        for check in self.graph.checks:
            unknown = (check.left.variables() | check.right.variables()) - self.graph.symbols.keys()
            if unknown:
                yield Problem(f"a check mentions the unknown symbol {min(unknown)}")

    def results(self) -> Iterator[Problem]:
        types = {p.name: p.type for p in self.graph.parameters}
        for name, value in self.graph.outputs.items():
            if name not in types:
                yield Problem(f"{name} is written and is no parameter")
                continue
            yield from self.use(value, None, f"what is written to {name}")
            written, wanted = value.type, types[name]
            if written.dtype != wanted.dtype or not self.same_shape(written.shape, wanted.shape):
                yield Problem(f"{written} is written to {name}, which is {wanted}")
        for value in self.graph.returns:
            yield from self.use(value, None, "a returned value")

    def walk(self) -> Iterator[Problem]:
        """Every operation in order. A frame is (region, owner, iterator, values defined in it, symbols made visible in it)."""
        stack = [_Frame(self.graph.body, None, iter(self.graph.body.ops))]
        while stack:
            frame = stack[-1]
            op = next(frame.ops, None)
            if op is not None:
                yield from self.operands(op)
                if op.regions:
                    frame.pending = [(op, r) for r in reversed(op.regions)]
                else:
                    yield from self.table_op(op, frame)
                    yield from self.define(op, frame)
            elif frame.owner is not None:
                for value in frame.region.yields:
                    yield from self.use(value, frame.owner, "a yielded value")
                self.defined.difference_update(frame.values)
                self.visible.difference_update(frame.symbols)
                stack.pop()
                frame = stack[-1]
                if not frame.pending:
                    yield from self.region_op(frame.owner_of_last())
                    yield from self.define(frame.owner_of_last(), frame)
            else:
                stack.pop()
                continue
            if frame.pending:
                owner, region = frame.pending.pop()
                frame.last = owner
                stack.append(self.enter(owner, region))

    def enter(self, owner: Op, region: Region) -> _Frame:
        frame = _Frame(region, owner, iter(region.ops))
        frame.values += region.arguments
        self.defined.update(region.arguments)
        index = owner.attributes.get("index")
        if owner.opcode == "loop" and isinstance(index, str) and index not in self.visible:
            self.visible.add(index)
            frame.symbols.append(index)
        return frame

    # ---- values and symbols ----------------------------------------------------------------------------------------------------

    def operands(self, op: Op) -> Iterator[Problem]:
        for position, operand in enumerate(op.operands):
            yield from self.use(operand, op, f"operand {position}")
        yield from self.symbols_in(tuple(op.attributes.values()), "an attribute", op)

    def use(self, value: Value, op: Op | None, what: str) -> Iterator[Problem]:
        if value not in self.defined:
            described = f"%{value.name or '_'}: {value.type}"
            yield Problem(f"{what}, {described}, is not defined above in this region or one around it", op)

    def define(self, op: Op, frame: _Frame) -> Iterator[Problem]:
        for result in op.results:
            if result in self.defined:
                yield Problem("stands twice in the graph", op)
            if result.op is not op:
                yield Problem("a result names another operation as its maker", op)
            self.defined.add(result)
            frame.values.append(result)
            yield from self.symbols_in((result.type.shape, result.type.valid), "its type", op)

    def symbols_in(self, data: Any, what: str, op: Op | None) -> Iterator[Problem]:
        for item in leaves(data):
            if isinstance(item, Index):
                missing = item.variables() - self.visible
                if missing:
                    name = min(missing)
                    known = "is not visible here" if name in self.graph.symbols else "is no symbol of the kernel"
                    yield Problem(f"{what} mentions `{name}`, which {known}", op)
            elif item is not None and not isinstance(item, (bool, int, float, str, DType)):
                yield Problem(f"{what} holds {type(item).__name__} {item!r}, which is no plain data", op)

    def same_shape(self, a: tuple[Index, ...], b: tuple[Index, ...]) -> bool:
        """Equal, or equal by a check that runs before the kernel."""
        return len(a) == len(b) and all(
            self.equal(x, y) or self.equal(decided(x, self.graph), decided(y, self.graph)) for x, y in zip(a, b, strict=True))

    def same_type(self, a: TensorType, b: TensorType, weak: bool = True) -> bool:
        return (a.dtype == b.dtype and self.same_shape(a.shape, b.shape) and self.same_shape(a.live, b.live)
                and (a.weak == b.weak or not weak))

    # ---- operations of the table -------------------------------------------------------------------------------------------------

    def table_op(self, op: Op, frame: _Frame) -> Iterator[Problem]:
        definition = REGISTRY.get(op.opcode)
        if definition is None:
            yield Problem("is no operation of the table" if op.opcode not in ("loop", "if") else "has no regions", op)
            return
        found = list(_signature_problems(op, definition))
        yield from found
        if found:
            return
        if op.opcode == "constant":
            yield from _constant_problems(op)
            return
        derived = self.derive(op, definition)
        if isinstance(derived, str):
            yield Problem(derived, op)
            return
        types, checks = derived
        if len(types) != len(op.results):
            yield Problem(f"has {len(op.results)} results, and the op table gives {len(types)}", op)
        for result, wanted in zip(op.results, types, strict=False):
            if not self.same_type(result.type, wanted):
                yield Problem(f"its result is {result.type}, and the op table gives {wanted}", op)
        for check in checks:  # a bound is of what a user wrote: parts of expansions have none
            if not check.is_bound and not self.equal(check.left, check.right):
                yield Problem(f"needs {check.left} == {check.right}, which no check of the kernel tests", op)
        if op.opcode == "insert":
            yield from self.insert_bounds(op)
        if op.opcode == "load_scalar":
            yield from self.element(op, frame)

    def derive(self, op: Op, definition: OpDefinition) -> tuple[tuple[TensorType, ...], list[Check]] | str:
        numbers = tuple(o.op.attributes.get("value") if o.type.weak and o.op is not None else None for o in op.operands)
        key = (op.opcode, tuple(o.type for o in op.operands), tuple(op.attributes.items()), numbers)
        known = self.derivations.get(key)
        if known is None:
            known = self.derivations[key] = self.derive_once(op, definition)
        return known

    def derive_once(self, op: Op, definition: OpDefinition) -> tuple[tuple[TensorType, ...], list[Check]] | str:
        scratch = Graph(self.graph.name, symbols=self.graph.symbols, options=self.graph.options)
        try:
            return derive(definition, call_of(op, scratch)), scratch.checks
        except KernelError as refused:
            return f"{refused.diagnostic.message} [{refused.code}]"

    def insert_bounds(self, op: Op) -> Iterator[Problem]:
        """An insert that reaches outside for every value of the symbols; what depends on them is tested when it runs."""
        target, value = (o.type for o in op.operands)
        offsets: Any = op.attributes["offsets"]
        for axis, (have, extent, offset) in enumerate(zip(target.shape, value.live, (as_index(o) for o in offsets), strict=True)):
            if is_never_negative(offset + extent - have - 1, self.graph) or is_never_negative(-offset - 1, self.graph):
                yield Problem(f"writes {extent} elements at {offset} along axis {axis}, whose extent is {have}", op)

    def element(self, op: Op, frame: _Frame) -> Iterator[Problem]:
        name = op.attributes.get("symbol")
        if not name or not isinstance(name, str):
            return
        symbol = self.graph.symbols.get(name)
        if symbol is None or symbol.kind != "element":
            yield Problem(f"makes the symbol `{name}`, which is not declared as an element", op)
        if name in self.visible:
            yield Problem(f"makes the symbol `{name}` a second time", op)
            return
        self.visible.add(name)
        frame.symbols.append(name)

    # ---- regions -------------------------------------------------------------------------------------------------------------------

    def region_op(self, op: Op) -> Iterator[Problem]:
        if op.opcode == "loop":
            yield from self.loop(op)
        elif op.opcode == "if":
            yield from self.branch(op)
        else:
            yield Problem("has regions, and only loop and if may", op)

    def loop(self, op: Op) -> Iterator[Problem]:
        missing = [k for k in LOOP_ATTRIBUTES if k not in op.attributes]
        if missing or len(op.regions) != 1:
            yield Problem(f"needs one region and the attributes {', '.join(LOOP_ATTRIBUTES)}", op)
            return
        symbol = self.graph.symbols.get(str(op.attributes["index"]))
        if symbol is None or symbol.kind != "loop":
            yield Problem(f"its index `{op.attributes['index']}` is not declared as a loop symbol", op)
        (region,) = op.regions
        carried = (op.operands, region.arguments, region.yields, op.results)
        if len({len(c) for c in carried}) != 1:
            counts = ", ".join(str(len(c)) for c in carried)
            yield Problem(f"operands, arguments, yields and results must be equally many, and are {counts}", op)
            return
        for operand, argument, last, result in zip(*carried, strict=True):
            for value, what in ((operand, "enters as"), (last, "is yielded as"), (result, "leaves as")):
                if not self.same_type(value.type, argument.type, weak=False):
                    yield Problem(f"%{argument.name or '_'} is {argument.type} and {what} {value.type}", op)

    def branch(self, op: Op) -> Iterator[Problem]:
        if len(op.regions) != 2 or len(op.operands) != 1:
            yield Problem("needs one condition and two regions", op)
            return
        condition = op.operands[0].type
        if condition.dtype != BOOL or condition.rank:
            yield Problem(f"its condition is {condition}, and must be a BOOL scalar", op)
        for name, region in zip(("first", "second"), op.regions, strict=True):
            if region.arguments or len(region.yields) != len(op.results):
                yield Problem(f"its {name} region has {len(region.arguments)} arguments and {len(region.yields)} yields "
                              f"for {len(op.results)} results", op)
                continue
            for value, result in zip(region.yields, op.results, strict=True):
                if not self.same_type(value.type, result.type, weak=False):
                    yield Problem(f"its {name} region yields {value.type} for {result.type}", op)


class _Frame:
    """One open region."""

    __slots__ = ("last", "ops", "owner", "pending", "region", "symbols", "values")

    def __init__(self, region: Region, owner: Op | None, ops: Iterator[Op]) -> None:
        self.region = region
        self.owner = owner
        self.ops = ops
        self.values: list[Value] = []
        self.symbols: list[str] = []
        self.pending: list[tuple[Op, Region]] = []
        self.last: Op | None = None

    def owner_of_last(self) -> Op:
        """The operation whose regions have all been walked."""
        assert self.last is not None
        return self.last


def _signature_problems(op: Op, definition: OpDefinition) -> Iterator[Problem]:
    """Operands and attributes against the signature."""
    absent = op.attributes.get("absent", ())
    assert isinstance(absent, tuple)
    wanted = definition.operands
    count = len(op.operands) + len(absent)
    variadic = any(p.variadic for p in wanted)
    if (count < len(wanted) - 1) if variadic else (count != len(wanted)):
        yield Problem(f"has {count} operands, and its signature {len(wanted)}", op)
        return
    for position in absent:
        if not isinstance(position, int) or not 0 <= position < len(wanted) or not wanted[position].optional:
            yield Problem(f"operand {position} is absent, and cannot be", op)
    known = {p.name: p for p in definition.attributes}
    for name in op.attributes:
        if name not in known and name not in ("absent", *COMMON_ATTRIBUTES):
            yield Problem(f"has an attribute `{name}` that its signature lacks", op)
    for name, p in known.items():
        needed = p.default is not inspect.Parameter.empty and p.default is not None
        if needed and name not in op.attributes:
            yield Problem(f"lacks its attribute `{name}`", op)


def _constant_problems(op: Op) -> Iterator[Problem]:
    """A constant's type is its own: a scalar whose value is of the dtype's kind."""
    value, (result,) = op.attributes["value"], op.results
    kinds = {"bool": bool, "int": int, "uint": int, "float": float}
    dtype = result.type.dtype
    if result.type.rank or dtype.kind not in kinds:
        yield Problem(f"is {result.type}, and constants are scalars", op)
    elif type(value) is not kinds[dtype.kind]:
        yield Problem(f"holds {type(value).__name__} {value!r}, and its dtype is {dtype}", op)
    elif dtype.is_integer and isinstance(value, int) and not dtype.range[0] <= value <= dtype.range[1]:
        yield Problem(f"holds {value}, which {dtype} cannot", op)
    if op.attributes.get("dtype", dtype) != dtype:
        yield Problem(f"is declared {op.attributes['dtype']} and typed {dtype}", op)
