"""Text of Tile IR, writing side: a Program or TileKernel as text that `reader.py` reads back equal.

Each structured node has a form of its own for the fields that matter to a reader; every other field that differs from its default
follows as `with (field = value)`, and a span as `loc(...)`. A placed statement is `keyword(field = value, ...) { body }` with the
class's name in snake case. Fields added to a node later are therefore printed and read without a change here.
Buffers and parameters are declared once, at the head of the kernel, and referred to by name.
"""
from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.index import text as index_text
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.text.lexical import is_identifier, location, number, quoted, word
from pypto_dsl.compiler.tile_ir import nodes
from pypto_dsl.compiler.tile_ir.nodes import (
    Accumulate,
    Block,
    BlockOp,
    Buffer,
    Constant,
    Fill,
    Finish,
    For,
    Grid,
    If,
    IndexValue,
    Init,
    LaneIndex,
    Let,
    Load,
    Param,
    PlacedStatement,
    Program,
    ReadBuffer,
    Reduce,
    Region,
    Scalar,
    ScalarRead,
    Store,
    TileKernel,
    Workspace,
    Write,
)

STRUCTURED = (Let, For, If, Load, Store, Fill, Block, Init, Finish, Accumulate)
_INDENT = "  "

# A form: the text of a node's own fields, and the names of the fields it covers.
Form = tuple[str, frozenset[str]]


def print_program(program: Program) -> str:
    """The text of a whole program. Two buffers or parameters of a kernel with one name are a CompilerBug."""
    covered = frozenset({"name", "target", "arguments", "scalars", "workspaces", "steps"})
    lines = [f"program {word(program.name)} target {word(program.target)}{_options(program, covered)} {{"]
    lines += [f"{_INDENT}argument {_param(p)}" for p in program.arguments]
    lines += [f"{_INDENT}{_scalar(s)}" for s in program.scalars]
    lines += [f"{_INDENT}{_workspace(w)}" for w in program.workspaces]
    lines += _steps(program.steps, 1)
    return "\n".join([*lines, "}"]) + "\n"


def _steps(steps: tuple[nodes.Step, ...], depth: int) -> list[str]:
    """The steps of a program: kernels with their variants, and what the host does between them."""
    pad = _INDENT * depth
    lines: list[str] = []
    for step in steps:
        if isinstance(step, tuple):
            kernels = [pad + _INDENT + line for kernel in step for line in print_kernel(kernel).splitlines()]
            lines += [f"{pad}step {{", *kernels, f"{pad}}}"]
        elif isinstance(step, nodes.LoopStep):
            bounds = f"{_name(step.var)} in {index_text(step.start)} to {index_text(step.stop)} step {index_text(step.step)}"
            options = _options(step, frozenset({"var", "start", "stop", "step", "steps"}))
            lines += [f"{pad}for {bounds}{options} {{", *_steps(step.steps, depth + 1), f"{pad}}}"]
        elif isinstance(step, nodes.BranchStep):
            ops = [pad + _INDENT + _block_op(o) for o in step.ops]
            options = _options(step, frozenset({"ops", "condition", "steps", "orelse"}))
            orelse = [f"{pad}}} else {{", *_steps(step.orelse, depth + 1)] if step.orelse else []
            head = f"{pad}}} if {_operand(step.condition)}{options} {{"
            lines += [f"{pad}branch {{", *ops, head, *_steps(step.steps, depth + 1), *orelse, f"{pad}}}"]
        elif isinstance(step, nodes.StoreNumber):
            ops = [pad + _INDENT + _block_op(o) for o in step.ops]
            options = _options(step, frozenset({"name", "ops", "value"}))
            lines += [f"{pad}number {_name(step.name)} {{", *ops] if ops else []
            lines.append(f"{pad}}}" if ops else f"{pad}number {_name(step.name)} {{ }}")
            lines[-1] += f" = {_operand(step.value)}{options}"
        else:
            fields = ", ".join(f"{name} = {_host_value(value, name == 'attributes')}" for name, value in _others(step, frozenset()))
            lines.append(f"{pad}{keyword(type(step))}({fields}){f' {location(step.span)}' if step.span else ''}")
    return lines


def _host_value(value: Any, mark: bool = False) -> str:
    """A value in a step of the host: parameters are written out; in attributes an Index that looks like a number or a word is marked."""
    if isinstance(value, tuple):
        return f"[{', '.join(_host_value(v, mark) for v in value)}]"
    if isinstance(value, Param):
        return f"Param({', '.join(f'{name} = {_host_value(v)}' for name, v in _others(value, frozenset()))})"
    if mark and isinstance(value, Index) and (value.constant is not None or value.name is not None or (-value).name is not None):
        return f"Index(value = {index_text(value)})"
    return _value(value)


def print_kernel(kernel: TileKernel) -> str:
    """The text of one kernel."""
    _check_params(kernel)
    covered = frozenset({"name", "title", "params", "scalars", "grid", "body", "once", "requires", "properties"})
    params = ", ".join(map(_param, kernel.params))
    if len(params) > 100:
        params = "\n" + ",\n".join(_INDENT * 2 + _param(p) for p in kernel.params) + "\n" + _INDENT
    lines = [f"tile_kernel {word(kernel.name)} of {quoted(kernel.title)}({params}){_options(kernel, covered)} {{"]
    lines += [_INDENT + _scalar(s) for s in kernel.scalars]
    lines += [f"{_INDENT}requires {index_text(condition)}" for condition in kernel.requires]
    lines += [f"{_INDENT}property {word(key)} = {_value(value)}" for key, value in kernel.properties]
    lines += [_INDENT + _buffer(b) for b in buffers(kernel)]
    lines.append(_INDENT + _grid(kernel.grid))
    if kernel.once:
        lines += [f"{_INDENT}once {{", *_statements(kernel.once, 2), f"{_INDENT}}}"]
    lines += [f"{_INDENT}body {{", *_statements(kernel.body, 2), f"{_INDENT}}}"]
    return "\n".join([*lines, "}"]) + "\n"


def buffers(kernel: TileKernel) -> tuple[Buffer, ...]:
    """Every buffer of a kernel in order of first mention; CompilerBug when one name stands for two that differ."""
    found: dict[str, Buffer] = {}
    for buffer in _mentions((kernel.once, kernel.body), Buffer):
        if found.setdefault(buffer.name, buffer) != buffer:
            raise CompilerBug("tile_ir.text", f"kernel {kernel.name} has two different buffers called {buffer.name}: "
                              f"{found[buffer.name]} and {buffer}")
    return tuple(found.values())


def _check_params(kernel: TileKernel) -> None:
    declared = {p.name: p for p in kernel.params}
    for param in _mentions((kernel.once, kernel.body), Param):
        if declared.get(param.name) != param:
            raise CompilerBug("tile_ir.text", f"kernel {kernel.name} uses a parameter {param} that it does not declare")


def _mentions(root: Any, kind: type[Any]) -> Iterator[Any]:
    """Every instance of ``kind`` below a node, in order."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, kind):
            yield node
        if isinstance(node, tuple):
            stack += reversed(node)
        elif dataclasses.is_dataclass(node) and not isinstance(node, (Index, Span, DType, type)):
            stack += [getattr(node, f.name) for f in reversed(dataclasses.fields(node))]


# ---- declarations ------------------------------------------------------------------------------------------------------


def _shape(shape: tuple[Index, ...]) -> str:
    return f"[{', '.join(map(index_text, shape))}]"


def _param(p: Param) -> str:
    strides = "" if p.strides is None else f" strides {_shape(p.strides)}"
    covered = frozenset({"name", "dtype", "shape", "role", "strides"})
    return f"{_name(p.name)}: {p.role} {p.dtype}{_shape(p.shape)}{strides}{_options(p, covered)}"


def _scalar(s: Scalar) -> str:
    value = "" if s.value is None else f" = {index_text(s.value)}"
    return f"scalar {_name(s.name)}: {s.dtype}{value}{_options(s, frozenset({'name', 'dtype', 'value'}))}"


def _workspace(w: Workspace) -> str:
    return f"workspace {word(w.name)}: {w.dtype}{_shape(w.shape)}{_options(w, frozenset({'name', 'dtype', 'shape'}))}"


def _buffer(b: Buffer) -> str:
    slots = "" if b.slots == 1 else f" x{b.slots}"
    covered = frozenset({"name", "dtype", "shape", "slots", "space", "layout"})
    return f"buffer {_ref(b)}: {word(b.space)} {b.layout} {b.dtype}{_shape(b.shape)}{slots}{_options(b, covered)}"


def _grid(grid: Grid) -> str:
    if len(grid.vars) != len(grid.extents):
        raise CompilerBug("tile_ir.text", f"a grid has {len(grid.vars)} variables and {len(grid.extents)} extents")
    axes = ", ".join(f"{_name(v)} in {index_text(e)}" for v, e in zip(grid.vars, grid.extents, strict=True))
    return f"grid {axes}".rstrip() + _options(grid, frozenset({"vars", "extents"}))


def _name(name: str) -> str:
    if not is_identifier(name):
        raise CompilerBug("tile_ir.text", f"{name!r} is no identifier and cannot name an index variable, parameter or value")
    return name


def _ref(b: Buffer) -> str:
    return f"%{word(b.name)}"


# ---- values ------------------------------------------------------------------------------------------------------------


def _value(value: Any) -> str:
    """Any field's value. What type a reader gives it back follows from its form and the field's annotation."""
    if value is None or isinstance(value, (bool, int, float)):
        return "None" if value is None else number(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    for kind, write in _WRITE.items():
        if isinstance(value, kind):
            return write(value)
    form = _COMPACT.get(type(value))
    if form is not None:
        text, covered = form(value)
        if not _others(value, covered):
            return text
    if dataclasses.is_dataclass(value):
        fields = _others(value, frozenset(), spans=True)
        return f"{type(value).__name__}({', '.join(f'{name} = {_value(v)}' for name, v in fields)})"
    raise CompilerBug("tile_ir.text", f"{type(value).__name__} {value!r} is no plain data and cannot be printed")


_WRITE: dict[type[Any], Callable[[Any], str]] = {
    Index: index_text, DType: str, Buffer: _ref, Param: lambda p: _name(p.name), Span: location}


def _region(region: Region) -> Form:
    """`x[r : +rows, 0 : +N]`."""
    offsets, extents = len(region.offset), len(region.extent)
    if offsets != extents:
        raise CompilerBug("tile_ir.text", f"a region of {region.param.name} has {offsets} offsets and {extents} extents")
    slices = ", ".join(f"{index_text(o)} : +{index_text(e, bracket=True)}" for o, e in zip(region.offset, region.extent, strict=True))
    return f"{_name(region.param.name)}[{slices}]", frozenset({"param", "offset", "extent"})


_COMPACT: dict[type[Any], Callable[[Any], Form]] = {
    Region: _region,
    ReadBuffer: lambda r: (f"{r.how}({_ref(r.buffer)})", frozenset({"buffer", "how"})),
    Constant: lambda c: (f"{c.dtype}({number(c.value)})", frozenset({"value", "dtype"})),
    ScalarRead: lambda s: (f"{s.dtype}(${_name(s.name)})", frozenset({"name", "dtype"})),
    IndexValue: lambda v: (f"{v.dtype}(index {index_text(v.value)})", frozenset({"value", "dtype"})),
    LaneIndex: lambda v: (f"{v.dtype}(lane {v.axis} from {index_text(v.base)})", frozenset({"axis", "base", "dtype"})),
}


def _operand(operand: nodes.Operand) -> str:
    """An operand of a Block: values of the Block and buffers read whole are written bare."""
    if isinstance(operand, str):
        return _name(operand)
    if isinstance(operand, ReadBuffer) and operand.how == "full":
        return _ref(operand.buffer)
    return _value(operand)


def _others(node: Any, covered: frozenset[str], spans: bool = False) -> list[tuple[str, Any]]:
    """Fields that the node's own form does not cover and that differ from their default, in order."""
    found = []
    for f in dataclasses.fields(node):
        value = getattr(node, f.name)
        default = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
        # types are compared too: 0, 0.0 and False are equal and not the same
        is_default = value == default and type(value) is type(default)
        has_own_place = f.name in covered or (f.name == "span" and not spans and value is not None)
        if not is_default and not has_own_place:
            found.append((f.name, value))
    return found


def _options(node: Any, covered: frozenset[str]) -> str:
    """` with (field = value, ...) loc(...)`, whichever of the two is needed."""
    others = _others(node, covered)
    span = getattr(node, "span", None)
    listed = f" with ({', '.join(f'{name} = {_value(v)}' for name, v in others)})" if others else ""
    return listed + (f" {location(span)}" if span else "")


# ---- statements --------------------------------------------------------------------------------------------------------


def _statements(body: tuple[Any, ...], depth: int) -> list[str]:
    lines: list[str] = []
    for statement in body:
        lines += _statement(statement, depth)
    return lines


def _statement(s: Any, depth: int) -> list[str]:
    pad = _INDENT * depth
    if isinstance(s, Block):
        head = f"block {_shape((s.rows, s.cols))}{_options(s, frozenset({'rows', 'cols', 'ops', 'writes', 'reduces'}))}"
        inside = [_block_op(o) for o in s.ops] + [_write(w) for w in s.writes] + [_reduce(r) for r in s.reduces]
        return [f"{pad}{head} {{", *(pad + _INDENT + line for line in inside), f"{pad}}}"]
    if isinstance(s, If):
        orelse = [f"{pad}}} else {{", *_statements(s.orelse, depth + 1)] if s.orelse else []
        closing = f"{pad}}}{_options(s, frozenset({'condition', 'body', 'orelse'}))}"
        return [f"{pad}if {index_text(s.condition)} {{", *_statements(s.body, depth + 1), *orelse, closing]
    for kind, form in _FORMS.items():
        if isinstance(s, kind):
            text, covered = form(s)
            body = next((getattr(s, f) for f in ("body", "loads") if f in covered), None)
            return _with_body(f"{pad}{text}{_options(s, covered)}", body, depth)
    if isinstance(s, PlacedStatement) and dataclasses.is_dataclass(s):
        return _placed(s, depth)
    raise CompilerBug("tile_ir.text", f"{type(s).__name__} is no statement of Tile IR")


def _with_body(head: str, body: tuple[Any, ...] | None, depth: int, tail: str = "") -> list[str]:
    if body is None:
        return [head + tail]
    return [f"{head} {{", *_statements(body, depth + 1), f"{_INDENT * depth}}}{tail}"]


def keyword(kind: type[Any]) -> str:
    """The keyword of a placed statement: its class's name in snake case (`QueueAction` is `queue_action`)."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind.__name__).lower()


def _placed(s: Any, depth: int) -> list[str]:
    """`keyword(field = value, ...) { body } loc(...)`. Tuples of records and of statements get lines of their own when long."""
    covered = frozenset({"body"})
    fields = [f"{name} = {_field_value(value, depth)}" for name, value in _others(s, covered)]
    one_line = f"{_INDENT * depth}{keyword(type(s))}({', '.join(fields)})"
    if len(one_line) > 140:
        inner = ",\n".join(_INDENT * (depth + 2) + f for f in fields)
        one_line = f"{_INDENT * depth}{keyword(type(s))}(\n{inner})"
    span = getattr(s, "span", None)
    return _with_body(one_line, getattr(s, "body", None), depth, f" {location(span)}" if span else "")


def _field_value(value: Any, depth: int) -> str:
    if isinstance(value, tuple) and value and all(isinstance(v, (*STRUCTURED, PlacedStatement)) for v in value):
        return "\n".join(["{", *_statements(value, depth + 3), _INDENT * (depth + 2) + "}"])
    text = _value(value)
    if isinstance(value, tuple) and len(text) > 100:
        return "[\n" + ",\n".join(_INDENT * (depth + 3) + _value(v) for v in value) + "]"
    return text


def _block_op(o: BlockOp) -> str:
    parts = [*map(_operand, o.operands), *(f"{_name(k)} = {_value(v)}" for k, v in o.attributes)]
    covered = frozenset({"result", "name", "operands", "dtype", "attributes"})
    return f"{_name(o.result)} = {_name(o.name)}({', '.join(parts)}): {o.dtype}{_options(o, covered)}"


def _write(w: Write) -> str:
    return f"{_ref(w.buffer)} <- {_operand(w.value)}{_options(w, frozenset({'value', 'buffer'}))}"


def _reduce(r: Reduce) -> str:
    covered = frozenset({"kind", "value", "axis", "target"})
    return f"{_ref(r.target)} = reduce {r.kind}({_operand(r.value)}) axis {r.axis}{_options(r, covered)}"


def _partial(which: str) -> Callable[[Any], Form]:
    def form(s: Init | Finish) -> Form:
        return (f"{which} {_ref(s.target)} = {s.kind} over {_shape((s.rows, s.cols))} axis {s.axis}",
                frozenset({"kind", "axis", "target", "rows", "cols"}))
    return form


_FORMS: dict[type[Any], Callable[[Any], Form]] = {
    Let: lambda s: (f"let {_name(s.name)} = {index_text(s.value)}", frozenset({"name", "value"})),
    For: lambda s: (f"for {_name(s.var)} in {index_text(s.start)} to {index_text(s.stop)} step {index_text(s.step)} {s.kind}",
                    frozenset({"var", "start", "stop", "step", "kind", "body"})),
    Load: lambda s: (f"load {_ref(s.buffer)} <- {_value(s.region)}", frozenset({"buffer", "region"})),
    Store: lambda s: (f"store {_value(s.region)} <- {_ref(s.buffer)}", frozenset({"region", "buffer"})),
    Fill: lambda s: (f"fill {_ref(s.buffer)} = {_value(s.value)}", frozenset({"buffer", "value"})),
    Init: _partial("init"),
    Finish: _partial("finish"),
    Accumulate: lambda s: (
        f"accumulate {_ref(s.target)}{_shape((s.m, s.n))} = {_ref(s.a)} @ {_ref(s.b)} over {_name(s.var)} in {index_text(s.k)} "
        f"step {index_text(s.step)}", frozenset({"var", "k", "step", "loads", "a", "b", "target", "m", "n"})),
}
