"""The placed statements of Tile IR: Blocks replaced by calls, queue actions, barriers, engines and slots.

A target whose Blocks are spellable as they stand (the CPU) has none of these. Device targets extend this vocabulary; the rule
is that an emitter reads every choice from here and makes none.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.nodes import Buffer, PlacedStatement

# ---- Ascend: instructions on buffers ---------------------------------------------------------------------------------


OWN = "kernel."  # before the names that placement gives loops and coordinates: no name of a user's has it


def own(name: str) -> str:
    """A variable that placement makes, as Tile IR calls it; emitters spell it as ``name``, and users' variables of that name otherwise."""
    return OWN + name


@dataclass(frozen=True)
class BufferRef:
    """A buffer at an element offset, optionally reinterpreted as another dtype of the same width."""

    buffer: Buffer
    offset: Index
    dtype: DType | None = None


@dataclass(frozen=True)
class Barrier(PlacedStatement):
    """Everything issued on ``pipe`` before is complete before anything issued on it after."""

    pipe: str


@dataclass(frozen=True)
class QueueAction(PlacedStatement):
    """Alloc, EnQue, DeQue or Free of a buffer's queue slot."""

    action: Literal["alloc", "enque", "deque", "free"]
    buffer: Buffer
    span: Span | None = None
