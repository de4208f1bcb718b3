"""Where in the user's file the operation being recorded stands, and the names its value is bound to."""
from __future__ import annotations

import ast
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Literal, TypeAlias

from pypto_dsl.compiler.span import Span

OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
COMMAND_LINE = os.path.join(OWN_FOLDER, "cli") + os.sep
_PATHS = sysconfig.get_paths()
STANDARD = (_PATHS["stdlib"] + os.sep, _PATHS["platstdlib"] + os.sep)
INSTALLED = (_PATHS["purelib"] + os.sep, _PATHS["platlib"] + os.sep)
RETURNED = ("<returned>",)

_Maker: TypeAlias = Literal["user", "command line", "other"]
_Place: TypeAlias = tuple[str, int, int, int, int]
_Position: TypeAlias = tuple[int | None, int | None, int | None, int | None]
# By the identity of a code object, which is kept: to hash one takes time that grows with its length.
_positions: dict[int, tuple[CodeType, list[_Position]]] = {}
_makers: dict[int, tuple[CodeType, _Maker]] = {}
_own: dict[str, bool] = {}
_trees: dict[str, tuple[list[str], ast.Module | None]] = {}
# Files of which single definitions have been parsed, by their first lines, and nothing else.
_alone: dict[str, tuple[list[str], dict[int, ast.FunctionDef]]] = {}
_names: dict[_Place, tuple[str, ...]] = {}
# What `here_and_names` finds at an instruction of a user's code.
_sites: dict[tuple[int, int], tuple[Span, tuple[str, ...]]] = {}


def is_own(code: CodeType) -> bool:
    """Whether a code object belongs to this package, and so is never a user's line."""
    file = code.co_filename
    found = _own.get(file)
    if found is None:
        found = _own[file] = file.startswith((OWN_FOLDER, "<frozen"))
    return found


def uses_language(names: Mapping[str, Any]) -> bool:
    """Whether a module's globals show that it has imported this package."""
    return any(getattr(v, "__name__", "").startswith("pypto_dsl") or str(getattr(v, "__module__", "")).startswith("pypto_dsl")
               for v in list(names.values()))


def _maker(frame: FrameType) -> _Maker:
    """Whose code a frame runs: the standard library's and installed packages' is not the user's, unless it knows this package."""
    code = frame.f_code
    found = _makers.get(id(code))
    if found is None:
        found = _makers[id(code)] = (code, _made_by(code, frame))
    return found[1]


def _made_by(code: CodeType, frame: FrameType) -> _Maker:
    file = code.co_filename
    if is_own(code):
        return "command line" if file.startswith(COMMAND_LINE) else "other"
    if file.startswith(INSTALLED):
        return "user" if uses_language(frame.f_globals) else "other"
    return "other" if file.startswith(STANDARD) else "user"


def _place(frame: FrameType) -> _Place:
    code = frame.f_code
    table = _positions.get(id(code))
    if table is None:
        table = _positions[id(code)] = (code, list(code.co_positions()))
    line, end_line, column, end_column = table[1][frame.f_lasti // 2]
    line = line or frame.f_lineno
    return code.co_filename, line, column or 0, end_line or line, end_column or 0


@lru_cache(maxsize=65536)
def _span(place: _Place) -> Span:
    file, line, column, end_line, end_column = place
    return Span(file, line, column + 1, end_line, end_column + 1 if end_column else 0)


def here() -> Span | None:
    """The innermost user span; None when the command line is what calls, and no file of the user's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        maker = _maker(frame)
        if maker != "other":
            return _span(_place(frame)) if maker == "user" else None
        frame = frame.f_back
    return None


def here_and_names() -> tuple[Span | None, tuple[str, ...]]:
    """The innermost user span, and the names its value is assigned to, through `return` into the caller's assignment."""
    frame: FrameType | None = sys._getframe(3)  # who asks is not the user, nor is who asks them
    span: Span | None = None
    while frame is not None:
        code = frame.f_code
        known = _makers.get(id(code))  # `_maker`, without a call for each of our own frames in between
        if (known[1] if known is not None else _maker(frame)) == "user":
            found, bound = _sites.get((id(code), frame.f_lasti)) or _site(frame)
            if span is None:
                span = found
            if bound is not RETURNED:
                return span, bound
        elif code.co_name == "capture":
            break
        frame = frame.f_back
    return span, ()


def _site(frame: FrameType) -> tuple[Span, tuple[str, ...]]:
    place = _place(frame)
    file, line = place[:2]
    if file in _alone and not any(first <= line <= (node.end_lineno or first) for first, node in _alone[file][1].items()):
        tree_of(file)
    found = _sites[id(frame.f_code), frame.f_lasti] = _span(place), _names.get(place, ())
    return found


def node_span(node: ast.expr | ast.stmt | ast.arg, file: str) -> Span:
    """The span of an AST node."""
    return Span(file, node.lineno, node.col_offset + 1, node.end_lineno or node.lineno, (node.end_col_offset or node.col_offset) + 1)


def tree_of(file: str) -> ast.Module | None:
    """The parsed file, cached; notebooks and doctests come through linecache. None when there is no source."""
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    cached = _trees.get(file)
    if cached is None or cached[0] != lines:
        try:
            tree = ast.parse("".join(lines), file) if lines else None
        except SyntaxError:  # a file that changed under a running process
            tree = None
        cached = _trees[file] = (lines, tree)
        _alone.pop(file, None)
        if tree is not None:
            _record_names(tree, file)
    return cached[1]


def definition_alone(file: str, name: str, line: int) -> ast.FunctionDef | None:
    """The definition whose first line, decorators included, this is; of the file no other line is parsed.

    None where `tree_of` must be asked: the file has been parsed, or its lines do not show where the definition ends.
    """
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    if file in _trees:
        return None
    known = _alone.get(file)
    if known is None or known[0] != lines:
        known = _alone[file] = (lines, {})
    found = known[1].get(line)
    if found is None:
        try:
            found = _parsed_lines(lines, line, _end_of_block(lines, line), file)
        except (SyntaxError, ValueError):  # the end is inside a text, a bracket or a line that goes on, or the file has changed
            return None
        if min([found.lineno, *(d.lineno for d in found.decorator_list)]) != line:
            return None
        known[1][line] = found
        _record_names(found, file)
    return found if found.name == name else None


def _end_of_block(lines: Sequence[str], first: int) -> int:
    """The last line of the definition that begins in line ``first``, as indentation shows it."""
    indent = _indent(lines[first - 1]) if first <= len(lines) else 0
    rows = range(first, len(lines))
    body = next((i for i in range(first - 1, len(lines)) if lines[i].lstrip().startswith(("def ", "async "))), len(lines))
    return next((i for i in rows if i > body and _indent(lines[i]) <= indent and lines[i].lstrip()[:1] not in _NO_STATEMENT), len(lines))


_NO_STATEMENT = ("", "#", ")", "]", "}")  # what a line begins with that ends no block: nothing, a comment, the end of a bracket


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def parsed_again(node: ast.FunctionDef, file: str) -> ast.FunctionDef:
    """A definition that has been found, without its decorators, as a tree of its own with the same places.

    To parse its lines once more takes a tenth of the time of copying its nodes.
    """
    lines, _ = _trees.get(file) or _alone[file]
    return _parsed_lines(lines, node.lineno, node.end_lineno or node.lineno, file)


def _parsed_lines(lines: Sequence[str], first: int, last: int, file: str) -> ast.FunctionDef:
    """The only definition in these lines, at its place. Raises SyntaxError or ValueError where there is none, or more."""
    indented = first <= len(lines) and lines[first - 1][:1].isspace()
    module = ast.parse("\n" * (first - 1 - indented) + "if 1:\n" * indented + "".join(lines[first - 1:last]), file)
    (made,) = module.body[0].body if indented and isinstance(module.body[0], ast.If) else module.body
    if not isinstance(made, ast.FunctionDef):
        raise ValueError("no function")
    return made


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement of a tree, those inside others too; expressions hold none and are not looked into."""
    stack = [tree]
    while stack:
        node = stack.pop()
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            for inner in getattr(node, block, ()):
                if isinstance(inner, ast.stmt):
                    yield inner
                stack.append(inner)


def forget_sources() -> None:
    """Drop every cached tree and name; measurements of cold capture start here."""
    for table in (_trees, _alone, _names, _sites, _positions, _own, _makers):
        table.clear()


def _label(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        return target.value.id
    return ""


def _record_names(tree: ast.Module | ast.FunctionDef, file: str) -> None:
    """A static map from the span of a value expression to the names it is assigned to: names cost nothing at run time."""

    def put(node: ast.expr | ast.stmt, names: tuple[str, ...]) -> None:
        _names[file, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0] = names

    _sites.clear()
    for node in statements(tree):
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
