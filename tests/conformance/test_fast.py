"""Every operation on every float dtype in a kernel with precision="fast" on the CPU: no further off than its cheaper form may be."""
from __future__ import annotations

import pytest
from cells import Cell, arrays, everyday, record
from errors import allowed
from host import CPU, compared, computed

from pypto_dsl.compiler.dtypes import BY_NAME, F32, F64, DType, of_numpy
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.runtime.cpu.executable import Executable

FORMS = CPU.table("fast")["bounds"]
RECIPROCAL = 1.0  # ulp: the rounding of a reciprocal that a division is multiplied by
CELLS = [cell for cell in everyday() if cell.dtype.is_float and cell.dtype.bits >= 16]


def limit(cell: Cell, dtype: DType) -> float:
    """The exact bound, and what a fast kernel may add in the dtype that it computes in, in ulp of the result's."""
    if not dtype.is_float:
        return allowed(cell, dtype, CPU)
    inside = F64 if dtype is F64 else F32
    added = float(FORMS[inside.name].get(cell.name, RECIPROCAL)) if inside.name in FORMS else 0.0
    return allowed(cell, dtype, CPU) + added * 2.0 ** (min(dtype.mantissa, inside.mantissa) - inside.mantissa)


@pytest.mark.parametrize("name", sorted({cell.name for cell in CELLS}))
def test_every_float_dtype(name: str) -> None:
    """Special values among random ones; NaN, infinities and signs of zeros are the exact results'."""
    for cell in (c for c in CELLS if c.name == name):
        given = arrays(cell)
        graph = record(cell, given)
        graph.options["precision"] = "fast"
        try:
            executable = Executable(lower(graph, CPU))
        except KernelError as refused:
            assert refused.code.startswith("PT5"), cell.id
            continue
        for error, meant in compared(cell, computed(executable, graph, given, {}), graph, given, {}):
            dtype = of_numpy(meant.dtype)
            assert dtype is not None
            assert error.ulp <= limit(cell, dtype), f"{cell.id}: {error.where}: {error.ulp:.3g} ulp"


def test_there_are_cells() -> None:
    assert len({cell.name for cell in CELLS}) > 150
    assert {cell.dtype for cell in CELLS} == {BY_NAME[n] for n in ("f16", "bf16", "f32", "f64")}
