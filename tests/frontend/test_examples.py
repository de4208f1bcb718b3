"""Every example runs as a script, and every kernel of the ten gives on the CPU what it means, over shapes it does not mention."""
from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto_dsl import check

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted([*FOLDER.glob("*.py"), *(FOLDER / "seeds").glob("*.py")])
TEN = {"add", "softmax", "layer_norm", "power", "ldexp", "swiglu", "broadcast", "column_sum", "causal_mask", "ffn"}


def test_the_ten_kernels_are_there() -> None:
    assert {p.stem for p in FOLDER.glob("*.py")} >= TEN
    assert {p.stem for p in (FOLDER / "seeds").glob("*.py")} == {"pow", "ldexp_"}


@pytest.mark.parametrize("path", SCRIPTS, ids=[p.stem for p in SCRIPTS])
def test_example_runs_as_a_script(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_seeds_print_the_published_values(capsys: pytest.CaptureFixture[str]) -> None:
    printed = {}
    for name in ("pow", "ldexp_"):
        runpy.run_path(str(FOLDER / "seeds" / f"{name}.py"), run_name="__main__")
        printed[name] = capsys.readouterr().out.replace(".", "").split()
    assert printed["pow"] == ["[[", "1", "4]", "[", "9", "16]]", "[[", "1", "4]", "[-3", "4]]"]
    assert printed["ldexp_"] == ["[[4", "4]", "[4", "4]]"]


def resized(array: Any, rows: int, first: int) -> Any:
    """The array with another leading extent where it had the dynamic one."""
    if array.ndim < 2 or array.shape[0] != first:
        return array
    return np.resize(array, (rows, *array.shape[1:])).astype(array.dtype)


KERNELS = [("add", "add"), ("softmax", "softmax"), ("layer_norm", "layer_norm"), ("power", "power"), ("power", "power_tensor"),
           ("ldexp", "ldexp"), ("ldexp", "ldexp_bf16"), ("swiglu", "swiglu"), ("column_sum", "column_sum"), ("ffn", "ffn")]


@pytest.mark.parametrize(("file", "name"), KERNELS, ids=[n for _, n in KERNELS])
def test_kernels_over_row_counts_without_compiling_again(file: str, name: str) -> None:
    module = runpy.run_path(str(FOLDER / f"{file}.py"))
    kernel, inputs = module[name], module.get(f"{name}_inputs", module["inputs"])
    given = dict(zip(kernel.signature.parameters, inputs(np.random.default_rng(3)), strict=False))
    first = next(iter(given.values())).shape[0]
    for rows in (1, 2, 3, 17, 64, 65):
        arguments = {n: resized(v, rows, first) if isinstance(v, np.ndarray) else v for n, v in given.items()}
        reference = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
        kernel(**arguments)
        graph = kernel.graph()
        symbols = {s.name: reference[s.parameter].shape[s.axis] for s in graph.symbols.values()}
        subject = check.Subject(lambda _, g=graph, s=symbols: (g, s), lambda _, a=arguments, g=graph: {n: a[n] for n in g.outputs}, None)
        for verdict in check.given(subject, reference)[2]:
            assert verdict.ok, f"{rows} rows: {verdict}"
    assert len(kernel.specializations()) == 1
