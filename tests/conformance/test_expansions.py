"""Every expansion as if it were a back end: built from primitives, run on the interpreter, within the op table's bound."""
from __future__ import annotations

import pytest
from cells import Cell, arrays, everyday, record, taken
from host import check, interpreted
from machine import PRIMITIVES, WIDE

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.passes.legalize import legalize
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.targets.target import Target
from pypto_dsl.compiler.verify import verify

NAMES = sorted({cell.name for cell in taken() if not REGISTRY[cell.name].is_primitive})
# Where a primitive alone is not enough, a target has these itself; their own expansions, where they have any, are tried without them.
OWN = ("fmod", "gcd")


def built(cell: Cell, target: Target) -> bool:
    """Whether the expansion is written for the cell's dtype; then it is run and held to its bound."""
    given = arrays(cell)
    g = record(cell, given)
    try:
        lowered = legalize(promote(g), target)
    except KernelError as refused:
        assert refused.code in ("PT502", "PT204"), f"{cell.id}: {refused}"
        return False
    verify(lowered, "legalize")
    left = {op.opcode for op in lowered.body.ops}
    assert all(name in target.ops or REGISTRY[name].is_primitive for name in left if name in REGISTRY), left
    check(cell, interpreted(lowered, given, {}), g, given, {}, None)
    return True


def own(name: str) -> Target:
    """Primitives, and what expansions leave to the target: but for the operation itself."""
    more = {n: frozenset(WIDE) for n in OWN if n != name}
    return Target(PRIMITIVES.name, PRIMITIVES.title, PRIMITIVES.family, PRIMITIVES.tile, {**PRIMITIVES.ops, **more}, PRIMITIVES.data)


@pytest.mark.parametrize("name", NAMES)
def test_an_expansion_is_a_back_end(name: str) -> None:
    """Every use on every dtype that the expansion is written for; at least one."""
    assert sum(built(cell, own(name)) for cell in everyday() if cell.name == name), f"{name} is built on no dtype"


def test_most_cells_are_built() -> None:
    """What is refused is what `expands` leaves out: functions of f64, and 64-bit integers."""
    refused = [cell for cell in everyday() if cell.name in NAMES and not written(cell)]
    for cell in refused:
        expands = REGISTRY[cell.name].expands
        assert expands is None or cell.dtype not in expands or cell.dtype.bits in (8, 64), cell.id


def written(cell: Cell) -> bool:
    try:
        legalize(promote(record(cell, arrays(cell))), own(cell.name))
    except KernelError:
        return False
    return True
