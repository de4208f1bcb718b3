"""The reference interpreter: executes a Graph operation by operation with the op table's NumPy references.

It is the meaning of a kernel, not a fast way to run one. A value is an array of its live extents, so nothing outside them can be
read; f16 and bf16 round once per operation; what nobody wrote is NaN (integers: the largest value).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Check, Graph, Op, Region, TensorType, Value
from pypto_dsl.compiler.index import as_index
from pypto_dsl.compiler.ops.bounds import repeated
from pypto_dsl.compiler.ops.evaluate import Array, Plan, evaluate, plan
from pypto_dsl.compiler.ops.layout_rules import empty_reference
from pypto_dsl.compiler.ops.shapes import KEEPDIM, shape_text


def return_names(graph: Graph) -> list[str]:
    """Under which names `run` delivers a graph's returned values."""
    return [f"return{i}" for i in range(len(graph.returns))]


def run(graph: Graph, arguments: Mapping[str, Any], symbols: Mapping[str, int] | None = None,
        observe: Callable[[Op, Sequence[Array]], None] | None = None) -> dict[str, Array]:
    """Execute a graph; returns every output by its parameter's name and every returned value by `return_names`.

    ``arguments`` are arrays of the parameters' dtypes, of any strides, and numbers for scalar parameters; an output that is not read
    may be left out. ``symbols`` gives Index variables; dimensions of parameters follow from the arrays. ``observe`` is given each probe
    and its operands. Nothing is written in
    place. Raises KernelError: PT715 an argument is missing, PT702 dtype, PT703 rank, PT704 extent, PT707 a check fails, PT710 an
    element or window outside its tensor, and what the dtype rules raise.
    """
    found = _extents(graph, arguments, dict(symbols or {}))
    machine = _Machine(graph, found, _last_uses(graph), observe)
    for check in graph.checks:
        _test(check, found)
    for parameter in graph.parameters:
        machine.values[parameter] = _argument(graph, parameter, arguments, found)
    machine.region(graph.body)
    outputs = {name: _strong(machine.values[v], v.type) for name, v in graph.outputs.items()}
    returned = {name: _strong(machine.values[v], v.type) for name, v in zip(return_names(graph), graph.returns, strict=True)}
    return outputs | returned


@dataclass
class _Machine:
    """Values by identity and Index variables by name, while a graph runs."""

    graph: Graph
    symbols: dict[str, int]
    last_uses: dict[Op, list[Value]]
    observe: Callable[[Op, Sequence[Array]], None] | None = None
    values: dict[Value, Array] = field(default_factory=dict)
    plans: dict[Op, Plan] = field(default_factory=dict)

    def region(self, region: Region) -> list[Array]:
        """Run a region; returns what it yields. Recursion is over nested regions only."""
        for op in region.ops:
            if op.opcode == "loop":
                made: Sequence[Array] = self.loop(op)
            elif op.opcode == "if":
                chosen = op.regions[0 if bool(self.values[op.operands[0]]) else 1]
                made = self.region(chosen)
            elif op.opcode == "probe":
                made = ()
                if self.observe is not None:
                    self.observe(op, [self.values[o] for o in op.operands])
            else:
                made = self.operation(op)
            self.values.update(zip(op.results, made, strict=True))
            for value in self.last_uses.get(op, ()):
                del self.values[value]
        return [self.values[y] for y in region.yields]

    def operation(self, op: Op) -> Sequence[Array]:
        how = self.plans.get(op)
        if how is None:
            how = self.plans[op] = plan(op, self.graph)
        operands = [self.values[o] for o in op.operands]
        if op.opcode in ("load_scalar", "view"):
            self.within(op, operands[0])
        if op.opcode == "reshape" and operands[0].size != (wanted := math.prod(self.at(e) for e in op.results[0].type.live)):
            raise error("PT710", f"an index outside its tensor: {operands[0].size} elements are there, and {wanted} are taken", op.span)
        for offset, have in repeated(op) if any(o.type.valid is not None for o in op.operands) else ():
            if self.at(offset) >= self.at(have):
                raise error("PT710", f"{op.opcode} repeats an element, and reaches {self.at(offset) + 1} where {self.at(have)} are there",
                            op.span)
        try:
            made = evaluate(op, how, operands, self.symbols)
        except IndexError as outside:
            raise error("PT710", f"{op.opcode}: {outside}", op.span) from None
        if op.opcode == "load_scalar" and (name := op.attributes.get("symbol")):
            self.symbols[str(name)] = int(made[0])
        return made

    def within(self, op: Op, source: Array) -> None:
        """Offsets of an element lie inside the live part, those of a window are not negative."""
        offsets: Any = op.attributes["offsets"]
        for axis, (offset, have) in enumerate(zip(offsets, source.shape, strict=True)):
            at = as_index(offset).evaluate(self.symbols)
            if at < 0 or (at >= have and op.opcode == "load_scalar"):
                raise error("PT710", f"{op.opcode}: offset {at} is outside axis {axis}, whose live extent is {have}", op.span,
                            help="guard the access, or clamp its offset: pypto.max(offset, 0), pypto.min(offset, x.shape[0] - 1)")

    def loop(self, op: Op) -> list[Array]:
        (region,) = op.regions
        start, stop, step = (self.at(op.attributes[k]) for k in ("start", "stop", "step"))
        carried = [self.values[o] for o in op.operands]
        if step == 0:
            raise error("PT710", "loop: its step is 0", op.span)
        for turn in range(start, stop, step):
            self.symbols[str(op.attributes["index"])] = turn
            self.values.update(zip(region.arguments, carried, strict=True))
            carried = self.region(region)
        return carried

    def at(self, x: Any) -> int:
        return as_index(x).evaluate(self.symbols)


def _last_uses(graph: Graph) -> dict[Op, list[Value]]:
    """Which values nobody reads after an operation, so that a long chain needs the memory of a short one.

    An operation with regions reads what they read. Parameters, and what a region yields, stay until the region ends.
    """
    dying: dict[Op, list[Value]] = {}

    def visit(region: Region, keep: set[Value]) -> set[Value]:
        last: dict[Value, Op] = {}
        own = set(region.arguments)
        for op in region.ops:
            used = set(op.operands).union(*(visit(r, set(r.yields)) for r in op.regions))
            last.update(dict.fromkeys([*used, *op.results], op))
            own.update(op.results)
        for value, op in last.items():
            if value in own and value not in keep:
                dying.setdefault(op, []).append(value)
        return (last.keys() | keep) - own

    visit(graph.body, set(graph.results()))
    return dying


def _extents(graph: Graph, arguments: Mapping[str, Any], symbols: dict[str, int]) -> dict[str, int]:
    """Every Index variable that is known before the kernel runs."""
    for symbol in graph.symbols.values():
        given = arguments.get(symbol.parameter)
        if symbol.name in symbols or symbol.kind not in ("dim", "scalar"):
            continue
        if symbol.kind == "scalar" and arguments.get(symbol.parameter or symbol.name) is not None:
            symbols[symbol.name] = int(arguments[symbol.parameter or symbol.name])
        elif symbol.kind == "dim" and given is not None and np.ndim(given) > symbol.axis:
            symbols[symbol.name] = np.shape(given)[symbol.axis]
        else:
            raise error("PT715", f"nothing says what `{symbol.name}` is", graph.span,
                        help=f"pass the argument `{symbol.parameter or symbol.name}`")
    return symbols


def _test(check: Check, symbols: Mapping[str, int]) -> None:
    left, right = check.left.evaluate(symbols), check.right.evaluate(symbols)
    if left != right:
        needs = f"{check.what or 'the kernel'} needs {check.left} == {check.right}"
        shapes = " and ".join(shape_text([e.evaluate(symbols) for e in shape]) for shape in check.shapes)
        raise error("PT707", f"{needs}, and they are {left} and {right}", check.span, notes=(f"the shapes are {shapes}",) if shapes else (),
                    help=KEEPDIM.format(check.dropped) if check.dropped else "pass arrays whose extents agree")


def _argument(graph: Graph, parameter: Value, arguments: Mapping[str, Any], symbols: Mapping[str, int]) -> Array:
    """The array of a parameter, checked against its type; poison for an output that was not passed."""
    t, name = parameter.type, parameter.name
    shape = tuple(e.evaluate(symbols) for e in t.shape)
    given = arguments.get(name)
    if given is None:
        if name not in graph.outputs:
            raise error("PT715", f"the argument `{name}` is missing", graph.span)
        return empty_reference([as_index(e) for e in shape], t.dtype, symbols)
    if t.rank == 0 and not isinstance(given, (np.ndarray, np.generic)):
        return np.asarray(given, np.float64 if t.dtype.is_float else np.int64).astype(t.dtype.numpy)
    array = np.asarray(given)
    if array.dtype != t.dtype.numpy and t.rank:
        raise error("PT702", f"`{name}` is an array of {array.dtype}, and the kernel takes {t.dtype}", graph.span)
    if array.ndim != t.rank:
        raise error("PT703", f"`{name}` has {array.ndim} dimensions, and the kernel takes {t.rank}", graph.span)
    if array.shape != shape:
        raise error("PT704", f"`{name}` has shape {list(array.shape)}, and the kernel takes {list(shape)}", graph.span)
    return array.astype(t.dtype.numpy, copy=False)


def _strong(array: Array, t: TensorType) -> Array:
    """A result as an array of its dtype: weak numbers are held wider."""
    return np.array(array, dtype=t.dtype.numpy)


