"""Steps that leave a dtype's range on the way to a result: reference, expansion and CPU agree on what is inf, NaN and a number."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from machine import evaluate, execute, expanded, graph_of, ulps
from samples import elementwise_names

from pypto_dsl.compiler.dtypes import BF16, F16, F32, F64, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Value, tensor_type
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.runtime.cpu.executable import Executable

EXTREMES = [3.4e38, -3.4e38, 2e38, 1e20, -1e20, 3.0, -1.0, 0.5, 0.0, -0.0, 1e-20, -1e-30, 1e-40, np.inf, -np.inf, np.nan]
ROWS = np.array([[3e38, 3e38, -1e38, 1.0], [1e20, -1e20, 2e20, 0.0], [3.4e38, 1e38, 3e38, 1.0], [1e-30, 2e-30, 0.0, -1e-25],
                 [np.inf, 1.0, 2.0, 3.0], [-1e19, 1e19, 3e19, -3e19]], np.float32)
COMPOSITE = [n for n in elementwise_names() if not REGISTRY[n].is_primitive and (REGISTRY[n].dtypes is None or F32 in REGISTRY[n].dtypes)]
REDUCTIONS = ("mean", "var", "std", "nanmean", "nanvar", "nanstd", "euclidean_norm", "logsumexp", "softmax", "log_softmax", "layer_norm",
              "rms_norm")


def kind(x: np.ndarray) -> np.ndarray:
    """0 a number, 1 and -1 infinite, 2 NaN."""
    wide = x.astype(np.float64)
    return np.where(np.isnan(wide), 2, np.where(np.isinf(wide), np.sign(np.where(np.isnan(wide), 0, wide)), 0))


def grid(count: int, dtype: DType) -> list[np.ndarray]:
    """Every tuple of extreme values."""
    with np.errstate(all="ignore"):
        tuples = np.array(list(itertools.product(EXTREMES, repeat=count)), np.float64).astype(np.float32).astype(dtype.numpy)
    return [np.ascontiguousarray(tuples[:, i]) for i in range(count)]


def on_cpu(name: str, arrays: list[np.ndarray], **attributes: Any) -> np.ndarray:
    """The compiled result."""
    g = graph_of(lambda *p: REGISTRY[name](*p, **attributes), *arrays)
    made = g.returns[0]
    g.parameters.append(Value(tensor_type(made.type.dtype, [e.constant for e in made.type.shape]), "out"))
    g.outputs["out"], g.returns = made, []
    out = np.zeros([e.constant for e in made.type.shape], made.type.dtype.numpy)
    Executable(lower(g, "llvm-cpu")).run({**{f"p{i}": a for i, a in enumerate(arrays)}, "out": out}, {})
    return out


@pytest.mark.parametrize("name", COMPOSITE)
def test_elementwise(name: str) -> None:
    """Over every pair and triple of extreme values, on FP32 and BF16: the same kind of value, within the bound."""
    definition = REGISTRY[name]
    count = sum(1 for p in definition.operands if not p.optional)
    for dtype in (F32, BF16) if count < 3 else (F32,):
        arrays = grid(count, dtype)
        want = evaluate(name, *arrays)
        if isinstance(want, list) or want.dtype.kind == "b":
            return
        try:
            got = execute(expanded(lambda *p: definition(*p), *arrays), *arrays)[0]
        except KernelError as refused:
            assert refused.code == "PT502"
            return
        wrong = np.flatnonzero((kind(got) != kind(want)) & (ulps(got, want) > 4))
        assert not wrong.size, f"{name}: {[a[wrong[:3]] for a in arrays]} gives {got[wrong[:3]]}, not {want[wrong[:3]]}"


@pytest.mark.parametrize("dtype", [F32, F64, BF16, F16], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, dtype: DType) -> None:
    """A mean whose sum overflows is infinite, as in f32; a deviation whose variance underflows is 0. Expansion and CPU agree.

    No row has partial sums that overflow while the sum does not: there the order of the sum decides.
    """
    with np.errstate(all="ignore"):
        rows = ROWS.astype(dtype.numpy)
    attributes = {} if name in ("layer_norm", "rms_norm") else {"dim": 1}
    want = evaluate(name, rows, **attributes)
    for got in (execute(expanded(lambda p: REGISTRY[name](p, **attributes), rows), rows)[0], on_cpu(name, [rows], **attributes)):
        np.testing.assert_array_equal(kind(got), kind(want))
        finite = kind(want) == 0
        np.testing.assert_allclose(got[finite].astype(np.float64), want[finite].astype(np.float64), rtol=2e-2 if dtype.bits == 16 else 1e-5)


def test_products() -> None:
    """Where single products overflow the sum is inf or NaN, whichever their order and fusion make of it; never their exact difference."""
    a = np.array([[1e20, 1e20], [1e20, 1.0], [2.0, 3.0]], np.float32)
    b = np.array([[1e20, 1e20], [-1e20, 1.0]], np.float32)
    want = evaluate("matmul", a, b)
    np.testing.assert_array_equal(kind(want), [[2, 1], [1, 1], [0, 0]])
    np.testing.assert_array_equal(np.isfinite(on_cpu("matmul", [a, b])), np.isfinite(want))
