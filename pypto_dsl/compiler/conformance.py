"""What was measured of every use of an operation on every dtype and target: passed with its worst error, or refused with a code.

The record is `conformance.json` beside this file, written by `python tools/conformance.py`; tests compare every cell with what happens.
"""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from pypto_dsl.compiler.accuracy import bound
from pypto_dsl.compiler.dtypes import BY_NAME, F32
from pypto_dsl.compiler.ops import OpDefinition
from pypto_dsl.compiler.targets import Target

FILE = "conformance.json"


@dataclass(frozen=True)
class Outcome:
    """One cell: refused with a code (``refused``), or passed with the worst error in ulp, and where it was (beyond half an ulp)."""

    ulp: float = 0.0
    where: str = ""
    refused: str = ""

    @property
    def passed(self) -> bool:
        return not self.refused

    def plain(self) -> Any:
        """The outcome as JSON: a code, the worst error, or [the worst error, where]."""
        worst = float(f"{self.ulp:.4g}")
        return self.refused or ([worst, self.where] if worst > 0.5 else worst or 0)


@dataclass(frozen=True)
class Conformance:
    """The record. ``cells`` maps target, use and dtype (of the first operand) to an outcome; a use is an operation and its attributes.

    ``suite`` is what a run of the default tests said: passed, seconds, processors.
    """

    cells: Mapping[str, Mapping[str, Mapping[str, Outcome]]]
    suite: Mapping[str, float]

    def of(self, target: str, operation: str) -> Iterator[tuple[str, str, Outcome]]:
        """(use, dtype, outcome) of every cell of an operation."""
        for use, dtypes in self.cells.get(target, {}).items():
            if use.split(" ")[0] == operation:
                for dtype, outcome in dtypes.items():
                    yield use, dtype, outcome

    def operations(self) -> set[str]:
        """The operations of the record."""
        return {use.split(" ")[0] for uses in self.cells.values() for use in uses}


@cache
def load() -> Conformance:
    """The record as it was measured last."""
    return read(resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def read(text: str) -> Conformance:
    """A record from its text."""
    data = json.loads(text)
    cells = {target: {use: {dtype: _outcome(v) for dtype, v in dtypes.items()} for use, dtypes in uses.items()}
             for target, uses in data["targets"].items()}
    return Conformance(cells, data["suite"])


def write(record: Conformance) -> str:
    """The text of a record: a line per use."""
    targets = []
    for target, uses in record.cells.items():
        lines = [f"  {json.dumps(use)}: {json.dumps({d: o.plain() for d, o in dtypes.items()})}" for use, dtypes in uses.items()]
        targets.append(f"{json.dumps(target)}: {{\n" + ",\n".join(lines) + "\n }")
    return '{\n"suite": ' + json.dumps(record.suite) + ',\n"targets": {\n ' + ",\n ".join(targets) + "\n}\n}\n"


def support(definition: OpDefinition, target: Target, measured: bool = True) -> dict[str, str]:
    """What an operation is on a target by dtype of its first operand: `exact`, a bound with the worst error measured, or a refusal's code.

    Of several uses the worst counts; a dtype that only some uses are refused on says so. Empty where nothing was measured; without
    ``measured`` the bounds stand alone.
    """
    by_dtype: dict[str, list[Outcome]] = {}
    for _, dtype, outcome in load().of(target.name, definition.name):
        by_dtype.setdefault(dtype, []).append(outcome)
    return {dtype: _said(definition, dtype, outcomes, target, measured) for dtype, outcomes in by_dtype.items()}


def _said(definition: OpDefinition, dtype: str, outcomes: list[Outcome], target: Target, measured: bool) -> str:
    codes = sorted({o.refused for o in outcomes if o.refused})
    passed = [o for o in outcomes if o.passed]
    if not passed:
        return f"refused: {', '.join(codes)}"
    worst = max(o.ulp for o in passed)
    limit = bound(definition, BY_NAME[dtype] if BY_NAME[dtype].is_float else F32, target)
    rounds = limit is not None and limit.ulp > 0 and (worst > 0 or BY_NAME[dtype].is_float or definition.name == "cast")
    said = limit.text() if limit is not None and rounds else "exact"
    said += f" (worst measured {worst:.3g})" if measured and said != "exact" else ""
    return f"{said}, or refused: {', '.join(codes)}" if codes else said


def grouped(dtypes: Mapping[str, str]) -> list[str]:
    """`exact: i8, i16`: dtypes with the same words together, in the order of their first."""
    found: dict[str, list[str]] = {}
    for dtype, said in dtypes.items():
        found.setdefault(said, []).append(dtype)
    return [f"{', '.join(names)}: {said}" for said, names in found.items()]


def _outcome(value: Any) -> Outcome:
    if isinstance(value, str):
        return Outcome(refused=value)
    return Outcome(*value) if isinstance(value, list) else Outcome(float(value))
