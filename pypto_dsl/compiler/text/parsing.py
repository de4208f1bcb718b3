"""Lark at work for both text forms: loads a grammar, parses with positions, and turns lark's exceptions into KernelErrors."""
from __future__ import annotations

import json
import linecache
from functools import lru_cache
from importlib import resources

import lark
from lark import Token, Tree

from pypto_dsl.compiler.errors import KernelError, error
from pypto_dsl.compiler.span import Span

Node = Tree[Token]

# What a reader calls the terminals that have no fixed spelling.
_TERMINALS = {
    "NAME": "a name", "INT": "a whole number", "FLOAT": "a number", "STRING": "a string", "BUFFER": "a buffer (%name)",
    "VALUE": "a value (%name)", "MIN": "`min(`", "MAX": "`max(`", "LOC": "`loc(`", "$END": "the end of the text",
    "SYMBOL": "a symbol",
}


@lru_cache
def _parser(package: str, grammar: str, starts: tuple[str, ...]) -> lark.Lark:
    source = resources.files(package).joinpath(grammar).read_text(encoding="utf-8")
    return lark.Lark(source, parser="lalr", start=list(starts), propagate_positions=True, maybe_placeholders=True)


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
            raise self._syntax(parser, found, set(e.accepts or e.expected), self._end() if at_end else self.span(token)) from None
        except lark.exceptions.UnexpectedCharacters as e:
            span = Span(self.file, e.line, e.column, e.line, e.column + 1)
            raise self._syntax(parser, f"`{self.text[e.pos_in_stream or 0]}`", set(e.allowed or ()), span) from None

    def _syntax(self, parser: lark.Lark, found: str, expected: set[str], span: Span) -> KernelError:
        spelled = sorted({_spell(parser, name) for name in expected})
        shown = ", ".join(spelled[:8]) + (f" and {len(spelled) - 8} more" if len(spelled) > 8 else "")
        message = f"{found} where {'one of ' if len(spelled) > 1 else ''}{shown or 'nothing'} is expected"
        return error("PT601", message, span, expected=spelled)

    def _end(self) -> Span:
        lines = self.text.splitlines() or [""]
        return Span(self.file, len(lines), len(lines[-1]) + 1, len(lines), len(lines[-1]) + 2)

    def span(self, node: Node | Token) -> Span:
        """Where a node or token stands in the text."""
        at = node if isinstance(node, Token) else node.meta
        line = getattr(at, "line", None) or 1
        column = getattr(at, "column", None) or 1
        return Span(self.file, line, column, getattr(at, "end_line", None) or line, getattr(at, "end_column", None) or column + 1)

    def refuse(self, code: str, message: str, node: Node | Token, *, label: str = "", help: str = "") -> KernelError:
        """The error of a node."""
        return error(code, message, self.span(node), label=label, help=help)

    def string(self, token: Token) -> str:
        """A STRING token's value; PT601 when an escape is none of JSON's."""
        try:
            return str(json.loads(str(token)))
        except ValueError:
            raise self.refuse("PT601", "this string has an escape that does not exist", token, help="escapes are those of JSON") from None


def _spell(parser: lark.Lark, terminal: str) -> str:
    if terminal in _TERMINALS:
        return _TERMINALS[terminal]
    pattern = parser.get_terminal(terminal).pattern
    return f"`{pattern.value}`" if pattern.type == "str" else terminal.lower().replace("_", " ")
