"""The suite's strength: of the mutants of emitted kernels, at least 95 of 100 must trap, not compile, or compute wrong numbers."""
from __future__ import annotations

import mutants
import pytest

from pypto_dsl.runtime.emulator.ttmetal.machine import runtime

EVERY = 61  # the default run judges every 61st mutant, each time the same
LEAST = 0.95


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of broken objects do not go to the user's cache."""
    runtime()
    monkeypatch.setenv("PTC_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "mutants"))


def score(results: dict[mutants.Mutant, tuple[str, str]]) -> float:
    return sum(v != "survived" for v, _ in results.values()) / len(results)


def test_a_sample_of_mutants_is_noticed() -> None:
    everything = [m for label in mutants.KERNELS for m in mutants.mutants(label)]
    results = {m: mutants.judge(m) for m in everything[7::EVERY]}
    assert len(everything) > 3000
    assert score(results) >= LEAST - 0.03, mutants.report(results)  # a sample of sixty: one survivor is 1.6 %


def test_mutants_differ_from_what_they_break() -> None:
    """Each mutant changes one line, and no two are the same."""
    found = list(mutants.mutants("add_bf16"))
    assert len({(m.path, m.text) for m in found}) == len(found)


@pytest.mark.mutation
def test_mutants_are_noticed() -> None:
    """All of them: twenty minutes of one core. `docs/mutation-ttmetal.md` holds the last report with the survivors' reasons."""
    results = {m: mutants.judge(m) for label in mutants.KERNELS for m in mutants.mutants(label)}
    print(mutants.report(results))
    assert score(results) >= LEAST, mutants.report(results)
    assert not [m for m, (v, _) in results.items() if v == "survived" and not mutants.reason(m)], "survivors without a reason"
