"""The lint of outputs that a kernel writes in part: what it writes is counted, at most, against what there is."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from pypto_dsl.compiler.errors import Diagnostic, Label
from pypto_dsl.compiler.graph import Graph, Op, Value, uses
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.span import Span

HELP = 'write the rest too, as with out[:] = 0.0 before, or say that it is meant by @pypto.jit(lint="off")'


@dataclass(frozen=True)
class _Written:
    """What a value is: ``root`` with at most so many elements written over; ``chain`` are the values on the way."""

    root: Value
    elements: Index
    chain: frozenset[Value]
    last: Span | None


def partial_writes(graph: Graph) -> list[Diagnostic]:
    """PT107 for every output that keeps elements which no write reaches, as far as that can be proved.

    Elements are counted, not placed: writes of fewer elements than there are leave some out, wherever they lie. Nothing is said where the
    count depends on what is known at run time only, where a place is an element that the kernel reads (an update in place, as of a cache),
    or where the kernel also reads the output.
    """
    found = []
    readers = uses(graph)
    parameters = {p.name: p for p in graph.parameters}
    for name, value in [*graph.outputs.items(), *(("", value) for value in graph.returns)]:
        written = _written(graph, value, {})
        if written is None:
            continue
        root = written.root
        if name:
            reading = [op for v in written.chain for op in readers.get(v, ()) if op.opcode not in ("insert", "loop")]
            own = root is parameters[name] and not reading
        else:
            own = root.op is not None and root.op.opcode == "empty"
        rest = (prod(root.type.shape, start=as_index(1)) - written.elements).constant
        if not own or rest is None or rest <= 0 or written.last is None:
            continue
        what = f"`{name}`" if name else "the tensor that it returns"
        stays = "they stay what the caller has in them" if name else "nothing says what they are"
        message = f"kernel `{graph.name}` writes {what} in part: {_counted(rest, written.elements)}; {stays}"
        found.append(Diagnostic("PT107", message, Label(written.last), severity="warning", help=HELP))
    return found


def _counted(rest: int, elements: Index) -> str:
    left = f"at least {rest} element{'s are' if rest > 1 else ' is'} left out"
    return left if elements.constant is None else f"{left} of {rest + elements.constant}"


def _written(graph: Graph, value: Value, arguments: Mapping[Value, Value]) -> _Written | None:
    """How a value came to be by writes of parts, None where one of them is no such write or its size is not known."""
    op = value.op
    if op is None and value in arguments:
        return _Written(value, as_index(0), frozenset((value,)), None)
    if op is None or op.opcode == "empty":
        return _Written(value, as_index(0), frozenset((value,)), None)
    if op.opcode == "insert":
        return _inserted(graph, op, arguments)
    if op.opcode == "loop":
        return _looped(graph, op, value, arguments)
    return None


def _inserted(graph: Graph, op: Op, arguments: Mapping[Value, Value]) -> _Written | None:
    before = _written(graph, op.operands[0], arguments)
    offsets = [as_index(o) for o in op.attributes.get("offsets", ())]  # type: ignore[arg-type, union-attr]
    if before is None or any(not _planned(graph, o) for o in offsets):
        return None
    elements = before.elements + prod(op.operands[1].type.shape, start=as_index(1))
    return replace(before, elements=elements, chain=before.chain | {op.result}, last=op.span or before.last)


def _planned(graph: Graph, offset: Index) -> bool:
    """Whether a place follows from extents and turns alone."""
    return all((symbol := graph.symbols.get(name)) is not None and symbol.kind in ("dim", "loop") for name in offset.variables())


def _looped(graph: Graph, op: Op, value: Value, arguments: Mapping[Value, Value]) -> _Written | None:
    """A loop writes what a turn writes, times its turns."""
    position, (body,) = op.results.index(value), op.regions
    start, stop, step = (as_index(op.attributes[key]).constant for key in ("start", "stop", "step"))  # type: ignore[arg-type]
    argument = body.arguments[position]
    before = _written(graph, op.operands[position], arguments)
    turn = _written(graph, body.yields[position], {**arguments, argument: op.operands[position]})
    if before is None or turn is None or turn.root is not argument or start is None or stop is None or not step:
        return None
    turns = len(range(start, stop, step))
    if any((symbol := graph.symbols.get(name)) is None or symbol.kind != "dim" for name in turn.elements.variables()):
        return None
    return replace(before, elements=before.elements + turn.elements * turns, chain=before.chain | turn.chain | {value}, last=turn.last)
