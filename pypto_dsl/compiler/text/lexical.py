"""The lexical rules both text forms share, writing side: identifiers, strings, numbers, spans."""
from __future__ import annotations

import json
import re

from pypto_dsl.compiler.span import Span

IDENTIFIER = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


def is_identifier(name: str) -> bool:
    """Whether a name is written bare (the grammars' NAME terminal)."""
    return IDENTIFIER.fullmatch(name) is not None


def quoted(string: str) -> str:
    """A string literal: JSON's escapes, other characters as they are."""
    return json.dumps(string, ensure_ascii=False)


def word(name: str) -> str:
    """A name bare when it is an identifier, quoted otherwise."""
    return name if is_identifier(name) else quoted(name)


def number(value: float | int) -> str:
    """A number that reads back as the same number of the same Python type: floats have a point, an exponent, or are inf or nan."""
    if isinstance(value, bool):
        return "True" if value else "False"
    return repr(int(value)) if isinstance(value, int) else repr(float(value))


def location(span: Span) -> str:
    """`loc("softmax.py":9:5)`, or `loc("softmax.py":9:5 to 9:20)` when the end is known. The file's basename only."""
    end = f" to {span.end_line}:{span.end_column}" if span.end_line or span.end_column else ""
    return f"loc({quoted(span.basename)}:{span.line}:{span.column}{end})"
