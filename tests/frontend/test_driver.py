"""What a kernel object tells and writes: graphs after passes, sources per target, files, explanations, and targets that are none."""
from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.pipeline import GRAPH_PASSES, STAGES
from pypto_dsl.frontend import targets

F = np.float32
D, T = pypto.DYNAMIC, pypto.Tensor


@pypto.jit
def decay(x: T([D, 64], pypto.DT_FP32), out: T([D, 64], pypto.DT_FP32), rate: float = 0.5):
    distance = pypto.abs(x)
    out[:] = pypto.exp(distance * -1.0) * rate


def arguments() -> tuple[Any, Any]:
    return np.linspace(-2, 2, 5 * 64, dtype=F).reshape(5, 64), np.zeros((5, 64), F)


def refused(code: str, call: Any) -> str:
    with pytest.raises(pypto.KernelError) as caught:
        call()
    assert caught.value.code == code
    return str(caught.value)


@pytest.mark.parametrize(
    "annotation", [T(), T([4, 4]), T(pypto.DT_FP32), T([4, pypto.STATIC], pypto.DT_FP32), T([4, ...], pypto.DT_FP32), int], ids=str
)
def test_a_kernel_that_was_never_called_says_so(annotation: Any) -> None:
    @pypto.jit
    def fresh(x: T([4, 4], pypto.DT_FP32), y: annotation):
        return x + y

    text = refused("PT712", lambda: fresh.graph())
    assert "fresh" in text and "`y`" in text


@pytest.mark.parametrize(
    "ask", [lambda k: k.graph(), lambda k: k.source("ascend-a2"), lambda k: k.explain(), lambda k: k.graph(after="promote")]
)
def test_annotations_that_say_enough_stand_for_a_call(ask: Any) -> None:
    @pypto.jit
    def fresh(x: T([pypto.DYNAMIC, 64], pypto.DT_FP32), out: T([-1, 64], pypto.DT_BF16), rate: float = 2.0, causal: bool = True):
        out[:] = pypto.cast(x * rate, pypto.DT_BF16)

    assert str(ask(fresh))
    before = fresh.graph()
    fresh(np.ones((5, 64), F), np.zeros((5, 64), ml_dtypes.bfloat16))
    assert fresh.graph() is before and len(fresh.specializations()) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_what_stands_after_each_stage(stage: str) -> None:
    made = decay.graph(*arguments(), after=stage)
    assert isinstance(made, Graph) == (stage in GRAPH_PASSES)
    if isinstance(made, Graph):
        assert made.name == "decay" and [p.name for p in made.parameters] == ["x", "out", "rate"]


@pytest.mark.parametrize("stage", [None, *STAGES])
def test_the_text_of_what_stands(stage: str | None) -> None:
    x, out = arguments()
    text = decay.text(x, out, after=stage)
    assert "exp" in text and " at 0x" not in text
    assert repr(decay.graph(x, out)).startswith("<graph decay: 3 parameters, ")


def test_a_pass_or_target_that_is_none() -> None:
    x, out = arguments()
    assert "promote" in refused("PT713", lambda: decay.graph(x, out, after="promot"))
    assert "llvm-cpu" in refused("PT501", lambda: decay.run(x, out, target="ascend-a2"))
    refused("PT501", lambda: decay.source("ascend-a7", x, out))
    assert not out.any()


SOURCES = {"llvm-cpu": "define", "ascend-a2": "__aicore__", "tt-wormhole": "kernel_main", "tt-blackhole": "kernel_main"}


@pytest.mark.parametrize("target", SOURCES)
def test_sources_are_written_as_they_are_shown_and_name_the_users_variables(target: str, tmp_path: Path) -> None:
    x, out = arguments()
    shown = decay.source(target, x, out)
    names = decay.compile(target, tmp_path, x, out)
    assert SOURCES[target] in shown and "distance" in shown
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()) == sorted(names)
    written = [(tmp_path / name).read_text(encoding="utf-8") for name in names]
    assert all(text in shown for text in written)
    assert str(Path(__file__).parent) not in shown


def test_every_target_that_runs_gives_the_same_within_its_error() -> None:
    x, _ = arguments()
    want = 0.5 * np.exp(-np.abs(x.astype(np.float64)))
    for target in targets.runnable():
        if target.endswith(targets.EMULATED):
            continue
        out = np.zeros_like(x)
        decay.run(x, out, target=target)
        np.testing.assert_allclose(out, want, rtol=1e-6)


def test_an_emulated_target_runs_what_is_compiled_for_it() -> None:
    x, out = arguments()
    decay.run(x, out, 0.25, target="ascend-a2-emu")
    np.testing.assert_allclose(out, 0.25 * np.exp(-np.abs(x)), rtol=1e-5)


def test_golden_data_is_compared_once_and_names_the_worst_element() -> None:
    x, out = arguments()
    golden = 0.5 * np.exp(-np.abs(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pypto.set_verify_golden_data(goldens=[None, golden])
        decay(x, out)
    golden[2, 3] = 9
    pypto.set_verify_golden_data(goldens=[None, golden])
    with pytest.warns(pypto.KernelWarning, match=r"`out` of decay is 0\.\d+ at \[2, 3\], and its golden data 9"):
        decay(x, out)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decay(x, out)


def test_explanations_name_types_rules_and_specialisations() -> None:
    x, out = arguments()
    decay(x, out)
    text = str(decay.explain(target="llvm-cpu"))
    for said in ("decay", "distance", "f32", "specialised for x f32[*, 64], out f32[*, 64], rate: float: first call"):
        assert said in text
