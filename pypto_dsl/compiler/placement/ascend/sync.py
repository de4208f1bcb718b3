"""The pass `sync`: the fewest barriers, each as late as possible, where a call meets bytes that its own pipe may still work on.

The state is what was written and read on a pipe since its last barrier. Late placement is minimal for a given order: every barrier is
forced by a conflict, and moving it earlier only lets less past it. A loop is walked until its entry state is stable, so that
dependences between iterations are seen. Between pipes the queues wait: what a queue hands over is free of conflicts.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from pypto_dsl.compiler.placement.ascend.walk import Body, reads, writes
from pypto_dsl.compiler.tile_ir.ascend import Call, Queue, View
from pypto_dsl.compiler.tile_ir.nodes import Buffer, For, If, Statement
from pypto_dsl.compiler.tile_ir.placed import Barrier, QueueAction

PIPES: Mapping[str, str] = {"load_fractals": "MTE1", "mmad": "M"}
Names = frozenset[str]


@dataclass(frozen=True)
class _State:
    """Buffers written and read per pipe since its last barrier."""

    written: Mapping[str, Names] = field(default_factory=dict)
    read: Mapping[str, Names] = field(default_factory=dict)

    def join(self, other: _State) -> _State:
        return _State(_union(self.written, other.written), _union(self.read, other.read))

    def covers(self, other: _State) -> bool:
        return all(names <= self.written.get(p, frozenset()) for p, names in other.written.items()) and all(
            names <= self.read.get(p, frozenset()) for p, names in other.read.items())

    def without(self, pipe: str) -> _State:
        return _State({p: n for p, n in self.written.items() if p != pipe}, {p: n for p, n in self.read.items() if p != pipe})

    def forget(self, name: str) -> _State:
        return _State({p: n - {name} for p, n in self.written.items()}, {p: n - {name} for p, n in self.read.items()})


def _union(a: Mapping[str, Names], b: Mapping[str, Names]) -> dict[str, Names]:
    return {p: a.get(p, frozenset()) | b.get(p, frozenset()) for p in sorted({*a, *b})}


def sync(body: Body) -> Body:
    """The body with its barriers."""
    views = [s for s in body if isinstance(s, View)]
    size = {v.buffer.name: v.elements * v.buffer.dtype.itemsize for v in views}
    shares = {v.buffer.name: frozenset(w.buffer.name for w in views if v.offset < w.offset + size[w.buffer.name]
                                       and w.offset < v.offset + size[v.buffer.name]) for v in views}
    positions = {s.buffer.name: s.position for s in body if isinstance(s, Queue)}
    return _Walk(shares, positions).body(body, _State())[0]


@dataclass(frozen=True)
class _Walk:
    shares: Mapping[str, Names]
    positions: Mapping[str, str]

    def names(self, buffers: list[Buffer]) -> Names:
        """The buffers and whatever shares bytes with them."""
        return frozenset().union(*(self.shares.get(b.name, frozenset({b.name})) for b in buffers)) if buffers else frozenset()

    def body(self, body: Body, state: _State) -> tuple[Body, _State]:
        out: list[Statement] = []
        for statement in body:
            placed, state = self.statement(statement, state)
            out += placed
        return tuple(out), state

    def statement(self, statement: Statement, state: _State) -> tuple[list[Statement], _State]:
        if isinstance(statement, For):
            return self.parallel(statement, state) if statement.kind == "parallel" else self.loop(statement, state)
        if isinstance(statement, If):
            first, then = self.body(statement.body, state)
            second, other = self.body(statement.orelse, state)
            return [dataclasses.replace(statement, body=first, orelse=second)], then.join(other)
        if isinstance(statement, QueueAction):
            return [statement], self.handed_over(statement, state)
        if not isinstance(statement, Call):
            return [statement], state
        pipe = PIPES.get(statement.name, "V")
        before, state = self.wait(pipe, [statement], state)
        return [*before, statement], state

    def handed_over(self, action: QueueAction, state: _State) -> _State:
        """A dequeued input was written by another pipe, and a newly allocated output was read by one: both were waited for."""
        incoming = self.positions.get(action.buffer.name) in ("VECIN", "A1", "B1", "A2", "B2")
        return state.forget(action.buffer.name) if action.action == ("deque" if incoming else "alloc") else state

    def wait(self, pipe: str, calls: list[Call], state: _State) -> tuple[list[Statement], _State]:
        """A barrier if the calls conflict with what is under way, and the state behind them."""
        read = self.names([r.buffer for call in calls for r in reads(call)])
        write = self.names([w.buffer for call in calls for w in writes(call)])
        written, was_read = state.written.get(pipe, frozenset()), state.read.get(pipe, frozenset())
        barrier: list[Statement] = []
        if read & written or write & (written | was_read):
            barrier, state = [Barrier(pipe)], state.without(pipe)
        own_read = frozenset(r.buffer.name for call in calls for r in reads(call))
        own_written = frozenset(w.buffer.name for call in calls for w in writes(call))
        return barrier, state.join(_State({pipe: own_written}, {pipe: own_read}))

    def parallel(self, loop: For, state: _State) -> tuple[list[Statement], _State]:
        """Iterations touch different bytes: one barrier before the loop serves them all."""
        calls = [s for s in loop.body if isinstance(s, Call)]
        if len(calls) != len(loop.body):
            placed, state = self.loop(dataclasses.replace(loop, kind="serial"), state)
            return [dataclasses.replace(s, kind="parallel") if isinstance(s, For) else s for s in placed], state
        barrier, state = self.wait(PIPES.get(calls[0].name, "V"), calls, state)
        return [*barrier, loop], state

    def loop(self, loop: For, state: _State) -> tuple[list[Statement], _State]:
        entry = state
        while True:
            inner, after = self.body(loop.body, entry)
            if entry.covers(after):
                break
            entry = entry.join(after)
        return [dataclasses.replace(loop, body=inner)], state.join(after)  # it may run zero times
