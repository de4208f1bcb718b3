"""Every outcome against the record of the last measurement, which docs/conformance.md shows."""
from __future__ import annotations

from cells import Cell

from pypto_dsl.compiler import conformance
from pypto_dsl.compiler.conformance import Outcome

AGAIN = "run `python tools/conformance.py` and `python tools/documents.py`"
# Other C libraries may round a function of the reference, of f64 or of an emulator otherwise, by one place.
SLACK = 1.01


def as_recorded(cell: Cell, target: str, outcome: Outcome) -> None:
    """The cell is recorded with the same code, or as passed with an error that is not exceeded: a bound that is wide hides no change."""
    found = conformance.load().cells.get(target, {}).get(cell.label, {}).get(cell.dtype.name)
    assert found is not None, f"{cell.id} on {target} is not in the record: {AGAIN}"
    assert found.refused == outcome.refused, f"{cell.id} on {target} is {outcome}, recorded as {found}: {AGAIN}"
    assert outcome.ulp <= found.ulp * 1.05 + SLACK, f"{cell.id} on {target}: {outcome.ulp} ulp at {outcome.where}, recorded {found.ulp}"
