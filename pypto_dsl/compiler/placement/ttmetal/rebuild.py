"""One walk that rebuilds statements: Indexes and buffers replaced, everything else as it was."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.index import Index, IndexLike
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.nodes import Buffer, Param

Node = TypeVar("Node")


def rebuild(node: Node, index: Callable[[Index], Index] | None = None, buffer: Callable[[Buffer], Buffer] | None = None,
            first: Callable[[Any], Any] | None = None) -> Node:
    """``node`` with ``index`` applied to every Index and ``buffer`` to every buffer below; ``first`` may replace a node on the way down.

    Parameters keep their shapes: the host needs them as they are. Buffers are visited inside only when ``buffer`` is absent.
    """
    def visit(x: Any) -> Any:
        if isinstance(x, Index):
            return x if index is None else index(x)
        if isinstance(x, tuple):
            return tuple(map(visit, x))
        if isinstance(x, Buffer) and buffer is not None:
            return buffer(x)
        if not dataclasses.is_dataclass(x) or isinstance(x, (Param, Span, DType, type)):
            return x
        x = x if first is None else first(x)
        if isinstance(x, Index) or not dataclasses.is_dataclass(x):
            return x
        return dataclasses.replace(x, **{f.name: visit(getattr(x, f.name)) for f in dataclasses.fields(x) if f.init})  # type: ignore[type-var]

    found: Node = visit(node)
    return found


def substituted(node: Node, values: Mapping[str, IndexLike]) -> Node:
    """``node`` with variables replaced in every Index."""
    return rebuild(node, index=lambda x: x.substitute(values))
