"""A Block as calls: where each value lives, which operands are broadcast, and in what form a call covers its lanes.

`BlockSelector` keeps the state of one Block; `instructions.py` holds the spelling of each operation in terms of its methods.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pypto_dsl.compiler.dtypes import BOOL, I16, I32, U8, U16, DType
from pypto_dsl.compiler.errors import CompilerBug, error
from pypto_dsl.compiler.index import Index, as_index, ceildiv, minimum, round_up, var
from pypto_dsl.compiler.placement.ascend.extents import Bounds, Extent, block_bounds, buffer_extent, classify, operand_extent
from pypto_dsl.compiler.placement.ascend.machine import Machine
from pypto_dsl.compiler.placement.ascend.storage import Storage
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.ascend import Call, CallArgument, Repeat
from pypto_dsl.compiler.tile_ir.nodes import (
    Block,
    BlockOp,
    Buffer,
    Constant,
    For,
    IndexValue,
    LaneIndex,
    Layout,
    Operand,
    ReadBuffer,
    ScalarRead,
    Statement,
)
from pypto_dsl.compiler.tile_ir.placed import BufferRef

Immediate = Constant | ScalarRead | IndexValue
ZERO = as_index(0)
REPEATABLE = frozenset({"add", "sub", "mul", "div", "maximum", "minimum"})


@dataclass(frozen=True)
class Held:
    """Where a value is and how far it extends; ``owner`` names the temporary's value, empty for buffers that are not ours to reuse."""

    ref: BufferRef
    extent: Extent
    owner: str = ""
    mask: bool = False


@dataclass
class KernelState:
    """What the Blocks of one kernel share: names, storage rules, columns that are spread where they are made."""

    machine: Machine
    storage: Storage
    taken: set[str]
    spread_at_producer: set[str] = field(default_factory=set)
    scratch: dict[str, int] = field(default_factory=dict)
    partials: dict[str, Buffer] = field(default_factory=dict)

    def fresh(self, wish: str) -> str:
        """A name that nothing in the kernel has."""
        name, n = wish, 0
        while name in self.taken:
            n += 1
            name = f"{wish}{n}"
        self.taken.add(name)
        return name

    def wide(self, column: Buffer) -> Buffer:
        """The spread twin of a column: one data block per row."""
        shape = (round_up(column.shape[0], 8), as_index(1))
        return self.storage.sized(Buffer(f"{column.name}Wide", column.dtype, shape, layout="spread", span=column.span))

    def spread_call(self, column: BufferRef, rows: Index, span: Span | None) -> Call:
        """Eight elements of a column per repeat, each to a block of its own."""
        wide = BufferRef(self.wide(column.buffer), ZERO, column.dtype)
        form = Repeat(as_index(8), ceildiv(rows, 8), (1,), (8,))
        return Call("spread", (wide,), (column,), repeat=form, span=span, note=f"{column.buffer.name}: one block per row")


LAYOUT_OF: Mapping[Extent, Layout] = {"full": "tile", "row": "row", "column": "column", "one": "scalar"}


class BlockSelector:
    """Turns one Block into statements, in ``out``."""

    def __init__(self, block: Block, state: KernelState) -> None:
        self.block, self.state, self.machine = block, state, state.machine
        self.bounds: Bounds = block_bounds(block)
        self.extents = classify(block, self.bounds)
        self.out: list[Statement] = []
        self.held: dict[str, Held] = {}
        self.lanes: dict[LaneIndex, Held] = {}
        self.wides: dict[str, BufferRef] = {}
        self.dtypes = {op.result: op.dtype for op in block.ops}
        self.roots = self._roots()
        self.lent = {op.result: o.buffer.name for op in block.ops if self.is_alias(op) for o in op.operands if isinstance(o, ReadBuffer)}
        self.uses = self._uses()
        self.span: Span | None = block.span
        self.note = ""

    # ---- liveness ------------------------------------------------------------------------------------------------------

    def _roots(self) -> dict[str, str]:
        """The value whose storage a value shares: bitcasts and casts to the same dtype are names, not work.

        The bits of what is no value of the Block, such as a buffer that was loaded, are a value of their own.
        """
        roots: dict[str, str] = {}
        for op in self.block.ops:
            source = op.operands[0] if op.operands else None
            same = isinstance(source, str) and op.name == "cast" and self.dtypes[source] == op.dtype
            roots[op.result] = roots[source] if isinstance(source, str) and (same or op.name == "bitcast") else op.result
        return roots

    def _read(self, operand: Operand) -> str | None:
        """The buffer that an operand lies in, by itself or as another dtype."""
        if isinstance(operand, str):
            return self.lent.get(self.roots[operand])
        return operand.buffer.name if isinstance(operand, ReadBuffer) else None

    def _uses(self) -> dict[str, int]:
        uses = dict.fromkeys(self.roots.values(), 0)
        for op in self.block.ops:
            if self.roots[op.result] == op.result:
                for operand in op.operands:
                    if isinstance(operand, str):
                        uses[self.roots[operand]] += 1
        for value in [w.value for w in self.block.writes] + [r.value for r in self.block.reduces]:
            if isinstance(value, str):
                uses[self.roots[value]] += 1
        return uses

    def is_alias(self, op: BlockOp) -> bool:
        """Whether an operation only renames its operand."""
        return op.name == "bitcast" or self.roots[op.result] != op.result

    def dies_here(self, op: BlockOp, name: str) -> bool:
        """Whether ``op`` holds every remaining use of a value."""
        here = sum(isinstance(o, str) and self.roots[o] == self.roots[name] for o in op.operands)
        return self.uses[self.roots[name]] == here

    def release(self, op: BlockOp) -> None:
        """Count the uses of an operation's operands as done."""
        for operand in op.operands:
            if isinstance(operand, str):
                self.uses[self.roots[operand]] -= 1

    # ---- operands --------------------------------------------------------------------------------------------------------

    def extent_of(self, operand: Operand) -> Extent:
        return operand_extent(operand, self.extents, self.bounds)

    def dtype_of(self, operand: Operand) -> DType:
        if isinstance(operand, str):
            return self.dtypes[operand]
        return operand.buffer.dtype if isinstance(operand, ReadBuffer) else operand.dtype

    def load(self, operand: Operand) -> Held:
        """The operand where it is, at its own extent; not for immediates."""
        if isinstance(operand, str):
            return self.held[operand]
        if isinstance(operand, ReadBuffer):
            return Held(BufferRef(operand.buffer, ZERO), self.extent_of(operand))
        if isinstance(operand, LaneIndex):
            return self._lane_index(operand)
        raise CompilerBug("ascend.block", f"{operand} is not in a buffer")

    def at(self, operand: Operand, extent: Extent) -> BufferRef:
        """The operand in a buffer at ``extent``: a number is filled in, a smaller extent broadcast."""
        if isinstance(operand, (Constant, ScalarRead, IndexValue)):
            filled = BufferRef(self.temporary("constant", operand.dtype, extent), ZERO)
            self.call("fill", filled, arguments=(operand,), count=self.count(extent))
            return filled
        held = self.load(operand)
        return held.ref if held.extent == extent else self.expand(held, extent)

    def expand(self, held: Held, extent: Extent) -> BufferRef:
        """A value repeated along the rows, columns or both that it lacks; bits are kept as they are."""
        dtype = held.ref.dtype or held.ref.buffer.dtype
        via = dtype if self.machine.has("maximum", dtype) else {2: I16, 4: I32}.get(dtype.itemsize)
        if via is None:
            name = self.machine.target.name
            raise error("PT502", f"a {held.extent} of {dtype} is broadcast, and {name} repeats elements of 16 and 32 bits", self.span,
                        help="cast it to a dtype of 16 or 32 bits before it is broadcast", target=name)
        result = BufferRef(self.temporary(f"{held.ref.buffer.name}Tile", dtype, extent), ZERO, _view(dtype, via))
        source = Held(BufferRef(held.ref.buffer, held.ref.offset, _view(held.ref.buffer.dtype, via)), held.extent, held.owner)
        self.broadcast("maximum", result, (source, source), extent)
        return BufferRef(result.buffer, ZERO)

    def _lane_index(self, index: LaneIndex) -> Held:
        if index not in self.lanes:
            extent = self.extent_of(index)
            ref = BufferRef(self.temporary("rowIndex" if index.axis == 0 else "colIndex", index.dtype, extent), ZERO)
            self.call("iota", ref, arguments=(IndexValue(index.base, index.dtype),), count=self.count(extent))
            self.lanes[index] = Held(ref, extent)
        return self.lanes[index]

    # ---- storage ---------------------------------------------------------------------------------------------------------

    def temporary(self, wish: str, dtype: DType, extent: Extent) -> Buffer:
        """A new buffer for a value of this extent."""
        rows = self.bounds.rows if extent in ("full", "column") else 1
        cols = self.bounds.cols if extent in ("full", "row") else 1
        shape = (as_index(rows), as_index(cols))
        return self.state.storage.sized(Buffer(self.state.fresh(wish), dtype, shape, layout=LAYOUT_OF[extent], span=self.span))

    def mask_buffer(self, wish: str, extent: Extent) -> Buffer:
        """A bit per lane, in whole blocks."""
        rows, cols = self.bounds.rows, self.bounds.cols
        lanes = {"full": rows * self.state.storage.pitch(rows, cols), "row": cols, "column": rows, "one": 1}[extent]
        bytes_ = -(-lanes // (8 * self.machine.block_bytes)) * self.machine.block_bytes
        name, shape = self.state.fresh(wish), (as_index(1), as_index(bytes_))
        return Buffer(name, U8, shape, layout="row", pitch=bytes_, elements=bytes_, span=self.span)

    def scratch(self, instruction: str, dst: BufferRef) -> tuple[BufferRef, ...]:
        """The scratch operand of a call, shared by the whole kernel; empty when the instruction takes none."""
        size = self.machine.scratch_bytes(instruction, dst.buffer.elements)
        if not size:
            return ()
        self.state.scratch["scratch"] = max(self.state.scratch.get("scratch", 0), size)
        return (BufferRef(Buffer("scratch", U8, (as_index(1), as_index(size)), layout="row", pitch=size, elements=size), ZERO),)

    # ---- calls -----------------------------------------------------------------------------------------------------------

    def count(self, extent: Extent) -> Index:
        """Lanes of a contiguous call at an extent: whole rows with their padding, or the valid lanes of a line."""
        if extent == "full" and self.bounds.rows > 1:
            return self.block.rows * self.state.storage.pitch(self.bounds.rows, self.bounds.cols)
        return {"full": self.block.cols, "row": self.block.cols, "column": self.block.rows, "one": as_index(1)}[extent]

    def call(self, name: str, dst: BufferRef, *reads: BufferRef, arguments: tuple[CallArgument, ...] = (), count: Index) -> None:
        """Append a call over contiguous lanes. PT502 for a number filled into elements that the target fills no number into."""
        dtype = dst.dtype or dst.buffer.dtype
        if name == "fill" and not self.machine.has(name, dtype):
            has = ", ".join(sorted(self.machine.instructions[name]))
            raise error("PT502", f"{self.machine.target.name} fills no number into elements of {dtype}", self.span,
                        notes=(f"it does for {has}",), help="make the tensor in one of these dtypes, and cast it",
                        target=self.machine.target.name)
        self.out.append(Call(name, (dst,), reads, self.scratch(name, dst), arguments, count=count, span=self.span, note=self.note))

    def combine(self, name: str, dst: BufferRef, first: Operand, second: Operand, extent: Extent) -> None:
        """Append a call of two operands, in the broadcast form when one is smaller than the result."""
        if all(not isinstance(o, (Constant, ScalarRead, IndexValue)) for o in (first, second)):
            operands = (self.load(first), self.load(second))
            if name in REPEATABLE and any(o.extent != extent for o in operands):
                self.broadcast(name, dst, operands, extent)
                return
        self.call(name, dst, self.at(first, extent), self.at(second, extent), count=self.count(extent))

    def broadcast(self, name: str, dst: BufferRef, operands: tuple[Held, Held], extent: Extent) -> None:
        """Append calls in the repeat form: strides of 0 read a row, a column's block or a single value again and again."""
        dtype = dst.dtype or dst.buffer.dtype
        refs = [self.wide(o) if o.extent in ("column", "one") and o.extent != extent else o.ref for o in operands]
        lanes, full_step = self.machine.repeat_lanes(dtype), self.machine.repeat_bytes // self.machine.block_bytes
        if extent != "full" or self.bounds.rows == 1:
            line, bound = self.count(extent), self.bounds.rows if extent == "column" else self.bounds.cols
            form = Repeat(line, as_index(1), (), ()) if bound <= lanes else Repeat(as_index(lanes), ceildiv(line, lanes), (), ())
            flat = [o.extent == extent for o in operands]
            blocks, steps = (1, *map(int, flat)), (full_step, *(full_step * f for f in flat))
            form = Repeat(form.lanes, form.repeats, blocks, steps)
            self.out.append(Call(name, (dst,), tuple(refs), repeat=form, span=self.span, note=self.note))
            return
        pitch = dst.buffer.pitch
        stride = pitch * dtype.itemsize // self.machine.block_bytes
        if stride <= self.machine.max_stride:
            c = self.state.fresh("c")
            moves = [o.extent in ("full", "row") for o in operands]
            form = Repeat(minimum(lanes, self.block.cols - var(c)), self.block.rows, (1, *map(int, moves)),
                          (stride, *({"full": stride, "row": 0, "column": 1}.get(o.extent, 0) for o in operands)))
            reads = tuple(_moved(r, var(c)) if m else r for r, m in zip(refs, moves, strict=True))
            body = Call(name, (_moved(dst, var(c)),), reads, repeat=form, span=self.span)
            self.out.append(For(c, ZERO, self.block.cols, as_index(lanes), "parallel", (body,), self.note))
            return
        r = self.state.fresh("r")
        block = self.machine.block_lanes(dtype)
        step = {"full": as_index(pitch), "row": ZERO, "column": as_index(block)}
        moved = tuple(_moved(ref, var(r) * step.get(o.extent, ZERO)) for ref, o in zip(refs, operands, strict=True))
        flat = [o.extent in ("full", "row") for o in operands]
        form = Repeat(as_index(lanes), ceildiv(self.block.cols, lanes), (1, *map(int, flat)), (full_step, *(full_step * f for f in flat)))
        body = Call(name, (_moved(dst, var(r) * pitch),), moved, repeat=form, span=self.span)
        self.out.append(For(r, ZERO, self.block.rows, as_index(1), "parallel", (body,), self.note))

    def wide(self, held: Held) -> BufferRef:
        """A column or single value as one block per row: made where the buffer is made, or here and once per value."""
        column = held.ref
        twin = BufferRef(self.state.wide(column.buffer), ZERO, column.dtype)
        if column.buffer.name in self.state.spread_at_producer:
            return twin
        key = f"{held.owner}/{column.buffer.name}"
        if key not in self.wides:
            rows = self.block.rows if held.extent == "column" else as_index(1)
            name = self.state.fresh(f"{column.buffer.name}Wide")
            wide = BufferRef(_renamed(twin.buffer, name), ZERO, column.dtype)
            call = self.state.spread_call(column, rows, self.span)
            self.out.append(Call(call.name, (wide,), call.reads, repeat=call.repeat, span=call.span, note=call.note))
            self.wides[key] = wide
        return BufferRef(self.wides[key].buffer, ZERO, column.dtype)

    # ---- destinations ----------------------------------------------------------------------------------------------------

    def homes(self, in_place: Mapping[str, bool]) -> dict[str, Buffer]:
        """Values that are computed in the buffer they are written to, and the chains that can be computed there before them.

        ``in_place`` says of each result whether its operation may write over its operands. A buffer that is read later than
        the value is made is no home.
        """
        last_read: dict[str, int] = {}
        for i, op in enumerate(self.block.ops):
            for operand in op.operands:
                if (buffer := self._read(operand)) is not None:
                    last_read[buffer] = i
        for value in [w.value for w in self.block.writes] + [r.value for r in self.block.reduces]:
            if (buffer := self._read(value)) is not None:
                last_read[buffer] = len(self.block.ops)
        made = {op.result: (i, op) for i, op in enumerate(self.block.ops)}

        def fits(name: str, buffer: Buffer) -> bool:
            i, op = made[name]
            reader = last_read.get(buffer.name, -1)
            same = op.dtype == buffer.dtype and op.dtype != BOOL and self.extents[name] == buffer_extent(buffer, self.bounds)
            return same and not self.is_alias(op) and (reader < i or (reader == i and in_place[name]))

        found: dict[str, Buffer] = {}
        taken: set[str] = set()
        for write in self.block.writes:
            value, free = write.value, write.buffer.name not in taken
            if isinstance(value, str) and value not in found and free and fits(value, write.buffer):
                found[value] = write.buffer
                taken.add(write.buffer.name)
        for op in reversed(self.block.ops):
            if op.result not in found or not in_place[op.result]:
                continue
            for operand in op.operands:
                single = isinstance(operand, str) and self.roots[operand] == operand and self.uses[operand] == 1
                if single and isinstance(operand, str) and operand not in found and fits(operand, found[op.result]):
                    found[operand] = found[op.result]
                    break
        return found

    def mask_words(self, mask: Buffer) -> BufferRef:
        """A mask as 16-bit words, for And, Or and Not."""
        return BufferRef(mask, ZERO, U16)

    def whole_repeats(self, extent: Extent, dtype: DType) -> Index:
        """Lanes of a comparison: rounded up, because a rest would be skipped."""
        return round_up(self.count(extent), self.machine.compare_bytes // dtype.itemsize)


def _moved(ref: BufferRef, by: Index) -> BufferRef:
    return BufferRef(ref.buffer, ref.offset + by, ref.dtype)


def _view(buffer_dtype: DType, wanted: DType) -> DType | None:
    return None if buffer_dtype == wanted else wanted


def _renamed(buffer: Buffer, name: str) -> Buffer:
    return Buffer(name, buffer.dtype, buffer.shape, buffer.slots, buffer.space, buffer.layout, buffer.span, buffer.note, buffer.pitch,
                  elements=buffer.elements)
