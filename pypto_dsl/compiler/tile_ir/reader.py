"""Text of Tile IR, reading side: `read_program(print_program(p)) == p`, with spans by basename.

The tree that lark parses is turned into nodes by the annotations of their fields, which say whether a bare word is an index
variable, a dtype or a parameter. Placed statements and records are looked up by class name, so new ones are read at once.
"""
from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import sys
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from lark import Token, Tree

from pypto_dsl.compiler import tile_ir
from pypto_dsl.compiler.dtypes import BY_NAME, DType
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.text.parsing import EXPRESSIONS, Node, Source, admits, described
from pypto_dsl.compiler.tile_ir import nodes, placed
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
from pypto_dsl.compiler.tile_ir.text import STRUCTURED, keyword

_T = TypeVar("_T")

_STARTS = ("program", "tile_kernel")
_WORDS = {"None": None, "True": True, "False": False}
_PLAIN: Any = str | int | float | bool
_NUMBERS = ("inf", "nan")


def read_program(text: str, file: str = "<tile ir>") -> Program:
    """The Program of a text; KernelError PT601 (syntax) or PT602 (meaning) with the place in ``file``."""
    source = Source(text, file)
    return _Reader(source).program(source.parse(__package__, "tile_ir.lark", "program", _STARTS))


def read_kernel(text: str, file: str = "<tile ir>") -> TileKernel:
    """The TileKernel of a text; errors as `read_program`."""
    source = Source(text, file)
    return _Reader(source).kernel(source.parse(__package__, "tile_ir.lark", "tile_kernel", _STARTS))


def placed_statements() -> dict[str, type[Any]]:
    """Keyword -> class of every placed statement that has been imported; CompilerBug when two have one keyword."""
    for module in pkgutil.iter_modules(tile_ir.__path__):  # any of them may define placed statements
        importlib.import_module(f"{tile_ir.__name__}.{module.name}")
    found: dict[str, type[Any]] = {keyword(kind): kind for kind in STRUCTURED}
    for kind in _below(PlacedStatement):
        if found.setdefault(keyword(kind), kind) is not kind:
            raise CompilerBug("tile_ir.reader", f"the classes {found[keyword(kind)]} and {kind} share the keyword {keyword(kind)}")
    return {k: v for k, v in found.items() if v not in STRUCTURED}


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _below(sub)


@cache
def hints(kind: type[Any]) -> dict[str, Any]:
    """The annotations of a node's fields, resolved."""
    return typing.get_type_hints(kind, globalns={**vars(nodes), **vars(placed), **vars(_module(kind))})


def _module(kind: type[Any]) -> types.ModuleType:
    return sys.modules[kind.__module__]


@cache
def _members(hint: Any) -> tuple[Any, ...]:
    """The alternatives of an annotation: classes, tuple annotations, NoneType."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(dict.fromkeys(m for arg in typing.get_args(hint) for m in _members(arg)))
    if typing.get_origin(hint) is typing.Literal:
        return tuple(dict.fromkeys(type(arg) for arg in typing.get_args(hint)))
    return (hint,)


def _element_hint(hint: Any, position: int) -> Any:
    """The annotation of a tuple's element."""
    for member in _members(hint):
        if typing.get_origin(member) is tuple:
            arguments = typing.get_args(member)
            return arguments[0] if len(arguments) == 2 and arguments[1] is Ellipsis else arguments[min(position, len(arguments) - 1)]
    return Any


class _Reader:
    """Turns one parse tree into nodes; `params` and `buffers` are those of the kernel being read."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.index, self.dtype, self.word, self.location = source.index, source.dtype, source.word, source.location
        self.params: dict[str, Param] = {}
        self.buffers: dict[str, Buffer] = {}
        self.placed = placed_statements()

    def refuse(self, message: str, node: Any, help: str = "") -> Exception:
        return self.source.refuse("PT602", message, node, help=help)

    # ---- programs and kernels ------------------------------------------------------------------------------------------

    def program(self, tree: Node) -> Program:
        name, target, options, *items = tree.children
        found: dict[str, list[Any]] = {"argument": [], "scalar": [], "workspace": [], "step": []}
        for item in items:
            found[str(item.data) if str(item.data) in found else "step"].append(item)
        return self.make(
            Program, options, name=self.word(name), target=self.word(target), scalars=tuple(map(self.scalar, found["scalar"])),
            arguments=tuple(self.param(argument.children[0]) for argument in found["argument"]),
            workspaces=tuple(map(self.workspace, found["workspace"])),
            steps=tuple(map(self.step, found["step"])))

    def step(self, tree: Node) -> nodes.Step:
        kind = str(tree.data)
        if kind == "kernel_step":
            return tuple(map(self.kernel, tree.children))
        self.params, self.buffers = {}, {}
        if kind == "loop_step":
            name, start, stop, step, options, steps = tree.children
            return self.make(nodes.LoopStep, options, var=str(name), start=self.index(start), stop=self.index(stop), step=self.index(step),
                             steps=self.steps(steps))
        if kind == "branch_step":
            *ops, condition, options, steps, orelse = tree.children
            return self.make(nodes.BranchStep, options, ops=tuple(map(self.read_operation, ops)), condition=self.operand(condition),
                             steps=self.steps(steps), orelse=() if orelse is None else self.steps(orelse))
        if kind == "number_step":
            name, *ops, value, options = tree.children
            return self.make(nodes.StoreNumber, options, name=self.word(name), ops=tuple(map(self.read_operation, ops)),
                             value=self.operand(value))
        name, *fields, location = tree.children
        classes: dict[str, Any] = {keyword(k): k for k in (nodes.HostCall, nodes.ReadElement, nodes.GuardStep)}
        if str(name) not in classes:
            raise self.refuse(f"there is no step `{name}`", name, f"steps of the host are {', '.join(classes)}")
        made: nodes.Step = self.build(classes[str(name)], name, fields, {} if location is None else {"span": self.location(location)})
        return made

    def steps(self, tree: Node) -> tuple[nodes.Step, ...]:
        return tuple(map(self.step, tree.children))

    def kernel(self, tree: Node) -> TileKernel:
        at = next(i for i, c in enumerate(tree.children) if isinstance(c, Tree) and c.data == "options")
        name, title, *params = tree.children[:at]
        declared = tuple(self.param(p) for p in params if p is not None)
        self.params = {p.name: p for p in declared}
        self.buffers = {}
        kinds = ("scalar", "requires", "property", "buffer", "grid", "once", "kernel_body")
        items: dict[str, list[Any]] = {kind: [] for kind in kinds}
        for item in tree.children[at + 1:]:
            items[str(item.data)].append(item)
        for kind in ("grid", "kernel_body"):
            if len(items[kind]) != 1:
                raise self.refuse(f"a kernel has one `{kind.removeprefix('kernel_')}`, and this has {len(items[kind])}", name)
        for item in items["buffer"]:
            buffer = self.buffer(item)
            if buffer.name in self.buffers:
                raise self.refuse(f"the buffer %{buffer.name} is declared twice", item)
            self.buffers[buffer.name] = buffer
        properties = tuple((self.word(p.children[0]), self.value(p.children[1], _PLAIN)) for p in items["property"])
        once = tuple(s for once in items["once"] for s in self.body(once.children[0]))
        return self.make(
            TileKernel, tree.children[at], name=self.word(name), title=self.source.string(title), params=declared,
            scalars=tuple(map(self.scalar, items["scalar"])), grid=self.grid(items["grid"][0]),
            requires=tuple(self.index(r.children[0]) for r in items["requires"]), properties=properties,
            once=once, body=self.body(items["kernel_body"][0].children[0]))

    def param(self, tree: Node) -> Param:
        name, role, dtype, shape, strides, options = tree.children
        return self.make(Param, options, name=str(name), dtype=self.dtype(dtype), shape=self.shape(shape),
                         role=self.literal(role, nodes.Role), strides=None if strides is None else self.value(strides, tuple[Index, ...]))

    def scalar(self, tree: Node) -> Scalar:
        name, dtype, value, options = tree.children
        defined = None if value is None else self.index(value)
        return self.make(Scalar, options, name=str(name), dtype=self.dtype(dtype), value=defined)

    def workspace(self, tree: Node) -> Workspace:
        name, dtype, shape, options = tree.children
        return self.make(Workspace, options, name=self.word(name), dtype=self.dtype(dtype), shape=self.shape(shape))

    def buffer(self, tree: Node) -> Buffer:
        name, space, layout, dtype, shape, slots, options = tree.children
        if slots is not None and (slots[0] != "x" or not slots[1:].isdigit()):
            raise self.refuse(f"`{slots}` is no number of slots", slots, "write x2 for a double buffer")
        return self.make(Buffer, options, name=self.buffer_name(name), dtype=self.dtype(dtype), shape=self.pair(shape),
                         slots=1 if slots is None else int(slots[1:]), space=self.word(space), layout=self.literal(layout, nodes.Layout))

    def grid(self, tree: Node) -> Grid:
        *axes, options = tree.children
        pairs = [(str(a.children[0]), self.index(a.children[1])) for a in axes if a is not None]
        return self.make(Grid, options, vars=tuple(name for name, _ in pairs), extents=tuple(extent for _, extent in pairs))

    # ---- statements ----------------------------------------------------------------------------------------------------

    def body(self, tree: Node) -> tuple[Any, ...]:
        return tuple(map(self.statement, tree.children))

    def statement(self, tree: Node) -> Any:
        kind = str(tree.data)
        read: Callable[[Node], Any] = getattr(self, f"read_{kind}")
        return read(tree)

    def read_let(self, tree: Node) -> Let:
        name, value, options = tree.children
        return self.make(Let, options, name=str(name), value=self.index(value))

    def read_for(self, tree: Node) -> For:
        name, start, stop, step, kind, options, body = tree.children
        return self.make(For, options, var=str(name), start=self.index(start), stop=self.index(stop), step=self.index(step),
                         kind=self.literal(kind, nodes.LoopKind), body=self.body(body))

    def read_if(self, tree: Node) -> If:
        condition, body, orelse, options = tree.children
        otherwise = () if orelse is None else self.body(orelse)
        return self.make(If, options, condition=self.index(condition), body=self.body(body), orelse=otherwise)

    def read_load(self, tree: Node) -> Load:
        buffer, region, options = tree.children
        return self.make(Load, options, buffer=self.named_buffer(buffer), region=self.region(region))

    def read_store(self, tree: Node) -> Store:
        region, buffer, options = tree.children
        return self.make(Store, options, region=self.region(region), buffer=self.named_buffer(buffer))

    def read_fill(self, tree: Node) -> Fill:
        buffer, value, options = tree.children
        return self.make(Fill, options, buffer=self.named_buffer(buffer), value=self.value(value, hints(Fill)["value"]))

    def read_init(self, tree: Node, kind: type[Any] = Init) -> Any:
        target, reduction, extents, axis, options = tree.children
        rows, cols = self.pair(extents)
        return self.make(kind, options, target=self.named_buffer(target), kind=self.literal(reduction, nodes.ReduceKind), axis=int(axis),
                         rows=rows, cols=cols)

    def read_finish(self, tree: Node) -> Any:
        return self.read_init(tree, Finish)

    def read_accumulate(self, tree: Node) -> Accumulate:
        target, extents, a, b, name, k, step, options, loads = tree.children
        m, n = self.pair(extents)
        return self.make(Accumulate, options, target=self.named_buffer(target), m=m, n=n, a=self.named_buffer(a), b=self.named_buffer(b),
                         var=str(name), k=self.index(k), step=self.index(step), loads=self.body(loads))

    def read_block(self, tree: Node) -> Block:
        extents, options, *items = tree.children
        rows, cols = self.pair(extents)
        parts: dict[str, list[Any]] = {"operation": [], "write": [], "reduce": []}
        for item in items:
            parts[str(item.data)].append(getattr(self, f"read_{item.data}")(item))
        return self.make(Block, options, rows=rows, cols=cols, ops=tuple(parts["operation"]), writes=tuple(parts["write"]),
                         reduces=tuple(parts["reduce"]))

    def read_operation(self, tree: Node) -> BlockOp:
        result, name, *parts, dtype, options = tree.children
        parts = [p for p in parts if p is not None]
        attributes = [p for p in parts if p.data == "field"]
        return self.make(
            BlockOp, options, result=str(result), name=str(name), dtype=self.dtype(dtype),
            operands=tuple(self.operand(p) for p in parts if p.data != "field"),
            attributes=tuple((str(a.children[0]), self.value(a.children[1], _PLAIN)) for a in attributes))

    def read_write(self, tree: Node) -> Write:
        buffer, value, options = tree.children
        return self.make(Write, options, value=self.operand(value), buffer=self.named_buffer(buffer))

    def read_reduce(self, tree: Node) -> Reduce:
        target, kind, value, axis, options = tree.children
        return self.make(Reduce, options, kind=self.literal(kind, nodes.ReduceKind), value=self.operand(value), axis=int(axis),
                         target=self.named_buffer(target))

    def read_placed(self, tree: Node) -> Any:
        name, *fields, body, location = tree.children
        kind = self.placed.get(str(name))
        if kind is None:
            raise self.refuse(f"there is no statement `{name}`", name, f"placed statements are {', '.join(sorted(self.placed))}")
        given: dict[str, Any] = {"body": self.body(body)} if body is not None else {}
        if location is not None:
            given["span"] = self.location(location)
        return self.build(kind, name, fields, given)

    # ---- values --------------------------------------------------------------------------------------------------------

    def make(self, kind: type[_T], options: Node, /, **fields: Any) -> _T:
        """A node from the fields of its own form and its options."""
        *given, location = options.children
        if location is not None:
            fields["span"] = self.location(location)
        return self.build(kind, options, given, fields)

    def build(self, kind: type[_T], at: Node, fields: Sequence[Node], given: dict[str, Any]) -> _T:
        annotations = hints(typing.cast(Any, kind))
        known = {f.name: f for f in dataclasses.fields(typing.cast(Any, kind)) if f.init}
        for field in fields:
            if field is None:
                continue
            name = str(field.children[0])
            if name not in known:
                raise self.refuse(f"{kind.__name__} has no field `{name}`", field, f"its fields are {', '.join(known)}")
            if name in given:
                raise self.refuse(f"`{name}` is given twice", field)
            given[name] = self.value(field.children[1], annotations[name])
        for name, f in known.items():
            if name not in given and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
                raise self.refuse(f"{kind.__name__} lacks its field `{name}`", at)
        return kind(**given)

    def value(self, tree: Node, hint: Any) -> Any:
        """A value whose form leaves its type open, by the annotation of the field it stands in."""
        found = self.open_value(tree, hint)
        if not admits(hint, found):
            raise self.refuse(f"`{found}` is no {described(hint)}", tree)
        return found

    def open_value(self, tree: Node, hint: Any) -> Any:
        kind = str(tree.data)
        members = _members(hint)
        if kind in EXPRESSIONS:
            return self.plain(tree, hint)
        if kind == "list":
            return tuple(self.value(c, _element_hint(hint, i)) for i, c in enumerate(c for c in tree.children if c is not None))
        if kind == "buffer_value":
            buffer = self.named_buffer(tree.children[0])
            return ReadBuffer(buffer) if ReadBuffer in members and Buffer not in members else buffer
        if kind == "record":
            return self.record(tree, members)
        if kind in ("float", "negative_float"):
            return float(tree.children[0]) * (-1.0 if kind == "negative_float" else 1.0)
        if kind == "string":
            return self.source.string(tree.children[0])
        simple: dict[str, Callable[[Node], Any]] = {"body": self.body, "region": self.region, "location": self.location}
        return simple.get(kind, self.operand)(tree)

    def plain(self, tree: Node, hint: Any) -> Any:
        """An index expression, whole number or bare word."""
        index, members = self.index(tree), _members(hint)
        name = index.name
        if name in _WORDS:
            return _WORDS[name]
        anything = object in members or Any in members
        if anything and name in BY_NAME:
            return BY_NAME[name]
        if Index in members:
            return index
        if name in BY_NAME and DType in members:
            return BY_NAME[name]
        if name in self.params and Param in members:
            return self.params[name]
        if index.constant is not None:
            return index.constant
        for sign, candidate in ((1.0, index), (-1.0, -index)):
            if candidate.name in _NUMBERS and (float in members or anything):
                return sign * float(candidate.name)
        if anything:  # an attribute of a host call: an Index that could be anything else is marked
            return index
        raise self.refuse(f"`{index}` is no {described(hint)}", tree)

    def record(self, tree: Node, members: tuple[Any, ...]) -> Any:
        name, *fields = tree.children
        if str(name) == "Index" and fields[0] is not None and str(fields[0].children[1].data) in EXPRESSIONS:
            return self.index(fields[0].children[1])
        classes = {sub.__name__: sub for m in members if isinstance(m, type) and dataclasses.is_dataclass(m) for sub in (m, *_below(m))}
        kind = classes.get(str(name))
        if kind is None:
            raise self.refuse(f"`{name}` does not go here", name, f"{', '.join(sorted(classes)) or 'no record'} does")
        return self.build(kind, name, fields, {})

    def operand(self, tree: Node) -> Any:
        kind = str(tree.data)
        c = tree.children
        if kind == "local":
            return str(c[0])
        if kind == "buffer_value":
            return ReadBuffer(self.named_buffer(c[0]))
        if kind == "read":
            return ReadBuffer(self.named_buffer(c[1]), self.literal(c[0], nodes.Read))
        dtype = self.dtype(c[0])
        if kind == "constant":
            return Constant(self.number(c[1]), dtype)
        if kind == "scalar_read":
            return ScalarRead(str(c[1]), dtype)
        if kind == "index_value":
            return IndexValue(self.index(c[2]), dtype)
        return LaneIndex(int(c[2]), self.index(c[3]), dtype)

    def number(self, tree: Node) -> float | int:
        token: Token = tree.children[0]
        if token.type == "NAME" and str(token) in _WORDS:
            return bool(_WORDS[str(token)])
        if token.type == "NAME" and str(token) not in _NUMBERS:
            raise self.refuse(f"`{token}` is no number", token)
        value = int(token) if token.type == "INT" else float(token)
        return -value if tree.data == "negative_literal" else value

    def region(self, tree: Node) -> Region:
        name, *slices = tree.children
        if str(name) not in self.params:
            raise self.refuse(f"the kernel has no parameter `{name}`", name, f"it has {', '.join(self.params)}")
        pairs = [(self.index(s.children[0]), self.index(s.children[1])) for s in slices if s is not None]
        return Region(self.params[str(name)], tuple(offset for offset, _ in pairs), tuple(extent for _, extent in pairs))

    def named_buffer(self, token: Token) -> Buffer:
        name = self.buffer_name(token)
        if name not in self.buffers:
            raise self.refuse(f"the kernel has no buffer {token}", token, "declare it at the head of the kernel with `buffer`")
        return self.buffers[name]

    def buffer_name(self, token: Token) -> str:
        return self.source.string(Token(token.type, token[1:])) if token[1] == '"' else str(token[1:])

    def literal(self, token: Token, hint: Any) -> Any:
        allowed = typing.get_args(hint)
        if str(token) not in allowed:
            raise self.refuse(f"`{token}` is none of {', '.join(allowed)}", token)
        return str(token)

    def shape(self, tree: Node) -> tuple[Index, ...]:
        return tuple(self.index(c) for c in tree.children if c is not None)

    def pair(self, tree: Node) -> tuple[Index, Index]:
        extents = self.shape(tree)
        if len(extents) != 2:
            raise self.refuse(f"rows and columns are expected, and this has {len(extents)} extents", tree)
        return extents[0], extents[1]
