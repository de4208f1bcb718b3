"""The outcome of a cell on a target, measured: passed with its worst error, or refused with a code."""
from __future__ import annotations

from cells import Cell
from devices import Prepared, executed
from devices import prepared as prepared_for
from host import CPU, check, computed, prepared

from pypto_dsl.compiler.conformance import Outcome
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.targets import load


def outcome(cell: Cell, target: str) -> Outcome:
    """Fails with an AssertionError where a result is beyond its bound, with the emulator's words where a rule is broken."""
    if target == CPU.name:
        try:
            g, executable, given = prepared(cell)
        except KernelError as refused:
            return Outcome(refused=refused.code)
        worst = check(cell, computed(executable, g, given, {}), g, given, {}, CPU)
        return Outcome(worst.ulp, worst.where if worst.ulp else "")
    found = prepared_for(cell, target)
    if not isinstance(found, Prepared):
        return Outcome(refused=found.code)
    worst = check(cell, executed(found, target, found.given), found.graph, found.given, {}, load(target))
    return Outcome(worst.ulp, worst.where if worst.ulp else "")
