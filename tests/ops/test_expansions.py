"""Expansions under every promotion rule set and on every shape class; tests/conformance has every dtype against its bound."""
from __future__ import annotations

import numpy as np
import pytest
from machine import evaluate, execute, expanded, ulps
from samples import accepted, elementwise_names, operands, reference_keywords

from pypto_dsl.compiler.dtypes import BOOL, F32, SIXTEEN_BIT_FLOATS, DType, of_numpy
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.definition import OpDefinition

COMPOSITE = [n for n in elementwise_names() if not REGISTRY[n].is_primitive]


def written_for(definition: OpDefinition, dtype: DType) -> bool:
    """Whether the expansion computes on ``dtype`` (16-bit floats: on f32)."""
    if definition.expands is None:
        return True
    computes = F32 if dtype in SIXTEEN_BIT_FLOATS and definition.widens else dtype
    if computes.is_integer and F32 in definition.expands and computes not in definition.expands:
        computes = F32  # a float function of integers
    return computes in definition.expands


def compare(name: str, got: np.ndarray, want: np.ndarray, arrays: list[np.ndarray]) -> float:
    """The largest error in ulp (0 or inf for what is no float); asserts that it is within the bound."""
    definition = REGISTRY[name]
    assert got.dtype == want.dtype and got.shape == want.shape
    dtype = of_numpy(got.dtype)
    assert dtype is not None
    if not got.size:
        return 0.0
    if not dtype.is_float:
        wrong = np.flatnonzero(got.ravel() != want.ravel())
        where = wrong[:3]
        assert not wrong.size, f"{name}: {[a.ravel()[where] for a in arrays]} gives {got.ravel()[where]}, not {want.ravel()[where]}"
        return 0.0
    scale = None
    if definition.scale is not None:
        with np.errstate(all="ignore"):
            scale = definition.scale(*(a.astype(np.float64) for a in arrays), **reference_keywords(definition))
    error = ulps(got, want, scale)
    bound = definition.bound(dtype)
    assert bound is not None, f"{name} states no bound"
    worst = int(np.argmax(error))
    assert error.ravel()[worst] <= bound, (
        f"{name} {dtype}: {[a.ravel()[worst] for a in arrays if a.shape == got.shape]} gives {got.ravel()[worst]!r}, "
        f"the reference {want.ravel()[worst]!r}: {error.ravel()[worst]} ulp, bound {bound}")
    return float(error.ravel()[worst])


@pytest.mark.parametrize("rules", ["pypto", "pypto-strict", "ttnn", "tf-all", "tf-safe", "jax", "jax-x32", "jax-strict"])
@pytest.mark.parametrize("name", COMPOSITE)
def test_promotion_rules_do_not_change_an_expansion(name: str, rules: str) -> None:
    """The same numbers under every rule set, on the first dtype that the expansion is written for."""
    definition = REGISTRY[name]
    rng = np.random.default_rng(1)
    dtype = next(d for d in (*accepted(definition), F32) if written_for(definition, d))
    arrays = [a[:60] for a in operands(definition, dtype, rng)]
    try:
        want = evaluate(name, *arrays, rules=rules)
    except KernelError as refused:
        assert refused.code in ("PT202", "PT203"), refused  # the rules have no such operation
        return
    try:
        g = expanded(lambda *p: definition(*p), *arrays, rules=rules)
    except KernelError as refused:
        assert refused.code == "PT502", refused
        return
    for got, wanted in zip(execute(g, *arrays), want if isinstance(want, list) else [want], strict=True):
        if dtype is BOOL or got.dtype.kind != "f" or definition.scale is None:
            compare(name, got, wanted, arrays)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (3, 5), (0,), (2, 0, 3), (65,), (2, 3, 33), ()], ids=str)
@pytest.mark.parametrize("name", COMPOSITE)
def test_shape_classes(name: str, shape: tuple[int, ...]) -> None:
    """One element, tails, empty and rank 0 keep their shape in reference and expansion."""
    definition = REGISTRY[name]
    rng = np.random.default_rng(3)
    dtype = F32 if definition.dtypes is None or F32 in definition.dtypes else definition.dtypes[0]
    arrays = [np.resize(a[40:], shape).astype(dtype.numpy) if np.prod(shape) else np.zeros(shape, dtype.numpy)
              for a in operands(definition, dtype, rng)]
    want = evaluate(name, *arrays)
    first = want[0] if isinstance(want, list) else want
    assert first.shape == shape
    try:
        g = expanded(lambda *p: definition(*p), *arrays)
    except KernelError as refused:
        assert refused.code == "PT502"
        return
    for got, wanted in zip(execute(g, *arrays), want if isinstance(want, list) else [want], strict=True):
        compare(name, got, wanted, arrays)


@pytest.mark.parametrize("name", [n for n in COMPOSITE if len([p for p in REGISTRY[n].operands if not p.optional]) > 1])
def test_broadcasting(name: str) -> None:
    """A column against a row, and a scalar tensor: in-place operations broadcast their other operand only."""
    definition = REGISTRY[name]
    dtype = F32 if definition.dtypes is None or F32 in definition.dtypes else definition.dtypes[0]
    rng = np.random.default_rng(4)
    count = len([p for p in definition.operands if not p.optional])
    shapes = [(3, 4), (1, 4), ()] if definition.effects else [(3, 1), (1, 4), (4,)]
    arrays = [np.abs(rng.normal(size=shapes[i]) * 3 + 1).astype(dtype.numpy) for i in range(count)]
    try:
        g = expanded(lambda *p: definition(*p), *arrays)
    except KernelError as refused:
        assert refused.code == "PT502"
        return
    want = evaluate(name, *arrays)
    assert want.shape == (3, 4)
    compare(name, execute(g, *arrays)[0], want, [np.broadcast_to(a, (3, 4)) for a in arrays])
