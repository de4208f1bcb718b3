"""Where in the user's file the operation being recorded stands, and the names its value is bound to."""
from __future__ import annotations

import ast
import linecache
import os
import sys
from types import CodeType, FrameType
from typing import TypeAlias

from pypto_dsl.compiler.span import Span

OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
RETURNED = ("<returned>",)

_Place: TypeAlias = tuple[str, int, int, int, int]
_positions: dict[CodeType, list[tuple[int | None, int | None, int | None, int | None]]] = {}
_own: dict[CodeType, bool] = {}
_trees: dict[str, tuple[str, ast.Module | None]] = {}
_names: dict[_Place, tuple[str, ...]] = {}


def is_own(code: CodeType) -> bool:
    """Whether a code object belongs to this package, and so is never a user's line."""
    found = _own.get(code)
    if found is None:
        found = _own[code] = code.co_filename.startswith(OWN_FOLDER) or code.co_filename.startswith("<frozen")
    return found


def _place(frame: FrameType) -> _Place:
    code = frame.f_code
    table = _positions.get(code)
    if table is None:
        table = _positions[code] = list(code.co_positions())
    line, end_line, column, end_column = table[frame.f_lasti // 2]
    line = line or frame.f_lineno
    return code.co_filename, line, column or 0, end_line or line, end_column or 0


def _span(place: _Place) -> Span:
    file, line, column, end_line, end_column = place
    return Span(file, line, column + 1, end_line, end_column + 1 if end_column else 0)


def here() -> Span | None:
    """The innermost user span: of the first frame outside this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own(frame.f_code):
        frame = frame.f_back
    return _span(_place(frame)) if frame is not None else None


def here_and_names() -> tuple[Span | None, tuple[str, ...]]:
    """The innermost user span, and the names its value is assigned to, through `return` into the caller's assignment."""
    frame: FrameType | None = sys._getframe(1)
    place: _Place | None = None
    while frame is not None:
        if not is_own(frame.f_code):
            this = _place(frame)
            place = place or this
            bound = _names.get(this, ())
            if bound is not RETURNED:
                return _span(place), bound
        elif frame.f_code.co_name == "capture":
            break
        frame = frame.f_back
    return (_span(place) if place is not None else None), ()


def node_span(node: ast.expr | ast.stmt | ast.arg, file: str) -> Span:
    """The span of an AST node."""
    return Span(file, node.lineno, node.col_offset + 1, node.end_lineno or node.lineno, (node.end_col_offset or node.col_offset) + 1)


def tree_of(file: str) -> ast.Module | None:
    """The parsed file, cached; notebooks and doctests come through linecache. None when there is no source."""
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file))
    cached = _trees.get(file)
    if cached is None or cached[0] != text:
        try:
            tree = ast.parse(text, file) if text else None
        except SyntaxError:  # a file that changed under a running process
            tree = None
        cached = _trees[file] = (text, tree)
        if tree is not None:
            _record_names(tree, file)
    return cached[1]


def forget_sources() -> None:
    """Drop every cached tree and name; measurements of cold capture start here."""
    for table in (_trees, _names, _positions, _own):
        table.clear()


def _label(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        return target.value.id
    return ""


def _record_names(tree: ast.Module, file: str) -> None:
    """A static map from the span of a value expression to the names it is assigned to: names cost nothing at run time."""

    def put(node: ast.expr | ast.stmt, names: tuple[str, ...]) -> None:
        _names[file, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0] = names

    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(target.elts) == len(node.value.elts):
                for t, v in zip(target.elts, node.value.elts, strict=True):
                    put(v, (_label(t),))
            else:
                put(node.value, tuple(map(_label, target.elts)) if isinstance(target, ast.Tuple) else (_label(target),))
        elif isinstance(node, ast.AugAssign):
            put(node, (_label(node.target),))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            put(node.value, (_label(node.target),))
        elif isinstance(node, ast.Return) and node.value is not None:
            put(node.value, RETURNED)
