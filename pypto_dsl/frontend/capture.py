"""Captures a kernel: one run of the rewritten function with symbolic tensors, checked for lost results, settled into a Graph."""
from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

from pypto_dsl.compiler.dtypes import F32, F64, DType, of_numpy
from pypto_dsl.compiler.errors import Diagnostic, KernelError, Label, error
from pypto_dsl.compiler.graph import Graph, Symbol, TensorType, Value, walk
from pypto_dsl.compiler.index import Index, as_index, var
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.recording import building, call_of
from pypto_dsl.compiler.ops.shapes import KEEPDIM, shape_text
from pypto_dsl.compiler.span import Span
from pypto_dsl.frontend import fixes
from pypto_dsl.frontend.arguments import TensorArgument
from pypto_dsl.frontend.control import HOOKS
from pypto_dsl.frontend.keys import Read, reads_of
from pypto_dsl.frontend.options import KernelOptions, leave_tiles, outside
from pypto_dsl.frontend.partial_writes import partial_writes
from pypto_dsl.frontend.rewrite import place_of, rewrite
from pypto_dsl.frontend.scalar import SymbolicScalar, is_symbolic
from pypto_dsl.frontend.settle import live_values, settle
from pypto_dsl.frontend.tensor import Tensor, wrap
from pypto_dsl.frontend.trace import Trace, tracing
from pypto_dsl.frontend.undefined_reads import undefined_read


class KernelWarning(UserWarning):
    """A lint: legal, and probably not what was meant."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic

    def __str__(self) -> str:
        return self.diagnostic.render()


@dataclass(frozen=True)
class Captured:
    """A kernel that has been read: its graph, what came back, what it depends on, and what was noted on the way."""

    graph: Graph
    returns: str
    reads: tuple[Read, ...]
    hints: tuple[tuple[str, str, Span | None], ...]
    warnings: tuple[Diagnostic, ...] = field(default=())
    probed: bool = False


@dataclass(frozen=True)
class Arguments:
    """A call's arguments by kind: arrays, numbers that stay run-time scalars, symbolic integers, and what the kernel is specialised on."""

    tensors: Mapping[str, TensorArgument]
    floats: Mapping[str, Any]
    integers: Mapping[str, int]
    fixed: Mapping[str, Any]


def _dimension(graph: Graph, trace: Trace, argument: TensorArgument, axis: int) -> Index:
    extent = argument.array.shape[axis]
    if not argument.dynamic[axis]:
        return as_index(extent)
    name = trace.unique(f"{argument.name}_d{axis}")
    graph.symbols[name] = Symbol(name, "dim", argument.name, axis)
    return var(name)


def _float_type(value: Any, tensors: Mapping[str, TensorArgument]) -> TensorType:
    """A Python float is weak: of 64 bits where a tensor has them, else of 32. A NumPy float is strong."""
    if not isinstance(value, float) or type(value).__module__ == "numpy":
        dtype: DType | None = of_numpy(value.dtype)
        assert dtype is not None
        return TensorType(dtype, ())
    return TensorType(F64 if any(t.dtype == F64 for t in tensors.values()) else F32, (), weak=True)


def capture(function: FunctionType, name: str, signature: inspect.Signature, arguments: Arguments, options: KernelOptions,
            observing: bool = False) -> Captured:
    """Run ``function`` once with symbolic tensors and record what it does. Raises KernelError at the user's line (PT149
    where calls do not end), NeedsValue for a run-time float that Python needs."""
    span = place_of(function)
    graph = Graph(name, options=options.meaning(), span=span)
    trace = Trace(graph)
    trace.observing = observing
    trace.tiles = outside().copied()
    trace.functions[id(function.__code__)] = function
    trace.taken.update(signature.parameters)
    parameters: dict[str, Value] = {}
    with tracing(trace), building(trace.builder):
        bound: dict[str, Any] = {}
        for key in signature.parameters:
            if key in arguments.tensors:
                argument = arguments.tensors[key]
                kind = TensorType(argument.dtype, tuple(_dimension(graph, trace, argument, i) for i in range(argument.array.ndim)))
            elif key in arguments.floats:
                kind = _float_type(arguments.floats[key], arguments.tensors)
            elif key in arguments.integers:
                graph.symbols[key] = Symbol(key, "scalar", minimum=None)
                bound[key] = SymbolicScalar(var(key))
                continue
            else:
                if key in arguments.fixed:
                    bound[key] = arguments.fixed[key]
                continue
            value = Value(kind, key)
            graph.parameters.append(value)
            parameters[key] = value
            handle: Tensor = wrap(value, key)
            handle.cell.parameter = key in arguments.tensors
            bound[key] = handle
        handles = {k: h for k, h in bound.items() if k in arguments.tensors}
        run = rewrite(function, HOOKS, tuple(arguments.tensors)) or function
        try:
            returned = run(*_positional(signature, bound), **_keywords(signature, bound))
        except KernelError as refused:
            refused.diagnostic = in_users_words(refused.diagnostic, graph)
            refused.args = (refused.diagnostic.render(),)
            raise
        except RecursionError:
            raise error("PT149", f"`{name}`, or a function that it calls, calls itself without end", span,
                        help="end the recursion by a number that Python knows; use pypto.loop where only the run knows it") from None
        for key, handle in handles.items():
            value = trace.read(handle.cell)
            if value is not parameters[key]:
                graph.outputs[key] = value
        form, graph.returns = _returned(trace, name, returned, span)
        lost = _lost_rebinds(trace, graph, parameters, handles)
    leave_tiles(trace.tiles)
    if lost is not None:
        raise lost
    settle(graph, trace.forwards, observing)
    if observing:
        return Captured(graph, form, (), ())
    unbound = undefined_read(graph, trace.poison)
    if unbound is not None:
        raise unbound
    notes = tuple(in_users_words(n, graph) for n in _lint(trace, graph, name, span)) if options.lint == "on" else ()
    for note in notes:
        place = note.primary.span if note.primary is not None else span
        warnings.warn_explicit(KernelWarning(note), None, place.file, place.line)
    return Captured(graph, form, tuple(reads_of(trace.functions.values())), tuple(trace.hints), notes, trace.probed)


def in_users_words(found: Diagnostic, graph: Graph) -> Diagnostic:
    """A record with `x.shape[0]` in place of the symbols that stand for dimensions."""
    names = {s.name: f"{s.parameter}.shape[{s.axis}]" for s in graph.symbols.values() if s.kind == "dim"}
    if not names:
        return found
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")

    def spelled(text: str) -> str:
        return pattern.sub(lambda m: names[m[0]], text)

    others = tuple(replace(label, text=spelled(label.text)) for label in found.others)
    return replace(found, message=spelled(found.message), help=spelled(found.help), notes=tuple(map(spelled, found.notes)), others=others)


def _positional(signature: inspect.Signature, bound: Mapping[str, Any]) -> list[Any]:
    out: list[Any] = []
    for key, p in signature.parameters.items():
        if p.kind is p.VAR_POSITIONAL:
            out += list(bound[key]) if key in bound else []
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            out.append(bound[key])
    return out


def _keywords(signature: inspect.Signature, bound: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, p in signature.parameters.items():
        if p.kind is p.KEYWORD_ONLY:
            out[key] = bound[key]
        elif p.kind is p.VAR_KEYWORD and key in bound:
            out.update(bound[key])
    return out


def _returned(trace: Trace, name: str, returned: Any, span: Span) -> tuple[str, list[Value]]:
    """How a kernel's result is put together ("none", "single", "tuple"), and its values."""
    if returned is None:
        return "none", []
    several = isinstance(returned, (tuple, list))
    values = []
    for item in returned if several else (returned,):
        if isinstance(item, Tensor):
            values.append(item.value)
        elif isinstance(item, (bool, int, float)) or is_symbolic(item):
            values.append(trace.number(item))
        else:
            raise error("PT148", f"kernel `{name}` returns a value of type {type(item).__name__}", span,
                        help="a kernel returns a tensor, a tuple of tensors, or nothing")
    return "tuple" if several else "single", values


# ---- lost results and lints --------------------------------------------------------------------------------------------------


def _lost_rebinds(trace: Trace, graph: Graph, parameters: Mapping[str, Value], handles: Mapping[str, Tensor]) -> Exception | None:
    """`out = x + y` loses its result: an error when the parameter is never touched, or when its new value is never used.

    In the body of a loop or branch a value is used when a result depends on it: that the region passes it on is no use.
    """
    if not trace.rebinds:
        return None
    used: set[Value] = set()
    for op in walk(graph.body):
        used.update(op.operands)
        for region in op.regions:
            used.update(region.yields)
    used.update(graph.results())
    used.update(trace.forwards.values())  # values that a loop only reads
    live = live_values(graph, trace.forwards)
    for rebind in trace.rebinds:
        value = rebind.value
        if not isinstance(value, Tensor) or rebind.name not in handles or value.cell is handles[rebind.name].cell:
            continue
        made = rebind.frame.values.get(value.cell) or trace.frames[0].values.get(value.cell)
        lost = made is not None and made not in (used if rebind.frame.kind == "body" else live)
        untouched = parameters[rebind.name] not in used and rebind.name not in graph.outputs
        if value.cell.lens is None and (lost or untouched):
            symbol = rebind.symbol.replace(":=", "=")
            return error(
                "PT104",
                f"`{rebind.name} {rebind.symbol} ...` binds a new local name; the caller's `{rebind.name}` is not written",
                rebind.span,
                label="this is a Python name",
                help=f"write into the tensor: {rebind.name}[:] {symbol} ...",
                fix=f"{rebind.name}[:]" if rebind.symbol == symbol else None,
            )
    return None


def _rounded_integers(graph: Graph) -> list[Diagnostic]:
    """Operations whose promotion turns integers into a float that does not hold them all."""
    found: list[Diagnostic] = []
    dtypes = {v.type.dtype for v in graph.parameters}
    dtypes.update([r.type.dtype for op in walk(graph.body) for r in op.results if not r.type.weak])
    if not any(dtype.is_integer for dtype in dtypes):
        return found
    for op in walk(graph.body):
        definition = REGISTRY.get(op.opcode)
        if definition is None or not any(o.type.dtype.is_integer and not o.type.weak for o in op.operands):
            continue
        if op.span is None or not any(r.type.dtype.is_float for r in op.results):
            continue
        for loss in definition.types(call_of(op, Graph(graph.name, options=graph.options))).typing.lossy:
            operand = op.operands[loss.operand]
            name = f"`{operand.name}`" if operand.name else f"operand {loss.operand + 1}"
            place = fixes.operand_at(op.span, loss.operand + 1, len(op.operands))
            text = operand.name or (fixes.segment(place) if place is not None else "x")
            becomes = f"is {loss.source} and is promoted to {loss.target}, which rounds integers beyond {loss.exact_up_to}"
            meant = f"pypto.cast({text}, pypto.{loss.target.pypto})"
            found.append(Diagnostic("PT209", f"{op.opcode}: {name} {becomes}", Label(op.span), severity="warning",
                                    help=f"say that it is meant: {meant}, or use @pypto.jit(lint=\"off\")"))
    return found


def _dropped_axes(graph: Graph) -> list[Diagnostic]:
    """Reductions without `keepdim` whose result meets the wrong axis: only extents that are known at run time could make it fit."""
    return [
        Diagnostic(
            "PT318",
            f"{check.what} of {' and '.join(map(shape_text, check.shapes))} fits only where {check.left} and {check.right} "
            f"are equal: {check.dropped} has dropped the axis that it reduces",
            Label(check.span),
            severity="warning",
            help=KEEPDIM.format(check.dropped),
        )
        for check in graph.checks
        if check.dropped and check.span is not None
    ]


def _lint(trace: Trace, graph: Graph, name: str, span: Span) -> tuple[Diagnostic, ...]:
    found = []
    if not graph.outputs and not graph.returns:
        found.append(Diagnostic("PT106", f"kernel `{name}` writes none of its parameters and returns nothing", Label(span),
                                severity="warning", help="write a result with out[:] = value, or return it"))
    found += _rounded_integers(graph)
    found += _dropped_axes(graph)
    found += partial_writes(graph)
    alive: set[Value] = set(graph.parameters) | set(graph.results())
    if trace.local_writes:
        for op in walk(graph.body):
            alive.update(op.results)
    for write in trace.local_writes:
        if write.value not in alive and write.value.op is not None and write.value.op.opcode != "full":
            place = Label(write.span) if write.span else None
            found.append(Diagnostic("PT105", f"the value written to `{write.name}` is never read", place, severity="warning",
                                    help="a view is a copy: to write its source, write out[a:b, :] = value itself"))
    return tuple(found)
