"""The record and its page: of today's operations, complete, within today's bounds, and what the command line says of them."""
from __future__ import annotations

import json

from cells import INTERNAL, arrays, cells, record, refusal, taken
from click.testing import CliRunner
from devices import TARGETS
from host import CPU

from pypto_dsl.cli import main
from pypto_dsl.compiler import accuracy, catalogue, conformance
from pypto_dsl.compiler.dtypes import BY_NAME, F32
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.targets import load

RECORD = conformance.load()
AGAIN = "run `python tools/conformance.py` and `python tools/documents.py`"


def test_every_operation_is_measured() -> None:
    """All of the op table but what only the compiler records; every one takes some dtype."""
    assert RECORD.operations() == REGISTRY.keys() - INTERNAL, AGAIN
    assert all(refusal(cell) in (None, "PT203", "PT205", "PT111", "PT204") for cell in cells())


def test_the_record_has_every_cell_and_no_other() -> None:
    wanted = {(cell.label, cell.dtype.name) for cell in taken()}
    for target in (CPU.name, *TARGETS):
        found = {(use, dtype) for use, dtypes in RECORD.cells[target].items() for dtype in dtypes}
        assert found == wanted, f"{target}: {sorted(found ^ wanted)[:5]}: {AGAIN}"


def test_codes_exist_and_errors_are_within_bounds() -> None:
    codes = {entry.code for family in catalogue.families() for entry in family.entries}
    for target, uses in RECORD.cells.items():
        for use, dtypes in uses.items():
            for dtype, outcome in dtypes.items():
                assert not outcome.refused or outcome.refused in codes
                operand = BY_NAME[dtype]
                limits = [accuracy.bound(REGISTRY[use.split(" ")[0]], d, load(target)) for d in {operand, F32}]
                most = max((limit.ulp for limit in limits if limit is not None), default=0.0)
                assert outcome.ulp <= most * 1.001, (target, use, dtype)


def test_every_float_result_of_every_operation_has_a_bound_on_every_target() -> None:
    """By rule: the data files are complete, whatever operation is added; and every bound says where it comes from."""
    machines = [load(target) for target in (CPU.name, *TARGETS)]
    for cell in taken():
        for value in record(cell, arrays(cell)).outputs.values():
            for machine in machines if value.type.dtype.is_float else ():
                found = accuracy.bound(REGISTRY[cell.name], value.type.dtype, machine)
                assert found is not None and found.source, f"{cell.name} states no bound on {value.type.dtype} for {machine.name}"


def test_a_record_is_read_as_it_was_written() -> None:
    assert conformance.read(conformance.write(RECORD)) == RECORD


def test_the_command_line_shows_bounds_and_refusals() -> None:
    said = CliRunner().invoke(main, ["ops", "pow"], prog_name="ptc").stdout
    assert "ascend-a2" in said and "f32: 268 ulp (worst measured" in said and "refused: PT502" in said
    data = json.loads(CliRunner().invoke(main, ["ops", "exp", "--json"], prog_name="ptc").stdout)
    found = data["operation"]["conformance"]
    assert found["llvm-cpu"]["f32"].startswith("1 ulp") and found["tt-wormhole"]["f64"] == "refused: PT502"
