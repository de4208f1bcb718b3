"""Primitives built of other primitives: bit for bit what the operation means, on every dtype they are written for, and acyclic."""
from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from machine import bits_apart, evaluate, execute, expanded, primitives_target
from samples import values

from pypto_dsl.compiler.dtypes import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Builder, Graph, Op, Region, Value, tensor_type
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.alternatives import ALTERNATIVES, BYTE_TERMS, EXACT_TERMS, Alternative
from pypto_dsl.compiler.ops.recording import build, building, expand
from pypto_dsl.compiler.targets import load, names
from pypto_dsl.compiler.targets.target import from_data

# Every dtype of the alternatives and of the conversions that they are built of.
WIDE_DTYPES = (F16, BF16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64)
CASES = [(name, i, dtype) for name, ways in ALTERNATIVES.items() if name != "matmul" for i, way in enumerate(ways) for dtype in way.dtypes]
REDUCING = ("amin", "amax", "sum", "prod")
SCANS = ("cumsum", "cumprod")
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")
ONE = (*REDUCING, *SCANS, "neg", "abs", "tan", "cast", "bitcast")


def arrays_of(name: str, dtype: DType) -> list[np.ndarray]:
    """Operands with special values beside each other."""
    rng = np.random.default_rng(len(name))
    x = np.resize(values(dtype, rng), (12, 60)).astype(dtype.numpy)
    if name == "where":
        return [rng.integers(0, 2, x.shape).astype(bool), x, np.roll(x, 7, axis=1)]
    if name in ("prod", *SCANS) and dtype.is_float:  # the order of the factors shows in none of these but by its roundings
        x = (rng.uniform(0.8, 1.25, x.shape) * rng.choice([-1, 1], x.shape)).astype(dtype.numpy)
    if name in SHIFTS:
        lowest = -3 if dtype.range[0] else 0
        return [x, rng.integers(lowest, 8 * dtype.itemsize + 3, x.shape).astype(dtype.numpy)]
    if name == "pow":
        return [x, rng.integers(-3 if dtype.range[0] else 0, 9, x.shape).astype(dtype.numpy)]
    return [x] if name in ONE else [x, np.roll(x, 7, axis=1)]


def attributes_of(name: str, i: int, dtype: DType) -> list[dict[str, Any]]:
    if name in REDUCING:
        return [{"dim": dim, "keepdim": keepdim} for dim in (0, 1, None) for keepdim in (False, True)]
    if name in SCANS:
        return [{"dim": 0}, {"dim": 1}, {"dim": -2}]
    if name == "bitcast":
        return [{"dtype": dtype}]
    if name == "cast":
        results = ALTERNATIVES[name][i].results
        assert results is not None
        modes = ("CAST_NONE", "CAST_RINT", "CAST_ROUND", "CAST_FLOOR", "CAST_CEIL", "CAST_TRUNC")
        whole = results == (BOOL,) or dtype.is_integer
        return [{"dtype": result, "mode": mode} for result in results for mode in (modes[:1] if whole else modes)]
    return [{}]


def lacking(name: str, way: Alternative, dtype: DType, attributes: dict[str, Any]) -> Any:
    """A target with every primitive but this use of one; what the alternative requires is native there."""
    whole = primitives_target()
    ops = {k: set(v) for k, v in whole.ops.items()}
    if name == "cast":
        pairs = [f"{a.name}->{b.name}" for a in (BOOL, *WIDE_DTYPES) for b in (BOOL, *WIDE_DTYPES)]
        ops["cast"] = set(pairs) - {f"{dtype.name}->{attributes['dtype'].name}"}
    elif name == "where":
        ops["where"] = {f"bool,{d.name},{d.name}" for d in WIDE_DTYPES if d is not dtype}
    else:
        ops[name] = ops.get(name, set()) - {dtype.name}
    for required, operand, result in way.requires:
        ops.setdefault(required, set()).add(f"{operand.name}->{result.name}")
    data = {"name": "lacking", "title": "lacking", "family": "none", "tile": dict(whole.data["tile"]), "limits": {},
            "ops": {k: sorted(v) for k, v in ops.items()}, "only": {name: {"last_operand": "number"}} if name in SHIFTS else {}}
    return from_data(data)


@pytest.mark.parametrize(("name", "i", "dtype"), CASES, ids=[f"{n}-{i}-{d}" for n, i, d in CASES])
def test_an_alternative_means_the_operation(name: str, i: int, dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = arrays_of(name, dtype)
    way = ALTERNATIVES[name][i]
    every = attributes_of(name, i, dtype)
    monkeypatch.setitem(ALTERNATIVES, name, (way, *(w for w in ALTERNATIVES[name] if dtype not in w.dtypes)))
    for attributes in every:
        want = evaluate(name, *arrays, **attributes)
        g = expanded(lambda *p, a=attributes: REGISTRY[name](*p, **a), *arrays, target=lacking(name, way, dtype, attributes))
        assert not any(op.opcode == name and not by_number(op) and tuple(o.type.dtype for o in op.operands)[-1] is dtype
                       and op.results[0].type.dtype == want.dtype for op in g.body.ops if name != "cast")
        got = execute(g, *arrays)[0]
        assert got.dtype == want.dtype
        bound, scale = REGISTRY[name].bound(dtype) if dtype.is_float else None, REGISTRY[name].scale
        if name in ("tan", "prod", *SCANS) and bound is not None:
            finite = np.isfinite(want)
            unit = None if scale is None else np.spacing(scale(*(x.astype(np.float64) for x in arrays), **attributes).astype(dtype.numpy))
            apart = bits_apart(got[finite], want[finite]) if unit is None else np.abs(got - want)[finite] / unit[finite]
            assert (apart <= bound).all()
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
            continue
        if want.dtype == BF16.numpy:  # NumPy knows no NaN of it
            got, want = got.astype(np.float32), want.astype(np.float32)
        np.testing.assert_array_equal(got, want)
        if dtype.is_float and want.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got) & ~np.isnan(want), np.signbit(want) & ~np.isnan(want))


def by_number(op: Op) -> bool:
    """A shift by a constant: what the target has."""
    return op.opcode in SHIFTS and op.operands[-1].op is not None and op.operands[-1].op.opcode in ("constant", "cast")


def test_sums_beyond_the_exact_terms_are_refused() -> None:
    target = lacking("sum", ALTERNATIVES["sum"][0], I32, {})
    for count, accepted in ((EXACT_TERMS, True), (EXACT_TERMS + 1, False)):
        x = np.full((1, count), -(2**31), np.int32)
        x[0, ::3] = 2**31 - 1
        call = lambda p: REGISTRY["sum"](p, 1)  # noqa: E731
        if accepted:
            np.testing.assert_array_equal(execute(expanded(call, x, target=target), x)[0], evaluate("sum", x, dim=1))
            continue
        with pytest.raises(KernelError) as caught:
            expanded(call, x, target=target)
        assert caught.value.code == "PT502"


def test_alternatives_and_expansions_are_acyclic() -> None:
    """(operation, dtype of its last operand) -> the same of what it is built of, whatever a target lacks.

    A shift by a number stands for the shifts whose counts differ, on a target that has it.
    """
    graph = nx.DiGraph()
    pending = [(name, dtype) for name, _, dtype in CASES]
    seen = set(pending)
    while pending:
        name, dtype = pending.pop()
        definition = REGISTRY[name]
        scratch = Builder(Graph("one"), Region())
        ways = [(i, way) for i, way in enumerate(ALTERNATIVES.get(name, ())) if dtype in way.dtypes]
        uses: list[tuple[Alternative | None, dict[str, Any]]] = [(way, a) for i, way in ways for a in attributes_of(name, i, dtype)]
        for way, attributes in uses or [(None, {})]:
            operands = [Value(tensor_type(BOOL if name == "where" and k == 0 else dtype, (4, 4)), f"p{k}")
                        for k in range(sum(1 for p in definition.operands if not p.optional))]
            try:
                with building(Builder(Graph("one"))):
                    made = definition(*operands, **attributes).op
            except KernelError:
                continue
            assert isinstance(made, Op)
            if way is not None:
                build(way.build, made, made.operands, scratch)
            if definition.expansion is not None and (definition.expands is None or dtype in definition.expands):
                expand(made, made.operands, scratch)
        for op in scratch.region.ops:
            if op.opcode in ("constant", "full", "iota", "reshape", "extent", "expand_clone", "cast") or not op.operands or by_number(op):
                continue
            other = (op.opcode, op.operands[-1].type.dtype)
            graph.add_edge((name, dtype), other)
            if other not in seen:
                seen.add(other)
                pending.append(other)
    cycle = next(iter(nx.simple_cycles(graph)), None)
    assert cycle is None, cycle


@pytest.mark.parametrize("target", [n for n in names() if load(n).family in ("ascend", "ttmetal")])
@pytest.mark.parametrize("name", ["amin", "bitwise_and", "eq", "logical_or", "any", "all", "argmin", "isclose", "xlogy", "where"])
def test_devices_take_them(name: str, target: str) -> None:
    """Masks and minima are built on both families."""
    dtype = BOOL if name in ("bitwise_and", "eq", "where") else F32
    arrays = [np.ones((4, 4), bool)] * (name == "where") + [np.ones((4, 4), dtype.numpy)] * (
        2 if name == "where" else sum(1 for p in REGISTRY[name].operands if not p.optional))
    expanded(lambda *p: REGISTRY[name](*p), *arrays, target=load(target))


# ---- matrix products of pieces ----------------------------------------------------------------------------------------------------


def product(a: np.ndarray, b: np.ndarray, dtype: DType, **transposed: bool) -> np.ndarray:
    """The product on a target that has only bf16 products into f32."""
    way = next(w for w in ALTERNATIVES["matmul"] if dtype in w.dtypes)
    target = lacking("matmul", way, dtype, {})
    g = expanded(lambda x, y: REGISTRY["matmul"](x, y, dtype if dtype.is_float else I32, **transposed), a, b, target=target)
    assert {o.type.dtype for op in g.body.ops if op.opcode == "matmul" for o in op.operands} == {BF16}
    return execute(g, a, b)[0]


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("exponent", [0, 30, -30])
def test_a_product_of_f32_as_products_of_bf16(transposed: tuple[bool, bool], exponent: int) -> None:
    rng = np.random.default_rng(exponent + 50)
    a, b = (np.ldexp(rng.normal(size=shape), rng.integers(-12, 13, shape) + exponent).astype(np.float32) for shape in ((20, 90), (90, 30)))
    want, scale = a.astype(np.float64) @ b.astype(np.float64), np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    given = (np.ascontiguousarray(m.T) if t else m for m, t in zip((a, b), transposed, strict=True))
    got = product(*given, F32, a_trans=transposed[0], b_trans=transposed[1])
    assert (np.abs(got - want) <= 4 * np.spacing(scale.astype(np.float32))).all()


def test_special_values_in_a_product_of_f32() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(8, 40)).astype(np.float32), rng.normal(size=(40, 8)).astype(np.float32)
    a[0, 0], a[1, 1], a[2, 2], b[3, 4], a[4, 4], b[4, :] = np.inf, np.nan, -np.inf, np.inf, np.finfo(np.float32).max, 1.0
    with np.errstate(invalid="ignore"):
        want = a.astype(np.float64) @ b.astype(np.float64)
    got = product(a, b, F32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    infinite = np.isinf(want)
    np.testing.assert_array_equal(got[infinite], want[infinite])
    np.testing.assert_allclose(got[np.isfinite(want)], want[np.isfinite(want)], rtol=1e-5, atol=1e-5)


def test_a_product_of_bytes_is_exact_at_its_limit() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(-128, 128, (6, BYTE_TERMS)).astype(np.int8), rng.integers(-128, 128, (BYTE_TERMS, 5)).astype(np.int8)
    a[0], b[:, 0] = -128, -128
    np.testing.assert_array_equal(product(a, b, I8), a.astype(np.int32) @ b.astype(np.int32))
    with pytest.raises(KernelError, match="matmul on i8"):
        product(np.zeros((2, BYTE_TERMS + 1), np.int8), np.zeros((BYTE_TERMS + 1, 2), np.int8), I8)
