"""Lark at work for both text forms: parses with positions, reads what the two share, and turns lark's exceptions into KernelErrors."""
from __future__ import annotations

import json
import linecache
import types
import typing
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from typing import Any

import lark
from lark import Token

from pypto_dsl.compiler.dtypes import BY_NAME, DType
from pypto_dsl.compiler.errors import KernelError, error
from pypto_dsl.compiler.index import Index, as_index, maximum, minimum, var
from pypto_dsl.compiler.span import Span

# A parse tree. Which child is a tree and which a token follows from the grammar, where no type checker can see it.
Node = Any

# What a reader calls the terminals that have no fixed spelling.
_TERMINALS = {
    "NAME": "a name", "INT": "a whole number", "FLOAT": "a number", "STRING": "a string", "BUFFER": "a buffer (%name)",
    "VALUE": "a value (%name)", "MIN": "`min(`", "MAX": "`max(`", "LOC": "`loc(`", "$END": "the end of the text",
    "<END-OF-FILE>": "the end of the text",
}
NUMBER = "operands are values: write %number = constant(value = {}) on a line above, and %number here"


@lru_cache
def _parser(package: str, grammar: str, starts: tuple[str, ...]) -> lark.Lark:
    texts = (resources.files(package).joinpath(grammar), resources.files(__package__).joinpath("lexical.lark"))
    source = "\n".join(t.read_text(encoding="utf-8") for t in texts)
    return lark.Lark(source, parser="lalr", start=list(starts), maybe_placeholders=True)


class Source:
    """A text being read: parses it once and makes the errors that point into it."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        # so that error frames can quote texts that are in no file
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)

    def parse(self, package: str, grammar: str, start: str, starts: tuple[str, ...]) -> Node:
        """The parse tree; PT601 when the text does not follow the grammar."""
        parser = _parser(package, grammar, starts)
        try:
            return parser.parse(self.text, start=start)
        except lark.exceptions.UnexpectedToken as e:
            token = e.token
            at_end = token.type == "$END"
            found = "the text ends" if at_end else f"`{token}`"
            expected = set(e.accepts or e.expected)
            help = NUMBER.format(token) if token.type in ("INT", "FLOAT") and "VALUE" in expected else ""
            raise self._syntax(parser, found, expected, self._end() if at_end else self.span(token), help) from None
        except lark.exceptions.UnexpectedCharacters as e:
            span = Span(self.file, e.line, e.column, e.line, e.column + 1)
            raise self._syntax(parser, f"`{self.text[e.pos_in_stream or 0]}`", set(e.allowed or ()), span) from None

    def _syntax(self, parser: lark.Lark, found: str, expected: set[str], span: Span, help: str = "") -> KernelError:
        spelled = sorted({_spell(parser, name) for name in expected})
        shown = ", ".join(spelled[:8]) + (f" and {len(spelled) - 8} more" if len(spelled) > 8 else "")
        message = f"{found} where {'one of ' if len(spelled) > 1 else ''}{shown or 'nothing'} is expected"
        return error("PT601", message, span, help=help, expected=spelled)

    def _end(self) -> Span:
        lines = self.text.splitlines() or [""]
        return Span(self.file, len(lines), len(lines[-1]) + 1, len(lines), len(lines[-1]) + 2)

    def span(self, node: Node) -> Span:
        """Where a node or token stands in the text: from its first token to its last."""
        first, last = _end_token(node, 0), _end_token(node, -1)
        if first is None or last is None:
            return Span(self.file, 1, 1, 1, 2)
        return Span(self.file, first.line or 1, first.column or 1, last.end_line or 0, last.end_column or 0)

    def refuse(self, code: str, message: str, node: Node, *, label: str = "", help: str = "") -> KernelError:
        """The error of a node."""
        return error(code, message, self.span(node), label=label, help=help)

    def string(self, token: Token) -> str:
        """A STRING token's value; PT601 when an escape is none of JSON's."""
        try:
            return str(json.loads(str(token)))
        except ValueError:
            raise self.refuse("PT601", "this string has an escape that does not exist", token, help="escapes are those of JSON") from None

    def word(self, tree: Node) -> str:
        """A `word`: bare or quoted."""
        return self.string(tree.children[0]) if tree.data == "string" else str(tree.children[0])

    def location(self, tree: Node) -> Span:
        """A `location`."""
        _, file, line, column, end_line, end_column = tree.children
        return Span(self.string(file), int(line), int(column), int(end_line or 0), int(end_column or 0))

    def dtype(self, token: Token) -> DType:
        """A dtype by its IR name; PT602 for another word."""
        if str(token) not in BY_NAME:
            raise self.refuse("PT602", f"`{token}` is no dtype", token, help=f"dtypes are {', '.join(BY_NAME)}")
        return BY_NAME[str(token)]

    def index(self, tree: Node) -> Index:
        """An `expr`; PT602 for a division by a constant zero."""
        try:
            return EXPRESSIONS[str(tree.data)](self, tree.children)
        except ZeroDivisionError:
            raise self.refuse("PT602", "this index expression divides by zero", tree) from None


def admits(hint: Any, value: Any) -> bool:
    """Whether an annotation admits a value: unions, literals, tuples, classes; a float field takes a whole number too."""
    if hint is Any or isinstance(hint, (str, typing.ForwardRef)):
        return True
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(admits(alternative, value) for alternative in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(admits(arguments[0], v) for v in value)
        return len(arguments) == len(value) and all(map(admits, arguments, value))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return value is None if hint in (None, type(None)) else isinstance(value, hint)


def described(hint: Any) -> str:
    """An annotation in a reader's words: `int or None`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(described, arguments)))
    if origin is typing.Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is tuple:
        return "list"
    return "None" if hint is type(None) else getattr(hint, "__name__", str(hint))


def _end_token(node: Node, side: int) -> Token | None:
    """The first (side 0) or last (side -1) token below a node; the parser keeps no positions of its own, which costs a third more time."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, Token):
            return item
        if item is not None:
            stack += item.children if side else reversed(item.children)
    return None


def _operator(combine: Callable[[Index, Index], Index], left: int = 0, right: int = 1) -> Callable[[Source, Node], Index]:
    return lambda source, c: combine(source.index(c[left]), source.index(c[right]))


def _quotient(combine: Callable[[Index, Index], Index]) -> Callable[[Source, Node], Index]:
    def divide(source: Source, c: Node) -> Index:
        divisor = source.index(c[1])
        if divisor.constant == 0:
            raise ZeroDivisionError
        return combine(source.index(c[0]), divisor)
    return divide


EXPRESSIONS: dict[str, Callable[[Source, Node], Index]] = {
    "index": lambda source, c: source.index(c[0]),
    "variable": lambda source, c: var(str(c[0])),
    "integer": lambda source, c: as_index(int(c[0])),
    "negate": lambda source, c: -source.index(c[0]),
    "add": _operator(lambda a, b: a + b), "sub": _operator(lambda a, b: a - b), "mul": _operator(lambda a, b: a * b),
    "floordiv": _quotient(lambda a, b: a // b), "modulo": _quotient(lambda a, b: a % b),
    "minimum": _operator(minimum, 1, 2), "maximum": _operator(maximum, 1, 2),
}


def _spell(parser: lark.Lark, terminal: str) -> str:
    if terminal in _TERMINALS:
        return _TERMINALS[terminal]
    pattern = parser.get_terminal(terminal).pattern
    return f"`{pattern.value}`" if pattern.type == "str" else terminal.lower().replace("_", " ")
