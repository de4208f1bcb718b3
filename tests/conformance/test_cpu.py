"""Operation x dtype x shape class on the CPU against the exact results of the references, within the bounds of the data files."""
from __future__ import annotations

import numpy as np
import pytest
from cells import ELEMENTWISE, Array, Cell, arrays, everyday, record, taken
from forms import BROADCASTS, LAYOUTS, MATRICES, RANKS, cut, formed
from host import CPU, check, computed, interpreted, is_matrix, symbols_of
from measure import outcome
from record import as_recorded

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.runtime.cpu.executable import Executable

NAMES = sorted({cell.name for cell in taken()})
MATRIX_NAMES = sorted({cell.name for cell in taken() if is_matrix(cell, arrays(cell))})
LANEWISE = [n for n in NAMES if n in ELEMENTWISE]


def cells_of(name: str) -> list[Cell]:
    return [cell for cell in taken() if cell.name == name]


def in_turn(names: list[str], name: str, step: int = 0) -> Cell:
    """One of an operation's cells, the dtypes in turn over the operations."""
    cells = cells_of(name)
    return cells[(names.index(name) + step) % len(cells)]


@pytest.mark.parametrize("name", NAMES)
def test_every_dtype(name: str) -> None:
    """Special values against special values, and random ones, on every use and dtype: within the bound, and as recorded."""
    for cell in everyday():
        if cell.name == name:
            as_recorded(cell, CPU.name, outcome(cell, CPU.name))


def of_matrices(cell: Cell) -> None:
    """One kernel with symbols for extents: every shape class that the operation takes within the bound, every memory layout with the same
    bits."""
    given = arrays(cell)
    if not is_matrix(cell, given):
        return
    g = record(cell, given, symbolic=True)
    try:
        executable = Executable(lower(g, CPU))
    except KernelError as refused:
        as_recorded(cell, CPU.name, outcome(cell, CPU.name))
        assert refused.code
        return
    for shape in (given[0].shape, *MATRICES):
        operands = cut(given, shape)
        if takes(cell, operands):
            check(cell, computed(executable, g, operands, symbols_of(shape)), g, operands, symbols_of(shape), CPU)
    first = computed(executable, g, given, symbols_of(given[0].shape))
    for layout, view in LAYOUTS.items():
        other = computed(executable, g, [view(a) for a in given], symbols_of(given[0].shape))
        assert [a.tobytes() for a in first] == [b.tobytes() for b in other], f"{cell.id}: other bits when its operands are {layout}"


def takes(cell: Cell, given: list[Array]) -> bool:
    """Whether the operation takes these shapes: there is no maximum of nothing, and no five largest of one."""
    try:
        record(cell, given)
    except KernelError:
        return False
    return True


def of_form(cell: Cell, form: str) -> None:
    """A rank or broadcast class: within the bound; the interpreter gives what it gives on the same elements in a row."""
    shapes = (RANKS | BROADCASTS)[form]
    operands = arrays(cell)
    if form in BROADCASTS and REGISTRY[cell.name].effects and np.broadcast_shapes(*shapes) != shapes[0]:
        shapes = (np.broadcast_shapes(*shapes), *shapes[1:])  # what is written keeps its shape
    given = formed(operands, shapes)
    g = record(cell, given)
    check(cell, computed(Executable(lower(g, CPU)), g, given, {}), g, given, {}, CPU)
    shape = np.broadcast_shapes(*(a.shape for a in given))
    flat = [np.ascontiguousarray(np.broadcast_to(a, shape)).reshape(-1) for a in given]
    row = interpreted(record(cell, flat), flat, {})
    for whole, line in zip(interpreted(g, given, {}), row, strict=True):
        assert whole.shape == shape and whole.tobytes() == line.tobytes()


def forms_of(name: str) -> tuple[str, ...]:
    """The classes that an operation has: broadcasts only with operands to broadcast."""
    return (*RANKS, *(BROADCASTS if sum(not p.optional for p in REGISTRY[name].operands) > 1 else ()))


@pytest.mark.parametrize("name", MATRIX_NAMES)
def test_matrices_of_every_shape_and_layout(name: str) -> None:
    """Every operation, the dtypes in turn."""
    of_matrices(in_turn(MATRIX_NAMES, name))


@pytest.mark.parametrize("name", LANEWISE)
def test_ranks_and_broadcasts(name: str) -> None:
    """Every operation in a rank class and a broadcast class, the classes and dtypes in turn."""
    at, forms = LANEWISE.index(name), forms_of(name)
    of_form(in_turn(LANEWISE, name), [*RANKS][at % len(RANKS)])
    if len(forms) > len(RANKS):
        of_form(in_turn(LANEWISE, name, 3), [*BROADCASTS][at % len(BROADCASTS)])


def test_every_class_and_dtype_has_its_turn() -> None:
    assert len({in_turn(LANEWISE, n).dtype for n in LANEWISE} | {in_turn(LANEWISE, n, 3).dtype for n in LANEWISE}) >= 13
    pairs = {(in_turn(LANEWISE, n).dtype.name, at % len(RANKS)) for at, n in enumerate(LANEWISE)}
    assert len(pairs) > 50


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_every_dtype_in_every_class(name: str) -> None:
    for cell in cells_of(name):
        as_recorded(cell, CPU.name, outcome(cell, CPU.name))
        of_matrices(cell)
        for form in forms_of(name) if name in LANEWISE else ():
            of_form(cell, form)
