"""Walking and rewriting statement trees: nested bodies, buffers by name, what a statement reads and writes."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.ascend import Call, Copy, CopyFractals, Drain
from pypto_dsl.compiler.tile_ir.nodes import Buffer, For, If, Load, Statement, Store
from pypto_dsl.compiler.tile_ir.placed import BufferRef

Node = TypeVar("Node")
Body = tuple[Statement, ...]
_LEAVES = (Index, Span, DType, str, int, float, type(None))


def statements(body: Iterable[Statement]) -> Iterator[Statement]:
    """Every statement of a body, outer ones first, in order."""
    for statement in body:
        yield statement
        for inner in bodies(statement):
            yield from statements(inner)


def bodies(statement: Statement) -> tuple[Body, ...]:
    """The bodies nested directly in a statement."""
    if isinstance(statement, For):
        return (statement.body,)
    if isinstance(statement, If):
        return (statement.body, statement.orelse)
    return ()


def map_bodies(statement: Statement, change: Callable[[Body], Body]) -> Statement:
    """The statement with each nested body replaced by ``change(body)``."""
    if isinstance(statement, For):
        return dataclasses.replace(statement, body=change(statement.body))
    if isinstance(statement, If):
        return dataclasses.replace(statement, body=change(statement.body), orelse=change(statement.orelse))
    return statement


def buffers_of(node: Any) -> Iterator[Buffer]:
    """Every mention of a buffer below a node, in field order."""
    if isinstance(node, Buffer):
        yield node
    elif isinstance(node, tuple):
        for item in node:
            yield from buffers_of(item)
    elif dataclasses.is_dataclass(node) and not isinstance(node, _LEAVES):
        for field in dataclasses.fields(node):
            yield from buffers_of(getattr(node, field.name))


def replace_buffers(node: Node, table: Mapping[str, Buffer]) -> Node:
    """The node with every buffer whose name is in ``table`` replaced; unchanged parts stay the same objects."""
    if isinstance(node, Buffer):
        return table.get(node.name, node)  # type: ignore[return-value]
    if isinstance(node, _LEAVES):
        return node
    if isinstance(node, tuple):
        items = tuple(replace_buffers(item, table) for item in node)
        return items if any(a is not b for a, b in zip(items, node, strict=True)) else node  # type: ignore[return-value]
    if not dataclasses.is_dataclass(node):
        return node
    changed = {}
    for field in dataclasses.fields(node):
        before = getattr(node, field.name)
        after = replace_buffers(before, table)
        if after is not before:
            changed[field.name] = after
    return dataclasses.replace(node, **changed) if changed else node  # type: ignore[type-var]


def reads(statement: Statement) -> tuple[BufferRef, ...]:
    """What a placed statement itself reads on chip (nested bodies not included)."""
    if isinstance(statement, Call):
        return statement.reads
    if (isinstance(statement, Copy) and statement.direction == "out") or isinstance(statement, Drain):
        return (BufferRef(statement.buffer, Index(())),)
    return ()


def writes(statement: Statement) -> tuple[BufferRef, ...]:
    """What a placed statement itself writes on chip, scratch included."""
    if isinstance(statement, Call):
        return (*statement.writes, *statement.scratch)
    if (isinstance(statement, Copy) and statement.direction == "in") or isinstance(statement, CopyFractals):
        return (BufferRef(statement.buffer, Index(())),)
    return ()


def read_names(statement: Statement) -> set[str]:
    """Names of the buffers read by a statement or anything nested in it; a Store or copy out counts as a read."""
    return _names(statement, reads, Store)


def written_names(statement: Statement) -> set[str]:
    """Names of the buffers written by a statement or anything nested in it; a Load or copy in counts as a write."""
    return _names(statement, writes, Load)


def _names(statement: Statement, refs: Callable[[Statement], Iterable[BufferRef]], moved: type[Load | Store]) -> set[str]:
    names = {ref.buffer.name for ref in refs(statement)}
    if isinstance(statement, moved):
        names.add(statement.buffer.name)
    for body in bodies(statement):
        for inner in body:
            names |= _names(inner, refs, moved)
    return names
