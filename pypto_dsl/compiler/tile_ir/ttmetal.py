"""The placed statements of TT-Metal targets: tiles through DST on one of three engines, and the steps of the three kernels.

Two levels. `MapTiles`, `ReduceTiles` and `MatmulTiles` replace Blocks and Accumulates: every operation has its engine, its call
and, after `allocate`, its DST slots. `RoleBody` is what they become when the nest is sliced into reader, compute and writer: every
ring action, barrier, init and reconfiguration is a statement, so an emitter spells them one by one.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.nodes import Buffer, Constant, IndexValue, Load, Param, PlacedStatement, Read, ScalarRead, Statement

Engine = Literal["copy", "fpu", "sfpu"]
RoleName = Literal["reader", "compute", "writer"]
Word = Constant | ScalarRead | IndexValue


@dataclass(frozen=True)
class TileRef:
    """A tile of a ring's front window as operand: ``tile`` counts pages, ``how`` says which lanes stand for the others."""

    buffer: Buffer
    tile: Index
    how: Read = "full"


@dataclass(frozen=True)
class TileOp:
    """``result = call(...)`` on whole tiles.

    ``call`` is a row of the intrinsics table. copy: ``tiles[0]`` into a slot; fpu: two tiles into a slot; sfpu: ``values`` (results
    of earlier ops) in slots; ``words`` are 32-bit scalars. ``slot`` and ``inputs`` are DST indices, given by `allocate`.
    ``last``: (loop variable's Index, its last value): the op runs only where they are equal.
    """

    result: str
    call: str
    engine: Engine
    values: tuple[str, ...] = ()
    tiles: tuple[TileRef, ...] = ()
    words: tuple[Word, ...] = ()
    slot: int = -1
    inputs: tuple[int, ...] = ()
    last: tuple[Index, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class Pack:
    """A value of a MapTiles to the next page of a ring; ``slot`` is given by `allocate`."""

    value: str
    buffer: Buffer
    slot: int = -1


@dataclass(frozen=True)
class Axis:
    """A loop over tiles: ``var`` in 0 .. count - 1. A count of one is no loop, and ``var`` is 0 in its body."""

    var: str
    count: Index


@dataclass(frozen=True)
class MapTiles(PlacedStatement):
    """``ops`` for each tile of ``rows`` x ``cols`` (row-major), each in one DST acquire, then the packs."""

    rows: Axis
    cols: Axis
    ops: tuple[TileOp, ...]
    packs: tuple[Pack, ...]
    span: Span | None = None
    text: str = ""


@dataclass(frozen=True)
class ReduceTiles(PlacedStatement):
    """``target`` = reduction of ``value`` over ``inner`` tiles (and over ``steps``), one result tile for each of ``outer``.

    axis 1 runs along rows of tiles (outer counts rows), axis 0 down columns. engine sfpu: ``ops`` compute the value, ``combine`` folds
    it into the accumulator's slot, which ``identity`` filled; one `sfpu_reduce` ends it. engine fpu: ``reduce_tile`` of ``source``
    against ``scaler``. ``steps`` is a loop whose loads are part of the statement: DST is held from the first tile to the last.
    """

    kind: Literal["sum", "max"]
    axis: int
    engine: Engine
    outer: Axis
    inner: Axis
    target: Buffer
    ops: tuple[TileOp, ...] = ()
    value: str = ""
    source: TileRef | None = None
    scaler: Buffer | None = None
    accumulator: int = -1
    steps: Statement | None = None
    span: Span | None = None
    text: str = ""


@dataclass(frozen=True)
class MatmulTiles(PlacedStatement):
    """``target[m, n] = sum over var of a[m, inner] @ b[inner, n]``: DST holds ``rows`` x ``cols`` tiles from the first step to the last.

    ``loads`` fill the operands of one step of ``inner`` tiles. ``b_transposed``: b is [n, inner] and its tiles are transposed as
    they are unpacked.
    """

    var: str
    stop: Index
    step: Index
    loads: tuple[Load, ...]
    a: Buffer
    b: Buffer
    target: Buffer
    rows: Axis
    cols: Axis
    inner: Axis
    b_transposed: bool = False
    span: Span | None = None
    text: str = ""


@dataclass(frozen=True)
class FillTile(PlacedStatement):
    """A tile that the reader writes once: every lane ``value``; or 0 beyond the first ``valid`` lanes of ``axis``; or the lane's number.

    pattern "constant": ``value`` everywhere; "valid": 1 in the first ``valid`` rows (axis 0) or columns (axis 1), 0 beyond;
    "lane": the row's or column's number.
    """

    buffer: Buffer
    pattern: Literal["constant", "valid", "lane"]
    value: float = 1.0
    axis: int = 1
    valid: Index | None = None
    span: Span | None = None


# ---- the three kernels ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RoleBody(PlacedStatement):
    """One kernel file. ``arguments`` name the run-time words in order: ``<param>.address``, scalars, ``start``, ``count``;
    ``accessors`` are the parameters whose accessor words are its compile-time arguments, in order."""

    role: RoleName
    arguments: tuple[str, ...]
    accessors: tuple[Param, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Ring(PlacedStatement):
    """A ring action on ``pages`` pages: reserve and push at the producer, wait and pop at the consumer."""

    action: Literal["reserve", "push", "wait", "pop"]
    buffer: Buffer
    pages: Index
    span: Span | None = None


@dataclass(frozen=True)
class Transfer(PlacedStatement):
    """One page between a parameter and the ring's window: read (DRAM to ring) or write. It lands at the next `Land`."""

    direction: Literal["read", "write"]
    param: Param
    page: Index
    buffer: Buffer
    tile: Index


@dataclass(frozen=True)
class Land(PlacedStatement):
    """Waits until every transfer of that direction has landed."""

    direction: Literal["read", "write"]


@dataclass(frozen=True)
class PadTile(PlacedStatement):
    """Lanes of one reserved tile from ``valid`` on along ``axis`` (0 rows, 1 columns) = ``value``."""

    buffer: Buffer
    tile: Index
    axis: int
    valid: Index
    value: float


@dataclass(frozen=True)
class WriteTile(PlacedStatement):
    """The reserved page of a ring is written whole by the reader, as `FillTile` says."""

    fill: FillTile


@dataclass(frozen=True)
class Dst(PlacedStatement):
    """A step of the DST protocol."""

    action: Literal["acquire", "commit", "wait", "release"]


@dataclass(frozen=True)
class Setup(PlacedStatement):
    """A call that configures hardware: startup, an init, a format of SrcA, SrcB or the packer. ``call`` is a row of the table."""

    call: str
    buffers: tuple[Buffer, ...] = ()


@dataclass(frozen=True)
class Compute(PlacedStatement):
    """One compute call with everything filled in: tiles, DST slots (Indexes: a loop may count them), words."""

    call: str
    tiles: tuple[TileRef, ...] = ()
    slots: tuple[Index, ...] = ()
    words: tuple[Word, ...] = ()
    result: str = ""


@dataclass(frozen=True)
class PackPage(PlacedStatement):
    """A DST slot to the next reserved page of a ring."""

    slot: Index
    buffer: Buffer


@dataclass(frozen=True)
class When(PlacedStatement):
    """``body`` where the two Indexes are equal."""

    left: Index
    right: Index
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Comment(PlacedStatement):
    """What the user wrote there."""

    text: str
    span: Span | None = None
