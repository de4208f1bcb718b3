"""A window of one element (`x[0:1]`) of a DYNAMIC axis is repeated where it meets a longer axis, or refused when the tensor has none."""
from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto

BODIES = (
    "out[:] = x[0:1, :] + y",
    "out[:] = y - x[1:2, :]",
    "out[:] = x[:, 0:1] * y",
    "out[:] = x[0:1, 0:1] + y",
    "out[:] = pypto.where(y > 0, x[0:1, :], y)",
    "out[:] = pypto.exp(x[0:1, :] * 0.1) + y",
    "out[:] = pypto.expand_clone(x[0:1, :], [y.shape[0], y.shape[1]])",
    "out[:] = pypto.cast(pypto.cast(x, pypto.DT_BF16)[0:1, :], pypto.DT_FP32) + y",
    "out[:] = x[0:1, :] + pypto.sum(y, 0, True) + y",
    "out[:] = pypto.softmax(x[0:1, :] * 1.0, -1) + y",
    "out[:] = pypto.sum(y * x[0:1, :], -1, True) + y",
    "out[:] = pypto.matmul(y, x, b_trans=True)[:, 0:1] + x[0:1, :]",
    "for i in pypto.loop(y.shape[0]):\n        out[i:i + 1, :] = x[i:i + 1, 0:1] - pypto.amax(x[i:i + 1, :], -1, True) + y[i:i + 1, :]",
    "for i in pypto.loop(y.shape[0]):\n        out[i:i + 1, :] = y[i:i + 1, :] + x[0:1, :]",
)


def kernel(body: str) -> Any:
    """A kernel over DYNAMIC matrices whose text can be read."""
    text = f"@pypto.jit\ndef k(x: T([D, D]), y: T([D, D]), out: T([D, D])):\n    {body}\n"
    name = f"<window {BODIES.index(body)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module: dict[str, Any] = {"pypto": pypto, "T": pypto.Tensor, "D": pypto.DYNAMIC}
    exec(compile(text, name, "exec"), module)
    return module["k"]


def arguments(rows: int = 6) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x, y = ((rng.integers(-8, 9, (6, 8)) / 4).astype(np.float32) for _ in range(2))
    return {"x": x[:rows].copy(), "y": y, "out": np.full((6, 8), 7.0, np.float32)}


@pytest.mark.parametrize("body", BODIES)
def test_an_element_is_repeated(body: str) -> None:
    results = []
    for target in ("llvm-cpu", "interpreter"):
        given = arguments()
        kernel(body).run(**given, target=target)
        results.append(given["out"])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
    assert not (results[0] == 7.0).all()


@pytest.mark.parametrize("target", ["llvm-cpu", "interpreter"])
@pytest.mark.parametrize("body", [b for b in BODIES if "x[0:1, :]" in b and "loop" not in b and "matmul" not in b])
def test_nothing_is_not_repeated(body: str, target: str) -> None:
    given = arguments(rows=0)
    with pytest.raises(pypto.KernelError) as refused:
        kernel(body).run(**given, target=target)
    assert refused.value.code == "PT710"
    assert (given["out"] == 7.0).all()


@pytest.mark.parametrize("target", ["llvm-cpu", "interpreter"])
def test_a_loop_that_passes_the_end_is_stopped(target: str) -> None:
    """Only the loop knows: rows of ``y`` are more than those of ``x``."""

    @pypto.jit
    def k(x: pypto.Tensor([pypto.DYNAMIC, 8]), y: pypto.Tensor([pypto.DYNAMIC, 8]), out: pypto.Tensor([pypto.DYNAMIC, 8])):
        for i in pypto.loop(y.shape[0]):
            out[0:2, :] = y[0:2, :] + x[i:i + 1, :]

    with pytest.raises(pypto.KernelError) as refused:
        k.run(**arguments(rows=3), target=target)
    assert refused.value.code == "PT710"
