"""Ranks and broadcasts in the emulators: every operation that computes lane by lane in one class and dtype, all in turn."""
from __future__ import annotations

from functools import cache

import pytest
from cells import ELEMENTWISE, Cell, arrays, everyday, inputs, outputs, record, taken
from devices import EMIT, TARGETS, Prepared, prepared
from forms import BROADCASTS, RANKS, formed
from host import check

from pypto_dsl.compiler import catalogue
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.targets import load

CLASSES = RANKS | BROADCASTS
CHIPS = TARGETS[:2]  # Blackhole has Wormhole's kernels, which test_devices runs there
CODES = {entry.code for family in catalogue.families() for entry in family.entries}
NAMES = sorted({cell.name for cell in taken()} & ELEMENTWISE)


@cache
def in_turn(name: str, target: str) -> tuple[Cell, str] | None:
    """A cell that the target takes, and a class that the operation has; None where the target takes none."""
    cells = [cell for cell in everyday() if cell.name == name and isinstance(prepared(cell, target), Prepared)]
    if not cells:
        return None
    several = sum(not p.optional for p in REGISTRY[name].operands) > 1 and not REGISTRY[name].effects
    forms = [*BROADCASTS] if several else [*RANKS]
    at = NAMES.index(name)
    return cells[at % len(cells)], forms[at % len(forms)]


@cache
def emitted(name: str, target: str) -> Prepared | str:
    """The cell in its class, emitted; or the code of the refusal (a rank, or extents of 0, that the product does not take)."""
    found = in_turn(name, target)
    assert found is not None
    cell, form = found
    given = formed(arrays(cell), CLASSES[form])
    machine = load(target)
    graph = record(cell, given)
    try:
        return Prepared(cell, graph, given, EMIT[machine.family][0](lower(graph, machine), machine))
    except KernelError as refused:
        return refused.code


@cache
def unit(target: str):
    """All of them in one compiled unit."""
    made = [emitted(name, target) for name in NAMES if in_turn(name, target)]
    return EMIT[load(target).family][1]("forms", [p for p in made if isinstance(p, Prepared)])


@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize("name", NAMES)
def test_an_operation_in_a_class(name: str, target: str) -> None:
    if in_turn(name, target) is None:
        return
    found = emitted(name, target)
    if not isinstance(found, Prepared):
        assert found in CODES, found
        return
    made = unit(target).run(found, {**inputs(found.given), **outputs(found.graph, {})})
    check(found.cell, [made[out] for out in found.graph.outputs], found.graph, found.given, {}, load(target))


@pytest.mark.parametrize("target", CHIPS)
def test_most_are_taken(target: str) -> None:
    here = [name for name in NAMES if in_turn(name, target)]
    refused = [name for name in here if not isinstance(emitted(name, target), Prepared)]
    assert len(here) > 60 and len(refused) < len(here) / 2, refused
