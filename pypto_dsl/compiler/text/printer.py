"""Text of Graph IR, writing side: the canonical `.ptir` form, by which graphs are compared.

Unnamed values are numbered in order of definition; named ones keep the user's name, with `.1`, `.2` behind it where it is taken.
Attributes stand in the order of the operation's signature, and only where they differ from its defaults (those of generators
always). Nothing here recurses over operands; only bodies nest.
"""
from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.graph import Check, Graph, Op, Region, Symbol, Value
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.index import text as index_text
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.text.lexical import location, number, quoted, word

_BARE = re.compile(r"[^\W\d]\w*")
_INDENT = "  "
# Attributes of a loop that have a place of their own in its text.
LOOP_ATTRIBUTES = ("index", "start", "stop", "step")


def print_graph(graph: Graph, spans: bool = True) -> str:
    """The canonical text of a graph; ``spans`` False leaves out source locations."""
    return _Printer(graph, spans).kernel()


def attribute_text(value: Any) -> str:
    """An attribute's value. What it is read back as follows from its form and the signature's annotation."""
    if value is None or isinstance(value, (bool, int, float)):
        return "None" if value is None else number(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Index):
        return index_text(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        return f"[{', '.join(map(attribute_text, value))}]"
    raise CompilerBug("text.printer", f"an attribute holds {type(value).__name__} {value!r}, which is no plain data")


@dataclass(frozen=True)
class _Signature:
    """What the printer needs of an operation's definition."""

    order: dict[str, int]
    defaults: dict[str, Any]


@cache
def _signature(opcode: str) -> _Signature:
    definition = REGISTRY.get(opcode)
    if definition is None:
        return _Signature({}, {})
    order = {p.name: i for i, p in enumerate(definition.attributes)}
    known = {p.name: p.default for p in definition.attributes if p.default is not inspect.Parameter.empty}
    return _Signature(order, {} if definition.family == "generator" else known)


class _Names:
    """Gives every value its canonical name."""

    def __init__(self) -> None:
        self.of: dict[Value, str] = {}
        self.taken: dict[str, int] = {}
        self.unnamed = 0

    def define(self, value: Value) -> str:
        if not value.name:
            text = f"%{self.unnamed}"
            self.unnamed += 1
        else:
            bare = value.name if _BARE.fullmatch(value.name) else quoted(value.name)
            times = self.taken.get(bare, 0)
            self.taken[bare] = times + 1
            text = f"%{bare}" if times == 0 else f"%{bare}.{times}"
        self.of[value] = text
        return text

    def use(self, value: Value) -> str:
        """The name of a value that is used; one that nobody defined above (the verifier refuses it) shows as such."""
        return self.of.get(value) or f"%\"undefined {value.name}\""


class _Printer:
    def __init__(self, graph: Graph, spans: bool) -> None:
        self.graph = graph
        self.spans = spans
        self.names = _Names()
        self.lines: list[str] = []

    def kernel(self) -> str:
        graph = self.graph
        params = ", ".join(f"{self.names.define(p)}: {p.type}" for p in graph.parameters)
        options = self._options({k: graph.options[k] for k in sorted(graph.options)}, graph.span)
        self.lines.append(f"kernel {word(graph.name)}({params}){options} {{")
        self.lines += [_INDENT + self._symbol(s) for s in graph.symbols.values()]
        self.lines += [_INDENT + self._check(c) for c in graph.checks]
        self._body(graph.body, 1)
        self.lines += [f"{_INDENT}write {word(name)} <- {self.names.use(v)}" for name, v in graph.outputs.items()]
        if graph.returns:
            self.lines.append(f"{_INDENT}return {', '.join(map(self.names.use, graph.returns))}")
        return "\n".join([*self.lines, "}"]) + "\n"

    def _options(self, given: dict[str, Any], span: Any) -> str:
        listed = f" with ({', '.join(f'{k} = {attribute_text(v)}' for k, v in given.items())})" if given else ""
        return listed + self._location(span)

    def _location(self, span: Any) -> str:
        return f" {location(span)}" if span is not None and self.spans else ""

    def _symbol(self, s: Symbol) -> str:
        origin = f" of {word(s.parameter)}" if s.parameter else ""
        origin += f" axis {s.axis}" if s.parameter and (s.axis or s.kind == "dim") else ""
        covered = {"name", "kind", "parameter", "axis"} if s.parameter else {"name", "kind", "parameter"}
        rest = {f.name: getattr(s, f.name) for f in fields(s) if f.name not in covered and getattr(s, f.name) != f.default}
        return f"symbol {s.name}: {s.kind}{origin}{self._options(rest, None)}"

    def _check(self, c: Check) -> str:
        what = f" for {quoted(c.what)}" if c.what else ""
        return f"check {index_text(c.left)} == {index_text(c.right)}{what}{self._location(c.span)}"

    def _body(self, region: Region, depth: int) -> None:
        for op in region.ops:
            if op.opcode == "loop":
                self._loop(op, depth)
            elif op.opcode == "if":
                self._if(op, depth)
            else:
                self.lines.append(_INDENT * depth + self._operation(op))

    def _operation(self, op: Op) -> str:
        if op.regions:
            raise CompilerBug("text.printer", f"`{op.opcode}` has regions, and only loop and if may")
        operands: list[str] = [self.names.use(o) for o in op.operands]
        absent = op.attributes.get("absent", ())
        for position in absent if isinstance(absent, tuple) else ():
            operands.insert(int(position), "absent")  # type: ignore[arg-type]
        signature = _signature(op.opcode)
        given = [(k, v) for k, v in op.attributes.items() if k != "absent" and not _is_default(v, signature.defaults, k)]
        given.sort(key=lambda pair: (signature.order.get(pair[0], len(signature.order)), pair[0]))
        parts = ", ".join([*operands, *(f"{k} = {attribute_text(v)}" for k, v in given)])
        types = ", ".join(str(r.type) for r in op.results)
        return f"{self._results(op)}{op.opcode}({parts}){': ' if types else ''}{types}{self._suffix(op)}"

    def _results(self, op: Op) -> str:
        return f"{', '.join(map(self.names.define, op.results))} = " if op.results else ""

    def _suffix(self, op: Op) -> str:
        tile = "" if op.tile is None else f" tile [{', '.join(map(str, op.tile))}]"
        return tile + self._location(op.span)

    def _loop(self, op: Op, depth: int) -> None:
        (region,) = op.regions
        index, start, stop, step = (op.attributes[k] for k in LOOP_ATTRIBUTES)
        initial = [self.names.use(o) for o in op.operands]
        arguments = [f"{self.names.define(a)}: {a.type}" for a in region.arguments]
        carries = ", ".join(f"{a} = {i}" for a, i in zip(arguments, initial, strict=True))
        rest = {k: v for k, v in op.attributes.items() if k not in LOOP_ATTRIBUTES}
        # results are numbered behind the body they come out of
        at = len(self.lines)
        self.lines.append("")
        self._region(region, depth + 1)
        bounds = f"{index} in {attribute_text(start)} to {attribute_text(stop)} step {attribute_text(step)}"
        as_carried = [r.type for r in op.results] == [a.type for a in region.arguments]
        types = "" if as_carried else f": {', '.join(str(r.type) for r in op.results)}"
        head = f"loop {bounds} ({carries}){types}{self._options(rest, None)}{self._suffix(op)}"
        self.lines[at] = f"{_INDENT * depth}{self._results(op)}{head} {{"
        self.lines.append(f"{_INDENT * depth}}}")

    def _if(self, op: Op, depth: int) -> None:
        (condition,) = op.operands
        then, otherwise = op.regions
        at = len(self.lines)
        self.lines.append("")
        self._region(then, depth + 1)
        self.lines.append(f"{_INDENT * depth}}} else {{")
        self._region(otherwise, depth + 1)
        types = f": {', '.join(str(r.type) for r in op.results)}" if op.results else ""
        head = f"if {self.names.use(condition)}{types}{self._options(op.attributes, None)}{self._suffix(op)}"
        self.lines[at] = f"{_INDENT * depth}{self._results(op)}{head} {{"
        self.lines.append(f"{_INDENT * depth}}}")

    def _region(self, region: Region, depth: int) -> None:
        self._body(region, depth)
        values = ", ".join(map(self.names.use, region.yields))
        self.lines.append(f"{_INDENT * depth}yield {values}".rstrip())


def _is_default(value: Any, defaults: dict[str, Any], key: str) -> bool:
    """Types are compared too: False, 0 and 0.0 are equal and not the same."""
    if key not in defaults:
        return False
    default = defaults[key]
    return bool(value == default) and type(value) is type(default)


def _indexes(values: Iterable[Index]) -> str:
    return ", ".join(map(index_text, values))
