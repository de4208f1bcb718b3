"""What to write instead, as text for the place where an error's caret stands: only where applying it gives a kernel that compiles."""
from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass

from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.span import Span
from pypto_dsl.frontend.spans import node_span, tree_of


def segment(span: Span | None) -> str:
    """The user's text at a span; "" without source."""
    if span is None or not span.end_line:
        return ""
    lines = [linecache.getline(span.file, n) for n in range(span.line, span.end_line + 1)]
    if not all(lines):
        return ""
    # columns of code objects count bytes of UTF-8
    held = [line.encode() for line in lines]
    held[-1] = held[-1][:span.end_column - 1]
    held[0] = held[0][span.column - 1:]
    return b"".join(held).decode()


def _parsed(span: Span | None) -> tuple[ast.expr, Callable[[ast.expr], str]]:
    """The expression at a span and the text of its parts; `...` where there is none."""
    source = f"({segment(span) or '...'})"
    try:
        node = ast.parse(source, mode="eval").body
    except SyntaxError:
        node = ast.Constant(...)
    return node, lambda part: ast.get_source_segment(source, part) or ""


def where(span: Span | None) -> str | None:
    """`a if c else b` on a tensor's elements is `pypto.where(c, a, b)`."""
    node, text = _parsed(span)
    if not isinstance(node, ast.IfExp):
        return None
    return f"pypto.where({text(node.test)}, {text(node.body)}, {text(node.orelse)})"


def elementwise(span: Span | None) -> str | None:
    """`a and b` on tensors' elements is `(a) & (b)`; `or` likewise."""
    node, text = _parsed(span)
    if not isinstance(node, ast.BoolOp):
        return None
    symbol = " & " if isinstance(node.op, ast.And) else " | "
    return symbol.join(text(v) if isinstance(v, (ast.Name, ast.Call)) else f"({text(v)})" for v in node.values)


def extreme(span: Span | None, name: str) -> str | None:
    """`min(a, b)` on tensors' elements is `pypto.minimum(a, b)`."""
    node, text = _parsed(span)
    if not isinstance(node, ast.Call) or len(node.args) != 2:
        return None
    return f"pypto.{name}imum({', '.join(map(text, node.args))})"


def replaced(span: Span | None, name: str, text: str) -> str | None:
    """The text at a span with the only use of a name replaced; None when it is used more than once or not at all."""
    node, _ = _parsed(span)
    uses = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name]
    if len(uses) != 1 or uses[0].lineno != 1:
        return None
    source = segment(span).encode()
    start, stop = uses[0].col_offset - 1, (uses[0].end_col_offset or 0) - 1
    return (source[:start] + text.encode() + source[stop:]).decode()


@dataclass(frozen=True)
class Write:
    """A write in the user's text: the value's text, its place (None when it stands in no one place), and what is around it."""

    value: str
    place: Span | None
    before: str
    after: str = ""


def _is_at(node: ast.expr, span: Span) -> bool:
    return (node.lineno, node.col_offset + 1, node.end_lineno, (node.end_col_offset or 0) + 1) == (
        span.line, span.column, span.end_line, span.end_column)


def write_at(span: Span | None) -> Write | None:
    """The write whose destination, or whose call (`out.move(value)`), stands at a span; None without source, and for other forms."""
    tree = tree_of(span.file) if span is not None else None
    if tree is None or span is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            pairs = [pair for target in node.targets for pair in _paired(target, node.value)]
            value = next((v for t, v in pairs if _is_at(t, span)), None)
            if value is not None:
                place = node_span(value, span.file)
                return Write(segment(place), place, f"{segment(span)} = ")
        elif isinstance(node, ast.AugAssign) and _is_at(node.target, span):
            target, value_text = segment(span), segment(node_span(node.value, span.file))
            operation = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b")))[1:-1]
            return Write(f"{target}{operation}({value_text})", None, f"{target} = ")
        elif isinstance(node, ast.Call) and _is_at(node, span) and node.args and not isinstance(node.args[0], (ast.List, ast.Tuple)):
            place = node_span(node.args[0], span.file)
            before, _, after = segment(span).partition(segment(place))
            return Write(segment(place), place, before, after)
    return None


def _paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def operand_at(span: Span | None, number: int, count: int) -> Span | None:
    """The place of an operand (counted from 1) of the operation at a span, which has ``count`` arguments; None when it is not found.

    Operations are operators, calls `pypto.add(a, b)`, and methods `a.add(b)`, whose first argument is the tensor.
    """
    tree = tree_of(span.file) if span is not None else None
    for node in ast.walk(tree) if tree is not None else ():
        if span is None or not isinstance(node, (ast.BinOp, ast.Compare, ast.Call)) or not _is_at(node, span):
            continue
        if isinstance(node, ast.Call):
            is_method = isinstance(node.func, ast.Attribute) and len(node.args) == count - 1
            parts = [node.func.value, *node.args] if is_method and isinstance(node.func, ast.Attribute) else list(node.args)
        else:
            parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
        return node_span(parts[number - 1], span.file) if 0 < number <= len(parts) == count else None
    return None


def cast_name(text: str) -> str:
    """The name that a remedy `pypto.cast(NAME, ...)` casts, "" for another remedy."""
    if not text.startswith("pypto.cast("):
        return ""
    name = text.removeprefix("pypto.cast(").split(",")[0]
    return name if name.isidentifier() else ""


def corner(name: str, target: tuple[Index, ...], value: tuple[Index, ...]) -> str | None:
    """`out[0:2, 0:4]`: the part of a destination that a smaller value of the same rank fills, when all extents are known."""
    if len(target) != len(value) or not name.isidentifier():
        return None
    pairs = [(t.constant, v.constant) for t, v in zip(target, value, strict=True)]
    if any(t is None or v is None or v > t for t, v in pairs):
        return None
    return f"{name}[{', '.join(f'0:{v}' for _, v in pairs)}]"


def number(span: Span | None, wrong: int, right: int) -> str | None:
    """The text at a span with the only literal ``wrong`` replaced."""
    text = segment(span)
    return text.replace(str(wrong), str(right)) if text.count(str(wrong)) == 1 else None
