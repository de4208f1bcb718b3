"""Row pitch and storage of buffers: rows start at data blocks, and calls that work on whole repeats stay inside their buffer."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pypto_dsl.compiler.dtypes import BOOL, DType
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.placement.ascend.machine import Machine
from pypto_dsl.compiler.placement.ascend.walk import statements
from pypto_dsl.compiler.tile_ir.nodes import Block, Buffer, ReadBuffer, Statement


def round_up(value: int, step: int) -> int:
    """The least multiple of ``step`` that is at least ``value``."""
    return -(-value // step) * step


def static(extent: Index) -> int:
    """A buffer's extent, which is a number on this target."""
    value = extent.constant
    if value is None:
        raise ValueError(f"a buffer's extent must be static on Ascend, and this is {extent}")
    return value


@dataclass(frozen=True)
class Storage:
    """The row alignment of a kernel. All its tiles share one pitch per width, so that calls over whole tiles line up across dtypes.

    ``row_lanes`` is the alignment of tiles with several rows, ``line_lanes`` that of single rows, which repeat-form calls cover
    to the end of the last repeat; ``mask_lanes`` is not 0 when comparisons need whole tiles to be whole repeats.
    """

    machine: Machine
    row_lanes: int
    line_lanes: int
    mask_lanes: int
    widest: int

    def pitch(self, rows: int, cols: int) -> int:
        """Elements from one row of a tile to the next."""
        if rows == 1:
            return round_up(cols, self.line_lanes)
        pitch = round_up(cols, self.row_lanes)
        if self.mask_lanes and rows * pitch % self.mask_lanes:
            pitch = round_up(cols, self.mask_lanes)
        if pitch * self.widest // self.machine.block_bytes > self.machine.max_stride:  # no stride reaches the next row: row by row
            pitch = round_up(cols, self.line_lanes)
        return pitch

    def sized(self, buffer: Buffer) -> Buffer:
        """The buffer with its pitch and the elements that one slot stores."""
        rows, cols, lanes = static(buffer.shape[0]), static(buffer.shape[1]), self.machine.block_lanes(buffer.dtype)
        repeat = self.machine.repeat_lanes(buffer.dtype)
        if buffer.layout == "tile":
            pitch = self.pitch(rows, cols)
            return replace(buffer, pitch=pitch, elements=rows * pitch)
        if buffer.layout == "row":
            return replace(buffer, pitch=round_up(cols, repeat), elements=round_up(cols, repeat))
        if buffer.layout == "column":
            step = max(lanes, 8) if rows <= repeat and not self.mask_lanes else repeat
            return replace(buffer, pitch=1, elements=round_up(rows, step))
        if buffer.layout == "spread":
            return replace(buffer, pitch=lanes, elements=round_up(rows, 8) * lanes)
        return replace(buffer, pitch=1, elements=repeat if self.mask_lanes else max(lanes, 8))


def storage(body: Iterable[Statement], machine: Machine) -> Storage:
    """The storage rules of a kernel, from the dtypes it computes in."""
    body = tuple(body)
    dtypes = {dtype for block in _blocks(body) for dtype in _dtypes(block)}
    sizes = {dtype.itemsize for dtype in dtypes} or {4}
    smallest = min(sizes)
    # BOOL is kept in bytes and computed in bits: what reads or writes it compares too
    compares = BOOL in dtypes or any(op.dtype == BOOL for block in _blocks(body) for op in block.ops)
    compared = 4 if smallest >= 4 else 2  # the smallest element that a comparison sees: BOOL is compared as f16
    return Storage(
        machine,
        row_lanes=machine.block_bytes // smallest,
        line_lanes=machine.repeat_bytes // smallest,
        mask_lanes=machine.compare_bytes // compared if compares else 0,
        widest=max(sizes),
    )


def _blocks(body: tuple[Statement, ...]) -> list[Block]:
    return [s for s in statements(body) if isinstance(s, Block)]


def _dtypes(block: Block) -> set[DType]:
    found = {op.dtype for op in block.ops if op.dtype != BOOL}
    for op in block.ops:
        found |= {o.buffer.dtype for o in op.operands if isinstance(o, ReadBuffer)}
    for write in block.writes:
        found.add(write.buffer.dtype)
        if isinstance(write.value, ReadBuffer):
            found.add(write.value.buffer.dtype)
    for reduce in block.reduces:
        if isinstance(reduce.value, ReadBuffer):
            found.add(reduce.value.buffer.dtype)
    return found


