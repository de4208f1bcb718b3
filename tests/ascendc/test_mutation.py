"""Mutants of the emitted kernels are trapped by the emulator or give wrong numbers; the survivors are known and explained.

The default run drops every barrier of the named kernels and tries a fixed sample of everything else; `-m mutation` tries all.
"""
from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.ascendc.kernels import KERNELS
from tests.ascendc.mutation import Verdict, every_mutant, judge

RULES = tomllib.loads((Path(__file__).parent / "survivors.toml").read_text())["survivor"]
NAMED = ["add", "softmax", "layer_norm", "pow_tensor", "ldexp_int", "silu_mul", "row_col", "column_sum", "tril", "bias_gelu"]
SAMPLE_STEP = 61  # a prime, so that the sample meets every kind


def reason(verdict: Verdict) -> str:
    """Why a survivor is known to be harmless; empty when nothing explains it."""
    for rule in RULES:
        if rule["kind"] == verdict.mutant.kind and re.search(rule.get("program", ""), verdict.program) and re.search(
                rule.get("what", ""), verdict.mutant.what):
            return str(rule["reason"])
    return ""


def unexplained(verdicts: list[Verdict]) -> list[str]:
    return [f"{v.program}:{v.mutant.line} {v.outcome}: {v.mutant.key}" for v in verdicts if not v.caught and not reason(v)]


@pytest.mark.parametrize("name", NAMED)
def test_every_barrier_is_needed(name: str) -> None:
    barriers = [m for m in every_mutant(name) if m.kind == "drop barrier"]
    assert [f"{v.mutant.line}: {v.outcome}" for v in judge(name, barriers) if v.outcome != "trap"] == []


def test_a_sample_of_mutants_is_caught_or_explained() -> None:
    position, verdicts = 0, []
    for name in NAMED:
        every = every_mutant(name)
        chosen = every[-position % SAMPLE_STEP::SAMPLE_STEP]
        position += len(every)
        verdicts += list(judge(name, chosen))
    assert len(verdicts) >= 20
    assert unexplained(verdicts) == []


@pytest.mark.mutation
def test_at_least_95_percent_of_all_mutants_are_caught() -> None:
    verdicts = [v for name in KERNELS for v in judge(name, every_mutant(name))]
    count = Counter(v.outcome for v in verdicts)
    print(f"\n{len(verdicts)} mutants: {dict(count)}")
    assert unexplained(verdicts) == []
    assert sum(v.caught for v in verdicts) >= 0.95 * len(verdicts), count
