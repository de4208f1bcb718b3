"""The Ascend numbers that placement needs, read from a target file into one record."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.targets import Target


@dataclass(frozen=True)
class Machine:
    """Geometry and limits of a core; bytes and counts as the target file has them."""

    target: Target
    block_bytes: int
    repeat_bytes: int
    max_repeats: int
    max_stride: int
    compare_bytes: int
    select_room: int
    max_buffers: int
    max_queue_buffers: int
    max_copy_rows: int
    max_copy_row_bytes: int
    fractal: int
    max_fractals: int
    max_cube_extent: int
    max_cube_copy_rows: int
    max_cube_pitch: int
    capacity: Mapping[str, int]
    instructions: Mapping[str, frozenset[str]]
    separate: frozenset[str]

    def block_lanes(self, dtype: DType) -> int:
        """Elements of one data block."""
        return self.block_bytes // dtype.itemsize

    def repeat_lanes(self, dtype: DType) -> int:
        """Elements that one repeat works on."""
        return self.repeat_bytes // dtype.itemsize

    def has(self, instruction: str, dtype: DType) -> bool:
        """Whether an instruction takes elements of ``dtype``."""
        return dtype.name in self.instructions.get(instruction, frozenset())

    def scratch_bytes(self, instruction: str, elements: int) -> int:
        """Scratch that a call over at most ``elements`` lanes needs; 0 when it needs none."""
        row = self.target.table("scratch").get(instruction)
        if row is None:
            return 0
        fixed = int(row.get("bytes", 0))
        return fixed or max(elements, int(row["minimum_elements"])) * int(row["bytes_per_element"])

    def cast_modes(self, source: DType, result: DType) -> tuple[str, ...]:
        """Rounding modes of the conversion instruction; empty when there is none."""
        return tuple(self.target.table("casts").get(f"{source.name}->{result.name}", ()))


def machine(target: Target) -> Machine:
    """The record of an Ascend target file; KeyError names what the file lacks."""
    vector, copy, cube = target.table("vector"), target.table("copy"), target.table("cube")
    return Machine(
        target=target,
        block_bytes=vector["block_bytes"],
        repeat_bytes=vector["repeat_bytes"],
        max_repeats=vector["max_repeats"],
        max_stride=vector["max_stride"],
        compare_bytes=vector["compare_bytes"],
        select_room=vector["select_room"],
        max_buffers=vector["max_buffers"],
        max_queue_buffers=vector["max_queue_buffers"],
        max_copy_rows=copy["max_rows"],
        max_copy_row_bytes=copy["max_row_bytes"],
        fractal=cube["fractal"],
        max_fractals=cube["max_fractals"],
        max_cube_extent=cube["max_extent"],
        max_cube_copy_rows=cube["max_copy_rows"],
        max_cube_pitch=cube["max_pitch"],
        capacity={name: row["bytes"] for name, row in target.table("memory").items()},
        instructions={name: frozenset(dtypes) for name, dtypes in target.table("instructions").items()},
        separate=frozenset(target.table("separate")["instructions"]),
    )
