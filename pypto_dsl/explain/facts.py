"""What an explanation consists of: plain records, one per value, group, buffer, kernel, step and target."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TypeFact:
    """One value: its type, the operation that made it, the rule that decided its dtype, and the operand that forced it ("" when none)."""

    line: int
    name: str
    type: str
    operation: str
    rule: str
    forced_by: str
    loses: tuple[str, ...] = ()


@dataclass(frozen=True)
class GroupFact:
    """One fused group: its kind, iteration space, the user's values in it with their lines, and why it ended."""

    number: int
    kind: str
    space: tuple[str, ...]
    values: tuple[tuple[str, int], ...]
    ended: str


@dataclass(frozen=True)
class BufferFact:
    """One on-chip buffer: shape, bytes of all its slots (an expression where they depend on the extents), where it is, the line it comes
    from, and the first and last line of those whose operations touch it."""

    name: str
    holds: str
    dtype: str
    shape: tuple[str, ...]
    slots: int
    bytes: str
    place: str
    line: int
    lives: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class KernelFact:
    """One schedule of a step: when it is taken, its tile and why, its grid, what it reads, writes and
    shares with its neighbours, its buffers."""

    name: str
    requires: tuple[str, ...]
    tile: str
    why: str
    items: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    workspaces: tuple[str, ...]
    buffers: tuple[BufferFact, ...]
    bytes: int | None
    capacity: int | None


@dataclass(frozen=True)
class StepFact:
    """One step of the program: the kernels of a fused group (alternatives in order of preference), or what the host does."""

    kind: str  # "kernel", "host", "read", "loop", "branch"
    title: str
    line: int
    group: int | None = None
    kernels: tuple[KernelFact, ...] = ()
    steps: tuple[StepFact, ...] = ()


@dataclass(frozen=True)
class TargetFacts:
    """What the pipeline made for one target; ``differences`` are known ones of the device from the meaning of the kernel's operations,
    ``relaxed`` is what `precision="fast"` did, each with its line."""

    target: str
    title: str
    groups: tuple[GroupFact, ...]
    steps: tuple[StepFact, ...]
    workspaces: tuple[tuple[str, str], ...]
    differences: tuple[str, ...] = ()
    relaxed: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class SourceLine:
    """One line of an emitted file and the line of the user's text that it comes from."""

    target: str
    file: str
    line: int
    user_line: int
