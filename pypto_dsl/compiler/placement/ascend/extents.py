"""How far each value of a Block extends: one number, one per row, one per column, or the whole tile.

A value is computed at the smallest extent its operands allow, so that a column's square root costs one lane per row; it is
broadcast where it meets a larger one. Masks are the exception: bits have no broadcast form, so a BOOL value is computed at the
extent of the largest value it is combined with.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pypto_dsl.compiler.dtypes import BOOL
from pypto_dsl.compiler.tile_ir.nodes import Block, BlockOp, Buffer, LaneIndex, Operand, ReadBuffer

# "number" is not in a buffer at all: a literal, a user's scalar, an index expression.
Extent = Literal["number", "one", "row", "column", "full"]
_RANK: Mapping[Extent, int] = {"number": 0, "one": 1, "row": 2, "column": 2, "full": 3}
_LAYOUTS: Mapping[str, Extent] = {"tile": "full", "row": "row", "column": "column", "scalar": "one"}
_READS: Mapping[str, Extent] = {"row": "row", "col": "column", "scalar": "one"}


def join(a: Extent, b: Extent) -> Extent:
    """The extent of an operation on operands of two extents: a row meets a column in the whole tile."""
    if a == b:
        return a
    if _RANK[a] == _RANK[b]:
        return "full"
    return a if _RANK[a] > _RANK[b] else b


@dataclass(frozen=True)
class Bounds:
    """Static extents of a Block's tile. With a single row, rows are the tile and columns are single values."""

    rows: int
    cols: int

    def normal(self, extent: Extent) -> Extent:
        """The extent, with what coincides in a single row named once."""
        if self.rows > 1:
            return extent
        return {"row": "full", "column": "one"}.get(extent, extent)  # type: ignore[return-value]


def buffer_extent(buffer: Buffer, bounds: Bounds) -> Extent:
    """The extent of a buffer's contents by its layout."""
    if buffer.layout == "tile" and (buffer.shape[0].constant, buffer.shape[1].constant) == (1, 1) and (bounds.rows, bounds.cols) != (1, 1):
        return "one"
    return bounds.normal(_LAYOUTS[buffer.layout])


def operand_extent(operand: Operand, known: Mapping[str, Extent], bounds: Bounds) -> Extent:
    """The extent of an operand; ``known`` holds the values above it."""
    if isinstance(operand, str):
        return known[operand]
    if isinstance(operand, ReadBuffer):
        own = buffer_extent(operand.buffer, bounds)
        return own if operand.how == "full" else bounds.normal(join(own, _READS[operand.how]) if own == "one" else _READS[operand.how])
    if isinstance(operand, LaneIndex):
        return bounds.normal("column" if operand.axis == 0 else "row")
    return "number"


def classify(block: Block, bounds: Bounds) -> dict[str, Extent]:
    """The extent of every value of a Block."""
    known: dict[str, Extent] = {}
    for op in block.ops:
        extent: Extent = "number"
        for operand in op.operands:
            extent = join(extent, operand_extent(operand, known, bounds))
        known[op.result] = "one" if extent == "number" else extent
    return _grow_masks(block, known, bounds)


def _grow_masks(block: Block, known: dict[str, Extent], bounds: Bounds) -> dict[str, Extent]:
    """Raise BOOL values to the extent of what they are combined with, and their users with them, until nothing changes."""
    masks = {op.result for op in block.ops if op.dtype == BOOL}
    changed = bool(masks)
    while changed:
        changed = False
        for op in block.ops:
            wanted = known[op.result]
            for operand in op.operands:
                wanted = join(wanted, operand_extent(operand, known, bounds))
            targets = [op.result] + [o for o in op.operands if isinstance(o, str) and o in masks]
            for name in targets:
                if known[name] != join(known[name], wanted):
                    known[name] = join(known[name], wanted)
                    changed = True
        for write in block.writes:
            if isinstance(write.value, str) and write.value in masks:
                grown = join(known[write.value], buffer_extent(write.buffer, bounds))
                changed |= grown != known[write.value]
                known[write.value] = grown
    return known


def block_bounds(block: Block) -> Bounds:
    """Static rows and columns of a Block's tile, from the buffers it touches; 1 along an axis that no buffer spans."""
    rows = cols = 1
    for buffer in touched_buffers(block):
        height, width = buffer.shape[0].constant or 1, buffer.shape[1].constant or 1
        if buffer.layout in ("tile", "column"):
            rows = max(rows, height)
        if buffer.layout in ("tile", "row"):
            cols = max(cols, width)
    return Bounds(rows, cols)


def touched_buffers(block: Block) -> list[Buffer]:
    """Buffers that a Block reads, writes or reduces into, in order of first mention."""
    found: dict[str, Buffer] = {}

    def note(operand: Operand) -> None:
        if isinstance(operand, ReadBuffer):
            found.setdefault(operand.buffer.name, operand.buffer)

    for op in block.ops:
        for operand in op.operands:
            note(operand)
    for write in block.writes:
        note(write.value)
        found.setdefault(write.buffer.name, write.buffer)
    for reduce in block.reduces:
        note(reduce.value)
        found.setdefault(reduce.target.name, reduce.target)
    return list(found.values())


def needs_spread(op: BlockOp, known: Mapping[str, Extent], bounds: Bounds) -> tuple[Operand, ...]:
    """Operands of ``op`` that are read as a column (or single value) by a larger result."""
    result = known[op.result]
    return tuple(o for o in op.operands
                 if operand_extent(o, known, bounds) in ("column", "one") and operand_extent(o, known, bounds) != result)
