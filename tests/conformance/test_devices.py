"""Every operation on every dtype in the emulators of the devices: within its bound, or refused with a code; never anything else.

The kernels of a family of operations are one compiled unit per target (see `devices`).
"""
from __future__ import annotations

import numpy as np
import pytest
from cells import everyday, small, taken
from devices import TARGETS, Prepared, executed, prepared
from host import interpreted
from measure import outcome
from record import as_recorded

from pypto_dsl.compiler.errors import Diagnostic
from pypto_dsl.compiler.ops import REGISTRY

NAMES = sorted({cell.name for cell in taken()}, key=lambda n: (REGISTRY[n].family, n))
SUMS = ("sum", "mean", "matmul")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_every_dtype_is_right_or_refused(name: str, target: str) -> None:
    for cell in everyday():
        if cell.name == name:
            as_recorded(cell, target, outcome(cell, target))


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_every_use_is_right_or_refused(name: str, target: str) -> None:
    for cell in taken():
        if cell.name == name:
            as_recorded(cell, target, outcome(cell, target))


@pytest.mark.parametrize("target", TARGETS)
def test_sums_of_exact_terms_are_exact(target: str) -> None:
    """Sums and products of small multiples of a power of two have no rounding in any order, but the last to 16 bits."""
    tried = 0
    for cell in everyday():
        found = prepared(cell, target)
        if cell.name not in SUMS or not isinstance(found, Prepared):
            continue
        given = [small(cell.dtype, a.shape, np.random.default_rng(5)) for a in found.given]
        for got, meant in zip(executed(found, target, given), interpreted(found.graph, given, {}), strict=True):
            if cell.name == "mean":
                tolerance = 2.0**-7 if got.itemsize == 2 else 2.0**-22  # the quotient rounds
                np.testing.assert_allclose(got.astype(np.float64), meant.astype(np.float64), rtol=tolerance)
            else:
                assert got.tobytes() == meant.tobytes(), cell.id
        tried += 1
    assert tried > 8


@pytest.mark.parametrize("target", TARGETS)
def test_a_refusal_names_the_target_and_says_what_to_do(target: str) -> None:
    """Whatever a device refuses: the code's message has the target or the operand, and a help."""
    seen: set[tuple[str, str]] = set()
    for cell in everyday():
        found = prepared(cell, target)
        if isinstance(found, Diagnostic):
            seen.add((cell.name, cell.dtype.name))
            assert found.help, found.render()
    assert len(seen) > 100
