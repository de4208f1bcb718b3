"""Text of Graph IR, reading side: `.ptir` to a Graph, so that `read_graph(print_graph(g))` prints the same again.

Result types may be left out where the op table derives them, as when the operation is recorded from Python. Errors carry the place
in the text: PT601 syntax, PT602 a value that does not fit, PT603 names of values, PT604 operations and their arguments, PT605 symbols.
"""
from __future__ import annotations

import difflib
import inspect
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lark import Token

from pypto_dsl.compiler.dtypes import BY_NAME, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import COMMON_ATTRIBUTES, PRECISIONS, Attribute, Builder, Check, Graph, Op, Region, Symbol, TensorType, Value
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.ops import REGISTRY, OpDefinition
from pypto_dsl.compiler.ops.arguments import signature_text
from pypto_dsl.compiler.ops.recording import apply, constant, stored_attributes
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.text.parsing import EXPRESSIONS, Node, Source, admits, described
from pypto_dsl.compiler.text.printer import attribute_text

_WORDS = {"None": None, "True": True, "False": False}
_NUMBERS = ("inf", "nan")
_SYMBOL_KINDS = ("dim", "scalar", "loop", "element")


def read_graph(text: str, file: str = "<ptir>", places: bool = False) -> Graph:
    """The graph of a `.ptir` text. With ``places`` an operation without `loc` gets its place in the text as its span.

    Raises KernelError PT601 to PT605, and the op table's own errors where types are derived.
    """
    source = Source(text, file)
    return _Reader(source, places).kernel(source.parse(__package__, "graph.lark", "kernel", ("kernel",)))


def read_file(path: str | Path) -> Graph:
    """The graph of a `.ptir` file; operations without `loc` point into the file."""
    return read_graph(Path(path).read_text(encoding="utf-8"), str(path), places=True)


class _Reader:
    def __init__(self, source: Source, places: bool) -> None:
        self.source = source
        self.places = places
        self.graph = Graph("")
        self.builder = Builder(self.graph)
        self.values: dict[str, Value] = {}
        self.scopes: list[list[str]] = [[]]

    def refuse(self, code: str, message: str, node: Node, help: str = "") -> KernelError:
        return self.source.refuse(code, message, node, help=help)

    # ---- the kernel --------------------------------------------------------------------------------------------------------

    def kernel(self, tree: Node) -> Graph:
        at = next(i for i, c in enumerate(tree.children) if getattr(c, "data", "") == "options")
        name, *params = tree.children[:at]
        items = tree.children[at + 1:]
        graph = self.graph
        graph.name = self.source.word(name)
        fields, graph.span = self.options(tree.children[at])
        for field in fields:
            option, given = str(field.children[0]), self.value(field.children[1], str)
            if not isinstance(given, str):
                raise self.refuse("PT602", f"the option `{option}` is a string, and this is {given!r}", field)
            if option == "precision" and given not in PRECISIONS:
                raise self.refuse("PT602", f"the option `precision` is {given!r}", field, f"one of {', '.join(PRECISIONS)}")
            graph.options[option] = given
        for item in items:  # symbols first: types mention them wherever they stand
            if item.data == "symbol":
                self.symbol(item)
        for param in params:
            if param is not None:
                graph.parameters.append(self.define(param.children[0], self.type(param.children[1])))
        self.check_dimensions(items)
        for item in items:
            if item.data == "check":
                self.check(item)
            elif item.data == "write":
                self.write(item)
            elif item.data == "returns":
                graph.returns += map(self.use, item.children)
            elif item.data != "symbol":
                self.statement(item)
        return graph

    def options(self, tree: Node) -> tuple[list[Node], Span | None]:
        """The fields and the location of an `options`."""
        fields, location = tree.children
        return self.fields(fields), None if location is None else self.source.location(location)

    @staticmethod
    def fields(tree: Node) -> list[Node]:
        return [f for f in tree.children if f is not None]

    def symbol(self, tree: Node) -> None:
        name, kind, parameter, axis, options = tree.children
        if str(name) in self.graph.symbols:
            raise self.refuse("PT605", f"the symbol `{name}` is declared twice", name)
        if str(kind) not in _SYMBOL_KINDS:
            raise self.refuse("PT605", f"`{kind}` is no kind of symbol", kind, f"kinds are {', '.join(_SYMBOL_KINDS)}")
        rest: dict[str, Any] = {}
        hints = typing.get_type_hints(Symbol)
        for field in self.options(options)[0]:
            key = str(field.children[0])
            if key not in hints:
                raise self.refuse("PT602", f"a symbol has no field `{key}`", field, f"its fields are {', '.join(hints)}")
            rest[key] = self.value(field.children[1], hints[key])
        if parameter is not None:
            rest["parameter"] = self.source.word(parameter)
        if axis is not None:
            rest["axis"] = int(axis)
        self.graph.symbols[str(name)] = Symbol(str(name), str(kind), **rest)

    def check_dimensions(self, items: Sequence[Node]) -> None:
        """Symbols of parameters name parameters and axes that exist."""
        parameters = {p.name: p for p in self.graph.parameters}
        for item in items:
            if item.data != "symbol":
                continue
            symbol = self.graph.symbols[str(item.children[0])]
            if symbol.parameter and symbol.parameter not in parameters:
                raise self.refuse("PT605", f"the symbol `{symbol.name}` is of `{symbol.parameter}`, which is no parameter", item)
            if symbol.kind == "dim" and (not symbol.parameter or symbol.axis >= parameters[symbol.parameter].type.rank):
                raise self.refuse("PT605", f"there is no axis {symbol.axis} of `{symbol.parameter}` for `{symbol.name}` to be", item,
                                  f"write `symbol {symbol.name}: dim of x axis 0`, with a parameter for x and one of its axes")

    def check(self, tree: Node) -> None:
        left, right, what, options = tree.children
        span = self.options(options)[1]
        self.graph.checks.append(Check(self.index(left), self.index(right), span, "" if what is None else self.source.string(what)))

    def write(self, tree: Node) -> None:
        name, value = self.source.word(tree.children[0]), tree.children[1]
        if all(p.name != name for p in self.graph.parameters):
            raise self.refuse("PT603", f"`{name}` is no parameter", tree.children[0],
                              f"parameters are {', '.join(p.name for p in self.graph.parameters)}")
        if name in self.graph.outputs:
            raise self.refuse("PT603", f"`{name}` is written twice", tree.children[0])
        self.graph.outputs[name] = self.use(value)

    # ---- values and scopes ---------------------------------------------------------------------------------------------------

    def define(self, token: Token, type_: TensorType) -> Value:
        value = Value(type_, self.value_name(token))
        self.bind(token, value)
        return value

    def bind(self, token: Token, value: Value) -> None:
        if str(token) in self.values:
            raise self.refuse("PT603", f"{token} is defined twice", token, "every value has one definition; give this one another name")
        self.values[str(token)] = value
        self.scopes[-1].append(str(token))

    def use(self, token: Token) -> Value:
        value = self.values.get(str(token))
        if value is None:
            close = difflib.get_close_matches(str(token), self.values, 1)
            rule = "a value is visible below its definition, in its region and those inside"
            raise self.refuse("PT603", f"{token} is not defined here", token, f"did you mean {close[0]}?" if close else rule)
        return value

    def value_name(self, token: Token) -> str:
        """The user's name: `%x.1` and `%x` are both called x, `%0` has none."""
        text = str(token)[1:]
        if text[0].isdigit():
            return ""
        if text[0] != '"':
            return text.partition(".")[0]
        return self.source.string(Token("STRING", text[:text.rindex('"') + 1], line=token.line, column=token.column))

    def place(self, tree: Node, location: Node) -> Span | None:
        if location is not None:
            return self.source.location(location)
        if not self.places:
            return None
        span = self.source.span(tree)
        return Span(span.file, span.line, span.column, span.end_line, span.end_column)

    # ---- statements ----------------------------------------------------------------------------------------------------------

    def statement(self, tree: Node) -> None:
        {"operation": self.operation, "loop": self.loop, "if": self.branch}[str(tree.data)](tree)

    def operation(self, tree: Node) -> None:
        results, name, *parts, types, suffix = tree.children
        parts = [p for p in parts if p is not None]
        definition = REGISTRY.get(str(name))
        if definition is None:
            close = difflib.get_close_matches(str(name), REGISTRY, 1)
            raise self.refuse("PT604", f"there is no operation `{name}`", name,
                              f"did you mean `{close[0]}`?" if close else "`ptc ops` lists them")
        operands = [None if p.data == "absent" else self.use(p.children[0]) for p in parts if p.data != "field"]
        self.check_operands(definition, operands, name)
        attributes = self.attributes(definition, [p for p in parts if p.data == "field"], name)
        tile, location = suffix.children
        self.builder.span, self.builder.tile = self.place(tree, location), self.tile(tile)
        tokens = [] if results is None else results.children
        names = [self.value_name(t) for t in tokens]
        if types is None:
            made = self.derived(definition, operands, attributes, names)
        else:
            made = self.declared(definition, operands, attributes, [self.type(t) for t in types.children], names)
        self.bind_results(tokens, made, name)

    def check_operands(self, definition: OpDefinition, operands: Sequence[Value | None], name: Token) -> None:
        wanted = definition.operands
        variadic = any(p.variadic for p in wanted)
        fits = len(operands) >= len(wanted) - 1 if variadic else len(operands) == len(wanted)
        if not fits:
            optional = "" if variadic or not any(p.optional for p in wanted) else "; write `absent` for one that is left out"
            raise self.refuse("PT604", f"{name} takes {len(wanted)} operands, and here are {len(operands)}", name,
                              signature_text(definition) + optional)
        for operand, parameter in zip(operands, wanted, strict=False):
            if operand is None and not parameter.optional:
                raise self.refuse("PT604", f"the operand `{parameter.name}` of {name} cannot be left out", name, signature_text(definition))

    def attributes(self, definition: OpDefinition, fields: Sequence[Node], name: Token) -> dict[str, Any]:
        """Every attribute of the signature, those not given at their defaults."""
        known = {p.name: p for p in definition.attributes}
        found = {k: None if p.default is inspect.Parameter.empty else p.default for k, p in known.items()}
        given: set[str] = set()
        for field in fields:
            key = str(field.children[0])
            if key not in known and key not in COMMON_ATTRIBUTES:
                raise self.refuse("PT604", f"{name} has no attribute `{key}`", field, signature_text(definition))
            if key in given:
                raise self.refuse("PT604", f"`{key}` is given twice", field)
            given.add(key)
            found[key] = self.value(field.children[1], known[key].annotation if key in known else COMMON_ATTRIBUTES[key])
        return found

    def derived(self, definition: OpDefinition, operands: Sequence[Value | None], attributes: dict[str, Any], names: Sequence[str]) -> Op:
        """Record the operation with the types the op table gives it."""
        if definition.name == "constant":
            constant(attributes["value"], self.builder, attributes["dtype"])
            made = self.builder.region.ops[-1]
            if attributes["dtype"] is not None:
                made.attributes["dtype"] = attributes["dtype"]
                made.attributes = dict(sorted(made.attributes.items()))
        else:
            apply(definition, operands, attributes, self.builder)
            made = self.builder.region.ops[-1]
        for result, name in zip(made.results, names, strict=False):
            result.name = name
        return made

    def declared(self, definition: OpDefinition, operands: Sequence[Value | None], attributes: dict[str, Any],
                 types: Sequence[TensorType], names: Sequence[str]) -> Op:
        stored = stored_attributes(definition, attributes)
        absent = tuple(i for i, o in enumerate(operands) if o is None)
        if absent:
            stored["absent"] = absent
        return self.builder.add(definition.name, [o for o in operands if o is not None], types, stored, names=names)

    def bind_results(self, tokens: Sequence[Token], made: Op, at: Node) -> None:
        if len(tokens) != len(made.results):
            raise self.refuse("PT604", f"{made.opcode} has {len(made.results)} results, and {len(tokens)} names stand for them", at)
        for token, result in zip(tokens, made.results, strict=True):
            self.bind(token, result)

    def loop(self, tree: Node) -> None:
        results, keyword, index, start, stop, step, *carries, types, fields, suffix, body = tree.children
        carries = [c for c in carries if c is not None]
        if str(index) not in self.graph.symbols:
            raise self.refuse("PT605", f"the loop index `{index}` is not declared", index, f"add `symbol {index}: loop`")
        bounds = {"start": self.index(start), "stop": self.index(stop), "step": self.index(step)}
        attributes: dict[str, Attribute] = {"index": str(index), **bounds}
        for field in self.fields(fields):
            attributes[str(field.children[0])] = self.value(field.children[1], Attribute)
        initial = [self.use(c.children[2]) for c in carries]
        self.scopes.append([])
        arguments = [self.define(c.children[0], self.type(c.children[1])) for c in carries]
        region = self.body(body, arguments)
        declared = [a.type for a in arguments] if types is None else [self.type(t) for t in types.children]
        self.region_op(tree, "loop", initial, declared, attributes, (region,), suffix, results, keyword)

    def branch(self, tree: Node) -> None:
        results, keyword, condition, types, fields, suffix, then, otherwise = tree.children
        operand = self.use(condition)
        attributes = {str(f.children[0]): self.value(f.children[1], Attribute) for f in self.fields(fields)}
        regions = []
        for body in (then, otherwise):
            self.scopes.append([])
            regions.append(self.body(body, []))
        declared = [y.type for y in regions[0].yields] if types is None else [self.type(t) for t in types.children]
        self.region_op(tree, "if", [operand], declared, attributes, regions, suffix, results, keyword)

    def region_op(self, tree: Node, opcode: str, operands: Sequence[Value], types: Sequence[TensorType], attributes: dict[str, Any],
                  regions: Sequence[Region], suffix: Node, results: Node, at: Node) -> None:
        tile, location = suffix.children
        tokens = [] if results is None else results.children
        self.builder.span, self.builder.tile = self.place(at, location), self.tile(tile)
        made = self.builder.add(opcode, operands, types, attributes, regions, names=[self.value_name(t) for t in tokens])
        self.bind_results(tokens, made, at)

    def body(self, tree: Node, arguments: Sequence[Value]) -> Region:
        """A region; the scope that its caller opened ends here."""
        region, outer = Region(arguments), self.builder.region
        self.builder.region = region
        *statements, ending = tree.children
        for statement in statements:
            self.statement(statement)
        region.yields = [self.use(t) for t in ending.children if t is not None]
        self.builder.region = outer
        for name in self.scopes.pop():
            del self.values[name]
        return region

    # ---- types and attribute values --------------------------------------------------------------------------------------------

    def type(self, tree: Node) -> TensorType:
        dtype, weak, shape, valid = tree.children
        return TensorType(self.source.dtype(dtype), () if shape is None else self.shape(shape), weak is not None,
                          None if valid is None else self.shape(valid))

    def shape(self, tree: Node) -> tuple[Index, ...]:
        return tuple(self.index(c) for c in tree.children if c is not None)

    def tile(self, tree: Node) -> tuple[int, ...] | None:
        if tree is None:
            return None
        extents = self.value(tree, tuple[int, ...])
        if not all(isinstance(e, int) for e in extents):
            raise self.refuse("PT602", "a tile shape is a list of whole numbers", tree)
        return tuple(extents)

    def index(self, tree: Node) -> Index:
        index = self.source.index(tree)
        unknown = sorted(index.variables() - self.graph.symbols.keys())
        if unknown:
            raise self.refuse("PT605", f"the symbol `{unknown[0]}` is not declared", tree,
                              f"add `symbol {unknown[0]}: dim of x axis 0`, or the kind it is of")
        return index

    def value(self, tree: Node, hint: Any) -> Any:
        """An attribute's value; the annotation says whether a whole number is an Index, and what a bare word is."""
        found = self.open_value(tree, hint)
        if not admits(hint, found):
            raise self.refuse("PT602", f"`{attribute_text(found)}` is no {described(hint)}", tree)
        return found

    def open_value(self, tree: Node, hint: Any) -> Any:
        kind = str(tree.data)
        if kind == "list":
            return tuple(self.value(c, _element(hint)) for c in tree.children if c is not None)
        if kind == "string":
            return self.source.string(tree.children[0])
        if kind in ("float", "negative_float"):
            return float(tree.children[0]) * (-1.0 if kind == "negative_float" else 1.0)
        assert kind in EXPRESSIONS, kind
        return self.plain(tree, hint)

    def plain(self, tree: Node, hint: Any) -> Any:
        index, members = self.source.index(tree), _members(hint)
        name = index.name
        if name in _WORDS:
            return _WORDS[name]
        if name is not None and (name not in self.graph.symbols or Index not in members):  # a loop may be called i8
            if name in BY_NAME and DType in members:
                return BY_NAME[name]
            if name in _NUMBERS and float in members:
                return float(name)
        if (-index).name in _NUMBERS and float in members:
            return -float((-index).name or "nan")
        if index.constant is not None and (int in members or float in members):
            return index.constant
        if Index in members:
            return self.index(tree)
        raise self.refuse("PT602", f"`{index}` is no {described(hint)}", tree)


def _members(hint: Any) -> tuple[Any, ...]:
    """The alternatives of an annotation."""
    if isinstance(hint, type):
        return (hint,)
    if typing.get_origin(hint) is tuple:
        return (tuple,)
    return tuple(dict.fromkeys(member for alternative in typing.get_args(hint) for member in _members(alternative)))


def _element(hint: Any) -> Any:
    """The annotation of a tuple's elements; `Attribute` contains itself."""
    alternatives = (hint,) if typing.get_origin(hint) is tuple else typing.get_args(hint)
    for alternative in alternatives:
        if typing.get_origin(alternative) is tuple:
            element = typing.get_args(alternative)[0]
            return Attribute if isinstance(element, (str, typing.ForwardRef)) else element
    return hint
