"""The model kernels of examples/models: as scripts, through ptc, on both executors, over batches they were not compiled for."""
from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from pypto_dsl.cli.root import main

FOLDER = Path(__file__).parents[2] / "examples" / "models"
SCRIPTS = {p.stem: p for p in sorted(FOLDER.glob("*.py"))}
NAMES = {"attention", "batched_softmax", "expert_selection", "gated_ffn", "geglu", "int8_matmul", "lstm_cell", "paged_attention",
         "rms_norm", "rope"}
# Largest error by the output's dtype, as a part of its largest value: a few roundings, or one of the storage format.
BOUNDS = {"float32": 2e-6, "bfloat16": 2**-8, "int32": 0.0}
FIXED = {"attention", "paged_attention"}  # their batch is part of their type


def checked(module: dict[str, Any], given: list[Any], kernel: Any, target: str) -> None:
    """Every array after the kernel against the reference in float64; inputs keep their bits."""
    with np.errstate(invalid="ignore"):  # outputs begin with whatever the memory holds
        exact = [a.astype(np.float64) if a.dtype.kind not in "iub" else a.copy() for a in given]
    before = [a.copy() for a in given]
    kernel.run(*given, target=target)
    module["reference"](*exact)
    outputs = kernel.graph().outputs
    for name, got, wanted, old in zip(kernel.signature.parameters, given, exact, before, strict=False):
        if name not in outputs:
            np.testing.assert_array_equal(got, old)
            continue
        largest = np.abs(wanted).max()
        assert np.abs(got.astype(np.float64) - wanted).max() <= BOUNDS[got.dtype.name] * largest, name


def test_the_ten_are_there() -> None:
    assert set(SCRIPTS) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_as_a_script(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPTS[name]), run_name="__main__")
    assert "largest error" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(NAMES))
def test_through_ptc(name: str) -> None:
    result = CliRunner().invoke(main, ["run", str(SCRIPTS[name])])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("target", ["llvm-cpu", "interpreter"])
@pytest.mark.parametrize("name", sorted(NAMES))
def test_against_the_reference(name: str, target: str) -> None:
    module = runpy.run_path(str(SCRIPTS[name]))
    for seed in range(3):
        checked(module, list(module["inputs"](np.random.default_rng(seed))), module[name], target)


@pytest.mark.parametrize("name", sorted(NAMES - FIXED))
def test_any_batch_without_compiling_again(name: str) -> None:
    module = runpy.run_path(str(SCRIPTS[name]))
    kernel = module[name]
    for rows in (1, 2, 7, 16, 17, 64):
        given = list(module["inputs"](np.random.default_rng(rows)))
        first = given[0].shape[0]
        sized = [np.resize(a, (rows, *a.shape[1:])) if a.ndim > 1 and a.shape[0] == first else a for a in given]
        checked(module, sized, kernel, "llvm-cpu")
    assert len(kernel.specializations()) == 1


# What a device's emulator does not run, and why; everything else of the ten is right there.
REFUSED = {("expert_selection", "ascend-a2-emu"): "PT502", ("expert_selection", "tt-wormhole-emu"): "PT502",
           ("gated_ffn", "tt-wormhole-emu"): "PT521", ("rope", "tt-wormhole-emu"): "PT521", ("int8_matmul", "tt-wormhole-emu"): "PT502",
           ("paged_attention", "tt-wormhole-emu"): "PT522", ("batched_softmax", "tt-wormhole-emu"): "PT522"}


@pytest.mark.parametrize("target", ["ascend-a2-emu", "tt-wormhole-emu"])
@pytest.mark.parametrize("name", sorted(NAMES))
def test_on_the_emulators(name: str, target: str) -> None:
    options = ["--target", target, "--no-edges", "--no-values", "--json"]
    result = CliRunner().invoke(main, ["check", str(SCRIPTS[name]), *options])
    if (name, target) in REFUSED:
        assert result.exit_code == 1 and REFUSED[name, target] in result.output
    else:
        assert result.exit_code == 0, result.output
