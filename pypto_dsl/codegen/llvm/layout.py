"""Where a kernel's buffers live on the CPU: in a parameter itself, in the output they are stored to, or in a worker's scratch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pypto_dsl.codegen.llvm import sums
from pypto_dsl.codegen.llvm.intrinsics import HEAVY
from pypto_dsl.compiler.dtypes import F64, DType
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import Index, as_index, ceildiv
from pypto_dsl.compiler.summation import PARTIALS
from pypto_dsl.compiler.tile_ir import nodes as t

ALIGNMENT = 64  # bytes: a cache line and the widest vector
PAD = 16  # elements: rows in scratch are padded to the widest vector of 32-bit lanes


_SHORT_BLOCK = 8  # operations
PANEL = 64  # elements: columns of a matrix product that are packed together, for the widest register tile


@dataclass(frozen=True)
class Slot:
    """A piece of scratch: byte offset from the worker's base, elements between rows."""

    offset: Index
    pitch: Index


@dataclass(frozen=True)
class ColumnSlot:
    """Scratch of a reduction with a result per lane: values, with more partials behind them, levels of finished blocks, the counter."""

    kind: t.ReduceKind
    values: Index
    levels: Index
    count: Index
    pitch: Index


@dataclass(frozen=True)
class ProductSlot:
    """Scratch of a matrix product in the accumulator's dtype: the left operand packed, and a panel of the right one."""

    a: Slot
    panel: Slot


@dataclass(frozen=True)
class Layout:
    """The scratch of one kernel. ``direct`` maps a buffer to the Store whose region it is written to at once, ``turned`` are loaded buffers
    that are copied into rows, ``lying`` those that lie along their columns and are reduced where they lie."""

    slots: dict[str, Slot]
    columns: dict[str, ColumnSlot]
    products: dict[str, ProductSlot]
    direct: dict[str, t.Store]
    turned: frozenset[str]
    lying: frozenset[str]
    bytes: Index


def statements(body: Sequence[t.Statement]) -> Iterator[t.Statement]:
    """Every statement of a body, nested ones included, in order."""
    for statement in body:
        yield statement
        if isinstance(statement, t.For):
            yield from statements(statement.body)
        elif isinstance(statement, t.If):
            yield from statements(statement.body)
            yield from statements(statement.orelse)
        elif isinstance(statement, t.Accumulate):
            yield from statement.loads


class _Scratch:
    def __init__(self) -> None:
        self.used = as_index(0)

    def take(self, size: Index) -> Index:
        """Claim ``size`` bytes on a cache line of their own."""
        offset = self.used
        self.used = self.used + ceildiv(size, ALIGNMENT) * ALIGNMENT
        return offset

    def rows(self, rows: Index, cols: Index, dtype: DType) -> Slot:
        pitch = ceildiv(cols, PAD) * PAD
        return Slot(self.take(rows * pitch * dtype.itemsize), pitch)


def plan(kernel: t.TileKernel) -> Layout:
    """Decide where every buffer lives and how much scratch a worker needs."""
    everything = list(statements((*kernel.once, *kernel.body)))
    direct = _direct(kernel, everything)
    scratch = _Scratch()
    products = {load.buffer.name for s in everything if isinstance(s, t.Accumulate) for load in s.loads}  # they are packed anyway
    along_columns = frozenset(s.buffer.name for s in everything if isinstance(s, t.Load) and lies_along_columns(s)) - products
    lying = _reduced_where_they_lie(along_columns, everything)
    turned = along_columns - lying
    layout = Layout({}, {}, {}, direct, turned, lying, as_index(0))
    totals = {s.target.name for s in everything if isinstance(s, t.Accumulate)}
    for statement in everything:
        if isinstance(statement, t.Load) and statement.buffer.name in turned and statement.buffer.name not in layout.slots:
            layout.slots[statement.buffer.name] = _slot(scratch, statement.buffer, padded=False)
        if isinstance(statement, t.Init):
            layout.columns.setdefault(statement.target.name, _column(scratch, statement.kind, statement.target))
        if isinstance(statement, t.Block) and lying & {r.buffer.name for r in reads(statement)}:
            for reduction in statement.reduces:
                if reduction.axis == 1:
                    layout.columns[reduction.target.name] = _column(scratch, reduction.kind, reduction.target, PARTIALS)
        if isinstance(statement, t.Accumulate):
            depth, wide = statement.step, statement.target.dtype
            # packing writes whole squares of vectors, so there is room behind the last row
            a_slot = scratch.rows(statement.target.shape[0] + PAD, depth, wide)
            layout.products[statement.target.name] = ProductSlot(a_slot, scratch.rows(depth + PAD, as_index(PANEL), wide))
        for buffer in written(statement):
            if buffer.name not in layout.slots and buffer.name not in direct:
                layout.slots[buffer.name] = _slot(scratch, buffer, padded=buffer.name in totals)
    return Layout(layout.slots, layout.columns, layout.products, direct, turned, lying, scratch.used)


def lies_along_columns(moved: t.Load | t.Store) -> bool:
    """Whether a tile that is loaded or stored has its rows, not its columns, next to each other in memory."""
    strides = moved.region.param.strides
    return moved.buffer.layout == "tile" and strides is not None and runs_along(strides[-2:])


def _reduced_where_they_lie(lying: frozenset[str], everything: Sequence[t.Statement]) -> frozenset[str]:
    """Of buffers that lie along their columns those that one Block reads, only to reduce them.

    Along rows, lanes run over the rows, so that no other tile may be among the operands. Down the rows, squares are turned in registers,
    which takes the Block's operations once per row of the square: there must be few.
    """
    readers = [s for s in everything if lying & {r.buffer.name for r in reads(s)}]
    if len(readers) != 1 or not isinstance(readers[0], t.Block) or readers[0].writes:
        return frozenset()
    block = readers[0]
    tiles = {r.buffer.name for r in reads(block) if r.how == "full"}
    if all(r.axis == 1 for r in block.reduces):
        return frozenset(tiles) if tiles <= lying else frozenset()
    short = len(block.ops) <= _SHORT_BLOCK and not any(op.name in HEAVY for op in block.ops)
    return lying if short and all(r.axis == 0 for r in block.reduces) else frozenset()


def runs_along(strides: Sequence[Index]) -> bool:
    """Whether (row, column) strides are those of a matrix that lies along its columns."""
    row, column = strides
    return row.constant == 1 and column.constant not in (0, 1)


def _slot(scratch: _Scratch, buffer: t.Buffer, padded: bool) -> Slot:
    """``padded`` rows hold whole vectors: a product adds to vectors of its target. A single column is dense otherwise."""
    rows, cols = buffer.shape
    if cols.constant == 1 and not padded:
        return Slot(scratch.take((rows + PAD) * buffer.dtype.itemsize), as_index(1))
    return scratch.rows(rows, cols, buffer.dtype)


def _column(scratch: _Scratch, kind: t.ReduceKind, target: t.Buffer, partials: int = 1) -> ColumnSlot:
    size = target.dtype.itemsize
    pitch = ceildiv(target.shape[0] * target.shape[1], PAD) * PAD  # one of them is 1
    levels = sums.LEVELS if kind in sums.ORDERED else 0
    values, stack = scratch.take(pitch * (size * partials)), scratch.take(pitch * (size * levels))
    return ColumnSlot(kind, values, stack, scratch.take(as_index(F64.itemsize)), pitch)


def written(statement: t.Statement) -> list[t.Buffer]:
    """Buffers that a statement fills from registers (a Load only names memory that exists)."""
    if isinstance(statement, t.Block):
        return [*(w.buffer for w in statement.writes), *(r.target for r in statement.reduces if not r.accumulate)]
    if isinstance(statement, (t.Finish, t.Accumulate)):
        return [statement.target]
    return [statement.buffer] if isinstance(statement, t.Fill) else []


def reads(statement: t.Statement) -> list[t.ReadBuffer]:
    """The operands of a statement that lie in buffers."""
    if not isinstance(statement, t.Block):
        return []
    operands = [o for op in statement.ops for o in op.operands]
    operands += [w.value for w in statement.writes] + [r.value for r in statement.reduces]
    return [o for o in operands if isinstance(o, t.ReadBuffer)]


# ---- buffers that are their output ---------------------------------------------------------------------------------------


def _direct(kernel: t.TileKernel, everything: list[t.Statement]) -> dict[str, t.Store]:
    writers: dict[str, int] = {}
    loaded = {s.buffer.name for s in everything if isinstance(s, t.Load)}
    for statement in everything:
        for buffer in written(statement):
            writers[buffer.name] = writers.get(buffer.name, 0) + 1
    found: dict[str, t.Store] = {}
    for body in _bodies((*kernel.once, *kernel.body)):
        for position, statement in enumerate(body):
            for buffer in written(statement):
                if writers[buffer.name] == 1 and buffer.name not in loaded and not isinstance(statement, t.Accumulate):
                    store = _store_of(body, position, statement, buffer, everything)
                    if store is not None:
                        found[buffer.name] = store
    return found


def _bodies(body: Sequence[t.Statement]) -> Iterator[Sequence[t.Statement]]:
    yield body
    for statement in body:
        if isinstance(statement, t.For):
            yield from _bodies(statement.body)
        elif isinstance(statement, t.If):
            yield from _bodies(statement.body)
            yield from _bodies(statement.orelse)


def _store_of(body: Sequence[t.Statement], position: int, writer: t.Statement, buffer: t.Buffer,
              everything: list[t.Statement]) -> t.Store | None:
    """The first Store of ``buffer`` behind its writer in the same body, when writing there at once changes nothing."""
    defined: set[str] = set()
    for statement in body[position + 1:]:
        if isinstance(statement, t.Let):
            defined.add(statement.name)
        if not (isinstance(statement, t.Store) and statement.buffer.name == buffer.name):
            continue
        region = statement.region
        names = frozenset[str]().union(*(i.variables() for i in (*region.offset, *region.extent)))
        fits = region.param.dtype is buffer.dtype and not (names & defined) and not lies_along_columns(statement)
        return statement if fits and _harmless(statement, writer, everything) else None
    return None


def _harmless(store: t.Store, writer: t.Statement, everything: list[t.Statement]) -> bool:
    """Whether no statement still needs what the region held before: nothing reads the tensor, or only this Block, lane by lane."""
    tensor = store.region.param.bound_to
    loads = [s for s in everything if isinstance(s, t.Load) and s.region.param.bound_to == tensor]
    if not loads:
        return True
    names = {s.buffer.name for s in loads}
    same = all(s.region.offset == store.region.offset and s.region.extent == store.region.extent and s.region.param.strides ==
               store.region.param.strides and s.region.param.base == store.region.param.base for s in loads)
    if not same or not isinstance(writer, t.Block) or len(writer.writes) != 1 or writer.reduces:
        return False
    readers = [s for s in everything if any(r.buffer.name in names for r in reads(s))]
    stored = any(isinstance(s, t.Store) and s.buffer.name in names for s in everything)
    return readers == [writer] and not stored and all(r.how == "full" for r in reads(writer) if r.buffer.name in names)


def check(kernel: t.TileKernel) -> None:
    """Refuse what the CPU's schedules never contain; seeing it is a bug of the passes."""
    for statement in statements((*kernel.once, *kernel.body)):
        if isinstance(statement, t.PlacedStatement):
            raise CompilerBug("codegen/llvm", f"a placed statement reached the CPU: {type(statement).__name__}")
        if isinstance(statement, t.Load) and statement.pads:
            raise CompilerBug("codegen/llvm", "the CPU's loads have no padded lanes")
        if isinstance(statement, t.Init) and statement.axis != 0:
            raise CompilerBug("codegen/llvm", "rows are reduced whole on the CPU")
