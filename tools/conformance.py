"""Measures every use of every operation on every dtype and target, and writes pypto_dsl/compiler/conformance.json.

`python tools/conformance.py` measures all cells (a few minutes: the devices run in their emulators); with names of operations those
and what the record lacks, the rest stays. `--suite` runs the default tests instead and records how long they took. Behind either,
`python tools/documents.py` writes docs/conformance.md.
"""
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "conformance"), str(ROOT / "tests" / "ops")]

import cells  # noqa: E402
import devices  # noqa: E402
import host  # noqa: E402
from measure import outcome  # noqa: E402

from pypto_dsl.compiler import conformance  # noqa: E402

RECORD = Path(conformance.__file__).with_name(conformance.FILE)
TARGETS = (host.CPU.name, *devices.TARGETS)


def measured(names: list[str]) -> conformance.Conformance:
    """The record with the operations of ``names`` measured anew (all when empty)."""
    old = conformance.read(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else conformance.Conformance({}, {})
    found: dict[str, dict[str, dict[str, conformance.Outcome]]] = {}
    for target in TARGETS:
        start, rows = time.monotonic(), found.setdefault(target, {})
        for cell in cells.taken():
            kept = old.cells.get(target, {}).get(cell.label, {}).get(cell.dtype.name)
            again = not names or cell.name in names or kept is None
            result = outcome(cell, target) if again else kept
            assert result is not None
            rows.setdefault(cell.label, {})[cell.dtype.name] = result
        print(f"{target}: {sum(map(len, rows.values()))} cells in {time.monotonic() - start:.0f} s", flush=True)
    return conformance.Conformance(found, old.suite)


def suite() -> dict[str, float]:
    """What the default tests say: passed, seconds, processors."""
    done = subprocess.run([sys.executable, "-m", "pytest"], cwd=ROOT, capture_output=True, text=True)
    last = done.stdout.strip().splitlines()[-1]
    passed, seconds = re.search(r"(\d+) passed", last), re.search(r"in ([\d.]+)s", last)
    if passed is None or seconds is None:
        raise SystemExit(f"the tests say: {last}")
    return {"passed": int(passed[1]), "seconds": round(float(seconds[1])), "processors": os.cpu_count() or 1}


def main() -> int:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operations to measure again")
    parser.add_argument("--suite", action="store_true", help="run the default tests and record how long they took; no cell is measured")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.suite:
        record = conformance.Conformance(conformance.load().cells, suite())
    else:
        record = measured(options.names)
    RECORD.write_text(conformance.write(record), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
