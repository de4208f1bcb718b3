"""Rebuilding a graph operation by operation: the walk that every pass over Graph IR shares."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from pypto_dsl.compiler.graph import Builder, Graph, Op, Region, Value

# Given the op, its operands in the new graph and the new builder, returns the values that stand for its results.
Rewrite = Callable[[Op, tuple[Value, ...], Builder], Sequence[Value]]


def rebuild(graph: Graph, rewrite: Rewrite) -> Graph:
    """A new graph in which every operation without regions went through ``rewrite``; regions are rebuilt around it.

    Parameters keep their Values; results, returns and yields are mapped. One pass over the operations, in order.
    """
    new = Graph(
        graph.name, list(graph.parameters), dict(graph.symbols), Region(), {}, [], dict(graph.options), list(graph.checks), graph.span,
        dict(graph.strides)
    )
    mapping: dict[Value, Value] = {}
    # A frame is (region being read, position, builder of the region being written, the op that owns it).
    stack: list[_Frame] = [_Frame(graph.body, new.body, None)]
    while stack:
        frame = stack[-1]
        if frame.position == len(frame.source.ops):
            frame.target.yields = [mapping.get(y, y) for y in frame.source.yields]
            stack.pop()
            continue
        op = frame.source.ops[frame.position]
        if op.regions and len(frame.finished) < len(op.regions):
            source = op.regions[len(frame.finished)]
            target = Region([mapping.setdefault(a, Value(a.type, a.name)) for a in source.arguments])
            frame.finished.append(target)
            stack.append(_Frame(source, target, op))
            continue
        builder = Builder(new, frame.target)
        operands = tuple(mapping.get(o, o) for o in op.operands)
        if op.regions:
            made: Sequence[Value] = builder.clone(op, operands, regions=frame.finished).results
            frame.finished = []
        else:
            builder.span, builder.tile = op.span, op.tile
            made = rewrite(op, operands, builder)
        for old, value in zip(op.results, made, strict=True):
            mapping[old] = value
            if old.name and not value.name:
                value.name = old.name
        frame.position += 1
    new.outputs = {name: mapping.get(v, v) for name, v in graph.outputs.items()}
    new.returns = [mapping.get(v, v) for v in graph.returns]
    return new


class _Frame:
    """One region on the way."""

    __slots__ = ("finished", "owner", "position", "source", "target")

    def __init__(self, source: Region, target: Region, owner: Op | None) -> None:
        self.source = source
        self.target = target
        self.owner = owner
        self.position = 0
        self.finished: list[Region] = []
