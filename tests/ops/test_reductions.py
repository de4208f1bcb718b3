"""Reductions, scans, normalisations and attention: references against `math` and NumPy, expansions against references, on every dtype."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from machine import bits_apart, evaluate, execute, expanded, graph_of, ulps
from samples import FLOATS, INTEGERS

from pypto_dsl.compiler.dtypes import BF16, BOOL, F16, F32, F64, I32, DType, of_numpy
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY

SHAPES = ((5,), (3, 7), (2, 3, 5), (1, 1), (4, 1, 3), (2, 64), (3, 100))
DIMS: tuple[Any, ...] = (None, 0, -1, (0, -1))
REDUCTIONS = ("sum", "prod", "amax", "amin", "nanmax", "nanmin", "nansum", "nanprod", "mean", "nanmean", "var", "std", "nanvar", "nanstd",
              "euclidean_norm", "logsumexp", "any", "all")
IGNORING = frozenset({"nanmax", "nanmin", "nansum", "nanprod", "nanmean", "nanvar", "nanstd"})
POSITIONS = ("argmax", "argmin", "nanargmax", "nanargmin")
ALONG = ("softmax", "log_softmax")
LAST = ("layer_norm", "rms_norm")


def sample(shape: tuple[int, ...], dtype: DType, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed + len(shape))
    if dtype is BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_float:
        return (rng.normal(size=shape) * 2 + 0.5).astype(np.float32).astype(dtype.numpy)
    return rng.integers(max(dtype.range[0], -9), 10, shape).astype(dtype.numpy)


def within(name: str, got: np.ndarray, want: np.ndarray, arrays: list[np.ndarray], **attributes: Any) -> None:
    """Expansion against reference, counted as the operation's bound says."""
    definition = REGISTRY[name]
    assert got.dtype == want.dtype and got.shape == want.shape, name
    dtype = of_numpy(got.dtype)
    assert dtype is not None
    if not got.size:
        return
    if not dtype.is_float:
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    scale = None
    if definition.scale is not None:
        with np.errstate(all="ignore"):
            scale = np.asarray(definition.scale(*(a.astype(np.float64) for a in arrays), **attributes))
    error, bound = ulps(got, want, scale), definition.bound(dtype)
    assert bound is not None and error.max() <= bound, (name, dtype, attributes, float(error.max()), bound)


PYTHON: dict[str, Callable[[list[float]], float]] = {
    "sum": math.fsum, "prod": math.prod, "amax": max, "amin": min, "nanmax": max, "nanmin": min, "nansum": math.fsum,
    "nanprod": math.prod, "mean": lambda v: math.fsum(v) / len(v),
    "nanmean": lambda v: math.fsum(v) / len(v), "var": lambda v: math.fsum((x - math.fsum(v) / len(v)) ** 2 for x in v) / (len(v) - 1),
    "std": lambda v: math.sqrt(math.fsum((x - math.fsum(v) / len(v)) ** 2 for x in v) / (len(v) - 1)),
    "nanvar": lambda v: math.fsum((x - math.fsum(v) / len(v)) ** 2 for x in v) / (len(v) - 1),
    "nanstd": lambda v: math.sqrt(math.fsum((x - math.fsum(v) / len(v)) ** 2 for x in v) / (len(v) - 1)),
    "euclidean_norm": lambda v: math.sqrt(math.fsum(x * x for x in v)), "logsumexp": lambda v: math.log(math.fsum(map(math.exp, v))),
    "any": any, "all": all,
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reference_against_python(name: str) -> None:
    x = sample((4, 9), F32)
    got = evaluate(name, x, dim=-1)
    want = np.array([PYTHON[name]([float(v) for v in row]) for row in x]).astype(got.dtype)
    if got.dtype == bool:
        np.testing.assert_array_equal(got, want)
    else:
        assert ulps(got, want).max() <= 1


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", [n for n in REDUCTIONS if not REGISTRY[n].is_primitive])
def test_expansion_of_a_reduction(name: str, keepdim: bool) -> None:
    """Every float dtype (integers where the operation takes them), shape class and choice of axes."""
    definition = REGISTRY[name]
    dtypes = [d for d in (*FLOATS, *INTEGERS, BOOL) if definition.dtypes is None or d in definition.dtypes]
    for dtype in dtypes:
        for shape in SHAPES:
            for dim in DIMS:
                if dim == (0, -1) and len(shape) == 1:
                    continue
                if not dtype.is_float and (shape != (3, 7) or dim not in (None, 0)):
                    continue
                x = sample(shape, dtype)
                attributes = {"dim": dim, "keepdim": keepdim}
                want = evaluate(name, x, **attributes)
                got = execute(expanded(lambda p, a=attributes: definition(p, **a), x), x)[0]
                within(name, got, want, [x], **attributes)


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("dtype", (*FLOATS, *INTEGERS), ids=str)
def test_positions(name: str, dtype: DType) -> None:
    """The first extreme, the first NaN before all; along an axis and over all elements."""
    x = sample((4, 12), dtype)
    if dtype.is_float:
        x[1, 5] = x[1, 3] = np.nan
        x[2, :] = x[2, 0]
        x[3, 2], x[3, 1] = np.inf, -np.inf
    for dim in (None, 0, -1):
        for keepdim in (False, True):
            got = evaluate(name, x, dim=dim, keepdim=keepdim)
            function = getattr(np, name)
            np.testing.assert_array_equal(got, function(x.astype(np.float64) if dtype.is_float else x, axis=dim, keepdims=keepdim))
            assert got.dtype == np.int32
            other = execute(expanded(lambda p, d=dim, k=keepdim: REGISTRY[name](p, d, k), x), x)[0]
            np.testing.assert_array_equal(other, got)


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_along_an_axis(name: str, dtype: DType) -> None:
    for shape in SHAPES:
        for dim in range(-len(shape), len(shape)):
            x = sample(shape, dtype) * dtype.numpy.type(4)
            within(name, execute(expanded(lambda p, d=dim: REGISTRY[name](p, d), x), x)[0], evaluate(name, x, dim=dim), [x], dim=dim)


@pytest.mark.parametrize("name", LAST)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_normalisations(name: str, dtype: DType) -> None:
    for shape in SHAPES:
        x = sample(shape, dtype)
        gamma, beta = sample(shape[-1:], dtype, 1), sample(shape[-1:], dtype, 2)
        parameters = [gamma, beta] if name == "layer_norm" else [gamma]
        for count in range(len(parameters) + 1):
            arrays = [x, *parameters[:count]]
            within(name, execute(expanded(lambda *p: REGISTRY[name](*p), *arrays), *arrays)[0], evaluate(name, *arrays), arrays)


@pytest.mark.parametrize("dim", [None, 0, -1])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_nan_and_infinities(name: str, dim: Any) -> None:
    """NaN propagates through every reduction but those that pass over it; in expansions as in references."""
    x = np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, -np.inf], [np.inf, 1.0, 3.0], [-np.inf, 1.0, 3.0]], np.float32)
    want = evaluate(name, x, dim=dim)
    if not REGISTRY[name].is_primitive:
        got = execute(expanded(lambda p: REGISTRY[name](p, dim), x), x)[0]
        np.testing.assert_array_equal(got, want)
    flat = np.atleast_1d(want)
    if name in ("nanmax", "nanmin"):
        assert not np.isnan(flat).any()
    elif name in ("nanprod", "nansum"):
        assert not np.isnan(evaluate(name, x[[0, 2]], dim=dim)).any()
    elif name not in ("any", "all", *IGNORING):
        assert np.isnan(flat[0 if dim != 0 else 1])


def test_extremes_order_zeros() -> None:
    """-0 < +0 in every reduction and merge of extremes."""
    for values in ([0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [0.0, 0.0, -0.0]):
        x = np.array(values, np.float32)
        plus = any(not math.copysign(1, v) < 0 for v in values)
        assert np.signbit(evaluate("amax", x)) != plus and np.signbit(evaluate("amin", x)) == any(math.copysign(1, v) < 0 for v in values)
        for name in ("maximum", "fmax"):
            assert np.signbit(evaluate(name, x[:1], x[-1:]))[0] == (np.signbit(x[0]) and np.signbit(x[-1]))
        for name in ("minimum", "fmin"):
            assert np.signbit(evaluate(name, x[:1], x[-1:]))[0] == (np.signbit(x[0]) or np.signbit(x[-1]))


def test_nan_ignore_records_another_operation() -> None:
    """Report B15: propagate by default, opt out with nan="ignore"; on maximum, minimum, amax, amin and relu."""
    x = np.array([np.nan, np.inf, *range(62)], np.float32)
    assert np.isnan(evaluate("amax", x)) and np.isnan(evaluate("amin", x))
    assert evaluate("amax", x, nan="ignore") == np.inf and evaluate("amin", x, nan="ignore") == 0
    assert np.isnan(evaluate("amax", x[:1], nan="ignore"))
    assert evaluate("maximum", x[:2], x[2:4], nan="ignore").tolist() == [0.0, np.inf]
    assert evaluate("minimum", x[:2], x[2:4], nan="ignore").tolist() == [0.0, 1.0]
    assert evaluate("relu", x[:3], nan="ignore").tolist() == [0.0, np.inf, 0.0]
    y = np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, np.nan]], np.float32)
    assert evaluate("sum", y, dim=1, nan="ignore").tolist() == [3.0, 0.0] and evaluate("prod", y, dim=1, nan="ignore").tolist() == [2.0,
        1.0]
    assert evaluate("mean", y[:1], nan="ignore") == 1.5 and np.isnan(evaluate("mean", y[1:], nan="ignore"))
    z = np.array([[1.0, np.nan, 2.0, 6.0], [np.nan, 5.0, np.nan, np.nan], [np.nan] * 4, [-np.inf, np.nan, -np.inf, np.nan]], np.float32)
    for correction in (0, 1):
        for name, function in (("var", np.nanvar), ("std", np.nanstd)):
            with np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
                want = function(z.astype(np.float64), axis=1, ddof=correction)
            np.testing.assert_allclose(evaluate(name, z, dim=1, correction=correction, nan="ignore"), want, rtol=1e-6)
    assert evaluate("argmax", z, dim=1, nan="ignore").tolist() == [3, 1, 0, 0] and evaluate("argmax", z, dim=1).tolist() == [1, 0, 0, 1]
    assert evaluate("argmin", z, dim=1, nan="ignore").tolist() == [0, 1, 0, 0] and evaluate("argmin", z, dim=1).tolist() == [1, 0, 0, 1]
    assert evaluate("argmax", z[:, ::-1].copy(), dim=None, nan="ignore") == 0 and evaluate("argmin", z, dim=None, nan="ignore") == 12
    g = graph_of(lambda p: REGISTRY["amax"](p, nan="ignore"), x)
    assert [op.opcode for op in g.body.ops] == ["nanmax"]


@pytest.mark.parametrize("name", [n for n, d in REGISTRY.items() if d.variants])
def test_a_choice_that_does_not_exist_is_refused(name: str) -> None:
    operands = [np.ones((2, 3), np.float32)] * sum(1 for p in REGISTRY[name].operands if not p.optional)
    for attribute, value in REGISTRY[name].variants:
        with pytest.raises(KernelError, match=repr(value)) as caught:
            evaluate(name, *operands, **{attribute: "skip"})
        assert caught.value.code == "PT111"


def test_every_reduction_can_pass_over_nan() -> None:
    """What NaN decides has an opt-out; logsumexp, the norm and softmax are formulas of their elements."""
    deciding = {n for n, d in REGISTRY.items() if d.family == "reduce" and n not in IGNORING and not n.startswith("nan")}
    without = {n for n in deciding if ("nan", "ignore") not in REGISTRY[n].variants}
    assert without == {"any", "all", "euclidean_norm", "logsumexp"}


@pytest.mark.parametrize("name", REDUCTIONS + POSITIONS)
def test_reductions_of_nothing(name: str) -> None:
    """Report B69: identities where there is one, NaN for means, a coded error for extremes."""
    x = np.zeros((5, 0), np.float32)
    identity = {"sum": 0.0, "prod": 1.0, "nansum": 0.0, "nanprod": 1.0, "any": False, "all": True}
    if name in identity:
        assert evaluate(name, x, dim=1).tolist() == [identity[name]] * 5
    elif name in ("mean", "nanmean", "var", "std", "nanvar", "nanstd"):
        assert np.isnan(evaluate(name, x, dim=1)).all()
        assert np.isnan(execute(expanded(lambda p: REGISTRY[name](p, 1), x), x)[0]).all()
    else:
        with pytest.raises(KernelError) as caught:
            evaluate(name, x, dim=1)
        assert caught.value.code == "PT306"
    assert evaluate(name, x, dim=0).shape == (0,)


def test_results_of_sums_by_dtype() -> None:
    """BOOL, INT8 and UINT8 widen to 32 bits; INT16 and INT32 keep their dtype and wrap."""
    assert evaluate("sum", np.ones(256, bool)) == 256 and evaluate("sum", np.ones(257, bool)).dtype == np.int32
    assert evaluate("sum", np.full(300, 100, np.int8)) == 30000
    assert evaluate("sum", np.full(300, 200, np.uint8)).dtype == np.uint32
    assert evaluate("sum", np.full(128, 2**30, np.int32)) == 0
    assert evaluate("sum", np.full(4, 30000, np.int16)).tolist() == np.array(120000).astype(np.int16).tolist()
    assert evaluate("prod", np.full(3, 100, np.int8)) == 1000000
    assert evaluate("prod", np.full(33, 2, np.int32)) == 0
    assert evaluate("mean", np.array([1, 2], np.int32)).tolist() == 1.5
    assert evaluate("cumsum", np.array([2**31 - 1, 1], np.int32)).tolist() == [2**31 - 1, 2**31]


def test_sixteen_bit_sums_accumulate_in_f32() -> None:
    """Reports B37, B45, B47: a long sum of ones, a mean of ones, one rounding at the end."""
    assert evaluate("sum", np.ones(65536, np.float16).astype(np.float32)) == 65536.0
    assert np.isinf(evaluate("sum", np.ones(65536, np.float16)))
    for n in (800, 3200, 4096):
        assert evaluate("mean", np.ones((2, n), BF16.numpy), dim=-1).astype(np.float32).tolist() == [1.0, 1.0]
    x = np.array([1.265625, 1.7890625, 0.271484375, 1.671875], np.float32).astype(BF16.numpy)
    assert float(evaluate("sum", x)) == 5.0


def test_variance_of_large_means() -> None:
    """Two passes: no cancellation of squares."""
    x = np.array([[1e4, 1e4 + 1, 1e4 + 2]], np.float32)
    assert evaluate("var", x, dim=-1).tolist() == [1.0]
    assert execute(expanded(lambda p: REGISTRY["var"](p, -1), x), x)[0].tolist() == [1.0]
    assert evaluate("var", x, dim=-1, correction=0).tolist() == [np.float32(2 / 3)]
    assert np.isnan(evaluate("var", np.ones(1, np.float32)))


def test_euclidean_norm_does_not_overflow() -> None:
    x = np.array([3e38, 0.0], np.float32)
    assert execute(expanded(lambda p: REGISTRY["euclidean_norm"](p), x), x)[0] == np.float32(3e38)
    assert evaluate("euclidean_norm", np.array([1e-30, 1e-30], np.float32)) == np.float32(math.sqrt(2) * 1e-30)


def test_long_rows_with_one_finite_logit() -> None:
    """Report B25: whatever the place of the only finite element."""
    for hot in (0, 1, 63, 64, 4095, 4096, 50000, 99999):
        x = np.full((1, 100000), -np.inf, np.float32)
        x[0, hot] = 10
        assert evaluate("logsumexp", x, dim=-1).tolist() == [10.0]
        assert evaluate("softmax", x)[0, hot] == 1.0
    assert np.isnan(evaluate("softmax", np.full((2, 3), -np.inf, np.float32))).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans(name: str, dtype: DType) -> None:
    x = sample((3, 5), dtype)
    for dim in (0, 1, -1):
        wide = (np.cumsum if name == "cumsum" else np.cumprod)(x.astype(np.float64), axis=dim)
        got = evaluate(name, x, dim=dim)
        want = wide.astype(np.float32 if dtype.bits < 64 else np.float64).astype(dtype.numpy)
        assert bits_apart(got, want).max() <= 1
    assert evaluate(name, np.zeros((0, 2), dtype.numpy), dim=0).shape == (0, 2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", (F32, F64, F16, BF16), ids=str)
def test_attention(dtype: DType, causal: bool) -> None:
    rng = np.random.default_rng(8)
    q, k, v = (rng.normal(size=s).astype(np.float32).astype(dtype.numpy) for s in ((2, 5, 8), (2, 7, 8), (2, 7, 6)))
    allowed = np.tril(np.ones((5, 7), bool), 3) | (np.arange(7) == 0)
    added = rng.normal(size=(5, 7)).astype(np.float32).astype(dtype.numpy)
    for mask in (None, allowed, added):
        arrays = [q, k, v] if mask is None else [q, k, v, mask]
        want = evaluate("attention", *arrays, is_causal=causal)
        got = execute(expanded(lambda *p: REGISTRY["attention"](*p, is_causal=causal), *arrays), *arrays)[0]
        within("attention", got, want, arrays, is_causal=causal)
        scores = np.einsum("bmd,bnd->bmn", *(a.astype(np.float64) for a in (q, k))) / math.sqrt(8)
        if causal:
            scores = np.where(np.tril(np.ones((5, 7)), 2) > 0, scores, -np.inf)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask.astype(np.float64)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        direct = np.einsum("bmn,bne->bme", weights / weights.sum(-1, keepdims=True), v.astype(np.float64))
        np.testing.assert_allclose(want.astype(np.float64), direct, rtol=2e-2 if dtype.bits == 16 else 1e-6,
                                   atol=1e-2 if dtype.bits == 16 else 1e-7)


def test_attention_shapes_are_checked() -> None:
    x = np.zeros((4, 8), np.float32)
    for arrays, code in (((x, x[:, :7], x), "PT304"), ((x, x, x[:3]), "PT304"), ((x[0], x, x), "PT303"), ((x, x, x, x), "PT301")):
        with pytest.raises(KernelError) as caught:
            graph_of(lambda *p: REGISTRY["attention"](*p), *arrays)
        assert caught.value.code == code


def test_matmul_of_nothing() -> None:
    for m, k, n in ((0, 3, 2), (2, 0, 3), (2, 3, 0)):
        got = evaluate("matmul", np.ones((m, k), np.float32), np.ones((k, n), np.float32))
        assert got.shape == (m, n) and not got.any()
    assert evaluate("matmul", np.ones((2, 3), np.int8), np.ones((3, 2), np.int8)).dtype == np.int32
    assert I32.numpy == np.int32
