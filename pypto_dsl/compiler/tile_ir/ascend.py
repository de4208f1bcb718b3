"""The placed statements of Ascend targets: storage, queue actions, copies, calls of the vector and the cube unit.

Together with `Let`, `For`, `If` of the structured level and `Barrier`, `QueueAction` of `placed.py` they say everything an
emitter spells: which instruction on which buffers in which form, how many lanes, at which offset, behind which barrier.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.nodes import Buffer, Constant, IndexValue, Param, PlacedStatement, ScalarRead
from pypto_dsl.compiler.tile_ir.placed import BufferRef

Position = Literal["VECIN", "VECOUT", "A1", "B1", "A2", "B2", "CO1"]


@dataclass(frozen=True)
class Queue(PlacedStatement):
    """Storage of a queue buffer: ``buffer.slots`` buffers of ``bytes`` each, between the two pipes of ``position``."""

    buffer: Buffer
    position: Position
    bytes: int


@dataclass(frozen=True)
class Arena(PlacedStatement):
    """One block of the unified buffer that `View`s share by lifetime; ``name`` is its variable."""

    name: str
    bytes: int


@dataclass(frozen=True)
class View(PlacedStatement):
    """``elements`` of an arena at byte ``offset`` under the buffer's name and dtype."""

    buffer: Buffer
    arena: str
    offset: int
    elements: int


@dataclass(frozen=True)
class Copy(PlacedStatement):
    """``rows`` x ``cols`` elements between a parameter and a buffer of the unified buffer.

    ``offset`` and ``pitch`` count elements of the parameter; each row starts at a 32-byte block of the buffer, and ``gap``
    blocks are left out between the end of a row's last block and the next row.
    """

    direction: Literal["in", "out"]
    buffer: Buffer
    param: Param
    offset: Index
    rows: Index
    cols: Index
    pitch: Index
    gap: Index
    span: Span | None = None


@dataclass(frozen=True)
class Mode:
    """A named choice of a call: a rounding mode, a comparison, where a selection's second source comes from."""

    kind: Literal["round", "compare", "select"]
    name: str


@dataclass(frozen=True)
class Repeat:
    """The repeat form: ``lanes`` of each of ``repeats`` repeats.

    ``blocks`` are the strides between the 32-byte blocks of one repeat, ``steps`` those between repeats, both in 32-byte
    blocks and in the order destination, first source, second source.
    """

    lanes: Index
    repeats: Index
    blocks: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class IsZero:
    """The condition that an index is 0: the first step of a reduction loop."""

    value: Index


CallArgument = Index | Constant | ScalarRead | IndexValue | Mode | IsZero | bool


@dataclass(frozen=True)
class Call(PlacedStatement):
    """An instruction of the target's table. Exactly one of ``count`` (contiguous lanes) and ``repeat`` is set, or neither.

    ``scratch`` buffers are written by the call and hold nothing afterwards. ``arguments`` are what the instruction takes
    beside its buffers and its form, in its own order. ``note`` is the user's view of it: `e = exp(d)`.
    """

    name: str
    writes: tuple[BufferRef, ...]
    reads: tuple[BufferRef, ...] = ()
    scratch: tuple[BufferRef, ...] = ()
    arguments: tuple[CallArgument, ...] = ()
    count: Index | None = None
    repeat: Repeat | None = None
    span: Span | None = None
    note: str = ""


@dataclass(frozen=True)
class CopyFractals(PlacedStatement):
    """Row-major ``rows`` x ``cols`` of a parameter into 16 x 16 fractals of the L1 buffer, column of fractals by column.

    ``fractal_rows`` is the height of a fractal column in the buffer (a multiple of 16); the last column is completed with zeros.
    """

    buffer: Buffer
    param: Param
    offset: Index
    rows: Index
    cols: Index
    pitch: Index
    fractal_rows: Index
    span: Span | None = None


@dataclass(frozen=True)
class Drain(PlacedStatement):
    """``rows`` x ``cols`` of an accumulator, kept in fractals, to a parameter in row-major order."""

    buffer: Buffer
    param: Param
    offset: Index
    rows: Index
    cols: Index
    pitch: Index
    fractal_rows: Index
    span: Span | None = None
