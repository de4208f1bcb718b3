"""An independent check of sliced kernels: ring balances, ring laws, DST protocol and slots, numbers that emitters rely on.

It knows nothing of how the kernel was made. What it finds is our mistake (CompilerBug), never the user's.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import Index, as_index, ceildiv
from pypto_dsl.compiler.placement.ttmetal.roles import flat
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Buffer, For, If, Let, Statement, TileKernel
from pypto_dsl.compiler.tile_ir.ttmetal import Compute, Dst, PackPage, Ring, RoleBody, When

WHERE = "placement.ttmetal.verify"
NEXT = {"acquire": "commit", "commit": "wait", "wait": "release", "release": "acquire"}


@dataclass
class Traffic:
    """Pages that one role pushes to or pops from a ring in the whole kernel."""

    pushed: Index = field(default_factory=lambda: as_index(0))
    popped: Index = field(default_factory=lambda: as_index(0))


def verify_placed(kernel: TileKernel, target: Target) -> TileKernel:
    """The kernel itself when everything holds; CompilerBug that names the ring or statement otherwise."""
    roles = [s for s in kernel.body if isinstance(s, RoleBody)]
    _rings_are_balanced(kernel, roles)
    _ring_laws(roles, int(target.table("rings")["count"]))
    fp32_dest = bool(dict(kernel.properties)["fp32_dest"])
    slots = int(target.table("dst")["tiles_32" if fp32_dest else "tiles_16"])
    for role in roles:
        _destination(role, slots)
        _between(role)
    return kernel


def _rings_are_balanced(kernel: TileKernel, roles: Sequence[RoleBody]) -> None:
    """One producer and one consumer per ring, and what one pushes the other pops."""
    traffic: dict[str, dict[str, Traffic]] = {}
    for role in roles:
        lets = {s.name: s.value for s in flat(role.body) if isinstance(s, Let)}
        _count(role.body, as_index(1), lets, traffic, role.role)
    for name, by_role in sorted(traffic.items()):
        producers = [r for r, t in by_role.items() if t.pushed != as_index(0)]
        consumers = [r for r, t in by_role.items() if t.popped != as_index(0)]
        if len(producers) != 1 or len(consumers) != 1:
            raise CompilerBug(WHERE, f"the ring {name} of {kernel.name} is filled by {producers} and emptied by {consumers}")
        pushed, popped = by_role[producers[0]].pushed, by_role[consumers[0]].popped
        if pushed != popped:
            raise CompilerBug(WHERE, f"the ring {name} of {kernel.name} gets {pushed} pages and gives {popped}")


def _count(body: Sequence[Statement], times: Index, lets: dict[str, Index], traffic: dict[str, dict[str, Traffic]], role: str) -> None:
    for s in body:
        if isinstance(s, Ring):
            found = traffic.setdefault(s.buffer.name, {}).setdefault(role, Traffic())
            pages = _spelled(s.pages, lets) * times
            if s.action == "push":
                found.pushed = found.pushed + pages
            elif s.action == "pop":
                found.popped = found.popped + pages
        elif isinstance(s, For):
            turns = ceildiv(_spelled(s.stop, lets) - _spelled(s.start, lets), s.step)
            _count(s.body, times * turns, lets, traffic, role)
        elif isinstance(s, If):  # both kernels take the same branch: each is balanced by itself
            for branch in (s.body, s.orelse):
                inside: dict[str, dict[str, Traffic]] = {}
                _count(branch, times, lets, inside, role)
                for name, by_role in inside.items():
                    for r, t in by_role.items():
                        found = traffic.setdefault(name, {}).setdefault(r, Traffic())
                        found.pushed, found.popped = found.pushed + t.pushed, found.popped + t.popped
        elif isinstance(s, When) and any(isinstance(x, Ring) for x in flat(s.body)):
            raise CompilerBug(WHERE, "a ring action under a condition of one kernel alone")


def _spelled(x: Index, lets: dict[str, Index]) -> Index:
    for _ in range(len(lets) + 1):
        new = x.substitute(lets)
        if new == x:
            break
        x = new
    return x


def _ring_laws(roles: Sequence[RoleBody], count: int) -> None:
    """Every action on a ring moves one page, or all that one step holds: no window ever crosses the ring's end."""
    for role in roles:
        for s in flat(role.body):
            if isinstance(s, Ring) and s.pages != as_index(1) and s.pages != s.buffer.tiles:
                raise CompilerBug(WHERE, f"{s.action} of {s.pages} pages on the ring {s.buffer.name} of {s.buffer.tiles} per step")
            if isinstance(s, Ring) and not 0 <= s.buffer.ring < count:
                raise CompilerBug(WHERE, f"the ring {s.buffer.name} has the number {s.buffer.ring}")


def _destination(role: RoleBody, slots: int) -> None:
    """acquire, commit, wait, release in order around every loop, math inside the first pair, packs inside the second; slots exist."""
    def walk(body: Sequence[Statement], state: str) -> str:
        for s in body:
            if isinstance(s, Dst):
                if s.action != state:
                    raise CompilerBug(WHERE, f"{s.action} of DST where {state} is due")
                state = NEXT[state]
            elif isinstance(s, Compute):
                _expect(state == "commit", f"{s.call} outside DST")
                known = [x.constant for x in s.slots if x.constant is not None]
                _expect(all(0 <= x < slots for x in known), f"{s.call} in slots {list(s.slots)} of {slots}")
            elif isinstance(s, PackPage):
                _expect(state == "release", "a pack before DST was waited for")
            elif isinstance(s, (For, When)):
                _expect(walk(s.body, state) == state, "a loop that ends in another state of DST than it began")
            elif isinstance(s, If):
                _expect(walk(s.body, state) == state and walk(s.orelse, state) == state, "a branch that changes the state of DST")
        return state

    _expect(walk(role.body, "acquire") == "acquire", "DST is still held at the end")


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise CompilerBug(WHERE, what)


def _between(role: RoleBody) -> None:
    """A ring that compute fills and empties itself never holds more than it has room for, or the kernel would wait for itself."""
    rings = {s.buffer.name: s.buffer for s in flat(role.body) if isinstance(s, Ring)}
    pushes = {s.buffer.name for s in flat(role.body) if isinstance(s, Ring) and s.action == "push"}
    pops = {s.buffer.name for s in flat(role.body) if isinstance(s, Ring) and s.action == "pop"}
    for name in sorted(pushes & pops):
        _fill_level(role.body, rings[name], as_index(0))


def _fill_level(body: Sequence[Statement], ring: Buffer, level: Index) -> Index:
    """The pages in the ring behind ``body``; a loop of pushes counts as one, a loop that pushes and pops is checked turn by turn."""
    room = ring.tiles * ring.slots if ring.tiles is not None else as_index(ring.slots)
    for s in body:
        if isinstance(s, Ring) and s.buffer.name == ring.name:
            change = s.pages if s.action == "push" else -s.pages if s.action == "pop" else as_index(0)
            level = level + change
        elif isinstance(s, For):
            inside = _fill_level(s.body, ring, as_index(0))
            level = level + inside * ceildiv(s.stop - s.start, s.step)
        excess = (level - room).constant
        if excess is not None and excess > 0:
            raise CompilerBug(WHERE, f"the ring {ring.name} is given {level} pages before the first is taken, and has {room}")
    return level
