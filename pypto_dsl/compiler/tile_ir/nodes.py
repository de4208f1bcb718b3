"""The nodes of Tile IR, structured level: TileKernel, buffers, loops, loads, Blocks, reductions, stores.

Every extent, offset and count is an Index in *elements*. What a machine needs beyond this (instruction, engine, queue
action, barrier, slot) is a placed statement in `placed.py`. All nodes are frozen: a pass builds new ones.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Union

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.span import Span

Role = Literal["in", "out", "inout", "workspace"]
Unit = Literal["vector", "cube", "mix"]
LoopKind = Literal["parallel", "serial", "reduce"]
Read = Literal["full", "row", "col", "scalar"]
ReduceKind = Literal["sum", "prod", "max", "min", "any", "all"]
Layout = Literal["tile", "column", "row", "spread", "scalar"]


@dataclass(frozen=True)
class Param:
    """A global tensor. ``shape`` is its folded shape, row-major and dense unless ``strides`` (in elements) says otherwise;
    ``base`` is the element it starts at (a slice of a tensor).

    ``tensor`` is the argument or workspace of the Program that it is, empty when that has the same name (two views of one
    tensor in one kernel have two names). ``role`` is what this kernel does with it.
    """

    name: str
    dtype: DType
    shape: tuple[Index, ...]
    role: Role
    strides: tuple[Index, ...] | None = None
    base: Index = Index(())
    tensor: str = ""

    @property
    def bound_to(self) -> str:
        """The argument or workspace of the Program that this parameter is."""
        return self.tensor or self.name


@dataclass(frozen=True)
class Scalar:
    """A run-time number: an extent (dtype i64, defined by an Index over other scalars when ``value`` is set), a user's scalar, or
    (``workers``) the number of threads that may share a kernel's items, which the runtime knows."""

    name: str
    dtype: DType
    value: Index | None = None
    workers: bool = False


_PASSES_SUFFIX = re.compile(r"(_(tile|kept|next|step)|Partial|Tile|Wide)(_?\d+)?$")


@dataclass(frozen=True)
class Buffer:
    """On-chip storage. ``shape`` is (rows, columns): static bounds on device targets, may be symbolic on the CPU.

    ``layout``: "tile"; "column" = one value per row; "row" = one value per column; "spread" = one block per row, ready as a
    broadcast operand; "scalar". ``slots`` 2 = double buffered. ``space`` is `local`, `acc`, or the target's own word.
    ``offset`` (bytes), ``pitch`` (elements between rows), ``elements`` (storage of one slot) and the remaining fields are filled in
    by placement; ``tiles`` is
    what one step of the filling body produces on ring targets, ``stream`` whether it is pushed tile by tile; ``direct`` asks
    for exact unpacking to DST.
    """

    name: str
    dtype: DType
    shape: tuple[Index, Index]
    slots: int = 1
    space: str = "local"
    layout: Layout = "tile"
    span: Span | None = None
    note: str = ""
    pitch: int = 0
    offset: int = -1
    tiles: Index | None = None
    stream: bool = True
    direct: bool = False
    ring: int = -1
    elements: int = 0

    @property
    def holds(self) -> str:
        """What it holds, for messages: the kernel's name of the tensor or value, without what passes have put behind it."""
        return _PASSES_SUFFIX.sub("", self.name)


@dataclass(frozen=True)
class Region:
    """A rectangle of a parameter: one offset and one extent per dimension of the parameter; leading extents are 1 unless folded."""

    param: Param
    offset: tuple[Index, ...]
    extent: tuple[Index, ...]


@dataclass(frozen=True)
class Pad:
    """Lanes of a loaded buffer beyond ``valid`` along ``axis`` (0 rows, 1 columns) hold ``value``; other dead lanes are undefined."""

    axis: int
    value: float
    valid: Index


# ---- operands of a Block ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadBuffer:
    """A buffer as operand: ``full``; ``row`` = its only row for every row; ``col`` = its only column for every column; ``scalar``."""

    buffer: Buffer
    how: Read = "full"


@dataclass(frozen=True, eq=False)
class Constant:
    """A literal of a dtype; floats are exact in that dtype. bool values are 0 or 1.

    Two constants are equal when their bits are: -0.0 is not 0.0, and NaN is itself.
    """

    value: float | int
    dtype: DType

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and (repr(self.value), self.dtype) == (repr(other.value), other.dtype)

    def __hash__(self) -> int:
        return hash((repr(self.value), self.dtype))


@dataclass(frozen=True)
class ScalarRead:
    """A user's run-time scalar (see TileKernel.scalars), as a value of ``dtype`` for every lane."""

    name: str
    dtype: DType


@dataclass(frozen=True)
class IndexValue:
    """An Index as a number of ``dtype``, the same for every lane: float(N) of a mean."""

    value: Index
    dtype: DType


@dataclass(frozen=True)
class LaneIndex:
    """``base`` plus the lane's row (axis 0) or column (axis 1) inside the Block: iota, for tril, masks and arange."""

    axis: int
    base: Index
    dtype: DType


Operand = str | ReadBuffer | Constant | ScalarRead | IndexValue | LaneIndex


@dataclass(frozen=True)
class BlockOp:
    """``result = name(operands)`` for every lane; ``name`` is a primitive of `compiler/ops/core.py`, ``dtype`` the result's.

    ``attributes`` are sorted (key, value) pairs of plain data. ``source`` names the user's variable for comments.
    """

    result: str
    name: str
    operands: tuple[Operand, ...]
    dtype: DType
    attributes: tuple[tuple[str, str | int | float | bool], ...] = ()
    span: Span | None = None
    source: str = ""


@dataclass(frozen=True)
class Write:
    """A Block's output: value -> buffer over the Block's lanes."""

    value: Operand
    buffer: Buffer


@dataclass(frozen=True)
class Reduce:
    """A Block's reduction over the valid extent along ``axis`` (1: one value per row -> layout column; 0: one per column -> row).

    ``accumulate`` False: target = reduce(value). True: the target holds a partial between Init and Finish, and this is one
    step. NaN propagates in max and min, -0 < +0. Sums follow the defined order of law 3 on the CPU.
    """

    kind: ReduceKind
    value: Operand
    axis: int
    target: Buffer
    accumulate: bool = False
    span: Span | None = None
    source: str = ""


# ---- statements ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Let:
    """``name`` = value, visible to the statements behind it in the same body."""

    name: str
    value: Index
    bits: int = 64


@dataclass(frozen=True)
class For:
    """``for var in range(start, stop, step)``. ``reduce``: iterations accumulate into the same targets."""

    var: str
    start: Index
    stop: Index
    step: Index
    kind: LoopKind
    body: tuple[Statement, ...]
    note: str = ""


@dataclass(frozen=True)
class If:
    """``body`` when the condition (an Index, non-zero is true) holds, else ``orelse``."""

    condition: Index
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Load:
    """buffer <- region; lanes beyond the region's extent are undefined unless a pad defines them."""

    buffer: Buffer
    region: Region
    pads: tuple[Pad, ...] = ()
    span: Span | None = None


@dataclass(frozen=True)
class Store:
    """region <- buffer, over the region's extent only."""

    region: Region
    buffer: Buffer
    span: Span | None = None


@dataclass(frozen=True)
class Fill:
    """Every lane of the buffer = value."""

    buffer: Buffer
    value: float
    span: Span | None = None


@dataclass(frozen=True)
class Block:
    """Element-wise SSA over ``rows`` x ``cols`` lanes, then writes and reductions.

    An op may read only values above it, buffers, constants and scalars. A buffer may be written by the Block that reads it
    (``full``) lane by lane.
    """

    rows: Index
    cols: Index
    ops: tuple[BlockOp, ...]
    writes: tuple[Write, ...] = ()
    reduces: tuple[Reduce, ...] = ()
    span: Span | None = None
    text: str = ""


@dataclass(frozen=True)
class Init:
    """Before a reduce loop: the target's partial holds the identity. ``rows``/``cols`` are the valid extents it will cover."""

    kind: ReduceKind
    axis: int
    target: Buffer
    rows: Index
    cols: Index
    span: Span | None = None


@dataclass(frozen=True)
class Finish:
    """After a reduce loop: the partial becomes the result in the target."""

    kind: ReduceKind
    axis: int
    target: Buffer
    rows: Index
    cols: Index
    span: Span | None = None


@dataclass(frozen=True)
class Accumulate:
    """``target[m, n] = sum over var in range(0, k, step) of a @ b`` in ``target.dtype`` (f32 or i32), from zero.

    ``loads`` fill the operand buffers of one step (their regions use ``var``; the extent of the contraction at a step is
    min(step, k - var)). ``a`` is [m, step] (or [step, m] when ``a_transposed``), ``b`` is [step, n] (or [n, step]). On
    the CPU an element's terms are added in the order of `compiler/summation.py`.
    """

    var: str
    k: Index
    step: Index
    loads: tuple[Load, ...]
    a: Buffer
    b: Buffer
    target: Buffer
    m: Index
    n: Index
    a_transposed: bool = False
    b_transposed: bool = False
    span: Span | None = None
    text: str = ""


@dataclass(frozen=True)
class Grid:
    """The kernel's independent items: ``extents`` flattened row-major to one number ``item``; ``vars`` are the coordinates.

    A core is handed (start, count) and runs the body for item = start .. start + count - 1.
    """

    vars: tuple[str, ...]
    extents: tuple[Index, ...]


@dataclass(frozen=True)
class TileKernel:
    """One schedule of one fused group.

    ``name`` is the mangled entry name, ``title`` the user's name for comments; ``requires`` are Indexes that must be >= 0
    for this schedule to be valid (N <= 4096 is ``4096 - N``); ``once`` runs before the items; ``lets`` at the head of each.
    """

    name: str
    title: str
    params: tuple[Param, ...]
    scalars: tuple[Scalar, ...]
    grid: Grid
    body: tuple[Statement, ...]
    once: tuple[Statement, ...] = ()
    requires: tuple[Index, ...] = ()
    unit: Unit = "vector"
    span: Span | None = None
    properties: tuple[tuple[str, str | int | bool], ...] = field(default=())


@dataclass(frozen=True)
class Workspace:
    """A tensor between the kernels of a program. ``host``: one number, which the host keeps and no kernel sees."""

    name: str
    dtype: DType
    shape: tuple[Index, ...]
    host: bool = False


@dataclass(frozen=True)
class HostCall:
    """An operation that the host evaluates with its reference: no target has it as a kernel. Results are written where they lie."""

    opcode: str
    operands: tuple[Param | Constant | ScalarRead | IndexValue, ...]
    results: tuple[Param, ...]
    attributes: tuple[tuple[str, object], ...] = ()
    span: Span | None = None


@dataclass(frozen=True)
class ReadElement:
    """``name`` = the element of a tensor at offsets, from here on a run-time scalar; an integer is an Index variable too."""

    name: str
    symbol: str
    param: Param
    offsets: tuple[Index, ...]
    span: Span | None = None


@dataclass(frozen=True)
class StoreNumber:
    """``name``, a workspace that the host keeps, = ``value`` (computed by ``ops``)."""

    name: str
    ops: tuple[BlockOp, ...]
    value: Operand
    span: Span | None = None


@dataclass(frozen=True)
class GuardStep:
    """``needed <= available``, or the program stops with PT710 before the next step; ``what`` names the operation that needs it."""

    needed: Index
    available: Index
    what: str = ""
    span: Span | None = None


@dataclass(frozen=True)
class LoopStep:
    """``for var in range(start, stop, step)`` around steps."""

    var: str
    start: Index
    stop: Index
    step: Index
    steps: tuple[Step, ...]
    span: Span | None = None


@dataclass(frozen=True)
class BranchStep:
    """``steps`` when the scalar ``condition`` (computed by ``ops``) holds, else ``orelse``."""

    ops: tuple[BlockOp, ...]
    condition: Operand
    steps: tuple[Step, ...]
    orelse: tuple[Step, ...] = ()
    span: Span | None = None


# A kernel step lists the variants of one TileKernel.
Step = tuple[TileKernel, ...] | HostCall | ReadElement | StoreNumber | GuardStep | LoopStep | BranchStep


def kernels_of(steps: Sequence[Step]) -> Iterator[TileKernel]:
    """Every kernel of a program's steps in order, variants, loops and branches included."""
    for step in steps:
        if isinstance(step, tuple):
            yield from step
        elif isinstance(step, LoopStep):
            yield from kernels_of(step.steps)
        elif isinstance(step, BranchStep):
            yield from kernels_of((*step.steps, *step.orelse))


@dataclass(frozen=True)
class Program:
    """What a compiled graph is for one target: steps run in order over the arguments and workspaces, all by name.

    ``arguments`` are the user's tensors in the order of the kernel's signature, then returned tensors. A step is a tuple of
    alternative kernels in order of preference (the first whose ``requires`` hold is run), or control flow of the host.
    ``checks`` are pairs of extents that must be equal before anything is written.
    """

    name: str
    target: str
    arguments: tuple[Param, ...]
    scalars: tuple[Scalar, ...]
    workspaces: tuple[Workspace, ...]
    steps: tuple[Step, ...]
    checks: tuple[tuple[Index, Index, Span | None], ...] = ()


Statement = Union[Let, For, If, Load, Store, Fill, Block, Init, Finish, Accumulate, "PlacedStatement"]


class PlacedStatement:
    """Base of the placed statements; see `placed.py`."""

    __slots__ = ()


__all__ = [
    "Accumulate", "Block", "BlockOp", "BranchStep", "Buffer", "Constant", "Fill", "Finish", "For", "Grid", "GuardStep", "HostCall", "If",
    "IndexValue", "Init", "LaneIndex", "Layout", "Let", "Load", "LoopKind", "LoopStep", "Operand", "Pad", "Param",
    "PlacedStatement", "Program", "Read", "ReadBuffer", "ReadElement", "Reduce", "ReduceKind", "Region", "Role", "Scalar",
    "ScalarRead", "Statement", "Step", "Store", "TileKernel", "Unit", "Workspace", "Write", "replace",
]
